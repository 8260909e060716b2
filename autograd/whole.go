package autograd

import (
	"maps"
	"slices"

	"fusee/graph"
)

// Whole is a graph that asks for gradients of its own results, with the operators that compute them in the place of the questions.
type Whole struct {
	// Graph records nothing: what backward has gone through is not needed any more.
	Graph *graph.Graph
	// Freed lists the outputs that require gradients and whose history backward has gone through.
	Freed []int
}

// Expand writes the derivatives that a graph asks for into the graph. Its nodes may be torch-level or aten-level, and the graph is not changed. The
// state is the one of the capture. The error is a Refusal where something has no derivative here, or where a history outlives the graph. Decisions
// on sizes that change become guards of the graph's environment, unless there is an error.
func Expand(g *graph.Graph, state graph.State) (*Whole, error) {
	before := g.Shapes.Clone()
	whole, err := expand(g, state)
	if err != nil {
		g.Shapes.Restore(before)
	}
	return whole, err
}

func expand(g *graph.Graph, state graph.State) (*Whole, error) {
	freed, err := freedOutputs(g)
	if err != nil {
		return nil, err
	}
	j, finals, err := wholeJoiner(g, state)
	if err != nil {
		return nil, err
	}
	if err := j.writeWhole(finals); err != nil {
		return nil, err
	}
	j.graph.Canonicalise()
	return &Whole{j.graph, freed}, j.graph.Verify()
}

// wholeJoiner is what writes a graph together with the gradients that it asks for, and the graph's results in functional form.
func wholeJoiner(g *graph.Graph, state graph.State) (*joiner, []graph.Value, error) {
	state.GradMode = false
	d := &differentiation{source: g, state: state, result: &Training{}, overwritten: newOverwritten()}
	if err := d.checkPlainInputs(); err != nil {
		return nil, nil, err
	}
	finals, err := d.functionalUpToGradients()
	if err != nil {
		return nil, nil, err
	}
	j := newJoiner(d)
	j.whole = newWholeStep(d.result.Functional, d.leaves)
	return j, finals, nil
}

// writeWhole writes the operations and the gradients that they ask for.
func (j *joiner) writeWhole(finals []graph.Value) error {
	for _, n := range j.whole.functional.Nodes {
		if err := j.step(n); err != nil {
			return err
		}
	}
	for _, v := range finals {
		j.graph.Outputs = append(j.graph.Outputs, mapped(v, j.replace))
	}
	for i, input := range j.graph.Inputs {
		input.Meta = j.whole.functional.Inputs[i].Meta // the plan has to know where gradients are not to be recorded
	}
	return nil
}

// freedOutputs finds the outputs whose history backward went through, and cannot go through again. Others that require gradients need autograd to record the graph.
func freedOutputs(g *graph.Graph) ([]int, error) {
	var gone []*graph.History
	for i, n := range g.Nodes {
		if n.AsksForGradients() && !n.KeepsHistory() {
			gone = append(gone, g.HistoryOf(graph.Tensors(n.Args[0]), g.Nodes[:i]))
		}
	}
	var freed []int
	for i, v := range g.Outputs {
		if !g.RequiresGrad(v) {
			continue
		}
		_, isInput := rootOf(v).(*graph.Input)
		history := g.HistoryOf([]graph.Value{v}, g.Nodes)
		if isInput || !slices.ContainsFunc(gone, history.MeetsWhatIsFreed) {
			return nil, refuse("an output can still be differentiated")
		}
		freed = append(freed, i)
	}
	return freed, nil
}

// functionalUpToGradients rewrites in-place operations on intermediates up to the last question for gradients, and gives the outputs. What comes
// behind is not differentiated.
func (d *differentiation) functionalUpToGradients() ([]graph.Value, error) {
	lowered, err := d.source.Lower()
	if err != nil {
		return nil, refuse("an operation has no expansion into operators")
	}
	last := 0
	for i, n := range lowered.Nodes {
		if n.AsksForGradients() {
			last = i
		}
	}
	f := newFunctionaliser(d)
	f.whole = true
	for i, n := range lowered.Nodes {
		start := len(f.graph.Nodes)
		if i < last {
			err = f.node(n)
			placeIn(n.Checkpoint, f.graph.Nodes[start:])
		} else if err = checkWritten(n); err == nil {
			err = f.copy(n)
		}
		if err != nil {
			return nil, err
		}
	}
	d.result.Functional, d.leaves = f.graph, map[key][]graph.Value{}
	for _, copies := range f.copies {
		for _, v := range copies {
			d.leaves[keyOf(v)] = copies
		}
	}
	finals := make([]graph.Value, len(lowered.Outputs))
	for i, v := range lowered.Outputs {
		finals[i] = mapped(v, f.current)
	}
	return finals, f.checkUnmoved(lowered.Outputs)
}

// wholeStep is what a joiner knows of a graph that asks for gradients itself.
type wholeStep struct {
	functional *graph.Graph
	// reached marks the nodes that gradients flow back through.
	reached map[*graph.Node]bool
	// stale holds the nodes that read memory which was written since.
	stale map[*graph.Node]bool
	// leaves says of leaves that the graph makes what else stands for them.
	leaves map[key][]graph.Value
	// given holds the gradients that were handed out, each of which has memory of its own.
	given map[key]bool
}

