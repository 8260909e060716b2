package symbolic

import (
	"slices"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/internal/slice"
	"fusee/trace"
	"fusee/trace/wire"
)

// Tensors that wrap others, by torch's convention of __tensor_flatten__ (torch/utils/_python_dispatch.py): each operation on one runs the
// __torch_dispatch__ of its class. Such operations are nodes that only Python can run; the host says on fake tensors what they give.

// standInClass is a class whose instances stand for the tensor in an attribute: every operation gives what it gives for that one.
type standInClass struct{ class, attribute string }

var standIns = []standInClass{
	{"torch.distributed._functional_collectives.AsyncCollectiveTensor", "elem"},
}

// wrapper is what capture knows of a tensor that wraps others.
type wrapper struct {
	inner map[string]bytecode.Object // references by attribute, of one that was there before
	fake  trace.ObjectID             // under which the host knows one made during capture
	// hidden tells an existing tensor whose class no guard holds to yet, as it stands for a plain one.
	hidden bool
	// assumed are the arguments of the call that made it: its metadata is right for their present sizes only.
	assumed []graph.Value
}

// describeWrapped guards what an existing tensor wraps: attributes, context, and the inner tensors. Classes that do not say are left to Python.
func (in *Interpreter) describeWrapped(t *Tensor, class bytecode.Object, fields bytecode.Tuple) error {
	pairs, context, ok := wrappedParts(fields)
	if !ok {
		t.meta.Flags &^= graph.FlagWrapper
		t.source.Require(in.reason(), "tensor", class, checkedMeta(t, fields))
		return nil
	}
	t.wrapper = &wrapper{inner: map[string]bytecode.Object{}}
	var names []bytecode.Object
	for _, pair := range pairs {
		name, _ := pair[0].(string)
		names = append(names, name)
		t.wrapper.inner[name] = pair[1]
	}
	if attribute := in.standsFor(t); attribute != "" {
		t.wrapper.hidden = true
		t.source.Require(in.reason(), "resolved", class, attribute, checkedMeta(t, fields))
		return nil
	}
	t.source.Require(in.reason(), "tensor", class, checkedMeta(t, fields))
	t.source.Require(in.reason(), "flattened", class, &bytecode.List{Items: names}, context)
	return in.guardInner(t, pairs)
}

func (in *Interpreter) guardInner(t *Tensor, pairs []bytecode.Tuple) error {
	outer := in.wrapping
	in.wrapping = t
	defer func() { in.wrapping = outer }()
	for _, pair := range pairs {
		reference, err := trace.ParseReference(pair[1])
		if err != nil {
			return err
		}
		if _, err := in.realize(reference, t.source.Child("attr", pair[0])); err != nil {
			return err
		}
	}
	return nil
}

// wrappedParts reads the last item of a wrapper's description.
func wrappedParts(fields bytecode.Tuple) (pairs []bytecode.Tuple, context bytecode.Object, ok bool) {
	if len(fields) < 12 {
		return nil, nil, false
	}
	parts, ok := fields[11].(bytecode.Tuple)
	if !ok || len(parts) != 2 {
		return nil, nil, false
	}
	for _, item := range trace.Items(parts[0]) {
		pair, ok := item.(bytecode.Tuple)
		if !ok || len(pair) != 2 {
			return nil, nil, false
		}
		pairs = append(pairs, pair)
	}
	reference, err := trace.ParseReference(parts[1])
	if err != nil {
		return nil, nil, false
	}
	if constant, isConstant := reference.(trace.Constant); isConstant {
		return pairs, constant.Value, true
	}
	return pairs, objectWire(reference.(trace.ObjectID)), true
}

// standsFor is the attribute of the plain tensor that an argument stands for. Where sizes may change it is none: an entry for both kinds would
// hold the plain one to the sizes of this call.
func (in *Interpreter) standsFor(t *Tensor) string {
	if in.request.Options.Dynamic.All || !t.source.IsArgument() || slices.ContainsFunc(t.meta.Sizes, func(s graph.Size) bool { return !s.IsStatic() }) {
		return ""
	}
	row, _ := slice.Find(standIns, func(row standInClass) bool { return row.class == t.class.name })
	return row.attribute
}

