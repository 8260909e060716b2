package symbolic

import (
	"slices"

	"fusee/graph"
	"fusee/internal/slice"
)

// gradientRequest is a call that asks autograd for gradients within the capture.
type gradientRequest struct {
	outputs []*Tensor
	seeds   []Value // the gradient of each output, None for 1
	inputs  []*Tensor
	given   bool // the program named the inputs
	retain  bool
	create  bool // the gradients are differentiated again
	cuts    []*cut
	hooked  map[*Tensor]*leafHooks // the leaves with hooks
}

// freedHistory is what backward has gone through, and the step at which it did.
type freedHistory struct {
	history *graph.History
	step    int
}

// backwardCall is Tensor.backward and torch.autograd.backward: gradients are added to those of the leaves.
func (in *Interpreter) backwardCall(arguments Arguments, method bool) (Value, error) {
	names := []string{"tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"}
	if method {
		names = []string{"self", "gradient", "retain_graph", "create_graph", "inputs"}
	}
	values, err := in.gradientArguments(arguments, names...)
	if err != nil {
		return nil, err
	}
	if !method {
		if !isNone(values[4]) {
			return nil, unsupported(reasonAutograd, "grad_variables")
		}
		values = slices.Delete(values, 4, 5)
	}
	request, err := in.gradientRequest(values[0], values[1], values[4], values[2:4])
	if err != nil {
		return nil, err
	}
	if !request.given {
		if err := in.findLeaves(request); err != nil {
			return nil, err
		}
	}
	if err := in.checkLeaves(request); err != nil {
		return nil, err
	}
	if err := in.callHooks(request); err != nil {
		return nil, err
	}
	if err := in.findRetained(request); err != nil {
		return nil, err
	}
	order, err := in.orderOfLeaves(request)
	if err != nil {
		return nil, err
	}
	gradients, err := in.appendGradients(request)
	if err != nil {
		return nil, err
	}
	return none(), in.accumulate(request, order, gradients)
}

// autogradFunction models the functions of torch.autograd that ask for gradients.
func (in *Interpreter) autogradFunction(f *Function, arguments Arguments) (Value, bool, error) {
	switch f.qualname {
	case "backward":
		return modelled(in.backwardCall(arguments, false))
	case "grad":
		return modelled(in.gradCall(arguments))
	}
	return nil, true, unsupported(reasonAutograd, "%s", f.qualname)
}

// gradCall is torch.autograd.grad.
func (in *Interpreter) gradCall(arguments Arguments) (Value, error) {
	values, err := in.gradientArguments(arguments, "outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs", "allow_unused",
		"is_grads_batched", "materialize_grads")
	if err != nil {
		return nil, err
	}
	for _, flag := range values[7:] {
		if set, known := constantAs[bool](flag); !isNone(flag) && (!known || set) {
			return nil, unsupported(reasonAutograd, "batched or materialised gradients")
		}
	}
	request, err := in.gradientRequest(values[0], values[2], values[1], values[3:5])
	if err != nil {
		return nil, err
	}
	if len(in.retained)+len(in.hooks) > 0 {
		return nil, unsupported(reasonAutograd, "torch.autograd.grad where tensors on the way may keep their gradients, or have hooks")
	}
	gradients, err := in.appendGradients(request)
	if err != nil {
		return nil, err
	}
	return &Tuple{items: gradients}, nil
}

// gradientArguments binds the arguments of a function of torch.autograd; None stands for those that are not given.
func (in *Interpreter) gradientArguments(arguments Arguments, names ...string) ([]Value, error) {
	values, ok := bindNamed(arguments, names...)
	if !ok || values[0] == nil {
		return nil, unsupported(reasonAutograd, "arguments that do not fit")
	}
	return in.realAll(slice.Map(values, orNone))
}

