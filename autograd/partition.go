package autograd

import (
	"slices"

	"fusee/graph"
	"fusee/internal/slice"
)

// partition cuts the joint graph in two. What does not depend on the gradients of results may run in either part; what backward reads of it is
// kept, or computed again where that is pointwise work on something that is kept. A minimum cut keeps the fewest bytes; a budget keeps fewer.
func partition(d *differentiation) error {
	p := newPartitioner(d)
	kept := p.within(d.options.MemoryBudget)
	if err := p.checkKept(kept); err != nil {
		return err
	}
	if err := p.split(kept); err != nil {
		return err
	}
	p.explain(kept)
	return nil
}

type partitioner struct {
	d       *differentiation
	joint   *graph.Graph
	network *network
	policy  policy
	// late values depend on the gradients of results, or are those of checkpoints computed again, and only backward can compute them.
	late map[key]bool
	// entry and exit are a value's nodes in the network; cutting the edge between them keeps the value.
	entry, exit map[key]int
	order       []graph.Value // values with nodes in the network
	// needed marks nodes of the joint graph that a result, an effect or a gradient depends on; outside marks those that write memory which
	// the caller sees.
	needed map[*graph.Node]bool
	// stored marks early values that an operator of the library reads in backward, so that computing them again is not free.
	stored map[key]bool
}

func newPartitioner(d *differentiation) *partitioner {
	p := &partitioner{d: d, joint: d.result.Joint, late: map[key]bool{}, needed: map[*graph.Node]bool{}, stored: map[key]bool{}}
	for _, input := range p.joint.Inputs[len(d.source.Inputs):] {
		p.late[keyOf(input)] = true
	}
	for _, n := range p.joint.Nodes {
		if n.Recomputed || slices.ContainsFunc(argumentsOf(n), func(v graph.Value) bool { return p.late[keyOf(v)] }) {
			for i := range n.Outputs {
				p.late[keyOf(n.Output(i))] = true
			}
		}
	}
	p.markNeeded()
	return p
}

// markNeeded goes back from the outputs and from what writes memory.
func (p *partitioner) markNeeded() {
	wanted := map[key]bool{}
	for _, v := range p.joint.Outputs {
		wanted[keyOf(v)] = true
	}
	for _, n := range slices.Backward(p.joint.Nodes) {
		used := len(n.Mutates) > 0 || n.Random
		late := false
		for i := range n.Outputs {
			used = used || wanted[keyOf(n.Output(i))]
			late = late || p.late[keyOf(n.Output(i))]
		}
		if !used {
			continue
		}
		p.needed[n] = true
		for _, v := range argumentsOf(n) {
			wanted[keyOf(v)] = true
			if late && !fuses(n) || p.stored[keyOf(n.Output(0))] && isView(n) {
				p.stored[keyOf(v)] = true
			}
		}
	}
}

// fuses says whether the operator becomes part of a kernel that reads its arguments anyway.
func fuses(n *graph.Node) bool {
	op, ok := graph.LookUp(n.Target)
	return ok && (op.Kind == graph.KindPointwise || op.Kind == graph.KindCopy || op.Kind == graph.KindReduction || op.Kind == graph.KindView)
}

func isView(n *graph.Node) bool {
	return len(n.Outputs) > 0 && n.Outputs[0].Relation.Kind == graph.RelationView
}

// repeats says whether backward may compute a node again: pointwise operators, and views, which cost nothing.
func repeats(n *graph.Node) bool {
	op, ok := graph.LookUp(n.Target)
	return ok && len(n.Mutates) == 0 && !n.Random &&
		(op.Kind == graph.KindPointwise || op.Kind == graph.KindCopy || op.Kind == graph.KindView || op.Kind == graph.KindFactory)
}

// value gives an early value its two nodes.
func (p *partitioner) value(v graph.Value) (entry, exit int) {
	k := keyOf(v)
	if _, known := p.entry[k]; !known {
		p.entry[k], p.exit[k] = p.network.node(), p.network.node()
		p.order = append(p.order, v)
		p.network.connect(p.entry[k], p.exit[k], p.price(v))
		if !p.mayRepeat(v) {
			p.network.connect(flowSource, p.entry[k], unlimited)
		}
	}
	return p.entry[k], p.exit[k]
}

