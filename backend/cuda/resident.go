package cuda

import (
	"maps"
	"slices"

	"fusee/backend/loop"
)

// planResidents finds the loads that several stages do alike, and declares the registers that keep them when rows are
// short enough. All stages with inner points then unroll their loops.
func (e *emitter) planResidents() {
	if e.slow {
		return
	}
	e.resident = maps.Clone(e.ahead)
	if !e.canKeepRows() {
		return
	}
	steps, _ := e.steps()
	if e.resident == nil {
		e.resident = map[loop.Value]loop.Value{}
	}
	for _, group := range e.repeatedLoads() {
		for _, in := range group {
			e.resident[in.value] = group[0].value
		}
		e.declareResident(group[0], steps)
	}
}

// canKeepRows reports whether several stages do the same loads and rows are short enough to keep them in registers.
func (e *emitter) canKeepRows() bool {
	groups := e.repeatedLoads()
	steps, ok := e.steps()
	return len(groups) > 0 && ok && steps*e.schedule.vector*elementBytes(groups) <= residentBytes
}

func (e *emitter) declareResident(in *instruction, steps int) {
	steps = e.registers(in, steps)
	if e.schedule.vector == 1 {
		e.line("%s v%d[%d];", memoryName(in.Type), in.value, steps)
		return
	}
	e.helpers["vector"] = true
	e.line("Vector<%s, %d> v%d[%d];", memoryName(in.Type), e.schedule.vector, in.value, steps)
}

func (e *emitter) isResident(in *instruction) bool {
	_, resident := e.resident[in.value]
	return resident
}

// kept reports whether a load is found in registers that an earlier load filled.
func (e *emitter) kept(in *instruction) bool {
	filler, resident := e.resident[in.value]
	_, early := e.ahead[in.value]
	return resident && (filler != in.value || early)
}

// elementBytes returns how many bytes one element of each group takes.
func elementBytes(groups [][]*instruction) int {
	bytes := 0
	for _, group := range groups {
		bytes += group[0].Type.Bytes()
	}
	return bytes
}

// steps returns how many steps cover a row, when all stages with inner points have rows of one known shape.
func (e *emitter) steps() (int, bool) {
	var shape []extent
	for _, s := range e.nest.innerStages() {
		if s.dynamic || shape != nil && !slices.EqualFunc(shape, s.inner, extent.equal) {
			return 0, false
		}
		shape = s.inner
	}
	points, _ := product(shape).static()
	stride := int64(e.schedule.group * e.schedule.vector)
	return int((points + stride - 1) / stride), points > 0
}

// repeatedLoads leaves out of the nest's groups those that are read ahead.
func (e *emitter) repeatedLoads() [][]*instruction {
	return slices.DeleteFunc(e.nest.repeatedLoads(), func(group []*instruction) bool {
		_, early := e.ahead[group[0].value]
		return early
	})
}

// repeatedLoads groups the unmasked loads of stages with inner points that read the same places of a buffer which no
// stage before the last of them writes. Groups of loads from one stage alone are left out.
func (n *nest) repeatedLoads() [][]*instruction {
	var groups [][]*instruction
	stageOf := map[loop.Value]int{}
	for index := range n.stages {
		for _, in := range n.stages[index].accesses() {
			if n.stages[index].hasInner && n.varies(in) && n.unwritten(in.Access.Buffer, index) {
				stageOf[in.value] = index
				groups = addLoad(groups, in)
			}
		}
	}
	return slices.DeleteFunc(groups, func(group []*instruction) bool {
		return stageOf[group[0].value] == stageOf[group[len(group)-1].value]
	})
}

// varies reports whether in is an unmasked load that reads different places along the inner dimensions.
func (n *nest) varies(in *instruction) bool {
	inner := in.strides[len(n.outer):]
	return in.Op == loop.OpLoad && !masked(in) && slices.ContainsFunc(inner, func(stride extent) bool { return !stride.is(0) })
}

func addLoad(groups [][]*instruction, in *instruction) [][]*instruction {
	for g, group := range groups {
		if sameAccess(group[0], in) {
			groups[g] = append(group, in)
			return groups
		}
	}
	return append(groups, []*instruction{in})
}

func sameAccess(a, b *instruction) bool {
	return a.Access.Buffer == b.Access.Buffer && a.offset.equal(b.offset) && slices.EqualFunc(a.strides, b.strides, extent.equal)
}

// unwritten reports whether no stage before index stores to buffer.
func (n *nest) unwritten(buffer, index int) bool {
	return !slices.ContainsFunc(n.stages[:index], func(s stage) bool {
		return slices.ContainsFunc(s.accesses(), func(in *instruction) bool { return in.Op == loop.OpStore && in.Access.Buffer == buffer })
	})
}
