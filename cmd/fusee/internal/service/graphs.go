package service

import (
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/autograd"
	"fusee/backend"
	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
	"fusee/trace"
	"fusee/trace/wire"
)

// CompiledGraph is a graph and how it runs.
type CompiledGraph struct {
	Graph    *graph.Graph
	Compiled *backend.Compiled // nil when Python runs the nodes one by one
	Trained  *TrainedGraph     // set instead of Compiled where autograd records the graph
	Freed    []int             // the outputs that require gradients, and whose history backward within the graph has gone through
	Autocast bool              // it is called under autocast, which must not cast again what a plan does
	Why      string            // why Python runs it
	warnings []string
	draws    []graph.Draw // of random numbers, in the first plan
}

// TrainedGraph is a differentiated graph and the plans of its two parts.
type TrainedGraph struct {
	*autograd.Training
	ForwardPlan, BackwardPlan *backend.Compiled
}

// compileGraph lowers a graph to a launch plan, or to two where gradients are recorded, or leaves it to Python: for another backend, or where
// differentiation or lowering fails.
func (s *Service) compileGraph(g *graph.Graph, request *request, pythonOnly bool) *CompiledGraph {
	compiled := &CompiledGraph{Graph: g, Autocast: request.capture.State.Autocast}
	switch {
	case request.python:
		compiled.Why = "another backend was asked for"
	case pythonOnly:
		compiled.Why = "an operation is not in the op table"
	case elsewhere(g) != "":
		compiled.Why = "no plan reaches a device of type " + elsewhere(g)
	case g.HasGradients() && (request.derived.from != g || request.derived.training == nil):
		s.expandGraph(compiled, request)
	case g.HasGradients() || needsAutograd(g):
		s.trainGraph(compiled, request)
	case returnsDetached(g):
		compiled.Why = "it returns a view, detached from gradients, of an argument that they flow through"
	default:
		s.planGraph(compiled, request, true)
	}
	return compiled
}

func (s *Service) planGraph(compiled *CompiledGraph, request *request, disjoint bool) {
	compiled.warnings = s.missingGenerators(compiled.Graph, request)
	compiled.Compiled = s.plan(s.drawn(compiled.Graph, request), compiled, request, backend.Options{Disjoint: disjoint})
}

// expandGraph writes the gradients that a graph asks for into it, and lowers it whole.
func (s *Service) expandGraph(compiled *CompiledGraph, request *request) {
	whole, err := s.expand(compiled.Graph, request)
	switch {
	case err != nil:
		compiled.Why = "gradients are asked for: " + errors.UnwrapAll(err).Error()
	case returnsDetached(whole.Graph):
		compiled.Why = "it returns a view, detached from gradients, of an argument that they flow through"
	default:
		compiled.warnings = s.missingGenerators(compiled.Graph, request)
		compiled.Freed = whole.Freed
		compiled.Compiled = s.plan(whole.Graph, compiled, request, backend.Options{Disjoint: true})
	}
}

// trainGraph differentiates a graph and lowers both parts.
func (s *Service) trainGraph(compiled *CompiledGraph, request *request) {
	training, err := s.differentiate(compiled.Graph, request)
	if err != nil {
		compiled.Why = "gradients are recorded: " + errors.UnwrapAll(err).Error()
		return
	}
	compiled.warnings = s.missingGenerators(compiled.Graph, request)
	trained := &TrainedGraph{Training: training}
	if trained.ForwardPlan = s.plan(training.Forward, compiled, request, backend.Options{}); trained.ForwardPlan == nil {
		return
	}
	if trained.BackwardPlan = s.plan(training.Backward, compiled, request, backend.Options{Consumes: true}); trained.BackwardPlan != nil {
		compiled.Trained = trained
	}
}

// derive differentiates a graph ahead of time: what that decides about sizes that change has to be guarded, and the capture ends before gradients
// that are differentiated again where it fails.
func (s *Service) derive(g *graph.Graph, request *request) error {
	derived := derivation{}
	switch {
	case request.python:
	case g.HasGradients():
		if derived.whole, derived.err = s.expand(g, request); derived.err != nil {
			s.deriveAgain(g, request, &derived)
		}
		derived.from = g
	case needsAutograd(g):
		derived.training, derived.err = s.differentiate(g, request)
		derived.from = g
	}
	request.derived = derived
	return derived.err
}

