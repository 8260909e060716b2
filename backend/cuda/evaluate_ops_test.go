package cuda_test

import (
	"math"
	"math/bits"

	"fusee/backend/loop"
)

// apply computes an operation on arguments of type t.
func apply(op loop.Op, t loop.Type, a []number) number {
	if op.Predicate() {
		return truth(holds(op, t, a))
	}
	if t.Is(loop.ClassFloat) {
		return round(t, realOp(op, t, a))
	}
	return wrap(t, wholeOp(op, t, a))
}

func holds(op loop.Op, t loop.Type, a []number) bool {
	if op == loop.OpIsNaN {
		return math.IsNaN(a[0].real)
	}
	if t.Is(loop.ClassFloat) && (math.IsNaN(a[0].real) || math.IsNaN(a[1].real)) {
		return op == loop.OpNotEqual
	}
	order := compare(t, a[0], a[1])
	return map[loop.Op]bool{
		loop.OpEqual: order == 0, loop.OpNotEqual: order != 0, loop.OpLess: order < 0, loop.OpLessEqual: order <= 0,
		loop.OpGreater: order > 0, loop.OpGreaterEqual: order >= 0}[op]
}

func unaryFunctions() map[loop.Op]func(float64) float64 {
	return map[loop.Op]func(float64) float64{
		loop.OpNegate: func(x float64) float64 { return -x }, loop.OpAbsolute: math.Abs, loop.OpFloor: math.Floor,
		loop.OpCeil: math.Ceil, loop.OpTruncate: math.Trunc, loop.OpRoundEven: math.RoundToEven,
		loop.OpSquareRoot: math.Sqrt, loop.OpReciprocalSquareRoot: func(x float64) float64 { return 1 / math.Sqrt(x) },
		loop.OpExp: math.Exp, loop.OpExp2: math.Exp2, loop.OpExpM1: math.Expm1, loop.OpLog: math.Log, loop.OpLog2: math.Log2,
		loop.OpLog10: math.Log10, loop.OpLog1P: math.Log1p, loop.OpSin: math.Sin, loop.OpCos: math.Cos, loop.OpTan: math.Tan,
		loop.OpArcSin: math.Asin, loop.OpArcCos: math.Acos, loop.OpArcTan: math.Atan, loop.OpSinH: math.Sinh,
		loop.OpCosH: math.Cosh, loop.OpTanH: math.Tanh, loop.OpArcSinH: math.Asinh, loop.OpArcCosH: math.Acosh,
		loop.OpArcTanH: math.Atanh, loop.OpErf: math.Erf, loop.OpErfC: math.Erfc,
		loop.OpLogGamma: func(x float64) float64 { value, _ := math.Lgamma(x); return value },
	}
}

func realOp(op loop.Op, t loop.Type, a []number) float64 {
	if function := unaryFunctions()[op]; function != nil {
		return function(a[0].real)
	}
	x, y := a[0].real, a[1].real
	switch op {
	case loop.OpAdd:
		return x + y
	case loop.OpSubtract:
		return x - y
	case loop.OpMultiply:
		return x * y
	case loop.OpDivide:
		return x / y
	case loop.OpMaximum, loop.OpMinimum:
		if math.IsNaN(x) || math.IsNaN(y) {
			return math.NaN()
		}
		return ignoringNaN(op, x, y)
	case loop.OpMaximumNumber, loop.OpMinimumNumber:
		return ignoringNaN(op, x, y)
	case loop.OpRemainder:
		return math.Mod(x, y)
	case loop.OpModulo:
		return floorModulo(t, x, y)
	case loop.OpFusedMultiplyAdd:
		return math.FMA(x, y, a[2].real)
	case loop.OpNextAfter:
		return nextAfter(t, x, y)
	}
	return map[loop.Op]func(float64, float64) float64{
		loop.OpCopySign: math.Copysign, loop.OpPower: math.Pow, loop.OpArcTangent2: math.Atan2, loop.OpHypotenuse: math.Hypot,
	}[op](x, y)
}

func ignoringNaN(op loop.Op, x, y float64) float64 {
	switch {
	case math.IsNaN(x):
		return y
	case math.IsNaN(y):
		return x
	case op == loop.OpMaximumNumber || op == loop.OpMaximum:
		return math.Max(x, y)
	}
	return math.Min(x, y)
}

func floorModulo(t loop.Type, x, y float64) float64 {
	rest := math.Mod(x, y)
	if rest != 0 && (rest < 0) != (y < 0) {
		return round(t, rest+y).real
	}
	return rest
}

func nextAfter(t loop.Type, x, y float64) float64 {
	if t == loop.F32 {
		return float64(math.Nextafter32(float32(x), float32(y)))
	}
	return math.Nextafter(x, y)
}

func wholeOp(op loop.Op, t loop.Type, a []number) int64 {
	x, y := a[0].whole, int64(0)
	if len(a) > 1 {
		y = a[1].whole
	}
	switch op {
	case loop.OpAdd:
		return x + y
	case loop.OpSubtract:
		return x - y
	case loop.OpMultiply:
		return x * y
	case loop.OpNegate:
		return -x
	case loop.OpAbsolute:
		if t.Is(loop.ClassSigned) {
			return max(x, -x)
		}
		return x
	case loop.OpMaximum, loop.OpMinimum:
		if (compare(t, a[0], a[1]) < 0) == (op == loop.OpMaximum) {
			return y
		}
		return x
	case loop.OpAnd:
		return x & y
	case loop.OpOr:
		return x | y
	case loop.OpXor:
		return x ^ y
	case loop.OpNot:
		if t == loop.Bool {
			return 1 - x
		}
		return ^x
	case loop.OpShiftLeft, loop.OpShiftRight:
		return shift(op, t, x, y)
	}
	return division(op, t, x, y)
}

func shift(op loop.Op, t loop.Type, x, y int64) int64 {
	outside := y < 0 || y >= int64(8*t.Bytes())
	switch {
	case op == loop.OpShiftLeft && !outside:
		return x << y
	case op == loop.OpShiftRight && t.Is(loop.ClassSigned) && outside:
		return x >> 63
	case op == loop.OpShiftRight && t.Is(loop.ClassSigned):
		return x >> y
	case op == loop.OpShiftRight && !outside:
		return int64(uint64(x) >> y)
	}
	return 0
}

func division(op loop.Op, t loop.Type, x, y int64) int64 {
	if t.Is(loop.ClassUnsigned) {
		quotient, rest := bits.Div64(0, uint64(x), uint64(y))
		return map[bool]int64{true: int64(quotient), false: int64(rest)}[op == loop.OpDivideTruncate || op == loop.OpDivideFloor]
	}
	quotient, rest := x/y, x%y
	adjusts := rest != 0 && (rest < 0) != (y < 0)
	switch {
	case op == loop.OpDivideFloor && adjusts:
		return quotient - 1
	case op == loop.OpModulo && adjusts:
		return rest + y
	case op == loop.OpDivideFloor || op == loop.OpDivideTruncate:
		return quotient
	}
	return rest
}