// marksWrapper tells metadata of a tensor that wraps others.
func marksWrapper(meta *graph.Meta) bool { return meta.Flags&graph.FlagWrapper != 0 }

// wraps tells tensors whose class has a __torch_dispatch__ that capture may look through.
func (t *Tensor) wraps() bool { return t.wrapper != nil }

// observeClass makes the class of a tensor an assumption of the capture, where it was none yet.
func (in *Interpreter) observeClass(t *Tensor) {
	if t.wrapper == nil || !t.wrapper.hidden {
		return
	}
	t.wrapper.hidden = false
	t.source.Require(in.reason(), "type", objectWire(t.class.id))
}

// settle pins the sizes that the metadata of a tensor made by __torch_dispatch__ was found out for, once something depends on it.
func (in *Interpreter) settle(t *Tensor) {
	if t.wrapper == nil || t.wrapper.assumed == nil {
		return
	}
	assumed := t.wrapper.assumed
	t.wrapper.assumed = nil
	for _, value := range assumed {
		in.settleValue(value)
	}
}

func (in *Interpreter) settleValue(value graph.Value) {
	for _, tensor := range graph.Tensors(value) {
		if made := in.tensorOf(tensor); made != nil {
			in.settle(made)
		}
	}
	in.specialiseValue(value)
	in.specialiseOffsets(value)
}

// wrappers are the tensors among the arguments of a call that wrap others.
func (in *Interpreter) wrappers(args []graph.Value, keywords []graph.Keyword) []*Tensor {
	var found []*Tensor
	values := slices.Clone(args)
	for _, keyword := range keywords {
		values = append(values, keyword.Value)
	}
	for _, value := range graph.Tensors(values...) {
		if meta, ok := graph.MetaOf(value); !ok || !marksWrapper(meta) {
			continue
		}
		if tensor := in.tensorOf(value); tensor != nil && tensor.wraps() {
			found = append(found, tensor)
		}
	}
	return found
}

// wrapperCall appends a call that a __torch_dispatch__ takes. It may read anything, so nothing may be left to write before it.
func (in *Interpreter) wrapperCall(call *hostedCall, wrapped []*Tensor) (Value, error) {
	if len(in.effects) > 0 {
		return nil, unsupported(reasonTensorSub, "%s, whose __torch_dispatch__ might see what the program wrote before", wrapped[0].typeName())
	}
	outcome, err := in.askTensorCall(call)
	if err != nil {
		return nil, err
	}
	if outcome.Structure == nil {
		return in.outcomeValue(outcome)
	}
	in.activity++
	first := len(in.tensors)
	result, err := in.appendAnswered(call, outcome)
	if err != nil {
		return nil, err
	}
	in.assumeSizes(call, wrapped, in.tensors[first:])
	return result, in.checkAnswer(result)
}

// assumeSizes ties new tensors to the sizes of the arguments: at once where other capture code sees their metadata, else once it is looked at.
func (in *Interpreter) assumeSizes(call *hostedCall, wrapped, made []*Tensor) {
	values := slices.Clone(call.args)
	for _, keyword := range call.keywords {
		values = append(values, keyword.Value)
	}
	plain := len(made) == 0
	for _, tensor := range made {
		if !tensor.wraps() {
			plain = true
			continue
		}
		tensor.wrapper.assumed = values
		for _, argument := range wrapped {
			in.observeClass(argument) // for a plain tensor the result would be one too
		}
	}
	if !plain {
		return
	}
	for _, value := range values {
		in.settleValue(value)
	}
}

// checkAnswer refuses results that are objects of the fake tensors' own.
func (in *Interpreter) checkAnswer(result Value) error {
	switch v := result.(type) {
	case *Tensor, *Constant, *LibraryValue, *Class, *Function:
		return nil
	case *Tuple:
		for _, item := range v.items {
			if err := in.checkAnswer(item); err != nil {
				return err
			}
		}
		return nil
	case *List:
		for _, item := range v.items {
			if err := in.checkAnswer(item); err != nil {
				return err
			}
		}
		return nil
	case *Lazy:
		real, err := in.look(v)
		if err != nil {
			return err
		}
		return in.checkAnswer(real)
	}
	return unsupported(reasonTensorSub, "a result of type %s", result.typeName())
}

