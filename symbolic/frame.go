package symbolic

import (
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/bytecode"
	"fusee/graph"
)

// Frame is one activation of a Python function.
type Frame struct {
	code       *bytecode.Code
	info       *codeInfo
	function   *Function
	locals     []Value // indexed as CPython's localsplus: variables, then cells, then free variables
	stack      []Value
	next       int // index of the instruction to run next
	current    *bytecode.Instruction
	step       int
	back       *Frame
	at         *graph.Call // where the frame was when a node was appended last
	keywords   []string    // names set by KW_NAMES for the next CALL
	parameters int
	namespace  *Dict      // local names of a class body
	handling   []Value    // exceptions being handled, innermost last
	kept       []bool     // variables that cross a break though nothing reads them any more
	resumable  bool       // a break inside can be continued in this frame
	adapter    *adapter   // what the caller does with the frame's result
	generator  *Generator // set when the frame belongs to one
	yielded    bool
	arrivals   map[int]*arrival // at heads of loops, by instruction
	postponed  *postponed       // a loop that is given back at a later arrival at its head
}

// adapter tells how the caller's instruction uses the result of the Python function it called.
type adapter struct {
	// instead, when set, is pushed in place of the result (an instance whose __init__ ran).
	instead Value
	// discard drops the result (a setter ran).
	discard bool
	// nullFirst pushes a NULL under the result (LOAD_METHOD found a property).
	nullFirst bool
	// asked is the class whose __getattr__, if it has one, takes the place of an AttributeError (an attribute is computed).
	asked *Class
}

// asking is the adapter of what computes an attribute for an instance of a class.
func (a *adapter) asking(class *Class) *adapter {
	if a == nil {
		return nil
	}
	computed := *a
	computed.asked = class
	return &computed
}

func (in *Interpreter) newFrame(function *Function) (*Frame, error) {
	info, err := in.decode(function.code)
	if err != nil {
		return nil, err
	}
	return &Frame{code: function.code, info: info, function: function, locals: make([]Value, len(function.code.LocalsPlusNames))}, nil
}

// line is the user's line of the current instruction, 0 if unknown.
func (f *Frame) line() int {
	if f.current == nil {
		return f.code.FirstLine
	}
	return f.current.Position.Line
}

// internal tells frames of torch and the standard library from the user's own.
func (f *Frame) internal() bool {
	return strings.HasPrefix(f.function.module, "torch.") || f.function.module == "torch" || f.code.FileName == continuationFile
}

// call is where the frame and its callers are, for graph nodes, which share it as long as they come from one line; code that puts frames
// together again is left out.
func (f *Frame) call() *graph.Call {
	if f == nil {
		return nil
	}
	caller := f.back.call()
	if f.code.FileName == continuationFile {
		return caller
	}
	if line := f.line(); f.at == nil || f.at.Line != line || f.at.Caller != caller {
		f.at = &graph.Call{Function: f.code.Name, File: f.code.FileName, Line: line, Caller: caller}
	}
	return f.at
}

func (f *Frame) push(value Value) { f.stack = append(f.stack, value) }

// pop takes the top of the stack as it is.
func (f *Frame) pop() Value {
	value := f.stack[len(f.stack)-1]
	f.stack = f.stack[:len(f.stack)-1]
	return value
}

// popMany takes the n topmost values, the deepest first.
func (f *Frame) popMany(n int) []Value {
	start := len(f.stack) - n
	values := append([]Value(nil), f.stack[start:]...)
	f.stack = f.stack[:start]
	return values
}

// peek returns the n-th value from the top, 1 being the top.
func (f *Frame) peek(n int) Value { return f.stack[len(f.stack)-n] }

// jump goes to the instruction's target.
func (f *Frame) jump(instruction *bytecode.Instruction) {
	f.next = f.info.index[instruction.Jump]
}

// run executes a frame until it returns, yields or raises.
func (in *Interpreter) run(frame *Frame) (Value, error) {
	if in.depth >= maxDepth {
		return nil, unsupported(reasonDepth, "%d frames", in.depth)
	}
	in.depth++
	frame.back, in.frame = in.frame, frame
	defer func() {
		in.depth--
		in.frame = frame.back
	}()
	for {
		value, done, err := in.stepFrame(frame)
		if done || err != nil {
			return value, err
		}
	}
}

// stepFrame executes one instruction; done tells that value is the frame's result.
func (in *Interpreter) stepFrame(frame *Frame) (value Value, done bool, err error) {
	if frame.next >= len(frame.info.listing.Instructions) {
		return nil, false, errors.New("the bytecode runs past its end")
	}
	instruction, before := frame.info.listing.Instructions[frame.next], frame.current
	frame.current = instruction
	in.steps++
	frame.step = in.steps
	if in.steps > maxSteps {
		return nil, false, errors.Newf("the function runs more than %d instructions", maxSteps)
	}
	if err := in.forcedBreak(frame); err != nil {
		return nil, false, err
	}
	if err := in.watchLength(frame, before); err != nil {
		return nil, false, err
	}
	frame.next++
	return in.attempt(frame, instruction)
}

// forcedBreak is the break that an earlier attempt asked for at this step.
func (in *Interpreter) forcedBreak(frame *Frame) error {
	forced := in.forced[frame.step]
	switch {
	case frame.postponed != nil && frame.postponed.head == frame.next:
		return in.breakLoop(frame, frame.postponed.reason)
	case forced == nil:
		return nil
	case in.loops[frame.step]:
		return in.breakLoop(frame, forced)
	}
	return in.breakOrRestart(frame, forced)
}

