package symbolic

import (
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
	"fusee/trace"
)

// Rewriting turns the end of a capture into code objects.
//
// A capture that reached the function's end becomes one code object T: call the graph, apply the side effects, return the value.
//
// A graph break in frame d (0 is the captured function, d > 0 are inlined ones) becomes T, one step for each inlined frame, and one
// continuation. T and the steps are copies of the user's code that enter at the instruction where their frame stands, so that exceptions
// meet the user's own handlers and tracebacks show the user's own lines. The innermost step runs the unsupported instruction and packs its
// variables and stack; each caller adds its own; T hands them to the continuation, which resumes all frames, innermost first, and is
// captured as one function. Hence one break costs one more graph, at any depth.

// generatorFor starts T.
func (in *Interpreter) generatorFor(f *Frame) *generator {
	cg := &generator{builder: newBuilder(f.code, f.info), in: in, top: f, parts: &breakParts{}, captured: map[int]*slot{}, built: map[Value]*slot{}, outputs: map[*Tensor]*slot{}, numbers: map[*Number]*slot{}, building: map[Value]bool{}, completed: map[*Function]bool{}}
	for k := 0; k < f.parameters; k++ {
		cg.params = append(cg.params, cg.adopt(k))
	}
	return cg
}

// finishReturn writes T for a capture that reached the end.
func (in *Interpreter) finishReturn(f *Frame, value Value) error {
	if step, open := in.openGuard(); open {
		return &restart{step: step, reason: &Unsupported{reasonGlobalState, "a mode stays on"}}
	}
	if err := in.settleInferenceMode(); err != nil {
		return err
	}
	cg := in.generatorFor(f)
	cg.position = f.current.Position
	err := cg.writeEffects()
	if err == nil {
		err = cg.load(value)
	}
	if err != nil {
		return in.rebuildElsewhere(f, err)
	}
	if err := in.abandoned(cg.built); err != nil {
		return err
	}
	if err := cg.handThrough(value); err != nil {
		return err
	}
	cg.emit(bytecode.ReturnValue, 0)
	return in.finishCode(cg)
}

// handThrough makes a tensor that the whole function was given, and does nothing but return, an output of the graph: another backend is to see
// each graph that was asked for, even where it computes nothing.
func (cg *generator) handThrough(value Value) error {
	in := cg.in
	options := in.request.Options
	if !options.AllNodes || !options.FullGraph || len(in.effects) > 0 {
		return nil
	}
	if lazy, ok := value.(*Lazy); ok && lazy.value == nil {
		if tensor, err := in.refersToTensor(lazy.reference); err != nil || !tensor {
			return err
		}
	}
	value, err := in.opened(value)
	if err != nil {
		return err
	}
	if tensor, ok := value.(*Tensor); ok && tensor.class == nil && tensor.id != 0 && !tensor.wraps() {
		if _, err := in.tensorValue(tensor); err != nil {
			return err
		}
		cg.output(tensor)
	}
	return nil
}

func (in *Interpreter) refersToTensor(reference trace.Reference) (bool, error) {
	id, ok := reference.(trace.ObjectID)
	if !ok {
		return false, nil
	}
	description, err := in.session.Object(id)
	return err == nil && description.Kind == "tensor", err
}

// rebuildElsewhere turns a value that Python cannot be given into a break at the step that made it.
func (in *Interpreter) rebuildElsewhere(f *Frame, err error) error {
	var stuck *cannotRebuild
	if !errors.As(err, &stuck) {
		var stop *Unsupported
		if errors.As(err, &stop) {
			return errors.Newf("the captured state cannot be handed back to Python: %s", stop.Error())
		}
		return err
	}
	if stuck.step == 0 {
		return errors.Newf("the captured state cannot be handed back to Python: %s", stuck.what)
	}
	return &restart{step: stuck.step, reason: &Unsupported{reasonReconstruct, stuck.what}}
}

// writeEffects applies side effects in the order in which the program made them.
func (cg *generator) writeEffects() error {
	for _, e := range cg.in.effects {
		if err := e.apply(cg); err != nil {
			return err
		}
	}
	if cg.in.state.GradMode != cg.in.initial.GradMode {
		cg.callState(setGradEnabled, cg.in.state.GradMode)
	}
	return cg.writeAutocast()
}

// takeCaptures makes parameters of what the guards hand over. What the code has no use for is let go at once, as it may be all that keeps an
// object alive which the program has deleted.
func (cg *generator) takeCaptures() {
	for k := 0; k < cg.in.program.Captures(); k++ {
		s := cg.captured[k]
		if s == nil {
			s = &slot{name: ".c" + integerText(k), kind: bytecode.KindLocal, original: -1}
			cg.deleteSlot(s)
		}
		cg.parameters = append(cg.parameters, s)
	}
}

