package symbolic

import (
	"errors"
	"slices"
	"strings"

	"fusee/graph"
	"fusee/internal/slice"
)

// applyName is torch.autograd.Function.apply where that is written in C.
const applyName = "torch._C._FunctionBase.apply"

// firstClass is the class that a class method is called on.
func firstClass(arguments Arguments) (*Class, bool) {
	if len(arguments.Positional) == 0 {
		return nil, false
	}
	class, ok := arguments.Positional[0].(*Class)
	return class, ok
}

// functionContext is the ctx of a torch.autograd.Function: what forward leaves there for backward.
type functionContext struct {
	attributes  map[string]Value
	saved       []Value
	constant    map[Value]bool // results that were marked as not differentiable
	dirty       []Value        // arguments that were marked as changed in place
	materialize bool
}

func (c *functionContext) typeName() string { return "torch.autograd.function.FunctionCtx" }

func (c *functionContext) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "saved_tensors":
		return &Tuple{items: slices.Clone(c.saved)}, nil
	case "save_for_backward", "mark_non_differentiable", "mark_dirty", "set_materialize_grads":
		return &contextMethod{c, name}, nil
	}
	if value := c.attributes[name]; value != nil {
		return value, nil
	}
	return nil, unsupported(reasonAutograd, "ctx.%s of a torch.autograd.Function", name)
}

func (c *functionContext) setAttribute(in *Interpreter, name string, value Value) error {
	if _, known := c.attributes[name]; value == nil || name == "saved_tensors" || name == "needs_input_grad" && known {
		return unsupported(reasonAutograd, "ctx.%s of a torch.autograd.Function is changed", name)
	}
	c.attributes[name] = value
	return nil
}

// contextMethod is a method of the ctx.
type contextMethod struct {
	context *functionContext
	name    string
}

func (m *contextMethod) typeName() string { return "builtin_function_or_method" }

func (m *contextMethod) call(in *Interpreter, arguments Arguments) (Value, error) {
	values, err := in.realAll(arguments.Positional)
	if err != nil || len(arguments.Keywords) > 0 {
		return nil, errors.Join(err, unsupported(reasonAutograd, "ctx.%s with names", m.name))
	}
	switch m.name {
	case "save_for_backward":
		for _, value := range values {
			if _, isTensor := value.(*Tensor); !isTensor && !isNone(value) {
				return nil, unsupported(reasonAutograd, "ctx.save_for_backward of something that is no tensor")
			}
		}
		m.context.saved = values
	case "mark_non_differentiable":
		for _, value := range values {
			m.context.constant[value] = true
		}
	case "mark_dirty":
		m.context.dirty = values
	default:
		truth, known := truthOf(values)
		if !known || len(values) != 1 {
			return nil, unsupported(reasonAutograd, "ctx.%s", m.name)
		}
		m.context.materialize = truth
	}
	return none(), nil
}

// functionCall is a call of torch.autograd.Function.apply under way.
type functionCall struct {
	class     *Class
	arguments []Value
	given     []Value // what forward is called with: the arguments, or copies of those that it changes in place
	context   *functionContext
	value     Value // what forward returned
	results   []*Tensor
}

// applyFunction runs a torch.autograd.Function: its forward alone where nothing is recorded, else as one operation of the graph that knows what its
// forward and backward do.
func (in *Interpreter) applyFunction(class *Class, arguments Arguments) (Value, error) {
	values, err := in.realAll(arguments.Positional)
	if err != nil {
		return nil, err
	}
	if len(arguments.Keywords) > 0 || class.id == 0 {
		return nil, unsupported(reasonAutograd, "%s.apply with names, or of a class that the function defines", class.name)
	}
	call := &functionCall{class: class, arguments: values, given: values, context: newFunctionContext(in, values)}
	recorded := in.state.GradMode && !in.state.InferenceMode && slices.ContainsFunc(values, in.requiresGrad)
	if !recorded {
		return in.forwardAlone(call)
	}
	if in.functionsDisabled == 0 && in.request.FunctionModes > 0 {
		return nil, unsupported(reasonAutograd, "%s.apply under a function mode", class.name)
	}
	if class.name == backwardHookClass {
		return in.hookedArguments(values)
	}
	return in.recordFunction(call)
}

func newFunctionContext(in *Interpreter, values []Value) *functionContext {
	needs := &Tuple{}
	for _, value := range values {
		needs.items = append(needs.items, boolean(in.requiresGrad(value)))
	}
	return &functionContext{attributes: map[string]Value{"needs_input_grad": needs}, constant: map[Value]bool{}, materialize: true}
}

