package symbolic

import (
	"slices"
	"strings"

	"fusee/bytecode"
	"fusee/internal/slice"
)

// liveAt tells which variables (by localsplus index) may be read from an instruction on, through jumps and exception handlers: only
// these cross a graph break, so that dead values neither stay alive nor cause recompilations.
func (c *codeInfo) liveAt(position int, code *bytecode.Code) []bool {
	if c.live == nil {
		c.live = c.solveLiveness(code)
	}
	return c.live[position]
}

// solveLiveness is the backward data-flow analysis over the whole code, repeated until nothing changes.
func (c *codeInfo) solveLiveness(code *bytecode.Code) [][]bool {
	list := c.listing.Instructions
	live := make([][]bool, len(list))
	for k := range live {
		live[k] = make([]bool, len(code.LocalsPlusNames))
	}
	handlers := c.handlerTargets()
	always := readByName(code)
	for changed := true; changed; {
		changed = false
		for k := len(list) - 1; k >= 0; k-- {
			if c.updateLive(live, k, handlers[k], always) {
				changed = true
			}
		}
	}
	return live
}

// updateLive recomputes one instruction's live set from its successors; it tells whether the set grew.
func (c *codeInfo) updateLive(live [][]bool, k int, handlers []int, always []bool) bool {
	i := c.listing.Instructions[k]
	grew := false
	merge := func(from int) {
		for v, is := range live[from] {
			if is && !live[k][v] && !(i.Opcode == bytecode.StoreFast && i.Arg == v) {
				live[k][v], grew = true, true
			}
		}
	}
	if !endsFlow(i.Opcode) && k+1 < len(live) {
		merge(k + 1)
	}
	if i.Jump != nil {
		merge(c.index[i.Jump])
	}
	for _, handler := range handlers {
		merge(handler)
	}
	if usesLocal(i.Opcode) && i.Opcode != bytecode.StoreFast && i.Opcode != bytecode.MakeCell && !live[k][i.Arg] {
		live[k][i.Arg], grew = true, true
	}
	for v, read := range always {
		grew = grew || read && !live[k][v]
		live[k][v] = live[k][v] || read
	}
	return grew
}

// handlerTargets lists, for each instruction, where an exception in it may go.
func (c *codeInfo) handlerTargets() [][]int {
	targets := make([][]int, len(c.listing.Instructions))
	for i := range c.listing.Handlers {
		handler := &c.listing.Handlers[i]
		first, end := c.span(handler)
		for k := first; k < end; k++ {
			targets[k] = append(targets[k], c.index[handler.Target])
		}
	}
	return targets
}

// readByName tells which variables code may read without naming them in an instruction. What rewritten code adds for itself is none of
// them: it would pile up from break to break.
func readByName(code *bytecode.Code) []bool {
	if !readsAllVariables(code) {
		return nil
	}
	return slice.Map(code.LocalsPlusNames, func(name string) bool { return !ownName(name) })
}

// ownName tells variables that rewritten code adds: Python itself gives such a name only to what a comprehension iterates over, ".0".
func ownName(name string) bool { return strings.HasPrefix(name, ".") && name != ".0" }

// readsAllVariables tells code that may look at its variables by name, or through super() without arguments.
func readsAllVariables(code *bytecode.Code) bool {
	for _, name := range code.Names {
		switch name {
		case "locals", "vars", "eval", "exec", "dir", "super", "_getframe", "currentframe":
			return true
		}
	}
	return false
}

// bound lists the localsplus indexes that hold a value which the rest of the frame's code may still read, or which is kept for its end.
func bound(f *Frame) []int {
	live := f.info.liveAt(f.info.index[f.current], f.code)
	var indexes []int
	for k, value := range f.locals {
		if value != nil && (live[k] || f.kept != nil && f.kept[k]) {
			indexes = append(indexes, k)
		}
	}
	return indexes
}

// stateParameters are parameters for what frame k packs.
func (r *rewriter) stateParameters(b *builder, k int) []*slot {
	slots := make([]*slot, len(r.state(k)))
	for i := range slots {
		if i == 0 && b.base != nil && firstInPlace(r.frames[k]) {
			slots[i] = b.adopt(0)
		} else {
			slots[i] = b.parameter(".o" + integerText(i))
		}
	}
	return slots
}

// inPlace tells variables that are parameters of the code that goes on in a frame: cells are none, but for the one that super() looks for.
func inPlace(f *Frame, index int) bool {
	return f.code.LocalsPlusKinds[index]&(bytecode.KindCell|bytecode.KindFree) == 0 || index == 0 && firstInPlace(f)
}

// firstInPlace tells frames whose first variable is handed over as the first parameter, where super() without arguments looks for it.
func firstInPlace(f *Frame) bool {
	first := bound(f)
	return len(first) > 0 && first[0] == 0 && f.code.LocalsPlusKinds[0]&bytecode.KindFree == 0 && slices.Contains(f.code.Names, "super")
}

// deletes is the index of the variable that a frame's instruction has deleted before the frame goes on at another one; -1 where it is none
// that had a value.
func deletes(f *Frame, target *bytecode.Instruction) int {
	if f.current == target || f.current.Opcode != bytecode.DeleteFast || f.locals[f.current.Arg] == nil {
		return -1
	}
	return f.current.Arg
}