func newWholeStep(functional *graph.Graph, leaves map[key][]graph.Value) *wholeStep {
	w := &wholeStep{functional: functional, leaves: leaves, reached: map[*graph.Node]bool{}, stale: map[*graph.Node]bool{}, given: map[key]bool{}}
	for i, n := range functional.Nodes {
		if n.AsksForGradients() {
			maps.Copy(w.reached, functional.HistoryOf(graph.Tensors(n.Args[0]), functional.Nodes[:i]).Nodes)
		}
	}
	return w
}

// step writes one node of the graph: an operation, or the gradients that it asks for.
func (j *joiner) step(n *graph.Node) error {
	if n.AsksForGradients() {
		return j.answer(n)
	}
	if err := j.forward(n); err != nil {
		return err
	}
	for _, v := range n.Mutates {
		j.whole.outdate(rootOf(v), n)
	}
	return nil
}

// outdate notes that memory was written which operations before have read.
func (w *wholeStep) outdate(memory graph.Value, by *graph.Node) {
	for _, n := range w.functional.Nodes {
		if n == by {
			return
		}
		if n.CreatesHistory() { // what its derivatives read may be any memory that was read before
			w.stale[n] = true
		}
		for _, v := range argumentsOf(n) {
			if graph.SameValue(rootOf(v), memory) && !updatesStatistics(n, v) {
				w.stale[n] = true
			}
		}
	}
}

// answer writes the gradients that a node asks for.
func (j *joiner) answer(n *graph.Node) error {
	before := len(j.graph.Nodes)
	j.current, j.recording = n, n.CreatesHistory()
	defer func() { j.recording = false }()
	j.gradients = map[key]graph.Value{}
	e := j.emitter()
	e.state.Origin = n.Origin
	j.origin = n.Origin
	for k, v := range graph.Tensors(n.Args[0]) {
		if err := j.seedOf(e, j.replace(v), n.Args[2].(graph.List).Items[k]); err != nil {
			return err
		}
	}
	cuts := j.cutsOf(n)
	for _, entry := range slices.Backward(j.tape) {
		for _, result := range entry.results() {
			if gradient := cuts[keyOf(result)]; gradient != nil {
				j.gradients[keyOf(result)] = gradient
			}
		}
		if err := j.backward(entry); err != nil {
			return err
		}
	}
	for k, v := range graph.Tensors(n.Args[1]) {
		found := j.gradientOf(e, v)
		if found == nil {
			return refuse("no gradient reaches tensor %d of those that one is asked of", k)
		}
		owned, err := j.handOut(e, found, n.Output(k), before)
		if err != nil {
			return err
		}
		if j.recording && !j.isTracked(owned) {
			return refuse("a gradient that is differentiated again and depends on nothing")
		}
		j.values[keyOf(n.Output(k))] = owned
	}
	return nil
}

// cutsOf holds the gradients that hooks returned in the place of those that flow to tensors on the way.
func (j *joiner) cutsOf(n *graph.Node) map[key]graph.Value {
	cuts := map[key]graph.Value{}
	tensors, gradients := n.Cuts()
	for k, v := range tensors {
		cuts[keyOf(j.replace(v))] = j.replace(gradients[k])
	}
	return cuts
}

// gradientOf is what has flown to a tensor, nil where nothing has; to a leaf it flows through all that stands for it.
func (j *joiner) gradientOf(e *emitter, v graph.Value) graph.Value {
	copies := j.whole.leaves[keyOf(v)]
	if copies == nil {
		return j.gradients[keyOf(j.replace(v))]
	}
	var sum graph.Value
	for _, one := range copies {
		part := graph.Value(nil)
		if now := j.replace(one); now != nil {
			part = j.gradients[keyOf(now)]
		}
		switch {
		case sum == nil:
			sum = part
		case part != nil:
			sum = e.call("add", sum, part)
		}
	}
	return sum
}

// leaf writes what stands for a leaf that the graph makes: another name of its memory, which gradients flow to.
func (j *joiner) leaf(n *graph.Node) error {
	if j.whole == nil {
		return refuse("a leaf is made in the graph")
	}
	e := j.emitter()
	e.appended = nil
	alias := e.call("detach", j.replace(n.Args[0]))
	if e.err == nil {
		j.values[keyOf(n.Output(0))], j.tracked[keyOf(alias)] = alias, true
	}
	return e.err
}

// seedOf starts with the gradient of an output, which is 1 where none is given.
func (j *joiner) seedOf(e *emitter, output, seed graph.Value) error {
	if seed != nil {
		seed = j.replace(seed)
	} else {
		seed = e.call("ones_like", output)
	}
	if known := j.gradients[keyOf(output)]; known != nil {
		seed = e.call("add", known, seed)
	}
	j.gradients[keyOf(output)] = seed
	return e.err
}

// handOut gives a gradient in memory of its own, laid out as the output of the node that asks for it.
func (j *joiner) handOut(e *emitter, gradient graph.Value, output *graph.Output, before int) (graph.Value, error) {
	o, made := gradient.(*graph.Output)
	if !made || o.Node.Index < before || j.whole.given[keyOf(gradient)] {
		gradient = e.call("clone", gradient)
	}
	owned, err := e.owned(gradient, output)
	if err == nil {
		j.whole.given[keyOf(owned)] = true
	}
	return owned, err
}
