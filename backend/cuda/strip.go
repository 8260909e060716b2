package cuda

import (
	"fmt"
	"slices"
	"strings"

	"fusee/backend/loop"
)

// strip is what one thread does at one step: a vector of neighbouring points along the last of some dimensions.
// With more than one point it has three parts: loads, computation, stores. Loads and stores move whole vectors when
// that is possible at run time, and single elements otherwise.
type strip struct {
	*emitter
	body     []instruction
	position string   // variable that holds the linear position of the first point
	limit    string   // number of points
	sizes    []extent // of the dimensions that position runs over
	base     int      // number of dimensions before them, whose coordinates are declared already
	width    int
	ragged   bool   // the last strip may be partial
	whole    string // condition for moving vectors; "" when always possible
	store    string // condition for stores; "" for none
	check    bool   // the first point may be beyond the last one
}

// emitChecked prints the strip under the condition that it exists.
func (s *strip) emitChecked() { s.guarded(s.check, s.position, s.emit) }

// emit prints the strip.
func (s *strip) emit() {
	if s.width == 1 {
		s.emitSingle()
		return
	}
	s.declareWhole()
	s.loads()
	for _, in := range s.late() {
		s.helpers["vector"] = true
		s.line("Vector<%s, %d> %s;", memoryName(in.Type), s.width, s.vectorName(in.value))
	}
	s.unrolled("lane", s.width, func() {
		point := s.position + " + lane"
		if s.needsPoint() {
			s.line("const %s at = %s;", s.index(), point)
			s.coordinates("at")
		}
		s.guarded(s.ragged && s.hasEffects(), point, func() { s.instructions(point) })
	})
	s.stores()
}

// emitSingle prints a strip of one point.
func (s *strip) emitSingle() {
	s.coordinates(s.position)
	for _, in := range s.early() {
		if _, resident := s.resident[in.value]; !resident {
			continue
		}
		if !s.kept(in) {
			s.line("%s = %s;", s.vectorName(in.value), s.element(in, ""))
		}
		s.names[in.value] = fromMemory(in.Type, s.vectorName(in.value))
	}
	s.instructions(s.position)
}

// guarded prints body under the condition that point exists.
func (s *strip) guarded(needed bool, point string, body func()) {
	if !needed {
		body()
		return
	}
	s.block(fmt.Sprintf("if (%s < %s)", point, s.limit), body)
}

// ragged reports whether strips of width points may not cover sizes exactly.
func ragged(sizes []extent, width int) bool { return !product(sizes).divisible(int64(width)) }

// coordinateName names the position along a dimension: i0, i1… for outer ones, j0, j1… for inner ones.
func (e *emitter) coordinateName(dimension int) string {
	if outer := len(e.nest.outer); dimension >= outer {
		return fmt.Sprintf("j%d", dimension-outer)
	}
	return fmt.Sprintf("i%d", dimension)
}

// coordinates declares the positions along all dimensions at the linear position given.
func (s *strip) coordinates(position string) { s.emitter.coordinates(position, s.sizes, s.base) }

// coordinates splits the row-major linear position over sizes, the dimensions from base on.
func (e *emitter) coordinates(position string, sizes []extent, base int) {
	for d := len(sizes) - 1; d >= 0; d-- {
		if d == 0 {
			e.places[base] = position
			return
		}
		name := e.coordinateName(base + d)
		e.places[base+d] = name
		rest := name + "_rest"
		e.line("const %s %s = %s;", e.index(), rest, e.quotient(position, sizes[d]))
		e.line("const %s %s = %s - %s * (%s);", e.index(), name, position, rest, sizes[d].C())
		position = rest
	}
}

// quotient divides a position, cheaply when both numbers turn out small.
func (e *emitter) quotient(position string, size extent) string {
	if size.known() {
		return position + " / " + size.C()
	}
	return e.call("divide", position, size.C())
}

// vectorized reports whether the access walks memory one element at a time along the strip.
func (s *strip) vectorized(in *instruction) bool {
	return in.strides != nil && !masked(in) && s.width > 1 && in.strides[s.base+len(s.sizes)-1].is(1)
}

// masked reports whether a load or store has a condition.
func masked(in *instruction) bool {
	return in.Op == loop.OpLoad && len(in.Args) == 1 || in.Op == loop.OpStore && len(in.Args) == 2
}

// constant reports whether the access is the same at all points of the strip's dimensions.
func (s *strip) constant(in *instruction) bool {
	return !slices.ContainsFunc(in.strides[s.base:], func(stride extent) bool { return !stride.is(0) })
}

// early returns the loads that come before the computation: all without a condition.
func (s *strip) early() []*instruction {
	return s.filter(func(in *instruction) bool { return in.Op == loop.OpLoad && !masked(in) })
}

// late returns the stores that come after the computation, as vectors.
func (s *strip) late() []*instruction {
	return s.filter(func(in *instruction) bool { return in.Op == loop.OpStore && s.vectorized(in) })
}

func (s *strip) filter(keep func(*instruction) bool) []*instruction {
	var result []*instruction
	for i := range s.body {
		if keep(&s.body[i]) {
			result = append(result, &s.body[i])
		}
	}
	return result
}

// direct returns the instructions that touch memory or position in the midst of the computation.
func (s *strip) direct() []*instruction {
	return s.filter(func(in *instruction) bool {
		return in.Op == loop.OpStore && !s.vectorized(in) || masked(in) || in.Op == loop.OpIndex
	})
}

func (s *strip) needsPoint() bool { return len(s.direct()) > 0 }

