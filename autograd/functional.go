package autograd

import (
	"strings"

	"fusee/graph"
)

// functional lowers the graph to aten operators and writes in-place operations on intermediates as new values. In-place operations on the memory
// of inputs stay, since they are effects that the caller sees.
func functional(d *differentiation) error {
	lowered, err := d.source.Lower()
	if err != nil {
		return refuse("an operation has no expansion into operators")
	}
	f := &functionaliser{
		graph: &graph.Graph{Name: d.source.Name, Inputs: d.source.Inputs, Shapes: d.source.Shapes}, state: d.state,
		values: map[key]graph.Value{}, generation: map[key]int{}, made: map[key]int{}, changed: map[*graph.Input]bool{},
	}
	for _, node := range lowered.Nodes {
		if err := f.node(node); err != nil {
			return err
		}
		d.result.Random = d.result.Random || node.Random
	}
	if err := f.checkChanged(); err != nil {
		return err
	}
	d.result.Functional = f.graph
	for _, input := range d.source.Inputs {
		if f.changed[input] {
			d.result.Changed = append(d.result.Changed, input.Index)
		}
	}
	finals := make([]graph.Value, len(lowered.Outputs))
	for i, v := range lowered.Outputs {
		finals[i] = mapped(v, f.current)
	}
	return d.splitOutputs(finals)
}

type functionaliser struct {
	graph *graph.Graph
	state graph.State
	// values says what stands for a value of the source now.
	values map[key]graph.Value
	// generation counts how often the memory of a tensor that owns it was rewritten, made in which generation a view was.
	generation, made map[key]int
	changed          map[*graph.Input]bool
}

// current gives what stands for a value of the source: a view is made anew when the memory behind it was rewritten since.
func (f *functionaliser) current(v graph.Value) graph.Value {
	o, ok := v.(*graph.Output)
	if !ok {
		return v
	}
	k, relation := keyOf(v), relationOf(v)
	switch {
	case relation.Kind == graph.RelationSame:
		return f.current(relation.Of)
	case relation.Kind == graph.RelationView && f.made[k] < f.generation[keyOf(rootOf(v))]:
		f.view(o.Node)
	}
	return f.values[k]
}

// view copies a node that makes views of what its argument is now.
func (f *functionaliser) view(n *graph.Node) {
	node := copyNode(f.graph, n, f.current)
	for i, o := range n.Outputs {
		v := n.Output(i)
		f.values[keyOf(v)], f.made[keyOf(v)] = node.Output(i), f.generation[keyOf(rootOf(v))]
		if f.made[keyOf(v)] > 0 && o.Meta.DType.IsDifferentiable() && !strings.HasPrefix(n.Target, "aten.detach.") {
			node.Outputs[i].Meta.RequiresGrad = metaOf(node.Outputs[i].Relation.Of).RequiresGrad
		}
	}
}

func (f *functionaliser) node(n *graph.Node) error {
	if err := check(n); err != nil {
		return err
	}
	switch {
	case len(n.Mutates) > 0:
		return f.mutation(n)
	case len(n.Outputs) > 0 && n.Outputs[0].Relation.Kind == graph.RelationView:
		f.view(n)
		return nil
	case len(n.Outputs) == 1 && n.Outputs[0].Relation.Kind == graph.RelationSame:
		return nil // another name, which current looks through
	}
	f.copy(n)
	return nil
}

// copy appends a node that makes tensors of its own.
func (f *functionaliser) copy(n *graph.Node) {
	node := copyNode(f.graph, n, f.current)
	for i := range n.Outputs {
		f.values[keyOf(n.Output(i))] = node.Output(i)
	}
}

// check refuses what the passes do not express. Of random operators they know dropout, which draws the same numbers again in a replay.
func check(n *graph.Node) error {
	if n.Random && n.Target != "aten.dropout.default" {
		return refuse("gradients through random numbers (%s)", n.Target)
	}
	for _, o := range n.Outputs {
		leafView := o.Relation.Kind == graph.RelationView && o.Meta.Flags&graph.FlagLeaf != 0
		switch {
		case o.Meta.RequiresGrad && leafView:
			return refuse("a view made while gradients were not recorded")
		case o.Meta.RequiresGrad && o.Meta.DType.IsComplex():
			return refuse("gradients of complex numbers")
		}
	}
	return nil
}

// mutation keeps an operation that writes the memory of inputs and rewrites one on intermediates.
func (f *functionaliser) mutation(n *graph.Node) error {
	inputs := 0
	for _, v := range n.Mutates {
		if input, ok := rootOf(v).(*graph.Input); ok {
			inputs++
			f.changed[input] = true
		}
	}
	switch {
	case inputs == 0 && len(n.Mutates) == 1:
		return f.rewrite(n)
	case inputs < len(n.Mutates):
		return refuse("%s changes an intermediate", n.Target)
	}
	for _, o := range n.Outputs {
		if o.Relation.Kind == graph.RelationSame && o.Meta.RequiresGrad {
			return refuse("gradients flow into the memory of an input (%s)", n.Target)
		}
	}
	f.copy(n)
	return nil
}