// attempt runs one instruction and turns what cannot be modelled into a break.
func (in *Interpreter) attempt(frame *Frame, instruction *bytecode.Instruction) (Value, bool, error) {
	stack := append([]Value(nil), frame.stack...)
	keywords, next, before := frame.keywords, frame.next-1, in.activity
	in.tail = nil
	value, done, err := in.execute(frame, instruction)
	in.tail = nil
	var stop *Unsupported
	var raised *Raised
	switch {
	case err == nil:
		in.noteNodes(frame)
		in.noteComputed(frame)
		return value, done, nil
	case errors.As(err, &raised):
		if raised.step == 0 {
			raised.step = frame.step
		}
		return nil, false, in.handle(frame, raised)
	case errors.As(err, &stop):
		if in.activity != before {
			// Part of the instruction has happened already; only a fresh attempt can break before it.
			return nil, false, &restart{step: frame.step, reason: stop}
		}
		frame.stack, frame.keywords, frame.next = stack, keywords, next
		return nil, false, in.breakOrRestart(frame, stop)
	}
	return nil, false, err
}

// breakOrRestart compiles a break at the frame's current instruction, or moves it out to the innermost call that can be continued.
func (in *Interpreter) breakOrRestart(frame *Frame, reason *Unsupported) error {
	if err := in.raisedForCompiler(in.handled()); err != nil {
		return err
	}
	conditional := reason.Reason == reasonBranch && frame.function.module == controlModule
	if conditional {
		reason = &Unsupported{reasonConditional, reason.Detail}
	}
	if in.request.Options.FullGraph && reason.Reason != reasonException && !conditional {
		// The break is the answer: no code is wanted that goes on behind it.
		in.note(frame, reason)
		in.result = &Result{Program: in.program, Breaks: in.notes, Frame: in.request.Function}
		return errorBreak
	}
	if step, open := in.openGuard(); open {
		return &restart{step: step, reason: &Unsupported{reason.Reason, reason.Detail}}
	}
	if caller := callerOfCopy(frame); caller != nil {
		return &restart{step: caller.step, reason: &Unsupported{reason.Reason, reason.Detail}}
	}
	if caller := callerOfRecursion(frame); caller != nil {
		return &restart{step: caller.step, reason: &Unsupported{reason.Reason, reason.Detail}}
	}
	var blocked *Frame
	for f := frame; f != nil; f = f.back {
		if !f.resumable && f.back != nil {
			blocked = f.back
		}
	}
	if blocked != nil {
		return &restart{step: blocked.step, reason: &Unsupported{reason.Reason, reason.Detail}}
	}
	if err := in.finishBreak(frame, reason); err != nil {
		return err
	}
	return errorBreak
}

// callerOfCopy is the frame that called the module copy, where a frame of that is under way: Python copies the whole object, since going on
// inside would cut the graph at each of its parts.
func callerOfCopy(frame *Frame) *Frame {
	var caller *Frame
	for f := frame; f != nil; f = f.back {
		if f.function.module == "copy" {
			caller = f.back
		}
	}
	return caller
}

// callerOfRecursion is the frame that entered the code which more than recursive of the frames under way run, nil where none is such: Python
// makes the whole call, since each break inside would have to resume all of them, at one level after the other.
func callerOfRecursion(frame *Frame) *Frame {
	type place struct {
		file, name string
		line       int
	}
	at := func(f *Frame) place { return place{f.code.FileName, f.code.Name, f.code.FirstLine} } // resumed frames have code of their own
	counts := map[place]int{}
	for f := frame; f != nil; f = f.back {
		counts[at(f)]++
	}
	var caller *Frame
	for f := frame; f.back != nil; f = f.back {
		if counts[at(f)] > recursive {
			caller = f.back
		}
	}
	return caller
}

// handle unwinds the frame to the handler that covers the current instruction, or passes the exception on.
func (in *Interpreter) handle(frame *Frame, raised *Raised) error {
	handler := frame.handlerFor(frame.info.index[frame.current])
	depth := 0
	if handler != nil {
		depth = handler.Depth
	}
	if err := in.losesBy(raised, frame.stack[depth:]); err != nil {
		return err
	}
	if handler == nil {
		return raised
	}
	frame.stack = frame.stack[:depth]
	if handler.PushLasti {
		frame.push(lastInstruction{frame.current.Offset})
	}
	frame.push(raised.Exception)
	frame.next = frame.info.index[handler.Target]
	frame.keywords = nil
	in.activity++
	return nil
}

// span is the part of the code that a row of the exception table covers: its first instruction and the one behind its last.
func (c *codeInfo) span(handler *bytecode.Handler) (first, end int) {
	if handler.End == nil {
		return c.index[handler.Start], len(c.listing.Instructions)
	}
	return c.index[handler.Start], c.index[handler.End]
}

// handlerFor finds the exception table row that covers an instruction.
func (f *Frame) handlerFor(position int) *bytecode.Handler { return f.info.handlerFor(position) }

func (c *codeInfo) handlerFor(position int) *bytecode.Handler {
	for i := range c.listing.Handlers {
		if first, end := c.span(&c.listing.Handlers[i]); first <= position && position < end {
			return &c.listing.Handlers[i]
		}
	}
	return nil
}
