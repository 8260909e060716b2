package backend

import (
	"github.com/cockroachdb/errors"

	"fusee/backend/interpret"
	"fusee/backend/loop"
)

// SetElements stores numbers as the tensor's elements in row-major order of its dimensions, rounded to its element type. The error is about the
// wrong count, or a type that loops do not compute with.
func (d *Data) SetElements(numbers []float64) error {
	typ, ok := machineType(d.DType)
	if !ok {
		return errors.Newf("elements of type %s cannot be given", d.DType)
	}
	memory := &interpret.Bytes{Type: typ, Data: d.Storage}
	at := 0
	var visit func(dimension int, index int64)
	visit = func(dimension int, index int64) {
		if dimension == len(d.Sizes) {
			if at < len(numbers) {
				memory.Store(index, elementBits(typ, numbers[at]))
			}
			at++
			return
		}
		for position := range d.Sizes[dimension] {
			visit(dimension+1, index+position*d.Strides[dimension])
		}
	}
	visit(0, d.Offset)
	if at != len(numbers) {
		return errors.Newf("the tensor has %d elements, %d are given", at, len(numbers))
	}
	return nil
}

func elementBits(typ loop.Type, number float64) loop.Bits {
	switch {
	case typ == loop.Bool:
		return loop.BoolBits(number != 0)
	case typ.Is(loop.ClassInteger):
		return loop.IntBits(int64(number))
	}
	return loop.FloatBits(number)
}
