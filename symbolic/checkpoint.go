package symbolic

import (
	"slices"
	"strings"

	"fusee/graph"
)

// checkpointCall is a call of torch.utils.checkpoint.checkpoint.
type checkpointCall struct {
	function  Value
	arguments Arguments
	options   map[string]Value
	reentrant bool
	preserve  bool // the state of random generators
}

// checkpointFunction models the functions of torch.utils.checkpoint; those that only call others are looked into.
func (in *Interpreter) checkpointFunction(f *Function, arguments Arguments) (Value, bool, error) {
	var call *checkpointCall
	var err error
	switch {
	case f.qualname == "checkpoint" && len(arguments.Positional) > 0 && !isNone(arguments.Positional[0]):
		call, err = in.readCheckpoint(arguments.Positional[0], Arguments{arguments.Positional[1:], arguments.Keywords})
	case f.qualname == "_checkpoint_impl" && len(arguments.Positional) == 3:
		call, err = in.readCheckpointParts(arguments)
	case f.qualname == "_CheckpointedFunction.__call__", strings.HasPrefix(f.qualname, "checkpoint_sequential"):
		return nil, false, nil
	default:
		return nil, true, unsupported(reasonCheckpoint, "%s", f.qualname)
	}
	if err != nil {
		return nil, true, err
	}
	return modelled(in.runCheckpoint(call))
}

// readCheckpointParts reads a call in which the function's own arguments are a tuple and a dict.
func (in *Interpreter) readCheckpointParts(arguments Arguments) (*checkpointCall, error) {
	parts, err := in.realAll(arguments.Positional)
	if err != nil {
		return nil, err
	}
	positional, isTuple := parts[1].(*Tuple)
	named, isDict := parts[2].(*Dict)
	if !isTuple || !isDict {
		return nil, unsupported(reasonCheckpoint, "arguments that do not fit")
	}
	keywords, err := in.keywordsOf(named)
	if err != nil {
		return nil, err
	}
	return in.readCheckpoint(parts[0], Arguments{positional.items, append(keywords, arguments.Keywords...)})
}

// readCheckpoint takes the options out of the arguments.
func (in *Interpreter) readCheckpoint(function Value, arguments Arguments) (*checkpointCall, error) {
	call := &checkpointCall{function: function, arguments: Arguments{Positional: arguments.Positional}, options: map[string]Value{}}
	names := []string{"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop", "respect_saved_tensors_hooks"}
	for _, keyword := range arguments.Keywords {
		if !slices.Contains(names, keyword.Name) {
			call.arguments.Keywords = append(call.arguments.Keywords, keyword)
			continue
		}
		value, err := in.real(keyword.Value)
		if err != nil {
			return nil, err
		}
		call.options[keyword.Name] = value
	}
	return call, in.checkOptions(call)
}

// checkOptions leaves to Python what warns, raises, or has other contexts than the program's own.
func (in *Interpreter) checkOptions(call *checkpointCall) error {
	var known bool
	if call.reentrant, known = constantAs[bool](call.options["use_reentrant"]); !known {
		return unsupported(reasonCheckpoint, "use_reentrant is not given")
	}
	call.preserve = true
	if preserve := call.options["preserve_rng_state"]; preserve != nil {
		if call.preserve, known = constantAs[bool](preserve); !known {
			return unsupported(reasonCheckpoint, "preserve_rng_state is not a bool")
		}
	}
	if context := call.options["context_fn"]; context != nil {
		f, ok := context.(*Function)
		if !ok || f.module != "torch.utils.checkpoint" || f.qualname != "noop_context_fn" {
			return unsupported(reasonCheckpoint, "context_fn chooses what is kept")
		}
	}
	for _, name := range []string{"debug", "respect_saved_tensors_hooks"} {
		if value := call.options[name]; value != nil && !isNone(value) {
			if truth, known := constantAs[bool](value); truth || !known || call.reentrant && name != "debug" {
				return unsupported(reasonCheckpoint, "%s is given", name)
			}
		}
	}
	if check := call.options["determinism_check"]; check != nil {
		if name, ok := stringOf(check); !ok || name != "default" && name != "none" {
			return unsupported(reasonCheckpoint, "determinism_check is given")
		}
	}
	if call.reentrant && len(call.arguments.Keywords) > 0 {
		return unsupported(reasonCheckpoint, "a reentrant checkpoint takes no keywords")
	}
	return nil
}

