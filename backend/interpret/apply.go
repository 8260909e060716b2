package interpret

import (
	"math"

	"fusee/backend/loop"
)

// Apply computes an elementwise operation on arguments of one type. Results of float32 operations are not rounded yet.
func Apply(op loop.Op, typ loop.Type, args []loop.Bits) loop.Bits {
	switch {
	case op.Predicate():
		return loop.BoolBits(compare(op, typ, args))
	case typ.Is(loop.ClassFloat):
		return loop.FloatBits(applyFloat(op, typ, args))
	case typ == loop.Bool:
		return applyBool(op, args[0], args[len(args)-1])
	}
	return wrap(typ, applyInteger(op, typ, args[0].Int(), args[len(args)-1].Int()))
}

func compare(op loop.Op, typ loop.Type, args []loop.Bits) bool {
	if typ.Is(loop.ClassFloat) {
		if op == loop.OpIsNaN {
			return math.IsNaN(args[0].Float())
		}
		return ordered(op, args[0].Float(), args[1].Float())
	}
	if typ.Is(loop.ClassSigned) {
		return ordered(op, args[0].Int(), args[1].Int())
	}
	return ordered(op, uint64(args[0]), uint64(args[1]))
}

func ordered[T int64 | uint64 | float64](op loop.Op, a, b T) bool {
	switch op {
	case loop.OpEqual:
		return a == b
	case loop.OpNotEqual:
		return a != b
	case loop.OpLess:
		return a < b
	case loop.OpLessEqual:
		return a <= b
	case loop.OpGreater:
		return a > b
	}
	return a >= b
}

func applyBool(op loop.Op, a, b loop.Bits) loop.Bits {
	switch op {
	case loop.OpAnd, loop.OpMinimum:
		return a & b
	case loop.OpOr, loop.OpMaximum:
		return a | b
	case loop.OpXor:
		return a ^ b
	}
	return a ^ 1
}

// functions of one float. Go computes them in float64 to within one unit in the last place.
var functions = map[loop.Op]func(float64) float64{
	loop.OpNegate:               func(x float64) float64 { return -x },
	loop.OpAbsolute:             math.Abs,
	loop.OpFloor:                math.Floor,
	loop.OpCeil:                 math.Ceil,
	loop.OpTruncate:             math.Trunc,
	loop.OpRoundEven:            math.RoundToEven,
	loop.OpSquareRoot:           math.Sqrt,
	loop.OpReciprocalSquareRoot: func(x float64) float64 { return 1 / math.Sqrt(x) },
	loop.OpExp:                  math.Exp,
	loop.OpExp2:                 math.Exp2,
	loop.OpExpM1:                math.Expm1,
	loop.OpLog:                  math.Log,
	loop.OpLog2:                 math.Log2,
	loop.OpLog10:                math.Log10,
	loop.OpLog1P:                math.Log1p,
	loop.OpSin:                  math.Sin,
	loop.OpCos:                  math.Cos,
	loop.OpTan:                  math.Tan,
	loop.OpArcSin:               math.Asin,
	loop.OpArcCos:               math.Acos,
	loop.OpArcTan:               math.Atan,
	loop.OpSinH:                 math.Sinh,
	loop.OpCosH:                 math.Cosh,
	loop.OpTanH:                 math.Tanh,
	loop.OpArcSinH:              math.Asinh,
	loop.OpArcCosH:              math.Acosh,
	loop.OpArcTanH:              math.Atanh,
	loop.OpErf:                  math.Erf,
	loop.OpErfC:                 math.Erfc,
	loop.OpLogGamma: func(x float64) float64 {
		if math.IsInf(x, -1) {
			return math.Inf(1) // as C has it; Go's function gives x
		}
		result, _ := math.Lgamma(x)
		return result
	},
}

// functions2 are those of two floats.
var functions2 = map[loop.Op]func(a, b float64) float64{
	loop.OpAdd:           func(a, b float64) float64 { return a + b },
	loop.OpSubtract:      func(a, b float64) float64 { return a - b },
	loop.OpMultiply:      func(a, b float64) float64 { return a * b },
	loop.OpDivide:        func(a, b float64) float64 { return a / b },
	loop.OpRemainder:     math.Mod,
	loop.OpModulo:        modulo,
	loop.OpMaximum:       func(a, b float64) float64 { return extreme(a, b, b > a) },
	loop.OpMinimum:       func(a, b float64) float64 { return extreme(a, b, b < a) },
	loop.OpMaximumNumber: func(a, b float64) float64 { return extremeNumber(a, b, a > b) },
	loop.OpMinimumNumber: func(a, b float64) float64 { return extremeNumber(a, b, a < b) },
	loop.OpCopySign:      math.Copysign,
	loop.OpPower:         math.Pow,
	loop.OpArcTangent2:   math.Atan2,
	loop.OpHypotenuse:    math.Hypot,
}

