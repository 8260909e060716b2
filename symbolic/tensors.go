package symbolic

import (
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
	"fusee/trace"
	"fusee/trace/wire"
)

func isTorchName(name string) bool {
	return strings.HasPrefix(name, "torch.") && !strings.HasPrefix(name, "torch.Size.") || strings.HasPrefix(name, "Tensor.")
}

// used makes an existing tensor an input of the graph the first time an operation or a shape question needs it.
func (in *Interpreter) used(t *Tensor) error {
	if t.wraps() && t.meta.Flags&graph.FlagConjNeg == 0 {
		in.settle(t)
		return nil
	}
	if t.class != nil && !t.intercepted() || t.meta.Flags&(graph.FlagNotPlain|graph.FlagConjNeg) != 0 {
		return unsupported(reasonTensorSub, "%s", t.typeName())
	}
	return nil
}

func (in *Interpreter) tensorValue(t *Tensor) (graph.Value, error) {
	if !t.wraps() {
		if err := in.used(t); err != nil {
			return nil, err
		}
	}
	if t.value == nil {
		if t.source == nil {
			return nil, errors.New("a tensor of the host without a source")
		}
		input := in.graph.AddTensor("", t.meta)
		input.Memory = in.storageOf(t)
		t.value = input
		in.inputs = append(in.inputs, t)
		in.arguments = append(in.arguments, t)
	}
	return t.value, nil
}

// graphValue turns a symbolic value into an argument of a graph node.
func (in *Interpreter) graphValue(value Value) (graph.Value, error) {
	value, err := in.look(value)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case *Number:
		return in.graphNumber(v), nil
	case *Tensor:
		return in.tensorValue(v)
	case *Constant:
		return graphConstant(v)
	case *Tuple:
		return in.graphList(v.items, true)
	case *List:
		return in.graphListOf(v)
	case *SliceValue:
		bounds, err := in.graphList([]Value{v.start, v.stop, v.step}, true)
		if err != nil {
			return nil, err
		}
		items := bounds.(graph.List).Items
		return graph.Slice{Start: items[0], Stop: items[1], Step: items[2]}, nil
	case *Range:
		items, err := in.iterableItems(v)
		if err != nil {
			return nil, err
		}
		return in.graphList(items, false)
	case *LibraryValue:
		return graphLibrary(v)
	case *Class:
		if name, ok := legacyTypeName(v); ok {
			return name, nil
		}
		if dtype, ok := map[string]graph.DType{"float": graph.Float64, "int": graph.Int64, "bool": graph.Bool}[v.name]; ok {
			return dtype, nil
		}
	case *Instance:
		if v.base != nil {
			return in.graphValue(v.base)
		}
	case *arrayNumber, *Opaque:
		number, err := in.integerScalar(v)
		if err != nil {
			return nil, err
		}
		if number != nil {
			return in.graphValue(number)
		}
	}
	return nil, unsupported(reasonTensorCall, "an argument of type %s", value.typeName())
}

// graphNumber is an int as the graph computes with it; floats become inputs of the graph.
func (in *Interpreter) graphNumber(n *Number) graph.Value {
	if n.isInt() {
		return in.graph.Shapes.Canonical(n.size)
	}
	if n.argument == nil {
		n.argument = in.graph.AddFloat("")
		in.arguments = append(in.arguments, n)
	}
	return n.argument
}

// graphListOf is a list as an argument of the graph; one that holds itself is left to the operation, which refuses it.
func (in *Interpreter) graphListOf(list *List) (graph.Value, error) {
	if in.entered[list] {
		return nil, unsupported(reasonTensorCall, "an argument that holds itself")
	}
	items, err := list.contents(in)
	if err != nil {
		return nil, err
	}
	in.entered[list] = true
	defer delete(in.entered, list)
	return in.graphList(items, false)
}

func (in *Interpreter) graphList(values []Value, tuple bool) (graph.Value, error) {
	items, err := slice.TryMap(values, in.graphValue)
	if err != nil {
		return nil, err
	}
	return graph.List{Items: items, Tuple: tuple}, nil
}

func graphConstant(v *Constant) (graph.Value, error) {
	switch value := v.Value.(type) {
	case bytecode.NoneType:
		return nil, nil
	case bool, int64, float64, complex128, string:
		return value, nil
	case bytecode.EllipsisType:
		return graph.Ellipsis{}, nil
	}
	return nil, unsupported(reasonTensorCall, "an argument of type %s", v.typeName())
}

func graphLibrary(v *LibraryValue) (graph.Value, error) {
	switch v.kind {
	case "dtype":
		if dtype, ok := graph.ParseDType(v.text); ok {
			return dtype, nil
		}
	case "device":
		return wire.ParseDevice(v.text)
	case "layout":
		return graph.Layout(v.text), nil
	case "memory_format":
		return graph.MemoryFormat(v.text), nil
	}
	return nil, unsupported(reasonTensorCall, "an argument of type torch.%s", v.kind)
}

