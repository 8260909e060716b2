package cpu

import (
	"maps"
	"slices"

	"fusee/backend/loop"
)

// A kernel that reads several tensors side by side compares positions with constants, and reads where the comparison holds. Its loops are cut where a
// comparison along the dimension of the lanes changes, so that between the cuts whole vectors are read, and what is chosen nowhere is not computed.

// mostCuts bounds how often the code of a loop is repeated. Loops with more cuts decide for each lane.
const mostCuts = 16

// folding is what is known of a kernel's values in one segment of a loop.
type folding struct {
	known  map[loop.Value]bool // values of type Bool
	needed map[loop.Value]bool // what the segment's stores and reductions, and other stages, depend on
}

// change returns the position along a dimension from which on a comparison with a constant gives result.
func (e *emitter) change(in *loop.Instruction, dimension int) (position int64, result, ok bool) {
	above := in.Op == loop.OpGreater || in.Op == loop.OpGreaterEqual
	if !above && in.Op != loop.OpLess && in.Op != loop.OpLessEqual {
		return 0, false, false
	}
	index, bound := e.kernel.Instruction(in.Args[0]), e.kernel.Instruction(in.Args[1])
	if index.Op != loop.OpIndex || index.Index != dimension || bound.Op != loop.OpConstant {
		return 0, false, false
	}
	position = bound.Bits.Int()
	if in.Op == loop.OpGreater || in.Op == loop.OpLessEqual {
		position++
	}
	return position, above, true
}

// cuts lists the positions inside a dimension where comparisons in the stages change, in order.
func (e *emitter) cuts(stages []*loop.Stage, dimension int, size loop.Int) []int64 {
	var result []int64
	length, static := size.Static()
	for _, stage := range stages {
		for index := range stage.Body {
			position, _, ok := e.change(&stage.Body[index], dimension)
			if ok && position > 0 && (!static || position < length) {
				result = append(result, position)
			}
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// segments has emit make the loop over positions from…to of the dimension of the lanes, once for each segment between cuts.
func (e *emitter) segments(stages []*loop.Stage, size loop.Int, from, to string, emit func(from, to string)) {
	cuts := e.cuts(stages, e.vector, size)
	if len(cuts) == 0 || len(cuts) > mostCuts {
		emit(from, to)
		return
	}
	for number := range len(cuts) + 1 {
		low, high, first := from, to, int64(0)
		if number > 0 {
			first = cuts[number-1]
			low = e.extremum("smax", from, scalarConstant(loop.I64, loop.IntBits(first)))
		}
		if number < len(cuts) {
			high = e.extremum("smin", to, scalarConstant(loop.I64, loop.IntBits(cuts[number])))
		}
		high = e.extremum("smax", low, high)
		e.scoped(func() {
			e.folding = e.known(stages, e.vector, first)
			e.hoistAll(stages)
			emit(low, high)
			e.folding = nil
		})
	}
}

// hoistAll computes ahead of the loop along the lanes what does not change in it, unless it holds loops itself.
func (e *emitter) hoistAll(stages []*loop.Stage) {
	inside := e.vector >= len(e.kernel.Outer)
	for _, stage := range stages {
		if inside || e.kernel.Pointwise() {
			e.hoist(stage, e.vector, inside)
		}
	}
}

// known computes what is known in the segment that begins at a position along a dimension, beside what is known already.
func (e *emitter) known(stages []*loop.Stage, dimension int, first int64) *folding {
	f := &folding{known: map[loop.Value]bool{}, needed: map[loop.Value]bool{}}
	if e.folding != nil {
		maps.Copy(f.known, e.folding.known)
	}
	for _, stage := range stages {
		for index := range stage.Body {
			in := &stage.Body[index]
			if position, result, ok := e.change(in, dimension); ok {
				f.known[stage.First+loop.Value(index)] = result == (first >= position)
			} else if result, ok := f.logic(in); ok {
				f.known[stage.First+loop.Value(index)] = result
			}
		}
	}
	for _, stage := range slices.Backward(e.allStages()) {
		f.mark(stage, slices.Contains(stages, stage))
	}
	return f
}

// logic gives the result of an operation on Bools where what is known of its arguments decides it.
func (f *folding) logic(in *loop.Instruction) (result, ok bool) {
	if in.Type != loop.Bool || in.Op != loop.OpConstant && in.Op != loop.OpAnd && in.Op != loop.OpOr && in.Op != loop.OpNot {
		return false, false
	}
	if in.Op == loop.OpConstant {
		return in.Bits.Bool(), true
	}
	left, known := f.known[in.Args[0]]
	if in.Op == loop.OpNot {
		return !left, known
	}
	right, alsoKnown := f.known[in.Args[1]]
	decisive := in.Op == loop.OpOr // the value of one argument that decides
	if known && left == decisive || alsoKnown && right == decisive {
		return decisive, true
	}
	return !decisive, known && alsoKnown
}

// mark notes what a stage needs: all that it mentions, or, in a stage that the segment is of, what its stores and reductions come down to.
func (f *folding) mark(stage *loop.Stage, inside bool) {
	for index := len(stage.Body) - 1; index >= 0; index-- {
		value, in := stage.First+loop.Value(index), &stage.Body[index]
		if inside && in.Op != loop.OpStore && in.Op != loop.OpReduce && !f.needed[value] {
			continue
		}
		f.needed[value] = true
		if inside {
			in = f.simplified(value, in)
		}
		for _, arg := range in.Args {
			f.needed[arg] = true
		}
	}
}

// simplified returns an instruction as it is where some values are known: a select of one value is that value.
func (f *folding) simplified(value loop.Value, in *loop.Instruction) *loop.Instruction {
	if f == nil {
		return in
	}
	if result, ok := f.known[value]; ok {
		return &loop.Instruction{Op: loop.OpConstant, Type: loop.Bool, Bits: loop.BoolBits(result)}
	}
	if in.Op != loop.OpSelect && in.Op != loop.OpLoad || len(in.Args) == 0 {
		return in
	}
	condition, ok := f.known[in.Args[0]]
	switch {
	case !ok:
	case in.Op == loop.OpSelect && condition:
		return &loop.Instruction{Op: loop.OpSelect, Type: in.Type, Args: in.Args[1:2]}
	case in.Op == loop.OpSelect:
		return &loop.Instruction{Op: loop.OpSelect, Type: in.Type, Args: in.Args[2:]}
	case !condition:
		return &loop.Instruction{Op: loop.OpConstant, Type: in.Type}
	case len(in.Access.Indirect) == 0:
		return &loop.Instruction{Op: loop.OpLoad, Type: in.Type, Access: in.Access}
	}
	return in
}

// idle reports whether nothing needs a value in the present segment.
func (f *folding) idle(value loop.Value) bool { return f != nil && !f.needed[value] }
