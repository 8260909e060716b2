package autograd

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"fusee/graph"
)

// joint writes the forward operations, the richer ones of the derivative table in the place of those whose backward reads more than their results,
// and after them the operators that carry the gradients of the results back to the inputs.
func joint(d *differentiation) error {
	j := newJoiner(d)
	for _, n := range d.laidOut.Nodes {
		if err := j.inTurn(n); err != nil {
			return err
		}
	}
	if err := j.write(); err != nil {
		return err
	}
	d.boundary = len(j.graph.Nodes)
	results := make([]graph.Value, len(d.laidResults))
	for i, v := range d.laidResults {
		results[i] = j.values[keyOf(v)]
	}
	j.graph.Outputs = results
	if err := j.seed(d); err != nil {
		return err
	}
	for _, entry := range slices.Backward(j.tape) {
		if err := j.backward(entry); err != nil {
			return err
		}
	}
	for i, input := range d.source.Inputs {
		if g := j.gradients[keyOf(j.graph.Inputs[i])]; input.Meta.RequiresGrad && g != nil {
			d.result.Gradients = append(d.result.Gradients, i)
			d.result.Needs = append(d.result.Needs, slices.Sorted(maps.Keys(j.sources[keyOf(j.graph.Inputs[i])])))
			j.graph.Outputs = append(j.graph.Outputs, j.laidOutLike(g, j.graph.Inputs[i]))
		}
	}
	if len(d.result.Gradients) == 0 {
		return refuse("no gradient reaches an input")
	}
	d.result.Linear = !slices.ContainsFunc(j.tape, func(en entry) bool { return en.inlined != nil })
	d.result.Joint, d.read = j.graph, j.read
	return nil
}

// entry is an operator that gradients flow back through.
type entry struct {
	node       *graph.Node
	derivative *graph.Derivative
	source     *graph.Node // of the functional graph
	inlined    *inlined    // set instead of the derivative for a torch.autograd.Function
}

// results are the values whose gradients flow back through an entry.
func (en entry) results() []graph.Value {
	if en.inlined != nil {
		return en.inlined.results
	}
	return en.node.Results()
}

// joiner builds the joint graph.
type joiner struct {
	graph *graph.Graph
	state graph.State
	// values says what stands for a value of the functional graph.
	values    map[key]graph.Value
	tracked   map[key]bool
	tape      []entry
	gradients map[key]graph.Value
	// sources says of each value whose gradient is known which differentiable results it flows from; flowing does so of the one that is carried back now.
	sources map[key]map[int]bool
	flowing map[int]bool
	// read marks the values that derivatives read, and the memory that these lie in.
	read      map[key]bool
	postponed []postponed
	again     *recomputation
	// current is the node that is being written.
	current     *graph.Node
	overwritten *overwritten
	whole       *wholeStep   // set where the graph asks for gradients itself
	recording   bool         // gradients that are carried back now are differentiated again
	origin      graph.Origin // the line that asks for gradients, then
}

func newJoiner(d *differentiation) *joiner {
	j := &joiner{graph: graph.NewGraph(d.source.Name + "_joint"), state: d.state, values: map[key]graph.Value{},
		tracked: map[key]bool{}, gradients: map[key]graph.Value{}, read: map[key]bool{}, sources: map[key]map[int]bool{}, again: newRecomputation(), overwritten: d.overwritten}
	j.graph.Shapes = d.source.Shapes
	for _, input := range d.source.Inputs {
		copied := copyInput(j.graph, input)
		j.values[keyOf(input)], j.tracked[keyOf(copied)] = copied, input.Meta.RequiresGrad
	}
	return j
}

// copyInput gives a graph an input like that of another one, which requires no gradient.
func copyInput(to *graph.Graph, input *graph.Input) *graph.Input {
	switch input.Kind {
	case graph.Int:
		return to.AddInt(input.Name, input.Size)
	case graph.Float:
		return to.AddFloat(input.Name)
	}
	return to.AddTensor(input.Name, withoutGradient(input.Meta))
}

// withoutGradient drops what only autograd cares about.
func withoutGradient(m graph.Meta) graph.Meta {
	m.RequiresGrad = false
	m.Flags &^= graph.FlagParameter | graph.FlagLeaf | graph.FlagGradFn | graph.FlagHooked
	return m
}

func (j *joiner) replace(v graph.Value) graph.Value { return j.values[keyOf(v)] }

func (j *joiner) isTracked(v graph.Value) bool { return j.tracked[keyOf(v)] }

func (j *joiner) emitter() *emitter {
	state := j.state
	state.Origin = j.origin
	e := &emitter{graph: j.graph, state: state, tracked: j.isTracked, postpone: j.postpone}
	if j.recording {
		e.appended = j.record
	}
	return e
}