// deriveAgain differentiates a graph with gradients that outlive it, and can be differentiated again.
func (s *Service) deriveAgain(g *graph.Graph, request *request, derived *derivation) {
	frees := func(n *graph.Node) bool { return n.AsksForGradients() && !n.KeepsHistory() }
	if !slices.ContainsFunc(g.Nodes, (*graph.Node).CreatesHistory) || slices.ContainsFunc(g.Nodes, frees) {
		return
	}
	derived.training, derived.err = autograd.DifferentiateAgain(s.drawn(g, request), request.lowered(), s.differentiation(request))
}

func (s *Service) expand(g *graph.Graph, request *request) (*autograd.Whole, error) {
	if request.derived.from == g {
		return request.derived.whole, request.derived.err
	}
	return autograd.Expand(s.drawn(g, request), request.lowered())
}

func (s *Service) differentiate(g *graph.Graph, request *request) (*autograd.Training, error) {
	if request.derived.from == g {
		return request.derived.training, request.derived.err
	}
	return autograd.Differentiate(s.drawn(g, request), request.lowered(), s.differentiation(request))
}

// drawn writes the random numbers of a graph as formulas, where its kernels draw them. A recorded CUDA graph runs with a state of the generator that
// is in memory of the GPU, which library calls know of.
func (s *Service) drawn(g *graph.Graph, request *request) *graph.Graph {
	fused := s.setting(request, "random") == "fused"
	emitters := s.generators.forDevices(request.architecture)
	how := graph.Drawing{Fused: fused, On: func(device string) bool {
		return emitters[device] != nil && (fused || device == "cuda" && !request.libraryDraws)
	}}
	plain := withoutModes(g)
	if drawn, err := plain.Draw(how, request.lowered()); err == nil {
		return drawn
	}
	return plain
}

// differentiation reads the settings of autograd; a trace from before there was a budget has none.
func (s *Service) differentiation(request *request) autograd.Options {
	if budget, given := s.setting(request, "memory_budget").(float64); given {
		return autograd.Options{MemoryBudget: budget}
	}
	return autograd.Options{MemoryBudget: 1}
}

// plan lowers a graph to a launch plan; nil where that fails, and the compiled graph then says why. The options say
// how the plan is called.
func (s *Service) plan(g *graph.Graph, compiled *CompiledGraph, request *request, options backend.Options) *backend.Compiled {
	if compiled.draws == nil {
		compiled.draws = g.Draws()
	}
	options.Emitters = s.generators.forDevices(request.architecture)
	options.RoundIntermediates, options.Batch = s.setting(request, "numerics") == "eager", true
	plan, err := backend.New(options).Compile(g)
	if plan != nil {
		compiled.warnings = append(compiled.warnings, plan.Warnings...)
	}
	switch name, found := kernelWithoutCode(plan); {
	case errors.Is(err, backend.ErrNoCode):
		compiled.warnings = append(compiled.warnings, "kernels could not be compiled, so Python runs graphs: "+withHints(err))
		compiled.Why = err.Error()
	case err != nil:
		compiled.Why = err.Error()
	case found:
		compiled.Why = "there is no code for kernel " + name
	default:
		return plan
	}
	return nil
}

// missingGenerators says for each device type of a graph why no kernels are made for it.
func (s *Service) missingGenerators(g *graph.Graph, request *request) []string {
	var warnings []string
	for _, node := range g.Nodes {
		for _, output := range node.Outputs {
			text := s.generators.missing(output.Meta.Device.Type, request.architecture)
			if text != "" && !slices.Contains(warnings, text) {
				warnings = append(warnings, text)
			}
		}
	}
	return warnings
}

// withHints gives an error's text with what to do about it.
func withHints(err error) string {
	text := err.Error()
	if hint := errors.FlattenHints(err); hint != "" {
		text += " (" + hint + ")"
	}
	return text
}