// hasEffects reports whether computing a point that does not exist would do harm.
func (s *strip) hasEffects() bool {
	return s.needsPoint() || len(s.filter(func(in *instruction) bool { return in.Op == loop.OpReduce })) > 0
}

// declareWhole names the condition under which vectors can move.
func (s *strip) declareWhole() {
	conditions := s.alignmentConditions()
	if s.ragged {
		conditions = append([]string{fmt.Sprintf("%s + %d <= %s", s.position, s.width, s.limit)}, conditions...)
	}
	if len(conditions) > 0 {
		s.whole = "whole"
		s.line("const bool whole = %s;", strings.Join(conditions, " && "))
	}
}

// alignmentConditions lists what must hold at launch so that vectors start at multiples of their size.
func (s *strip) alignmentConditions() []string {
	var result []string
	add := func(condition string) {
		if !slices.Contains(result, condition) {
			result = append(result, condition)
		}
	}
	for _, in := range s.filter(s.vectorized) {
		buffer, bytes := s.nest.kernel.Buffers[in.Access.Buffer], s.width*in.Type.Bytes()
		if buffer.Alignment < bytes {
			add(fmt.Sprintf("(u64)%s %% %d == 0", s.bufferName(in.Access.Buffer), bytes))
		}
		for d, stride := range append([]extent{in.offset}, in.strides...) {
			if d-1 != s.base+len(s.sizes)-1 && !stride.divisible(int64(s.width)) {
				add(fmt.Sprintf("%s %% %d == 0", stride.C(), s.width))
			}
		}
	}
	if row := s.sizes[len(s.sizes)-1]; len(s.sizes) > 1 && !row.divisible(int64(s.width)) {
		add(fmt.Sprintf("%s %% %d == 0", row.C(), s.width))
	}
	return result
}

// transfer prints moves: whole at once if possible, else lane by lane.
func (s *strip) transfer(whole, single func()) {
	together := func() {
		s.coordinates(s.position)
		whole()
	}
	switch {
	case s.whole != "":
		s.choice(s.whole, together, func() { s.laneByLane(single) })
	case len(s.sizes) > 1:
		s.block("", together)
	default:
		together()
	}
}

func (s *strip) laneByLane(single func()) {
	s.unrolled("lane", s.width, func() {
		s.line("const %s at = %s + lane;", s.index(), s.position)
		s.guarded(s.ragged, "at", func() {
			s.coordinates("at")
			single()
		})
	})
}

// loads declares the early loads of the strip and reads them.
func (s *strip) loads() {
	var moved []*instruction
	for _, in := range s.early() {
		if s.constant(in) {
			s.loadNow(in)
			continue
		}
		s.declareVector(in)
		if !s.kept(in) {
			moved = append(moved, in)
		}
	}
	if len(moved) == 0 {
		return
	}
	s.transfer(func() {
		for _, in := range moved {
			s.loadWhole(in)
		}
	}, func() {
		for _, in := range moved {
			s.line("%s.at[lane] = %s;", s.vectorName(in.value), s.element(in, ""))
		}
	})
}

// declareVector declares the vector of a load, unless it is resident and declared before the stages.
func (s *strip) declareVector(in *instruction) {
	if _, resident := s.resident[in.value]; !resident {
		s.line("Vector<%s, %d> %s = {};", memoryName(in.Type), s.width, s.vectorName(in.value))
	}
	s.helpers["vector"] = true
	s.names[in.value] = fromMemory(in.Type, s.vectorName(in.value)+".at[lane]")
}

// fromMemory turns an element in memory into a value.
func fromMemory(t loop.Type, expression string) string {
	if t == loop.Bool {
		return "(" + expression + " != 0)"
	}
	return expression
}

func (s *strip) loadWhole(in *instruction) {
	name := s.vectorName(in.value)
	if s.vectorized(in) {
		s.line("%s = load<%s, %d>(%s);", name, memoryName(in.Type), s.width, s.address(in))
		return
	}
	last := in.strides[s.base+len(s.sizes)-1]
	s.unrolled("lane", s.width, func() {
		s.line("%s.at[lane] = %s;", name, s.element(in, laneOffset(last)))
	})
}

// laneOffset returns the distance of a lane from the first one.
func laneOffset(stride extent) string {
	if stride.is(0) {
		return ""
	}
	return " + " + stride.C() + " * (i32)lane"
}

// stores writes the vectors that the computation filled.
func (s *strip) stores() {
	switch late := s.late(); {
	case len(late) == 0:
	case s.store == "":
		s.storeVectors(late)
	default:
		s.block(fmt.Sprintf("if (%s)", s.store), func() { s.storeVectors(late) })
	}
}

func (s *strip) storeVectors(late []*instruction) {
	s.transfer(func() {
		for _, in := range late {
			s.line("store(%s, %s);", s.address(in), s.vectorName(in.value))
		}
	}, func() {
		for _, in := range late {
			s.line("%s = %s.at[lane];", s.element(in, ""), s.vectorName(in.value))
		}
	})
}

// instructions prints the computation at one point.
func (s *strip) instructions(point string) {
	for i := range s.body {
		in := &s.body[i]
		switch {
		case in.Op == loop.OpLoad && s.names[in.value] != "":
		case in.Op == loop.OpStore && s.vectorized(in):
			s.line("%s.at[lane] = %s;", s.vectorName(in.value), s.value(in.Args[0]))
		case in.Op == loop.OpReduce:
			s.accumulate(in, point)
		case in.Op == loop.OpStore && s.store != "":
			s.block(fmt.Sprintf("if (%s)", s.store), func() { s.instruction(in) })
		default:
			s.instruction(in)
		}
	}
}