// finishCode adds the prologue, which is known last, and makes the result.
func (in *Interpreter) finishCode(cg *generator) error {
	if err := in.chosenApart(cg.outputs); err != nil {
		return err
	}
	if err := in.reshapedApart(cg.outputs); err != nil {
		return err
	}
	if err := in.hooksApart(cg.order); err != nil {
		return err
	}
	in.changedApart()
	in.guardShapes()
	body := cg.builder.output
	cg.builder.output = nil
	cg.position = bytecode.Position{Line: cg.base.FirstLine, EndLine: cg.base.FirstLine, Column: 0, EndColumn: 0}
	if first := cg.info.listing.Instructions[0]; first.Opcode == bytecode.CopyFreeVars {
		cg.emit(bytecode.CopyFreeVars, first.Arg)
	}
	cg.emit(bytecode.Resume, 0)
	for _, id := range in.templates {
		cg.placeholder("object", int64(id))
		cg.emit(bytecode.PopTop, 0)
	}
	called, err := cg.callGraph()
	if err != nil {
		return err
	}
	if called || in.derivation.asked { // nothing may be left of gradients, but autograd may refuse them
		if err := in.derive(); err != nil {
			return err
		}
	}
	cg.takeCaptures()
	cg.builder.output = append(cg.builder.output, body...)
	for _, r := range cg.retries {
		cg.retryInPython(r)
	}
	code, err := cg.finish()
	if err != nil {
		return err
	}
	result := &Result{Code: code, Captures: in.program.Captures(), Program: in.program, Breaks: in.notes, Warnings: in.warnings, Frame: in.request.Function}
	if called {
		result.Graph = in.graph
		result.PythonOnly = in.pythonOnly
	}
	result.Continuations, result.Steps = cg.parts.continuations, cg.parts.steps
	in.result = result
	return nil
}

// callGraph computes numbers, calls the graph and stores its outputs; false when nothing of the graph is needed.
func (cg *generator) callGraph() (bool, error) {
	in := cg.in
	called := len(cg.order) > 0 || hasEffects(in.graph) || mayRaise(in.graph) || in.request.Options.AllNodes && computes(in.graph)
	if called {
		in.addOutputs(cg.order)
	}
	for _, argument := range in.arguments {
		cg.prepareNumber(argument)
	}
	if called {
		if err := cg.keepForRetry(); err != nil {
			return false, err
		}
	}
	start := len(cg.builder.output)
	if err := cg.writeNumbers(); err != nil {
		return false, err
	}
	if len(cg.numberOrder) > 0 {
		end := cg.emit(bytecode.Nop, 0)
		cg.retries = append(cg.retries, retry{cg.builder.output[start], end, "builtins.Exception"})
	}
	if !called {
		return false, nil
	}
	start, definition := len(cg.builder.output), cg.position
	cg.positionAtRaising()
	cg.emit(bytecode.PushNull, 0)
	cg.placeholder("graph", int64(0))
	for _, argument := range in.arguments {
		if err := cg.load(argument); err != nil {
			return false, err
		}
	}
	cg.call(len(in.arguments))
	cg.position = definition
	end := cg.emit(bytecode.Nop, 0)
	cg.retry(cg.builder.output[start], end)
	cg.storeOutputs()
	cg.forgetKept()
	return true, nil
}

// addOutputs gives the graph its outputs and makes inputs of the numbers that it needs.
func (in *Interpreter) addOutputs(tensors []*Tensor) {
	for _, t := range tensors {
		in.graph.Outputs = append(in.graph.Outputs, t.value)
	}
	in.graph.Canonicalise()
	in.placeSymbols()
}

// storeOutputs takes the graph's outputs apart.
func (cg *generator) storeOutputs() {
	if len(cg.order) == 0 {
		cg.emit(bytecode.PopTop, 0)
		return
	}
	cg.emit(bytecode.UnpackSequence, len(cg.order))
	for _, t := range cg.order {
		cg.storeSlot(cg.outputs[t])
	}
}

// computes tells graphs that do more than change torch's state, which rewritten code sets by itself.
func computes(g *graph.Graph) bool {
	for _, node := range g.Nodes {
		if !changesState(node) {
			return true
		}
	}
	return false
}

// mayRaise tells graphs that the program may see raise even when no output is used.
func mayRaise(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Nodes, func(node *graph.Node) bool { return node.MayRaise })
}

// hasEffects tells graphs that change something even when no output is used.
func hasEffects(g *graph.Graph) bool {
	for _, node := range g.Nodes {
		if len(node.Mutates) > 0 || node.Random || runsDispatch(node) || setsState(node) {
			return true
		}
	}
	return false
}

// breakParts are the code objects beside T.
type breakParts struct {
	continuations, steps []Code
}

// resultMark stands for a value that the instruction pushes when it runs.
type resultMark struct{}

func (resultMark) typeName() string { return "result" }

