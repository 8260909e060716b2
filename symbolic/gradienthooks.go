package symbolic

import (
	"cmp"
	"slices"
	"strings"

	"fusee/graph"
	"fusee/internal/slice"
)

// gradientHook is a function of the program that backward calls with the gradient of tensors which the graph makes; what it returns takes the
// gradient's place.
type gradientHook struct {
	tensors  []*Tensor // nil for results of a node that gradients do not flow through
	function Value
	ofNode   bool   // it is called with the gradients of the node's arguments, and with those of its results
	ofLeaf   string // the dict of a leaf from before the capture that holds it, "" for others
	removed  bool
	step     int // at which Python takes over where hooks and what they watch outlive the capture
}

// hookDicts are where leaves keep the hooks that these methods register.
var hookDicts = map[string]string{"Tensor.register_hook": "_backward_hooks", "Tensor.register_post_accumulate_grad_hook": "_post_accumulate_grad_hooks"}

// registerHook is a method of a tensor that the graph makes, or of a leaf, which registers a hook.
func (in *Interpreter) registerHook(method string, arguments Arguments) (Value, error) {
	values, ok := bindNamed(arguments, "self", "hook")
	if !ok || values[0] == nil || values[1] == nil {
		return nil, unsupported(reasonAutograd, "%s with these arguments", method)
	}
	values, err := in.realAll(values)
	if err != nil {
		return nil, err
	}
	t, ok := values[0].(*Tensor)
	hook := &gradientHook{tensors: []*Tensor{t}, function: values[1], step: in.frame.step}
	switch {
	case ok && in.isEarlierLeaf(t):
		hook.ofLeaf = hookDicts[method]
	case !ok || method != "Tensor.register_hook" || !in.mayBeHooked(t):
		return nil, unsupported(reasonAutograd, "%s of a tensor that the graph does not make, or that requires no gradient", method)
	}
	return in.addHook(hook), nil
}

// isEarlierLeaf tells leaves that were there before the capture.
func (in *Interpreter) isEarlierLeaf(t *Tensor) bool {
	_, made := t.value.(*graph.Output)
	plain := !made && t.id != 0 && t.class == nil && !t.wraps() && t.meta.Flags&(graph.FlagGradFn|graph.FlagNotPlain|graph.FlagConjNeg) == 0
	return plain && t.meta.RequiresGrad && !in.isLeaf(t) && !in.request.Options.AllNodes
}

func (in *Interpreter) addHook(hook *gradientHook) Value {
	in.hooks = append(in.hooks, hook)
	in.activity++
	return &hookHandle{hook}
}

// mayBeHooked tells tensors that the graph made by operations that autograd records.
func (in *Interpreter) mayBeHooked(t *Tensor) bool {
	_, made := t.value.(*graph.Output)
	plain := t.id == 0 && t.class == nil && !t.wraps() && made && !in.isLeaf(t) && t.meta.Flags&graph.FlagGradFn != 0
	return plain && in.graph.RequiresGrad(t.value) && !in.request.Options.AllNodes
}

// hookHandle is the torch.utils.hooks.RemovableHandle of a hook.
type hookHandle struct{ hook *gradientHook }

func (v *hookHandle) typeName() string { return "torch.utils.hooks.RemovableHandle" }

func (v *hookHandle) getAttribute(_ *Interpreter, name string) (Value, error) {
	if name == "remove" {
		return &hookRemoval{v.hook}, nil
	}
	return nil, unsupported(reasonAttribute, "RemovableHandle.%s", name)
}

// hookRemoval is the method that removes a hook.
type hookRemoval struct{ hook *gradientHook }

func (v *hookRemoval) typeName() string { return "method" }

func (v *hookRemoval) call(in *Interpreter, arguments Arguments) (Value, error) {
	if len(arguments.Positional)+len(arguments.Keywords) > 0 {
		return nil, unsupported(reasonAutograd, "RemovableHandle.remove with arguments")
	}
	v.hook.removed = true
	in.activity++
	return none(), nil
}

