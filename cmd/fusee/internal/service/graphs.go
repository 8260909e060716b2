package service

import (
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/backend"
	"fusee/bytecode"
	"fusee/graph"
	"fusee/trace"
	"fusee/trace/wire"
)

const setGradEnabled = "torch._C._set_grad_enabled"

// CompiledGraph is a graph and how it runs.
type CompiledGraph struct {
	Graph    *graph.Graph
	Compiled *backend.Compiled // nil when Python runs the nodes one by one
	Why      string            // why Python runs it
	warnings []string
}

// compileGraph lowers a graph to a launch plan, or leaves it to Python: for another backend, for autograd, or where lowering fails.
func (s *Service) compileGraph(g *graph.Graph, request *request, pythonOnly bool) *CompiledGraph {
	compiled := &CompiledGraph{Graph: g}
	switch {
	case request.python:
		compiled.Why = "another backend was asked for"
	case needsAutograd(g):
		compiled.Why = "gradients are recorded"
	case pythonOnly:
		compiled.Why = "an operation is not in the op table"
	default:
		s.planGraph(compiled, request)
	}
	return compiled
}

func (s *Service) planGraph(compiled *CompiledGraph, request *request) {
	compiler := backend.New(backend.Options{
		Emitters:           s.generators.forDevices(request.architecture),
		RoundIntermediates: s.setting(request, "numerics") == "eager",
	})
	compiled.warnings = s.missingGenerators(compiled.Graph, request)
	plan, err := compiler.Compile(withoutModes(compiled.Graph))
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
		compiled.Compiled = plan
	}
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

// needsAutograd tells graphs whose operations autograd must record.
func needsAutograd(g *graph.Graph) bool {
	for _, node := range g.Nodes {
		for _, output := range node.Outputs {
			if output.Meta.RequiresGrad {
				return true
			}
		}
	}
	return false
}

// withoutModes drops changes of grad mode, which mean nothing where nothing is recorded.
func withoutModes(g *graph.Graph) *graph.Graph {
	plain := *g
	plain.Nodes = nil
	for _, node := range g.Nodes {
		if node.Target != setGradEnabled {
			plain.Nodes = append(plain.Nodes, node)
		}
	}
	return &plain
}

func wireGraphs(graphs []*CompiledGraph) *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, compiled := range graphs {
		list.Items = append(list.Items, compiled.wire())
	}
	return list
}

// wire writes a graph as docs/contracts.md, section 5; the nodes go along only where Python runs them.
func (c *CompiledGraph) wire() *bytecode.Dict {
	wired := c.wireHead()
	if c.Compiled != nil {
		return wired
	}
	writer := newNodeWriter(c.Graph)
	wired.Set("inputs", writer.inputs())
	wired.Set("nodes", writer.nodes())
	wired.Set("outputs", writer.outputs())
	return wired
}

// wireHead writes what graphs have that the host knows the nodes of.
func (c *CompiledGraph) wireHead() *bytecode.Dict {
	wired := &bytecode.Dict{}
	wired.Set("name", c.Graph.Name)
	wired.Set("text", c.Graph.String())
	wired.Set("mutates", mutates(c.Graph))
	if c.Compiled != nil {
		wired.Set("runs", "plan")
		wired.Set("plan", c.Compiled.Plan)
		return wired
	}
	wired.Set("runs", "python")
	wired.Set("plan", bytecode.None)
	return wired
}

func mutates(g *graph.Graph) bool {
	for _, node := range g.Nodes {
		if len(node.Mutates) > 0 {
			return true
		}
	}
	return false
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

func (w *nodeWriter) inputs() *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, input := range w.graph.Inputs {
		kinds := map[graph.InputKind]bytecode.Object{graph.Int: bytecode.Tuple{"int"}, graph.Float: bytecode.Tuple{"float"}}
		kind := kinds[input.Kind]
		if kind == nil {
			kind = wire.WriteMeta(&input.Meta)
		}
		list.Items = append(list.Items, bytecode.Tuple{input.Name, kind})
	}
	return list
}

func (w *nodeWriter) nodes() *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, node := range w.graph.Nodes {
		args := &bytecode.List{Items: []bytecode.Object{}}
		for _, arg := range node.Args {
			args.Items = append(args.Items, w.value(arg))
		}
		keywords := &bytecode.Dict{}
		for _, keyword := range node.Keywords {
			keywords.Set(keyword.Name, w.value(keyword.Value))
		}
		metas := &bytecode.List{Items: []bytecode.Object{}}
		for i := range node.Outputs {
			metas.Items = append(metas.Items, wire.WriteMeta(&node.Outputs[i].Meta))
		}
		var target bytecode.Object = node.Target
		if node.Callee != 0 {
			target = node.Callee
		}
		list.Items = append(list.Items, bytecode.Tuple{node.Name, target, args, keywords, metas})
	}
	return list
}

func (w *nodeWriter) outputs() *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, output := range w.graph.Outputs {
		list.Items = append(list.Items, w.value(output))
	}
	return list
}

func (w *nodeWriter) value(value graph.Value) bytecode.Object {
	switch v := value.(type) {
	case *graph.Input:
		return bytecode.Tuple{"i", int64(v.Index)}
	case *graph.Output:
		return w.output(v)
	case graph.List:
		items := &bytecode.List{Items: []bytecode.Object{}}
		for _, item := range v.Items {
			items.Items = append(items.Items, w.value(item))
		}
		if v.Tuple {
			return bytecode.Tuple{"tuple", items}
		}
		return bytecode.Tuple{"list", items}
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
	for _, symbol := range w.graph.Shapes.Symbols() {
		source := symbol.Source
		switch {
		case symbol.Name != name:
			continue
		case source.Dim < 0:
			return bytecode.Tuple{"i", int64(source.Input)}
		case source.Stride:
			return bytecode.Tuple{"stride", int64(source.Input), int64(source.Dim)}
		}
		return bytecode.Tuple{"size", int64(source.Input), int64(source.Dim)}
	}
	return bytecode.Tuple{bytecode.None}
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
