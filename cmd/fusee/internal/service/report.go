package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/autograd"
	"fusee/backend"
	"fusee/backend/loop"
	"fusee/bytecode"
	"fusee/graph"
	"fusee/guards"
	"fusee/internal/slice"
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
	function := writer.function()
	action, reason := "entry", bytecode.Object(bytecode.None)
	if listed := writer.breaks(breaks); c.Capture != nil && c.Capture.Code == nil && len(listed.Items) > 0 {
		action, reason = "plain", listed.Items[0]
	}
	return bytecode.NewDict(
		"format", int64(1),
		"function", function,
		"action", action,
		"reason", reason,
		"graphs", listed(c.Graphs, (*CompiledGraph).describe),
		"breaks", writer.breaks(breaks),
		"guards", writer.guards(checks),
		"kernels", writer.kernels(c.Graphs),
		"recompile", bytecode.None,
		"times", c.times,
	)
}

// bulky are the parts of a report that take most of it, and that nobody reads of most compilations.
var bulky = []bytecode.Object{"graphs", "guards", "kernels"}

// packed is a report with its bulky parts in one bytes object, which the host reads once somebody asks for them.
func packed(report *bytecode.Dict) (*bytecode.Dict, error) {
	head, details := &bytecode.Dict{}, &bytecode.Dict{}
	for i, key := range report.Keys {
		part := head
		if slices.Contains(bulky, key) {
			part = details
		}
		part.Set(key, report.Values[i])
	}
	written, err := bytecode.Marshal(details)
	head.Set("details", bytecode.Bytes(written))
	return head, errors.Wrap(err, "a report cannot be written")
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
	name := "graphs of another capture"
	if r.described != nil {
		name = trace.Text(r.described.Payload, "qualname")
	}
	file, line := "", int64(0)
	if code := r.code(); code != nil {
		file, line = code.FileName, int64(code.FirstLine)
	}
	return bytecode.NewDict("name", name, "file", file, "line", line, "resumes_at", int64(0))
}

// place adds a place to a record; the source line comes from the host.
func (r *reporter) place(wired *bytecode.Dict, file string, position bytecode.Position) {
	wired.Set("file", file)
	wired.Set("line", int64(max(position.Line, 0)))
	wired.Set("end_line", int64(max(position.EndLine, 0)))
	wired.Set("column", int64(position.Column))
	wired.Set("end_column", int64(position.EndColumn))
	wired.Set("source", r.sourceLine(file, position.Line))
}

// sourceLine asks the host for a line, "" where no file holds it.
func (r *reporter) sourceLine(file string, line int) string {
	if file == "" || line <= 0 || strings.HasPrefix(file, "<") {
		return ""
	}
	text, err := r.session.SourceLine(file, line)
	r.err = cmp.Or(r.err, err)
	return strings.TrimRight(text, "\n")
}

func (r *reporter) breaks(breaks []symbolic.Break) *bytecode.List { return listed(breaks, r.oneBreak) }

func (r *reporter) oneBreak(b symbolic.Break) bytecode.Object {
	message := b.Reason.Message
	if b.Detail != "" {
		message += ": " + b.Detail
	}
	wired := bytecode.NewDict("id", b.Reason.ID, "message", message, "hint", b.Reason.Hint)
	r.place(wired, b.File, b.Position)
	return wired
}

func (r *reporter) guards(program *guards.Program) *bytecode.List {
	// All guards share their keys, as there are thousands.
	keys := []bytecode.Object{"text", "reason", "file", "line", "end_line", "column", "end_column", "source"}
	return listed(program.Describe(r.rootName), func(described guards.Described) bytecode.Object {
		line := int64(described.Reason.Line)
		// The line is enough here: the text of it would cost a question for each guard.
		return &bytecode.Dict{Keys: keys, Values: []bytecode.Object{described.Text, "", described.Reason.File, line, line, int64(-1), int64(-1), ""}}
	})
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
	if cell := slices.Index(trace.Items(trace.Field(function.Payload, "closure")), bytecode.Object(int64(id))); cell >= 0 {
		return fmt.Sprintf("%s.__closure__[%d]", name, cell)
	}
	return name + ".__globals__"
}