// runsDispatch tells nodes that run a __torch_dispatch__ of the program, which may do anything beside what it returns.
func runsDispatch(node *graph.Node) bool {
	keywords := slice.Map(node.Keywords, func(keyword graph.Keyword) graph.Value { return keyword.Value })
	return slices.ContainsFunc(graph.Tensors(slices.Concat(node.Args, keywords)...), func(value graph.Value) bool {
		meta, _ := graph.MetaOf(value)
		return marksWrapper(meta)
	})
}

// readWrapper reads a result that wraps other tensors, which the host keeps under an id.
func (in *Interpreter) readWrapper(tensor *Tensor, fields bytecode.Tuple) error {
	if len(fields) < 5 {
		return unsupported(reasonTensorSub, "a result that wraps other tensors")
	}
	fake, _ := fields[3].(int64)
	kind, isClass := fields[4].(int64)
	if !isClass || fake == 0 {
		return unsupported(reasonTensorSub, "a result that wraps other tensors")
	}
	class, err := in.classByID(trace.ObjectID(kind))
	if err != nil {
		return err
	}
	tensor.class, tensor.wrapper = class, &wrapper{fake: trace.ObjectID(fake)}
	return nil
}

// innerAttribute reads an attribute that a wrapper keeps in itself: an inner tensor of one that was there before, by its place; of one made
// during capture what the host's fake has under the name. done is false for attributes that are found as those of other tensors are.
func (in *Interpreter) innerAttribute(t *Tensor, name string) (value Value, done bool, err error) {
	in.observeClass(t)
	if t.wrapper.fake == 0 {
		reference, isInner := t.wrapper.inner[name]
		if !isInner {
			return nil, false, nil
		}
		return modelled(in.child(reference, t.source, "attr", name))
	}
	if found, _, err := in.classLookup(t.class, name); err != nil || found != nil && !in.isMember(found) {
		return nil, false, err
	}
	return modelled(in.torchCall("builtins.getattr", Arguments{Positional: []Value{t, text(name)}}))
}

// isMember tells the descriptors of __slots__.
func (in *Interpreter) isMember(found Value) bool {
	real, err := in.look(found)
	builtin, ok := real.(*Builtin)
	return err == nil && ok && builtin.flavor == "member"
}

// wireTensor writes a tensor argument for the host; wrappers come with the id of the object that the host knows them by.
func (in *Interpreter) wireTensor(value graph.Value) bytecode.Object {
	meta, _ := graph.MetaOf(value)
	write := wire.WriteMeta
	if in.wiresShapes {
		write = wire.WriteShapedMeta
	}
	fields := bytecode.Tuple{"T", int64(in.tensorNumber(value)), write(meta)}
	if !marksWrapper(meta) {
		return fields
	}
	tensor := in.tensorOf(value)
	if tensor == nil || !tensor.wraps() {
		return fields
	}
	if tensor.wrapper.fake != 0 {
		return append(fields, int64(tensor.wrapper.fake))
	}
	return append(fields, int64(tensor.id))
}

// likeOuter gives an inner tensor of the shape of the one around it the same symbols, as it grows and shrinks with that.
func (in *Interpreter) likeOuter(t *Tensor) {
	outer := t.outer
	if outer == nil || len(outer.meta.Sizes) != len(t.meta.Sizes) {
		return
	}
	for d, size := range outer.meta.Sizes {
		if size.Hint != t.meta.Sizes[d].Hint {
			return
		}
	}
	for d, size := range outer.meta.Sizes {
		if size.IsStatic() {
			continue
		}
		t.meta.Sizes[d] = size
		in.program.Compare(in.reason(), "==", sizeNumber(t, d), sizeNumber(outer, d))
	}
}

func sizeNumber(t *Tensor, dimension int) *guards.Number {
	return &guards.Number{Operation: "size", Source: t.source, Dimension: dimension}
}