// requiresGrad tells tensors that require gradients now.
func (in *Interpreter) requiresGrad(value Value) bool {
	t, ok := value.(*Tensor)
	if !ok {
		return false
	}
	return t.meta.RequiresGrad || t.value != nil && in.graph.RequiresGrad(t.value)
}

// forwardAlone runs forward without gradients, as part of the graph.
func (in *Interpreter) forwardAlone(call *functionCall) (Value, error) {
	recorded := in.state.GradMode
	if err := in.switchGradients(false); err != nil {
		return nil, err
	}
	if err := in.runForward(call); err != nil {
		return nil, err
	}
	if err := in.viewReturned(call); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(in.tensorResults(call.value), func(t *Tensor) bool { return in.requiresGrad(t) }) {
		return nil, unsupported(reasonAutograd, "%s.apply returns what requires gradients", call.class.name)
	}
	return call.value, in.switchGradients(recorded)
}

// viewReturned puts a view in the place of each argument that forward returned as it was, since a result has a history of its own
// (_process_backward_mode_ad in torch/csrc/autograd/custom_function.cpp of PyTorch).
func (in *Interpreter) viewReturned(call *functionCall) error {
	tuple, several := call.value.(*Tuple)
	if !several {
		tuple = &Tuple{items: []Value{call.value}}
	}
	items, err := in.realAll(tuple.items)
	if err != nil || several && tuple.class != nil {
		return err
	}
	for k, item := range items {
		t, isTensor := item.(*Tensor)
		if !isTensor || !slices.Contains(call.given, item) || slices.Contains(call.context.dirty, item) {
			continue
		}
		if items[k], err = in.torchCall("Tensor.detach", Arguments{Positional: []Value{t}}); err != nil {
			return err
		}
		if call.context.constant[item] {
			call.context.constant[items[k]] = true
		}
	}
	call.value = items[0]
	if several {
		call.value = &Tuple{items: items}
	}
	return nil
}

func (in *Interpreter) switchGradients(on bool) error {
	_, err := in.setGradMode(Arguments{Positional: []Value{boolean(on)}})
	return err
}

// tensorResults lists the tensors that forward returned: one, or a tuple of them; nil where there is something else.
func (in *Interpreter) tensorResults(value Value) []*Tensor {
	items := []Value{value}
	if tuple, ok := value.(*Tuple); ok && tuple.class == nil {
		items = tuple.items
	}
	results, _ := slice.MapAll(items, func(item Value) (*Tensor, bool) {
		tensor, ok, _ := as[*Tensor](in.real(item))
		return tensor, ok
	})
	return results
}

// runForward calls forward with the ctx, or without it and then setup_context.
func (in *Interpreter) runForward(call *functionCall) error {
	setup, owner, err := in.classLookup(call.class, "setup_context")
	if err != nil {
		return err
	}
	apart := setup != nil && owner != nil && userClass(owner.name) && owner.name != "torch.autograd.function._SingleLevelFunction"
	values := call.given
	if !apart {
		values = append([]Value{call.context}, values...)
	}
	if call.value, err = in.callStatic(call.class, "forward", values); err != nil || !apart {
		return err
	}
	_, err = in.callStatic(call.class, "setup_context", []Value{call.context, &Tuple{items: call.given}, call.value})
	return err
}

// callStatic calls a static method of a class, whole: a break within is a break at the call of apply.
func (in *Interpreter) callStatic(class *Class, name string, values []Value) (Value, error) {
	method, err := in.getAttribute(class, name)
	if err != nil {
		return nil, err
	}
	if method, err = in.real(method); err != nil {
		return nil, err
	}
	if method, err = in.withoutOnceDifferentiable(method); err != nil {
		return nil, err
	}
	value, err := in.call(method, Arguments{Positional: values})
	if err != nil {
		return nil, err
	}
	return in.real(value)
}

// withoutOnceDifferentiable looks through the wrapper of torch.autograd.function.once_differentiable, which where gradients are not recorded does
// nothing but call.
func (in *Interpreter) withoutOnceDifferentiable(method Value) (Value, error) {
	f, ok := method.(*Function)
	if !ok || !strings.HasSuffix(f.code.FileName, "torch/autograd/function.py") || f.code.QualName != "once_differentiable.<locals>.wrapper" {
		return method, nil
	}
	if k := slices.Index(f.code.FreeVars(), "fn"); k >= 0 && k < len(f.closure) {
		return in.real(f.closure[k].content)
	}
	return method, nil
}