// kernelWithoutCode finds a kernel of a plan that was not compiled, as happens in replays only.
func kernelWithoutCode(plan *backend.Compiled) (name string, found bool) {
	if plan == nil {
		return "", false
	}
	for _, item := range trace.Items(trace.Field(plan.Plan, "kernels")) {
		kernel, _ := item.(bytecode.Tuple)
		if len(kernel) > 2 && kernel[2] == bytecode.Object(bytecode.Bytes("")) {
			name, _ = kernel[1].(string)
			return name, true
		}
	}
	return "", false
}

// elsewhere is the type of a device that only PyTorch has operators for, such as meta; "" where a graph has no tensor on one.
func elsewhere(g *graph.Graph) string {
	for _, node := range g.Nodes {
		for _, output := range node.Outputs {
			if name := output.Meta.Device.Type; name != "cpu" && name != "cuda" && name != "" {
				return name
			}
		}
	}
	return ""
}

// needsAutograd tells graphs whose operations autograd must record.
func needsAutograd(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Nodes, (*graph.Node).Recorded)
}

// returnsDetached tells graphs with an output that shares the memory of an argument but not its gradients: the views of a launch plan are those
// of as_strided, which autograd follows.
func returnsDetached(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Outputs, g.DetachedFromOwner)
}

// withoutModes drops changes of modes, which mean nothing where nothing is recorded.
func withoutModes(g *graph.Graph) *graph.Graph {
	plain := *g
	plain.Nodes = slice.Filter(g.Nodes, func(node *graph.Node) bool { return !node.ChangesState() })
	return &plain
}

func wireGraphs(graphs []*CompiledGraph) *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, compiled := range graphs {
		list.Items = append(list.Items, compiled.wire())
	}
	return list
}

// wire writes a graph as docs/contracts.md, section 5; nodes and outputs go along only where Python runs them, if only
// for calls whose inputs overlap.
func (c *CompiledGraph) wire() *bytecode.Dict {
	wired := c.wireHead()
	if c.Compiled != nil {
		if writer := newNodeWriter(c.Graph); c.Compiled.Apart || c.Compiled.ReadsGenerator && !c.Autocast {
			writer.into(wired)
			wireCalls(c.Graph, wired)
		} else {
			wired.Set("inputs", writer.inputs())
		}
		if len(c.Freed) > 0 {
			wired.Set("freed", wiredInts(c.Freed))
		}
		return wired
	}
	ran := c.Graph
	if c.Trained != nil {
		ran = c.Trained.Functional
		wired.Set("runs", "training")
		wired.Set("training", c.Trained.wire())
	} else {
		if spans := c.Graph.Checkpoints(); len(spans) > 0 {
			wired.Set("checkpoints", listed(spans, wiredSpan))
		}
		wireCalls(c.Graph, wired)
	}
	newNodeWriter(ran).into(wired)
	return wired
}

// wireCalls writes the calls of Python functions that the nodes were made in, for tracebacks.
func wireCalls(g *graph.Graph, wired *bytecode.Dict) {
	table, position := &bytecode.List{}, map[*graph.Call]int64{nil: -1}
	var place func(*graph.Call) int64
	place = func(call *graph.Call) int64 {
		if _, known := position[call]; !known {
			caller := place(call.Caller)
			position[call] = int64(len(table.Items))
			table.Items = append(table.Items, bytecode.Tuple{call.Function, call.File, int64(call.Line), caller})
		}
		return position[call]
	}
	innermost := listed(g.Nodes, func(node *graph.Node) bytecode.Object { return place(node.Origin.Call) })
	if len(table.Items) > 0 {
		wired.Set("calls", bytecode.Tuple{table, innermost})
	}
}

