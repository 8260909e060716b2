package symbolic

import (
	"slices"

	"fusee/bytecode"
	"fusee/internal/slice"
)

// Loops over plain Python values gain nothing from capture and cost much where they are long. Where many instructions have run since the
// last tensor operation, the loop that they belong to is given back to Python as a whole: its break runs the user's own loop from its head on,
// and each way out of it leads to a continuation.

// What is unrolled without a tensor operation: more where the graph is large, as its lowering then takes longer than the walk, and far more where
// no loop is long, as a break costs a continuation and the copy of a configuration, say, runs many instructions once.
const (
	plainSteps        = 20_000
	plainStepsForNode = 10
	mostPlainSteps    = 100_000
	longLoop          = 256 // rounds
)

// mostRounds is how many rounds of a loop are walked so that its variables have values.
const mostRounds = 3

// postponed is a loop that is given back to Python after some rounds.
type postponed struct {
	head, rounds int
	reason       *Unsupported
}

// arrival is when the walk came to the head of a loop.
type arrival struct {
	entered    int // the step at which it came there from outside
	since      int // the first step at which it was there since the last tensor operation
	tensorStep int // that of this operation
	rounds     int
}

// watchLength notes where loops begin, and ends the unrolling of Python code that has nothing to do with tensors.
func (in *Interpreter) watchLength(frame *Frame, before *bytecode.Instruction) error {
	for in.nodesSeen = min(in.nodesSeen, len(in.graph.Nodes)); in.nodesSeen < len(in.graph.Nodes); in.nodesSeen++ {
		if !changesState(in.graph.Nodes[in.nodesSeen]) {
			in.tensorStep = in.steps
		}
	}
	long := frame.info.heads[frame.next] && in.arrive(frame, before) >= longLoop
	plain := in.steps - in.tensorStep - plainStepsForNode*in.nodesSeen
	if plain <= plainSteps || plain <= mostPlainSteps && !long || in.request.Options.FullGraph {
		return nil
	}
	return in.endUnrolling()
}

// arrive notes that a frame is at the head of a loop, where it came to from the instruction before, and counts the rounds of the loop.
func (in *Interpreter) arrive(frame *Frame, before *bytecode.Instruction) int {
	if frame.arrivals == nil {
		frame.arrivals = map[int]*arrival{}
	}
	known := frame.arrivals[frame.next]
	again := known != nil && before != nil && frame.info.index[before] >= frame.next
	switch {
	case !again:
		known = &arrival{entered: in.steps, since: in.steps, tensorStep: in.tensorStep}
		frame.arrivals[frame.next] = known
	case known.tensorStep != in.tensorStep:
		known.since, known.tensorStep = in.steps, in.tensorStep
	}
	known.rounds++
	return known.rounds
}

// endUnrolling asks for another attempt that gives back what has run since the last tensor operation: the outermost loop that was entered
// since, or one that has gone through a whole round since, or else the outermost call.
func (in *Interpreter) endUnrolling() error {
	reason := &Unsupported{reasonLength, "Python runs what does nothing with tensors"}
	frames := in.outermostFirst()
	for _, choose := range []func(*arrival) int{func(a *arrival) int { return a.entered }, func(a *arrival) int { return a.since }} {
		for _, f := range frames {
			if !f.resumable && f.back != nil {
				break
			}
			if step := in.outermostLoop(f, choose); step > 0 {
				return &restart{step: step, reason: reason, loop: true}
			}
		}
	}
	for _, f := range frames[:len(frames)-1] {
		if f.step > in.tensorStep && in.forced[f.step] == nil {
			return &restart{step: f.step, reason: reason}
		}
	}
	in.tensorStep = in.steps // nothing can be given back: look again later
	return nil
}

// outermostFirst lists the frames under way.
func (in *Interpreter) outermostFirst() []*Frame {
	var frames []*Frame
	for f := in.frame; f != nil; f = f.back {
		frames = append(frames, f)
	}
	slices.Reverse(frames)
	return frames
}

// outermostLoop is the first step after the last tensor operation at which the frame came to a loop that it is still in, 0 where there is none.
func (in *Interpreter) outermostLoop(f *Frame, choose func(*arrival) int) int {
	first := 0
	for head, a := range f.arrivals {
		step := choose(a)
		if step > in.tensorStep && (first == 0 || step < first) && in.forced[step] == nil && f.info.loopBody(head)[f.info.index[f.current]] {
			first = step
		}
	}
	return first
}

// breakLoop is the break at the head of a loop that Python runs. Where a variable may be unbound behind the loop, as the first round gives it its
// value, one of the next rounds is the one that Python begins with; where that does not help, Python runs the frame to its end.
func (in *Interpreter) breakLoop(f *Frame, reason *Unsupported) error {
	loop := in.plainLoop(f)
	if f.postponed == nil {
		f.postponed = &postponed{head: f.next, reason: reason}
	}
	f.postponed.rounds++
	switch {
	case !loop.certain() && f.postponed.rounds <= mostRounds:
		return nil
	case !loop.certain() && f.back != nil:
		return &restart{step: f.back.step, reason: reason}
	case !loop.certain():
		loop.exits = nil
	}
	in.leaving = loop
	return in.breakOrRestart(f, reason)
}