// recordFunction captures forward and backward apart from the graph, and appends the one operation that stands for both.
func (in *Interpreter) recordFunction(call *functionCall) (Value, error) {
	args, _, err := in.graphArguments(Arguments{Positional: call.arguments})
	if err != nil {
		return nil, err
	}
	effects := len(in.effects)
	function := &graph.Function{}
	if function.Forward, err = in.forwardApart(call); err != nil {
		return nil, err
	}
	if err := in.checkResults(call, function); err != nil {
		return nil, err
	}
	if err := in.captureBackwards(call, function); err != nil {
		return nil, err
	}
	if err := checkApart(call, function); err != nil {
		return nil, err
	}
	if len(in.effects) != effects {
		return nil, unsupported(reasonAutograd, "%s changes something but its results", call.class.name)
	}
	value, err := in.appendFunction(call, function, args)
	if err != nil || len(call.context.dirty) == 0 {
		return value, err
	}
	return in.writeDirty(call, value)
}

// forwardApart captures forward: a second time, on copies, where it says that it changes arguments in place, which then happens behind the operation.
func (in *Interpreter) forwardApart(call *functionCall) ([]*graph.Node, error) {
	nodes, err := in.apart(in.autocast, func() error { return in.forwardOnce(call) })
	if err != nil || len(call.context.dirty) == 0 {
		return nodes, err
	}
	dirty := call.context.dirty
	if err := in.checkDirty(call, dirty); err != nil {
		return nil, err
	}
	call.context = newFunctionContext(in, call.arguments)
	return in.apart(in.autocast, func() error {
		if err := in.copyDirty(call, dirty); err != nil {
			return err
		}
		return in.forwardOnce(call)
	})
}

func (in *Interpreter) forwardOnce(call *functionCall) error {
	if err := in.runForward(call); err != nil {
		return err
	}
	return in.viewReturned(call)
}

// checkDirty refuses what PyTorch raises for, and memory that forward reaches in two ways.
func (in *Interpreter) checkDirty(call *functionCall, dirty []Value) error {
	returned := in.tensorResults(call.value)
	for _, value := range dirty {
		t, isTensor := value.(*Tensor)
		if !isTensor || t.class != nil || !slices.Contains(call.arguments, value) || !slices.Contains(returned, t) {
			return unsupported(reasonAutograd, "%s marks as dirty what it was not given, or does not return", call.class.name)
		}
		if in.requiresGrad(t) && t.meta.Flags&graph.FlagLeaf != 0 || t.meta.Flags&graph.FlagView != 0 && len(returned) > 1 {
			return unsupported(reasonAutograd, "%s changes a leaf, or a view beside other results", call.class.name)
		}
		shares := func(other Value) bool {
			another, ok := other.(*Tensor)
			return ok && another != t && graph.SameValue(graph.Owner(another.value), graph.Owner(t.value))
		}
		if slices.ContainsFunc(call.arguments, shares) {
			return unsupported(reasonAutograd, "%s changes memory that another argument shares", call.class.name)
		}
	}
	return nil
}

// copyDirty has forward called with copies of what it changes in place.
func (in *Interpreter) copyDirty(call *functionCall, dirty []Value) error {
	call.given = slices.Clone(call.arguments)
	for _, value := range dirty {
		copied, err := in.torchCall("Tensor.clone", Arguments{Positional: []Value{value}})
		if err != nil {
			return err
		}
		t, original := copied.(*Tensor), value.(*Tensor)
		if !in.shapes().AllEqual(t.meta.Strides, original.meta.Strides) {
			return unsupported(reasonAutograd, "%s changes a tensor that is not dense", call.class.name)
		}
		for k, argument := range call.arguments {
			if argument == value {
				call.given[k] = copied
			}
		}
	}
	return nil
}

// writeDirty stores results in the arguments that forward changes in place, which become the results.
func (in *Interpreter) writeDirty(call *functionCall, value Value) (Value, error) {
	tuple, several := value.(*Tuple)
	if !several {
		tuple = &Tuple{items: []Value{value}}
	}
	items := slices.Clone(tuple.items)
	for k, result := range call.results {
		place := slices.Index(call.given, Value(result))
		if place < 0 {
			continue
		}
		if _, err := in.torchCall("Tensor.copy_", Arguments{Positional: []Value{call.arguments[place], items[k]}}); err != nil {
			return nil, err
		}
		items[k] = call.arguments[place]
	}
	if several {
		return &Tuple{items: items}, nil
	}
	return items[0], nil
}