// fromGraph turns a node's result into a symbolic value; outputs that are an argument give back the argument itself.
func (in *Interpreter) fromGraph(value graph.Value) (Value, error) {
	switch v := value.(type) {
	case *graph.Output:
		return in.fromOutput(v)
	case graph.List:
		items := make([]Value, len(v.Items))
		for i, item := range v.Items {
			converted, err := in.fromGraph(item)
			if err != nil {
				return nil, err
			}
			items[i] = converted
		}
		if v.Tuple {
			return &Tuple{items: items}, nil
		}
		return newList(items), nil
	case nil:
		return none(), nil
	case bool, int64, float64, complex128, string:
		return &Constant{v}, nil
	case graph.DType:
		return dtypeValue(v), nil
	case graph.Device:
		return &LibraryValue{kind: "device", text: v.String()}, nil
	case graph.Size:
		return in.fromSize(v), nil
	}
	return nil, unsupported(reasonTensorCall, "a result that is no tensor")
}

func dtypeValue(dtype graph.DType) Value { return &LibraryValue{kind: "dtype", text: dtype.String()} }

func (in *Interpreter) fromOutput(output *graph.Output) (Value, error) {
	info := output.Node.Outputs[output.Index]
	if info.Relation.Kind == graph.RelationSame {
		if original := in.tensorOf(info.Relation.Of); original != nil {
			original.adopt(info.Meta)
			return original, nil
		}
	}
	tensor := &Tensor{value: output, meta: info.Meta, attributes: map[string]Value{}, view: info.Relation.Kind == graph.RelationView}
	in.produced(tensor)
	return tensor, nil
}

func sameHint(one, other graph.Size) bool { return one.Hint == other.Hint }

// adopt takes the metadata that an operation left a tensor with; its class stays.
func (t *Tensor) adopt(meta graph.Meta) {
	meta.Flags |= t.meta.Flags & (graph.FlagIntercepted | graph.FlagParameter)
	t.meta = meta
}

// tensorOf finds the symbolic tensor of a graph value, so that in-place operations return the very object they changed.
func (in *Interpreter) tensorOf(value graph.Value) *Tensor {
	holds := func(tensor *Tensor) bool { return graph.SameValue(tensor.value, value) }
	if tensor, ok := slice.Find(in.tensors, holds); ok {
		return tensor
	}
	tensor, _ := slice.Find(in.inputs, holds)
	return tensor
}

func (in *Interpreter) produced(tensor *Tensor) { in.tensors = append(in.tensors, tensor) }

// torchCall captures a torch operation: the op table answers for shapes where it can, the host's fake tensors where it cannot.
func (in *Interpreter) torchCall(target string, arguments Arguments) (Value, error) {
	if value, handled, err := in.overriddenOperator(target, arguments); handled || err != nil {
		return value, err
	}
	if value, handled, err := in.factoryOfLeaf(target, arguments); handled || err != nil {
		return value, err
	}
	args, keywords, err := in.graphArguments(arguments)
	if err != nil {
		return nil, err
	}
	value, err := in.appendCall(target, args, keywords)
	if errors.Is(err, graph.ErrReducesNothing) {
		return nil, unsupported(reasonTensorCall, "%s of no elements", target)
	}
	if errors.Is(err, graph.ErrCannotStore) {
		return nil, unsupported(reasonTensorCall, "%s on a tensor whose type cannot hold the result", target)
	}
	if errors.Is(err, graph.ErrForbidden) {
		return nil, unsupported(reasonTensorCall, "%s on a view that autograd does not let be changed", target)
	}
	if afresh := (*graph.AfreshError)(nil); errors.As(err, &afresh) {
		return nil, in.breakAhead(afresh.Node, target)
	}
	if errors.Is(err, graph.ErrUnknown) {
		value, err = in.hostCall(&hostedCall{target: target, args: args, keywords: keywords})
	}
	return value, err
}

// breakAhead ends the capture ahead of a node that made what cannot be written, so that Python has the tensors themselves.
func (in *Interpreter) breakAhead(node *graph.Node, target string) error {
	reason := &Unsupported{reasonAutograd, target + " gives a history to what " + node.Target + " made"}
	if step := in.madeAt[node]; step > 0 {
		return &restart{step: step, reason: reason}
	}
	return reason
}