func (c *CompiledGraph) describe() bytecode.Object {
	g := c.Graph
	wired := bytecode.NewDict(
		"name", g.Name,
		"text", g.String(),
		"ops", int64(len(withoutModes(g).Nodes)),
		"nodes", &bytecode.List{Items: slices.Concat(slice.Map(g.Inputs, drawnInput), slice.Map(g.Nodes, drawnNode))},
		"outputs", &bytecode.List{Items: slice.FlatMap(g.Outputs, nodeNames)},
	)
	if c.Why != "" {
		wired.Set("why", c.Why)
	}
	if c.Trained != nil {
		wired.Set("training", c.Trained.describe())
	}
	if len(c.draws) > 0 && len(c.plans()) > 0 {
		wired.Set("random", listed(c.draws, describedDraw))
	}
	return wired
}

// describedDraw says where random numbers come from.
func describedDraw(d graph.Draw) bytecode.Object {
	from := "the library: " + d.Target
	switch {
	case d.Target == "" && d.Fused:
		from = "kernels, from one seed for each call"
	case d.Target == "":
		from = "kernels, which draw what eager would"
	}
	return bytecode.NewDict("file", d.Origin.File, "line", int64(d.Origin.Line), "from", from)
}

func drawnInput(input *graph.Input) bytecode.Object {
	kind := ""
	if input.Kind == graph.Tensor {
		kind = input.Meta.String()
	}
	return drawn(input.Name, "input", nil, kind, graph.Origin{})
}

func drawnNode(node *graph.Node) bytecode.Object {
	inputs := slice.FlatMap(node.Args, nodeNames)
	for _, keyword := range node.Keywords {
		inputs = append(inputs, nodeNames(keyword.Value)...)
	}
	kind := ""
	if len(node.Outputs) > 0 {
		kind = node.Outputs[0].Meta.String()
	}
	return drawn(node.Name, node.Target, inputs, kind, node.Origin)
}

func drawn(name, target string, inputs []bytecode.Object, kind string, origin graph.Origin) *bytecode.Dict {
	return bytecode.NewDict("name", name, "target", target, "inputs", &bytecode.List{Items: inputs}, "type", kind,
		"file", origin.File, "line", int64(origin.Line))
}

// nodeNames lists the nodes and inputs that a value reads.
func nodeNames(value graph.Value) []bytecode.Object {
	switch v := value.(type) {
	case *graph.Input:
		return []bytecode.Object{v.Name}
	case *graph.Output:
		return []bytecode.Object{v.Node.Name}
	case graph.List:
		return slice.FlatMap(v.Items, nodeNames)
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
	loops := slice.Map(plan.Kernels, func(kernel backend.Kernel) bytecode.Object {
		return describedKernel(kernel.Name, name, kernel.Device, kindOfLoop(kernel.Loop), kernel.Source, kernel.Operations)
	})
	calls := slice.Map(libraryCalls(plan.Plan), func(call string) bytecode.Object {
		return describedKernel(call, name, "library", "aten", "", []string{call})
	})
	return append(loops, calls...)
}

// describe writes the stages of a differentiated graph, and what is kept from forward to backward.
func (t *TrainedGraph) describe() *bytecode.Dict {
	kept := &bytecode.List{}
	for i, place := range t.Saved {
		input := t.Backward.Inputs[i]
		kept.Items = append(kept.Items,
			bytecode.NewDict("name", input.Name, "type", input.Meta.String(), "bytes", autograd.Bytes(&input.Meta), "input", place.Input, "why", t.Why[i]))
	}
	return bytecode.NewDict("joint", t.Joint.String(), "forward", t.Forward.String(), "backward", t.Backward.String(), "kept", kept)
}

func describedKernel(name, graph, target, kind, source string, operations []string) *bytecode.Dict {
	names := listed(operations, func(operation string) bytecode.Object { return operation })
	return bytecode.NewDict("name", name, "graph", graph, "target", target, "kind", kind, "ops", names, "source", source)
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
