package cuda

import (
	"fmt"
	"strings"

	"fusee/backend/loop"
)

// call returns a call of a helper and notes that the helper is used.
func (e *emitter) call(name string, arguments ...string) string {
	e.helpers[name] = true
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// mathFunction returns the name of the C function of an operation on doubles, "" when it is none. PyTorch's kernels
// call the same functions, so results agree bit for bit.
func mathFunction(op loop.Op) string {
	switch op {
	case loop.OpAbsolute:
		return "fabs"
	case loop.OpMaximumNumber:
		return "fmax"
	case loop.OpMinimumNumber:
		return "fmin"
	case loop.OpRemainder:
		return "fmod"
	case loop.OpTruncate:
		return "trunc"
	case loop.OpRoundEven:
		return "rint"
	}
	if op.Domain() == loop.ClassFloat && op.Elementwise() && !op.Predicate() && op != loop.OpDivide {
		return op.String() // the loop IR names the others as C does
	}
	return ""
}

// infix returns the C operator of an operation, "" when it is none.
func infix(op loop.Op) string {
	return map[loop.Op]string{
		loop.OpEqual: "==", loop.OpNotEqual: "!=", loop.OpLess: "<", loop.OpLessEqual: "<=",
		loop.OpGreater: ">", loop.OpGreaterEqual: ">=",
		loop.OpAdd: "+", loop.OpSubtract: "-", loop.OpMultiply: "*", loop.OpDivide: "/",
		loop.OpAnd: "&", loop.OpOr: "|", loop.OpXor: "^",
	}[op]
}

// elementwise returns the expression of an operation that computes from arguments of type t alone.
func (e *emitter) elementwise(op loop.Op, t loop.Type, a []string) string {
	switch {
	case op.Predicate() && op == loop.OpIsNaN:
		return a[0] + " != " + a[0]
	case op.Predicate():
		return a[0] + " " + infix(op) + " " + a[1]
	case t.Is(loop.ClassFloat):
		return e.float(op, t, a)
	case t == loop.Bool:
		return truth(op, a)
	}
	return e.integer(op, t, a)
}

func (e *emitter) float(op loop.Op, t loop.Type, a []string) string {
	switch op {
	case loop.OpMultiply: // the intrinsic, unlike *, is never contracted with an addition
		return fmt.Sprintf("%s(%s, %s)", map[bool]string{true: "__fmul_rn", false: "__dmul_rn"}[t == loop.F32], a[0], a[1])
	case loop.OpAdd, loop.OpSubtract, loop.OpDivide:
		return a[0] + " " + infix(op) + " " + a[1]
	case loop.OpNegate:
		return "-" + a[0]
	case loop.OpMaximum, loop.OpMinimum:
		return e.call(op.String(), a...)
	case loop.OpModulo:
		e.helpers["modulo_float"] = true
		return "modulo(" + a[0] + ", " + a[1] + ")"
	}
	name := mathFunction(op)
	if t == loop.F32 {
		name += "f"
	}
	return name + "(" + strings.Join(a, ", ") + ")"
}

func truth(op loop.Op, a []string) string {
	switch op {
	case loop.OpNot:
		return "!" + a[0]
	case loop.OpMaximum, loop.OpOr:
		return a[0] + " || " + a[1]
	case loop.OpMinimum, loop.OpAnd:
		return a[0] + " && " + a[1]
	}
	return a[0] + " != " + a[1]
}

func (e *emitter) integer(op loop.Op, t loop.Type, a []string) string {
	switch op {
	case loop.OpAdd, loop.OpSubtract, loop.OpMultiply:
		return wrapping(t, "", a[0], infix(op), a[1])
	case loop.OpNegate:
		return wrapping(t, "-", a[0])
	case loop.OpNot:
		return wrapping(t, "~", a[0])
	case loop.OpAnd, loop.OpOr, loop.OpXor:
		return fmt.Sprintf("(%s)(%s %s %s)", typeName(t), a[0], infix(op), a[1])
	case loop.OpAbsolute:
		return fmt.Sprintf("%s < 0 ? %s : %s", a[0], wrapping(t, "-", a[0]), a[0])
	case loop.OpMaximum:
		return fmt.Sprintf("%s < %s ? %s : %s", a[0], a[1], a[1], a[0])
	case loop.OpMinimum:
		return fmt.Sprintf("%s < %s ? %s : %s", a[1], a[0], a[1], a[0])
	case loop.OpRemainder:
		e.helpers["remainder"] = true
		return templated("truncated_remainder", t, a)
	}
	e.helpers[op.String()] = true
	return templated(op.String(), t, a)
}

func templated(name string, t loop.Type, a []string) string {
	return fmt.Sprintf("%s<%s>(%s)", name, typeName(t), strings.Join(a, ", "))
}

// wrapping computes in the wide unsigned type, where overflow is defined, and converts back. Words are a prefix operator
// and its operand, then operators and operands in turn.
func wrapping(t loop.Type, prefix, first string, rest ...string) string {
	wide := wideName(t)
	text := fmt.Sprintf("%s(%s)%s", prefix, wide, first)
	for i := 0; i+1 < len(rest); i += 2 {
		text += fmt.Sprintf(" %s (%s)%s", rest[i], wide, rest[i+1])
	}
	return fmt.Sprintf("(%s)(%s)", typeName(t), text)
}

// combine returns the statement that merges value into accumulator.
func (e *emitter) combine(reduction loop.Reduction, t loop.Type, accumulator, value string) string {
	return fmt.Sprintf("%s = %s;", accumulator, e.combination(reduction, t, accumulator, value))
}

func (e *emitter) combination(reduction loop.Reduction, t loop.Type, a, b string) string {
	if reduction == loop.Maximum && t.Is(loop.ClassFloat) {
		return e.call("greatest", a, b)
	}
	op, _ := reduction.Combine()
	return e.elementwise(op, t, []string{a, b})
}
