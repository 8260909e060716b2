package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fusee/backend/loop"
	"fusee/internal/slice"
)

// What a kernel keeps of constant buffers while it waits for the kernel before it.
const (
	aheadBytes = 320      // in each thread's registers
	aheadBlock = 80 << 10 // in those of a block
	aheadSteps = 8        // of a row, which are all printed
)

// readAhead reads constant buffers into registers, where all the kernel's threads run at a time: only what the kernel before makes is left to wait for.
func (e *emitter) readAhead() {
	steps, known := e.steps()
	if !e.startsAtOnce() || !known || steps > aheadSteps {
		return
	}
	if chosen := e.chooseAhead(steps); len(chosen) > 0 {
		e.fillAhead(chosen, steps)
	}
	e.readOuterAhead()
}

// chooseAhead declares registers for as many loads as have room, and returns them.
func (e *emitter) chooseAhead(steps int) []*instruction {
	e.ahead = map[loop.Value]loop.Value{}
	var chosen []*instruction
	room := min(aheadBytes, aheadBlock/e.schedule.threads)
	for _, group := range e.nest.constantLoads() {
		bytes := e.registers(group[0], steps) * e.schedule.vector * group[0].Type.Bytes()
		if bytes > room {
			continue
		}
		room -= bytes
		e.declareResident(group[0], steps)
		chosen = append(chosen, group[0])
		for _, in := range group {
			e.ahead[in.value] = group[0].value
		}
	}
	return chosen
}

// startsAtOnce reports whether so few threads run the kernel that all of them wait together for the kernel before.
func (e *emitter) startsAtOnce() bool {
	work, known := product(e.nest.outer).static()
	return e.options.DependentLaunch && known && e.nest.pieces == nil && work*int64(e.schedule.group) <= prefetchThreads
}

// fillAhead reads the chosen loads for all steps of the rows.
func (e *emitter) fillAhead(chosen []*instruction, steps int) {
	fill := func() {
		own := func(in *instruction) bool { return e.schedule.rows > 1 && e.nest.ofRow(in) }
		shared := slices.DeleteFunc(slices.Clone(chosen), own)
		if len(shared) > 0 {
			e.unrolled("step", steps, func() { e.fillStep(shared, steps) })
		}
		if rest := slices.DeleteFunc(slices.Clone(chosen), func(in *instruction) bool { return !own(in) }); len(rest) > 0 {
			e.eachRow(func() { e.unrolled("step", steps, func() { e.fillStep(rest, steps) }) })
		}
	}
	if conditions := e.rowAlignment(); len(conditions) > 0 {
		e.block("if ("+strings.Join(conditions, " && ")+")", fill)
	} else {
		fill()
	}
}

func (e *emitter) fillStep(chosen []*instruction, steps int) {
	stage := e.nest.innerStages()[0]
	e.line("const %s j = (step * %d + rank)%s;", e.index(), e.schedule.group, times(e.schedule.vector))
	read := func() {
		e.resident = maps.Clone(e.ahead)
		strip := e.innerStrip(stage)
		strip.coordinates("j")
		for _, in := range chosen {
			strip.fill(in)
		}
		e.resident = nil
	}
	if points := int64(steps * e.schedule.group * e.schedule.vector); stage.points == points {
		read()
	} else {
		e.block("if (j < "+product(stage.inner).C()+")", read)
	}
}

// fill reads a load's elements of one step into its registers.
func (s *strip) fill(in *instruction) {
	if s.width == 1 {
		s.line("%s = %s;", s.vectorName(in.value), s.element(in, ""))
		return
	}
	s.loadWhole(in)
}

// readOuterAhead reads what a row needs one element of.
func (e *emitter) readOuterAhead() {
	e.aheadNames = map[loop.Value]string{}
	for index := range e.nest.stages {
		s := &e.nest.stages[index]
		body := s.late
		if !s.hasInner {
			body = s.body
		}
		for i := range body {
			if in := &body[i]; e.nest.constant(in) {
				e.readElementAhead(in)
			}
		}
	}
}

// readOuterEarly reads what a row needs one element of behind its first reduction, before that: where threads wait together for the kernel before, each
// of them would wait for memory twice otherwise.
func (e *emitter) readOuterEarly() {
	if !e.startsAtOnce() || e.schedule.group == 1 {
		return
	}
	if e.aheadNames == nil {
		e.aheadNames = map[loop.Value]string{}
	}
	behind := false
	for index := range e.nest.stages {
		s := &e.nest.stages[index]
		behind = behind || s.hasInner
		if s.hasInner || !behind {
			continue
		}
		for i := range s.body {
			if in := &s.body[i]; e.nest.onlyRead(in) && e.aheadNames[in.value] == "" {
				e.readElementAhead(in)
			}
		}
	}
}

func (e *emitter) readElementAhead(in *instruction) {
	if e.schedule.rows == 1 || !e.nest.ofRow(in) {
		e.loadNow(in)
		e.aheadNames[in.value] = e.names[in.value]
		return
	}
	e.useType(in.Type)
	e.line("%s v%d[%d];", memoryName(in.Type), in.value, e.schedule.rows)
	e.eachRow(func() { e.line("v%d[row] = %s;", in.value, e.element(in, "")) })
	e.aheadNames[in.value] = fromMemory(in.Type, fmt.Sprintf("v%d[row]", in.value))
	e.names[in.value] = e.aheadNames[in.value]
}

// innerStages lists the stages with inner points.
func (n *nest) innerStages() []*stage {
	var result []*stage
	for index := range n.stages {
		if n.stages[index].hasInner {
			result = append(result, &n.stages[index])
		}
	}
	return result
}

// constantLoads groups the loads of constant buffers that read the same places along the rows.
func (n *nest) constantLoads() [][]*instruction {
	var groups [][]*instruction
	for _, in := range slice.FlatMap(n.innerStages(), (*stage).accesses) {
		if n.constant(in) && n.varies(in) {
			groups = addLoad(groups, in)
		}
	}
	return groups
}

// constant reports whether in is a plain load of a buffer that nothing writes while the plan runs.
func (n *nest) constant(in *instruction) bool {
	return n.onlyRead(in) && n.kernel.Buffers[in.Access.Buffer].Constant
}

// onlyRead reports whether in is a plain load of a buffer that the kernel does not write.
func (n *nest) onlyRead(in *instruction) bool {
	return in.Op == loop.OpLoad && !masked(in) && len(in.indirect) == 0 && n.kernel.Buffers[in.Access.Buffer].Mode == loop.Read
}
