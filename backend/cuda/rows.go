package cuda

import (
	"fmt"
	"slices"

	"fusee/backend/loop"
)

// rows prints a kernel in which a group of threads works at each outer point.
func (e *emitter) rows() {
	e.declareGroup()
	if e.schedule.rows == 1 {
		e.coordinates("i", e.nest.outer, 0)
	}
	e.readAhead()
	e.prefetch()
	e.awaitKernelBefore()
	e.readOuterEarly()
	e.declarePiece()
	e.fastAndSlow(e.rowAlignment(), e.stages, func() {
		e.schedule.vector, e.slow, e.resident = 1, true, nil
		e.stages()
	})
}

// declarePiece computes the length of the outer point's piece of an inner dimension, in units.
func (e *emitter) declarePiece() {
	if e.nest.pieces == nil {
		return
	}
	span, unit := e.nest.kernel.Span, e.nest.pieceUnit()
	size, total := extentOf(span.Size), extentOf(span.Total)
	size.factor, total.factor = size.factor/unit, total.factor/unit
	name := scalarName(e.nest.kernel.Scalars)
	e.line("const i64 %s_rest = %s - (i64)%s * %s;", name, total.C(), e.places[e.nest.pieces.dimension], size.C())
	e.line("const i64 %s = %s_rest < %s ? %s_rest : %s;", name, name, size.C(), name, size.C())
}

