package symbolic

import (
	"slices"

	"fusee/graph"
)

// derivation says from which step on, and for what, the graph has to be differentiated by the compiler: else the capture ends there.
type derivation struct {
	needed bool
	step   int
	what   string
	// asked says that the graph asks for gradients, askedAt at which step it first does.
	asked   bool
	askedAt int
}

// askForGradients notes the first step that asks for gradients: backward may turn out to raise, which only Python does where the program sees it.
func (in *Interpreter) askForGradients() {
	if !in.derivation.asked {
		in.derivation.asked, in.derivation.askedAt = true, in.frame.step
	}
}

// needDerivation notes the first step whose operation only a graph that the compiler differentiates can hold.
func (in *Interpreter) needDerivation(what string) {
	if !in.derivation.needed {
		in.derivation.needed, in.derivation.step, in.derivation.what = true, in.frame.step, what
	}
}

// requiresGradientCall is Tensor.requires_grad_(requires_grad=True).
func (in *Interpreter) requiresGradientCall(t *Tensor, arguments Arguments) error {
	values, ok := bindNamed(arguments, "requires_grad")
	if !ok {
		return unsupported(reasonAutograd, "Tensor.requires_grad_ with these arguments")
	}
	if values[0] == nil {
		return in.requireGradient(t, true)
	}
	return in.setFlag(t, values[0])
}

// requireGradient is Tensor.requires_grad_, which sets the tensor's flag. A tensor that the graph made becomes a leaf of its own.
func (in *Interpreter) requireGradient(t *Tensor, wanted bool) error {
	if wanted == in.requiresGrad(t) {
		return nil
	}
	if t.id != 0 {
		return in.switchLeaf(t, wanted)
	}
	if !in.mayBeLeaf(t) {
		return unsupported(reasonAutograd, "Tensor.requires_grad_ of a tensor that was there before, or that is not plain")
	}
	if wanted {
		in.makeLeaf(t, t.value)
		return nil
	}
	if !in.isLeaf(t) {
		return unsupported(reasonAutograd, "Tensor.requires_grad_(False) of a tensor that is no leaf")
	}
	detached, err := in.detached(t)
	if err == nil {
		t.value, t.meta = detached.value, detached.meta
	}
	return err
}

// flagEffect writes the flag of a leaf that was there before the call, where it is another one then.
type flagEffect struct {
	owner *Tensor
	as    graph.Value // the leaf as the graph is given it
	meta  graph.Meta
}

func (e *flagEffect) apply(cg *generator) error {
	if e.owner.meta.RequiresGrad == e.meta.RequiresGrad {
		return nil
	}
	return cg.storeAttribute(e.owner, "requires_grad", boolean(e.owner.meta.RequiresGrad))
}

// switchLeaf sets the flag of a leaf that was there before the call: in the graph another name of its memory stands for it while the flag is not that of
// then.
func (in *Interpreter) switchLeaf(t *Tensor, wanted bool) error {
	const unusual = graph.FlagNotPlain | graph.FlagConjNeg | graph.FlagInference | graph.FlagGradFn
	if t.class != nil || t.wraps() || t.array || t.source == nil || !t.meta.DType.IsFloat() || t.meta.Flags&unusual != 0 || in.request.Options.AllNodes {
		return unsupported(reasonAutograd, "Tensor.requires_grad_ of a tensor that is no plain leaf")
	}
	now, err := in.tensorValue(t)
	if err != nil {
		return err
	}
	known, noted := findEffect(in, func(e *flagEffect) bool { return e.owner == t })
	if !noted {
		if in.graph.RequiresGrad(now) != t.meta.RequiresGrad {
			return unsupported(reasonAutograd, "Tensor.requires_grad_ of a tensor that was written in place")
		}
		known = &flagEffect{t, now, t.meta}
		in.effects = append(in.effects, known)
	}
	in.activity++
	in.outside++
	switch {
	case wanted == known.meta.RequiresGrad:
		t.value, t.meta = known.as, known.meta
	case wanted:
		in.makeLeaf(t, now)
	default:
		detached, err := in.detached(t)
		if err != nil {
			return err
		}
		t.value, t.meta.RequiresGrad = detached.value, false
	}
	return nil
}

