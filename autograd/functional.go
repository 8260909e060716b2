package autograd

import (
	"cmp"
	"slices"
	"strings"

	"fusee/graph"
	"fusee/internal/slice"
)

// functional lowers the graph to aten operators and writes in-place operations on intermediates as new values. In-place operations on the memory
// of inputs stay, since they are effects that the caller sees.
func functional(d *differentiation) error {
	lowered, err := d.source.Lower()
	if err != nil {
		return refuse("an operation has no expansion into operators")
	}
	f := newFunctionaliser(d)
	for _, node := range lowered.Nodes {
		start := len(f.graph.Nodes)
		if err := f.node(node); err != nil {
			return err
		}
		placeIn(node.Checkpoint, f.graph.Nodes[start:])
		d.noteRandom(node)
	}
	if err := f.checkChanged(); err != nil {
		return err
	}
	if err := f.checkUnmoved(lowered.Outputs); err != nil {
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
		if losesGradients(lowered, v, finals[i]) {
			return refuse("an output was overwritten and requires gradients still")
		}
		if f.isSevered(v) {
			return refuse("an output is a view made while gradients were not recorded")
		}
	}
	return d.splitOutputs(finals)
}

// noteRandom notes the devices whose generators a node draws from: where its results are, but for the state of a generator.
func (d *differentiation) noteRandom(n *graph.Node) {
	devices := slice.Map(n.Outputs, func(o graph.OutputInfo) graph.Device { return o.Meta.Device })
	if of, isState := n.Keyword("device"); n.Target == graph.GeneratorStateTarget && isState {
		devices = []graph.Device{of.(graph.Device)}
	}
	for _, device := range devices {
		if n.Random && !slices.Contains(d.result.Random, device.String()) {
			d.result.Random = append(d.result.Random, device.String())
		}
	}
}

// losesGradients says whether an output requires gradients and what stands for it has no history: autograd records zero_ and its like with a gradient of 0.
func losesGradients(source *graph.Graph, output, final graph.Value) bool {
	root := rootOf(output)
	_, isInput := root.(*graph.Input)
	return !isInput && source.RequiresGrad(root) && !metaOf(rootOf(final)).RequiresGrad
}

// isSevered says whether a value, or one that it is another name or a view of, is a view made while gradients were not recorded.
func (f *functionaliser) isSevered(v graph.Value) bool {
	for relation := relationOf(v); relation.Kind != graph.RelationNew; relation = relationOf(v) {
		if f.severed[keyOf(v)] {
			return true
		}
		v = relation.Of
	}
	return false
}

type functionaliser struct {
	graph *graph.Graph
	state graph.State
	// values says what stands for a value of the source now.
	values map[key]graph.Value
	// generation counts how often the memory of a tensor that owns it was rewritten, made in which generation a view was.
	generation, made map[key]int
	changed          map[*graph.Input]bool
	// severed marks views of what requires gradients, made while gradients were not recorded: to autograd they are leaves.
	severed     map[key]bool
	overwritten *overwritten
	// copies holds, of each leaf that the source makes, what stands for it: several where its memory was rewritten in between.
	copies map[key][]graph.Value
	// whole says that backward runs within the graph, so that nothing is drawn again.
	whole bool
	// dense says that something was stored without the gaps that its memory has in the program.
	dense  bool
	failed error                  // of a view that could not be made anew
	given  func(graph.Value) bool // tells values that stand for themselves; nil where inputs alone do
}

func newFunctionaliser(d *differentiation) *functionaliser {
	return &functionaliser{
		graph: &graph.Graph{Name: d.source.Name, Inputs: d.source.Inputs, Shapes: d.source.Shapes}, state: d.state,
		values: map[key]graph.Value{}, generation: map[key]int{}, made: map[key]int{}, changed: map[*graph.Input]bool{},
		severed: map[key]bool{}, overwritten: d.overwritten, copies: map[key][]graph.Value{},
	}
}

// current gives what stands for a value of the source: a view is made anew when the memory behind it was rewritten since.
func (f *functionaliser) current(v graph.Value) graph.Value {
	o, ok := v.(*graph.Output)
	k, relation := keyOf(v), relationOf(v)
	if !ok || f.given != nil && f.values[k] == nil && f.given(v) {
		return v
	}
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
	if f.moved(n) {
		f.failed = cmp.Or(f.failed, f.again(n, n.Target))
		return
	}
	node := copyNode(f.graph, n, f.current)
	for i, o := range n.Outputs {
		v := n.Output(i)
		f.values[keyOf(v)], f.made[keyOf(v)] = node.Output(i), f.generation[keyOf(rootOf(v))]
		if n.MakesLeaf() {
			f.copies[keyOf(v)] = append(f.copies[keyOf(v)], node.Output(i))
			continue
		}
		if n.Unrecorded {
			node.Outputs[i].Meta.RequiresGrad = false
		} else if f.made[keyOf(v)] > 0 && o.Meta.DType.IsDifferentiable() && !strings.HasPrefix(n.Target, "aten.detach.") {
			node.Outputs[i].Meta.RequiresGrad = metaOf(node.Outputs[i].Relation.Of).RequiresGrad
		}
	}
}

