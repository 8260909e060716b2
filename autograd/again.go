package autograd

import (
	"maps"
	"slices"

	"fusee/graph"
)

// DifferentiateAgain makes the forward and backward graphs of a graph that asks for gradients which can be differentiated again, and returns them or
// what follows from them: the gradients are written into it first. The error is a Refusal where that cannot be.
func DifferentiateAgain(g *graph.Graph, state graph.State, options Options) (*Training, error) {
	before := g.Shapes.Clone()
	recorded, err := expandRecorded(g, state)
	if err != nil {
		g.Shapes.Restore(before)
		return nil, err
	}
	training, err := Differentiate(recorded, state, options)
	if err != nil {
		g.Shapes.Restore(before)
	}
	return training, err
}

// expandRecorded writes the gradients that a graph asks for into it, as operations that autograd records.
func expandRecorded(g *graph.Graph, state graph.State) (*graph.Graph, error) {
	frees := func(n *graph.Node) bool { return n.AsksForGradients() && !n.KeepsHistory() }
	ofInput := func(n *graph.Node) bool {
		if !n.MakesLeaf() {
			return false
		}
		_, given := rootOf(n.Args[0]).(*graph.Input)
		return given
	}
	if slices.ContainsFunc(g.Nodes, frees) || slices.ContainsFunc(g.Nodes, ofInput) {
		return nil, refuse("part of the history is gone, or begins at an argument that required no gradients")
	}
	j, finals, err := wholeJoiner(g, state)
	if err != nil {
		return nil, err
	}
	outlives := j.whole.functional.HistoryOf(finals, j.whole.functional.Nodes)
	maps.Copy(j.whole.reached, outlives.Nodes)
	if err := j.writeWhole(finals); err != nil {
		return nil, err
	}
	j.markRecorded()
	for i, v := range g.Outputs {
		if g.RequiresGrad(v) != j.graph.RequiresGrad(j.graph.Outputs[i]) {
			return nil, refuse("an output requires gradients that flow to no argument")
		}
	}
	j.graph.Canonicalise()
	return j.graph, j.graph.Verify()
}

// markRecorded has autograd record the operations that gradients flow through from the inputs on.
func (j *joiner) markRecorded() {
	for _, n := range j.graph.Nodes {
		reached := slices.ContainsFunc(argumentsOf(n), func(v graph.Value) bool { return metaOf(v).RequiresGrad })
		n.Unrecorded = true
		for i := range n.Outputs {
			if m := &n.Outputs[i].Meta; reached && j.isTracked(n.Output(i)) && shortTarget(n) != "detach" {
				m.RequiresGrad, n.Unrecorded = true, false
				m.Flags = m.Flags&^graph.FlagLeaf | graph.FlagGradFn
			}
		}
	}
}

func shortTarget(n *graph.Node) string {
	if op, known := n.Operator(); known {
		return op.Schema.Name
	}
	return n.Target
}