// apart takes the operations that run appends out of the graph, unrecorded ones all. Autocast is as given meanwhile; where run changes it, that shows in the
// casts among the operations.
func (in *Interpreter) apart(autocast Autocast, run func() error) ([]*graph.Node, error) {
	start, state, outside := len(in.graph.Nodes), in.state, in.autocast
	before := slices.Clone(in.graph.Nodes)
	in.autocast = autocast.clone()
	in.state.GradMode, in.state.Autocast = false, autocast.enabled()
	err := run()
	left := in.autocast
	in.state, in.autocast = state, outside
	if err != nil {
		return nil, err
	}
	if !slices.Equal(left.Devices, autocast.Devices) || left.Cache != autocast.Cache || len(in.graph.Nodes) < start || !slices.Equal(in.graph.Nodes[:start], before) {
		return nil, unsupported(reasonAutograd, "a torch.autograd.Function changes modes")
	}
	nodes := slices.Clone(in.graph.Nodes[start:])
	in.graph.Nodes = in.graph.Nodes[:start]
	return slices.DeleteFunc(nodes, (*graph.Node).ChangesAutocast), nil
}

// checkResults sees that forward made each of its results, in memory that is not another's.
func (in *Interpreter) checkResults(call *functionCall, function *graph.Function) error {
	call.results = in.tensorResults(call.value)
	if len(call.results) == 0 {
		return unsupported(reasonAutograd, "%s.forward returns something but tensors", call.class.name)
	}
	for k, t := range call.results {
		o, made := t.value.(*graph.Output)
		if !made || t.id != 0 || t.class != nil || !slices.Contains(function.Forward, o.Node) || slices.Contains(call.results[:k], t) {
			return unsupported(reasonAutograd, "%s.forward returns a tensor that it did not make, or one twice", call.class.name)
		}
		shares := func(other graph.Value) bool { return graph.SameValue(graph.Owner(other), graph.Owner(t.value)) }
		if slices.ContainsFunc(function.Results, shares) {
			return unsupported(reasonAutograd, "%s.forward returns tensors that share memory", call.class.name)
		}
		function.Results = append(function.Results, t.value)
	}
	return nil
}

// mostUnmaterialized is for how many results backward is captured with each set of gradients that may be there.
const mostUnmaterialized = 3

// captureBackwards captures backward: once, or where it takes None for gradients that are not there, once for each set of them that may be.
func (in *Interpreter) captureBackwards(call *functionCall, function *graph.Function) error {
	var differentiable []int
	for k, t := range call.results {
		if in.isDifferentiable(call, t) {
			differentiable = append(differentiable, k)
		}
	}
	sets := 1 << len(differentiable)
	if call.context.materialize {
		return in.captureBackward(call, function, func(int) bool { return true })
	}
	if len(differentiable) > mostUnmaterialized {
		return unsupported(reasonAutograd, "%s.backward takes None for gradients of many results", call.class.name)
	}
	for set := sets - 1; set > 0; set-- {
		there := func(k int) bool {
			place := slices.Index(differentiable, k)
			return place >= 0 && set>>place&1 == 1
		}
		if err := in.captureBackward(call, function, there); err != nil {
			return err
		}
	}
	return nil
}

// isDifferentiable says whether gradients flow to a result of forward.
func (in *Interpreter) isDifferentiable(call *functionCall, t *Tensor) bool {
	return t.meta.DType.IsDifferentiable() && !call.context.constant[t]
}

// captureBackward captures backward where gradients of these results are there. It runs when the program is out of its autocast regions, as PyTorch
// asks for; a program that is still within is left to Python where it calls backward.
func (in *Interpreter) captureBackward(call *functionCall, function *graph.Function, there func(int) bool) error {
	backward := &graph.Backward{Seeds: make([]*graph.Node, len(call.results))}
	autocast := in.autocast.clone()
	for k := range autocast.Devices {
		autocast.Devices[k].Enabled = false
	}
	nodes, err := in.apart(autocast, func() error { return in.runBackward(call, backward, there) })
	backward.Nodes = slices.DeleteFunc(nodes, func(n *graph.Node) bool { return slices.Contains(backward.Seeds, n) })
	function.Backwards = append(function.Backwards, backward)
	return err
}

// runBackward calls backward with tensors that stand for the gradients of the results, or None.
func (in *Interpreter) runBackward(call *functionCall, backward *graph.Backward, there func(int) bool) error {
	values := []Value{call.context}
	for k, t := range call.results {
		if !there(k) {
			values = append(values, none())
			continue
		}
		node := in.graph.Append("fusee._gradients.seed", nil, nil, []graph.OutputInfo{{Meta: in.shapes().GradientMeta(&t.meta)}}, nil)
		backward.Seeds[k] = node
		seed, err := in.fromGraph(node.Result)
		if err != nil {
			return err
		}
		values = append(values, seed)
	}
	value, err := in.callStatic(call.class, "backward", values)
	if err != nil {
		return err
	}
	gradients := []Value{value}
	if tuple, ok := value.(*Tuple); ok {
		gradients = tuple.items
	}
	return in.bindGradients(call, backward, gradients)
}

