package backend

import (
	"math"

	"fusee/backend/loop"
	"fusee/graph"
	"fusee/internal/slice"
)

// rule says how a primitive of graph's formulas becomes loop operations.
type rule struct {
	allowed  loop.Class // computation types it exists for
	op       loop.Op
	discrete bool // jumps: on narrow floats its arguments are rounded first, so that results agree with eager's
	divides  bool // for integers the divisor must be a constant other than 0, because eager raises an error otherwise
	emit     func(x *expressionBuilder, args []loop.Value, typ loop.Type) loop.Value
}

const float = loop.ClassFloat

// primitiveRules has a row for every primitive that loops compute; operators whose formula uses another run as library calls.
var primitiveRules = map[string]rule{
	"add":       {allowed: loop.ClassNumber, op: loop.OpAdd},
	"sub":       {allowed: loop.ClassNumber, op: loop.OpSubtract},
	"mul":       {allowed: loop.ClassNumber, op: loop.OpMultiply},
	"div":       {allowed: float, op: loop.OpDivide},
	"neg":       {allowed: loop.ClassNumber, op: loop.OpNegate},
	"abs":       {allowed: loop.ClassNumber, op: loop.OpAbsolute},
	"maximum":   {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpMaximum},
	"minimum":   {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpMinimum},
	"fmax":      {allowed: loop.ClassNumber | loop.ClassBool, emit: emitNumber(loop.OpMaximumNumber, loop.OpMaximum)},
	"fmin":      {allowed: loop.ClassNumber | loop.ClassBool, emit: emitNumber(loop.OpMinimumNumber, loop.OpMinimum)},
	"floordiv":  {allowed: loop.ClassNumber, discrete: true, divides: true, emit: emitFloorDivide},
	"truncdiv":  {allowed: loop.ClassInteger, op: loop.OpDivideTruncate, divides: true},
	"mod":       {allowed: loop.ClassNumber, op: loop.OpModulo, discrete: true, divides: true},
	"fmod":      {allowed: loop.ClassNumber, op: loop.OpRemainder, discrete: true, divides: true},
	"ceil":      {allowed: loop.ClassNumber, discrete: true, emit: emitRounding(loop.OpCeil)},
	"floor":     {allowed: loop.ClassNumber, discrete: true, emit: emitRounding(loop.OpFloor)},
	"trunc":     {allowed: loop.ClassNumber, discrete: true, emit: emitRounding(loop.OpTruncate)},
	"round":     {allowed: loop.ClassNumber, discrete: true, emit: emitRounding(loop.OpRoundEven)},
	"sqrt":      {allowed: float, op: loop.OpSquareRoot},
	"rsqrt":     {allowed: float, op: loop.OpReciprocalSquareRoot},
	"exp":       {allowed: float, op: loop.OpExp},
	"exp2":      {allowed: float, op: loop.OpExp2},
	"expm1":     {allowed: float, op: loop.OpExpM1},
	"log":       {allowed: float, op: loop.OpLog},
	"log2":      {allowed: float, op: loop.OpLog2},
	"log10":     {allowed: float, op: loop.OpLog10},
	"log1p":     {allowed: float, op: loop.OpLog1P},
	"sin":       {allowed: float, op: loop.OpSin},
	"cos":       {allowed: float, op: loop.OpCos},
	"tan":       {allowed: float, op: loop.OpTan},
	"asin":      {allowed: float, op: loop.OpArcSin},
	"acos":      {allowed: float, op: loop.OpArcCos},
	"atan":      {allowed: float, op: loop.OpArcTan},
	"sinh":      {allowed: float, op: loop.OpSinH},
	"cosh":      {allowed: float, op: loop.OpCosH},
	"tanh":      {allowed: float, op: loop.OpTanH},
	"asinh":     {allowed: float, op: loop.OpArcSinH},
	"acosh":     {allowed: float, op: loop.OpArcCosH},
	"atanh":     {allowed: float, op: loop.OpArcTanH},
	"erf":       {allowed: float, op: loop.OpErf},
	"erfc":      {allowed: float, op: loop.OpErfC},
	"lgamma":    {allowed: float, op: loop.OpLogGamma},
	"pow":       {allowed: float, op: loop.OpPower},
	"atan2":     {allowed: float, op: loop.OpArcTangent2},
	"hypot":     {allowed: float, op: loop.OpHypotenuse},
	"copysign":  {allowed: float, op: loop.OpCopySign},
	"nextafter": {allowed: float, op: loop.OpNextAfter, discrete: true},
	"eq":        {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpEqual, discrete: true},
	"ne":        {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpNotEqual, discrete: true},
	"lt":        {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpLess, discrete: true},
	"le":        {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpLessEqual, discrete: true},
	"gt":        {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpGreater, discrete: true},
	"ge":        {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpGreaterEqual, discrete: true},
	"isnan":     {allowed: loop.ClassNumber | loop.ClassBool, emit: emitIsNaN},
	"isinf":     {allowed: loop.ClassNumber | loop.ClassBool, discrete: true, emit: emitIsInfinite},
	"isfinite":  {allowed: loop.ClassNumber | loop.ClassBool, discrete: true, emit: emitIsFinite},
	"signbit":   {allowed: loop.ClassNumber | loop.ClassBool, emit: emitSignBit},
	"and":       {allowed: loop.ClassBits, op: loop.OpAnd},
	"or":        {allowed: loop.ClassBits, op: loop.OpOr},
	"xor":       {allowed: loop.ClassBits, op: loop.OpXor},
	"not":       {allowed: loop.ClassBits, op: loop.OpNot},
	"shl":       {allowed: loop.ClassInteger, op: loop.OpShiftLeft},
	"shr":       {allowed: loop.ClassInteger, op: loop.OpShiftRight},
	"where":     {allowed: loop.ClassNumber | loop.ClassBool, op: loop.OpSelect},
}