func (f *functionaliser) node(n *graph.Node) error {
	if err := f.check(n); err != nil {
		return err
	}
	switch {
	case f.failed != nil:
		return f.failed
	case len(n.Mutates) > 0:
		return f.mutation(n)
	case splitsApart(n):
		return f.splitApart(n)
	case len(n.Outputs) > 0 && n.Outputs[0].Relation.Kind == graph.RelationView:
		f.view(n)
		return nil
	case len(n.Outputs) == 1 && n.Outputs[0].Relation.Kind == graph.RelationSame:
		return nil // another name, which current looks through
	}
	return f.copy(n)
}

// copy appends a node that makes tensors of its own.
func (f *functionaliser) copy(n *graph.Node) error {
	if f.moved(n) {
		return f.again(n, n.Target)
	}
	node := copyNode(f.graph, n, f.current)
	for i := range n.Outputs {
		f.values[keyOf(n.Output(i))] = node.Output(i)
	}
	return nil
}

// check refuses what the passes do not express. Random numbers are drawn again in a replay, on devices whose generators the host can set back.
func (f *functionaliser) check(n *graph.Node) error {
	for i, o := range n.Outputs {
		switch {
		case n.Random && o.Meta.Device.Type != "cpu" && o.Meta.Device.Type != "cuda" && !f.whole:
			return refuse("random numbers on %s (%s)", o.Meta.Device, n.Target)
		case o.Meta.RequiresGrad && o.Meta.DType.IsComplex():
			return refuse("gradients of complex numbers")
		case n.Unrecorded && o.Relation.Kind != graph.RelationNew && o.Meta.RequiresGrad:
			f.severed[keyOf(n.Output(i))] = true
		}
	}
	if n.Recorded() && slices.ContainsFunc(argumentsOf(n), func(v graph.Value) bool { return f.severed[keyOf(v)] }) {
		return refuse("a view made while gradients were not recorded")
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
	case inputs == 0 && reshapes(n):
		return f.reshape(n)
	case inputs == 0 && len(n.Mutates) == 1:
		return f.rewrite(n)
	case inputs < len(n.Mutates):
		return refuse("%s changes an intermediate", n.Target)
	}
	if err := checkWritten(n); err != nil {
		return err
	}
	return f.copy(n)
}

// checkWritten refuses operations that give the memory of an input a history, which outlives the graph.
func checkWritten(n *graph.Node) error {
	writesGradients := func(o graph.OutputInfo) bool { return o.Relation.Kind == graph.RelationSame && o.Meta.RequiresGrad }
	ofInput := func(v graph.Value) bool { _, ok := rootOf(v).(*graph.Input); return ok }
	if !n.Unrecorded && slices.ContainsFunc(n.Outputs, writesGradients) && slices.ContainsFunc(n.Mutates, ofInput) {
		return refuse("gradients flow into the memory of an input (%s)", n.Target)
	}
	return nil
}

// rewrite computes what an in-place operation stores and takes it for the target from here on.
func (f *functionaliser) rewrite(n *graph.Node) error {
	target := n.Mutates[0]
	if n.Unrecorded && !leafMemory(target) && slices.ContainsFunc(n.Outputs, func(o graph.OutputInfo) bool { return o.Meta.RequiresGrad }) {
		return refuse("%s changes, unrecorded, an intermediate that gradients flow through", n.Target)
	}
	e, before, start := f.emitter(n), f.current(target), len(f.graph.Nodes)
	value, err := f.stored(e, n, before)
	if err != nil {
		return err
	}
	m, wanted := metaOf(value), metaOf(target)
	if m.DType != wanted.DType || !f.graph.Shapes.AllEqual(m.Sizes, wanted.Sizes) {
		return refuse("%s stores another type or shape", n.Target)
	}
	if n.Recorded() && overwrites(n) {
		if err := f.checkForgotten(before); err != nil {
			return err
		}
	}
	f.overwritten.note(before, f.graph.Nodes[start:])
	return f.write(e, target, value)
}

