package interpret

import (
	"math"

	"fusee/backend/loop"
)

// Cast converts a value as loop.OpCast does on x86-64; exact leaves out rounding to narrower floats.
func Cast(from, to loop.Type, value loop.Bits, exact bool) loop.Bits {
	const floats = loop.ClassFloat | loop.ClassStorage
	switch {
	case to == loop.Bool && from.Is(floats):
		return loop.BoolBits(value.Float() != 0)
	case to == loop.Bool:
		return loop.BoolBits(value != 0)
	case from.Is(floats) && to.Is(floats):
		return narrow(to, value.Float(), exact)
	case to.Is(floats) && from == loop.U64:
		return narrow(to, float64(uint64(value)), exact)
	case to.Is(floats):
		return narrow(to, toFloat(to, value.Int()), exact)
	case from.Is(floats):
		return wrap(to, truncate(to, value.Float()))
	}
	return wrap(to, value.Int())
}

// toFloat converts an integer with one rounding.
func toFloat(to loop.Type, value int64) float64 {
	if to == loop.F64 {
		return float64(value)
	}
	return float64(float32(value))
}

func narrow(to loop.Type, value float64, exact bool) loop.Bits {
	if exact {
		return loop.FloatBits(value)
	}
	switch to {
	case loop.F32:
		value = float64(float32(value))
	case loop.F16:
		value = float64(loop.HalfFloat(loop.HalfBits(float32(value))))
	case loop.BF16:
		value = float64(loop.BrainFloat(loop.BrainBits(float32(value))))
	}
	return loop.FloatBits(value)
}

// truncate is the conversion instruction: to 32 bits for signed types of at most 32, else to 64; its lowest result for what does not fit.
func truncate(to loop.Type, value float64) int64 {
	lowest, limit := int64(math.MinInt32), float64(1<<31)
	if to.Bytes() == 8 || to.Is(loop.ClassUnsigned) {
		lowest, limit = math.MinInt64, 1<<63
	}
	value = math.Trunc(value)
	if value >= -limit && value < limit {
		return int64(value)
	}
	return lowest
}

// bitcast reinterprets the bits of a value.
func bitcast(from, to loop.Type, value loop.Bits) loop.Bits {
	return decode(to, encode(from, value))
}