// backwardEmitter appends what carries gradients back through an operation of a checkpoint, or of none.
func (j *joiner) backwardEmitter(checkpoint *graph.Checkpoint) *emitter {
	e := j.emitter()
	if checkpoint != nil {
		e.read = func(v graph.Value) graph.Value { return j.recomputed(v, checkpoint) }
	}
	return e
}

// forward writes a node of the functional graph; what stands for it lies in the same checkpoint.
func (j *joiner) forward(n *graph.Node) error {
	start := len(j.graph.Nodes)
	j.current = n
	err := j.operation(n)
	if err == nil {
		j.overwritten.follow(n, n, j.replace)
	}
	placeIn(n.Checkpoint, j.graph.Nodes[start:])
	return err
}

// operation copies a node of the functional graph, or writes what stands for it where gradients flow through it.
func (j *joiner) operation(n *graph.Node) error {
	if n.MakesLeaf() {
		return j.leaf(n)
	}
	recorded := slices.ContainsFunc(n.Outputs, func(o graph.OutputInfo) bool { return o.Meta.RequiresGrad }) && j.differentiates(n)
	reached := slices.ContainsFunc(argumentsOf(n), func(v graph.Value) bool { return j.isTracked(j.replace(v)) })
	if recorded && !reached {
		return refuse("gradients begin at %s", n.Target)
	}
	if n.Function != nil {
		return j.function(n, recorded)
	}
	if recorded {
		derivative, ok := graph.DerivativeOf(n.Target)
		if !ok {
			return refuse("%s has no derivative in the table", n.Target)
		}
		if derivative.Instead != "" {
			return j.instead(n, derivative)
		}
	}
	node := copyNode(j.graph, n, j.replace)
	for i := range node.Outputs {
		j.values[keyOf(n.Output(i))] = node.Output(i)
		j.tracked[keyOf(node.Output(i))] = recorded && n.Outputs[i].Meta.RequiresGrad
		node.Outputs[i].Meta = withoutGradient(node.Outputs[i].Meta)
	}
	if recorded {
		derivative, _ := graph.DerivativeOf(n.Target)
		j.keep(node, derivative)
	}
	return nil
}

// differentiates says whether gradients may flow back through a node of the functional graph.
func (j *joiner) differentiates(n *graph.Node) bool { return j.whole == nil || j.whole.reached[n] }

// keep puts an operator on the tape.
func (j *joiner) keep(n *graph.Node, derivative *graph.Derivative) {
	j.tape = append(j.tape, entry{node: n, derivative: derivative, source: j.current})
}

// instead evaluates what stands for a node; every operator of it is recorded in its turn.
func (j *joiner) instead(n *graph.Node, derivative *graph.Derivative) error {
	names, err := parameters(n, j.replace)
	if err != nil {
		return err
	}
	e := j.emitter()
	e.appended = j.record
	value, err := e.evaluate(derivative.Instead, names)
	if err != nil {
		return err
	}
	if list, ok := value.(graph.List); ok && len(list.Items) > 0 {
		value = list.Items[0]
	}
	m, isTensor := graph.MetaOf(value)
	wanted := &n.Outputs[0].Meta
	if !isTensor || len(n.Outputs) != 1 || m.DType != wanted.DType || !j.graph.Shapes.AllEqual(m.Sizes, wanted.Sizes) || !j.graph.Shapes.AllEqual(m.Strides, wanted.Strides) {
		return refuse("%s gives another result where gradients are wanted", n.Target)
	}
	j.values[keyOf(n.Output(0))] = value
	return nil
}

// record puts an operator on the tape when gradients flow through it, and has its origin be that of the operator it stands for.
func (j *joiner) record(n *graph.Node) error {
	op, known := n.Operator()
	if !slices.ContainsFunc(argumentsOf(n), j.isTracked) || known && op.StopsGradients() || isConstant(n) {
		return nil
	}
	derivative, ok := graph.DerivativeOf(n.Target)
	switch {
	case !ok:
		return refuse("%s has no derivative in the table", n.Target)
	case derivative.Instead != "":
		return refuse("%s stands for an operator and has none that stands for it", n.Target)
	}
	all := derivative.OfAllResults() || strings.HasSuffix(schemaReturns(n), "[]")
	for i, o := range n.Outputs { // further results are such as total weights and statistics
		j.tracked[keyOf(n.Output(i))] = o.Meta.DType.IsDifferentiable() && (i == 0 || all)
	}
	j.keep(n, derivative)
	return nil
}

// isConstant tells operators whose results do not follow their arguments: comparisons, and those that fill what is like an argument.
func isConstant(n *graph.Node) bool {
	op, known := n.Operator()
	differentiable := func(o graph.OutputInfo) bool { return o.Meta.DType.IsDifferentiable() }
	return known && op.Kind == graph.KindFactory || !slices.ContainsFunc(n.Outputs, differentiable)
}