// rowAlignment lists what must hold at launch so that the vectors of all stages can move.
func (e *emitter) rowAlignment() []string {
	var result []string
	for _, s := range e.nest.innerStages() {
		strip := e.innerStrip(s)
		result = append(result, strip.alignment()...)
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// stages prints the stages one after another.
func (e *emitter) stages() {
	e.planResidents()
	e.printStages(0, e.shared)
	e.eachRow(func() { e.printStages(e.shared, len(e.nest.stages)) })
}

func (e *emitter) printStages(from, to int) {
	for index := from; index < to; index++ {
		s := &e.nest.stages[index]
		e.line("")
		if s.hasInner {
			e.innerStage(s)
		} else {
			e.outerStage(s)
		}
		if e.needsBarrier(index) {
			e.line("__syncthreads();")
		}
	}
}

// declareGroup says which outer point the thread works at (i), and which of the group's threads it is (rank). Threads
// without a point of their own repeat the last one without storing, because all threads must meet at barriers.
func (e *emitter) declareGroup() {
	items := e.schedule.items(false)
	item, rank := "blockIdx.x", "threadIdx.x"
	switch {
	case e.schedule.rows > 1:
		item = fmt.Sprintf("((%s)blockIdx.x * %d + threadIdx.x / %d) * %d", e.index(), items/e.schedule.rows, e.schedule.group, e.schedule.rows)
		rank = fmt.Sprintf("threadIdx.x %% %d", e.schedule.group)
	case e.schedule.columns:
		e.line("const u32 column = threadIdx.x %% %d;", items)
		item, rank = fmt.Sprintf("(%s)blockIdx.x * %d + column", e.index(), items), fmt.Sprintf("threadIdx.x / %d", items)
	case items > 1:
		item = fmt.Sprintf("(%s)blockIdx.x * %d + threadIdx.x / %d", e.index(), items, e.schedule.group)
		rank = fmt.Sprintf("threadIdx.x %% %d", e.schedule.group)
	}
	e.line("const u32 rank = %s;", rank)
	if e.schedule.rows > 1 {
		e.line("const %s first = %s;", e.index(), item)
		return
	}
	if items == 1 {
		e.line("const %s i = %s;", e.index(), item)
		return
	}
	e.line("const %s item = %s;", e.index(), item)
	e.line("const bool active = item < work;")
	e.line("const %s i = active ? item : work - 1;", e.index())
}

// active returns the condition under which the thread may store, and the threads of a group that all compute the
// same may store once.
func (e *emitter) active(once bool) string {
	condition := ""
	if e.schedule.items(false) > 1 {
		condition = "active"
	}
	if !once || e.schedule.group == 1 {
		return condition
	}
	if condition != "" {
		condition += " && "
	}
	return condition + "rank == 0"
}

// outerStage prints a stage that all threads of a group compute alike.
func (e *emitter) outerStage(s *stage) {
	for i := range s.body {
		in := &s.body[i]
		if e.aheadNames[in.value] != "" {
			continue
		}
		if condition := e.active(true); in.Op == loop.OpStore && condition != "" {
			e.line("if (%s)", condition)
			e.depth++
			e.instruction(in)
			e.depth--
			continue
		}
		e.instruction(in)
	}
}

// innerStage prints a stage whose inner points the threads of a group share.
func (e *emitter) innerStage(s *stage) {
	for i := range s.body {
		if in := &s.body[i]; in.Op == loop.OpReduce {
			e.declareAccumulator(in)
		}
	}
	e.innerLoop(s)
	for i := range s.late {
		if e.aheadNames[s.late[i].value] == "" {
			e.instruction(&s.late[i])
		}
	}
	e.combineGroup(s)
	e.finishOnline(s)
}

// declareAccumulator declares the thread's share of a reduction. Positional ones keep the best value and its position.
func (e *emitter) declareAccumulator(in *instruction) {
	t := e.typeOf(in.Args[0])
	if in.Reduction.Positional() {
		e.helpers["take"] = true
		e.line("%s best%d = %s;", typeName(t), in.value, identity(in.Reduction, t))
		e.line("i64 v%d = -1;", in.value)
		return
	}
	if in.Reduction == onlineMaximum {
		e.line("%s v%d = %s;", typeName(in.Type), in.value, identity(loop.Maximum, t))
		e.line("%s v%d = %s;", typeName(in.Type), in.partner, identity(loop.Sum, t))
		return
	}
	e.line("%s v%d = %s;", typeName(in.Type), in.value, identity(in.Reduction, t))
}

// accumulate merges the value at a point into the thread's share.
func (e *emitter) accumulate(in *instruction, point string) {
	value, name := e.value(in.Args[0]), fmt.Sprintf("v%d", in.value)
	if in.Reduction.Positional() {
		e.line("%s;", e.take(in, value, point))
		return
	}
	if in.Reduction == onlineMaximum {
		e.collect(in)
		return
	}
	e.line("%s", e.combine(in.Reduction, in.Type, name, value))
}

func (e *emitter) take(in *instruction, value, position string) string {
	return fmt.Sprintf("take<%t>(best%d, v%d, %s, %s)", in.Reduction == loop.ArgMaximum, in.value, in.value, value, position)
}

func (e *emitter) innerStrip(s *stage) strip {
	return strip{
		emitter: e, body: s.body, position: "j", sizes: s.inner, base: len(e.nest.outer), width: e.schedule.vector,
		exact: true, store: e.active(false),
	}
}

// innerLoop prints the loop over a stage's inner points.
func (e *emitter) innerLoop(s *stage) {
	width, stride := e.schedule.vector, e.schedule.group*e.schedule.vector
	strip, limit := e.innerStrip(s), product(s.inner).C()
	if steps, ok := e.unrolledSteps(s); ok {
		e.unrolled("step", steps, func() {
			e.line("const %s j = (step * %d + rank)%s;", e.index(), e.schedule.group, times(width))
			if s.points%int64(stride) == 0 {
				strip.emit()
			} else {
				e.block(fmt.Sprintf("if (j < %s)", limit), strip.emit)
			}
		})
		return
	}
	e.line("#pragma unroll %d", e.unrollFactor(s))
	e.block(fmt.Sprintf("for (%s j = rank%s; j < %s; j += %d)", e.index(), times(width), limit, stride), strip.emit)
}

func times(width int) string {
	if width == 1 {
		return ""
	}
	return fmt.Sprintf(" * %d", width)
}

// unrollFactor returns how many steps of a loop have their loads in flight together.
func (e *emitter) unrollFactor(s *stage) int {
	if e.slow {
		return 1
	}
	loads, narrowest, weight := 0, 8, 0
	for i := range s.body {
		in := &s.body[i]
		if in.Op == loop.OpLoad && !e.stays(in) {
			loads++
			narrowest = min(narrowest, in.Type.Bytes())
		}
		weight += weightOf(in)
	}
	if steps, known := e.steps(); known && steps <= shortSteps && steps*weight*e.schedule.vector <= shortWeight {
		return steps
	}
	bytes := flightBytes
	if narrowest < 4 {
		bytes /= 2
	}
	wanted := bytes / (max(loads, 1) * narrowest * e.schedule.vector)
	return max(min(wanted, unrolledWeight/(weight*e.schedule.vector), 8), 1)
}

// weightOf estimates how much code an instruction becomes.
func weightOf(in *instruction) int {
	if in.Reduction.Positional() {
		return 12
	}
	return 1
}

// unrolledSteps returns how many steps each thread takes when rows are short enough to be kept in registers.
func (e *emitter) unrolledSteps(s *stage) (int, bool) {
	if s.dynamic || len(e.resident) == 0 {
		return 0, false
	}
	stride := int64(e.schedule.group * e.schedule.vector)
	return int((s.points + stride - 1) / stride), true
}

// stays reports whether a load is the same at all inner points, so that the compiler takes it out of the loop.
func (e *emitter) stays(in *instruction) bool {
	return len(in.Args) == 0 && e.nest.kernel.Buffers[in.Access.Buffer].Mode == loop.Read &&
		!slices.ContainsFunc(in.strides[len(e.nest.outer):], func(stride extent) bool { return !stride.is(0) })
}

// needsBarrier reports whether a stage must end before the next one starts: where one of them stores what others read.
func (e *emitter) needsBarrier(index int) bool {
	return index < len(e.nest.stages)-1 && e.schedule.group != 1 &&
		slices.ContainsFunc(e.nest.kernel.Buffers, func(buffer loop.Buffer) bool { return buffer.Mode == loop.ReadWrite })
}
