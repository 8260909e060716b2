package service

import (
	"fmt"
	"strings"

	"fusee/autograd"
	"fusee/backend"
	"fusee/backend/loop"
	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/symbolic"
	"fusee/trace"
)

// report describes a compilation for people (docs/contracts.md, section 8).
func (s *Service) report(session *trace.Session, c *Compilation, request *request) (*bytecode.Dict, error) {
	function, err := session.Object(request.capture.Function)
	if err != nil {
		return nil, err
	}
	writer := &reporter{session: session, described: function}
	return c.describe(writer), writer.err
}

// describe writes the report of a compilation; one of a lower request has no function, breaks or guards.
func (c *Compilation) describe(writer *reporter) *bytecode.Dict {
	breaks, checks := []symbolic.Break(nil), guards.NewProgram()
	if c.Capture != nil {
		breaks, checks = c.Capture.Breaks, c.Capture.Program
	}
	report := &bytecode.Dict{}
	report.Set("format", int64(1))
	report.Set("function", writer.function())
	action, reason := "entry", bytecode.Object(bytecode.None)
	if listed := writer.breaks(breaks); c.Capture != nil && c.Capture.Code == nil && len(listed.Items) > 0 {
		action, reason = "plain", listed.Items[0]
	}
	report.Set("action", action)
	report.Set("reason", reason)
	report.Set("graphs", writer.graphs(c.Graphs))
	report.Set("breaks", writer.breaks(breaks))
	report.Set("guards", writer.guards(checks))
	report.Set("kernels", writer.kernels(c.Graphs))
	report.Set("recompile", bytecode.None)
	report.Set("times", c.times)
	return report
}

type reporter struct {
	session   *trace.Session
	described *trace.Description // the function; nil for a lower request
	err       error
}

// code is the function's code object; nil without one.
func (r *reporter) code() *bytecode.Code {
	if r.described == nil {
		return nil
	}
	code, _ := trace.Field(r.described.Payload, "code").(*bytecode.Code)
	return code
}

func (r *reporter) function() *bytecode.Dict {
	wired := &bytecode.Dict{}
	name := "graphs of another capture"
	if r.described != nil {
		name = trace.Text(r.described.Payload, "qualname")
	}
	wired.Set("name", name)
	file, line := "", int64(0)
	if code := r.code(); code != nil {
		file, line = code.FileName, int64(code.FirstLine)
	}
	wired.Set("file", file)
	wired.Set("line", line)
	wired.Set("resumes_at", int64(0))
	return wired
}

// place adds a place to a record; the source line comes from the host.
func (r *reporter) place(wired *bytecode.Dict, file string, position bytecode.Position) {
	source := ""
	if file != "" && position.Line > 0 && !strings.HasPrefix(file, "<") {
		text, err := r.session.SourceLine(file, position.Line)
		if err != nil && r.err == nil {
			r.err = err
		}
		source = strings.TrimRight(text, "\n")
	}
	wired.Set("file", file)
	wired.Set("line", int64(max(position.Line, 0)))
	wired.Set("end_line", int64(max(position.EndLine, 0)))
	wired.Set("column", int64(position.Column))
	wired.Set("end_column", int64(position.EndColumn))
	wired.Set("source", source)
}

func (r *reporter) breaks(breaks []symbolic.Break) *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, b := range breaks {
		wired := &bytecode.Dict{}
		message := b.Reason.Message
		if b.Detail != "" {
			message += ": " + b.Detail
		}
		wired.Set("id", b.Reason.ID)
		wired.Set("message", message)
		wired.Set("hint", b.Reason.Hint)
		r.place(wired, b.File, b.Position)
		list.Items = append(list.Items, wired)
	}
	return list
}

func (r *reporter) guards(program *guards.Program) *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	// All guards share their keys, as there are thousands.
	keys := []bytecode.Object{"text", "reason", "file", "line", "end_line", "column", "end_column", "source"}
	for _, described := range program.Describe(r.rootName) {
		line := int64(described.Reason.Line)
		// The line is enough here: the text of it would cost a question for each guard.
		values := []bytecode.Object{described.Text, "", described.Reason.File, line, line, int64(-1), int64(-1), ""}
		wired := &bytecode.Dict{Keys: keys, Values: values}
		list.Items = append(list.Items, wired)
	}
	return list
}

