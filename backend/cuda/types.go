package cuda

import (
	"fmt"
	"math"
	"strconv"

	"fusee/backend/loop"
)

// typeName returns the C name of a value of type t; helpers declare those that C++ lacks.
func typeName(t loop.Type) string {
	switch t {
	case loop.F32:
		return "float"
	case loop.F64:
		return "double"
	}
	return t.String()
}

// memoryName returns the C name of an element in memory, where a truth value is a byte.
func memoryName(t loop.Type) string {
	if t == loop.Bool {
		return typeName(loop.U8)
	}
	return typeName(t)
}

// wideName returns the unsigned type in which integers of type t compute without undefined overflow.
func wideName(t loop.Type) string {
	if t.Bytes() == 8 {
		return typeName(loop.U64)
	}
	return typeName(loop.U32)
}

// literal returns a constant of type t as an expression.
func literal(t loop.Type, value loop.Bits) string {
	switch {
	case t == loop.Bool:
		return strconv.FormatBool(value.Bool())
	case t.Is(loop.ClassStorage):
		return fmt.Sprintf("to_%s(%s)", t, floatLiteral(loop.F32, value.Float()))
	case t.Is(loop.ClassFloat):
		return floatLiteral(t, value.Float())
	}
	return integerLiteral(t, value.Int())
}

func floatLiteral(t loop.Type, value float64) string {
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return specialLiteral(t, value)
	case t == loop.F32:
		return parenthesized(decimal(value, 32) + "f")
	}
	return parenthesized(decimal(value, 64))
}

// specialLiteral spells values that have no decimal form by their bits, a NaN's payload included.
func specialLiteral(t loop.Type, value float64) string {
	if t == loop.F32 {
		return fmt.Sprintf("__uint_as_float(0x%08xu)", math.Float32bits(float32(value)))
	}
	return fmt.Sprintf("__longlong_as_double(0x%016xll)", math.Float64bits(value))
}

// decimal returns the shortest decimal form that reads back as value, always with a point or an exponent.
func decimal(value float64, bits int) string {
	text := strconv.FormatFloat(value, 'g', -1, bits)
	for _, letter := range text {
		if letter == '.' || letter == 'e' {
			return text
		}
	}
	return text + ".0"
}

func integerLiteral(t loop.Type, value int64) string {
	switch {
	case t == loop.U64:
		return strconv.FormatUint(uint64(value), 10) + "ull"
	case t == loop.U32:
		return strconv.FormatUint(uint64(uint32(value)), 10) + "u"
	case t == loop.I64 && value == math.MinInt64:
		return "(-9223372036854775807ll - 1)"
	case t == loop.I64:
		return parenthesized(strconv.FormatInt(value, 10) + "ll")
	case t == loop.I32 && value == math.MinInt32:
		return "(-2147483647 - 1)"
	case t == loop.I32:
		return parenthesized(strconv.FormatInt(value, 10))
	}
	return fmt.Sprintf("(%s)%s", typeName(t), parenthesized(strconv.FormatInt(value, 10)))
}

// parenthesized protects a leading sign from the operator before it.
func parenthesized(text string) string {
	if text[0] == '-' {
		return "(" + text + ")"
	}
	return text
}

// convert returns expression, of type from, as a value of type to. Rounding to the 2-byte types and truncation to bytes
// go through the intermediate types that PyTorch's c10::convert uses.
func (e *emitter) convert(from, to loop.Type, expression string) string {
	if from == to {
		return expression
	}
	if from.Is(loop.ClassStorage) {
		return e.convert(loop.F32, to, e.call("to_float_"+from.String(), expression))
	}
	if to.Is(loop.ClassStorage) {
		return e.call("to_"+to.String(), e.convert(from, loop.F32, expression))
	}
	switch {
	case to == loop.Bool:
		return "(" + expression + " != 0)"
	case to == loop.U8 && from.Is(loop.ClassFloat):
		return "(u8)(i64)" + expression
	}
	return "(" + typeName(to) + ")" + expression
}

// identity returns the value that reduction starts from.
func identity(reduction loop.Reduction, t loop.Type) string {
	switch reduction {
	case loop.Product:
		return literal(t, one(t))
	case loop.Maximum, loop.ArgMaximum:
		return extreme(t, false)
	case loop.Minimum, loop.ArgMinimum:
		return extreme(t, true)
	case loop.All:
		return "true"
	case loop.Any:
		return "false"
	}
	return literal(t, 0)
}

func one(t loop.Type) loop.Bits {
	if t.Is(loop.ClassFloat) {
		return loop.FloatBits(1)
	}
	return loop.IntBits(1)
}

// extreme returns the least value of type t, or the greatest.
func extreme(t loop.Type, greatest bool) string {
	bits := 8 * t.Bytes()
	switch {
	case t == loop.Bool:
		return strconv.FormatBool(greatest)
	case t.Is(loop.ClassFloat) && greatest:
		return floatLiteral(t, math.Inf(1))
	case t.Is(loop.ClassFloat):
		return floatLiteral(t, math.Inf(-1))
	case t.Is(loop.ClassUnsigned) && greatest:
		return integerLiteral(t, int64(uint64(math.MaxUint64)>>(64-bits)))
	case t.Is(loop.ClassUnsigned):
		return integerLiteral(t, 0)
	case greatest:
		return integerLiteral(t, math.MaxInt64>>(64-bits))
	}
	return integerLiteral(t, math.MinInt64>>(64-bits))
}