// mayBeLeaf tells tensors that the graph made, and whose flag nothing outside of it sees.
func (in *Interpreter) mayBeLeaf(t *Tensor) bool {
	if t.id != 0 || t.class != nil || t.wraps() || t.value == nil || !t.meta.DType.IsFloat() || in.request.Options.AllNodes {
		return false
	}
	plain := t.meta.Flags&(graph.FlagNotPlain|graph.FlagConjNeg|graph.FlagParameter|graph.FlagInference) == 0
	return plain && !in.state.InferenceMode && (in.isLeaf(t) || !in.graph.RequiresGrad(t.value))
}

// makeLeaf has a tensor be a leaf that requires gradients, on the memory of a value.
func (in *Interpreter) makeLeaf(t *Tensor, memory graph.Value) {
	in.needDerivation("a leaf made in the function")
	node := in.graph.AppendLeaf(memory, in.origin())
	t.value, t.meta = node.Output(0), node.Outputs[0].Meta
	in.activity++
}

// isLeaf tells leaves that the graph made.
func (in *Interpreter) isLeaf(t *Tensor) bool {
	made, ok := t.value.(*graph.Output)
	return ok && made.Node.MakesLeaf()
}

// detached is Tensor.detach.
func (in *Interpreter) detached(t *Tensor) (*Tensor, error) {
	value, err := in.torchCall("Tensor.detach", Arguments{Positional: []Value{t}})
	if err != nil {
		return nil, err
	}
	made, ok := value.(*Tensor)
	if !ok || made == t {
		return nil, unsupported(reasonAutograd, "Tensor.detach")
	}
	return made, nil
}

// factoryOfLeaf is a call that makes a tensor with requires_grad=True: one without it, whose result becomes a leaf.
func (in *Interpreter) factoryOfLeaf(target string, arguments Arguments) (Value, bool, error) {
	k := slices.IndexFunc(arguments.Keywords, func(keyword KeywordArgument) bool { return keyword.Name == "requires_grad" })
	if k < 0 {
		return nil, false, nil
	}
	value, err := in.real(arguments.Keywords[k].Value)
	if err != nil {
		return nil, true, err
	}
	if wanted, known := constantAs[bool](value); !known || !wanted {
		return nil, false, nil
	}
	arguments.Keywords = slices.Delete(slices.Clone(arguments.Keywords), k, k+1)
	made, err := in.torchCall(target, arguments)
	if err != nil {
		return nil, true, err
	}
	t, ok := made.(*Tensor)
	if !ok || !in.mayBeLeaf(t) {
		return nil, true, unsupported(reasonAutograd, "%s with requires_grad", target)
	}
	return t, true, in.requireGradient(t, true)
}

// setFlag models t.requires_grad = value.
func (in *Interpreter) setFlag(t *Tensor, value Value) error {
	value, err := in.real(value)
	if err != nil {
		return err
	}
	wanted, known := constantAs[bool](value)
	if !known {
		return unsupported(reasonMutation, "tensor attribute requires_grad")
	}
	return in.requireGradient(t, wanted)
}

// setData models t.data = value, where nothing outside of the graph sees the memory that the tensor gives up, or where the value is that memory.
func (in *Interpreter) setData(t *Tensor, value Value) error {
	value, err := in.real(value)
	if err != nil {
		return err
	}
	data, ok := value.(*Tensor)
	if !ok || data.class != nil || data.wraps() || data.value == nil || !data.alike(t) || !slices.Equal(data.meta.Strides, t.meta.Strides) {
		return unsupported(reasonMutation, "tensor attribute data")
	}
	if data != t && in.isDataOf(data.value, t) {
		return nil
	}
	if data == t || !in.mayBeLeaf(t) {
		return unsupported(reasonMutation, "tensor attribute data")
	}
	memory, err := in.detached(data)
	if err != nil {
		return err
	}
	if t.meta.RequiresGrad {
		in.makeLeaf(t, memory.value)
		return nil
	}
	t.value, t.meta = memory.value, memory.meta
	return nil
}

// isDataOf says whether a value is what .data of the tensor gives, as it stands after t.data -= x.
func (in *Interpreter) isDataOf(v graph.Value, t *Tensor) bool {
	o, made := v.(*graph.Output)
	if !made || t.value == nil || o.Node.Target != "Tensor.data" && o.Node.Target != "Tensor.detach" {
		return false
	}
	return graph.SameValue(o.Node.Args[0], t.value)
}
