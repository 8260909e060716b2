package autograd

import (
	"strconv"

	"fusee/graph"
)

// outputs is how the graph's outputs come from the results: final values of the functional graph, and the results among their roots.
type outputs struct {
	finals  []graph.Value
	results []graph.Value
}

// splitOutputs finds the results: the tensors that own the memory of the outputs. Outputs that are views of them or of inputs, and inputs
// themselves, are made from them outside, where autograd knows them for what they are.
func (d *differentiation) splitOutputs(finals []graph.Value) error {
	r := d.result
	d.outputs.finals = finals
	seen := map[key]bool{}
	plain := true
	for _, v := range finals {
		m, ok := graph.MetaOf(v)
		if !ok {
			return refuse("an output that is no tensor")
		}
		root := rootOf(v)
		_, isInput := root.(*graph.Input)
		if !isInput && !seen[keyOf(root)] {
			seen[keyOf(root)] = true
			d.outputs.results = append(d.outputs.results, root)
			r.Differentiable = append(r.Differentiable, metaOf(root).RequiresGrad)
		} else {
			plain = false
		}
		plain = plain && graph.SameValue(root, v)
		if m.RequiresGrad && !metaOf(root).RequiresGrad && !isInput {
			return refuse("an output requires gradients and the memory behind it does not")
		}
	}
	r.Results = len(d.outputs.results)
	r.Functional.Outputs = d.outputs.results
	if plain {
		return nil
	}
	return d.makeOutputs()
}

// makeOutputs writes the graph of views that lead from inputs and results to the outputs.
func (d *differentiation) makeOutputs() error {
	g := graph.NewGraph(d.source.Name + "_outputs")
	g.Shapes = d.source.Shapes
	values := map[key]graph.Value{}
	for _, input := range d.source.Inputs {
		copied := copyInput(g, input)
		copied.Meta, values[keyOf(input)] = input.Meta, copied
	}
	for i, v := range d.outputs.results {
		values[keyOf(v)] = g.AddTensor("result"+strconv.Itoa(i), *metaOf(v))
	}
	var reach func(graph.Value) graph.Value
	reach = func(v graph.Value) graph.Value {
		if known, ok := values[keyOf(v)]; ok {
			return known
		}
		if relation := relationOf(v); relation.Kind == graph.RelationSame { // an operation that wrote the argument and returned it
			values[keyOf(v)] = reach(relation.Of)
			return values[keyOf(v)]
		}
		o := v.(*graph.Output)
		node := copyNode(g, o.Node, reach)
		for i := range o.Node.Outputs {
			values[keyOf(o.Node.Output(i))] = node.Output(i)
		}
		return values[keyOf(v)]
	}
	for _, v := range d.outputs.finals {
		g.Outputs = append(g.Outputs, reach(v))
	}
	d.result.Outputs = g
	return nil
}
