package loop

import "math"

// BrainBits rounds to bfloat16, to nearest with ties to even, and returns the bits; every NaN becomes 0x7fc0 as in eager's scalar code.
func BrainBits(value float32) uint16 {
	if value != value {
		return 0x7fc0
	}
	bits := math.Float32bits(value)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// BrainFloat widens the bits of a bfloat16.
func BrainFloat(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// HalfBits rounds to IEEE binary16, to nearest with ties to even, and returns the bits.
func HalfBits(value float32) uint16 {
	bits := math.Float32bits(value)
	sign := uint16(bits >> 16 & 0x8000)
	magnitude := bits & 0x7fffffff
	switch {
	case magnitude > 0x7f800000:
		return sign | 0x7e00
	case magnitude >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case magnitude < 0x38800000: // below the least normal number 2^-14: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(magnitude))*(1<<24)))
	}
	rounded := magnitude + 0xfff + magnitude>>13&1
	return sign | uint16((rounded-0x38000000)>>13)
}

// HalfFloat widens the bits of an IEEE binary16.
func HalfFloat(bits uint16) float32 {
	sign := uint32(bits&0x8000) << 16
	exponent, fraction := uint32(bits>>10&0x1f), uint32(bits&0x3ff)
	switch exponent {
	case 0:
		value := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(value))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