// Function returns the function of one float that an operation computes, and Function2 that of two; nil for all others.
func Function(op loop.Op) func(float64) float64 { return functions[op] }

// Function2 is Function for operations on two floats.
func Function2(op loop.Op) func(a, b float64) float64 { return functions2[op] }

func applyFloat(op loop.Op, typ loop.Type, args []loop.Bits) float64 {
	a, b := args[0].Float(), args[len(args)-1].Float()
	if function, ok := functions[op]; ok {
		return function(a)
	}
	if function, ok := functions2[op]; ok {
		return function(a, b)
	}
	if op == loop.OpFusedMultiplyAdd {
		return math.FMA(a, args[1].Float(), b)
	}
	if typ == loop.F32 {
		return float64(math.Nextafter32(float32(a), float32(b)))
	}
	return math.Nextafter(a, b)
}

// modulo is the remainder with the divisor's sign (torch.remainder; aten/src/ATen/native/cpu/BinaryOpsKernel.cpp).
func modulo(a, b float64) float64 {
	result := math.Mod(a, b)
	if result != 0 && (b < 0) != (result < 0) {
		result += b
	}
	return result
}

func extreme(a, b float64, second bool) float64 {
	if second || math.IsNaN(b) {
		return b
	}
	return a
}

func extremeNumber(a, b float64, first bool) float64 {
	if first || math.IsNaN(b) {
		return a
	}
	return b
}

func applyInteger(op loop.Op, typ loop.Type, a, b int64) int64 {
	switch op {
	case loop.OpAdd:
		return a + b
	case loop.OpSubtract:
		return a - b
	case loop.OpMultiply:
		return a * b
	case loop.OpNegate:
		return -a
	case loop.OpAnd:
		return a & b
	case loop.OpOr:
		return a | b
	case loop.OpXor:
		return a ^ b
	case loop.OpNot:
		return ^a
	case loop.OpShiftLeft, loop.OpShiftRight:
		return shift(op, typ, a, b)
	}
	if typ.Is(loop.ClassUnsigned) {
		return int64(divideUnsigned(op, uint64(a), uint64(b)))
	}
	return divideSigned(op, a, b)
}

func shift(op loop.Op, typ loop.Type, a, distance int64) int64 {
	inside := uint64(distance) < uint64(8*typ.Bytes())
	switch {
	case op == loop.OpShiftLeft && inside:
		return a << distance
	case op == loop.OpShiftRight && typ.Is(loop.ClassSigned):
		return a >> min(uint64(distance), 63)
	case op == loop.OpShiftRight && inside:
		return int64(uint64(a) >> distance)
	}
	return 0
}

func divideUnsigned(op loop.Op, a, b uint64) uint64 {
	switch {
	case op == loop.OpMaximum:
		return max(a, b)
	case op == loop.OpMinimum:
		return min(a, b)
	case op == loop.OpAbsolute:
		return a
	case b == 0:
		return 0 // the loop IR promises that this does not happen
	case op == loop.OpRemainder || op == loop.OpModulo:
		return a % b
	}
	return a / b
}

func divideSigned(op loop.Op, a, b int64) int64 {
	switch {
	case op == loop.OpMaximum:
		return max(a, b)
	case op == loop.OpMinimum:
		return min(a, b)
	case op == loop.OpAbsolute:
		return max(a, -a)
	case b == 0:
		return 0 // the loop IR promises that this does not happen
	}
	quotient, remainder := a/b, a%b
	differ := remainder != 0 && (remainder < 0) != (b < 0)
	switch op {
	case loop.OpDivideTruncate:
		return quotient
	case loop.OpRemainder:
		return remainder
	case loop.OpModulo:
		if differ {
			remainder += b
		}
		return remainder
	}
	if differ {
		quotient--
	}
	return quotient
}
