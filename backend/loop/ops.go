package loop

// Op is a scalar operation.
type Op uint8

// The operations. "Same" below means that result and arguments have one type.
const (
	OpInvalid Op = iota

	// Sources.
	OpConstant // Bits
	OpArgument // scalar argument number Index: an I64, or the F64 with these bits
	OpIndex    // I64: position along dimension Index (outer dimensions first, then the stage's inner ones)
	OpLoad     // Access; argument 0, if given, a Bool: reads nothing and gives 0 where that is false. Then an I64 index for each of Indirect
	OpStore    // Access, argument 0 is the value, argument 1, if given, a Bool: stores only where that is true

	// Conversions.
	// OpCast converts between types. Anything to Bool: not equal to zero (NaN is true). Float to integer truncates; out of range and NaN
	// give what eager gives on the platform (x86: the conversion instruction's result, narrowed; to unsigned through I64).
	// Integer to integer wraps. To a narrower float rounds to nearest even.
	OpCast
	OpBitcast // reinterprets bits, same width

	// Any type.
	OpSelect // argument 0 is a Bool; then two values of the result's type

	// Comparisons give Bool; false when an argument is NaN, except NotEqual. Bool orders false before true.
	OpEqual
	OpNotEqual
	OpLess
	OpLessEqual
	OpGreater
	OpGreaterEqual
	OpIsNaN

	// Arithmetic on numbers, same.
	OpAdd
	OpSubtract
	OpMultiply
	OpNegate
	OpAbsolute // the minimum of a signed type wraps to itself
	OpMaximum  // NaN when either argument is NaN, argument 0 when they are equal (which tells zeros apart)
	OpMinimum
	OpDivide         // floats only: IEEE division
	OpDivideTruncate // integers: rounds toward zero. The divisor is never zero; minimum / -1 wraps
	OpDivideFloor    // integers: rounds toward minus infinity
	OpRemainder      // truncated division's remainder: C's % for integers, fmod for floats
	OpModulo         // floored division's remainder with the divisor's sign, as torch.remainder: for floats fmod corrected by the divisor when signs differ

	// Bits and shifts of integers, same; And, Or, Xor and Not also on Bool. Left shifts drop bits; a shift below 0 or not below the width
	// gives 0, for ShiftRight of signed types the sign spread over the width, as eager does.
	OpAnd
	OpOr
	OpXor
	OpNot
	OpShiftLeft
	OpShiftRight

	// Floats, same.
	OpMaximumNumber // C's fmax: the other argument when one is NaN
	OpMinimumNumber
	OpCopySign
	OpFloor
	OpCeil
	OpTruncate
	OpRoundEven
	OpSquareRoot
	OpReciprocalSquareRoot // 1 / sqrt(x), both correctly rounded or nearer
	OpFusedMultiplyAdd     // a*b + c rounded once
	OpPower
	OpArcTangent2
	OpHypotenuse
	OpNextAfter
	OpExp
	OpExp2
	OpExpM1
	OpLog
	OpLog2
	OpLog10
	OpLog1P
	OpSin
	OpCos
	OpTan
	OpArcSin
	OpArcCos
	OpArcTan
	OpSinH
	OpCosH
	OpTanH
	OpArcSinH
	OpArcCosH
	OpArcTanH
	OpErf
	OpErfC
	OpLogGamma

	// OpReduce combines its argument over the stage's inner points by Reduction.
	OpReduce

	opCount
)

// resultRule says how an operation's result type follows from its arguments.
type resultRule uint8

const (
	resultFree    resultRule = iota // the instruction says, checked apart
	resultSame                      // the arguments' one type
	resultBool                      // Bool; the arguments have one type
	resultNothing                   // no value
)

type opInfo struct {
	name      string
	arguments int // exact number; -1: checked apart
	domain    Class
	result    resultRule
}

func (o Op) info() opInfo {
	if o >= opCount {
		return opInfo{name: "invalid"}
	}
	return opTable()[o]
}

// HasShortForm reports whether an emitter may have cheaper code for the operation where Instruction.Short admits an error.
func (o Op) HasShortForm() bool {
	return o == OpExp || o == OpTanH || o == OpErfC || o == OpDivide
}

func opTable() *[opCount]opInfo {
	return &opInfos
}

