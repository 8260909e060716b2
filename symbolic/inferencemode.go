package symbolic

import (
	"slices"

	"fusee/graph"
)

// inferenceGuard is a torch._C._InferenceMode, which torch.inference_mode enters and leaves.
type inferenceGuard struct {
	enabled bool
	before  graph.State // what leaving returns to
}

// inferenceGuardClass is a class of pybind11: it has nothing that can be walked into.
const inferenceGuardClass = "torch._C._InferenceMode"

// inferenceBlock is a part of the graph, from one node up to before another, that ran in inference mode though the call does not.
type inferenceBlock struct {
	step       int // at which the program entered it
	start, end int
}

func (v *inferenceGuard) typeName() string { return inferenceGuardClass }

func (v *inferenceGuard) getAttribute(_ *Interpreter, name string) (Value, error) {
	switch name {
	case "__enter__", "__exit__":
		return &inferenceMethod{v, name}, nil
	}
	return nil, unsupported(reasonAttribute, "%s.%s", inferenceGuardClass, name)
}

func (in *Interpreter) constructInferenceGuard(arguments Arguments) (Value, bool, error) {
	enabled, ok, err := in.singleFlag(arguments)
	return &inferenceGuard{enabled: enabled}, ok || err != nil, err
}

// opensBlock says whether the guard, once entered, turned inference mode on.
func (v *inferenceGuard) opensBlock() bool { return v.enabled && !v.before.InferenceMode }

// inferenceMethod is a bound method of a guard.
type inferenceMethod struct {
	guard *inferenceGuard
	name  string
}

func (v *inferenceMethod) typeName() string { return "method" }

func (v *inferenceMethod) call(in *Interpreter, _ Arguments) (Value, error) {
	if v.name == "__enter__" {
		return none(), in.enterInferenceMode(v.guard)
	}
	return none(), in.leaveInferenceMode(v.guard)
}

// enterInferenceMode does what c10::InferenceMode does: grad mode is off within, and back on in a block that leaves inference mode, which is
// not followed.
func (in *Interpreter) enterInferenceMode(v *inferenceGuard) error {
	if !v.enabled && (in.state.InferenceMode || !in.state.GradMode) {
		return unsupported(reasonGlobalState, "inference_mode(False) within a mode")
	}
	in.activity++
	v.before = in.state
	in.state.InferenceMode, in.state.GradMode = v.enabled, !v.enabled
	in.inferenceGuards = append(in.inferenceGuards, v)
	if v.opensBlock() {
		in.inferenceBlocks = append(in.inferenceBlocks, inferenceBlock{step: in.frame.step, start: len(in.graph.Nodes)})
	}
	return nil
}

func (in *Interpreter) leaveInferenceMode(v *inferenceGuard) error {
	last := len(in.inferenceGuards) - 1
	if last < 0 || in.inferenceGuards[last] != v {
		return unsupported(reasonGlobalState, "a guard of inference mode that is not the innermost one")
	}
	in.activity++
	in.inferenceGuards = in.inferenceGuards[:last]
	if v.opensBlock() {
		in.inferenceBlocks[len(in.inferenceBlocks)-1].end = len(in.graph.Nodes)
	}
	in.state.InferenceMode, in.state.GradMode = v.before.InferenceMode, v.before.GradMode
	return nil
}

// openGuard finds the first step at which the program entered a mode that only the capture knows of and that is still on: Python would go on
// without it.
func (in *Interpreter) openGuard() (step int, open bool) {
	if len(in.functionGuards) > 0 {
		return in.functionGuards[0], true
	}
	if slices.ContainsFunc(in.inferenceGuards, (*inferenceGuard).opensBlock) {
		return in.inferenceBlocks[len(in.inferenceBlocks)-1].step, true
	}
	return 0, false
}

// settleInferenceMode lets the whole graph run in inference mode where all of its operations did; where only some did, the program's own block
// has to cut it.
func (in *Interpreter) settleInferenceMode() error {
	inside, outside, next := 0, 0, 0
	for index, node := range in.graph.Nodes {
		for next < len(in.inferenceBlocks) && index >= in.inferenceBlocks[next].end {
			next++
		}
		switch within := next < len(in.inferenceBlocks) && index >= in.inferenceBlocks[next].start; {
		case changesState(node):
		case within:
			inside++
		default:
			outside++
		}
	}
	if inside > 0 && outside > 0 {
		return &restart{step: in.inferenceBlocks[0].step, reason: &Unsupported{reasonGlobalState, "inference mode in a part of the graph"}}
	}
	in.graph.Inference = inside > 0
	return nil
}