// rootName gives the words for where a guard starts, or for a live object that it compares with.
func (r *reporter) rootName(accessor guards.Accessor) string {
	index, _ := accessor.Argument.(int64)
	code := r.code()
	switch accessor.Kind {
	case "arg":
		if code != nil && int(index) < len(code.LocalsPlusNames) {
			return code.LocalsPlusNames[index]
		}
	case "cell":
		if code != nil && int(index) < len(code.FreeVars()) {
			return code.FreeVars()[index]
		}
	case "global":
		name, _ := accessor.Argument.(string)
		return name
	case "function":
		return r.functionName()
	case "handled":
		return "the exception being handled"
	case "object":
		return r.objectName(trace.ObjectID(index))
	}
	return "<" + accessor.Kind + " " + guards.ConstantText(accessor.Argument) + ">"
}

func (r *reporter) functionName() string {
	if r.described == nil {
		return "<function>"
	}
	return trace.Text(r.described.Payload, "qualname")
}

// objectName writes a live object by the name that the program knows it under, where there is one, or else by its type.
func (r *reporter) objectName(id trace.ObjectID) string {
	object := r.session.Known(id)
	if object == nil {
		return r.belonging(id)
	}
	switch object.Kind {
	case "type", "builtin", "descriptor":
		return trace.Text(object.Payload, "name")
	case "function":
		return trace.Text(object.Payload, "qualname")
	case "module":
		name, _ := object.Payload.(string)
		return name
	case "dtype", "layout", "memory_format":
		name, _ := object.Payload.(string)
		return "torch." + name
	case "dict", "cell":
		return r.belonging(id)
	}
	return "<" + r.objectName(object.TypeID) + " object>"
}

// belonging writes an object as a part of a function: its globals, or a cell of its closure.
func (r *reporter) belonging(id trace.ObjectID) string {
	function := r.session.FunctionWith(id)
	if function == nil {
		return fmt.Sprintf("<object %d>", id)
	}
	name := trace.Text(function.Payload, "qualname")
	for i, cell := range trace.Items(trace.Field(function.Payload, "closure")) {
		if cell == bytecode.Object(int64(id)) {
			return fmt.Sprintf("%s.__closure__[%d]", name, i)
		}
	}
	return name + ".__globals__"
}

func (r *reporter) graphs(graphs []*CompiledGraph) *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, compiled := range graphs {
		g := compiled.Graph
		wired := &bytecode.Dict{}
		wired.Set("name", g.Name)
		wired.Set("text", g.String())
		wired.Set("ops", int64(countOperations(g)))
		wired.Set("nodes", drawnNodes(g))
		outputs := &bytecode.List{Items: []bytecode.Object{}}
		for _, output := range g.Outputs {
			outputs.Items = append(outputs.Items, nodeNames(output)...)
		}
		wired.Set("outputs", outputs)
		if compiled.Why != "" {
			wired.Set("why", compiled.Why)
		}
		if compiled.Trained != nil {
			wired.Set("training", compiled.Trained.describe())
		}
		list.Items = append(list.Items, wired)
	}
	return list
}

func countOperations(g *graph.Graph) int {
	count := 0
	for _, node := range g.Nodes {
		if !node.ChangesState() {
			count++
		}
	}
	return count
}

func drawnNodes(g *graph.Graph) *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, input := range g.Inputs {
		kind := ""
		if input.Kind == graph.Tensor {
			kind = input.Meta.String()
		}
		list.Items = append(list.Items, drawnNode(input.Name, "input", nil, kind, graph.Origin{}))
	}
	for _, node := range g.Nodes {
		var inputs []bytecode.Object
		for _, arg := range node.Args {
			inputs = append(inputs, nodeNames(arg)...)
		}
		for _, keyword := range node.Keywords {
			inputs = append(inputs, nodeNames(keyword.Value)...)
		}
		kind := ""
		if len(node.Outputs) > 0 {
			kind = node.Outputs[0].Meta.String()
		}
		list.Items = append(list.Items, drawnNode(node.Name, node.Target, inputs, kind, node.Origin))
	}
	return list
}

