package symbolic

import (
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/internal/slice"
	"fusee/trace"
	"fusee/trace/wire"
)

// Array is a numpy.ndarray: to the graph it is the tensor on its memory.
type Array struct {
	tensor *Tensor
	object *existing
}

func (v *Array) typeName() string { return "numpy.ndarray" }

// describedArray guards what a tensor on an array's memory depends on: dtype, shape and strides.
func (in *Interpreter) describedArray(d *trace.Description, object *existing) (Value, error) {
	parts := trace.Items(d.Payload)
	if len(parts) != 3 || object.source == nil {
		return &Opaque{object, "numpy.ndarray"}, nil
	}
	metadata, ok := parts[0].(bytecode.Tuple)
	if !ok {
		return &Opaque{object, "numpy.ndarray"}, nil
	}
	meta, err := wire.ParseMeta(metadata)
	if err != nil {
		return nil, err
	}
	var shape bytecode.Tuple
	for _, size := range meta.Sizes {
		shape = append(shape, size.Hint)
	}
	dtype, ok := parts[2].(int64)
	if !ok || slices.Contains(shape, "object") {
		return &Opaque{object, "numpy.ndarray"}, nil
	}
	strides, _ := parts[1].(bytecode.Tuple)
	object.source.Child("attr", "shape").Require(in.reason(), "equals", append(bytecode.Tuple{}, shape...))
	object.source.Child("attr", "strides").Require(in.reason(), "equals", append(bytecode.Tuple{}, strides...))
	object.source.Child("attr", "dtype").Require(in.reason(), "is", bytecode.Tuple{"object", dtype})
	tensor := &Tensor{meta: meta, source: object.source, attributes: map[string]Value{}, array: true}
	return &Array{tensor, object}, nil
}

// arrayOfTensor is Tensor.numpy() of a tensor that has no gradient.
func (in *Interpreter) arrayOfTensor(t *Tensor) (Value, error) {
	if in.requiresGrad(t) || t.meta.Device.Type != "cpu" || t.class != nil || len(t.meta.Sizes) == 0 {
		return nil, unsupported(reasonTensorValue, "numpy")
	}
	if _, err := in.tensorValue(t); err != nil {
		return nil, err
	}
	return &Array{tensor: t}, nil
}

// arrayHandedOut is Tensor.numpy() as the program calls it. Another backend sees the call: the graph has a view, on whose memory the array is.
func (in *Interpreter) arrayHandedOut(t *Tensor) (Value, error) {
	array, err := in.arrayOfTensor(t)
	if err != nil || !in.request.Options.AllNodes || t.array {
		return array, err
	}
	view, err := in.torchCall("Tensor.view_as", Arguments{Positional: []Value{t, t}})
	if tensor, ok := view.(*Tensor); ok && err == nil {
		return &Array{tensor: tensor}, nil
	}
	return array, err
}

// tensorFromArray is torch.from_numpy and torch.as_tensor of an array: a tensor on its memory.
func (in *Interpreter) tensorFromArray(name string, arguments Arguments) (Value, bool, error) {
	argument, ok := in.single(arguments)
	if !ok || name != "torch.from_numpy" && name != "torch.as_tensor" {
		return nil, false, nil
	}
	value, err := in.look(argument)
	if err != nil {
		return nil, true, err
	}
	array, ok := value.(*Array)
	if !ok {
		return nil, false, nil
	}
	return modelled(in.torchCall("operator.getitem", Arguments{Positional: []Value{array.tensor, &Constant{bytecode.Ellipsis}}}))
}

// arrayCall appends a call of NumPy to the graph; kind and name are those of fusee._arrays.
func (in *Interpreter) arrayCall(kind, name string, arguments Arguments) (Value, error) {
	converted := Arguments{}
	for _, argument := range arguments.Positional {
		value, err := in.arrayArgument(argument)
		if err != nil {
			return nil, err
		}
		converted.Positional = append(converted.Positional, value)
	}
	for _, keyword := range arguments.Keywords {
		if keyword.Name == "out" || keyword.Name == "where" || keyword.Name == "like" {
			return nil, unsupported(reasonBuiltinCall, "numpy.%s with %s=", name, keyword.Name)
		}
		value, err := in.arrayArgument(keyword.Value)
		if err != nil {
			return nil, err
		}
		converted.Keywords = append(converted.Keywords, KeywordArgument{keyword.Name, value})
	}
	result, err := in.torchCall("fusee._arrays."+kind+"."+name, converted)
	if err != nil {
		return nil, err
	}
	return arrayResult(result, arguments.Positional)
}

// arrayArgument is an argument as the graph holds it: arrays as tensors, types by name.
func (in *Interpreter) arrayArgument(argument Value) (Value, error) {
	value, err := in.real(argument)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case *Array:
		return v.tensor, nil
	case *Tensor:
		array, err := in.arrayOfTensor(v)
		if err != nil {
			return nil, err
		}
		return array.(*Array).tensor, nil
	case *Tuple:
		items, err := in.arrayArguments(v.items)
		return &Tuple{items: items}, err
	case *List:
		items, err := v.contents(in)
		if err != nil {
			return nil, err
		}
		items, err = in.arrayArguments(items)
		return newList(items), err
	case *SliceValue, *Range:
		return v, nil
	case *Constant:
		if _, special := v.Value.(notImplemented); !special {
			return v, nil
		}
	case *Class:
		if name := map[string]string{"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128"}[v.name]; name != "" {
			return text(name), nil
		}
		if name, ok := strings.CutPrefix(v.name, "numpy."); ok {
			return text(strings.TrimSuffix(name, "_")), nil
		}
	case *Opaque:
		if strings.HasPrefix(v.kind, "numpy.dtype") {
			in.pin(v.object)
			return in.plainGetAttribute(v.object.id, "name")
		}
	}
	return nil, unsupported(reasonTensorCall, "an argument of type %s", value.typeName())
}