// price is what keeping a value costs. Keeping a view means to keep what is behind it, so that it is never the view that is kept, and memory that
// the graph writes is kept where nothing else helps, which is refused. The caller mostly has the inputs and results, so that they cost next to
// nothing; least where autograd keeps them as well, and refuses that the program changes them.
func (p *partitioner) price(v graph.Value) int64 {
	o, isOutput := v.(*graph.Output)
	switch {
	case isOutput && isView(o.Node):
		return unlimited
	case p.isChanged(v):
		return deterrent
	case p.policy.chosen[keyOf(v)] || p.d.read[keyOf(v)] && p.isResult(v):
		return 1
	case isOutput:
		return 2 + Bytes(metaOf(v))*p.policy.scale
	case p.mayChange(v):
		return 3 + Bytes(metaOf(v))*p.policy.scale
	}
	return 2
}

func (p *partitioner) isResult(v graph.Value) bool {
	return slices.ContainsFunc(p.joint.Outputs[:p.d.result.Results], func(result graph.Value) bool { return graph.SameValue(result, v) })
}

// mayChange tells what another operation made, and autograd does not keep: the program may well go on computing in its memory.
func (p *partitioner) mayChange(v graph.Value) bool {
	input, given := v.(*graph.Input)
	if !given || p.policy.everything || p.d.read[keyOf(v)] {
		return false
	}
	meta := p.d.source.Inputs[input.Index].Meta
	return meta.RequiresGrad && meta.Flags&graph.FlagLeaf == 0
}

// isChanged tells memory of inputs that the graph writes.
func (p *partitioner) isChanged(v graph.Value) bool {
	input, given := rootOf(v).(*graph.Input)
	return given && slices.Contains(p.d.result.Changed, input.Index)
}

// mayRepeat says whether backward may compute a value again from what its node reads.
func (p *partitioner) mayRepeat(v graph.Value) bool {
	o, made := v.(*graph.Output)
	switch {
	case !made || p.policy.chosen[keyOf(v)]:
		return false
	case p.policy.everything:
		return repeatsAtAnyCost(o.Node)
	case isView(o.Node):
		return repeats(o.Node)
	}
	// What leaves a checkpoint is kept as it is, lest values within are kept for it.
	return repeats(o.Node) && !p.stored[keyOf(v)] && o.Node.Checkpoint == nil
}

// Bytes is the size of a tensor's elements, with dimensions of size 0 taken as 1.
func Bytes(m *graph.Meta) int64 {
	bytes := int64(m.DType.Bytes())
	for _, size := range m.Sizes {
		bytes *= max(size.Hint, 1)
	}
	return bytes
}

// node connects what a node reads with what it makes, or with the sink where only backward can run it.
func (p *partitioner) node(n *graph.Node) {
	if !p.needed[n] {
		return
	}
	late := false
	for i := range n.Outputs {
		late = late || p.late[keyOf(n.Output(i))]
	}
	for _, v := range argumentsOf(n) {
		if p.late[keyOf(v)] {
			continue
		}
		_, exit := p.value(v)
		if late {
			p.network.connect(exit, flowSink, unlimited)
			continue
		}
		for i := range n.Outputs {
			entry, _ := p.value(n.Output(i))
			p.network.connect(exit, entry, unlimited)
		}
	}
}

// cut lists the values on a minimum cut, inputs first, in the order in which they are made.
func (p *partitioner) cut(policy policy) []graph.Value {
	p.policy, p.network, p.order, p.entry, p.exit = policy, newNetwork(), nil, map[key]int{}, map[key]int{}
	for _, n := range p.joint.Nodes {
		p.node(n)
	}
	for _, v := range p.joint.Outputs[p.d.result.Results:] {
		if !p.late[keyOf(v)] { // such as zeros
			_, exit := p.value(v)
			p.network.connect(exit, flowSink, unlimited)
		}
	}
	reached := p.network.cut()
	var inputs, made []graph.Value
	for _, v := range p.order {
		if !reached[p.entry[keyOf(v)]] || reached[p.exit[keyOf(v)]] {
			continue
		}
		if _, ok := v.(*graph.Input); ok {
			inputs = append(inputs, v)
		} else {
			made = append(made, v)
		}
	}
	return append(inputs, made...)
}

// checkKept refuses to keep memory that the graph writes after it was read.
func (p *partitioner) checkKept(kept []graph.Value) error {
	for _, v := range kept {
		if p.isChanged(v) {
			return refuse("backward reads the input %s, which the graph changes", rootOf(v).(*graph.Input).Name)
		}
	}
	return nil
}

