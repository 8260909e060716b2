package bytecode

import (
	"fmt"
	"slices"
)

// maxStackDepth bounds the stack of a frame; CPython itself fails to allocate frames of this size.
const maxStackDepth = 1 << 24

// stackWalk follows all paths through placed instructions and records the depth of the stack before each.
type stackWalk struct {
	*assembler
	owners  []int
	depths  []int // before each instruction; unvisited until a path reaches it
	pending []int // instructions to continue from
	deepest int
}

const (
	unvisited  = -1
	maxDeadWay = 64 // instructions; what the compiler leaves is shorter, and longer searches would cost n² on hostile code
)

func (a *assembler) stackSize(owners []int) (int, error) {
	walk := stackWalk{assembler: a, owners: owners, depths: slices.Repeat([]int{unvisited}, len(a.placed))}
	if err := walk.from(0, walk.entryDepth()); err != nil {
		return 0, err
	}
	walk.countDeadHandlers()
	return walk.deepest, nil
}

// from walks everything that can be reached from an instruction.
func (w *stackWalk) from(start, depth int) error {
	if err := w.reach(start, depth); err != nil {
		return err
	}
	for len(w.pending) > 0 {
		next := w.pending[len(w.pending)-1]
		w.pending = w.pending[:len(w.pending)-1]
		if err := w.follow(next); err != nil {
			return err
		}
	}
	return nil
}

// countDeadHandlers walks code that nothing leads to. CPython's compiler leaves handlers behind where the body they
// protect vanished, and counts their depth. Code that cannot run need not be consistent, so errors do not count.
func (w *stackWalk) countDeadHandlers() {
	for i := range w.placed {
		if w.depths[i] != unvisited {
			continue
		}
		if depth, known := w.deadDepth(i); known {
			w.pending = w.pending[:0]
			_ = w.from(i, depth)
		}
	}
}

// deadDepth infers the depth before an instruction that nothing leads to. At the start of a handler it is what the
// handler's own cleanup keeps; elsewhere it is what makes the straight way from there meet visited code at its depth.
func (w *stackWalk) deadDepth(start int) (depth int, known bool) {
	if w.placed[start].op == PushExcInfo && w.owners[start] != noHandler {
		return w.listing.Handlers[w.owners[start]].Depth, true
	}
	change := 0
	for i := start; i < min(start+maxDeadWay, len(w.placed)); i++ {
		if w.depths[i] != unvisited {
			return w.depths[i] - change, true
		}
		p := &w.placed[i]
		info := &opcodes[p.op]
		if info.Jump != NoJump && w.depths[p.target] != unvisited {
			return w.depths[p.target] - info.jumpEffect - change, true
		}
		effect, err := StackEffect(p.op, p.arg, false)
		if err != nil || info.EndsBlock {
			return 0, false
		}
		change += effect
	}
	return 0, false
}

// entryDepth is 1 for generators because RETURN_GENERATOR leaves the value that the first send pushes.
func (w *stackWalk) entryDepth() int {
	if w.listing.Code.IsGenerator() {
		return 1
	}
	return 0
}

// reach notes that control can arrive at an instruction with a depth.
func (w *stackWalk) reach(i, depth int) error {
	switch {
	case i >= len(w.placed):
		return fmt.Errorf("control runs off the end of the code")
	case depth < 0:
		return fmt.Errorf("stack underflows before instruction %d", i)
	case depth > maxStackDepth:
		return fmt.Errorf("stack grows beyond %d before instruction %d", maxStackDepth, i)
	case w.depths[i] == depth:
		return nil
	case w.depths[i] != unvisited:
		return fmt.Errorf("stack depth at instruction %d (%s) is %d or %d", i, w.placed[i].op, w.depths[i], depth)
	}
	w.depths[i] = depth
	w.deepest = max(w.deepest, depth)
	w.pending = append(w.pending, i)
	return nil
}

// follow takes one step from an instruction: to its handler, to its jump's target and to the next instruction.
func (w *stackWalk) follow(i int) error {
	p := &w.placed[i]
	if w.owners[i] != noHandler {
		if err := w.reachHandler(w.listing.Handlers[w.owners[i]], w.depths[i]); err != nil {
			return err
		}
	}
	info := &opcodes[p.op]
	if info.Jump != NoJump {
		if err := w.reach(p.target, w.depths[i]+info.jumpEffect); err != nil {
			return err
		}
	}
	effect, err := StackEffect(p.op, p.arg, false)
	if err != nil {
		return err
	}
	after := w.depths[i] + effect
	w.deepest = max(w.deepest, after)
	if !info.EndsBlock {
		return w.reach(i+1, after)
	}
	if after < 0 {
		return fmt.Errorf("stack underflows in instruction %d (%s)", i, p.op)
	}
	return nil
}

func (w *stackWalk) reachHandler(handler Handler, depth int) error {
	if depth < handler.Depth {
		return fmt.Errorf("handler keeps %d stack items where there are %d", handler.Depth, depth)
	}
	pushed := 1
	if handler.PushLasti {
		pushed = 2
	}
	return w.reach(w.index[handler.Target], handler.Depth+pushed)
}