// hookNode is the .grad_fn of the tensors that torch hands to a module with backward hooks, or takes from it.
type hookNode struct {
	tensors []*Tensor
	step    int
}

const backwardHookClass = "torch.nn.modules._functions.BackwardHookFunction"

// hookedArguments is BackwardHookFunction.apply, which gives each tensor another name, for hooks to be hung on.
func (in *Interpreter) hookedArguments(values []Value) (Value, error) {
	node := &hookNode{step: in.stepOutsideHooks()}
	results := &Tuple{}
	for _, value := range values {
		method := "Tensor.detach"
		t, ok := value.(*Tensor)
		if !ok || t.class != nil || t.wraps() || in.request.Options.AllNodes {
			return nil, unsupported(reasonAutograd, "backward hooks of a module that is not given plain tensors")
		}
		if in.requiresGrad(t) {
			method = "Tensor.view_as"
		}
		renamed, err := in.rename(t, method)
		if err != nil {
			return nil, err
		}
		results.items = append(results.items, renamed)
		if method == "Tensor.detach" {
			renamed = nil
		} else {
			renamed.node = node
		}
		node.tensors = append(node.tensors, renamed)
	}
	return results, nil
}

func (in *Interpreter) rename(t *Tensor, method string) (*Tensor, error) {
	arguments := Arguments{Positional: []Value{t}}
	if method == "Tensor.view_as" {
		arguments.Positional = append(arguments.Positional, t)
	}
	value, err := in.torchCall(method, arguments)
	if err != nil {
		return nil, err
	}
	renamed, ok := value.(*Tensor)
	if !ok || renamed == t || method == "Tensor.view_as" && !in.mayBeHooked(renamed) {
		return nil, unsupported(reasonAutograd, "backward hooks of a module")
	}
	return renamed, nil
}

// stepOutsideHooks is where torch's code that hangs the hooks of modules was called.
func (in *Interpreter) stepOutsideHooks() int {
	frame := in.frame
	for frame.back != nil && frame.function.module == "torch.utils.hooks" {
		frame = frame.back
	}
	return frame.step
}

func (v *hookNode) typeName() string { return "torch.autograd.function.BackwardHookFunctionBackward" }

func (v *hookNode) getAttribute(_ *Interpreter, name string) (Value, error) {
	switch name {
	case "name", "register_hook":
		return &hookNodeMethod{v, name}, nil
	}
	return nil, unsupported(reasonAttribute, "BackwardHookFunctionBackward.%s", name)
}

// hookNodeMethod is a method of a hookNode.
type hookNodeMethod struct {
	node *hookNode
	name string
}

func (v *hookNodeMethod) typeName() string { return "builtin_function_or_method" }

func (v *hookNodeMethod) call(in *Interpreter, arguments Arguments) (Value, error) {
	switch {
	case v.name == "name" && len(arguments.Positional)+len(arguments.Keywords) == 0:
		return text("BackwardHookFunctionBackward"), nil
	case v.name == "register_hook" && len(arguments.Positional) == 1 && len(arguments.Keywords) == 0:
		return in.addHook(&gradientHook{tensors: v.node.tensors, function: arguments.Positional[0], ofNode: true, step: v.node.step}), nil
	}
	return nil, unsupported(reasonAutograd, "BackwardHookFunctionBackward.%s with these arguments", v.name)
}

// cut says what the gradient of a tensor on the way is replaced by.
type cut struct{ tensor, gradient *Tensor }

// callHooks asks for the gradients of the tensors on the way that have hooks, one after the other as autograd reaches them, and calls the hooks.
func (in *Interpreter) callHooks(request *gradientRequest) error {
	hooks, err := in.hooksOn(request)
	if err != nil || len(hooks) == 0 {
		return err
	}
	if request.given || request.create || in.autocast.enabled() {
		return unsupported(reasonAutograd, "hooks where inputs are chosen, gradients are differentiated again, or under autocast")
	}
	for _, hook := range hooks {
		if err := in.callHook(request, hook); err != nil {
			return err
		}
	}
	return nil
}

