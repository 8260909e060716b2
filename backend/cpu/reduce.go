package cpu

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"fusee/backend/loop"
)

// accumulator is the running state of one reduction: its value so far, and for positional reductions the position it was at.
type accumulator struct {
	result    loop.Value
	reduction loop.Reduction
	typ       loop.Type // of the values combined
	lanes     int
	parts     []string // value, position
}

func (a *accumulator) types() []string {
	types := []string{vectorType(a.typ, a.lanes), wide("i64", a.lanes)}
	return types[:len(a.parts)]
}

// newAccumulator starts a reduction at the value that changes nothing.
func newAccumulator(result loop.Value, in *loop.Instruction, typ loop.Type, lanes int) accumulator {
	a := accumulator{result: result, reduction: in.Reduction, typ: typ, lanes: lanes}
	a.parts = []string{constant(typ, loop.Identity(in.Reduction, typ), lanes)}
	if in.Reduction.Positional() {
		a.parts = append(a.parts, splatConstant("i64", strconv.FormatInt(math.MaxInt64, 10), lanes))
	}
	return a
}

// inner runs a stage's loops and leaves the results of its reductions in e.values.
func (e *emitter) inner(stage *loop.Stage) {
	e.stage, e.sums = stage, nil
	for position := range stage.Body {
		if in := &stage.Body[position]; in.Op == loop.OpReduce {
			typ := e.kernel.Instruction(in.Args[0]).Type
			e.sums = append(e.sums, newAccumulator(stage.First+loop.Value(position), in, typ, e.current))
		}
	}
	e.nest(stage, 0)
	for index := range e.sums {
		a := &e.sums[index]
		e.values[a.result] = operand{text: a.parts[len(a.parts)-1], lanes: a.lanes}
	}
	e.sums = nil
}

// nest runs the inner dimensions from number level on.
func (e *emitter) nest(stage *loop.Stage, level int) {
	size := e.int(stage.Inner[level])
	if level == len(stage.Inner)-1 {
		e.whereSome(size, func() { e.innermost(stage, size) })
		return
	}
	results := e.loop("0", size, "1", e.carry(), func(position string, current []string) (next []string) {
		e.keep(current)
		e.scoped(func() {
			e.enter(position, stage)
			e.nest(stage, level+1)
		})
		return e.parts()
	})
	e.keep(results)
}

// whereSome emits a loop of the size where that is not 0: what is hoisted out of a loop over nothing may read memory that is not there.
func (e *emitter) whereSome(size string, emit func()) {
	switch {
	case size == "0":
	case size[0] != '%':
		emit()
	default:
		e.keep(e.loop("0", e.extremum("smin", size, "1"), "1", e.carry(), func(_ string, current []string) []string {
			e.keep(current)
			e.scoped(emit)
			return e.parts()
		}))
	}
}

func (e *emitter) innermost(stage *loop.Stage, size string) {
	dimension := len(e.index)
	if e.vector >= 0 { // lanes run along the outer dimension
		e.scoped(func() {
			e.hoist(stage, dimension, false)
			e.keep(e.loop("0", size, "1", e.carry(), func(position string, current []string) []string {
				e.keep(current)
				e.scoped(func() {
					e.enter(position, stage)
					e.body(stage)
				})
				return e.parts()
			}))
		})
		return
	}
	e.scoped(func() {
		e.hoist(stage, dimension, true)
		e.vector = dimension
		e.segments([]*loop.Stage{stage}, stage.Inner[len(stage.Inner)-1], "0", size, func(from, to string) {
			e.sweepReductions(stage, from, to)
		})
		e.vector = -1
	})
}

// sweepReductions widens the accumulators to blocks of lanes and folds them back to one lane before the rest.
func (e *emitter) sweepReductions(stage *loop.Stage, from, to string) {
	before := e.sums
	e.sums = slices.Clone(e.sums)
	blocks := e.blocks(stage, len(before) > 0)
	for index := range e.sums {
		e.sums[index] = newAccumulator(before[index].result, e.kernel.Instruction(before[index].result), before[index].typ, blocks[0])
	}
	e.sweep(sweep{[]*loop.Stage{stage}, func(lanes int) []carried {
		for index := range e.sums {
			e.fold(&e.sums[index], lanes)
			if lanes == 1 {
				e.sums[index] = e.combine(before[index], e.sums[index])
			}
		}
		return e.carry()
	}, func(_ int, position string, current []string) []string {
		e.keep(current)
		e.enter(position, stage)
		e.body(stage)
		return e.parts()
	}}, from, to, blocks)
}

// blocks chooses the numbers of lanes that a stage sweeps its last dimension with. Several registers at a time hide the latency of combining and of long
// formulas; each number of lanes costs compile time.
func (e *emitter) blocks(stage *loop.Stage, reduces bool) []int {
	size, static := stage.Inner[len(stage.Inner)-1].Static()
	short := static && size < int64(4*e.native)
	switch {
	case short:
		return []int{e.native, 1}
	case callsMath(stage) || !reduces:
		return []int{2 * e.native, 1}
	}
	return []int{4 * e.native, e.native, 1}
}

// callsMath reports whether a stage computes a function that takes many instructions.
func callsMath(stage *loop.Stage) bool {
	return slices.ContainsFunc(stage.Body, func(in loop.Instruction) bool {
		_, ok := mathFunctions[in.Op]
		return ok
	})
}

// carry lists the state of the open stage's reductions for a loop, parts its text, and keep takes it back.
func (e *emitter) carry() []carried {
	var result []carried
	for index := range e.sums {
		for part, typ := range e.sums[index].types() {
			result = append(result, carried{typ, e.sums[index].parts[part]})
		}
	}
	return result
}

