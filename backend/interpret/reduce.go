package interpret

import "fusee/backend/loop"

// accumulator is the running state of a reduction.
type accumulator struct {
	reduction loop.Reduction
	typ       loop.Type
	value     loop.Bits
	position  int64
	empty     bool
}

func newAccumulator(reduction loop.Reduction, typ loop.Type) *accumulator {
	return &accumulator{reduction: reduction, typ: typ, value: loop.Identity(reduction, typ), empty: true}
}

func (a *accumulator) add(m *machine, value loop.Bits) {
	if a.reduction.Positional() {
		if a.empty || a.better(value) {
			a.value, a.position, a.empty = value, m.inner, false
		}
		return
	}
	op, _ := a.reduction.Combine()
	a.value = m.round(a.typ, Apply(op, a.typ, []loop.Bits{a.value, value}))
}

// better reports whether a later value replaces the one held: only when it is strictly greater (or less), or the first NaN.
func (a *accumulator) better(value loop.Bits) bool {
	if a.typ.Is(loop.ClassFloat) {
		held, fresh := a.value.Float(), value.Float()
		if held != held || fresh != fresh {
			return held == held
		}
	}
	op := loop.OpGreater
	if a.reduction == loop.ArgMinimum {
		op = loop.OpLess
	}
	return Apply(op, a.typ, []loop.Bits{value, a.value}).Bool()
}

func (a *accumulator) result() loop.Bits {
	if a.reduction.Positional() {
		return loop.IntBits(a.position)
	}
	return a.value
}