func drawnNode(name, target string, inputs []bytecode.Object, kind string, origin graph.Origin) *bytecode.Dict {
	wired := &bytecode.Dict{}
	wired.Set("name", name)
	wired.Set("target", target)
	wired.Set("inputs", &bytecode.List{Items: append([]bytecode.Object{}, inputs...)})
	wired.Set("type", kind)
	wired.Set("file", origin.File)
	wired.Set("line", int64(origin.Line))
	return wired
}

// nodeNames lists the nodes and inputs that a value reads.
func nodeNames(value graph.Value) []bytecode.Object {
	switch v := value.(type) {
	case *graph.Input:
		return []bytecode.Object{v.Name}
	case *graph.Output:
		return []bytecode.Object{v.Node.Name}
	case graph.List:
		var names []bytecode.Object
		for _, item := range v.Items {
			names = append(names, nodeNames(item)...)
		}
		return names
	}
	return nil
}

// kernels lists the kernels of each graph's plan, and then its library calls.
func (r *reporter) kernels(graphs []*CompiledGraph) *bytecode.List {
	list := &bytecode.List{Items: []bytecode.Object{}}
	for _, compiled := range graphs {
		for _, plan := range compiled.plans() {
			list.Items = append(list.Items, kernelsOf(plan, compiled.Graph.Name)...)
		}
	}
	return list
}

// plans lists the launch plans of a graph.
func (c *CompiledGraph) plans() []*backend.Compiled {
	switch {
	case c.Compiled != nil:
		return []*backend.Compiled{c.Compiled}
	case c.Trained != nil:
		return []*backend.Compiled{c.Trained.ForwardPlan, c.Trained.BackwardPlan}
	}
	return nil
}

func kernelsOf(plan *backend.Compiled, name string) []bytecode.Object {
	var kernels []bytecode.Object
	for _, kernel := range plan.Kernels {
		operations := make([]bytecode.Object, len(kernel.Operations))
		for i, operation := range kernel.Operations {
			operations[i] = operation
		}
		kernels = append(kernels, describedKernel(kernel.Name, name, kernel.Device, kindOfLoop(kernel.Loop), kernel.Source, operations))
	}
	for _, call := range libraryCalls(plan.Plan) {
		kernels = append(kernels, describedKernel(call, name, "library", "aten", "", []bytecode.Object{call}))
	}
	return kernels
}

// describe writes the stages of a differentiated graph, and what is kept from forward to backward.
func (t *TrainedGraph) describe() *bytecode.Dict {
	described := &bytecode.Dict{}
	described.Set("joint", t.Joint.String())
	described.Set("forward", t.Forward.String())
	described.Set("backward", t.Backward.String())
	kept := &bytecode.List{Items: []bytecode.Object{}}
	for i, place := range t.Saved {
		input := t.Backward.Inputs[i]
		wired := &bytecode.Dict{}
		wired.Set("name", input.Name)
		wired.Set("type", input.Meta.String())
		wired.Set("bytes", autograd.Bytes(&input.Meta))
		wired.Set("input", place.Input)
		kept.Items = append(kept.Items, wired)
	}
	described.Set("kept", kept)
	return described
}

func describedKernel(name, graph, target, kind, source string, operations []bytecode.Object) *bytecode.Dict {
	wired := &bytecode.Dict{}
	wired.Set("name", name)
	wired.Set("graph", graph)
	wired.Set("target", target)
	wired.Set("kind", kind)
	wired.Set("ops", &bytecode.List{Items: operations})
	wired.Set("source", source)
	return wired
}

// kindOfLoop tells kernels that fold dimensions from those that compute element by element.
func kindOfLoop(text string) string {
	if strings.Contains(text, " = "+loop.OpReduce.String()+" ") {
		return "reduction"
	}
	return "pointwise"
}

// libraryCalls lists the operators that a plan calls, in order.
func libraryCalls(plan bytecode.Object) []string {
	var calls []string
	for _, item := range trace.Items(trace.Field(plan, "steps")) {
		if step, ok := item.(bytecode.Tuple); ok && len(step) > 2 && step[0] == "aten" {
			calls = append(calls, fmt.Sprintf("aten.%v.%v", step[1], step[2]))
		}
	}
	return calls
}
