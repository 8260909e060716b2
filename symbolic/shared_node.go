package symbolic

import (
	"slices"

	"fusee/graph"
	"fusee/internal/slice"
)

// leaveSharedNode has Python run the graph ahead of a break at which autograd goes back from some of its results, where that may not be done from one
// node of autograd that all of them share: autograd goes on to whatever came before the node, and frees what that kept though no gradient
// flows to it; and it does not find the way from one result of a node to another.
func (in *Interpreter) leaveSharedNode(f *Frame, reason *Unsupported, outputs []*Tensor) {
	if reason.Reason != reasonAutograd || in.graph.HasGradients() {
		return
	}
	results := slice.Map(outputs, func(t *Tensor) graph.Value { return t.value })
	results = slice.Filter(append(results, in.written()...), in.graph.RequiresGrad)
	histories := slice.Map(results, func(v graph.Value) *graph.History { return in.graph.HistoryOf([]graph.Value{v}, in.graph.Nodes) })
	in.pythonOnly = in.pythonOnly || in.cutShort(histories) || leadToOneAnother(results, histories) && in.asksForChosenGradients(f)
}

// written lists the inputs that the graph writes.
func (in *Interpreter) written() []graph.Value {
	var inputs []graph.Value
	for _, n := range in.graph.Nodes {
		for _, v := range n.Mutates {
			if _, isInput := v.(*graph.Input); isInput && !slices.Contains(inputs, v) {
				inputs = append(inputs, v)
			}
		}
	}
	return inputs
}

// cutShort says whether an input has a history to which some of the results lead and others do not.
func (in *Interpreter) cutShort(histories []*graph.History) bool {
	return slices.ContainsFunc(in.graph.Inputs, func(input *graph.Input) bool {
		meta, isTensor := graph.MetaOf(input)
		if !isTensor || !meta.RequiresGrad || meta.Flags&graph.FlagLeaf != 0 {
			return false
		}
		leading := slice.Filter(histories, func(h *graph.History) bool { return h.Wants(input) })
		return len(leading) > 0 && len(leading) < len(histories)
	})
}

// leadToOneAnother says whether gradients flow from one of the results to another.
func leadToOneAnother(results []graph.Value, histories []*graph.History) bool {
	for i, history := range histories {
		for k, v := range results {
			if i != k && history.Wants(v) {
				return true
			}
		}
	}
	return false
}

// asksForChosenGradients says whether a frame is about to call torch.autograd.grad.
func (in *Interpreter) asksForChosenGradients(f *Frame) bool {
	for i, value := range f.stack {
		if physical(value) || i+1 == len(f.stack) {
			continue
		}
		called, err := in.real(f.stack[i+1])
		if function, ok := called.(*Function); err == nil && ok && function.module == "torch.autograd" && function.qualname == "grad" {
			return true
		}
	}
	return false
}