// hooksOn finds the hooks that backward comes to, in the order in which it does: the operations made last come first.
func (in *Interpreter) hooksOn(request *gradientRequest) ([]*gradientHook, error) {
	if len(in.hooks) == 0 {
		return nil, nil
	}
	history, err := in.historyOf(request)
	if err != nil {
		return nil, err
	}
	var hooks []*gradientHook
	for _, hook := range in.hooks {
		if hook.ofLeaf != "" {
			continue
		}
		reached, missed := 0, 0
		for _, t := range hook.tensors {
			switch {
			case t == nil:
			case history.Wants(t.value):
				reached++
			default:
				missed++
			}
		}
		if reached == 0 || hook.removed {
			continue
		}
		if missed > 0 || in.isWritten(hook) {
			return nil, unsupported(reasonAutograd, "hooks on tensors that are written in place, or some of which no gradient reaches")
		}
		hooks = append(hooks, hook)
	}
	slices.SortStableFunc(hooks, func(a, b *gradientHook) int { return cmp.Compare(in.placeOf(b), in.placeOf(a)) })
	return hooks, nil
}

// placeOf is the number of the node that made what a hook is on.
func (in *Interpreter) placeOf(hook *gradientHook) int {
	for _, t := range hook.tensors {
		if t != nil {
			return slices.Index(in.graph.Nodes, t.value.(*graph.Output).Node)
		}
	}
	return -1
}

// isWritten says whether anything writes the memory of what a hook is on.
func (in *Interpreter) isWritten(hook *gradientHook) bool {
	for _, n := range in.graph.Nodes {
		for _, written := range n.Mutates {
			holds := func(t *Tensor) bool { return t != nil && graph.SameValue(graph.Owner(t.value), graph.Owner(written)) }
			if slices.ContainsFunc(hook.tensors, holds) {
				return true
			}
		}
	}
	return false
}

func (in *Interpreter) callHook(request *gradientRequest, hook *gradientHook) error {
	gradients, err := in.gradientsForHook(request, hook)
	if err != nil {
		return err
	}
	given := []Value{gradients.items[0]}
	if hook.ofNode {
		given = []Value{gradients, gradients}
	}
	value, err := in.callUnrecorded(hook.function, given)
	if err != nil || isNone(value) {
		return err
	}
	replaced := []Value{value}
	if tuple, ok := value.(*Tuple); ok && hook.ofNode {
		replaced = tuple.items
	}
	if replaced, err = in.realAll(replaced); err != nil {
		return err
	}
	return request.replace(hook, replaced)
}

// callUnrecorded calls a hook, in which nothing is recorded.
func (in *Interpreter) callUnrecorded(function Value, given []Value) (Value, error) {
	recorded := in.state.GradMode
	if err := in.switchGradients(false); err != nil {
		return nil, err
	}
	value, err := in.call(function, Arguments{Positional: given})
	if err != nil {
		return nil, err
	}
	if value, err = in.real(value); err != nil {
		return nil, err
	}
	return value, in.switchGradients(recorded)
}

// gradientsForHook gives the gradients that a hook sees, None where none flows, and has the rest of backward go on from them.
func (in *Interpreter) gradientsForHook(request *gradientRequest, hook *gradientHook) (*Tuple, error) {
	partial := *request
	partial.inputs, partial.retain = nil, true
	for _, t := range hook.tensors {
		if t != nil && request.cutAt(t) == nil {
			partial.inputs = append(partial.inputs, t)
		}
	}
	if len(partial.inputs) > 0 {
		gradients, err := in.appendGradients(&partial)
		if err != nil {
			return nil, err
		}
		for k, t := range partial.inputs {
			request.cuts = append(request.cuts, &cut{t, gradients[k].(*Tensor)})
		}
	}
	found := &Tuple{}
	for _, t := range hook.tensors {
		if t == nil {
			found.items = append(found.items, none())
		} else {
			found.items = append(found.items, request.cutAt(t).gradient)
		}
	}
	return found, nil
}

