package graph

import "cmp"

// methodFunctions covers methods whose Python signature is not the operator's.
func methodFunctions() map[string]function {
	table := map[string]function{
		"to": toMethod, "type_as": typeAs, "contiguous": contiguous, "type": typeMethod, "cpu": cpuMethod,
		"expand_as": likeSizes("aten.expand.default"), "view_as": likeSizes("aten.view.default"), "reshape_as": reshapeAs,
		"resolve_conj": itself, "resolve_neg": itself, "lift_fresh": itself, "conj": itselfIfReal, "conj_physical": itselfIfReal,
		"requires_grad_": requiresGradSetter, "T": reversed, "mT": matrixTransposed, "mH": matrixAdjoint, "H": adjoint2D, "adjoint": matrixAdjoint,
		"real": realPart, "imag": imaginaryPart, "is_nonzero": refuse, "item": refuse, "tolist": refuse, "nonzero": refuse,
	}
	for name, d := range map[string]DType{
		"float": Float32, "double": Float64, "half": Float16, "bfloat16": BFloat16, "long": Int64, "int": Int32, "short": Int16,
		"char": Int8, "byte": Uint8, "bool": Bool, "cfloat": Complex64, "cdouble": Complex128,
	} {
		table["Tensor."+name] = castMethod(d)
	}
	return table
}

func refuse(c *caller) (Value, error) { return nil, unknown(c.target + " depends on data") }

// one gives the only argument, a tensor.
func (c *caller) one() (Value, *Meta, error) {
	if len(c.args) == 1 && len(c.keywords) == 0 {
		if m, ok := MetaOf(c.args[0]); ok {
			return c.args[0], m, nil
		}
	}
	return nil, nil, unknown(c.target + " of something else than one tensor")
}

// selfAndOther binds the arguments of a method that follows the metadata of another tensor.
func (c *caller) selfAndOther() (self Value, other *Meta, err error) {
	bound, err := c.arguments("self", "other")
	if other, ok := MetaOf(bound["other"]); ok {
		return bound["self"], other, nil
	}
	return nil, nil, cmp.Or[error](err, unknown(c.target+" something that is no tensor"))
}

func itself(c *caller) (Value, error) {
	v, _, err := c.one()
	return v, err
}

func itselfIfReal(c *caller) (Value, error) {
	v, m, err := c.one()
	if err == nil && m.DType.IsComplex() {
		return nil, unknown("conjugate")
	}
	return v, err
}

func castMethod(d DType) function {
	return func(c *caller) (Value, error) {
		bound, err := c.arguments("self", "memory_format")
		if err != nil {
			return nil, err
		}
		return c.cast(conversion{tensor: bound["self"], dtype: d, format: bound["memory_format"]})
	}
}

// conversion is what Tensor.to and its relatives ask for.
type conversion struct {
	tensor      Value
	dtype       DType
	device      Device
	copy        bool
	nonBlocking bool
	format      Value
}

// cast returns the tensor itself when nothing changes, as Tensor.to does.
func (c *caller) cast(to conversion) (Value, error) {
	m, ok := MetaOf(to.tensor)
	if !ok || m.DType.unpromotable() || to.dtype.unpromotable() {
		return nil, unknown(c.target + " of this type")
	}
	if to.dtype == NoDType {
		to.dtype = m.DType
	}
	if to.device.Type == "" {
		to.device = m.Device
	}
	format, given := to.format.(MemoryFormat)
	if to.format != nil && !given {
		return nil, unknown("memory format")
	}
	if m.DType.IsComplex() && !to.dtype.IsComplex() {
		return nil, unknown("complex to real")
	}
	if to.dtype == m.DType && to.device == m.Device && !to.copy && c.formatHolds(m, format) {
		return to.tensor, nil
	}
	return c.emitCopy(to, m)
}

func (c *caller) formatHolds(m *Meta, format MemoryFormat) bool {
	switch format {
	case "", PreserveFormat:
		return true
	case ContiguousFormat, ChannelsLast, ChannelsLast3D:
		return c.graph.Shapes.suggestedFormat(m) == format
	}
	return false
}

func (c *caller) emitCopy(to conversion, m *Meta) (Value, error) {
	op, _ := LookUp("aten._to_copy.default")
	keywords := []Keyword{{"dtype", to.dtype}}
	if to.device != m.Device {
		keywords = append(keywords, Keyword{"device", to.device}, Keyword{"non_blocking", to.nonBlocking})
	}
	if to.format != nil {
		keywords = append(keywords, Keyword{"memory_format", to.format})
	}
	return c.emitBound(op, []Value{to.tensor}, keywords)
}

