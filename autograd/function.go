package autograd

import (
	"slices"

	"fusee/graph"
)

// inlined is a torch.autograd.Function whose operations stand in the joint graph.
type inlined struct {
	// values says what stands for the values of its own operations, and for those that they read.
	values  map[key]graph.Value
	results []graph.Value
}

// function writes the operations of a torch.autograd.Function's forward.
func (j *joiner) function(n *graph.Node, recorded bool) error {
	if anyWrites(n.Function.Forward) {
		return refuse("in-place operations in the forward of a torch.autograd.Function") // what backward computes again would miss them
	}
	in := &inlined{values: map[key]graph.Value{}}
	for k, formal := range n.Function.Formals {
		in.values[keyOf(formal)] = j.replace(n.Captured[k])
	}
	results, err := j.inline(in, n.Function.Forward, n.Function.Results, func(v graph.Value) graph.Value { return v })
	if err != nil {
		return err
	}
	for k, result := range results {
		in.results = append(in.results, result)
		j.values[keyOf(n.Output(k))] = result
		j.tracked[keyOf(result)] = recorded && n.Outputs[k].Meta.RequiresGrad
	}
	if recorded {
		j.keep(n, nil)
		j.tape[len(j.tape)-1].inlined = in
	}
	return nil
}

// anyWrites reports whether one of the operations writes memory.
func anyWrites(nodes []*graph.Node) bool {
	return slices.ContainsFunc(nodes, func(n *graph.Node) bool { return len(n.Mutates) > 0 })
}

// inline appends operations of a function, and gives what stands for some of their values.
func (j *joiner) inline(in *inlined, nodes []*graph.Node, wanted []graph.Value, read func(graph.Value) graph.Value) ([]graph.Value, error) {
	lowered, lower, err := j.graph.LowerNodes(nodes)
	if err != nil {
		return nil, refuse("an operation of a torch.autograd.Function has no expansion into operators")
	}
	replace := func(v graph.Value) graph.Value {
		if value := in.values[keyOf(v)]; value != nil {
			return read(value)
		}
		return nil
	}
	for _, n := range lowered {
		node := copyNode(j.graph, n, replace)
		for i := range node.Outputs {
			in.values[keyOf(n.Output(i))] = node.Output(i)
			node.Outputs[i].Meta = withoutGradient(node.Outputs[i].Meta)
		}
	}
	standIn := func(v graph.Value) graph.Value {
		reached := lower(v)
		for r := relationOf(reached); r.Kind == graph.RelationSame; r = relationOf(reached) {
			reached = r.Of // an operation that wrote the argument and returned it
		}
		return mapped(reached, replace)
	}
	for _, n := range nodes {
		for i := range n.Outputs { // which backward may read as forward made them
			in.values[keyOf(n.Output(i))] = standIn(n.Output(i))
		}
	}
	found := make([]graph.Value, len(wanted))
	for k, v := range wanted {
		found[k] = standIn(v)
	}
	return found, nil
}

// functionBackward writes the operations of a function's backward for the gradients of its results; a gradient that is not there is 0.
func (j *joiner) functionBackward(en entry, gradients []graph.Value) error {
	in, n := en.inlined, en.node
	e := j.emitter()
	for k, seed := range n.Function.Seeds {
		gradient := gradients[k]
		if gradient == nil {
			gradient = e.call("zeros_like", in.results[k])
		}
		sameLayout := j.graph.Shapes.AllEqual(metaOf(gradient).Strides, metaOf(seed.Output(0)).Strides)
		if anyWrites(n.Function.Backward) || !sameLayout {
			laidOut, err := e.owned(gradient, seed.Output(0))
			if err != nil {
				return err
			}
			gradient = laidOut
		}
		in.values[keyOf(seed.Output(0))] = gradient
	}
	found, err := j.inline(in, n.Function.Backward, n.Function.Gradients, func(v graph.Value) graph.Value { return j.recomputed(v, n.Checkpoint) })
	if err != nil {
		return err
	}
	for k, gradient := range found {
		if gradient == nil {
			continue
		}
		if err := j.accumulate(j.replace(n.Args[k]), gradient); err != nil {
			return err
		}
	}
	return nil
}
