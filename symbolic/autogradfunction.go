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
	materialize bool
}

func (c *functionContext) typeName() string { return "torch.autograd.function.FunctionCtx" }

func (c *functionContext) getAttribute(in *Interpreter, name string) (Value, error) {
	switch name {
	case "saved_tensors":
		return &Tuple{items: slices.Clone(c.saved)}, nil
	case "save_for_backward", "mark_non_differentiable", "set_materialize_grads":
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
	call := &functionCall{class: class, arguments: values, context: newFunctionContext(in, values)}
	recorded := in.state.GradMode && !in.state.InferenceMode && slices.ContainsFunc(values, in.requiresGrad)
	if !recorded {
		return in.forwardAlone(call)
	}
	if in.functionsDisabled == 0 && in.request.FunctionModes > 0 || in.autocast.enabled() {
		return nil, unsupported(reasonAutograd, "%s.apply under autocast or another mode", class.name)
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
	for _, result := range in.tensorResults(call.value) {
		if slices.Contains(call.arguments, Value(result)) || in.requiresGrad(result) {
			return nil, unsupported(reasonAutograd, "%s.apply returns what it was given, or a view of it", call.class.name)
		}
	}
	return call.value, in.switchGradients(recorded)
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
	values := call.arguments
	if !apart {
		values = append([]Value{call.context}, values...)
	}
	if call.value, err = in.callStatic(call.class, "forward", values); err != nil || !apart {
		return err
	}
	_, err = in.callStatic(call.class, "setup_context", []Value{call.context, &Tuple{items: call.arguments}, call.value})
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
	if function.Forward, err = in.apart(func() error { return in.runForward(call) }); err != nil {
		return nil, err
	}
	if err := in.checkResults(call, function); err != nil {
		return nil, err
	}
	if function.Backward, err = in.apart(func() error { return in.runBackward(call, function) }); err != nil {
		return nil, err
	}
	function.Backward = slices.DeleteFunc(function.Backward, func(n *graph.Node) bool { return slices.Contains(function.Seeds, n) })
	if err := checkApart(call, function); err != nil {
		return nil, err
	}
	if len(in.effects) != effects {
		return nil, unsupported(reasonAutograd, "%s changes something but its results", call.class.name)
	}
	return in.appendFunction(call, function, args)
}

// apart takes the operations that run appends out of the graph, unrecorded ones all.
func (in *Interpreter) apart(run func() error) ([]*graph.Node, error) {
	start, recorded := len(in.graph.Nodes), in.state.GradMode
	before := slices.Clone(in.graph.Nodes)
	in.state.GradMode = false
	err := run()
	in.state.GradMode = recorded
	if err != nil {
		return nil, err
	}
	if len(in.graph.Nodes) < start || !slices.Equal(in.graph.Nodes[:start], before) {
		return nil, unsupported(reasonAutograd, "a torch.autograd.Function changes modes")
	}
	nodes := slices.Clone(in.graph.Nodes[start:])
	in.graph.Nodes = in.graph.Nodes[:start]
	return nodes, nil
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

// runBackward calls backward with tensors that stand for the gradients of the results.
func (in *Interpreter) runBackward(call *functionCall, function *graph.Function) error {
	values := []Value{call.context}
	for _, t := range call.results {
		node := in.graph.Append("fusee._gradients.seed", nil, nil, []graph.OutputInfo{{Meta: in.shapes().GradientMeta(&t.meta)}}, nil)
		function.Seeds = append(function.Seeds, node)
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
	return in.bindGradients(call, function, gradients)
}

// bindGradients sorts what backward returned to the arguments; more than there are must be None.
func (in *Interpreter) bindGradients(call *functionCall, function *graph.Function, gradients []Value) error {
	gradients, err := in.realAll(gradients)
	if err != nil {
		return err
	}
	function.Gradients = make([]graph.Value, len(call.arguments))
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
		if function.Gradients[k], err = in.tensorValue(t); err != nil {
			return err
		}
	}
	if len(gradients) < len(call.arguments) {
		return unsupported(reasonAutograd, "%s.backward returns fewer gradients than there are arguments", call.class.name)
	}
	return nil
}

// checkApart refuses what operations that are taken out of the graph, and run later or again, must not do.
func checkApart(call *functionCall, function *graph.Function) error {
	made := map[*graph.Node]bool{}
	for _, n := range slices.Concat(function.Forward, function.Seeds, function.Backward) {
		made[n] = true
	}
	writesOutside := func(v graph.Value) bool {
		o, isOutput := graph.Owner(v).(*graph.Output)
		return !isOutput || !made[o.Node]
	}
	for _, n := range slices.Concat(function.Forward, function.Backward) {
		if n.ChangesState() || n.Recorded() || slices.ContainsFunc(n.Mutates, writesOutside) {
			return unsupported(reasonAutograd, "%s writes what it was given, or records gradients", call.class.name)
		}
	}
	drawn := slices.ContainsFunc(function.Backward, func(n *graph.Node) bool { return n.Random })
	if drawn || !call.context.materialize && len(call.results) > 1 {
		return unsupported(reasonAutograd, "%s.backward draws random numbers, or takes None for gradients", call.class.name)
	}
	return nil
}

// appendFunction adds the operation that stands for the call.
func (in *Interpreter) appendFunction(call *functionCall, function *graph.Function, args []graph.Value) (Value, error) {
	var infos []graph.OutputInfo
	for k, t := range call.results {
		info := graph.OutputInfo{Meta: t.meta, Relation: in.outerRelation(function, t.value)}
		info.Meta.RequiresGrad = t.meta.DType.IsDifferentiable() && !call.context.constant[call.results[k]]
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
