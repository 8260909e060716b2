package interpret

import (
	"encoding/binary"
	"math"

	"fusee/backend/loop"
)

// Bytes is memory as it is on a little-endian machine.
type Bytes struct {
	Type loop.Type
	Data []byte
}

// Load implements Memory.
func (b *Bytes) Load(index int64) loop.Bits {
	size := int64(b.Type.Bytes())
	var raw [8]byte
	copy(raw[:], b.Data[index*size:(index+1)*size])
	return decode(b.Type, binary.LittleEndian.Uint64(raw[:]))
}

// Store implements Memory.
func (b *Bytes) Store(index int64, value loop.Bits) {
	size := int64(b.Type.Bytes())
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], encode(b.Type, value))
	copy(b.Data[index*size:(index+1)*size], raw[:size])
}

// decode turns an element's bits, zero-extended, into a constant.
func decode(typ loop.Type, raw uint64) loop.Bits {
	switch typ {
	case loop.Bool:
		return loop.BoolBits(raw != 0)
	case loop.F16:
		return loop.FloatBits(float64(loop.HalfFloat(uint16(raw))))
	case loop.BF16:
		return loop.FloatBits(float64(loop.BrainFloat(uint16(raw))))
	case loop.F32:
		return loop.FloatBits(float64(math.Float32frombits(uint32(raw))))
	case loop.F64:
		return loop.Bits(raw)
	}
	return wrap(typ, int64(raw))
}

// encode turns a constant into an element's bits.
func encode(typ loop.Type, value loop.Bits) uint64 {
	switch typ {
	case loop.F16:
		return uint64(loop.HalfBits(float32(value.Float())))
	case loop.BF16:
		return uint64(loop.BrainBits(float32(value.Float())))
	case loop.F32:
		return uint64(math.Float32bits(float32(value.Float())))
	}
	return uint64(value)
}

// wrap brings an integer into the range of its type, two's complement.
func wrap(typ loop.Type, value int64) loop.Bits {
	shift := 64 - 8*typ.Bytes()
	if typ.Is(loop.ClassSigned) {
		return loop.IntBits(value << shift >> shift)
	}
	return loop.Bits(uint64(value) << shift >> shift)
}

// Values is memory that keeps elements without rounding them.
type Values []loop.Bits

// Load implements Memory.
func (v Values) Load(index int64) loop.Bits { return v[index] }

// Store implements Memory.
func (v Values) Store(index int64, value loop.Bits) { v[index] = value }