// tableCall captures an operation that the op table knows, and is graph.ErrUnknown for others and for arguments that no table holds.
func (in *Interpreter) tableCall(target string, arguments Arguments) (Value, error) {
	args, keywords, err := in.graphArguments(arguments)
	var stop *Unsupported
	if errors.As(err, &stop) {
		return nil, graph.ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	return in.appendCall(target, args, keywords)
}

func (in *Interpreter) graphArguments(arguments Arguments) ([]graph.Value, []graph.Keyword, error) {
	args := make([]graph.Value, len(arguments.Positional))
	for i, argument := range arguments.Positional {
		value, err := in.graphValue(argument)
		if err != nil {
			return nil, nil, err
		}
		args[i] = value
	}
	var keywords []graph.Keyword
	for _, keyword := range arguments.Keywords {
		value, err := in.graphValue(keyword.Value)
		if err != nil {
			return nil, nil, err
		}
		keywords = append(keywords, graph.Keyword{Name: keyword.Name, Value: value})
	}
	return args, keywords, nil
}

func (in *Interpreter) appendCall(target string, args []graph.Value, keywords []graph.Keyword) (Value, error) {
	state := in.state
	state.Origin = in.origin()
	node, err := in.graph.Call(target, args, keywords, state)
	if err != nil {
		return nil, err
	}
	in.activity++
	return in.nodeResult(node)
}

// nodeResult gives a node's result as Python sees it: a structseq where torch returns one.
func (in *Interpreter) nodeResult(node *graph.Node) (Value, error) {
	value, err := in.fromGraph(node.Result)
	if err != nil || node.ResultType == "" {
		return value, err
	}
	class, err := in.resolveClass(node.ResultType)
	if err != nil {
		return nil, err
	}
	return &Tuple{items: value.(*Tuple).items, class: class}, nil
}

// hostCall runs an operation on fake tensors in the host and appends what it answers.
func (in *Interpreter) hostCall(call *hostedCall) (Value, error) {
	if wrapped := in.wrappers(call.args, call.keywords); len(wrapped) > 0 {
		return in.wrapperCall(call, wrapped)
	}
	if in.changesUnseenLeaf(call) {
		return nil, unsupported(reasonTensorCall, "%s where gradients were off at the start, and are on", call.target)
	}
	if call.readsWhatItWrites() {
		return nil, unsupported(reasonTensorCall, "%s reads the memory that it writes", call.target)
	}
	outcome, err := in.shapedCall(call)
	if outcome == nil && err == nil {
		in.specialiseCall(call)
		outcome, err = in.askTensorCall(call)
	}
	if err != nil {
		return nil, err
	}
	if outcome.Raised != 0 {
		return in.outcomeValue(outcome)
	}
	in.activity++
	return in.appendAnswered(call, outcome)
}

// askTensorCall asks the host what a call gives; the error is *Unsupported where it cannot tell.
func (in *Interpreter) askTensorCall(call *hostedCall) (*trace.Outcome, error) {
	wired, wiredKeywords := in.wireArguments(call)
	outcome, err := in.session.TensorCall(call.wireTarget(), wired, wiredKeywords, in.modes())
	if err == nil && outcome.Unsupported != "" {
		err = unsupported(reasonTensorCall, "%s: %s", call.target, outcome.Unsupported)
	}
	return outcome, err
}

// modes are those that the program has changed since the start.
func (in *Interpreter) modes() trace.Modes {
	modes := trace.Modes{Autocast: in.autocast.wire()}
	if in.state.GradMode != in.initial.GradMode {
		modes.Gradients = in.state.GradMode
	}
	return modes
}

func (in *Interpreter) appendAnswered(call *hostedCall, outcome *trace.Outcome) (Value, error) {
	node := in.graph.Append(call.target, call.args, call.keywords, nil, nil)
	node.Callee = int64(call.callee)
	node.Unrecorded = !in.state.GradMode
	node.Origin = in.origin()
	node.CastCache = in.autocast.castCache()
	node.MayRaise = true // for all that is known: fake tensors have neither contents nor memory
	in.hosted[node] = true
	result, err := in.readStructure(node, outcome.Structure)
	if err != nil {
		return nil, err
	}
	node.Result = graphResult(result)
	expanded, err := in.expand(node, outcome)
	if err != nil {
		return nil, err
	}
	if !expanded {
		in.pythonOnly = true
		node.Mutates = mutatedArguments(node, outcome)
	}
	if len(node.Mutates) > 0 {
		in.specialiseOffsets(call.values()...)
	}
	return result, nil
}

// readStructure reads what the host says an operation returned, and fills the node's outputs.
func (in *Interpreter) readStructure(node *graph.Node, structure bytecode.Object) (Value, error) {
	fields, ok := structure.(bytecode.Tuple)
	if !ok || len(fields) == 0 {
		reference, err := trace.ParseReference(structure)
		if err != nil {
			return nil, err
		}
		return in.answered(reference)
	}
	switch fields[0] {
	case "T":
		return in.readTensor(node, fields)
	case "tuple", "list", "named":
		var items []Value
		for _, part := range trace.Items(fields[len(fields)-1]) {
			item, err := in.readStructure(node, part)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		if fields[0] == "list" {
			return newList(items), nil
		}
		tuple := &Tuple{items: items}
		if len(fields) > 2 {
			if id, ok := fields[1].(int64); ok {
				class, err := in.subclassOf(trace.ObjectID(id), "tuple")
				if err != nil {
					return nil, err
				}
				tuple.class = class
			}
		}
		return tuple, nil
	}
	reference, err := trace.ParseReference(structure)
	if err != nil {
		return nil, err
	}
	return in.answered(reference)
}

// graphResult is a result as the graph sees it, with the place of each output in it.
func graphResult(value Value) graph.Value {
	var items []Value
	tuple := true
	switch v := value.(type) {
	case *Tensor:
		return v.value
	case *Tuple:
		items = v.items
	case *List:
		items, tuple = v.items, false
	default:
		return nil
	}
	list := graph.List{Tuple: tuple}
	for _, item := range items {
		list.Items = append(list.Items, graphResult(item))
	}
	return list
}

func (in *Interpreter) readTensor(node *graph.Node, fields bytecode.Tuple) (Value, error) {
	if len(fields) < 3 {
		return nil, errors.New("a tensor in an answer is malformed")
	}
	metadata, ok := fields[1].(bytecode.Tuple)
	if !ok || len(metadata) < 7 {
		return nil, errors.New("a tensor's metadata is malformed")
	}
	meta, err := wire.ParseShapedMeta(metadata, in.shapes())
	if errors.Is(err, wire.ErrUnnatural) {
		return nil, unsupported(reasonTensorCall, "%s makes a tensor of a negative size", node.Target)
	}
	if err != nil {
		return nil, err
	}
	info := graph.OutputInfo{Meta: meta}
	if relation, ok := fields[2].(bytecode.Tuple); ok && len(relation) == 2 {
		index, _ := relation[1].(int64)
		argument := in.wiredTensor(index)
		switch relation[0] {
		case "same":
			if original := in.tensorOf(argument); original != nil {
				if writesOut(node) && !in.shapes().AllEqual(original.meta.Sizes, meta.Sizes) {
					return nil, unsupported(reasonTensorCall, "%s resizes the tensor that it writes to", node.Target)
				}
				if !original.wraps() {
					if !slices.EqualFunc(original.meta.Sizes, meta.Sizes, sameHint) {
						return nil, unsupported(reasonMutation, "%s, which changes the shape of a tensor", node.Target)
					}
					if sameHint(original.meta.Offset, meta.Offset) {
						meta.Offset = original.meta.Offset
					}
					original.adopt(meta)
				}
				return original, nil
			}
		case "view":
			info.Relation = graph.ViewOf(argument)
			in.beginLike(&info)
		}
	}
	wraps := marksWrapper(&meta)
	if meta.Flags&graph.FlagConjNeg != 0 || meta.Flags&graph.FlagNotPlain != 0 && !wraps {
		return nil, unsupported(reasonTensorSub, "a result of %s", node.Target)
	}
	node.Outputs = append(node.Outputs, info)
	result, err := in.fromOutput(node.Output(len(node.Outputs) - 1))
	if tensor, ok := result.(*Tensor); ok && err == nil && wraps {
		err = in.readWrapper(tensor, fields)
	}
	return result, err
}

// writesOut tells calls with an argument out=.
func writesOut(node *graph.Node) bool {
	return slices.ContainsFunc(node.Keywords, func(keyword graph.Keyword) bool { return keyword.Name == "out" })
}

// wireGraphValue writes an argument for the host; tensors are numbered as inputs (even) and node outputs (odd).
func (in *Interpreter) wireGraphValue(value graph.Value) bytecode.Object {
	switch v := value.(type) {
	case *graph.Input, *graph.Output:
		return in.wireTensor(v)
	case graph.List:
		items := make([]bytecode.Object, len(v.Items))
		for i, item := range v.Items {
			items[i] = in.wireGraphValue(item)
		}
		kind := "list"
		if v.Tuple {
			kind = "tuple"
		}
		return bytecode.Tuple{kind, &bytecode.List{Items: items}}
	case graph.Slice:
		return bytecode.Tuple{"slice", in.wireGraphValue(v.Start), in.wireGraphValue(v.Stop), in.wireGraphValue(v.Step)}
	case graph.Size:
		if in.wiresShapes {
			return bytecode.Tuple{"size", wire.WriteSize(v)}
		}
	}
	return wireScalar(value)
}

// wireScalar writes an argument that is neither a tensor nor a container.
func wireScalar(value graph.Value) bytecode.Object {
	switch v := value.(type) {
	case nil:
		return bytecode.Tuple{bytecode.None}
	case graph.Ellipsis:
		return bytecode.Tuple{bytecode.Ellipsis}
	case graph.DType:
		return nameWire("torch." + v.String())
	case graph.Device:
		return bytecode.Tuple{"device", v.String()}
	case graph.Layout:
		return nameWire("torch." + string(v))
	case graph.MemoryFormat:
		return nameWire("torch." + string(v))
	case graph.Size:
		return bytecode.Tuple{v.Hint}
	}
	return bytecode.Tuple{value}
}

// tensorNumber numbers the tensors that the host is told about.
func (in *Interpreter) tensorNumber(value graph.Value) int {
	for k, known := range in.wired {
		if graph.SameValue(known, value) {
			return k
		}
	}
	in.wired = append(in.wired, value)
	return len(in.wired) - 1
}

func (in *Interpreter) wiredTensor(index int64) graph.Value {
	if index < 0 || index >= int64(len(in.wired)) {
		return nil
	}
	return in.wired[index]
}

// getAttribute of a tensor: what torch.Tensor defines first, then attributes set from Python.
func (v *Tensor) getAttribute(in *Interpreter, name string) (Value, error) {
	if v.class != nil && !v.intercepted() && !v.wraps() {
		return nil, unsupported(reasonTensorSub, "%s.%s", v.class.name, name)
	}
	if name == "__class__" {
		return in.classOf(v)
	}
	if v.wraps() {
		if value, done, err := in.innerAttribute(v, name); done || err != nil {
			return value, err
		}
	}
	class, err := in.resolveTensorClass(v)
	if err != nil {
		return nil, err
	}
	found, _, err := in.classLookup(class, name)
	if err != nil {
		return nil, err
	}
	tail := in.tail
	if found != nil {
		data, err := in.isDataDescriptor(found)
		if err != nil {
			return nil, err
		}
		if v.class != nil {
			in.tail = in.tail.asking(class)
		}
		if data || v.class == nil {
			return in.bindDescriptor(found, v, class)
		}
	}
	own, err := in.tensorOwnAttribute(v, name)
	if isRaised(err, "AttributeError") && found != nil {
		return in.bindDescriptor(found, v, class)
	}
	if !isRaised(err, "AttributeError") || v.class == nil {
		return own, err
	}
	fallback, _, lookupErr := in.classLookup(class, "__getattr__")
	if lookupErr != nil || fallback == nil {
		if lookupErr == nil {
			lookupErr = err
		}
		return nil, lookupErr
	}
	in.tail = tail
	return in.tailCall(fallback, Arguments{Positional: []Value{v, text(name)}})
}

func (in *Interpreter) resolveTensorClass(v *Tensor) (*Class, error) {
	if v.class != nil {
		return v.class, nil
	}
	if v.id != 0 {
		return in.classOfObject(v.id)
	}
	return in.namedClass(tensorTypeName(v))
}

func (in *Interpreter) tensorOwnAttribute(v *Tensor, name string) (Value, error) {
	if value := v.attributes[name]; value != nil {
		return value, nil
	}
	if v.id != 0 {
		d, err := in.session.Object(v.id)
		if err != nil {
			return nil, err
		}
		if fields, ok := d.Payload.(bytecode.Tuple); ok && len(fields) > 9 {
			for _, item := range trace.Items(fields[9]) {
				if pair, ok := item.(bytecode.Tuple); ok && len(pair) == 2 && pair[0] == name {
					return in.child(pair[1], v.source, "attr", name)
				}
			}
		}
		if v.class != nil {
			v.source.Require(in.reason(), "no_field", name) // the class may have one
		} else {
			v.source.Require(in.reason(), "no_attr", name)
		}
	}
	return nil, in.raise("AttributeError", "'"+shortName(v.typeName())+"' object has no attribute '"+name+"'")
}

// setAttribute of a tensor: a property's setter, or an attribute in its __dict__; what torch defines in C is left to Python.
func (v *Tensor) setAttribute(in *Interpreter, name string, value Value) error {
	class, err := in.resolveTensorClass(v)
	if err != nil {
		return err
	}
	if name == "grad" && value != nil {
		gradient, err := in.real(value)
		if err != nil {
			return err
		}
		if v.takesGradient(gradient) {
			v.attributes[name] = gradient
			in.activity++
			return nil
		}
	}
	hook, owner, err := in.classLookup(class, "__setattr__")
	if err != nil {
		return err
	}
	found, _, err := in.classLookup(class, name)
	if err != nil {
		return err
	}
	if found, err = in.real(found); err != nil {
		return err
	}
	if property, ok := found.(*descriptorValue); ok && property.kind == "property" && value != nil {
		setter, err := in.real(property.parts[1])
		if _, python := setter.(*Function); err != nil || !python {
			return unsupported(reasonMutation, "tensor attribute %s", name)
		}
		_, err = in.tailCall(setter, Arguments{Positional: []Value{v, value}})
		return err
	}
	if descriptor, ok := found.(*Builtin); ok && value != nil {
		switch descriptor.name {
		case "Tensor.grad":
			return in.setGradient(v, value)
		case "Tensor.data":
			return in.setData(v, value)
		case "Tensor.requires_grad":
			return in.setFlag(v, value)
		}
	}
	plainHook := owner != nil && (owner.name == "object" || !userClass(owner.name)) && hook != nil
	if value == nil || !plainHook || found != nil && !userAttribute(found) || strings.HasPrefix(name, "__") || v.class != nil && !v.intercepted() {
		return unsupported(reasonMutation, "tensor attribute %s", name)
	}
	in.activity++
	in.outside++
	if _, again := v.attributes[name]; !again && v.id != 0 {
		in.effects = append(in.effects, &tensorFieldEffect{v, name})
	}
	v.attributes[name] = value
	return nil
}

// takesGradient tells values that torch takes for the gradient of a tensor made during capture: THPVariable_set_grad of PyTorch's
// python_variable.cpp. Of tensors that autograd follows gradients are left to it.
func (v *Tensor) takesGradient(value Value) bool {
	if v.id != 0 || v.class != nil || v.wraps() || v.madeParameter() || v.meta.RequiresGrad {
		return false
	}
	gradient, ok := value.(*Tensor)
	return isNone(value) || ok && gradient != v && gradient.class == nil && !gradient.wraps() && gradient.alike(v)
}

// userAttribute tells plain values on a class, which an instance's own attribute hides.
func userAttribute(found Value) bool {
	switch found.(type) {
	case *Constant, *Function, *List, *Dict, *Tuple:
		return true
	}
	return false
}

func (v *Tensor) truth(in *Interpreter) (bool, error) {
	if known := in.knownScalar(v); known != nil {
		return constantTruth(known.Value), nil
	}
	return false, unsupported(reasonBranch, "")
}

// readGetset reads a C-level attribute: of tensors from their metadata, of other values in the host.
func (in *Interpreter) readGetset(name string, owner Value) (Value, error) {
	if tensor, ok := owner.(*Tensor); ok {
		if value, handled, err := in.overridden(&getterFunction{name}, Arguments{Positional: []Value{tensor}}); handled || err != nil {
			return value, err
		}
		return in.tensorProperty(tensor, strings.TrimPrefix(name, "Tensor."))
	}
	switch o := owner.(type) {
	case *Instance:
		if o.object != nil {
			return nil, unsupported(reasonAttribute, "%s", name)
		}
	case *Constant:
		return in.constantProperty(o, shortName(name))
	case *SliceValue:
		parts := map[string]Value{"start": o.start, "stop": o.stop, "step": o.step}
		if part := parts[shortName(name)]; part != nil {
			return part, nil
		}
	case *Range:
		parts := map[string]int64{"start": o.start, "stop": o.stop, "step": o.step}
		if part, ok := parts[shortName(name)]; ok {
			return integer(part), nil
		}
	case *Dict:
		if shortName(name) == "default_factory" {
			return o.defaultFactory(in)
		}
	case *Deque:
		if shortName(name) == "maxlen" {
			return o.limit(), nil
		}
	case *Tuple:
		return in.structseqField(o, shortName(name))
	}
	return nil, unsupported(reasonAttribute, "%s", name)
}

func (in *Interpreter) constantProperty(c *Constant, name string) (Value, error) {
	switch name {
	case "real", "numerator":
		if _, complexNumber := c.Value.(complex128); !complexNumber {
			return c, nil
		}
	case "imag":
		if _, isInt := c.Value.(int64); isInt {
			return integer(0), nil
		}
	case "denominator":
		return integer(1), nil
	}
	return nil, unsupported(reasonAttribute, "%s.%s", c.typeName(), name)
}

// structseqField reads values, indices and the like of torch.return_types: the class lists its fields in order.
func (in *Interpreter) structseqField(t *Tuple, name string) (Value, error) {
	if t.class == nil {
		return nil, unsupported(reasonAttribute, "tuple.%s", name)
	}
	fields := map[string][]string{"torch.return_types.svd": {"U", "S", "V"}, "torch.return_types.aminmax": {"min", "max"}}[t.class.name]
	if fields == nil {
		fields = []string{"values", "indices"}
	}
	if k := indexOf(fields, name); k >= 0 && k < len(t.items) && strings.HasPrefix(t.class.name, "torch.return_types.") {
		return t.items[k], nil
	}
	return nil, unsupported(reasonAttribute, "%s.%s", t.class.name, name)
}

// tensorProperty answers attributes of a tensor from its metadata, and captures those that make new tensors.
func (in *Interpreter) tensorProperty(t *Tensor, name string) (Value, error) {
	if err := in.used(t); err != nil {
		return nil, err
	}
	switch name {
	case "shape":
		return in.sizeTuple(t.meta.Sizes), nil
	case "dtype":
		return dtypeValue(t.meta.DType), nil
	case "device":
		return &LibraryValue{kind: "device", text: t.meta.Device.String()}, nil
	case "ndim":
		return integer(int64(len(t.meta.Sizes))), nil
	case "layout":
		return &LibraryValue{kind: "layout", text: "strided"}, nil
	case "requires_grad":
		return boolean(in.requiresGrad(t)), nil
	case "is_leaf":
		return boolean(!in.requiresGrad(t) || in.isLeaf(t) || t.meta.RequiresGrad && t.id != 0 && t.meta.Flags&graph.FlagLeaf != 0), nil
	case "is_cpu", "is_cuda":
		return boolean(t.meta.Device.Type == name[3:]), nil
	case "is_sparse", "is_quantized", "is_mkldnn", "is_meta", "is_mps", "is_xpu", "is_nested", "is_sparse_csr", "is_xla", "is_ipu", "is_maia", "is_vulkan", "is_mtia":
		return boolean(false), nil
	case "itemsize":
		return integer(int64(t.meta.DType.Bytes())), nil
	case "T", "mT", "H", "mH", "real", "imag", "data":
		return in.torchCall("Tensor."+name, Arguments{Positional: []Value{t}})
	case "grad":
		return in.tensorGradient(t)
	case "grad_fn":
		if !in.requiresGrad(t) || in.isLeaf(t) {
			return none(), nil
		}
		if t.node != nil {
			return t.node, nil
		}
	}
	return nil, unsupported(reasonAttribute, "Tensor.%s", name)
}

func (in *Interpreter) sizeTuple(sizes []graph.Size) Value {
	tuple := &Tuple{class: sizeType()}
	for _, size := range sizes {
		tuple.items = append(tuple.items, in.fromSize(size))
	}
	return tuple
}

// callTorchName calls a torch function or tensor method by canonical name.
func (in *Interpreter) callTorchName(name string, arguments Arguments) (Value, error) {
	if value, handled, err := in.functionGuard(name, arguments); handled || err != nil {
		return value, err
	}
	if value, handled, err := in.tensorFromArray(name, arguments); handled || err != nil {
		return value, err
	}
	switch name {
	case "Tensor.as_subclass":
		return in.asSubclassCall(arguments)
	case "Tensor._make_subclass":
		return in.makeSubclass(arguments)
	}
	function := &Builtin{name: name}
	if strings.HasPrefix(name, "Tensor.") {
		function.flavor = "method"
	}
	if value, handled, err := in.overridden(function, arguments); handled || err != nil {
		return value, err
	}
	if value, handled, err := in.torchState(name, arguments); handled || err != nil {
		return value, err
	}
	if len(arguments.Positional) > 0 && isQuestionFunction(name) {
		if self, err := in.real(arguments.Positional[0]); err != nil || isTensor(self) {
			if err != nil {
				return nil, err
			}
			name = "Tensor." + strings.TrimPrefix(name, "torch.")
		}
	}
	if len(arguments.Positional) > 0 && strings.HasPrefix(name, "Tensor.") {
		self, err := in.real(arguments.Positional[0])
		if err != nil {
			return nil, err
		}
		tensor, ok := self.(*Tensor)
		if !ok {
			return nil, unsupported(reasonTensorCall, "%s of %s", name, self.typeName())
		}
		if value, handled, err := in.tensorQuestion(tensor, strings.TrimPrefix(name, "Tensor."), arguments); handled || err != nil {
			return value, err
		}
		if name == "Tensor.new" {
			if arguments, err = in.spreadSize(arguments); err != nil {
				return nil, err
			}
		}
	}
	arguments, err := in.rateAsTensor(name, arguments)
	if err != nil {
		return nil, err
	}
	if !in.capturable(name, arguments) {
		return in.evaluateCall(&Builtin{name: name}, arguments)
	}
	return in.torchCall(name, arguments)
}

// isQuestionFunction tells functions of torch that ask a tensor what its method of the same name tells.
func isQuestionFunction(name string) bool {
	switch strings.TrimPrefix(name, "torch.") {
	case "numel", "is_floating_point", "is_complex", "is_signed", "is_inference", "is_conj", "is_neg", "is_nonzero", "equal", "allclose":
		return strings.HasPrefix(name, "torch.")
	}
	return false
}

// spreadSize gives the sizes in a torch.Size one by one: Tensor.new takes any other sequence for data.
func (in *Interpreter) spreadSize(arguments Arguments) (Arguments, error) {
	if len(arguments.Positional) != 2 {
		return arguments, nil
	}
	size, ok, err := as[*Tuple](in.real(arguments.Positional[1]))
	if ok && size.typeName() == "torch.Size" {
		arguments.Positional = append(arguments.Positional[:1:1], size.items...)
	}
	return arguments, err
}

// capturable tells operations over tensors and functions that make tensors from functions of torch's own state.
func (in *Interpreter) capturable(name string, arguments Arguments) bool {
	if in.holdsTensor(arguments.Positional, nil) {
		return true
	}
	for _, keyword := range arguments.Keywords {
		if in.holdsTensor([]Value{keyword.Value}, nil) {
			return true
		}
	}
	switch strings.TrimPrefix(name, "torch.") {
	case "zeros", "ones", "empty", "full", "arange", "linspace", "logspace", "eye", "rand", "randn", "randint", "randperm", "tensor", "scalar_tensor", "empty_strided",
		"tril_indices", "triu_indices", "hann_window", "hamming_window", "complex", "as_tensor", "range", "normal", "bernoulli", "kaiser_window", "blackman_window", "bartlett_window":
		return true
	}
	return false
}

// holdsTensor says whether values are tensors or hold some; within are the lists around them, which may be among them again.
func (in *Interpreter) holdsTensor(values []Value, within []*List) bool {
	for _, value := range values {
		real, err := in.look(value)
		if err != nil {
			return false
		}
		switch v := real.(type) {
		case *Tensor:
			return true
		case *Tuple:
			if in.holdsTensor(v.items, within) {
				return true
			}
		case *List:
			items, err := v.contents(in)
			if err == nil && !slices.Contains(within, v) && in.holdsTensor(items, append(within, v)) {
				return true
			}
		}
	}
	return false
}

// torchState models functions that read or set torch's state.
func (in *Interpreter) torchState(name string, arguments Arguments) (Value, bool, error) {
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "torch."), "_C.")
	if isAutocastFunction(bare) {
		return in.autocastCall(bare, arguments)
	}
	switch bare {
	case "is_grad_enabled":
		return boolean(in.state.GradMode), true, nil
	case "is_inference_mode_enabled":
		return boolean(in.state.InferenceMode), true, nil
	case "_set_grad_enabled":
		return modelled(in.setGradMode(arguments))
	case "_get_deterministic_algorithms", "_get_deterministic_algorithms_warn_only":
		return modelled(in.deterministicQuestion(shortName(name)))
	case "_get_tracing_state", "_log_api_usage_once":
		return none(), true, nil
	case "_has_torch_function", "_has_torch_function_unary", "_has_torch_function_variadic":
		if in.request.FunctionModes > 0 && !in.inTorch() {
			return nil, true, unsupported(reasonGlobalState, "%s", name)
		}
		found, err := in.overloadedArguments(arguments)
		if err != nil {
			return nil, true, err
		}
		return boolean(in.functionsDisabled == 0 && len(found.classes) > 0), true, nil
	case "_is_torch_function_mode_enabled", "_len_torch_function_stack":
		return modelled(in.functionModeQuestion(shortName(name)))
	case "_is_tracing", "is_anomaly_enabled", "_get_nested_int", "is_vulkan_available", "_is_torch_function_enabled":
		return boolean(in.isTorchFunctionEnabled(name)), true, nil
	case "_len_torch_dispatch_stack":
		return integer(0), true, nil // no entry runs under a mode
	case "get_default_dtype":
		dtype := in.state.DefaultDType
		if dtype == graph.NoDType {
			dtype = graph.Float32
		}
		return dtypeValue(dtype), true, nil
	case "_autograd._push_saved_tensors_default_hooks", "_autograd._pop_saved_tensors_default_hooks", "_enter_dual_level", "_jit_tree_views":
		return nil, true, unsupported(reasonGlobalState, "%s", name)
	}
	return nil, false, nil
}

