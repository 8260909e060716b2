package autograd

import (
	"fusee/graph"
	"fusee/internal/slice"
)

// inlined is a torch.autograd.Function whose operations stand in the joint graph.
type inlined struct {
	// values says what stands for the values of its own operations, and for those that they read.
	values  map[key]graph.Value
	results []graph.Value
}

// function writes the operations of a torch.autograd.Function's forward.
func (j *joiner) function(n *graph.Node, recorded bool) error {
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

// withoutWrites gives operations that compute what the nodes store in place, since what backward computes again would miss the writes, and what stands for
// the nodes' values, and those that are wanted, at the end, as who reads the memory later finds it.
func (j *joiner) withoutWrites(in *inlined, nodes []*graph.Node, wanted []graph.Value) ([]*graph.Node, func(graph.Value) graph.Value, error) {
	f := newFunctionaliser(&differentiation{source: j.graph, state: j.state, overwritten: newOverwritten()})
	f.graph = &graph.Graph{Name: j.graph.Name, Shapes: j.graph.Shapes}
	f.whole = j.whole != nil
	f.given = func(v graph.Value) bool { return in.values[keyOf(v)] != nil }
	for _, n := range nodes {
		if err := f.node(n); err != nil {
			return nil, nil, err
		}
	}
	finals := map[key]graph.Value{}
	for _, n := range nodes {
		for i := range n.Outputs {
			finals[keyOf(n.Output(i))] = f.current(n.Output(i))
		}
	}
	for _, v := range graph.Tensors(graph.List{Items: wanted}) {
		finals[keyOf(v)] = f.current(v)
	}
	if err := f.checkUnmoved(wanted); err != nil {
		return nil, nil, err
	}
	final := func(v graph.Value) graph.Value {
		return mapped(v, func(v graph.Value) graph.Value {
			if value := finals[keyOf(v)]; value != nil {
				return value
			}
			return v
		})
	}
	return f.graph.Nodes, final, nil
}

// inline appends operations of a function, and gives what stands for some of their values. Those of backward read values of forward by a function.
func (j *joiner) inline(in *inlined, nodes []*graph.Node, wanted []graph.Value, read func(graph.Value) graph.Value) ([]graph.Value, error) {
	lowered, lower, err := j.graph.LowerNodes(nodes)
	if err != nil {
		return nil, refuse("an operation of a torch.autograd.Function has no expansion into operators")
	}
	lowered, final, err := j.withoutWrites(in, lowered, slice.Map(wanted, lower))
	if err != nil {
		return nil, err
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
		reached := final(lower(v))
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

// functionBackward writes the operations of a function's backward for the gradients of its results; a gradient that is not there is 0, or None where
// the function takes that.
func (j *joiner) functionBackward(en entry, gradients []graph.Value) error {
	in, n := en.inlined, en.node
	backward := n.Function.BackwardOf(slice.Map(gradients, func(v graph.Value) bool { return v != nil }))
	if backward == nil {
		return refuse("a torch.autograd.Function whose backward is not known for the gradients that are there")
	}
	if err := j.plant(in, backward, gradients); err != nil {
		return err
	}
	found, err := j.inline(in, backward.Nodes, backward.Gradients, func(v graph.Value) graph.Value { return j.recomputed(v, n.Checkpoint) })
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

// plant has the gradients of a function's results stand for the seeds of its backward, laid out as that expects.
func (j *joiner) plant(in *inlined, backward *graph.Backward, gradients []graph.Value) error {
	e := j.emitter()
	for k, seed := range backward.Seeds {
		if seed == nil {
			continue
		}
		gradient := gradients[k]
		if gradient == nil {
			gradient = e.call("zeros_like", in.results[k])
		}
		if !j.graph.Shapes.AllEqual(metaOf(gradient).Strides, metaOf(seed.Output(0)).Strides) {
			laidOut, err := e.owned(gradient, seed.Output(0))
			if err != nil {
				return err
			}
			gradient = laidOut
		}
		in.values[keyOf(seed.Output(0))] = gradient
	}
	return e.err
}
