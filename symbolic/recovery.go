package symbolic

import (
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
)

// What a graph may write before one of its operations raises is kept for the call, so that Python can run the function again, where it is little:
// counters, statistics, the state of the generator.
const (
	keptTensors  = 16
	keptElements = 1 << 14
)

// recovery says how a call of the graph that raises is taken back.
type recovery struct {
	kept   []*graph.Input // inputs that are written before an operation may raise
	random bool           // the generator of the CPU is set back
	// checked says that more is written behind the last operation that may raise: only what such an operation raises is taken back.
	checked bool
	slot    *slot // what is kept
}

// recovery decides how a call of the graph is taken back when it raises; nil where that is not possible.
func (in *Interpreter) recovery() *recovery {
	if in.changesNothingBeforeItRaises() {
		return &recovery{}
	}
	last := in.lastRaising()
	if last < 0 || in.request.Options.AllNodes {
		return nil
	}
	r := &recovery{}
	if !r.collect(in.graph.Nodes[:last+1]) {
		return nil
	}
	rest := &recovery{}
	r.checked = !rest.collect(in.graph.Nodes[last+1:]) || len(rest.kept) > 0 || rest.random
	if r.checked && in.pythonOnly {
		return nil // whatever else it calls may raise the same
	}
	return r
}

// lastRaising is the place of the last node that may raise, -1 for none.
func (in *Interpreter) lastRaising() int {
	for i, node := range slices.Backward(in.graph.Nodes) {
		if node.MayRaise || node.Function != nil || in.pythonOnly && node.AsksForGradients() {
			return i
		}
	}
	return -1
}

// collect notes what nodes change; false where that cannot be kept.
func (r *recovery) collect(nodes []*graph.Node) bool {
	elements := int64(0)
	for _, node := range nodes {
		if changesState(node) {
			continue
		}
		if runsDispatch(node) || setsState(node) || isProgramsOperator(node) || node.Random && !drawsOnCPU(node) {
			return false
		}
		r.random = r.random || node.Random
		for _, v := range node.Mutates {
			input, given := graph.Owner(v).(*graph.Input)
			if !given || slices.Contains(r.kept, input) {
				continue
			}
			r.kept = append(r.kept, input)
			elements += hintedElements(&input.Meta)
			if len(r.kept) > keptTensors || elements > keptElements || !isKeepable(&input.Meta) {
				return false
			}
		}
	}
	return true
}

// drawsOnCPU says whether a node draws from the default generator of the CPU.
func drawsOnCPU(node *graph.Node) bool {
	onCPU := func(o graph.OutputInfo) bool { return o.Meta.Device.Type == "cpu" }
	return len(node.Outputs) > 0 && slices.IndexFunc(node.Outputs, func(o graph.OutputInfo) bool { return !onCPU(o) }) < 0 &&
		!slices.ContainsFunc(node.Keywords, func(k graph.Keyword) bool { return k.Name == "generator" && k.Value != nil })
}

// isProgramsOperator tells operators of the program, which may do what nobody can take back.
func isProgramsOperator(node *graph.Node) bool {
	name, found := strings.CutPrefix(node.Target, "torch.ops.")
	namespace, _, _ := strings.Cut(name, ".")
	return found && !slices.Contains([]string{"aten", "prims", "prim"}, namespace)
}

func isKeepable(m *graph.Meta) bool {
	return m.Device.Type == "cpu" && m.Flags&graph.FlagNotPlain == 0
}

func hintedElements(m *graph.Meta) int64 {
	product := int64(1)
	for _, size := range m.Sizes {
		product *= size.Hint
	}
	return product
}