// booleanSpelling says what arithmetic on bool means.
var booleanSpelling = map[string]string{"add": "or", "mul": "and"}

// resultOf returns the type of an expression's value within a computation of type compute.
func resultOf(e *graph.Expression, compute loop.Type) loop.Type {
	if e.IsBool() {
		return loop.Bool
	}
	return compute
}

// expressible reports whether loops can compute the expression in the type.
func expressible(e *graph.Expression, compute loop.Type) bool {
	switch e.Op {
	case "operand":
		return true
	case "constant":
		return representable(e.Constant, compute)
	}
	for _, arg := range e.Args {
		if !expressible(arg, compute) {
			return false
		}
	}
	typ := argumentType(e, compute)
	row, ok := ruleFor(e, typ)
	if !ok {
		return integerPower(e, typ)
	}
	return !row.divides || typ.Is(float) || nonZeroConstant(e.Args[1])
}

// representable reports whether a number can be a constant of the type: not complex, and for integers and bool a whole number.
func representable(value graph.Value, typ loop.Type) bool {
	switch v := value.(type) {
	case complex128:
		return false
	case float64:
		return typ.Is(loop.ClassFloat) || v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return true
}

// ruleFor finds the row of an expression on arguments of a type.
func ruleFor(e *graph.Expression, typ loop.Type) (rule, bool) {
	name := e.Op
	if spelling, ok := booleanSpelling[name]; ok && typ == loop.Bool {
		name = spelling
	}
	row, ok := primitiveRules[name]
	return row, ok && typ.Is(row.allowed)
}

// argumentType is the type an expression's arguments are computed in.
func argumentType(e *graph.Expression, compute loop.Type) loop.Type {
	if e.Op == "where" {
		return resultOf(e, compute)
	}
	if arg, found := slice.Find(e.Args, func(arg *graph.Expression) bool { return arg.Op != "constant" }); found {
		return resultOf(arg, compute)
	}
	return compute
}

func nonZeroConstant(e *graph.Expression) bool {
	value, ok := constantInt(e)
	return ok && value != 0
}

func constantInt(e *graph.Expression) (int64, bool) {
	switch value := e.Constant.(type) {
	case int64:
		return value, true
	case bool:
		return map[bool]int64{true: 1}[value], true
	}
	return 0, false
}

// integerPower reports whether the expression raises integers to a small constant power, which repeated multiplication computes exactly.
func integerPower(e *graph.Expression, typ loop.Type) bool {
	if e.Op != "pow" || !typ.Is(loop.ClassInteger) {
		return false
	}
	exponent, ok := constantInt(e.Args[1])
	return ok && exponent >= 0 && exponent <= 16
}

// expressionBuilder appends the operations of one formula to a kernel.
type expressionBuilder struct {
	*loop.Builder
	compute loop.Type
	operand func(index int, rounded bool) loop.Value // of type compute or Bool
	short   bool                                     // the result is rounded to 16 bits and may err by less than that before
}

// build appends the expression and returns its value. Rounded asks for operands as they would be in memory.
func (x *expressionBuilder) build(e *graph.Expression, want loop.Type, rounded bool) loop.Value {
	switch e.Op {
	case "operand":
		return x.operand(e.Operand, rounded)
	case "constant":
		return x.Constant(want, constantBits(e.Constant, want))
	}
	typ := argumentType(e, x.compute)
	if x.short && isComplement(e) {
		negative := x.Do(loop.OpNegate, typ, x.convert(x.build(e.Args[1].Args[0], typ, rounded), typ))
		return x.Append(loop.Instruction{Op: loop.OpErfC, Type: typ, Args: []loop.Value{negative}, Short: typ == loop.F32})
	}
	row, ok := ruleFor(e, typ)
	if !ok {
		return x.power(x.build(e.Args[0], typ, rounded), e, typ)
	}
	args := make([]loop.Value, len(e.Args))
	for index, arg := range e.Args {
		wanted := typ
		if e.Op == "where" && index == 0 {
			wanted = loop.Bool
		}
		args[index] = x.convert(x.build(arg, wanted, rounded || row.discrete), wanted)
	}
	if row.emit != nil {
		return row.emit(x, args, typ)
	}
	result := typ
	if row.op.Predicate() {
		result = loop.Bool
	}
	return x.do(row.op, result, args...)
}

// do appends an operation, in its short form where that is wanted. The one of erfc is no better than 1 + erf(-x) where the result is small, and
// stands for that alone.
func (x *expressionBuilder) do(op loop.Op, typ loop.Type, args ...loop.Value) loop.Value {
	short := x.short && op.HasShortForm() && op != loop.OpErfC && typ == loop.F32
	return x.Append(loop.Instruction{Op: op, Type: typ, Args: args, Short: short})
}

// isComplement reports whether an expression is 1 + erf(x), which is erfc(-x).
func isComplement(e *graph.Expression) bool {
	if e.Op != "add" || e.Args[0].Op != "constant" || e.Args[1].Op != "erf" {
		return false
	}
	one, ok := constantInt(e.Args[0])
	return ok && one == 1
}

// convert casts a value unless it has the type.
func (x *expressionBuilder) convert(value loop.Value, typ loop.Type) loop.Value {
	if x.Kernel.Instruction(value).Type == typ {
		return value
	}
	return x.Cast(typ, value)
}

// constantBits encodes a Python number as a constant of the type.
func constantBits(value graph.Value, typ loop.Type) loop.Bits {
	var number float64
	integer, isInteger := int64(0), true
	switch v := value.(type) {
	case bool:
		integer = map[bool]int64{true: 1}[v]
	case int64:
		integer = v
	case float64:
		number, isInteger = v, false
	}
	switch {
	case typ == loop.Bool:
		return loop.BoolBits(integer != 0 || !isInteger && number != 0)
	case typ.Is(loop.ClassInteger) && isInteger:
		return loop.IntBits(integer)
	case typ.Is(loop.ClassInteger):
		return loop.IntBits(int64(number))
	case isInteger:
		number = float64(integer)
	}
	if typ == loop.F32 {
		number = float64(float32(number))
	}
	return loop.FloatBits(number)
}

func emitNumber(floats, others loop.Op) func(*expressionBuilder, []loop.Value, loop.Type) loop.Value {
	return func(x *expressionBuilder, args []loop.Value, typ loop.Type) loop.Value {
		if typ.Is(float) {
			return x.Do(floats, typ, args...)
		}
		return x.Do(others, typ, args...)
	}
}

func emitRounding(op loop.Op) func(*expressionBuilder, []loop.Value, loop.Type) loop.Value {
	return func(x *expressionBuilder, args []loop.Value, typ loop.Type) loop.Value {
		if !typ.Is(float) {
			return args[0]
		}
		return x.Do(op, typ, args...)
	}
}

// emitFloorDivide follows c10::div_floor_floating (c10/util/generic_math.h): the quotient of the dividend less fmod, rounded to the nearest integer,
// which stays right where a plain floor of the quotient would round up first.
func emitFloorDivide(x *expressionBuilder, args []loop.Value, typ loop.Type) loop.Value {
	if !typ.Is(float) {
		return x.Do(loop.OpDivideFloor, typ, args...)
	}
	a, b := args[0], args[1]
	zero := x.Constant(typ, loop.FloatBits(0))
	quotient := x.Do(loop.OpDivide, typ, a, b)
	remainder := x.Do(loop.OpRemainder, typ, a, b)
	exact := x.Do(loop.OpDivide, typ, x.Do(loop.OpSubtract, typ, a, remainder), b)
	differ := x.Do(loop.OpXor, loop.Bool, x.Do(loop.OpLess, loop.Bool, b, zero), x.Do(loop.OpLess, loop.Bool, remainder, zero))
	lower := x.Do(loop.OpAnd, loop.Bool, x.Do(loop.OpNotEqual, loop.Bool, remainder, zero), differ)
	one := x.Constant(typ, loop.FloatBits(1))
	adjusted := x.Do(loop.OpSelect, typ, lower, x.Do(loop.OpSubtract, typ, exact, one), exact)
	floor := x.Do(loop.OpFloor, typ, adjusted)
	up := x.Do(loop.OpGreater, loop.Bool, x.Do(loop.OpSubtract, typ, adjusted, floor), x.Constant(typ, loop.FloatBits(0.5)))
	rounded := x.Do(loop.OpSelect, typ, up, x.Do(loop.OpAdd, typ, floor, one), floor)
	signed := x.Do(loop.OpCopySign, typ, zero, quotient)
	result := x.Do(loop.OpSelect, typ, x.Do(loop.OpNotEqual, loop.Bool, adjusted, zero), rounded, signed)
	return x.Do(loop.OpSelect, typ, x.Do(loop.OpEqual, loop.Bool, b, zero), quotient, result)
}

func emitIsNaN(x *expressionBuilder, args []loop.Value, typ loop.Type) loop.Value {
	if !typ.Is(float) {
		return x.Constant(loop.Bool, loop.BoolBits(false))
	}
	return x.Do(loop.OpIsNaN, loop.Bool, args[0])
}

func emitIsInfinite(x *expressionBuilder, args []loop.Value, typ loop.Type) loop.Value {
	if !typ.Is(float) {
		return x.Constant(loop.Bool, loop.BoolBits(false))
	}
	return x.Do(loop.OpEqual, loop.Bool, x.Do(loop.OpAbsolute, typ, args[0]), x.Constant(typ, loop.FloatBits(math.Inf(1))))
}

func emitIsFinite(x *expressionBuilder, args []loop.Value, typ loop.Type) loop.Value {
	if !typ.Is(float) {
		return x.Constant(loop.Bool, loop.BoolBits(true))
	}
	return x.Do(loop.OpLess, loop.Bool, x.Do(loop.OpAbsolute, typ, args[0]), x.Constant(typ, loop.FloatBits(math.Inf(1))))
}

func emitSignBit(x *expressionBuilder, args []loop.Value, typ loop.Type) loop.Value {
	value := args[0]
	switch {
	case typ == loop.F32:
		typ = loop.I32
		value = x.Do(loop.OpBitcast, typ, value)
	case typ == loop.F64:
		typ = loop.I64
		value = x.Do(loop.OpBitcast, typ, value)
	case typ == loop.Bool:
		return x.Constant(loop.Bool, loop.BoolBits(false))
	}
	return x.Do(loop.OpLess, loop.Bool, value, x.Constant(typ, 0))
}

// power multiplies by squaring.
func (x *expressionBuilder) power(base loop.Value, e *graph.Expression, typ loop.Type) loop.Value {
	exponent, _ := constantInt(e.Args[1])
	result := x.Constant(typ, 1)
	for ; exponent > 0; exponent >>= 1 {
		if exponent&1 == 1 {
			result = x.Do(loop.OpMultiply, typ, result, base)
		}
		base = x.Do(loop.OpMultiply, typ, base, base)
	}
	return result
}