// toMethod covers to(dtype), to(device), to(device, dtype), to(other) and their keywords.
func toMethod(c *caller) (Value, error) {
	if len(c.args) == 0 {
		return nil, unknown("to without self")
	}
	to := conversion{tensor: c.args[0]}
	rest := c.args[1:]
	rest, err := to.positional(rest)
	if err != nil {
		return nil, err
	}
	flags := []string{"non_blocking", "copy"}
	if len(rest) > len(flags) {
		return nil, unknown("to arguments")
	}
	for i, v := range rest {
		if err := to.keyword(Keyword{flags[i], v}); err != nil {
			return nil, err
		}
	}
	for _, k := range c.keywords {
		if err := to.keyword(k); err != nil {
			return nil, err
		}
	}
	return c.cast(to)
}

// positional reads the leading arguments that name a type, a device or another tensor.
func (to *conversion) positional(args []Value) ([]Value, error) {
	if len(args) == 0 {
		return args, nil
	}
	switch v := args[0].(type) {
	case DType:
		to.dtype = v
		return args[1:], nil
	case *Input, *Output:
		other, ok := MetaOf(v)
		if !ok {
			return nil, unknown("to something that is no tensor")
		}
		to.dtype, to.device = other.DType, other.Device
		return args[1:], nil
	}
	if err := to.keyword(Keyword{"device", args[0]}); err != nil {
		return nil, err
	}
	if len(args) > 1 {
		if d, ok := args[1].(DType); ok {
			to.dtype = d
			return args[2:], nil
		}
	}
	return args[1:], nil
}

func (to *conversion) keyword(k Keyword) error {
	ok := true
	switch k.Name {
	case "dtype":
		if k.Value != nil {
			to.dtype, ok = k.Value.(DType)
		}
	case "device":
		var device Value
		if device, ok = convertDevice(k.Value); ok {
			to.device = device.(Device)
		}
		ok = ok || k.Value == nil
	case "copy":
		to.copy, ok = k.Value.(bool)
	case "non_blocking":
		to.nonBlocking, ok = k.Value.(bool)
	case "memory_format":
		to.format = k.Value
	default:
		ok = false
	}
	if !ok {
		return unknown("to with " + k.Name)
	}
	return nil
}

func typeAs(c *caller) (Value, error) {
	self, other, err := c.selfAndOther()
	if err != nil {
		return nil, err
	}
	return c.cast(conversion{tensor: self, dtype: other.DType, device: other.Device})
}

func typeMethod(c *caller) (Value, error) {
	if len(c.args) == 2 && len(c.keywords) == 0 {
		if d, ok := c.args[1].(DType); ok {
			return c.cast(conversion{tensor: c.args[0], dtype: d})
		}
	}
	return nil, unknown("type that is no dtype")
}

func cpuMethod(c *caller) (Value, error) {
	v, _, err := c.one()
	if err != nil {
		return nil, err
	}
	return c.cast(conversion{tensor: v, device: Device{Type: "cpu"}})
}

// contiguous returns the tensor itself when it is laid out as asked.
func contiguous(c *caller) (Value, error) {
	bound, err := c.arguments("self", "memory_format")
	if err != nil {
		return nil, err
	}
	format, given := bound["memory_format"].(MemoryFormat)
	if !given {
		format = ContiguousFormat
	}
	m, ok := MetaOf(bound["self"])
	if !ok || bound["memory_format"] != nil && !given || format == PreserveFormat {
		return nil, unknown("contiguous arguments")
	}
	holds := c.graph.Shapes.isContiguous(m)
	if format != ContiguousFormat {
		holds = c.graph.Shapes.isChannelsLast(m, map[MemoryFormat]int{ChannelsLast: 4, ChannelsLast3D: 5}[format])
	}
	if holds {
		return bound["self"], nil
	}
	return c.clone(bound["self"], format)
}

func (c *caller) clone(v Value, format MemoryFormat) (Value, error) {
	op, _ := LookUp("aten.clone.default")
	return c.emit(op, []Value{v, format})
}

func likeSizes(target string) function {
	return func(c *caller) (Value, error) {
		self, other, err := c.selfAndOther()
		if err != nil {
			return nil, err
		}
		return c.call(target, self, sizeValues(other.Sizes))
	}
}

// requiresGradSetter changes nothing when the flag is already as asked.
func requiresGradSetter(c *caller) (Value, error) {
	bound, err := c.arguments("self", "requires_grad")
	if err != nil {
		return nil, err
	}
	wanted, given := bound["requires_grad"].(bool)
	if !given {
		wanted = bound["requires_grad"] == nil
	}
	if c.graph.RequiresGrad(bound["self"]) != wanted {
		return nil, unknown("requires_grad_ changes the tensor")
	}
	return bound["self"], nil
}