func (in *Interpreter) isTorchFunctionEnabled(name string) bool {
	return strings.HasSuffix(name, "_is_torch_function_enabled") && in.functionsDisabled == 0
}

// setGradMode changes grad mode for the operations that follow; graphs that run in Python carry the change as a node.
func (in *Interpreter) setGradMode(arguments Arguments) (Value, error) {
	enabled, ok, err := in.singleFlag(arguments)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, unsupported(reasonGlobalState, "_set_grad_enabled")
	}
	if enabled == in.state.GradMode {
		return none(), nil
	}
	in.activity++
	in.state.GradMode = enabled
	if count := len(in.graph.Nodes); count > 0 && in.graph.Nodes[count-1].Target == setGradEnabled {
		in.graph.Nodes = in.graph.Nodes[:count-1] // nothing ran under the mode in between
	} else {
		node := in.graph.Append(setGradEnabled, []graph.Value{enabled}, nil, nil, nil)
		node.Result = nil
	}
	return none(), nil
}

const setGradEnabled = "torch._C._set_grad_enabled"

func changesState(node *graph.Node) bool { return node.ChangesState() }

// tensorQuestion answers methods of a tensor that return plain values.
func (in *Interpreter) tensorQuestion(t *Tensor, name string, arguments Arguments) (Value, bool, error) {
	if err := in.used(t); err != nil {
		return nil, true, err
	}
	rest := arguments.Positional[1:]
	if name == "numpy" && len(rest) == 0 && len(arguments.Keywords) == 0 {
		return modelled(in.arrayHandedOut(t))
	}
	if value, handled, err := in.scalarRead(t, name); handled || err != nil {
		return value, true, err
	}
	switch name {
	case "item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__", "numpy", "data_ptr", "is_set_to", "is_nonzero", "equal", "__array__", "allclose":
		return nil, true, unsupported(reasonTensorValue, "%s", name)
	case "dim", "ndimension":
		return integer(int64(len(t.meta.Sizes))), true, nil
	case "numel", "nelement":
		return in.fromSize(in.shapes().Product(t.meta.Sizes)), true, nil
	case "element_size":
		return integer(int64(t.meta.DType.Bytes())), true, nil
	case "storage_offset":
		if t.id != 0 || t.view {
			return nil, true, unsupported(reasonAttribute, "storage_offset of memory that was there before")
		}
		return in.fromSize(t.meta.Offset), true, nil
	case "size", "stride":
		return in.sizeQuestion(t, name, rest, arguments.Keywords)
	case "is_floating_point":
		return boolean(t.meta.DType.IsFloat()), true, nil
	case "is_complex":
		return boolean(t.meta.DType.IsComplex()), true, nil
	case "is_signed":
		return boolean(t.meta.DType != graph.Uint8 && t.meta.DType != graph.Bool), true, nil
	case "is_contiguous":
		if len(rest) == 0 && len(arguments.Keywords) == 0 {
			return boolean(in.shapes().IsContiguous(&t.meta)), true, nil
		}
		return nil, true, unsupported(reasonAttribute, "is_contiguous with a memory format")
	case "is_inference":
		return boolean(t.meta.Flags&graph.FlagInference != 0), true, nil
	case "get_device":
		if t.meta.Device.Type == "cpu" {
			return integer(-1), true, nil
		}
		return integer(int64(t.meta.Device.Index)), true, nil
	case "has_names", "is_conj", "is_neg", "is_shared", "is_pinned":
		if name != "is_shared" && name != "is_pinned" {
			return boolean(false), true, nil
		}
		return nil, true, unsupported(reasonAttribute, "%s", name)
	case "untyped_storage":
		if t.id != 0 && t.source != nil && !t.array && len(rest) == 0 {
			return &storageValue{t, in.frame.step}, true, nil
		}
		return nil, true, unsupported(reasonAttribute, "Tensor.untyped_storage of a tensor that the graph makes")
	case "t_", "transpose_", "swapaxes_", "swapdims_", "unsqueeze_", "squeeze_", "as_strided_":
		return modelled(in.reshapeInPlace(t, name, arguments))
	case "requires_grad_":
		return t, true, in.requiresGradientCall(t, Arguments{rest, arguments.Keywords})
	case "retain_grad":
		return modelled(in.retainGradient(t, Arguments{rest, arguments.Keywords}))
	case "set_", "resize_", "register_hook", "backward", "share_memory_", "_backward", "resize_as_":
		return nil, true, unsupported(reasonAutograd, "Tensor.%s", name)
	}
	return nil, false, nil
}