func (e *emitter) parts() []string {
	var result []string
	for index := range e.sums {
		result = append(result, e.sums[index].parts...)
	}
	return result
}

func (e *emitter) keep(parts []string) {
	for index := range e.sums {
		count := len(e.sums[index].parts)
		e.sums[index].parts = slices.Clone(parts[:count])
		parts = parts[count:]
	}
}

// accumulate combines the value of a reduce instruction into its accumulator.
func (e *emitter) accumulate(result loop.Value, in *loop.Instruction) {
	for index := range e.sums {
		a := &e.sums[index]
		if a.result != result {
			continue
		}
		next := accumulator{reduction: a.reduction, typ: a.typ, lanes: a.lanes, result: result}
		next.parts = []string{e.use(in.Args[0], a.lanes)}
		if a.reduction.Positional() {
			next.parts = append(next.parts, e.position(a.lanes))
		}
		e.leaveOut(in, &next)
		*a = e.combine(*a, next)
	}
}

// leaveOut puts what changes nothing in the lanes that are not there.
func (e *emitter) leaveOut(in *loop.Instruction, next *accumulator) {
	if e.mask == "" || next.lanes == 1 || e.vector < len(e.kernel.Outer) { // the last: each lane has a result of its own
		return
	}
	nothing := newAccumulator(next.result, in, next.typ, next.lanes)
	for part, typ := range next.types() {
		next.parts[part] = e.assign("select %s %s, %s %s, %s %s", wide("i1", next.lanes), e.mask, typ, next.parts[part], typ, nothing.parts[part])
	}
}

// position returns the row-major number of the current inner point.
func (e *emitter) position(lanes int) string {
	position := "0"
	for level, size := range e.stage.Inner {
		position = e.multiply(position, e.int(size))
		position = e.assign("add i64 %s, %s", position, e.index[len(e.kernel.Outer)+level])
	}
	text := e.splat("i64", position, lanes)
	if lanes > 1 && e.vector >= len(e.kernel.Outer) {
		text = e.assign("add %s %s, %s", wide("i64", lanes), text, steps(lanes))
	}
	return text
}

// fold narrows an accumulator by combining its halves.
func (e *emitter) fold(a *accumulator, lanes int) {
	for a.lanes > lanes {
		*a = e.combine(e.half(a, 0), e.half(a, a.lanes/2))
	}
}

// half takes a.lanes/2 lanes from lane first on.
func (e *emitter) half(a *accumulator, first int) accumulator {
	result := *a
	result.lanes = a.lanes / 2
	result.parts = nil
	types := a.types()
	for part, text := range a.parts {
		result.parts = append(result.parts, e.slice(types[part], text, first, result.lanes))
	}
	return result
}

// slice takes lanes first…first+count of a vector; one lane comes as a scalar.
func (e *emitter) slice(typ, text string, first, count int) string {
	if count == 1 {
		return e.assign("extractelement %s %s, i32 %d", typ, text, first)
	}
	return e.assign("shufflevector %s %s, %s poison, %s", typ, text, typ, shuffle(first, count, 1))
}

// shuffle is the mask of count lanes from number first on, in steps.
func shuffle(first, count, step int) string {
	text := fmt.Sprintf("<%d x i32> <", count)
	for lane := range count {
		if lane > 0 {
			text += ", "
		}
		text += "i32 " + strconv.Itoa(first+lane*step)
	}
	return text + ">"
}

// combine joins two accumulators of one reduction; right stands for later points.
func (e *emitter) combine(left, right accumulator) accumulator {
	result := left
	if left.reduction.Positional() {
		result.parts = e.combinePositions(left, right)
		return result
	}
	op, _ := left.reduction.Combine()
	result.parts = []string{e.operation(op, left.typ, left.lanes, []string{left.parts[0], right.parts[0]})}
	return result
}

// combinePositions keeps the better value, a NaN before all others, and of equals the lower position.
func (e *emitter) combinePositions(left, right accumulator) []string {
	typ, lanes := left.typ, left.lanes
	test := func(op loop.Op, a, b string) string { return e.operation(op, typ, lanes, []string{a, b}) }
	bit := wide("i1", lanes)
	order := loop.OpGreater
	if left.reduction == loop.ArgMinimum {
		order = loop.OpLess
	}
	better := test(order, right.parts[0], left.parts[0])
	equal := test(loop.OpEqual, right.parts[0], left.parts[0])
	if typ.Is(loop.ClassFloat) {
		leftNaN, rightNaN := test(loop.OpNotEqual, left.parts[0], left.parts[0]), test(loop.OpNotEqual, right.parts[0], right.parts[0])
		fresh := e.assign("and %s %s, %s", bit, rightNaN, e.assign("xor %s %s, %s", bit, leftNaN, splatConstant("i1", "true", lanes)))
		better = e.assign("or %s %s, %s", bit, better, fresh)
		equal = e.assign("or %s %s, %s", bit, equal, e.assign("and %s %s, %s", bit, leftNaN, rightNaN))
	}
	lower := e.assign("icmp slt %s %s, %s", wide("i64", lanes), right.parts[1], left.parts[1])
	chosen := e.assign("or %s %s, %s", bit, better, e.assign("and %s %s, %s", bit, equal, lower))
	types := left.types()
	result := make([]string, 2)
	for part := range result {
		result[part] = e.assign("select %s %s, %s %s, %s %s", bit, chosen, types[part], right.parts[part], types[part], left.parts[part])
	}
	return result
}