// keepForRetry decides what becomes of a call of the graph that raises, and keeps what it may have written by then.
func (cg *generator) keepForRetry() error {
	in := cg.in
	r := in.recovery()
	if k := slices.IndexFunc(in.risks, func(r risk) bool { return isProgramsOperator(r.node) }); k >= 0 && in.mayBreak() {
		return in.risks[k].restart("which may raise inside a try statement")
	}
	if r == nil {
		return in.breakAtRisk()
	}
	cg.recovery = r
	if len(r.kept) == 0 && !r.random {
		return nil
	}
	arguments := slice.Map(r.kept, func(input *graph.Input) Value { return in.arguments[input.Index] })
	if err := cg.helper("keep", append([]Value{boolean(r.random)}, arguments...)...); err != nil {
		return err
	}
	r.slot = cg.temp()
	cg.storeSlot(r.slot)
	return nil
}

// positionAtRaising has the call of a graph that is not taken back stand at the line of its last operation that may raise.
func (cg *generator) positionAtRaising() {
	last := cg.in.lastRaising()
	if cg.recovery != nil || last < 0 {
		return
	}
	at := cg.in.graph.Nodes[last].Origin.Call
	for at != nil && at.Caller != nil {
		at = at.Caller
	}
	if at != nil && at.File == cg.base.FileName {
		cg.position = bytecode.Position{Line: at.Line, EndLine: at.Line, Column: -1, EndColumn: -1}
	}
}

// putBack restores what was kept.
func (cg *generator) putBack() {
	if r := cg.recovery; r != nil && r.slot != nil {
		cg.emit(bytecode.PushNull, 0)
		cg.placeholder("helper", "put_back")
		cg.loadSlot(r.slot)
		cg.call(1)
		cg.emit(bytecode.PopTop, 0)
		cg.deleteSlot(r.slot)
	}
}

// forgetKept lets what was kept go once the graph has run.
func (cg *generator) forgetKept() {
	if r := cg.recovery; r != nil && r.slot != nil {
		cg.deleteSlot(r.slot)
	}
}

// retry has the function run again where the call of the graph raises, and with it the numbers ahead where that is for the same exceptions.
func (cg *generator) retry(start, end *bytecode.Instruction) {
	switch r := cg.recovery; {
	case r == nil:
	case !r.checked && len(cg.retries) > 0:
		cg.retries[0].end = end
	default:
		cg.retries = append(cg.retries, retry{start, end, r.class()})
	}
}

// class is that of the exceptions after which the function runs again.
func (r *recovery) class() string {
	if r.checked {
		return "builtins.IndexError"
	}
	return "builtins.Exception"
}

// retry is a part of the code that the whole function runs in place of where it raises.
type retry struct {
	start, end *bytecode.Instruction
	class      string // of the exceptions
}

// retryInPython runs the whole function as it was written when the graph, or a number ahead of it, raises: an error that depends on values (an index out of bounds, a
// division by zero) then comes up at the user's own line, inside the user's own handlers. The graph runs before every side effect, and what it has
// written is put back, so nothing happens twice.
func (cg *generator) retryInPython(r retry) {
	if len(cg.clones) == 0 {
		cg.cloneBase(func(*bytecode.Instruction) bool { return false })
	}
	cg.position = r.end.Position
	handler := cg.emit(bytecode.PushExcInfo, 0)
	cg.placeholder("name", r.class)
	cg.emit(bytecode.CheckExcMatch, 0)
	pass := cg.emit(bytecode.PopJumpForwardIfFalse, 0)
	cg.emit(bytecode.PopTop, 0)
	cg.putBack()
	cg.emit(bytecode.PopExcept, 0)
	cg.emit(bytecode.JumpForward, 0).Jump = cg.clones[cg.info.listing.Instructions[0]]
	pass.Jump = cg.emit(bytecode.Swap, 2)
	cg.emit(bytecode.PopExcept, 0)
	cg.emit(bytecode.Reraise, 0)
	cg.handlers = append(cg.handlers, bytecode.Handler{Start: r.start, End: r.end, Target: handler})
}