// opInfos is read only; a package-level array because the table is consulted for every instruction.
var opInfos = [opCount]opInfo{
	OpInvalid:  {"invalid", 0, 0, resultFree},
	OpConstant: {"constant", 0, ClassAny, resultFree},
	OpArgument: {"argument", 0, ClassNumber, resultFree},
	OpIndex:    {"index", 0, ClassSigned, resultFree},
	OpLoad:     {"load", -1, ClassAny, resultFree},
	OpStore:    {"store", -1, ClassAny, resultNothing},
	OpCast:     {"cast", 1, ClassAny, resultFree},
	OpBitcast:  {"bitcast", 1, ClassAny, resultFree},
	OpSelect:   {"select", 3, ClassAny, resultFree},

	OpEqual:        {"equal", 2, ClassNumber | ClassBool, resultBool},
	OpNotEqual:     {"not_equal", 2, ClassNumber | ClassBool, resultBool},
	OpLess:         {"less", 2, ClassNumber | ClassBool, resultBool},
	OpLessEqual:    {"less_equal", 2, ClassNumber | ClassBool, resultBool},
	OpGreater:      {"greater", 2, ClassNumber | ClassBool, resultBool},
	OpGreaterEqual: {"greater_equal", 2, ClassNumber | ClassBool, resultBool},
	OpIsNaN:        {"is_nan", 1, ClassFloat, resultBool},

	OpAdd:            {"add", 2, ClassNumber, resultSame},
	OpSubtract:       {"subtract", 2, ClassNumber, resultSame},
	OpMultiply:       {"multiply", 2, ClassNumber, resultSame},
	OpNegate:         {"negate", 1, ClassNumber, resultSame},
	OpAbsolute:       {"absolute", 1, ClassNumber, resultSame},
	OpMaximum:        {"maximum", 2, ClassNumber | ClassBool, resultSame},
	OpMinimum:        {"minimum", 2, ClassNumber | ClassBool, resultSame},
	OpDivide:         {"divide", 2, ClassFloat, resultSame},
	OpDivideTruncate: {"divide_truncate", 2, ClassInteger, resultSame},
	OpDivideFloor:    {"divide_floor", 2, ClassInteger, resultSame},
	OpRemainder:      {"remainder", 2, ClassNumber, resultSame},
	OpModulo:         {"modulo", 2, ClassNumber, resultSame},

	OpAnd:        {"and", 2, ClassBits, resultSame},
	OpOr:         {"or", 2, ClassBits, resultSame},
	OpXor:        {"xor", 2, ClassBits, resultSame},
	OpNot:        {"not", 1, ClassBits, resultSame},
	OpShiftLeft:  {"shift_left", 2, ClassInteger, resultSame},
	OpShiftRight: {"shift_right", 2, ClassInteger, resultSame},

	OpMaximumNumber:        {"maximum_number", 2, ClassFloat, resultSame},
	OpMinimumNumber:        {"minimum_number", 2, ClassFloat, resultSame},
	OpCopySign:             {"copysign", 2, ClassFloat, resultSame},
	OpFloor:                {"floor", 1, ClassFloat, resultSame},
	OpCeil:                 {"ceil", 1, ClassFloat, resultSame},
	OpTruncate:             {"truncate", 1, ClassFloat, resultSame},
	OpRoundEven:            {"round_even", 1, ClassFloat, resultSame},
	OpSquareRoot:           {"sqrt", 1, ClassFloat, resultSame},
	OpReciprocalSquareRoot: {"rsqrt", 1, ClassFloat, resultSame},
	OpFusedMultiplyAdd:     {"fma", 3, ClassFloat, resultSame},
	OpPower:                {"pow", 2, ClassFloat, resultSame},
	OpArcTangent2:          {"atan2", 2, ClassFloat, resultSame},
	OpHypotenuse:           {"hypot", 2, ClassFloat, resultSame},
	OpNextAfter:            {"nextafter", 2, ClassFloat, resultSame},
	OpExp:                  {"exp", 1, ClassFloat, resultSame},
	OpExp2:                 {"exp2", 1, ClassFloat, resultSame},
	OpExpM1:                {"expm1", 1, ClassFloat, resultSame},
	OpLog:                  {"log", 1, ClassFloat, resultSame},
	OpLog2:                 {"log2", 1, ClassFloat, resultSame},
	OpLog10:                {"log10", 1, ClassFloat, resultSame},
	OpLog1P:                {"log1p", 1, ClassFloat, resultSame},
	OpSin:                  {"sin", 1, ClassFloat, resultSame},
	OpCos:                  {"cos", 1, ClassFloat, resultSame},
	OpTan:                  {"tan", 1, ClassFloat, resultSame},
	OpArcSin:               {"asin", 1, ClassFloat, resultSame},
	OpArcCos:               {"acos", 1, ClassFloat, resultSame},
	OpArcTan:               {"atan", 1, ClassFloat, resultSame},
	OpSinH:                 {"sinh", 1, ClassFloat, resultSame},
	OpCosH:                 {"cosh", 1, ClassFloat, resultSame},
	OpTanH:                 {"tanh", 1, ClassFloat, resultSame},
	OpArcSinH:              {"asinh", 1, ClassFloat, resultSame},
	OpArcCosH:              {"acosh", 1, ClassFloat, resultSame},
	OpArcTanH:              {"atanh", 1, ClassFloat, resultSame},
	OpErf:                  {"erf", 1, ClassFloat, resultSame},
	OpErfC:                 {"erfc", 1, ClassFloat, resultSame},
	OpLogGamma:             {"lgamma", 1, ClassFloat, resultSame},

	OpReduce: {"reduce", 1, ClassNumber | ClassBool, resultFree},
}