// tensorLength is len() of a tensor with dimensions.
func (in *Interpreter) tensorLength(value Value) (Value, bool, error) {
	value, err := in.look(value)
	t, ok := value.(*Tensor)
	if err != nil || !ok || len(t.meta.Sizes) == 0 {
		return nil, false, err
	}
	return in.fromSize(t.meta.Sizes[0]), true, in.used(t)
}

func (in *Interpreter) sizeQuestion(t *Tensor, name string, rest []Value, keywords []KeywordArgument) (Value, bool, error) {
	sizes := t.meta.Sizes
	if name == "stride" {
		sizes = t.meta.Strides
	}
	for _, keyword := range keywords {
		if keyword.Name == "dim" {
			rest = append(rest, keyword.Value)
		}
	}
	if len(rest) == 0 || isNone(rest[0]) {
		tuple := in.sizeTuple(sizes).(*Tuple)
		if name == "stride" {
			tuple.class = nil
		}
		return tuple, true, nil
	}
	dim, err := in.intArgument(rest[0])
	if err != nil {
		return nil, true, err
	}
	if dim < 0 {
		dim += int64(len(sizes))
	}
	if dim < 0 || dim >= int64(len(sizes)) {
		return nil, true, unsupported(reasonException, "a dimension out of range")
	}
	return in.fromSize(sizes[dim]), true, nil
}