// rewrite computes what an in-place operation stores and takes it for the target from here on.
func (f *functionaliser) rewrite(n *graph.Node) error {
	target := n.Mutates[0]
	value, err := f.stored(n, f.current(target))
	if err != nil {
		return err
	}
	m, wanted := metaOf(value), metaOf(target)
	m.RequiresGrad = n.Outputs[0].Meta.RequiresGrad
	if m.DType != wanted.DType || !f.graph.Shapes.AllEqual(m.Sizes, wanted.Sizes) {
		return refuse("%s stores another type or shape", n.Target)
	}
	return f.write(target, value)
}

// stored appends the operation that computes what an in-place one stores.
func (f *functionaliser) stored(n *graph.Node, target graph.Value) (graph.Value, error) {
	base, overload, _ := strings.Cut(strings.TrimPrefix(n.Target, "aten."), ".")
	args := make([]graph.Value, len(n.Args))
	for i, arg := range n.Args {
		args[i] = mapped(arg, f.current)
	}
	keywords := make([]graph.Keyword, len(n.Keywords))
	for i, k := range n.Keywords {
		keywords[i] = graph.Keyword{Name: k.Name, Value: mapped(k.Value, f.current)}
	}
	e := &emitter{graph: f.graph, state: f.state}
	switch base {
	case "copy_":
		return e.stored(args[1], target)
	case "fill_", "zero_":
		fill := graph.Value(int64(0))
		if base == "fill_" {
			fill = args[1]
		}
		return e.stored(fill, target)
	}
	for _, candidate := range []string{overload, "default", "Tensor_Tensor", "Tensor_Scalar"} {
		if node, err := f.graph.Call("aten."+strings.TrimSuffix(base, "_")+"."+candidate, args, keywords, f.state); err == nil {
			return e.stored(node.Output(0), target)
		}
	}
	return nil, refuse("%s on an intermediate", n.Target)
}

// write makes a value what a tensor of the source holds. Through a view it is the tensor behind it that changes.
func (f *functionaliser) write(target, value graph.Value) error {
	relation := relationOf(target)
	switch relation.Kind {
	case graph.RelationSame:
		return f.write(relation.Of, value)
	case graph.RelationNew:
		f.values[keyOf(target)] = value
		f.generation[keyOf(target)]++
		return nil
	}
	base, err := f.writtenThrough(target.(*graph.Output).Node, value, f.current(relation.Of))
	if err != nil {
		return err
	}
	return f.write(relation.Of, base)
}

// writtenThrough gives what a tensor holds once a value was stored through a view of it.
func (f *functionaliser) writtenThrough(view *graph.Node, value, base graph.Value) (graph.Value, error) {
	gradient := metaOf(value).RequiresGrad || metaOf(base).RequiresGrad
	e := &emitter{graph: f.graph, state: f.state}
	derivative, ok := graph.DerivativeOf(view.Target)
	if !ok || len(view.Outputs) != 1 || metaOf(view.Output(0)).DType != metaOf(base).DType || f.elements(value) != f.elements(base) {
		return nil, refuse("a part of an intermediate is changed through a view (%s)", view.Target)
	}
	// The gradient of a view that only moves elements is its inverse.
	written, err := e.inverse(view, derivative, value, base)
	if err != nil {
		return nil, err
	}
	if written, err = e.stored(written, base); err != nil {
		return nil, err
	}
	metaOf(written).RequiresGrad = gradient
	return written, nil
}

func (f *functionaliser) elements(v graph.Value) int64 {
	return f.graph.Shapes.Product(metaOf(v).Sizes).Hint
}

// checkChanged refuses graphs in which gradients flow through what depends on the memory of inputs that the graph itself writes: backward
// might read it when it has changed.
func (f *functionaliser) checkChanged() error {
	tainted := map[key]bool{}
	for input := range f.changed {
		if input.Meta.RequiresGrad {
			return refuse("the graph changes the input %s, which requires gradients", input.Name)
		}
		tainted[keyOf(input)] = true
	}
	for _, n := range f.graph.Nodes {
		reads := false
		for _, v := range argumentsOf(n) {
			reads = reads || tainted[keyOf(v)] && !updatesStatistics(n, v)
		}
		for i, o := range n.Outputs {
			if reads && o.Meta.RequiresGrad {
				return refuse("gradients flow through an input that the graph changes (%s)", n.Target)
			}
			tainted[keyOf(n.Output(i))] = reads || o.Relation.Kind != graph.RelationNew && tainted[keyOf(o.Relation.Of)]
		}
	}
	return nil
}

// updatesStatistics says whether a node writes the argument without its results depending on it.
func updatesStatistics(n *graph.Node, v graph.Value) bool {
	if n.Target != "aten.batch_norm.default" {
		return false
	}
	for _, mutated := range n.Mutates {
		if graph.SameValue(mutated, v) {
			return true
		}
	}
	return false
}
