package cuda

import (
	"fmt"
	"slices"

	"fusee/backend/loop"
)

// Rows that begin with the same stages, as where the normalisation of one row comes before its product with each row of a matrix, are taken several by a
// group of threads, which then computes those stages once.
const (
	severalRows  = 2
	severalLeast = 1024 // groups that there must be left, about two for each part of a multiprocessor
)

// takeSeveral has each group take several rows where that saves computing what they share.
func (e *emitter) takeSeveral() {
	work, _ := product(e.nest.outer).static() // known where the kernel starts at once
	steps, even := e.steps()
	if !even || steps > aheadSteps || e.schedule.columns || e.schedule.group != warp || !e.startsAtOnce() {
		return
	}
	shared := e.nest.sharedStages()
	if !slices.ContainsFunc(e.nest.stages[:shared], func(s stage) bool { return s.hasInner }) {
		return
	}
	for rows := severalRows; rows > 1; rows /= 2 {
		if work >= int64(rows)*severalLeast/2 {
			e.schedule.rows, e.shared = rows, shared
			return
		}
	}
}

// sharedStages returns how many stages at the beginning are the same for all rows and store nothing.
func (n *nest) sharedStages() int {
	for index := range n.stages {
		s := &n.stages[index]
		for _, body := range [][]instruction{s.body, s.late} {
			if slices.ContainsFunc(body, func(in instruction) bool { return in.Op == loop.OpStore || n.ofRow(&in) }) {
				return index
			}
		}
	}
	return 0
}

// ofRow reports whether an instruction itself depends on the row.
func (n *nest) ofRow(in *instruction) bool {
	if in.Op == loop.OpIndex {
		return in.dimension < len(n.outer)
	}
	return in.strides != nil && slices.ContainsFunc(in.strides[:len(n.outer)], func(stride extent) bool { return !stride.is(0) })
}

// eachRow prints body for each of the group's rows, at the row's coordinates.
func (e *emitter) eachRow(body func()) {
	if e.schedule.rows == 1 {
		body()
		return
	}
	e.unrolled("row", e.schedule.rows, func() {
		e.line("const bool active = first + (i32)row < work;")
		e.line("const %s i = active ? first + (i32)row : work - 1;", e.index())
		e.coordinates("i", e.nest.outer, 0)
		body()
	})
}

// perRow is the place of a step's element in registers that hold the elements of several rows.
func (e *emitter) perRow(filler loop.Value) string {
	if e.schedule.rows == 1 || !e.nest.ofRow(e.nest.find(filler)) {
		return "step"
	}
	steps, _ := e.steps()
	return fmt.Sprintf("row * %d + step", steps)
}

// registers returns how many elements or vectors a load of so many steps takes.
func (e *emitter) registers(in *instruction, steps int) int {
	if e.nest.ofRow(in) {
		return steps * e.schedule.rows
	}
	return steps
}