func (in *Interpreter) arrayArguments(values []Value) ([]Value, error) {
	return slice.TryMap(values, in.arrayArgument)
}

// arrayResult makes arrays of a call's tensors; a tensor that was an argument is that argument's array.
func arrayResult(result Value, arguments []Value) (Value, error) {
	switch v := result.(type) {
	case *Tensor:
		for _, argument := range arguments {
			if lazy, ok := argument.(*Lazy); ok {
				argument = lazy.value
			}
			if array, ok := argument.(*Array); ok && array.tensor == v {
				return array, nil
			}
		}
		return &Array{tensor: v}, nil
	case *Tuple:
		items, err := slice.TryMap(v.items, func(item Value) (Value, error) { return arrayResult(item, arguments) })
		return &Tuple{items: items}, err
	}
	return nil, unsupported(reasonTensorCall, "a result that is no array")
}

// arrayMethods are methods of arrays that change nothing.
var arrayMethods = []string{"all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "flatten",
	"max", "mean", "min", "prod", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var"}

// getAttribute of an array: what its metadata tells, and methods.
func (v *Array) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "__class__":
		return in.classOf(v)
	case "shape":
		sizes := in.sizeTuple(v.tensor.meta.Sizes).(*Tuple)
		return &Tuple{items: sizes.items}, nil
	case "ndim":
		return integer(int64(len(v.tensor.meta.Sizes))), nil
	case "size":
		return in.fromSize(in.shapes().Product(v.tensor.meta.Sizes)), nil
	case "itemsize":
		return integer(int64(v.tensor.meta.DType.Bytes())), nil
	case "dtype":
		outcome, err := in.session.Evaluate(nameWire("numpy.dtype"), []bytecode.Object{bytecode.Tuple{v.tensor.meta.DType.String()}}, nil)
		if err != nil {
			return nil, err
		}
		return in.outcomeValue(outcome)
	case "T":
		return in.arrayCall("method", "transpose", Arguments{Positional: []Value{v}})
	}
	if slices.Contains(arrayMethods, name) {
		return &arrayMethod{v, name}, nil
	}
	return nil, unsupported(reasonAttribute, "numpy.ndarray.%s", name)
}

func (v *Array) setAttribute(_ *Interpreter, name string, _ Value) error {
	return unsupported(reasonMutation, "numpy.ndarray.%s", name)
}

func (v *Array) getItem(in *Interpreter, key Value) (Value, error) {
	item, err := in.arrayCall("operator", "getitem", Arguments{Positional: []Value{v, key}})
	if array, ok := item.(*Array); ok && err == nil && len(array.tensor.meta.Sizes) == 0 {
		return in.scalarItem(array)
	}
	return item, err
}

func (v *Array) setItem(*Interpreter, Value, Value) error {
	return unsupported(reasonMutation, "an item of a numpy.ndarray")
}

func (v *Array) length(in *Interpreter) (int, error) { return in.length(v.tensor) }

func (v *Array) truth(*Interpreter) (bool, error) {
	return false, unsupported(reasonBranch, "numpy.ndarray")
}

func (v *Array) contains(*Interpreter, Value) (bool, error) {
	return false, unsupported(reasonBranch, "in a numpy.ndarray")
}

// iterate gives the rows; the items of an array of one dimension, scalars of NumPy that may be many, are left to Python.
func (v *Array) iterate(in *Interpreter) (iterator, error) {
	n, err := v.length(in)
	if err != nil {
		return nil, err
	}
	if n > 0 && len(v.tensor.meta.Sizes) == 1 {
		return nil, unsupported(reasonIteration, "a numpy.ndarray of one dimension")
	}
	rows := make([]Value, n)
	for i := range rows {
		if rows[i], err = v.getItem(in, integer(int64(i))); err != nil {
			return nil, err
		}
	}
	return &sequenceIterator{items: rows, kind: "iterator"}, nil
}

// arrayMethod is a bound method of an array.
type arrayMethod struct {
	array *Array
	name  string
}

func (v *arrayMethod) typeName() string { return "builtin_function_or_method" }

func (v *arrayMethod) call(in *Interpreter, arguments Arguments) (Value, error) {
	arguments.Positional = append([]Value{v.array}, arguments.Positional...)
	return in.arrayCall("method", v.name, arguments)
}

// arrayOperator is an operator with an array on one side; handled is false where there is none.
func (in *Interpreter) arrayOperator(function string, inplace bool, operands ...Value) (Value, bool, error) {
	found := false
	for _, operand := range operands {
		switch v := operand.(type) {
		case *Array:
			found = true
		case *Tensor, *Instance:
			if _, isArray := operands[0].(*Array); isArray || len(operands) > 1 && isArrayValue(operands[1]) {
				return nil, true, unsupported(reasonOperator, "numpy.ndarray and %s", v.typeName())
			}
		}
	}
	if !found {
		return nil, false, nil
	}
	if inplace && isArrayValue(operands[0]) {
		return nil, true, unsupported(reasonMutation, "a numpy.ndarray in place")
	}
	return modelled(in.arrayCall("operator", function, Arguments{Positional: operands}))
}

func isArrayValue(value Value) bool {
	_, ok := value.(*Array)
	return ok
}