// plainLoop is a loop that Python runs, from the instruction at which its frame stands.
type plainLoop struct {
	frame *Frame
	head  int
	exits []*loopExit // in order of their targets
}

// loopExit is an instruction behind the loop, and the ways there.
type loopExit struct {
	target int
	state  loopState
	edges  []flowEdge
}

// flowEdge is a way from one instruction to another, both by index.
type flowEdge struct {
	from, to int
	jump     bool // and not because the one follows the other
	raises   bool // to a handler
}

// loopState is what holds before an instruction, whatever way led there.
type loopState struct {
	depth  int
	intact int    // the stack's entries below are those that the loop began with
	bound  []bool // variables that have a value
	maybe  []bool // those that may have one
}

func (s *loopState) clone() *loopState {
	return &loopState{s.depth, s.intact, slices.Clone(s.bound), slices.Clone(s.maybe)}
}

// merge adds what holds on another way; it tells whether anything changed.
func (s *loopState) merge(other *loopState) bool {
	changed := other.intact < s.intact
	s.intact = min(s.intact, other.intact)
	for v := range s.bound {
		if s.bound[v] && !other.bound[v] {
			s.bound[v], changed = false, true
		}
		if !s.maybe[v] && other.maybe[v] {
			s.maybe[v], changed = true, true
		}
	}
	return changed
}

// certain tells whether all variables that are read behind the loop have a value there, or none.
func (l *plainLoop) certain() bool {
	f := l.frame
	for _, e := range l.exits {
		for v, live := range f.info.liveAt(e.target, f.code) {
			if live && e.state.maybe[v] && !e.state.bound[v] {
				return false
			}
		}
	}
	return true
}

// plainLoop follows all ways through the loop whose head the frame is at. A way out ends where the stack is as the loop found it, less what
// the loop took of it; up to there Python goes on.
func (in *Interpreter) plainLoop(f *Frame) *plainLoop {
	l := &plainLoop{frame: f, head: f.next}
	body := f.info.loopBody(f.next)
	first := &loopState{depth: len(f.stack), intact: len(f.stack), bound: make([]bool, len(f.locals)), maybe: make([]bool, len(f.locals))}
	for v, value := range f.locals {
		first.bound[v], first.maybe[v] = value != nil, value != nil
	}
	leaves := func(e flowEdge, s *loopState) bool { return !e.raises && !body[e.to] && s.depth == s.intact }
	states := map[int]*loopState{f.next: first}
	for work := []int{f.next}; len(work) > 0; {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		for _, e := range f.info.edges(at) {
			after := f.info.through(e, states[at])
			switch known := states[e.to]; {
			case leaves(e, after):
			case known == nil:
				states[e.to] = after
				work = append(work, e.to)
			case known.merge(after):
				work = append(work, e.to)
			}
		}
	}
	l.collectExits(states, leaves)
	return l
}

func (l *plainLoop) collectExits(states map[int]*loopState, leaves func(flowEdge, *loopState) bool) {
	known := map[int]*loopExit{}
	for at := range l.frame.info.listing.Instructions {
		if states[at] == nil {
			continue
		}
		for _, e := range l.frame.info.edges(at) {
			after := l.frame.info.through(e, states[at])
			if !leaves(e, after) {
				continue
			}
			if known[e.to] == nil {
				known[e.to] = &loopExit{target: e.to, state: *after}
				l.exits = append(l.exits, known[e.to])
			}
			known[e.to].state.merge(after)
			known[e.to].edges = append(known[e.to].edges, e)
		}
	}
	slices.SortFunc(l.exits, func(a, b *loopExit) int { return a.target - b.target })
}

// edges lists the ways on from an instruction.
func (c *codeInfo) edges(at int) []flowEdge {
	i := c.listing.Instructions[at]
	var edges []flowEdge
	if !endsFlow(i.Opcode) && at+1 < len(c.listing.Instructions) {
		edges = append(edges, flowEdge{from: at, to: at + 1})
	}
	if i.Jump != nil {
		edges = append(edges, flowEdge{from: at, to: c.index[i.Jump], jump: true})
	}
	if handler := c.handlerFor(at); handler != nil {
		edges = append(edges, flowEdge{from: at, to: c.index[handler.Target], raises: true})
	}
	return edges
}