// wire writes the parts of a differentiated graph as docs/contracts.md, section 5.
func (t *TrainedGraph) wire() *bytecode.Dict {
	wired := bytecode.NewDict(
		"forward", t.ForwardPlan.Plan,
		"results", int64(t.Results),
		"differentiable", listed(t.Differentiable, func(flag bool) bytecode.Object { return flag }),
		"saved", listed(t.Saved, wiredPlace),
		"backward", t.BackwardPlan.Plan,
		"given", listed(t.Backward.Inputs[len(t.Saved):len(t.Backward.Inputs)-len(t.Numbers)], func(input *graph.Input) bytecode.Object { return wire.WriteMeta(&input.Meta) }),
		"gradients", wiredInts(t.Gradients),
		"needs", listed(t.Needs, func(places []int) bytecode.Object { return wiredInts(places) }),
		"linear", t.Linear,
		"changed", wiredInts(t.Changed),
		"random", listed(t.Random, func(device string) bytecode.Object { return device }),
	)
	if len(t.Numbers) > 0 {
		wired.Set("numbers", listed(t.Numbers, wiredSource))
	}
	if t.Outputs == nil {
		wired.Set("outputs", bytecode.None)
		return wired
	}
	outputs := &bytecode.Dict{}
	newNodeWriter(t.Outputs).into(outputs)
	wired.Set("outputs", outputs)
	return wired
}

func wiredPlace(place autograd.Place) bytecode.Object {
	kind := map[bool]string{true: "input", false: "made"}[place.Input]
	return bytecode.Tuple{kind, int64(place.Index)}
}

// listed writes items as a list.
func listed[T any](items []T, wire func(T) bytecode.Object) *bytecode.List {
	return &bytecode.List{Items: slice.Map(items, wire)}
}

func wiredSpan(span graph.Span) bytecode.Object {
	return bytecode.Tuple{int64(span.First), int64(span.End)}
}

func wiredInts[T int | int64](numbers []T) *bytecode.List {
	return listed(numbers, func(n T) bytecode.Object { return int64(n) })
}

// wireHead writes what graphs have that the host knows the nodes of.
func (c *CompiledGraph) wireHead() *bytecode.Dict {
	wired := &bytecode.Dict{}
	wired.Set("name", c.Graph.Name)
	wired.Set("mutates", mutates(c.Graph))
	if c.Graph.Inference {
		wired.Set("inference", true)
	}
	if c.Autocast {
		wired.Set("autocast", true)
	}
	if slices.ContainsFunc(c.Graph.Inputs, changesLayout) {
		wired.Set("changing", true)
	}
	if c.Compiled != nil {
		wired.Set("runs", "plan")
		wired.Set("plan", c.Compiled.Plan)
		return wired
	}
	wired.Set("runs", "python")
	wired.Set("plan", bytecode.None)
	return wired
}

// changesLayout tells inputs whose sizes or strides may differ from call to call.
func changesLayout(input *graph.Input) bool {
	changes := func(size graph.Size) bool { return !size.IsStatic() }
	return slices.ContainsFunc(input.Meta.Sizes, changes) || slices.ContainsFunc(input.Meta.Strides, changes)
}

func mutates(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(node *graph.Node) bool { return len(node.Mutates) > 0 })
}

// nodeWriter writes the node list of a graph.
type nodeWriter struct {
	graph    *graph.Graph
	position map[*graph.Node]int
}

func newNodeWriter(g *graph.Graph) *nodeWriter {
	writer := &nodeWriter{g, map[*graph.Node]int{}}
	for i, node := range g.Nodes {
		writer.position[node] = i
	}
	return writer
}

// into sets the fields of a graph that list its nodes.
func (w *nodeWriter) into(wired *bytecode.Dict) {
	wired.Set("inputs", w.inputs())
	wired.Set("nodes", listed(w.graph.Nodes, w.node))
	wired.Set("outputs", listed(w.graph.Outputs, w.value))
}

func (w *nodeWriter) inputs() *bytecode.List { return listed(w.graph.Inputs, wiredInput) }

func wiredInput(input *graph.Input) bytecode.Object {
	switch input.Kind {
	case graph.Int:
		return bytecode.Tuple{input.Name, bytecode.Tuple{"int"}}
	case graph.Float:
		return bytecode.Tuple{input.Name, bytecode.Tuple{"float"}}
	}
	return bytecode.Tuple{input.Name, wire.WriteMeta(&input.Meta)}
}

