package kerneltest

import (
	"fmt"
	"math"

	"fusee/backend/interpret"
	"fusee/backend/loop"
)

// Interpret runs the case on a copy of its buffers and returns them.
func (c *Case) Interpret() [][]byte {
	buffers := c.Copy()
	memory := make([]interpret.Memory, len(buffers))
	for index := range buffers {
		memory[index] = &interpret.Bytes{Type: c.buffer(index).Type, Data: buffers[index]}
	}
	c.failed = !interpret.Run(c.Kernel, memory, c.Scalars, 0, c.Work, interpret.Options{})
	return buffers
}

// buffer describes the buffer of a number; those of a kernel in parts come part by part.
func (c *Case) buffer(index int) loop.Buffer { return c.Kernel.Buffers[index%len(c.Kernel.Buffers)] }

// Succeeds runs the case and reports whether all of its indices lie in range.
func (c *Case) Succeeds() bool {
	c.Interpret()
	return !c.failed
}

// Copy returns copies of the buffers.
func (c *Case) Copy() [][]byte {
	result := make([][]byte, len(c.Buffers))
	for index, buffer := range c.Buffers {
		result[index] = append([]byte(nil), buffer...)
	}
	return result
}

// Compare returns how the buffers differ from those wanted; "" when they agree within a number of units in the last place.
func (c *Case) Compare(got, want [][]byte, tolerance float64) string {
	for index := range c.Buffers {
		buffer := c.buffer(index)
		left := &interpret.Bytes{Type: buffer.Type, Data: got[index]}
		right := &interpret.Bytes{Type: buffer.Type, Data: want[index]}
		for element := range int64(len(want[index]) / buffer.Type.Bytes()) {
			a, b := left.Load(element), right.Load(element)
			if a != b && !closeTo(buffer.Type, a, b, tolerance) {
				return fmt.Sprintf("%s: element %d of %s is %s, not %s", c.Name, element, buffer.Name, show(buffer.Type, a), show(buffer.Type, b))
			}
		}
	}
	return ""
}

func show(typ loop.Type, value loop.Bits) string {
	if typ.Is(loop.ClassFloat | loop.ClassStorage) {
		return fmt.Sprint(value.Float())
	}
	return fmt.Sprint(value.Int())
}

// precision is the number of bits of a type's significand and the exponent of its smallest normal number.
func precision(typ loop.Type) (bits, least int) {
	switch typ {
	case loop.F16:
		return 11, -14
	case loop.BF16:
		return 8, -126
	case loop.F32:
		return 24, -126
	}
	return 53, -1022
}

func closeTo(typ loop.Type, a, b loop.Bits, tolerance float64) bool {
	if !typ.Is(loop.ClassFloat | loop.ClassStorage) {
		return false
	}
	x, y := a.Float(), b.Float()
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.IsNaN(x) && math.IsNaN(y)
	}
	if math.IsInf(x, 0) || math.IsInf(y, 0) || tolerance == 0 {
		return false
	}
	bits, least := precision(typ)
	_, exponent := math.Frexp(y)
	unit := math.Ldexp(1, max(exponent-1, least)-bits+1)
	return math.Abs(x-y) <= tolerance*unit
}