func (r *gradientRequest) cutAt(t *Tensor) *cut {
	for _, known := range r.cuts {
		if known.tensor == t {
			return known
		}
	}
	return nil
}

// replace takes what a hook returned in the place of the gradients.
func (r *gradientRequest) replace(hook *gradientHook, values []Value) error {
	if len(values) != len(hook.tensors) {
		return unsupported(reasonAutograd, "a hook that returns another number of gradients")
	}
	for k, t := range hook.tensors {
		if t == nil && isNone(values[k]) {
			continue
		}
		if t == nil || !t.fitsGradient(values[k]) || values[k].(*Tensor).meta.RequiresGrad {
			return unsupported(reasonAutograd, "a hook that returns something that does not fit the gradient")
		}
		r.cutAt(t).gradient = values[k].(*Tensor)
	}
	return nil
}

// hooksApart leaves to Python the tensors whose hooks only a capture knows, where gradients may yet flow back to them from what outlives it.
func (in *Interpreter) hooksApart(outputs []*Tensor) error {
	stays := func(hook *gradientHook) bool { return hook.ofLeaf != "" && !hook.removed }
	if hook, found := slice.Find(in.hooks, stays); found {
		return &restart{step: hook.step, reason: &Unsupported{reasonAutograd, "a hook on a leaf, which is not removed again"}}
	}
	if len(in.hooks) == 0 {
		return nil
	}
	for _, t := range slices.Concat(outputs, in.inputs) {
		if t.value == nil || !in.graph.RequiresGrad(t.value) {
			continue
		}
		if hook := in.hookBehind(t); hook != nil {
			return &restart{step: hook.step, reason: &Unsupported{reasonAutograd, "hooks on a tensor, which the function does not go back through"}}
		}
	}
	return nil
}

// hookBehind finds a hook that gradients of a tensor come to.
func (in *Interpreter) hookBehind(t *Tensor) *gradientHook {
	history := in.graph.HistoryOf([]graph.Value{t.value}, in.graph.Nodes)
	if slices.ContainsFunc(in.freed, func(freed freedHistory) bool { return history.Meets(freed.history) }) {
		return nil
	}
	wanted := func(t *Tensor) bool { return t != nil && history.Wants(t.value) }
	for _, hook := range in.hooks {
		if !hook.removed && slices.ContainsFunc(hook.tensors, wanted) {
			return hook
		}
	}
	return nil
}

// leafHooks are the functions that autograd calls with the gradient of a leaf, and those that it calls with the leaf once the gradient is there.
type leafHooks struct{ before, after []Value }

// hooksOfLeaf reads the hooks of a leaf that was there before the call.
func (in *Interpreter) hooksOfLeaf(t *Tensor) (*leafHooks, error) {
	before, err := in.hooksIn(t, "_backward_hooks")
	if err != nil {
		return nil, err
	}
	after, err := in.hooksIn(t, "_post_accumulate_grad_hooks")
	if err != nil || len(before)+len(after) == 0 {
		return nil, err
	}
	return &leafHooks{before, after}, nil
}

// hooksIn lists the hooks in a dict of a leaf, those from before the capture first.
func (in *Interpreter) hooksIn(t *Tensor, name string) ([]Value, error) {
	earlier, err := in.earlierHooks(t, name)
	for _, hook := range in.hooks {
		if hook.ofLeaf == name && !hook.removed && hook.tensors[0] == t {
			earlier = append(earlier, hook.function)
		}
	}
	return earlier, err
}

func (in *Interpreter) earlierHooks(t *Tensor, name string) ([]Value, error) {
	hooks, err := in.outsideAttribute(t, name)
	if err != nil || isNone(hooks) {
		return nil, err
	}
	dict, ok := hooks.(*Dict)
	if !ok {
		return nil, unsupported(reasonAutograd, "hooks on a tensor")
	}
	values, err := in.iterateDict(dict, dict, "values")
	if err != nil {
		return nil, err
	}
	return in.listOf(values)
}