// changesNothingBeforeItRaises tells graphs that leave everything as it was where one of their operations raises: only the last one writes
// what was there before, and that after its checks.
func (in *Interpreter) changesNothingBeforeItRaises() bool {
	written := false
	for _, node := range in.graph.Nodes {
		if changesState(node) {
			continue
		}
		if written || node.Random || runsDispatch(node) || setsState(node) {
			return false
		}
		written = node.WritesInputs()
		if written && node.MayRaise && !in.hosted[node] {
			return false // an index that does not fit may be found after others have been written
		}
	}
	return true
}

// risk is a node that may raise where the program may catch it, and the step that made it.
type risk struct {
	node *graph.Node
	step int
}

// restart captures again, up to the node.
func (r risk) restart(why string) error {
	return &restart{step: r.step, reason: &Unsupported{reasonTensorCall, r.node.Target + ", " + why}}
}

// mayBreak says whether the graph may be ended for the sake of exceptions.
func (in *Interpreter) mayBreak() bool {
	return !in.request.Options.FullGraph && !in.request.Options.AllNodes
}

// noteNodes remembers which step made the nodes of an instruction, and which of them may raise inside a handler of the program.
func (in *Interpreter) noteNodes(frame *Frame) {
	for in.nodesNoted = min(in.nodesNoted, len(in.graph.Nodes)); in.nodesNoted < len(in.graph.Nodes); in.nodesNoted++ {
		node := in.graph.Nodes[in.nodesNoted]
		in.madeAt[node] = frame.step
		if node.MayRaise && (in.hosted[node] || raisesInTime(node)) && isTried(frame, isProgramsOperator(node)) {
			in.risks = append(in.risks, risk{node, frame.step})
		}
	}
}

// raisesInTime says whether a node raises where the program called it: an accelerator says later that an index was wrong.
func raisesInTime(node *graph.Node) bool {
	return !slices.ContainsFunc(node.Outputs, func(o graph.OutputInfo) bool { return o.Meta.Device.Type == "cuda" })
}

// isTried says whether a try statement of a frame or its callers sees an exception, or whether one may catch it: libraries run whole models inside
// of try and finally, and what the program's operators of a model do need not end its graph for that.
func isTried(frame *Frame, catches bool) bool {
	for f := frame; f != nil; f = f.back {
		if f.info.hasTry(f.info.index[f.current], catches) {
			return true
		}
	}
	return false
}

// hasTry says whether a try statement is around a place, or one that catches; what leaves a with statement passes the exception on.
func (c *codeInfo) hasTry(position int, catches bool) bool {
	for h := c.handlerFor(position); h != nil; h = c.handlerFor(position) {
		position = c.index[h.Target]
		next := c.listing.Instructions[position+1].Opcode
		if first := h.Target.Opcode; first == bytecode.PushExcInfo && next == bytecode.WithExceptStart || first == bytecode.Copy && next == bytecode.PopExcept {
			continue
		}
		if !catches || !c.isFinally(position) {
			return true
		}
	}
	return false
}

// isFinally tells handlers that raise the exception again at their end, without a look at it.
func (c *codeInfo) isFinally(position int) bool {
	for _, instruction := range c.listing.Instructions[position:] {
		switch instruction.Opcode {
		case bytecode.Reraise:
			return true
		case bytecode.CheckExcMatch, bytecode.CheckEgMatch, bytecode.PopExcept:
			return false
		}
	}
	return false
}

// breakAtRisk ends the capture ahead of the first operation that may raise inside a try statement of the program, as the graph has changed too much by
// then for the function to run again.
func (in *Interpreter) breakAtRisk() error {
	if !in.mayBreak() {
		return nil
	}
	changed := -1
	for i, node := range in.graph.Nodes {
		if changed < 0 && !changesState(node) && (node.WritesInputs() || node.Random || runsDispatch(node) || setsState(node)) {
			changed = i
		}
		k := slices.IndexFunc(in.risks, func(r risk) bool { return r.node == node })
		if k >= 0 && changed >= 0 && (changed < i || !in.hosted[node]) {
			return in.risks[k].restart("which may raise inside a try statement, behind what cannot be taken back")
		}
	}
	return nil
}