// gradientRequest reads the arguments that all functions have; flags are retain_graph and create_graph.
func (in *Interpreter) gradientRequest(outputs, seeds, inputs Value, flags []Value) (*gradientRequest, error) {
	if in.state.InferenceMode || in.functionsDisabled == 0 && in.request.FunctionModes > 0 {
		return nil, unsupported(reasonAutograd, "backward under inference mode or a function mode")
	}
	retain, retainKnown := constantAs[bool](flags[0])
	create, createKnown := constantAs[bool](flags[1])
	forgets := create && retainKnown && !retain // the history of what has one
	if forgets || create && in.request.Options.AllNodes || !createKnown && !isNone(flags[1]) || !retainKnown && !isNone(flags[0]) {
		return nil, unsupported(reasonAutograd, "gradients that are differentiated again")
	}
	request := &gradientRequest{given: !isNone(inputs), retain: retain || create, create: create, hooked: map[*Tensor]*leafHooks{}}
	var err error
	if request.outputs, err = in.tensorsOf(outputs); err != nil {
		return nil, err
	}
	if request.given {
		if request.inputs, err = in.tensorsOf(inputs); err != nil {
			return nil, err
		}
	}
	if request.seeds, err = in.seedsOf(seeds, len(request.outputs)); err != nil {
		return nil, err
	}
	if request.given && slices.ContainsFunc(in.graph.Nodes, func(n *graph.Node) bool { return n.Checkpoint != nil && n.Checkpoint.Outermost().Reentrant }) {
		return nil, unsupported(reasonCheckpoint, "gradients of chosen inputs, which a reentrant checkpoint does not give")
	}
	return request, in.checkOutputs(request)
}

// tensorsOf reads a plain tensor or a list of them.
func (in *Interpreter) tensorsOf(value Value) ([]*Tensor, error) {
	items := []Value{value}
	if _, single := value.(*Tensor); !single {
		var err error
		if items, err = in.listOf(value); err != nil {
			return nil, err
		}
		if items, err = in.realAll(items); err != nil {
			return nil, err
		}
	}
	tensors := make([]*Tensor, len(items))
	for k, item := range items {
		t, ok := item.(*Tensor)
		if !ok || t.class != nil || t.meta.Flags&(graph.FlagNotPlain|graph.FlagConjNeg|graph.FlagHooked) != 0 || !t.meta.DType.IsFloat() {
			return nil, unsupported(reasonAutograd, "a tensor with hooks or attributes, or one that is not plain")
		}
		tensors[k] = t
	}
	if len(tensors) == 0 {
		return nil, unsupported(reasonAutograd, "gradients of nothing")
	}
	return tensors, nil
}

// seedsOf reads the gradients of the outputs, which are None, one tensor, or a list.
func (in *Interpreter) seedsOf(value Value, count int) ([]Value, error) {
	if isNone(value) {
		return slices.Repeat([]Value{none()}, count), nil
	}
	items := []Value{value}
	if _, single := value.(*Tensor); !single {
		var err error
		if items, err = in.listOf(value); err != nil {
			return nil, err
		}
	}
	if len(items) != count {
		return nil, unsupported(reasonAutograd, "another number of gradients than of outputs")
	}
	return in.realAll(items)
}

// checkOutputs sees that the outputs are made by the graph, and that their gradients fit.
func (in *Interpreter) checkOutputs(request *gradientRequest) error {
	for k, t := range request.outputs {
		if _, made := t.value.(*graph.Output); !made || !in.graph.RequiresGrad(t.value) {
			return unsupported(reasonAutograd, "gradients of a tensor that the graph does not make, or that requires none")
		}
		if isNone(request.seeds[k]) {
			if elements := in.shapes().Product(t.meta.Sizes); !elements.IsStatic() || elements.Hint != 1 {
				return unsupported(reasonAutograd, "no gradient is given of a tensor of several elements")
			}
			continue
		}
		if !t.fitsGradient(request.seeds[k]) {
			return unsupported(reasonAutograd, "a gradient that does not fit its tensor")
		}
	}
	return nil
}

