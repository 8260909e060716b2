package cpu

import (
	"fmt"
	"strings"

	"fusee/backend/loop"
)

// pattern is how LLVM spells an operation for the classes of types; an empty spelling means that operation composes it.
type pattern struct {
	float, signed, unsigned, boolean string
}

// patterns holds the operations that are one LLVM instruction.
var patterns = map[loop.Op]pattern{
	loop.OpEqual:        {"fcmp oeq", "icmp eq", "icmp eq", "icmp eq"},
	loop.OpNotEqual:     {"fcmp une", "icmp ne", "icmp ne", "icmp ne"},
	loop.OpLess:         {"fcmp olt", "icmp slt", "icmp ult", "icmp ult"},
	loop.OpLessEqual:    {"fcmp ole", "icmp sle", "icmp ule", "icmp ule"},
	loop.OpGreater:      {"fcmp ogt", "icmp sgt", "icmp ugt", "icmp ugt"},
	loop.OpGreaterEqual: {"fcmp oge", "icmp sge", "icmp uge", "icmp uge"},
	loop.OpAdd:          {"fadd", "add", "add", ""},
	loop.OpSubtract:     {"fsub", "sub", "sub", ""},
	loop.OpMultiply:     {"fmul", "mul", "mul", ""},
	loop.OpDivide:       {"fdiv", "", "", ""},
	loop.OpAnd:          {"", "and", "and", "and"},
	loop.OpOr:           {"", "or", "or", "or"},
	loop.OpXor:          {"", "xor", "xor", "xor"},
	loop.OpMaximum:      {"", "", "", "or"},
	loop.OpMinimum:      {"", "", "", "and"},
	loop.OpRemainder:    {"frem", "", "", ""},
}

// intrinsics holds the floating-point operations that are one LLVM intrinsic, which the target has an instruction for.
var intrinsics = map[loop.Op]string{
	loop.OpAbsolute:         "fabs",
	loop.OpCopySign:         "copysign",
	loop.OpFloor:            "floor",
	loop.OpCeil:             "ceil",
	loop.OpTruncate:         "trunc",
	loop.OpRoundEven:        "roundeven",
	loop.OpSquareRoot:       "sqrt",
	loop.OpFusedMultiplyAdd: "fma",
}

func (p pattern) of(typ loop.Type) string {
	switch {
	case typ.Is(loop.ClassFloat):
		return p.float
	case typ.Is(loop.ClassSigned):
		return p.signed
	case typ.Is(loop.ClassUnsigned):
		return p.unsigned
	}
	return p.boolean
}

// operation appends an elementwise operation on arguments of type typ.
func (e *emitter) operation(op loop.Op, typ loop.Type, lanes int, args []string) string {
	vector := vectorType(typ, lanes)
	if text := patterns[op].of(typ); text != "" {
		return e.assign("%s %s %s", text, vector, strings.Join(args, ", "))
	}
	if name, ok := intrinsics[op]; ok && typ.Is(loop.ClassFloat) {
		return e.intrinsic(name, typ, lanes, args)
	}
	if call, ok := mathFunctions[op]; ok {
		if typ == loop.F32 && op != loop.OpNextAfter {
			return e.math32(op, call, lanes, args)
		}
		return e.math(call, typ, lanes, args)
	}
	return e.composed(op, typ, lanes, args)
}

func (e *emitter) intrinsic(name string, typ loop.Type, lanes int, args []string) string {
	types := make([]string, len(args))
	for index := range types {
		types[index] = vectorType(typ, lanes)
	}
	return e.call(vectorType(typ, lanes), "llvm."+name+"."+suffix(typ, lanes), types, args)
}