// bindGradients sorts what backward returned to the arguments; more than there are must be None.
func (in *Interpreter) bindGradients(call *functionCall, backward *graph.Backward, gradients []Value) error {
	gradients, err := in.realAll(gradients)
	if err != nil {
		return err
	}
	backward.Gradients = make([]graph.Value, len(call.arguments))
	for k, gradient := range gradients {
		t, isTensor := gradient.(*Tensor)
		switch {
		case isNone(gradient):
			continue
		case k >= len(call.arguments) || !isTensor:
			return unsupported(reasonAutograd, "%s.backward returns something that is no gradient of an argument", call.class.name)
		case !in.requiresGrad(call.arguments[k]):
			continue
		}
		argument := call.arguments[k].(*Tensor)
		if t.class != nil || t.meta.Device != argument.meta.Device || !t.meta.DType.IsFloat() || !in.shapes().AllEqual(t.meta.Sizes, argument.meta.Sizes) {
			return unsupported(reasonAutograd, "%s.backward returns a gradient that does not fit its argument", call.class.name)
		}
		if backward.Gradients[k], err = in.tensorValue(t); err != nil {
			return err
		}
	}
	if len(gradients) < len(call.arguments) {
		return unsupported(reasonAutograd, "%s.backward returns fewer gradients than there are arguments", call.class.name)
	}
	return nil
}

// checkApart refuses what operations that are taken out of the graph, and run later or again, must not do. Forward and each backward write what they
// made themselves, and backward the gradients that it was given.
func checkApart(call *functionCall, function *graph.Function) error {
	if !keepsToItself(function.Forward, nil) {
		return unsupported(reasonAutograd, "%s.forward writes what it was given, or records gradients", call.class.name)
	}
	for _, backward := range function.Backwards {
		if !keepsToItself(backward.Nodes, backward.Seeds) {
			return unsupported(reasonAutograd, "%s.backward writes what it was given, or records gradients", call.class.name)
		}
		if slices.ContainsFunc(backward.Nodes, func(n *graph.Node) bool { return n.Random }) {
			return unsupported(reasonAutograd, "%s.backward draws random numbers", call.class.name)
		}
	}
	return nil
}

// keepsToItself says whether operations record nothing, and write only what they or those others made.
func keepsToItself(nodes, others []*graph.Node) bool {
	made := map[*graph.Node]bool{}
	for _, n := range slices.Concat(nodes, others) {
		made[n] = true
	}
	writesOutside := func(v graph.Value) bool {
		o, isOutput := graph.Owner(v).(*graph.Output)
		return !isOutput || !made[o.Node]
	}
	return !slices.ContainsFunc(nodes, func(n *graph.Node) bool {
		return n.ChangesState() || n.Recorded() || slices.ContainsFunc(n.Mutates, writesOutside)
	})
}

// appendFunction adds the operation that stands for the call.
func (in *Interpreter) appendFunction(call *functionCall, function *graph.Function, args []graph.Value) (Value, error) {
	var infos []graph.OutputInfo
	for k, t := range call.results {
		info := graph.OutputInfo{Meta: t.meta, Relation: in.outerRelation(function, t.value)}
		info.Meta.RequiresGrad = in.isDifferentiable(call, call.results[k])
		info.Meta.Flags &^= graph.FlagLeaf | graph.FlagGradFn
		if info.Meta.RequiresGrad {
			info.Meta.Flags |= graph.FlagGradFn
		} else {
			info.Meta.Flags |= graph.FlagLeaf
		}
		infos = append(infos, info)
	}
	in.pin(&existing{call.class.id, call.class.source})
	function.FindFormals()
	node := in.graph.Append(graph.FunctionTarget, args, nil, infos, nil)
	node.Callee, node.Function, node.Captured, node.Origin = int64(call.class.id), function, slices.Clone(function.Formals), in.origin()
	node.Random = slices.ContainsFunc(function.Forward, func(n *graph.Node) bool { return n.Random })
	if _, tuple := call.value.(*Tuple); tuple {
		node.Result = allOutputs(node)
	}
	in.activity++
	return in.fromGraph(node.Result)
}

// outerRelation says whose memory outside of a function's own operations a result shares.
func (in *Interpreter) outerRelation(function *graph.Function, v graph.Value) graph.Relation {
	outer := outermost(v, function.Forward)
	if outer == nil {
		return graph.New()
	}
	return graph.ViewOf(outer)
}