// seed adds an input for the gradient of each differentiable result.
func (j *joiner) seed(d *differentiation) error {
	for i, v := range d.laidResults {
		if !d.result.Differentiable[i] {
			continue
		}
		result := j.values[keyOf(v)]
		m := withoutGradient(*metaOf(result))
		m.Offset = graph.Static(0)
		m.Flags = 0
		j.sources[keyOf(result)] = map[int]bool{len(j.gradients): true}
		j.gradients[keyOf(result)] = j.graph.AddTensor("gradient"+strconv.Itoa(i), m)
	}
	if len(j.gradients) == 0 {
		return refuse("no result requires gradients")
	}
	return nil
}

// backward appends what carries the gradients of an operator's results to its arguments.
func (j *joiner) backward(en entry) error {
	n := en.node
	gradients, results := graph.List{}, graph.List{}
	reached := false
	j.flowing = map[int]bool{}
	for _, result := range en.results() {
		g := j.gradients[keyOf(result)]
		reached = reached || g != nil
		maps.Copy(j.flowing, j.sources[keyOf(result)])
		gradients.Items, results.Items = append(gradients.Items, g), append(results.Items, result)
	}
	if !reached {
		return nil
	}
	if j.whole != nil && j.whole.stale[en.source] {
		return refuse("memory that %s read was written before gradients were asked for", n.Target)
	}
	start := len(j.graph.Nodes)
	if err := j.through(en, gradients, results); err != nil {
		return err
	}
	j.noteRead(start)
	return j.checkRead(en, start)
}

// through appends what carries the gradients of an operator's results, some of which may be missing, to its arguments.
func (j *joiner) through(en entry, gradients, results graph.List) error {
	if j.recording && (en.inlined != nil || en.node.Checkpoint != nil || en.derivative.Once) {
		return refuse("the gradient of %s has no derivative here", en.node.Target)
	}
	if en.inlined != nil {
		return j.functionBackward(en, gradients.Items)
	}
	n := en.node
	names, err := parameters(n, func(v graph.Value) graph.Value { return v })
	if err != nil {
		return err
	}
	single := strings.HasSuffix(schemaReturns(n), "[]")
	if !single && !en.derivative.OfAllResults() {
		if gradients.Items[0] == nil {
			return refuse("only a further result of %s is used where gradients flow", n.Target)
		}
		if slices.ContainsFunc(gradients.Items[1:], func(v graph.Value) bool { return v != nil }) {
			return refuse("gradients flow into a further result of %s", n.Target)
		}
	}
	names["grad"], names["grads"], names["result"], names["results"] = gradients.Items[0], gradients, results.Items[0], results
	return j.distribute(en, names)
}

func schemaReturns(n *graph.Node) string {
	op, ok := n.Operator()
	if !ok {
		return ""
	}
	return op.Schema.Returns
}

// distribute evaluates the formulas of the parameters that gradients flow to.
func (j *joiner) distribute(en entry, names scope) error {
	op, _ := en.node.Operator()
	evaluated := map[string]graph.Value{}
	for _, p := range op.Schema.Parameters {
		if !slices.ContainsFunc(graph.Tensors(names[p.Name]), j.isTracked) {
			continue
		}
		formula, ok := en.derivative.Of(p.Name, j.recording)
		if !ok {
			return refuse("%s has no derivative with respect to %s", en.node.Target, p.Name)
		}
		text := formula.Under(j.state)
		value, known := evaluated[text]
		if !known {
			var err error
			if value, err = j.backwardEmitter(en.node.Checkpoint).evaluate(text, names); err != nil {
				return err
			}
			evaluated[text] = value
		}
		if list, isList := value.(graph.List); isList && len(formula.Parameters) > 1 {
			value = list.Items[slices.Index(formula.Parameters, p.Name)]
		}
		if err := j.accumulate(names[p.Name], value); err != nil {
			return err
		}
	}
	return nil
}

// accumulate adds a gradient to that of an argument, or item by item to those of a list.
func (j *joiner) accumulate(argument, gradient graph.Value) error {
	if list, ok := argument.(graph.List); ok {
		items, isList := gradient.(graph.List)
		if !isList || len(items.Items) != len(list.Items) {
			return refuse("a list has another number of gradients")
		}
		for i, item := range list.Items {
			if err := j.accumulate(item, items.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if !j.isTracked(argument) {
		return nil
	}
	if j.again.err != nil {
		return j.again.err
	}
	e := j.emitter()
	gradient = e.fit(gradient, metaOf(argument))
	if known := j.gradients[keyOf(argument)]; known != nil {
		gradient = e.call("add", known, gradient)
	}
	j.gradients[keyOf(argument)] = gradient
	if j.sources[keyOf(argument)] == nil {
		j.sources[keyOf(argument)] = map[int]bool{}
	}
	maps.Copy(j.sources[keyOf(argument)], j.flowing)
	return e.err
}