// composed appends the operations that take several instructions.
func (e *emitter) composed(op loop.Op, typ loop.Type, lanes int, args []string) string {
	vector := vectorType(typ, lanes)
	switch op {
	case loop.OpIsNaN:
		return e.assign("fcmp uno %s %s, %s", vector, args[0], args[0])
	case loop.OpNegate:
		return e.negate(typ, lanes, args[0])
	case loop.OpAbsolute:
		return e.absolute(typ, lanes, args[0])
	case loop.OpNot:
		return e.assign("xor %s %s, %s", vector, args[0], allOnes(typ, lanes))
	case loop.OpMaximum, loop.OpMinimum:
		return e.extreme(op, typ, lanes, args)
	case loop.OpMaximumNumber, loop.OpMinimumNumber:
		return e.extremeNumber(op, typ, lanes, args)
	case loop.OpShiftLeft, loop.OpShiftRight:
		return e.shift(op, typ, lanes, args)
	case loop.OpModulo:
		return e.modulo(typ, lanes, args)
	case loop.OpDivideTruncate, loop.OpRemainder, loop.OpDivideFloor:
		return e.divide(op, typ, lanes, args)
	case loop.OpReciprocalSquareRoot:
		root := e.intrinsic("sqrt", typ, lanes, args)
		return e.assign("fdiv %s %s, %s", vector, floatConstant(typ, 1, lanes), root)
	}
	panic(fmt.Sprintf("no rule emits %s", op)) // every operation of the table has a test
}

func allOnes(typ loop.Type, lanes int) string {
	if typ == loop.Bool {
		return splatConstant("i1", "true", lanes)
	}
	return integerConstant(typ, -1, lanes)
}

func (e *emitter) negate(typ loop.Type, lanes int, arg string) string {
	if typ.Is(loop.ClassFloat) {
		return e.assign("fneg %s %s", vectorType(typ, lanes), arg)
	}
	return e.assign("sub %s %s, %s", vectorType(typ, lanes), integerConstant(typ, 0, lanes), arg)
}

func (e *emitter) absolute(typ loop.Type, lanes int, arg string) string {
	if typ.Is(loop.ClassUnsigned) {
		return arg
	}
	negative := e.operation(loop.OpLess, typ, lanes, []string{arg, integerConstant(typ, 0, lanes)})
	return e.choose(negative, typ, lanes, e.negate(typ, lanes, arg), arg)
}

// choose appends a select.
func (e *emitter) choose(condition string, typ loop.Type, lanes int, yes, no string) string {
	vector := vectorType(typ, lanes)
	return e.assign("select %s %s, %s %s, %s %s", wide("i1", lanes), condition, vector, yes, vector, no)
}

// extreme is written so that x86's maxps and minps, which return the second operand for equal and unordered ones, match the first select.
func (e *emitter) extreme(op loop.Op, typ loop.Type, lanes int, args []string) string {
	order := loop.OpGreater
	if op == loop.OpMinimum {
		order = loop.OpLess
	}
	better := e.operation(order, typ, lanes, []string{args[1], args[0]})
	chosen := e.choose(better, typ, lanes, args[1], args[0])
	if !typ.Is(loop.ClassFloat) || number(args[1]) {
		return chosen
	}
	nan := e.assign("fcmp uno %s %s, %s", vectorType(typ, lanes), args[1], args[1])
	return e.choose(nan, typ, lanes, args[1], chosen)
}

// number reports whether an operand is a constant other than NaN.
func number(text string) bool {
	return text[0] != '%' && !strings.Contains(text, "0x7FF8") && !strings.Contains(text, "0xFFF8")
}

func (e *emitter) extremeNumber(op loop.Op, typ loop.Type, lanes int, args []string) string {
	order := loop.OpGreater
	if op == loop.OpMinimumNumber {
		order = loop.OpLess
	}
	better := e.operation(order, typ, lanes, args)
	chosen := e.choose(better, typ, lanes, args[0], args[1])
	nan := e.assign("fcmp uno %s %s, %s", vectorType(typ, lanes), args[1], args[1])
	return e.choose(nan, typ, lanes, args[0], chosen)
}