// String returns the operation's name in the printed form.
func (o Op) String() string { return o.info().name }

// Ops returns every valid operation, in order.
func Ops() []Op {
	result := make([]Op, 0, opCount-1)
	for op := OpInvalid + 1; op < opCount; op++ {
		result = append(result, op)
	}
	return result
}

// Elementwise reports whether the operation computes a result from arguments alone, all of Domain's classes: neither a source, a
// conversion, a select, a store nor a reduction.
func (o Op) Elementwise() bool { return o >= OpEqual && o < OpReduce }

// Domain returns the classes of types the operation's arguments may have.
func (o Op) Domain() Class { return o.info().domain }

// Arity returns the number of arguments, -1 for loads and stores, whose last argument is optional.
func (o Op) Arity() int { return o.info().arguments }

// Predicate reports whether an elementwise operation gives Bool.
func (o Op) Predicate() bool { return o.info().result == resultBool }

// Reduction says how OpReduce combines values.
type Reduction uint8

// The reductions. Over no points Sum gives 0, Product 1, Any false, All true; the rest are never made over no points.
const (
	NoReduction Reduction = iota
	Sum                   // same type
	Product
	Maximum // NaN when any is NaN; Bool allowed
	Minimum
	Any // Bool
	All
	ArgMaximum // I64: row-major position within Inner of the first maximum; NaN counts as the greatest
	ArgMinimum // I64: the first minimum; NaN counts as the least
	reductionCount
)

// String returns the reduction's name in the printed form.
func (r Reduction) String() string {
	names := [reductionCount]string{"none", "sum", "product", "maximum", "minimum", "any", "all", "argmax", "argmin"}
	if r >= reductionCount {
		return "invalid"
	}
	return names[r]
}

// Positional reports whether the reduction gives a position instead of a value.
func (r Reduction) Positional() bool { return r == ArgMaximum || r == ArgMinimum }

// Combine returns the operation that joins two partial results; false for reductions that give positions.
func (r Reduction) Combine() (Op, bool) {
	ops := [reductionCount]Op{
		Sum: OpAdd, Product: OpMultiply, Maximum: OpMaximum, Minimum: OpMinimum, Any: OpOr, All: OpAnd,
	}
	if r >= reductionCount || ops[r] == OpInvalid {
		return OpInvalid, false
	}
	return ops[r], true
}

// Identity returns the value that a reduction over values of the type starts from. Positional reductions start from it too, and from no position.
func Identity(reduction Reduction, typ Type) Bits {
	switch reduction {
	case Product:
		if typ.Is(ClassFloat) {
			return FloatBits(1)
		}
		return 1
	case All:
		return BoolBits(true)
	case Maximum, ArgMaximum:
		return Least(typ)
	case Minimum, ArgMinimum:
		return Greatest(typ)
	}
	return 0
}