// accumulate gives the leaves their gradients.
func (in *Interpreter) accumulate(request *gradientRequest, order []int, gradients []Value) error {
	for _, k := range order {
		if err := in.accumulateHooked(request.inputs[k], gradients[k].(*Tensor), request.hooked[request.inputs[k]]); err != nil {
			return err
		}
	}
	return nil
}

// accumulateHooked is accumulateGradient between the hooks of a leaf.
func (in *Interpreter) accumulateHooked(leaf, gradient *Tensor, hooks *leafHooks) error {
	if hooks == nil {
		return in.accumulateGradient(leaf, gradient)
	}
	for _, hook := range hooks.before {
		value, err := in.callUnrecorded(hook, []Value{gradient})
		if err != nil {
			return err
		}
		if isNone(value) {
			continue
		}
		if !leaf.fitsGradient(value) || value.(*Tensor).meta.RequiresGrad {
			return unsupported(reasonAutograd, "a hook that returns something that does not fit the gradient")
		}
		gradient = value.(*Tensor)
	}
	if err := in.accumulateGradient(leaf, gradient); err != nil {
		return err
	}
	for _, hook := range hooks.after {
		value, err := in.callUnrecorded(hook, []Value{leaf})
		if err != nil {
			return err
		}
		if !isNone(value) {
			return unsupported(reasonAutograd, "a hook behind the accumulation of a gradient that returns something")
		}
	}
	return nil
}

// orderOfLeaves is the order in which the engine of autograd comes to leaves: operations run backward in the order opposite to that of their calls, and
// a leaf gets its gradient right after the last that adds to it (torch/csrc/autograd/engine.cpp of PyTorch).
func (in *Interpreter) orderOfLeaves(request *gradientRequest) ([]int, error) {
	order := make([]int, len(request.inputs))
	for k := range order {
		order[k] = k
	}
	if len(request.hooked) == 0 {
		return order, nil
	}
	if len(request.cuts) > 0 || in.autocast.enabled() || request.given {
		return nil, unsupported(reasonAutograd, "hooks on leaves besides others, under autocast, or where inputs are chosen")
	}
	history, err := in.historyOf(request)
	if err != nil {
		return nil, err
	}
	places := make([]leafPlace, len(order))
	for k, t := range request.inputs {
		places[k] = in.placeOfLeaf(history, t)
	}
	slices.SortStableFunc(order, func(a, b int) int { return places[a].compare(places[b]) })
	for k := range order[1:] {
		a, b := order[k], order[k+1]
		if places[a].node == places[b].node && !places[a].known {
			return nil, unsupported(reasonAutograd, "hooks on leaves of one operation")
		}
	}
	return order, nil
}

// leafPlace is where a leaf is used first: at which node, and as which of its tensors.
type leafPlace struct {
	node, argument int
	known          bool // the order of the node's arguments is that of autograd
}

func (p leafPlace) compare(other leafPlace) int {
	return cmp.Or(cmp.Compare(other.node, p.node), cmp.Compare(p.argument, other.argument))
}

func (in *Interpreter) placeOfLeaf(history *graph.History, t *Tensor) leafPlace {
	for place, n := range in.graph.Nodes {
		if !history.Nodes[n] {
			continue
		}
		tensors := graph.Tensors(n.Args...)
		k := slices.IndexFunc(tensors, func(v graph.Value) bool { return graph.SameValue(v, t.value) })
		if k < 0 {
			continue
		}
		name := n.Target[strings.LastIndexByte(n.Target, '.')+1:]
		if name == "linear" { // the weight is transposed by an operation of its own
			k = -k
		}
		return leafPlace{place, k, slices.Contains([]string{"linear", "conv1d", "conv2d", "conv3d", "batch_norm", "layer_norm", "group_norm"}, name)}
	}
	return leafPlace{node: -1}
}
