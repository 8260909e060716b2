package cuda

import (
	"fmt"

	"fusee/backend/loop"
)

// A load with a condition that holds for all points of a strip or for none reads a vector, as where tensors lie side by side at multiples of its width: the condition is
// decided once, at the first point.

// guarded reports whether a load is such a one.
func (s *strip) guarded(in *instruction) bool {
	last := s.base + len(s.sizes) - 1
	return in.Op == loop.OpLoad && len(in.Args) == 1 && s.width > 1 && s.nest.pieces == nil && in.strides[last].is(1) &&
		startsAligned(in, last, int64(s.width)) && s.alike(in.Args[0])
}

// find returns an instruction of the strip; nil for those of earlier stages.
func (s *strip) find(value loop.Value) *instruction {
	for i := range s.body {
		if s.body[i].value == value {
			return &s.body[i]
		}
	}
	return nil
}

// alike reports whether a condition on positions is the same at all points of a strip.
func (s *strip) alike(value loop.Value) bool {
	in := s.find(value)
	if in == nil {
		return false
	}
	switch in.Op {
	case loop.OpConstant:
		return true
	case loop.OpNot:
		return s.alike(in.Args[0])
	case loop.OpAnd, loop.OpOr:
		return s.alike(in.Args[0]) && s.alike(in.Args[1])
	case loop.OpLess, loop.OpGreaterEqual:
		return s.changesAt(in, 0)
	case loop.OpLessEqual, loop.OpGreater:
		return s.changesAt(in, 1)
	}
	return false
}

// changesAt reports whether a comparison of a position with a constant changes between strips only: so many positions behind the constant.
func (s *strip) changesAt(in *instruction, behind int64) bool {
	index, bound := s.find(in.Args[0]), s.find(in.Args[1])
	if index == nil || bound == nil || index.Op != loop.OpIndex || bound.Op != loop.OpConstant {
		return false
	}
	last := s.base + len(s.sizes) - 1
	if index.dimension != last {
		return index.dimension < s.base || s.staysInRow()
	}
	return (s.exact || len(s.sizes) == 1) && (bound.Bits.Int()+behind)%int64(s.width) == 0
}

// decision prints a condition as it is at the first point, where the positions are declared.
func (s *strip) decision(value loop.Value) string {
	in := s.find(value)
	switch in.Op {
	case loop.OpConstant:
		return s.literal(in.Type, in.Bits)
	case loop.OpIndex:
		return s.places[in.dimension]
	case loop.OpNot:
		return "!" + s.decision(in.Args[0])
	}
	return fmt.Sprintf("(%s)", s.elementwise(in.Op, s.typeOf(in.Args[0]), []string{s.decision(in.Args[0]), s.decision(in.Args[1])}))
}

// declareGuarded declares vectors of zeros and the conditions under which they are read, which are the same for all lanes.
func (s *strip) declareGuarded(loads []*instruction) {
	s.decided = map[loop.Value]bool{}
	for _, in := range loads {
		s.helpers["vector"] = true
		s.line("Vector<%s, %d> %s = {};", memoryName(in.Type), s.width, s.vectorName(in.value))
		s.names[in.value] = fromMemory(in.Type, s.vectorName(in.value)+".at[lane]")
		if condition := in.Args[0]; !s.decided[condition] && s.find(condition).Op != loop.OpConstant {
			s.decided[condition] = true
			s.names[condition] = fmt.Sprintf("whole%d", condition)
			s.line("bool %s;", s.names[condition])
		}
	}
}

// loadGuarded decides the conditions and reads the vectors.
func (s *strip) loadGuarded(loads []*instruction) {
	for _, in := range s.filter(func(in *instruction) bool { return s.decided[in.value] }) {
		s.line("%s = %s;", s.names[in.value], s.decision(in.value))
	}
	for _, in := range loads {
		s.line("if (%s)", s.value(in.Args[0]))
		s.line("    %s = load<%s, %d>(%s);", s.vectorName(in.value), memoryName(in.Type), s.width, s.address(in))
	}
}