// runCheckpoint calls the function, whole, and marks its operations.
func (in *Interpreter) runCheckpoint(call *checkpointCall) (Value, error) {
	if in.state.GradMode && in.state.InferenceMode {
		return nil, unsupported(reasonCheckpoint, "gradients are recorded in inference mode, whose tensors cannot be kept for backward")
	}
	records := in.state.GradMode
	if call.reentrant {
		if err := in.checkReentrantArguments(call, records); err != nil {
			return nil, err
		}
	}
	before, changes := slices.Clone(in.graph.Nodes), in.outside
	value, err := in.call(call.function, call.arguments)
	if err != nil {
		return nil, err
	}
	if value, err = in.real(value); err != nil || !records {
		return value, err
	}
	if len(in.graph.Nodes) < len(before) || !slices.Equal(in.graph.Nodes[:len(before)], before) {
		return nil, unsupported(reasonCheckpoint, "a checkpoint changes modes")
	}
	if in.outside != changes {
		return nil, unsupported(reasonCheckpoint, "the function changes something but its results, which it does again for backward")
	}
	return value, in.markCheckpoint(call, in.graph.Nodes[len(before):], value)
}

// markCheckpoint has the operations know their checkpoint, unless computing them again does more than give their results again.
func (in *Interpreter) markCheckpoint(call *checkpointCall, nodes []*graph.Node, value Value) error {
	made := map[*graph.Node]bool{}
	for _, n := range nodes {
		made[n] = true
	}
	ownsResult := func(v graph.Value) bool {
		o, isOutput := graph.Owner(v).(*graph.Output)
		return isOutput && made[o.Node]
	}
	for _, n := range nodes {
		switch {
		case n.AsksForGradients() || n.MakesLeaf():
			return unsupported(reasonCheckpoint, "gradients are asked for in it, or end there")
		case n.Random && !call.preserve:
			return unsupported(reasonCheckpoint, "random numbers are drawn anew for backward")
		case slices.ContainsFunc(n.Mutates, func(v graph.Value) bool { return !ownsResult(v) }):
			return unsupported(reasonCheckpoint, "%s writes memory that is not the checkpoint's, and again for backward", n.Target)
		}
	}
	if call.reentrant {
		if err := in.checkReentrantResults(value, ownsResult); err != nil {
			return err
		}
	}
	checkpoint := &graph.Checkpoint{Reentrant: call.reentrant}
	for _, n := range nodes {
		if n.Checkpoint == nil {
			n.Checkpoint = checkpoint
		} else if outermost := n.Checkpoint.Outermost(); outermost != checkpoint {
			outermost.Outer = checkpoint
		}
	}
	return nil
}

// checkReentrantArguments sees that a reentrant checkpoint records gradients at all: it looks at the tensors among its arguments alone, and warns.
func (in *Interpreter) checkReentrantArguments(call *checkpointCall, records bool) error {
	values, err := in.realAll(call.arguments.Positional)
	if err != nil {
		return err
	}
	call.arguments.Positional = values
	if !records || !slices.ContainsFunc(values, in.requiresGrad) {
		return unsupported(reasonCheckpoint, "a reentrant checkpoint records no gradients")
	}
	return nil
}

// checkReentrantResults sees that results are what a torch.autograd.Function gives where all require gradients.
func (in *Interpreter) checkReentrantResults(value Value, owns func(graph.Value) bool) error {
	results := in.tensorResults(value)
	if results == nil {
		return unsupported(reasonCheckpoint, "a reentrant checkpoint returns something but tensors")
	}
	for k, t := range results {
		if t.value == nil || !owns(t.value) || slices.Contains(results[:k], t) || !in.requiresGrad(t) {
			return unsupported(reasonCheckpoint, "a reentrant checkpoint returns what it was given, or what requires no gradients")
		}
	}
	return nil
}
