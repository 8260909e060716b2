package cpu

import (
	"fmt"
	"math"
	"strconv"

	"fusee/backend/loop"
)

// scalarType returns the LLVM type of a value. BF16 travels as its bits, because LLVM would convert it by library calls.
func scalarType(typ loop.Type) string {
	switch typ {
	case loop.Bool:
		return "i1"
	case loop.F16:
		return "half"
	case loop.BF16:
		return "i16"
	case loop.F32:
		return "float"
	case loop.F64:
		return "double"
	}
	return "i" + strconv.Itoa(8*typ.Bytes())
}

// memoryType returns the LLVM type of an element in memory.
func memoryType(typ loop.Type) string {
	if typ == loop.Bool {
		return "i8"
	}
	return scalarType(typ)
}

// wide returns the type of lanes values of a scalar LLVM type.
func wide(scalar string, lanes int) string {
	if lanes == 1 {
		return scalar
	}
	return fmt.Sprintf("<%d x %s>", lanes, scalar)
}

// vectorType returns the LLVM type of lanes values.
func vectorType(typ loop.Type, lanes int) string { return wide(scalarType(typ), lanes) }

// suffix returns how intrinsic names spell the type, such as "v8f32".
func suffix(typ loop.Type, lanes int) string {
	text := scalarType(typ)
	switch typ {
	case loop.F16:
		text = "f16"
	case loop.F32:
		text = "f32"
	case loop.F64:
		text = "f64"
	}
	if lanes == 1 {
		return text
	}
	return "v" + strconv.Itoa(lanes) + text
}

// memorySuffix is suffix for elements in memory.
func memorySuffix(typ loop.Type, lanes int) string {
	if typ == loop.Bool {
		typ = loop.U8
	}
	return suffix(typ, lanes)
}

// constant returns an operand of the given type with the same value in all lanes.
func constant(typ loop.Type, bits loop.Bits, lanes int) string {
	return splatConstant(scalarType(typ), scalarConstant(typ, bits), lanes)
}

func splatConstant(scalar, text string, lanes int) string {
	if lanes == 1 {
		return text
	}
	return fmt.Sprintf("splat (%s %s)", scalar, text)
}

func scalarConstant(typ loop.Type, bits loop.Bits) string {
	switch typ {
	case loop.Bool:
		return strconv.FormatBool(bits.Bool())
	case loop.F16:
		return fmt.Sprintf("0xH%04X", loop.HalfBits(float32(bits.Float())))
	case loop.BF16:
		return strconv.Itoa(int(loop.BrainBits(float32(bits.Float()))))
	case loop.F32:
		return fmt.Sprintf("0x%016X", math.Float64bits(float64(float32(bits.Float()))))
	case loop.F64:
		return fmt.Sprintf("0x%016X", uint64(bits))
	case loop.U64:
		return strconv.FormatUint(uint64(bits), 10)
	}
	return strconv.FormatInt(bits.Int(), 10)
}

// integerConstant returns an integer operand of the width of typ.
func integerConstant(typ loop.Type, value int64, lanes int) string {
	return splatConstant(scalarType(typ), strconv.FormatInt(value, 10), lanes)
}

// floatConstant returns a floating-point operand.
func floatConstant(typ loop.Type, value float64, lanes int) string {
	return constant(typ, loop.FloatBits(value), lanes)
}
