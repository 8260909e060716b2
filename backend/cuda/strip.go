package cuda

import (
	"fmt"
	"slices"

	"fusee/backend/loop"
)

// strip is what one thread does at one step: a vector of neighbouring points along the last of some dimensions, all of
// which exist. With more than one point it has three parts: loads, computation, stores.
type strip struct {
	*emitter
	body     []instruction
	position string   // variable that holds the linear position of the first point
	sizes    []extent // of the dimensions that position runs over
	base     int      // number of dimensions before them, whose coordinates are declared already
	width    int
	exact    bool                // strips must cover the last dimension exactly, because rows follow or no one looks after the rest
	store    string              // condition for stores; "" for none
	decided  map[loop.Value]bool // conditions that are the same for all lanes
}

// emit prints the strip.
func (s *strip) emit() {
	s.lanes, s.decided = s.width, nil
	s.declareOnline()
	if s.width == 1 {
		s.emitSingle()
		return
	}
	s.loads()
	for _, in := range s.late() {
		s.helpers["vector"] = true
		s.line("Vector<%s, %d> %s;", memoryName(in.Type), s.width, s.vectorName(in.value))
	}
	inRow := s.needsPoint() && s.staysInRow()
	if inRow {
		s.coordinates(s.position)
	}
	s.unrolled("lane", s.width, func() {
		point := s.position + s.step() + "lane"
		switch {
		case inRow:
			last := s.base + len(s.sizes) - 1
			s.places[last] = fmt.Sprintf("(%s%s(i32)lane)", s.coordinateName(last), s.step())
		case s.needsPoint():
			s.line("const %s at = %s;", s.index(), point)
			s.coordinates("at")
		}
		s.instructions(point)
	})
	s.update()
	s.stores()
}

// step is the operator that leads from the first point of a strip to that of a lane. Where positions count, NVRTC has to see that those of a strip differ in their last
// bits only: what follows from the others, as a counter of random numbers does, is computed once.
func (s *strip) step() string {
	if s.counts() && s.width&(s.width-1) == 0 {
		return " | "
	}
	return " + "
}

// counts reports whether a position is asked for.
func (s *strip) counts() bool {
	return slices.ContainsFunc(s.body, func(in instruction) bool { return in.Op == loop.OpIndex })
}

// staysInRow reports whether the points of a strip differ in the last of several dimensions only, so that positions need no division for each.
func (s *strip) staysInRow() bool {
	return len(s.sizes) > 1 && (s.exact || s.sizes[len(s.sizes)-1].divisible(int64(s.width)))
}

// emitSingle prints a strip of one point.
func (s *strip) emitSingle() {
	s.coordinates(s.position)
	for _, in := range s.early() {
		if !s.isResident(in) {
			continue
		}
		if !s.kept(in) {
			s.line("%s = %s;", s.vectorName(in.value), s.element(in, ""))
		}
		s.names[in.value] = fromMemory(in.Type, s.vectorName(in.value))
	}
	s.instructions(s.position)
	s.update()
}

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
	return s.guarded(in) || in.strides != nil && !masked(in) && s.width > 1 && in.strides[s.base+len(s.sizes)-1].is(1)
}

// masked reports whether a load or store has a condition.
func masked(in *instruction) bool {
	return in.Op == loop.OpLoad && len(in.Args) > 0 || in.Op == loop.OpStore && len(in.Args) == 2
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
		return in.Op == loop.OpStore && !s.vectorized(in) || masked(in) && !s.guarded(in) || in.Op == loop.OpIndex
	})
}

func (s *strip) needsPoint() bool { return len(s.direct()) > 0 }

// alignment lists what must hold at launch so that vectors start at multiples of their size and cover rows exactly.
func (s *strip) alignment() []string {
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
	if s.width > 1 && s.exact && !s.sizes[len(s.sizes)-1].divisible(int64(s.width)) {
		add(fmt.Sprintf("%s %% %d == 0", s.sizes[len(s.sizes)-1].C(), s.width))
	}
	return result
}

// together prints moves of whole vectors, in a block when they need coordinates declared.
func (s *strip) together(moves func()) {
	all := func() {
		s.coordinates(s.position)
		moves()
	}
	if len(s.sizes) > 1 {
		s.block("", all)
	} else {
		all()
	}
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
	guarded := s.filter(s.guarded)
	s.declareGuarded(guarded)
	if len(moved)+len(guarded) == 0 {
		return
	}
	s.together(func() {
		for _, in := range moved {
			s.loadWhole(in)
		}
		s.loadGuarded(guarded)
	})
}

// declareVector declares the vector of a load, unless it is declared elsewhere, and names its elements.
func (s *strip) declareVector(in *instruction) {
	if !s.isResident(in) && !s.declaredByLoad(in) {
		s.line("Vector<%s, %d> %s;", memoryName(in.Type), s.width, s.vectorName(in.value))
	}
	s.helpers["vector"] = true
	s.names[in.value] = fromMemory(in.Type, s.vectorName(in.value)+".at[lane]")
}

// declaredByLoad reports whether the statement that loads a vector also declares it.
func (s *strip) declaredByLoad(in *instruction) bool {
	return s.vectorized(in) && len(s.sizes) == 1 && !s.isResident(in)
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
		if s.declaredByLoad(in) {
			name = fmt.Sprintf("const Vector<%s, %d> %s", memoryName(in.Type), s.width, name)
		}
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
	s.together(func() {
		for _, in := range late {
			s.line("store(%s, %s);", s.address(in), s.vectorName(in.value))
		}
	})
}

// instructions prints the computation at one point.
func (s *strip) instructions(point string) {
	for i := range s.body {
		in := &s.body[i]
		switch {
		case in.Op == loop.OpLoad && s.names[in.value] != "" || s.decided[in.value]:
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
