package symbolic

import (
	"slices"
	"strings"

	"fusee/graph"
)

// gradientEffect writes the .grad of a tensor that was there before the call.
type gradientEffect struct{ owner *Tensor }

func (e *gradientEffect) apply(cg *generator) error {
	return cg.storeAttribute(e.owner, "grad", e.owner.gradient)
}

// tensorGradient is .grad as the capture wrote it, else as the live tensor has it.
func (in *Interpreter) tensorGradient(t *Tensor) (Value, error) {
	if t.gradient != nil {
		return t.gradient, nil
	}
	if given := t.attributes["grad"]; given != nil {
		return given, nil // of a tensor made during capture
	}
	if t.id == 0 && in.isLeaf(t) || in.retains(t) {
		return none(), nil
	}
	if t.id == 0 {
		return nil, unsupported(reasonAttribute, "Tensor.grad")
	}
	return in.lazyAttribute(t, "grad")
}

// lazyAttribute is an attribute of a tensor that was there before the call, guarded once something looks at it.
func (in *Interpreter) lazyAttribute(t *Tensor, name string) (Value, error) {
	outcome, err := in.session.GetAttribute(t.id, name)
	if err != nil {
		return nil, err
	}
	if outcome.Value == nil {
		return in.outcomeValue(outcome)
	}
	return &Lazy{reference: outcome.Value, source: t.source.Child("attr", name)}, nil
}

// setGradient models t.grad = value of a leaf, where value is None or a plain tensor that fits; the setter's errors are left to Python.
func (in *Interpreter) setGradient(t *Tensor, value Value) error {
	value, err := in.real(value)
	if err != nil {
		return err
	}
	made := t.id == 0 && in.isLeaf(t) || in.retains(t)
	if t.id == 0 && !made || t.class != nil || t.meta.Flags&(graph.FlagNotPlain|graph.FlagConjNeg) != 0 || !isNone(value) && !t.fitsGradient(value) {
		return unsupported(reasonMutation, "tensor attribute grad")
	}
	in.activity++
	if made {
		t.gradient = value // which is seen in the capture alone, as the leaf is
		return nil
	}
	in.outside++
	if t.gradient == nil {
		in.effects = append(in.effects, &gradientEffect{t})
	}
	t.gradient = value
	return nil
}

// alike tells tensors of one dtype, device and shape.
func (v *Tensor) alike(other *Tensor) bool {
	return v.meta.DType == other.meta.DType && v.meta.Device == other.meta.Device && slices.Equal(v.meta.Sizes, other.meta.Sizes)
}

// fitsGradient tells tensors that the setter of .grad takes without a look at their contents.
func (v *Tensor) fitsGradient(value Value) bool {
	gradient, ok := value.(*Tensor)
	return ok && gradient != v && gradient.class == nil && gradient.meta.Flags&(graph.FlagNotPlain|graph.FlagConjNeg) == 0 && gradient.alike(v)
}

// groupTensors is torch's sorting of lists of tensors by the device and type of the first list's: one group has them all. The order of several
// groups is that of a hash table in C++, and is left to Python.
func (in *Interpreter) groupTensors(arguments Arguments) (Value, bool, error) {
	argument, ok := in.single(arguments)
	if !ok {
		return nil, false, nil
	}
	lists, err := in.listOf(argument)
	if err != nil || len(lists) == 0 {
		return nil, err != nil, err
	}
	var first *Tensor
	grouped := make([]Value, len(lists))
	for k, list := range lists {
		items, err := in.listOf(list)
		if err != nil {
			return nil, true, err
		}
		for _, item := range items {
			tensor, err := in.real(item)
			if err != nil {
				return nil, true, err
			}
			t, ok := tensor.(*Tensor)
			if first == nil {
				first = t
			}
			if !ok || t.meta.Device != first.meta.Device || t.meta.DType != first.meta.DType {
				return nil, false, nil
			}
		}
		grouped[k] = newList(slices.Clone(items))
	}
	if first == nil {
		return nil, false, nil
	}
	key := &Tuple{items: []Value{&LibraryValue{kind: "device", text: first.meta.Device.String()}, dtypeValue(first.meta.DType)}}
	groups := newDict()
	err = groups.setItem(in, key, &Tuple{items: []Value{newList(grouped), newList([]Value{})}})
	return groups, true, err
}

// optimizerNumber is what optimizers read of a tensor that counts their steps, for the corrections of Adam and its like. Uncompiled they read a Python
// float: the tensor in its place is as precise.
func (in *Interpreter) optimizerNumber(arguments Arguments) (Value, bool, error) {
	argument, ok := in.single(arguments)
	if !ok {
		return nil, false, nil
	}
	value, err := in.look(argument)
	if t, isTensor := value.(*Tensor); isTensor && t.meta.DType.IsFloat() {
		return modelled(in.torchCall("Tensor.double", Arguments{Positional: []Value{t}}))
	}
	if number, isNumber := value.(*Number); isNumber && !number.isInt() {
		return number, true, nil
	}
	return nil, err != nil, err
}

// rateAsTensor gives a learning rate that changes to the fused optimizers as a tensor, which they take too: as a number it would be part of the graph.
func (in *Interpreter) rateAsTensor(name string, arguments Arguments) (Arguments, error) {
	if !strings.HasPrefix(name, "torch._fused_") {
		return arguments, nil
	}
	k := slices.IndexFunc(arguments.Keywords, func(keyword KeywordArgument) bool { return keyword.Name == "lr" })
	if k < 0 || len(arguments.Positional) == 0 {
		return arguments, nil
	}
	rate, ok, err := as[*Number](in.look(arguments.Keywords[k].Value))
	if !ok || err != nil || rate.isInt() {
		return arguments, err
	}
	parameters, err := in.listOf(arguments.Positional[0])
	if err != nil || len(parameters) == 0 {
		return arguments, err
	}
	like, ok, err := as[*Tensor](in.real(parameters[0]))
	if !ok || err != nil {
		return arguments, err
	}
	dtype := graph.Float64
	if like.meta.Device.Type != "cpu" {
		dtype = graph.Float32 // their kernels read no other
	}
	made, err := in.torchCall("torch.full", Arguments{[]Value{&Tuple{}, rate}, []KeywordArgument{{"dtype", dtypeValue(dtype)},
		{"device", &LibraryValue{kind: "device", text: like.meta.Device.String()}}}})
	if err == nil {
		arguments.Keywords = slices.Clone(arguments.Keywords)
		arguments.Keywords[k].Value = made
	}
	return arguments, err
}

// changesUnseenLeaf says whether a call may change a leaf in place where gradients are on, but were off when the function was called: the host
// asks its fake tensors in the mode of then, in which they refuse nothing.
func (in *Interpreter) changesUnseenLeaf(call *hostedCall) bool {
	if !in.state.GradMode || in.initial.GradMode || !strings.HasSuffix(call.target, "_") {
		return false
	}
	return slices.ContainsFunc(call.args, func(arg graph.Value) bool {
		meta, ok := graph.MetaOf(arg)
		return ok && meta.RequiresGrad
	})
}