// shift clamps the distance, because LLVM leaves shifts by the width and more undefined.
func (e *emitter) shift(op loop.Op, typ loop.Type, lanes int, args []string) string {
	vector, width := vectorType(typ, lanes), int64(8*typ.Bytes())
	inside := e.assign("icmp ult %s %s, %s", vector, args[1], integerConstant(typ, width, lanes))
	if op == loop.OpShiftRight && typ.Is(loop.ClassSigned) {
		distance := e.choose(inside, typ, lanes, args[1], integerConstant(typ, width-1, lanes))
		return e.assign("ashr %s %s, %s", vector, args[0], distance)
	}
	distance := e.choose(inside, typ, lanes, args[1], integerConstant(typ, 0, lanes))
	instruction := "shl"
	if op == loop.OpShiftRight {
		instruction = "lshr"
	}
	shifted := e.assign("%s %s %s, %s", instruction, vector, args[0], distance)
	return e.choose(inside, typ, lanes, shifted, integerConstant(typ, 0, lanes))
}

// safeDivisor replaces the divisors the hardware traps on, 0 and (for the minimum) -1, by 1.
func (e *emitter) safeDivisor(typ loop.Type, lanes int, divisor string) (safe, minusOne string) {
	vector, one := vectorType(typ, lanes), integerConstant(typ, 1, lanes)
	zero := e.assign("icmp eq %s %s, %s", vector, divisor, integerConstant(typ, 0, lanes))
	safe = e.choose(zero, typ, lanes, one, divisor)
	if typ.Is(loop.ClassUnsigned) {
		return safe, ""
	}
	minusOne = e.assign("icmp eq %s %s, %s", vector, divisor, integerConstant(typ, -1, lanes))
	return e.choose(minusOne, typ, lanes, one, safe), minusOne
}

func (e *emitter) divide(op loop.Op, typ loop.Type, lanes int, args []string) string {
	vector := vectorType(typ, lanes)
	divisor, minusOne := e.safeDivisor(typ, lanes, args[1])
	if minusOne == "" {
		instruction := map[bool]string{true: "urem", false: "udiv"}[op == loop.OpRemainder]
		return e.assign("%s %s %s, %s", instruction, vector, args[0], divisor)
	}
	if op == loop.OpRemainder {
		return e.assign("srem %s %s, %s", vector, args[0], divisor)
	}
	quotient := e.assign("sdiv %s %s, %s", vector, args[0], divisor)
	if op == loop.OpDivideFloor {
		quotient = e.floorQuotient(typ, lanes, args[0], divisor, quotient)
	}
	return e.choose(minusOne, typ, lanes, e.negate(typ, lanes, args[0]), quotient)
}

// floorQuotient lowers a truncated quotient by one where the division left a remainder and the signs differ.
func (e *emitter) floorQuotient(typ loop.Type, lanes int, dividend, divisor, quotient string) string {
	vector, zero := vectorType(typ, lanes), integerConstant(typ, 0, lanes)
	remainder := e.assign("sub %s %s, %s", vector, dividend, e.assign("mul %s %s, %s", vector, quotient, divisor))
	inexact := e.assign("icmp ne %s %s, %s", vector, remainder, zero)
	differ := e.assign("icmp slt %s %s, %s", vector, e.assign("xor %s %s, %s", vector, remainder, divisor), zero)
	lower := e.assign("and %s %s, %s", wide("i1", lanes), inexact, differ)
	return e.choose(lower, typ, lanes, e.assign("sub %s %s, %s", vector, quotient, integerConstant(typ, 1, lanes)), quotient)
}

// modulo corrects the truncated division's remainder by the divisor where the signs differ.
func (e *emitter) modulo(typ loop.Type, lanes int, args []string) string {
	remainder := e.operation(loop.OpRemainder, typ, lanes, args)
	if typ.Is(loop.ClassUnsigned) {
		return remainder
	}
	zero := constant(typ, 0, lanes)
	test := func(op loop.Op, left, right string) string { return e.operation(op, typ, lanes, []string{left, right}) }
	inexact := test(loop.OpNotEqual, remainder, zero)
	differ := e.assign("xor %s %s, %s", wide("i1", lanes), test(loop.OpLess, remainder, zero), test(loop.OpLess, args[1], zero))
	correct := e.assign("and %s %s, %s", wide("i1", lanes), inexact, differ)
	return e.choose(correct, typ, lanes, test(loop.OpAdd, remainder, args[1]), remainder)
}