// historyOf follows the outputs of a request back through the graph. What backward went through before has no history any more: then the call that
// did is left to Python, which knows what is gone.
func (in *Interpreter) historyOf(request *gradientRequest) (*graph.History, error) {
	values := slice.Map(request.outputs, func(t *Tensor) graph.Value { return t.value })
	history := in.graph.HistoryOf(values, in.graph.Nodes)
	if history.Hidden != nil {
		return nil, unsupported(reasonAutograd, "gradients flow to what %s made", history.Hidden.Target)
	}
	for n := range history.Nodes {
		if in.autocast.enabled() && in.castsBackward(n) {
			return nil, unsupported(reasonAutograd, "backward under autocast, of operations that were computed in another type")
		}
	}
	for _, freed := range in.freed {
		if history.Meets(freed.history) {
			return nil, &restart{step: freed.step, reason: &Unsupported{reasonAutograd, "gradients flow back through the same operations again"}}
		}
	}
	return history, nil
}

// castsBackward says whether autocast, as it is now, may cast what the gradient of a node is computed from. Those of products whose results have the
// type that it casts to already are products of that type.
func (in *Interpreter) castsBackward(n *graph.Node) bool {
	operations := n.Expansion
	if len(operations) == 0 {
		operations = []*graph.Node{n}
	}
	return n.Function != nil || slices.ContainsFunc(operations, func(one *graph.Node) bool {
		op, known := one.Operator()
		return !known || op.Kind == graph.KindMatrix && slices.ContainsFunc(one.Outputs, in.isCast)
	})
}

// isCast says whether autocast casts tensors of a result's type.
func (in *Interpreter) isCast(result graph.OutputInfo) bool {
	device := in.autocast.device(result.Meta.Device.Type)
	return device != nil && device.Enabled && result.Meta.DType != graph.Float64 && result.Meta.DType.String() != device.DType
}

// findLeaves makes the leaves that the outputs come from the inputs of a request.
func (in *Interpreter) findLeaves(request *gradientRequest) error {
	history, err := in.historyOf(request)
	if err != nil {
		return err
	}
	for _, input := range history.Inputs {
		t := in.tensorOf(input)
		if t == nil || input.Meta.Flags&graph.FlagGradFn != 0 {
			return unsupported(reasonAutograd, "gradients flow to operations before the function")
		}
		request.inputs = append(request.inputs, t)
	}
	for _, n := range history.Leaves {
		t := in.tensorOf(n.Output(0))
		if t == nil {
			return unsupported(reasonAutograd, "gradients flow to a leaf that is another one since")
		}
		request.inputs = append(request.inputs, t)
	}
	if len(request.inputs) == 0 {
		return unsupported(reasonAutograd, "gradients flow to no argument")
	}
	return nil
}

// checkLeaves sees that nothing but the gradients of leaves changes, and finds their hooks.
func (in *Interpreter) checkLeaves(request *gradientRequest) error {
	for _, t := range request.inputs {
		if t.id == 0 && in.isLeaf(t) {
			continue
		}
		input, given := t.value.(*graph.Input)
		if !in.isLeaf(t) && (!given || t.id == 0) || given && input.Meta.Flags&(graph.FlagGradFn|graph.FlagNotPlain) != 0 || t.meta.Flags&graph.FlagConjNeg != 0 {
			return unsupported(reasonAutograd, "gradients flow to a tensor that is no leaf")
		}
		hooks, err := in.hooksOfLeaf(t)
		if err != nil {
			return err
		}
		if hooks != nil {
			request.hooked[t] = hooks
		}
	}
	return nil
}

// appendGradients adds the operation that asks for the gradients, and gives them.
func (in *Interpreter) appendGradients(request *gradientRequest) ([]Value, error) {
	history, err := in.historyOf(request)
	if err != nil {
		return nil, err
	}
	if flowsBefore(history, request.inputs) {
		return nil, unsupported(reasonAutograd, "gradients flow to operations before the function")
	}
	outputs, seeds, inputs := graph.List{}, graph.List{}, graph.List{}
	var infos []graph.OutputInfo
	for k, t := range request.outputs {
		seed, err := in.graphValue(request.seeds[k])
		if err != nil {
			return nil, err
		}
		outputs.Items, seeds.Items = append(outputs.Items, t.value), append(seeds.Items, seed)
	}
	for _, t := range request.inputs {
		if t.value == nil || !history.Wants(t.value) {
			return nil, unsupported(reasonAutograd, "no gradient flows to one of the inputs")
		}
		inputs.Items = append(inputs.Items, t.value)
		infos = append(infos, graph.OutputInfo{Meta: request.metaOf(in.shapes().GradientMeta(&t.meta))})
	}
	node := in.graph.Append(graph.GradientsTarget, request.arguments(outputs, inputs, seeds), nil, infos, nil)
	node.Unrecorded, node.Origin, node.Result = !request.create, in.origin(), allOutputs(node)
	in.activity++
	in.askForGradients()
	if request.create {
		in.needDerivation("gradients that are differentiated again")
	}
	if !request.retain {
		in.freed = append(in.freed, freedHistory{history, in.frame.step})
	}
	return in.realItems(node)
}