// overwrites says whether a node stores what does not depend on what its target held.
func overwrites(n *graph.Node) bool {
	op, known := n.Operator()
	return known && (op.FillsRandomly() || slices.Contains([]string{"copy_", "fill_", "zero_"}, op.Schema.Name))
}

// checkForgotten refuses a value that is overwritten where backward through it raises: autograd hands it a gradient of 0.
func (f *functionaliser) checkForgotten(v graph.Value) error {
	history := f.graph.HistoryOf([]graph.Value{v}, f.graph.Nodes).Nodes
	for _, n := range f.graph.Nodes {
		if _, ok := graph.DerivativeOf(n.Target); history[n] && !ok && n.Function == nil {
			return refuse("%s has no derivative in the table", n.Target)
		}
	}
	return nil
}

// leafMemory says whether a value is a leaf that the graph makes, or another name of it: what is written there unrecorded has no part in its history.
func leafMemory(v graph.Value) bool {
	for relation := relationOf(v); relation.Kind == graph.RelationSame; relation = relationOf(v) {
		v = relation.Of
	}
	o, made := v.(*graph.Output)
	return made && o.Node.MakesLeaf()
}

// emitter appends operations in the place of a node, recorded where that was.
func (f *functionaliser) emitter(n *graph.Node) *emitter {
	state := f.state
	state.GradMode = !n.Unrecorded
	return &emitter{graph: f.graph, state: state}
}

// stored appends the operation that computes what an in-place one stores.
func (f *functionaliser) stored(e *emitter, n *graph.Node, target graph.Value) (graph.Value, error) {
	base, overload, _ := strings.Cut(strings.TrimPrefix(n.Target, "aten."), ".")
	args := make([]graph.Value, len(n.Args))
	for i, arg := range n.Args {
		args[i] = mapped(arg, f.current)
	}
	keywords := make([]graph.Keyword, len(n.Keywords))
	for i, k := range n.Keywords {
		keywords[i] = graph.Keyword{Name: k.Name, Value: mapped(k.Value, f.current)}
	}
	switch {
	case base == "copy_":
		fitted, err := e.fitted(args[1], target)
		if err == nil && graph.SameValue(fitted, args[1]) {
			return e.call("clone", fitted), e.err
		}
		return fitted, err
	case base == "fill_":
		return e.fitted(args[1], target)
	case base == "zero_":
		return e.fitted(int64(0), target)
	case f.fills(n):
		return e.drawn(base, args, keywords)
	}
	for _, candidate := range []string{overload, "default", "Tensor_Tensor", "Tensor_Scalar"} {
		if node, err := f.graph.Call("aten."+strings.TrimSuffix(base, "_")+"."+candidate, args, keywords, e.state); err == nil {
			return e.fitted(node.Output(0), target)
		}
	}
	return nil, refuse("%s on an intermediate", n.Target)
}

// fills says whether a node overwrites its target with random numbers, whatever that held.
func (f *functionaliser) fills(n *graph.Node) bool {
	op, ok := n.Operator()
	return ok && op.FillsRandomly()
}

// write makes a value what a tensor of the source holds. Through a view it is the tensor behind it that changes.
func (f *functionaliser) write(e *emitter, target, value graph.Value) error {
	relation := relationOf(target)
	switch relation.Kind {
	case graph.RelationSame:
		return f.write(e, relation.Of, value)
	case graph.RelationNew:
		return f.store(e, target, value)
	}
	base, err := f.writtenThrough(e, target.(*graph.Output), value, f.current(relation.Of))
	if err != nil {
		return err
	}
	return f.write(e, relation.Of, base)
}

// writtenThrough gives what a tensor holds once a value was stored through a view of it.
func (f *functionaliser) writtenThrough(e *emitter, view *graph.Output, value, base graph.Value) (graph.Value, error) {
	if view.Node.MakesLeaf() || strings.HasPrefix(view.Node.Target, "aten.detach.") {
		return value, nil
	}
	derivative, ok := graph.DerivativeOf(view.Node.Target)
	if ok && metaOf(view).DType == metaOf(base).DType {
		if written, err := e.inverse(view, derivative, value, base, f.graph.Shapes.Equal(f.elements(value), f.elements(base))); err == nil && f.graph.Shapes.AllEqual(metaOf(written).Sizes, metaOf(base).Sizes) {
			return written, nil
		}
	}
	return nil, refuse("a part of an intermediate is changed through a view (%s)", view.Node.Target)
}

func (f *functionaliser) elements(v graph.Value) graph.Size {
	return f.graph.Shapes.Product(metaOf(v).Sizes)
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
	return n.Target == "aten.batch_norm.default" && slices.ContainsFunc(n.Mutates, func(mutated graph.Value) bool { return graph.SameValue(mutated, v) })
}
