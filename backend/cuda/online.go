package cuda

import (
	"fmt"
	"slices"

	"fusee/backend/loop"
)

// onlineMaximum is a maximum that carries the sum of the exponentials of all elements less it along, so that both take one pass over a row (Milakov and
// Gimelshein, Online normalizer calculation for softmax, 2018).
const onlineMaximum loop.Reduction = 100

// fuseOnline lets the stage that finds a maximum also sum the exponentials of the differences from it, where the next stage does that alone. Rows that
// stay in registers for a later stage anyway are better read once, and their exponentials taken when the maximum is known.
func (e *emitter) fuseOnline() {
	for first := range e.nest.stages {
		second := e.nest.nextInner(first)
		if second < 0 || e.keepsRows(second) {
			continue
		}
		greatest, sum := e.nest.normaliser(first, second)
		if greatest == nil {
			continue
		}
		greatest.Reduction, greatest.partner = onlineMaximum, sum
		e.nest.stages = slices.Delete(e.nest.stages, second, second+1)
		return
	}
}

// nextInner returns the number of the stage with inner points after the one given; −1 when there is none, or when that one has no inner points itself.
func (n *nest) nextInner(from int) int {
	if !n.stages[from].hasInner {
		return -1
	}
	if after := slices.IndexFunc(n.stages[from+1:], func(s stage) bool { return s.hasInner }); after >= 0 {
		return from + 1 + after
	}
	return -1
}

// keepsRows reports whether a stage after the given one finds rows in registers.
func (e *emitter) keepsRows(stage int) bool {
	return e.nest.nextInner(stage) >= 0 && e.canKeepRows()
}

// normaliser finds a maximum of stage first, and in stage second, which has nothing else, the sum of exponentials of the same elements less that maximum.
func (n *nest) normaliser(first, second int) (greatest *instruction, sum loop.Value) {
	a, b := &n.stages[first], &n.stages[second]
	last := &b.body[len(b.body)-1]
	if last.Op != loop.OpReduce || last.Reduction != loop.Sum || !slices.EqualFunc(a.inner, b.inner, extent.equal) || len(b.reductions()) != 1 || b.stores() {
		return nil, 0
	}
	power := n.find(last.Args[0])
	if power.Op != loop.OpExp {
		return nil, 0
	}
	difference := n.find(power.Args[0])
	if difference.Op != loop.OpSubtract {
		return nil, 0
	}
	for _, in := range a.reductions() {
		if in.Reduction == loop.Maximum && in.value == difference.Args[1] && n.same(in.Args[0], difference.Args[0]) {
			return in, last.value
		}
	}
	return nil, 0
}

func (s *stage) stores() bool {
	return slices.ContainsFunc(s.body, func(in instruction) bool { return in.Op == loop.OpStore })
}

// find returns the instruction that defines a value.
func (n *nest) find(value loop.Value) *instruction {
	for in := range n.instructions() {
		if in.value == value {
			return in
		}
	}
	return &instruction{}
}

// same reports whether two values, each at a point of its own stage, are computed alike.
func (n *nest) same(a, b loop.Value) bool {
	if a == b {
		return true
	}
	x, y := n.find(a), n.find(b)
	if x.Op != y.Op || x.Type != y.Type || x.Bits != y.Bits || x.Index != y.Index || x.dimension != y.dimension || len(x.Args) != len(y.Args) {
		return false
	}
	switch {
	case x.Op == loop.OpReduce || x.Op == loop.OpStore || x.Op == loop.OpInvalid:
		return false
	case x.Op == loop.OpLoad && (!sameAccess(x, y) || n.kernel.Buffers[x.Access.Buffer].Mode != loop.Read):
		return false
	}
	for i := range x.Args {
		if !n.same(x.Args[i], y.Args[i]) {
			return false
		}
	}
	return true
}

// finishOnline makes the sum NaN where the greatest element is infinite, since the difference of two infinities is.
func (e *emitter) finishOnline(s *stage) {
	for _, in := range s.reductions() {
		if in.Reduction == onlineMaximum {
			e.line("v%d = v%d + (v%d - v%d);", in.partner, in.partner, in.value, in.value)
		}
	}
}

// collect notes the value at a lane for the update that follows the lanes.
func (e *emitter) collect(in *instruction) {
	e.line("online%d[%s] = %s;", in.value, e.lane(), e.value(in.Args[0]))
}

// lane is the number of the point within its vector.
func (e *emitter) lane() string {
	if e.lanes > 1 {
		return "lane"
	}
	return "0"
}

// declareOnline declares the elements of a vector that an update will need, and update merges them.
func (s *strip) declareOnline() {
	for _, in := range s.online() {
		s.line("%s online%d[%d];", typeName(in.Type), in.value, s.width)
	}
}

func (s *strip) update() {
	for _, in := range s.online() {
		s.line("%s;", s.call("add_exponentials", identity(loop.Maximum, in.Type), fmt.Sprintf("v%d", in.value), fmt.Sprintf("v%d", in.partner), fmt.Sprintf("online%d", in.value)))
	}
}

func (s *strip) online() []*instruction {
	return s.filter(func(in *instruction) bool { return in.Op == loop.OpReduce && in.Reduction == onlineMaximum })
}
