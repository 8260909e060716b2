package autograd

import "fusee/graph"

// reluGradient is where(result <= 0, 0, gradient). Where only maxima over windows of the result were taken, what flows back from them is masked by the
// maxima, which are the elements that it reaches: that is a part of the work, and the result itself need not be kept.
func reluGradient(e *emitter, args []graph.Value) graph.Value {
	gradient, result := args[0], args[1]
	masked := func(gradient, result graph.Value) graph.Value {
		return e.call("threshold_backward", gradient, result, int64(0))
	}
	spread, maxima := maximaOf(gradient, result)
	if maxima == nil {
		return masked(gradient, result)
	}
	_, arguments := spread.Bound()
	arguments = append([]graph.Value(nil), arguments...)
	arguments[0], arguments[1] = masked(arguments[0], maxima), keptAnyway(result)
	return e.call("max_pool2d_with_indices_backward", arguments...)
}

// maximaOf finds the operator that spread gradients of maxima over the windows of a value, and the maxima; nil where the gradient is another.
func maximaOf(gradient, pooled graph.Value) (*graph.Node, graph.Value) {
	made, ok := gradient.(*graph.Output)
	if !ok || operatorName(made.Node) != "max_pool2d_with_indices_backward" {
		return nil, nil
	}
	self, _ := made.Node.Argument("self")
	indices, _ := made.Node.Argument("indices")
	found, ok := indices.(*graph.Output)
	if !ok || operatorName(found.Node) != "max_pool2d_with_indices" || found.Index != 1 || !graph.SameValue(self, pooled) {
		return nil, nil
	}
	return made.Node, found.Node.Output(0)
}

// keptAnyway stands for a value of which only the shape is read: what was normalised to give it lies alike, and the gradient of the norm reads that too.
func keptAnyway(v graph.Value) graph.Value {
	for current := v; ; {
		made, ok := current.(*graph.Output)
		if !ok || len(made.Node.Args) == 0 {
			return v
		}
		before, isTensor := graph.MetaOf(made.Node.Args[0])
		if !isTensor || before.String() != metaOf(v).String() {
			return v
		}
		current = made.Node.Args[0]
		if operatorName(made.Node) == "native_batch_norm" {
			return current
		}
	}
}