// finishBreak writes T, the steps and the continuation for a break at the frame's current instruction.
func (in *Interpreter) finishBreak(f *Frame, reason *Unsupported) error {
	if err := in.settleInferenceMode(); err != nil {
		return err
	}
	in.note(f, reason)
	frames := []*Frame{}
	for at := f; at != nil; at = at.back {
		frames = append([]*Frame{at}, frames...)
	}
	if err := in.keepGenerators(frames); err != nil {
		return err
	}
	if reason.Reason == reasonException || reason.Detail == tracebackWanted {
		keepForTraceback(frames)
	}
	cg := in.generatorFor(frames[0])
	cg.position = frames[0].current.Position
	if err := cg.writeEffects(); err != nil {
		return in.rebuildElsewhere(f, err)
	}
	rewriter := &rewriter{in: in, frames: frames, parts: cg.parts, loop: in.leaving}
	if err := rewriter.writeTop(cg); err != nil {
		return in.rebuildElsewhere(f, err)
	}
	if err := in.abandoned(cg.built); err != nil {
		return err
	}
	in.leaveSharedNode(f, reason, cg.order)
	return in.finishCode(cg)
}

// rewriter writes the pieces of one break.
type rewriter struct {
	in      *Interpreter
	frames  []*Frame // outermost first
	parts   *breakParts
	exits   []exit     // of an inlined frame that broke
	loop    *plainLoop // that Python runs, where the innermost frame is at its head
	failure error
}

func (r *rewriter) innermost() int { return len(r.frames) - 1 }

// outermost is the first frame that goes on behind the break. A continuation that put frames together only returns what they come to, so
// the next continuation does without it: breaks in a loop then lead to the same code again.
func (r *rewriter) outermost() int {
	if r.innermost() > 0 && r.frames[0].code.FileName == continuationFile {
		return 1
	}
	return 0
}

// catches tells whether a handler in frame k or deeper may swallow an exception of the unsupported instruction.
func (r *rewriter) catches(k int) bool {
	if r.loop != nil {
		return true // somewhere in the loop, and it may return
	}
	return slices.ContainsFunc(r.frames[k:], func(f *Frame) bool { return f.handlerFor(f.info.index[f.current]) != nil })
}

// physical tells stack entries that are Python objects to hand over, or stand for one: NULLs are made anew.
func physical(value Value) bool {
	_, isNull := value.(null)
	return !isNull
}

// handedOver is the object that stands for a stack entry: for a handler's mark the exception that it handles.
func handedOver(value Value) Value {
	if marker, ok := value.(*exceptionMarker); ok {
		return marker.exception
	}
	return value
}

// handedOverCount is how many values hold a frame's variables and stack.
func (r *rewriter) handedOverCount(f *Frame) int {
	count := len(bound(f))
	for _, value := range f.stack {
		if physical(value) {
			count++
		}
	}
	return count
}

// state lists the values that frame k needs to stand at its instruction: variables, stack, and what its caller's adapter holds.
func (r *rewriter) state(k int) []Value {
	f := r.frames[k]
	var values []Value
	for _, index := range bound(f) {
		values = append(values, f.locals[index])
	}
	for _, value := range f.stack {
		if physical(value) {
			values = append(values, handedOver(value))
		}
	}
	if k < r.innermost() {
		if adapter := r.frames[k+1].adapter; adapter != nil && adapter.instead != nil {
			values = append(values, adapter.instead)
		}
	}
	return values
}

// writeTop writes the body of T: it restores frame 0 and runs its instruction.
func (r *rewriter) writeTop(cg *generator) error {
	var all []Value
	for k := range r.frames {
		all = append(all, r.state(k)...)
	}
	held := make([]*slot, len(all))
	for i, value := range all {
		if err := cg.load(value); err != nil {
			return err
		}
		held[i] = cg.temp()
		cg.storeSlot(held[i])
	}
	r.forget(cg, held)
	own := len(r.state(0))
	return r.enter(cg.builder, 0, held[:own], held[own:])
}