// through is what holds behind a way on from an instruction.
func (c *codeInfo) through(e flowEdge, before *loopState) *loopState {
	i := c.listing.Instructions[e.from]
	after := before.clone()
	switch i.Opcode {
	case bytecode.StoreFast:
		after.bound[i.Arg], after.maybe[i.Arg] = !e.raises || before.bound[i.Arg], true
	case bytecode.DeleteFast:
		after.bound[i.Arg], after.maybe[i.Arg] = false, e.raises && before.maybe[i.Arg]
	}
	if e.raises {
		handler := c.handlerFor(e.from)
		after.intact, after.depth = min(after.intact, handler.Depth), handler.Depth+1
		if handler.PushLasti {
			after.depth++
		}
		return after
	}
	effect, err := bytecode.StackEffect(i.Opcode, i.Arg, e.jump)
	if err != nil {
		after.intact = -1 // no way out is found from here on
		return after
	}
	after.depth += effect
	after.intact = min(after.intact, before.depth-touched(i.Opcode, i.Arg, e.jump), after.depth)
	return after
}

// touched is how many entries of the stack an instruction may exchange, with the effect of a call split as CPython's table does.
func touched(op bytecode.Opcode, arg int, jump bool) int {
	switch op {
	case bytecode.Nop, bytecode.Resume, bytecode.KwNames, bytecode.JumpForward, bytecode.JumpBackward, bytecode.JumpBackwardNoInterrupt, bytecode.MakeCell, bytecode.CopyFreeVars:
		return 0
	case bytecode.Swap, bytecode.Precall:
		return arg
	case bytecode.Call:
		return 2
	}
	return popCount(op, arg, jump)
}

// loopHeads tells the instructions that a jump goes back to.
func loopHeads(listing *bytecode.Listing, index map[*bytecode.Instruction]int) []bool {
	heads := make([]bool, len(listing.Instructions))
	for at, i := range listing.Instructions {
		if i.Jump != nil && index[i.Jump] <= at {
			heads[index[i.Jump]] = true
		}
	}
	return heads
}

// loopBody tells the instructions of the loop with a head: those behind it that come to one of its jumps back on some way.
func (c *codeInfo) loopBody(head int) []bool {
	if body := c.bodies[head]; body != nil {
		return body
	}
	size := len(c.listing.Instructions)
	before := make([][]int, size)
	var back []int
	for at := range size {
		for _, e := range c.edges(at) {
			before[e.to] = append(before[e.to], at)
			if e.to == head && at >= head && e.jump {
				back = append(back, at)
			}
		}
	}
	behind := reachable(size, []int{head}, -1, func(at int) []int {
		return slice.Map(c.edges(at), func(e flowEdge) int { return e.to })
	})
	body := reachable(size, back, head, func(at int) []int { return before[at] })
	for at := range body {
		body[at] = body[at] && behind[at]
	}
	body[head] = true
	if c.bodies == nil {
		c.bodies = map[int][]bool{}
	}
	c.bodies[head] = body
	return body
}

// reachable tells what steps lead to from some instructions, none of them from the one to stop at.
func reachable(size int, from []int, stop int, step func(int) []int) []bool {
	reached := make([]bool, size)
	work := slices.Clone(from)
	for len(work) > 0 {
		at := work[len(work)-1]
		work = work[:len(work)-1]
		if reached[at] {
			continue
		}
		reached[at] = true
		if at != stop {
			work = append(work, step(at)...)
		}
	}
	return reached
}

// writeLoop writes what stands for the head of a loop that Python runs: a jump to the user's own loop, out of which each way leads to
// a continuation.
func (r *rewriter) writeLoop(b *builder, k int) []func() error {
	l := r.loop
	list := l.frame.info.listing.Instructions
	begin := b.emit(bytecode.JumpForward, 0)
	writers := []func() error{func() error {
		begin.Jump = b.clones[list[l.head]]
		return nil
	}}
	for n, e := range l.exits {
		writers = append(writers, func() error {
			gate := b.emit(bytecode.JumpForward, 0)
			for _, edge := range e.edges {
				b.redirect(b.clones[list[edge.from]], edge.jump, gate)
			}
			stack := l.frame.stack[:e.state.depth]
			return r.leave(b, k, &exit{frame: e.frame(l), source: gate, stack: stack, target: list[e.target], index: n, indexed: len(l.exits) > 1})
		})
	}
	return writers
}

// frame is the loop's frame where it has come to the exit.
func (e *loopExit) frame(l *plainLoop) *Frame {
	f := *l.frame
	f.current = f.info.listing.Instructions[e.target]
	f.locals = make([]Value, len(f.locals))
	for v := range f.locals {
		if e.state.bound[v] {
			f.locals[v] = resultMark{}
		}
	}
	return &f
}

// redirect has one of the two ways on from an instruction lead somewhere else.
func (b *builder) redirect(from *bytecode.Instruction, jump bool, to *bytecode.Instruction) {
	if jump {
		from.Jump = to
		return
	}
	onward := &bytecode.Instruction{Opcode: bytecode.JumpForward, Offset: -1, Position: from.Position, Jump: to}
	b.output = slices.Insert(b.output, slices.Index(b.output, from)+1, onward)
}
