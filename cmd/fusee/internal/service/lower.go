package service

import (
	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/trace"
	"fusee/trace/wire"
)

// lower compiles graphs that another capture made. A graph that no plan can run is answered with `runs: "python"`, and the host runs
// the graph that it has.
func (s *Service) lower(message bytecode.Object) (*bytecode.Dict, error) {
	if s.generators == nil {
		return nil, errors.New("a lower request came before hello")
	}
	session, err := trace.NewSession(s.transport, trace.Field(message, "descriptions"))
	if err != nil {
		return nil, err
	}
	request := parseState(message)
	request.capture.State.LeastNorm = s.leastNorm
	compilation := &Compilation{times: &bytecode.Dict{}}
	started := s.clock()
	for _, item := range trace.Items(trace.Field(message, "graphs")) {
		compiled, err := s.lowerGraph(session, item, request)
		if err != nil {
			return nil, err
		}
		compilation.Graphs = append(compilation.Graphs, compiled)
	}
	compilation.time("lower", s.clock().Sub(started))
	result := &bytecode.Dict{}
	result.Set("graphs", wireLowered(compilation.Graphs))
	compilation.Report = compilation.describe(&reporter{session: session})
	report, err := packed(compilation.Report)
	if err != nil {
		return nil, err
	}
	result.Set("report", report)
	s.addWarnings(result, compilation)
	compilation.Result = result
	if s.Observe != nil {
		s.Observe(compilation)
	}
	return result, nil
}

func (s *Service) lowerGraph(session *trace.Session, item bytecode.Object, request *request) (*CompiledGraph, error) {
	g, err := readGraph(session, item)
	compiled := &CompiledGraph{Graph: g}
	switch {
	case errors.Is(err, wire.ErrUnsupported):
		compiled.Why = err.Error()
	case err != nil:
		return nil, err
	default:
		s.planGraph(compiled, request, false)
	}
	return compiled, nil
}

// readGraph reads a graph that the host wrote. With an error that is wire.ErrUnsupported comes what was read before it.
func readGraph(session *trace.Session, item bytecode.Object) (*graph.Graph, error) {
	g := graph.NewGraph(trace.Text(item, "name"))
	var inputs []graph.Value
	for _, wired := range trace.Items(trace.Field(item, "inputs")) {
		input, err := readInput(g, wired)
		if err != nil {
			return g, err
		}
		inputs = append(inputs, input)
	}
	reader := wire.NewNodes(session, g, inputs, false)
	if _, err := reader.Append(trace.Field(item, "nodes")); err != nil {
		return g, err
	}
	for _, wired := range trace.Items(trace.Field(item, "outputs")) {
		output, err := reader.Value(wired)
		if err != nil {
			return g, err
		}
		g.Outputs = append(g.Outputs, output)
	}
	return g, errors.Wrap(g.Verify(), "a graph of the host")
}

func readInput(g *graph.Graph, wired bytecode.Object) (graph.Value, error) {
	fields, ok := wired.(bytecode.Tuple)
	if !ok || len(fields) != 2 {
		return nil, errors.New("an input of a graph has not two fields")
	}
	name, _ := fields[0].(string)
	meta, err := wire.ParseMeta(fields[1])
	if err != nil {
		return nil, errors.Wrapf(wire.ErrUnsupported, "input %s: %v", name, err)
	}
	return g.AddTensor(name, wire.WithoutGradient(meta)), nil
}

// wireLowered writes graphs without their nodes, which the host has.
func wireLowered(graphs []*CompiledGraph) *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, compiled := range graphs {
		list.Items = append(list.Items, compiled.wireHead())
	}
	return list
}