func (w *nodeWriter) node(node *graph.Node) bytecode.Object {
	args := listed(node.Args, w.value)
	keywords := &bytecode.Dict{}
	for _, keyword := range node.Keywords {
		keywords.Set(keyword.Name, w.value(keyword.Value))
	}
	metas := listed(node.Outputs, func(output graph.OutputInfo) bytecode.Object { return wire.WriteMeta(&output.Meta) })
	target := bytecode.Object(node.Target)
	switch {
	case node.Function != nil:
		args.Items = append([]bytecode.Object{node.Callee}, args.Items...)
	case node.Callee != 0:
		target = node.Callee
	}
	return bytecode.Tuple{node.Name, target, args, keywords, metas}
}

func (w *nodeWriter) value(value graph.Value) bytecode.Object {
	switch v := value.(type) {
	case *graph.Input:
		return bytecode.Tuple{"i", int64(v.Index)}
	case *graph.Output:
		return w.output(v)
	case graph.List:
		kind := map[bool]string{true: "tuple", false: "list"}[v.Tuple]
		return bytecode.Tuple{kind, listed(v.Items, w.value)}
	case graph.Slice:
		return bytecode.Tuple{"slice", w.value(v.Start), w.value(v.Stop), w.value(v.Step)}
	case graph.DType:
		return bytecode.Tuple{"name", "torch." + v.String()}
	case graph.Layout:
		return bytecode.Tuple{"name", "torch." + string(v)}
	case graph.MemoryFormat:
		return bytecode.Tuple{"name", "torch." + string(v)}
	case graph.Device:
		return bytecode.Tuple{"device", v.String()}
	case graph.Size:
		if v.Expr == nil {
			return bytecode.Tuple{v.Hint}
		}
		return w.expression(v.Expr)
	case graph.Ellipsis:
		return bytecode.Tuple{bytecode.Ellipsis}
	case nil:
		return bytecode.Tuple{bytecode.None}
	}
	return bytecode.Tuple{value}
}

// expression writes a symbolic size over the graph's inputs.
func (w *nodeWriter) expression(e *graph.Expr) bytecode.Object {
	switch e.Op {
	case graph.ExprConstant:
		return bytecode.Tuple{e.Value}
	case graph.ExprSymbol:
		return w.symbol(e.Name)
	}
	name := map[graph.ExprOp]string{graph.ExprAdd: "+", graph.ExprMultiply: "*", graph.ExprFloorDivide: "//", graph.ExprModulo: "%",
		graph.ExprMaximum: "max", graph.ExprMinimum: "min"}[e.Op]
	result := w.expression(e.Args[0])
	for _, arg := range e.Args[1:] {
		result = bytecode.Tuple{name, result, w.expression(arg)}
	}
	return result
}

func (w *nodeWriter) symbol(name string) bytecode.Object {
	symbol, known := slice.Find(w.graph.Shapes.Symbols(), func(symbol graph.Symbol) bool { return symbol.Name == name })
	if !known {
		return bytecode.Tuple{bytecode.None}
	}
	return wiredSource(symbol.Source)
}

// wiredSource says where a graph finds a number among its inputs.
func wiredSource(source graph.SymbolSource) bytecode.Object {
	switch {
	case source.Dim < 0:
		return bytecode.Tuple{"i", int64(source.Input)}
	case source.Stride:
		return bytecode.Tuple{"stride", int64(source.Input), int64(source.Dim)}
	}
	return bytecode.Tuple{"size", int64(source.Input), int64(source.Dim)}
}

// output names a node's result by the path to it in what the call returns.
func (w *nodeWriter) output(v *graph.Output) bytecode.Object {
	wired := bytecode.Tuple{"n", int64(w.position[v.Node])}
	if path, found := pathTo(v.Node.Result, v); found {
		return append(wired, path...)
	}
	return append(wired, int64(v.Index))
}

func pathTo(result graph.Value, wanted *graph.Output) ([]bytecode.Object, bool) {
	switch r := result.(type) {
	case *graph.Output:
		return nil, graph.SameValue(r, wanted)
	case graph.List:
		for k, item := range r.Items {
			if path, found := pathTo(item, wanted); found {
				return append([]bytecode.Object{int64(k)}, path...), true
			}
		}
	}
	return nil, false
}