// forget unbinds what T holds beside the frame's own variables: parameters that the program has deleted, what the guards handed over, and objects that only the frame's stack holds, such as a generator that a loop takes from and that ends with the loop.
func (r *rewriter) forget(cg *generator, held []*slot) {
	f := r.frames[0]
	live := f.info.liveAt(f.info.index[f.current], f.code)
	for k, value := range f.locals[:f.parameters] {
		if slot := cg.locals[k]; value == nil || strings.HasPrefix(slot.name, ".") && !live[k] {
			cg.deleteSlot(slot)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(cg.captured)) {
		cg.deleteSlot(cg.captured[k])
	}
	stored := map[*slot]bool{}
	for _, i := range cg.builder.output {
		if i.Opcode == bytecode.StoreFast {
			stored[cg.slots[i]] = true
		}
	}
	for _, slot := range cg.temporary {
		if stored[slot] && !slices.Contains(held, slot) {
			cg.loadConst(bytecode.None) // a branch may not have stored anything
			cg.storeSlot(slot)
		}
	}
}

// enter restores frame k from the given variables and runs what stands for its instruction, ahead of a whole copy of the base code:
// handlers and the loops behind them find that as it always was.
func (r *rewriter) enter(b *builder, k int, own, deeper []*slot) error {
	f := r.frames[k]
	r.restore(b, f, own)
	first := len(b.output)
	after := r.standIn(b, k, own, deeper)
	r.cloneBehind(b, f, first)
	for _, write := range after {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// restore sets a frame's variables and stack from the given state.
func (r *rewriter) restore(b *builder, f *Frame, own []*slot) {
	b.position = f.current.Position
	variables := bound(f)
	for i, index := range variables {
		b.restoreVariable(index, own[i])
	}
	r.restoreStack(b, f.stack, own[len(variables):])
	for i, s := range own[:r.handedOverCount(f)] {
		if i >= len(variables) || s != b.locals[variables[i]] {
			b.deleteSlot(s)
		}
	}
}

// cloneBehind appends the base code and puts what was written from first on under the handler that covers the frame's instruction.
func (r *rewriter) cloneBehind(b *builder, f *Frame, first int) {
	last := len(b.output)
	b.cloneBase(func(*bytecode.Instruction) bool { return false })
	if handler := f.handlerFor(f.info.index[f.current]); handler != nil {
		row := bytecode.Handler{Start: b.output[first], End: b.output[last], Target: b.clones[handler.Target], Depth: handler.Depth, PushLasti: handler.PushLasti}
		b.handlers = append([]bytecode.Handler{row}, b.handlers...)
	}
	b.position = f.current.Position
}

// instructionStart is where the frame's instruction begins: a call's keyword names and PRECALL belong to it.
func (r *rewriter) instructionStart(f *Frame) *bytecode.Instruction {
	list := f.info.listing.Instructions
	at := f.info.index[f.current]
	if f != r.frames[r.innermost()] || f.current.Opcode != bytecode.Call {
		return f.current
	}
	if at > 0 && list[at-1].Opcode == bytecode.Precall {
		at--
	}
	if len(f.keywords) > 0 && at > 0 && list[at-1].Opcode == bytecode.KwNames {
		at--
	}
	return list[at]
}

func (r *rewriter) restoreStack(b *builder, stack []Value, held []*slot) {
	next := 0
	for _, value := range stack {
		if !physical(value) {
			b.emit(bytecode.PushNull, 0)
			continue
		}
		b.loadSlot(held[next])
		next++
		if _, handled := value.(*exceptionMarker); handled {
			b.emit(bytecode.PushExcInfo, 0)
			b.emit(bytecode.PopTop, 0)
		}
	}
}

// standIn writes what runs instead of frame k's instruction: the unsupported one itself, or the call of the next step. The returned
// functions write the code behind the copy of the base code.
func (r *rewriter) standIn(b *builder, k int, own, deeper []*slot) []func() error {
	if k < r.innermost() {
		return r.writeNested(b, k, own, deeper)
	}
	if r.loop != nil {
		return r.writeLoop(b, k)
	}
	f := r.frames[k]
	list := f.info.listing.Instructions
	for at := f.info.index[r.instructionStart(f)]; list[at] != f.current; at++ {
		b.cloneOne(list[at])
	}
	return r.writeUnsupported(b, k)
}

// writeUnsupported writes the instruction itself and the ways on from it.
func (r *rewriter) writeUnsupported(b *builder, k int) []func() error {
	f := r.frames[k]
	original := f.current
	nullFirst := original.Opcode == bytecode.LoadMethod
	if nullFirst {
		b.emit(bytecode.LoadAttr, original.Arg)
	} else {
		b.cloneOne(original)
	}
	clone := b.output[len(b.output)-1]
	if endsFlow(original.Opcode) {
		return nil
	}
	branches := original.Jump != nil && original.Opcode != bytecode.JumpForward
	onward := b.emit(bytecode.JumpForward, 0)
	exits := []func() error{func() error {
		stack := r.stackAfter(f, false)
		return r.leave(b, k, &exit{frame: f, source: onward, stack: stack, nullFirst: nullFirst, target: r.following(f), index: 0, indexed: branches})
	}}
	if branches {
		exits = append(exits, func() error {
			return r.leave(b, k, &exit{frame: f, source: clone, stack: r.stackAfter(f, true), target: original.Jump, index: 1, indexed: true})
		})
	}
	return exits
}

// exit is one way on from the unsupported instruction.
type exit struct {
	frame     *Frame                // as it is there
	source    *bytecode.Instruction // whose jump leads to the exit
	stack     []Value
	nullFirst bool
	target    *bytecode.Instruction // of the original code, where the frame goes on
	index     int
	indexed   bool // the instruction has two ways on
}

func (r *rewriter) following(f *Frame) *bytecode.Instruction {
	at := f.info.index[f.current] + 1
	if at < len(f.info.listing.Instructions) {
		return f.info.listing.Instructions[at]
	}
	return nil
}

// stackAfter is the logical stack once the instruction has run: what lies below its operands, and its results.
func (r *rewriter) stackAfter(f *Frame, jump bool) []Value {
	op, arg := f.current.Opcode, f.current.Arg
	effect, err := bytecode.StackEffect(op, arg, jump)
	if err != nil {
		effect = 0
	}
	if op == bytecode.Call {
		effect = -arg - 1 // CPython's table splits a call's effect between PRECALL and CALL
	}
	depth := len(f.stack) + effect
	pops := popCount(op, arg, jump)
	kept := append([]Value{}, f.stack[:max(len(f.stack)-pops, 0)]...)
	for len(kept) < depth {
		kept = append(kept, resultMark{})
	}
	if op == bytecode.LoadMethod {
		kept[len(kept)-2] = null{}
	}
	if op == bytecode.LoadGlobal && arg&1 != 0 {
		kept[len(kept)-2] = null{}
	}
	return kept
}

// popCount is how many stack entries an instruction takes before it pushes; entries below stay as they are.
func popCount(op bytecode.Opcode, arg int, jump bool) int {
	switch op {
	case bytecode.Call:
		return arg + 2
	case bytecode.CallFunctionEx:
		return 3 + arg&1
	case bytecode.BinaryOp, bytecode.CompareOp, bytecode.BinarySubscr, bytecode.IsOp, bytecode.ContainsOp, bytecode.StoreAttr, bytecode.DeleteSubscr, bytecode.ImportName:
		return 2
	case bytecode.StoreSubscr, bytecode.MatchClass:
		return 3
	case bytecode.EndAsyncFor, bytecode.PrepReraiseStar, bytecode.CheckEgMatch:
		return 2
	case bytecode.MakeFunction:
		return 1 + bits.OnesCount8(uint8(arg))
	case bytecode.BuildTuple, bytecode.BuildList, bytecode.BuildSet, bytecode.BuildString, bytecode.BuildSlice:
		return arg
	case bytecode.BuildMap:
		return 2 * arg
	case bytecode.BuildConstKeyMap, bytecode.RaiseVarargs:
		return arg + 1
	case bytecode.FormatValue:
		return 1 + arg>>2&1
	case bytecode.ForIter:
		if jump {
			return 1
		}
		return 0
	case bytecode.JumpIfTrueOrPop, bytecode.JumpIfFalseOrPop:
		if jump {
			return 0
		}
		return 1
	case bytecode.Send:
		if jump {
			return 2
		}
		return 1
	case bytecode.GetLen, bytecode.MatchMapping, bytecode.MatchSequence, bytecode.MatchKeys, bytecode.ImportFrom, bytecode.WithExceptStart, bytecode.LoadBuildClass,
		bytecode.LoadGlobal, bytecode.LoadName, bytecode.LoadFast, bytecode.LoadDeref, bytecode.LoadClosure, bytecode.LoadClassderef, bytecode.DeleteFast, bytecode.DeleteDeref,
		bytecode.DeleteGlobal, bytecode.DeleteName:
		return 0
	case bytecode.ListAppend, bytecode.SetAdd, bytecode.ListExtend, bytecode.SetUpdate, bytecode.DictUpdate, bytecode.DictMerge:
		return 1
	case bytecode.MapAdd:
		return 2
	case bytecode.CheckExcMatch:
		return 1
	case bytecode.SetupAnnotations, bytecode.LoadAssertionError, bytecode.LoadConst, bytecode.PushNull, bytecode.Copy, bytecode.GetAnext:
		return 0
	}
	return 1
}

// writeNested calls the next step in place of frame k's call; what it returns is packed state, or the callee's result when a handler in
// the callee took over.
func (r *rewriter) writeNested(b *builder, k int, own, deeper []*slot) []func() error {
	step := r.stepCode(k + 1)
	b.emit(bytecode.PushNull, 0)
	b.placeholder("step", int64(step))
	for _, s := range deeper {
		b.loadSlot(s)
		b.deleteSlot(s)
	}
	b.call(len(deeper))
	f := r.frames[k]
	adapter := r.frames[k+1].adapter
	if !r.catches(k + 1) {
		onward := b.emit(bytecode.JumpForward, 0)
		return []func() error{func() error { return r.leaveNested(b, k, onward, own) }}
	}
	result := b.temp()
	b.storeSlot(result)
	b.emit(bytecode.PushNull, 0)
	b.placeholder("helper", "is_state")
	b.loadSlot(result)
	b.call(1)
	packed := b.emit(bytecode.PopJumpForwardIfTrue, 0)
	b.loadSlot(result)
	applyAdapter(b, adapter, own)
	// Plain Python goes on behind the call.
	resume := b.emit(bytecode.JumpForward, 0)
	return []func() error{func() error {
		if following := r.following(f); following != nil {
			resume.Jump = b.clones[following]
		}
		landing := b.emit(bytecode.Nop, 0)
		packed.Jump = landing
		b.loadSlot(result)
		onward := b.emit(bytecode.JumpForward, 0)
		return r.leaveNested(b, k, onward, own)
	}}
}

// applyAdapter replaces the callee's result on the stack by what the caller's instruction makes of it.
func applyAdapter(b *builder, adapter *adapter, own []*slot) {
	switch {
	case adapter.discard:
		b.emit(bytecode.PopTop, 0)
	case adapter.instead != nil:
		b.emit(bytecode.PopTop, 0)
		b.loadSlot(own[len(own)-1])
	case adapter.nullFirst:
		b.emit(bytecode.PushNull, 0)
		b.emit(bytecode.Swap, 2)
	}
}

// leave packs the innermost frame's variables and stack: T hands them to a continuation, a step returns them.
func (r *rewriter) leave(b *builder, k int, e *exit) error {
	f := e.frame
	landing := b.emit(bytecode.Nop, 0)
	e.source.Jump = landing
	stack := e.stack
	if e.nullFirst {
		stack = append(append([]Value{}, stack[:len(stack)-2]...), stack[len(stack)-1])
	}
	held := r.saveStack(b, stack)
	if deleted := deletes(f, e.target); deleted >= 0 { // what goes on deletes it once more
		b.loadConst(bytecode.None)
		b.storeSlot(b.locals[deleted])
	}
	b.emit(bytecode.PushNull, 0)
	if k == 0 {
		if err := r.placeContinuation(b, f, e); err != nil {
			return err
		}
	} else {
		b.placeholder("helper", "pack")
		if e.indexed {
			b.loadConst(int64(e.index))
		}
	}
	arguments := append(r.variableSlots(b, f), held...)
	count := len(arguments)
	if k == 0 {
		arguments = r.resumeOrder(f, arguments)
	} else if e.indexed {
		count++
	}
	b.loadSlots(arguments)
	for _, s := range held {
		b.deleteSlot(s)
	}
	b.call(count)
	b.emit(bytecode.ReturnValue, 0)
	if k > 0 {
		r.exits = append(r.exits, *e)
	}
	return nil
}

// variableSlots are the base code's variables that hold a value.
func (r *rewriter) variableSlots(b *builder, f *Frame) []*slot {
	var slots []*slot
	for _, index := range bound(f) {
		slots = append(slots, b.locals[index])
	}
	return slots
}

// saveStack takes the objects off the stack into variables and returns them, deepest first; handlers that are being left are popped, and
// the exceptions that they handle kept. No instruction can pop a NULL, so NULLs sink to the bottom, where the frame's end clears them.
func (r *rewriter) saveStack(b *builder, stack []Value) []*slot {
	var held []*slot
	nulls := 0
	for i := len(stack) - 1; i >= 0; i-- {
		if _, isNull := stack[i].(null); isNull {
			nulls++
			continue
		}
		if nulls > 0 {
			b.emit(bytecode.Swap, nulls+1)
		}
		s := b.temp()
		if _, marker := stack[i].(*exceptionMarker); marker {
			b.emit(bytecode.PushNull, 0)
			b.placeholder("name", "sys.exception")
			b.call(0)
			b.storeSlot(s)
			b.emit(bytecode.PopExcept, 0)
		} else {
			b.storeSlot(s)
		}
		held = append([]*slot{s}, held...)
	}
	return held
}

// placeContinuation pushes the continuation of a break in the captured function itself.
func (r *rewriter) placeContinuation(b *builder, f *Frame, e *exit) error {
	code, err := r.resumeCode(f, e.target, e.stack)
	if err != nil {
		return err
	}
	b.placeholder("continuation", int64(len(r.parts.continuations)))
	r.parts.continuations = append(r.parts.continuations, Code{code, f.code.Name, r.globalsOf(f)})
	return nil
}

// globalsOf is the id of an inlined frame's globals, 0 where they are those of the captured function.
func (r *rewriter) globalsOf(f *Frame) int64 {
	if f.function.globals == r.frames[0].function.globals {
		return 0
	}
	return int64(f.function.globals.object.id)
}

// leaveNested adds frame k's own state to what the step below returned, which is on top of the stack.
func (r *rewriter) leaveNested(b *builder, k int, onward *bytecode.Instruction, own []*slot) error {
	f := r.frames[k]
	landing := b.emit(bytecode.Nop, 0)
	onward.Jump = landing
	inner := b.temp()
	b.storeSlot(inner)
	if k < r.outermost() {
		return r.passOn(b, inner)
	}
	held := r.saveStack(b, f.stack)
	arguments := append([]*slot{inner}, append(r.variableSlots(b, f), held...)...)
	if adapter := r.frames[k+1].adapter; adapter.instead != nil {
		arguments = append(arguments, own[len(own)-1])
	}
	if k == 0 {
		return r.continueMerged(b, arguments)
	}
	b.emit(bytecode.PushNull, 0)
	b.placeholder("helper", "pack")
	returnCall(b, arguments)
	return nil
}

// passOn hands the outermost frame's own packed state to the continuation.
func (r *rewriter) passOn(b *builder, packed *slot) error {
	if r.outermost() == r.innermost() {
		return r.continueMerged(b, []*slot{packed})
	}
	return r.continueMerged(b, r.unpackState(b, r.outermost(), packed))
}

// continueMerged calls the continuation of all frames.
func (r *rewriter) continueMerged(b *builder, arguments []*slot) error {
	code, err := r.mergedCode()
	if err != nil {
		return err
	}
	b.emit(bytecode.PushNull, 0)
	b.placeholder("continuation", int64(len(r.parts.continuations)))
	r.parts.continuations = append(r.parts.continuations, Code{code, code.Name, 0})
	returnCall(b, arguments)
	return nil
}

// returnCall passes the arguments to the callable on the stack and returns its result.
func returnCall(b *builder, arguments []*slot) {
	b.loadSlots(arguments)
	b.call(len(arguments))
	b.emit(bytecode.ReturnValue, 0)
}

// stepCode writes the step of frame k and returns its index.
func (r *rewriter) stepCode(k int) int {
	f := r.frames[k]
	b := newBuilder(f.code, f.info)
	b.position = f.current.Position
	own := r.stateParameters(b, k)
	var deeper []*slot
	for j := k + 1; j <= r.innermost(); j++ {
		for range r.state(j) {
			deeper = append(deeper, b.parameter(".d"+integerText(len(deeper))))
		}
	}
	b.emit(bytecode.Resume, 0)
	index := len(r.parts.steps)
	r.parts.steps = append(r.parts.steps, Code{})
	if err := r.enter(b, k, own, deeper); err != nil && r.failure == nil {
		r.failure = err
	}
	code, err := b.finish()
	if err != nil && r.failure == nil {
		r.failure = err
	}
	r.parts.steps[index] = Code{code, f.code.Name, r.globalsOf(f)}
	return index
}

// resumeCode writes a function that goes on in a frame at a given instruction: its parameters are the bound variables and the stack.
func (r *rewriter) resumeCode(f *Frame, target *bytecode.Instruction, stack []Value) (*bytecode.Code, error) {
	b := newBuilder(f.code, f.info)
	return r.writeResume(b, f, target, stack, func() { b.emit(bytecode.Resume, 0) })
}

// writeResume writes such a function behind what begin writes, which comes first in its body.
func (r *rewriter) writeResume(b *builder, f *Frame, target *bytecode.Instruction, stack []Value, begin func()) (*bytecode.Code, error) {
	b.position = f.current.Position
	var cells []int
	cellSlots := map[int]*slot{}
	for _, index := range bound(f) {
		if inPlace(f, index) {
			b.adopt(index)
			if f.code.LocalsPlusKinds[index]&bytecode.KindCell != 0 {
				cells = append(cells, index)
				cellSlots[index] = b.locals[index]
			}
			continue
		}
		cells = append(cells, index)
	}
	for _, index := range cells {
		if cellSlots[index] == nil {
			cellSlots[index] = b.parameter(".v" + integerText(index))
		}
	}
	held := []*slot{}
	for _, value := range stack {
		if physical(value) {
			held = append(held, b.parameter(".s"+integerText(len(held))))
		}
	}
	begin()
	if deleted := deletes(f, target); deleted >= 0 {
		b.deleteSlot(b.locals[deleted])
	}
	for _, index := range cells {
		b.restoreVariable(index, cellSlots[index])
		if cellSlots[index] != b.locals[index] && readsAllVariables(f.code) {
			b.deleteSlot(cellSlots[index])
		}
	}
	r.restoreStack(b, stack, held)
	for _, s := range held {
		b.deleteSlot(s)
	}
	entry := b.emit(bytecode.JumpForward, 0)
	b.cloneBase(func(*bytecode.Instruction) bool { return false })
	if target == nil {
		return nil, errors.New("the bytecode ends behind a break")
	}
	entry.Jump = b.clones[target]
	return b.finish()
}

// mergedCode writes the continuation of a break in an inlined frame: it calls the outermost frame's caller code, which calls the next
// one in the place of its call, and so on to the innermost frame; captured as one function they become one graph.
func (r *rewriter) mergedCode() (*bytecode.Code, error) {
	first := r.outermost()
	b := newBuilder(nil, nil)
	b.name = r.frames[first].code.Name
	packed := b.parameter(".state")
	if first == r.innermost() {
		b.emit(bytecode.Resume, 0)
		if err := r.resumeInnermost(b, packed); err != nil {
			return nil, err
		}
	} else if err := r.resumeCallers(b, first, packed); err != nil {
		return nil, err
	}
	b.emit(bytecode.ReturnValue, 0)
	if r.failure != nil {
		return nil, r.failure
	}
	return b.finish()
}

// resumeCallers takes the states of the frames apart and goes on in the outermost one.
func (r *rewriter) resumeCallers(b *builder, first int, packed *slot) error {
	arguments := r.stateParameters(b, first)
	b.emit(bytecode.Resume, 0)
	for k := first + 1; k < r.innermost(); k++ {
		variables := r.unpackState(b, k, packed)
		packed = variables[0]
		arguments = append(arguments, variables[1:]...)
	}
	return r.callCaller(b, first, append(arguments, packed))
}

// callCaller calls the code that goes on in frame k, whose call gives what the frames below it come to.
func (r *rewriter) callCaller(b *builder, k int, arguments []*slot) error {
	code, err := r.callerCode(k)
	if err != nil {
		return err
	}
	r.callStep(b, r.frames[k], code, arguments)
	return nil
}

// callerCode writes a function that goes on in frame k at its call, under the handlers that cover it: the frames below resume there.
func (r *rewriter) callerCode(k int) (*bytecode.Code, error) {
	f := r.frames[k]
	b := newBuilder(f.code, f.info)
	b.position = f.current.Position
	own := r.stateParameters(b, k)
	var deeper []*slot
	for j := k + 1; j < r.innermost(); j++ {
		for range r.state(j) {
			deeper = append(deeper, b.parameter(".d"+integerText(len(deeper))))
		}
	}
	deeper = append(deeper, b.parameter(".state"))
	b.emit(bytecode.Resume, 0)
	r.restore(b, f, own)
	first := len(b.output)
	r.resumeBelow(b, k, own, deeper)
	onward := b.emit(bytecode.JumpForward, 0)
	r.cloneBehind(b, f, first)
	following := r.following(f)
	if following == nil {
		return nil, errors.New("the bytecode ends behind a call")
	}
	onward.Jump = b.clones[f.info.throughJumps(following)]
	if r.failure != nil {
		return nil, r.failure
	}
	return b.finish()
}

// throughJumps is where the flow gets from an instruction without doing anything: caller code made of caller code jumps to the user's code
// right away, so that breaks in a loop lead to the same code again.
func (c *codeInfo) throughJumps(at *bytecode.Instruction) *bytecode.Instruction {
	for {
		switch at.Opcode {
		case bytecode.JumpForward:
			at = at.Jump
		case bytecode.Nop:
			at = c.listing.Instructions[c.index[at]+1]
		default:
			return at
		}
	}
}

// resumeBelow stands in the place of frame k's call: it goes on in the frames below and gives the instruction their result.
func (r *rewriter) resumeBelow(b *builder, k int, own, deeper []*slot) {
	var err error
	if k+1 < r.innermost() {
		err = r.callCaller(b, k+1, deeper)
	} else {
		err = r.resumeInnermost(b, deeper[len(deeper)-1])
	}
	if err != nil {
		if r.failure == nil {
			r.failure = err
		}
		return
	}
	applyAdapter(b, r.frames[k+1].adapter, own)
}

func (r *rewriter) unpackState(b *builder, k int, packed *slot) []*slot {
	slots := []*slot{b.temp()}
	for range r.state(k) {
		slots = append(slots, b.temp())
	}
	unpack(b, packed, slots)
	return slots
}

func unpack(b *builder, packed *slot, into []*slot) {
	b.loadSlot(packed)
	b.emit(bytecode.UnpackSequence, len(into))
	for _, s := range into {
		b.storeSlot(s)
	}
}

// resumeInnermost goes on in the frame that broke and leaves its result on the stack; where its instruction had two ways on, the packed
// index tells which was taken.
func (r *rewriter) resumeInnermost(b *builder, packed *slot) error {
	var done []*bytecode.Instruction
	for i := range r.exits {
		e := &r.exits[i]
		var skip *bytecode.Instruction
		last := i == len(r.exits)-1
		if e.indexed && !last {
			b.loadSlot(packed)
			b.loadConst(int64(0))
			b.emit(bytecode.BinarySubscr, 0)
			b.loadConst(int64(e.index))
			b.emit(bytecode.CompareOp, 2)
			skip = b.emit(bytecode.PopJumpForwardIfFalse, 0)
		}
		if err := r.resumeExit(b, e, packed); err != nil {
			return err
		}
		if !last {
			done = append(done, b.emit(bytecode.JumpForward, 0))
		}
		if skip != nil {
			skip.Jump = b.emit(bytecode.Nop, 0)
		}
	}
	if len(r.exits) == 0 {
		b.loadConst(bytecode.None) // an instruction that raises has no way on
	}
	end := b.emit(bytecode.Nop, 0)
	for _, jump := range done {
		jump.Jump = end
	}
	return nil
}

func (r *rewriter) resumeExit(b *builder, e *exit, packed *slot) error {
	f := e.frame
	count := len(bound(f))
	for _, value := range e.stack {
		if physical(value) {
			count++
		}
	}
	var slots []*slot
	if e.indexed {
		slots = append(slots, b.temp())
	}
	for range count {
		slots = append(slots, b.temp())
	}
	unpack(b, packed, slots)
	if e.indexed {
		slots = slots[1:]
	}
	code, err := r.resumeCode(f, e.target, e.stack)
	if err != nil {
		return err
	}
	r.callResume(b, f, code, slots)
	return nil
}

// callStep calls another continuation of a frame.
func (r *rewriter) callStep(b *builder, f *Frame, code *bytecode.Code, arguments []*slot) {
	index := len(r.parts.steps)
	r.parts.steps = append(r.parts.steps, Code{code, f.code.Name, r.globalsOf(f)})
	b.emit(bytecode.PushNull, 0)
	b.placeholder("step", int64(index))
	b.loadSlots(arguments)
	b.call(len(arguments))
}

func (r *rewriter) callResume(b *builder, f *Frame, code *bytecode.Code, arguments []*slot) {
	r.callStep(b, f, code, r.resumeOrder(f, arguments))
}

// resumeOrder sorts state (variables by index, then stack) into a resume function's parameters (plain variables, cells, stack).
func (r *rewriter) resumeOrder(f *Frame, arguments []*slot) []*slot {
	var plain, cells []*slot
	indexes := bound(f)
	for i, index := range indexes {
		if inPlace(f, index) {
			plain = append(plain, arguments[i])
		} else {
			cells = append(cells, arguments[i])
		}
	}
	return append(append(plain, cells...), arguments[len(indexes):]...)
}