// flowsBefore says whether a tensor that operations before the function made may come from one whose gradient is asked for: part of that gradient
// flows through those operations then.
func flowsBefore(history *graph.History, asked []*Tensor) bool {
	for _, made := range history.Inputs {
		from := func(t *Tensor) bool {
			input, given := t.value.(*graph.Input)
			return given && input != made
		}
		if made.Meta.Flags&graph.FlagGradFn != 0 && slices.ContainsFunc(asked, from) {
			return true
		}
	}
	return false
}

func (r *gradientRequest) arguments(outputs, inputs, seeds graph.List) []graph.Value {
	arguments := []graph.Value{outputs, inputs, seeds, r.retain}
	if r.create || len(r.cuts) > 0 {
		arguments = append(arguments, r.create)
	}
	if len(r.cuts) == 0 {
		return arguments
	}
	tensors, gradients := graph.List{}, graph.List{}
	for _, one := range r.cuts {
		tensors.Items, gradients.Items = append(tensors.Items, one.tensor.value), append(gradients.Items, one.gradient.value)
	}
	return append(arguments, tensors, gradients)
}

// metaOf is the metadata of a gradient, which has a history where it is differentiated again.
func (r *gradientRequest) metaOf(m graph.Meta) graph.Meta {
	if r.create {
		m.RequiresGrad = true
		m.Flags = m.Flags&^graph.FlagLeaf | graph.FlagGradFn
	}
	return m
}

// allOutputs is the tuple of a node's outputs, also of a single one.
func allOutputs(node *graph.Node) graph.Value {
	list := graph.List{Tuple: true}
	for k := range node.Outputs {
		list.Items = append(list.Items, node.Output(k))
	}
	return list
}

func (in *Interpreter) realItems(node *graph.Node) ([]Value, error) {
	value, err := in.fromGraph(node.Result)
	if err != nil {
		return nil, err
	}
	return value.(*Tuple).items, nil
}

// accumulateGradient does what autograd does at a leaf (torch/csrc/autograd/functions/accumulate_grad.h): the gradient becomes that of the tensor, or is
// added to the one there is, in place.
func (in *Interpreter) accumulateGradient(leaf, gradient *Tensor) error {
	known, err := in.tensorGradient(leaf)
	if err != nil {
		return err
	}
	if known, err = in.real(known); err != nil {
		return err
	}
	if isNone(known) {
		return in.setGradient(leaf, gradient)
	}
	sum, ok := known.(*Tensor)
	if !ok || !leaf.fitsGradient(sum) || sum.meta.RequiresGrad && !in.requiresGrad(gradient) {
		return unsupported(reasonAutograd, "a gradient that is not added to as it is")
	}
	if in.requiresGrad(gradient) {
		if !in.state.GradMode {
			return unsupported(reasonAutograd, "a gradient that is differentiated again, while gradients are not recorded")
		}
		value, err := in.torchCall("Tensor.add", Arguments{Positional: []Value{sum, gradient}})
		if err != nil {
			return err
		}
		return in.setGradient(leaf, value)
	}
	recorded := in.state.GradMode
	in.state.GradMode = false
	defer func() { in.state.GradMode = recorded }()
	_, err = in.torchCall("Tensor.add_", Arguments{Positional: []Value{sum, gradient}})
	return err
}

// outsideAttribute is an attribute of a tensor that was there before the call, guarded.
func (in *Interpreter) outsideAttribute(t *Tensor, name string) (Value, error) {
	value, err := in.lazyAttribute(t, name)
	if err != nil {
		return nil, err
	}
	return in.real(value)
}