// split makes the two graphs.
func (p *partitioner) split(kept []graph.Value) error {
	r := p.d.result
	results := p.joint.Outputs[:r.Results]
	var extra []graph.Value
	for _, v := range kept {
		input, isInput := v.(*graph.Input)
		at := slices.IndexFunc(results, func(result graph.Value) bool { return graph.SameValue(result, v) })
		switch {
		case isInput:
			r.Saved = append(r.Saved, Place{Input: true, Index: input.Index})
		case at >= 0:
			r.Saved = append(r.Saved, Place{Index: at})
		default:
			r.Saved = append(r.Saved, Place{Index: len(results) + len(extra)})
			extra = append(extra, v)
		}
	}
	forward := newExtraction(p.d.source.Name+"_forward", p.joint)
	given := len(p.d.source.Inputs)
	for _, input := range p.joint.Inputs[:given] {
		forward.values[keyOf(input)] = copyInput(forward.graph, input)
		forward.graph.Inputs[input.Index].Meta.Flags &^= graph.FlagView
	}
	r.Forward = forward.graphOf(append(slices.Clone(results), extra...), func(n *graph.Node) bool {
		return len(n.Mutates) > 0 || n.Random // what is drawn for nobody moves the generator too
	})
	backward := newExtraction(p.d.source.Name+"_backward", p.joint)
	for _, v := range kept {
		backward.input(v, nameOf(v))
	}
	for _, input := range p.joint.Inputs[given:] {
		backward.input(input, input.Name)
	}
	for _, input := range p.joint.Inputs[:given] {
		if input.Kind != graph.Tensor {
			backward.number(input)
			r.Numbers = append(r.Numbers, graph.SymbolSource{Input: input.Index, Dim: -1})
		}
	}
	r.Backward = backward.graphOf(p.joint.Outputs[r.Results:], func(*graph.Node) bool { return false })
	r.Numbers = append(r.Numbers, takeSizes(r.Backward)...)
	return nil
}

// takeSizes gives a graph an int input for each symbol that none of its ints gives yet, and says where the whole graph has it: sizes are not read
// from what is kept, which can end before the graph does.
func takeSizes(g *graph.Graph) []graph.SymbolSource {
	g.Canonicalise()
	g.Shapes = g.Shapes.Clone()
	var sources []graph.SymbolSource
	for _, symbol := range g.UsedSymbols() {
		is := func(input *graph.Input) bool { return input.Kind == graph.Int && input.Size.String() == symbol.Name }
		input, known := slice.Find(g.Inputs, is)
		if !known {
			input = g.AddInt(symbol.Name, g.Shapes.SymbolSize(symbol))
			sources = append(sources, symbol.Source)
		}
		g.Shapes.SetSource(symbol.Name, graph.SymbolSource{Input: input.Index, Dim: -1})
	}
	return sources
}

func nameOf(v graph.Value) string {
	if input, ok := v.(*graph.Input); ok {
		return input.Name
	}
	return graph.FormatValue(v)
}

// extraction copies a part of a graph.
type extraction struct {
	from   *graph.Graph
	graph  *graph.Graph
	values map[key]graph.Value
}

func newExtraction(name string, from *graph.Graph) *extraction {
	part := graph.NewGraph(name)
	part.Shapes = from.Shapes
	return &extraction{from: from, graph: part, values: map[key]graph.Value{}}
}

// input makes a value of the whole graph an input of the part.
func (x *extraction) input(v graph.Value, name string) {
	m := *metaOf(v)
	m.Flags &^= graph.FlagView
	x.values[keyOf(v)] = x.graph.AddTensor(name, m)
}

// number makes an int or float of the whole graph an input of the part.
func (x *extraction) number(input *graph.Input) { x.values[keyOf(input)] = copyInput(x.graph, input) }

// graphOf copies the nodes that the outputs depend on, and those with effects, in their order.
func (x *extraction) graphOf(outputs []graph.Value, effect func(*graph.Node) bool) *graph.Graph {
	wanted := map[key]bool{}
	need := func(v graph.Value) {
		if x.values[keyOf(v)] == nil {
			wanted[keyOf(v)] = true
		}
	}
	for _, v := range outputs {
		need(v)
	}
	chosen := map[*graph.Node]bool{}
	for _, n := range slices.Backward(x.from.Nodes) {
		used := effect(n)
		for i := range n.Outputs {
			used = used || wanted[keyOf(n.Output(i))]
		}
		if !used {
			continue
		}
		chosen[n] = true
		for _, v := range argumentsOf(n) {
			need(v)
		}
	}
	replace := func(v graph.Value) graph.Value { return x.values[keyOf(v)] }
	for _, n := range x.from.Nodes {
		if !chosen[n] {
			continue
		}
		node := copyNode(x.graph, n, replace)
		for i := range n.Outputs {
			if k := keyOf(n.Output(i)); x.values[k] == nil {
				x.values[k] = node.Output(i)
			}
		}
	}
	for _, v := range outputs {
		x.graph.Outputs = append(x.graph.Outputs, x.values[keyOf(v)])
	}
	return x.graph
}
