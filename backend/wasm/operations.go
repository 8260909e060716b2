package wasm

import (
	"fmt"

	"fusee/backend/loop"
)

// wasmType is the type a value has on the stack: narrow integers are extended to i32 as their signedness says, narrow floats are f32.
func wasmType(typ loop.Type) valueType {
	switch typ {
	case loop.I64, loop.U64:
		return i64
	case loop.F64:
		return f64
	case loop.F16, loop.BF16, loop.F32:
		return f32
	}
	return i32
}

// byType holds an opcode for i32, i64, f32 and f64; 0 where there is none.
type byType [4]byte

func (b byType) of(typ valueType) byte { return b[i32-typ] }

// direct holds the operations that are one instruction, with unsigned variants of integer ones where they differ.
var direct = map[loop.Op]struct{ signed, unsigned byType }{
	loop.OpEqual:        {byType{0x46, 0x51, 0x5b, 0x61}, byType{}},
	loop.OpNotEqual:     {byType{0x47, 0x52, 0x5c, 0x62}, byType{}},
	loop.OpLess:         {byType{0x48, 0x53, 0x5d, 0x63}, byType{0x49, 0x54}},
	loop.OpGreater:      {byType{0x4a, 0x55, 0x5e, 0x64}, byType{0x4b, 0x56}},
	loop.OpLessEqual:    {byType{0x4c, 0x57, 0x5f, 0x65}, byType{0x4d, 0x58}},
	loop.OpGreaterEqual: {byType{0x4e, 0x59, 0x60, 0x66}, byType{0x4f, 0x5a}},
	loop.OpAdd:          {byType{0x6a, 0x7c, 0x92, 0xa0}, byType{}},
	loop.OpSubtract:     {byType{0x6b, 0x7d, 0x93, 0xa1}, byType{}},
	loop.OpMultiply:     {byType{0x6c, 0x7e, 0x94, 0xa2}, byType{}},
	loop.OpDivide:       {byType{0, 0, 0x95, 0xa3}, byType{}},
	loop.OpAnd:          {byType{0x71, 0x83}, byType{}},
	loop.OpOr:           {byType{0x72, 0x84}, byType{}},
	loop.OpXor:          {byType{0x73, 0x85}, byType{}},
	loop.OpNegate:       {byType{0, 0, 0x8c, 0x9a}, byType{}},
	loop.OpAbsolute:     {byType{0, 0, 0x8b, 0x99}, byType{}},
	loop.OpCeil:         {byType{0, 0, 0x8d, 0x9b}, byType{}},
	loop.OpFloor:        {byType{0, 0, 0x8e, 0x9c}, byType{}},
	loop.OpTruncate:     {byType{0, 0, 0x8f, 0x9d}, byType{}},
	loop.OpRoundEven:    {byType{0, 0, 0x90, 0x9e}, byType{}},
	loop.OpSquareRoot:   {byType{0, 0, 0x91, 0x9f}, byType{}},
	loop.OpCopySign:     {byType{0, 0, 0x98, 0xa6}, byType{}},
}

var (
	divideOp    = [2]byType{{0x6d, 0x7f}, {0x6e, 0x80}} // signed, unsigned
	remainderOp = [2]byType{{0x6f, 0x81}, {0x70, 0x82}}
	shiftLeft   = byType{0x74, 0x86}
	shiftRight  = [2]byType{{0x75, 0x87}, {0x76, 0x88}}
)

func signedness(typ loop.Type) int {
	if typ.Is(loop.ClassSigned) {
		return 0
	}
	return 1
}

// constant pushes a constant of a type.
func (e *emitter) constant(typ loop.Type, bits loop.Bits) {
	switch wasmType(typ) {
	case i32:
		e.i32Const(int32(bits.Int()))
	case i64:
		e.i64Const(bits.Int())
	case f32:
		e.f32Const(float32(bits.Float()))
	default:
		e.f64Const(bits.Float())
	}
}

// zero pushes 0 of an integer or float type.
func (e *emitter) zero(typ loop.Type) { e.constant(typ, 0) }

func (e *emitter) compute(in *loop.Instruction) {
	from := e.kernel.Instruction(in.Args[0]).Type
	args := make([]int, len(in.Args))
	for index, arg := range in.Args {
		args[index] = e.values[arg]
	}
	switch in.Op {
	case loop.OpSelect:
		push := func(arg int) func() { return func() { e.get(args[arg]) } }
		e.branch(wasmType(in.Type), push(1), push(2), push(0))
	case loop.OpCast:
		e.get(args[0])
		e.cast(from, in.Type)
	case loop.OpBitcast:
		e.get(args[0])
		e.bitcast(from, in.Type)
	default:
		e.operation(in.Op, from, args)
	}
}

// operation pushes an elementwise operation on locals that hold values of one type.
func (e *emitter) operation(op loop.Op, typ loop.Type, args []int) {
	if row, ok := direct[op]; ok {
		opcode := row.signed.of(wasmType(typ))
		if unsigned := row.unsigned.of(wasmType(typ)); unsigned != 0 && !typ.Is(loop.ClassSigned) {
			opcode = unsigned
		}
		if opcode != 0 {
			for _, arg := range args {
				e.get(arg)
			}
			e.op(opcode)
			e.wrap(typ, op)
			return
		}
	}
	if typ.Is(loop.ClassFloat) {
		e.floatOperation(op, typ, args)
		return
	}
	e.integerOperation(op, typ, args)
}

// wrap brings an i32 back into the range of a narrow type; comparisons give bool and need none.
func (e *emitter) wrap(typ loop.Type, op loop.Op) {
	if op.Predicate() {
		return
	}
	switch typ {
	case loop.I8:
		e.op(opI32Extend8S)
	case loop.I16:
		e.op(opI32Extend16S)
	case loop.U8, loop.U16:
		e.i32Const(1<<(8*typ.Bytes()) - 1)
		e.op(opI32And)
	case loop.Bool:
		e.i32Const(1)
		e.op(opI32And)
	}
}

// branch is choose for values of any type by two paths: wazero 1.12 on x86-64 selects the wrong double where a function was called since the
// condition was computed.
func (e *emitter) branch(typ valueType, yes, no, test func()) {
	test()
	e.op(opIf, byte(typ))
	yes()
	e.op(opElse)
	no()
	e.op(opEnd)
}

// choose pushes yes or no, integers, by a condition that test pushes.
func (e *emitter) choose(yes, no, test func()) {
	yes()
	no()
	test()
	e.op(opSelect)
}

func (e *emitter) floatOperation(op loop.Op, typ loop.Type, args []int) {
	compare := func(op loop.Op, a, b int) func() { return func() { e.operation(op, typ, []int{a, b}) } }
	push := func(local int) func() { return func() { e.get(local) } }
	switch op {
	case loop.OpIsNaN:
		e.operation(loop.OpNotEqual, typ, []int{args[0], args[0]})
		return
	case loop.OpMaximum, loop.OpMinimum, loop.OpMaximumNumber, loop.OpMinimumNumber:
		a, b := args[0], args[1]
		order := loop.OpGreater
		if op == loop.OpMinimum || op == loop.OpMinimumNumber {
			order = loop.OpLess
		}
		if op == loop.OpMaximumNumber || op == loop.OpMinimumNumber {
			e.branch(wasmType(typ), push(a), push(b), func() {
				compare(order, a, b)()
				compare(loop.OpNotEqual, b, b)()
				e.op(opI32Or)
			})
			return
		}
		e.branch(wasmType(typ), push(b), push(a), func() {
			compare(order, b, a)()
			compare(loop.OpNotEqual, b, b)()
			e.op(opI32Or)
		})
		return
	}
	e.hostCall(op, typ, args)
}

// hostCall computes in f64 on the host and rounds once.
func (e *emitter) hostCall(op loop.Op, typ loop.Type, args []int) {
	function, ok := imports()[importOf(op, typ)]
	if !ok {
		panic(fmt.Sprintf("no rule emits %s", op)) // every operation of the table has a test
	}
	for _, arg := range args {
		e.get(arg)
		if typ == loop.F32 {
			e.op(opF64PromoteF32)
		}
	}
	e.call(function)
	if typ == loop.F32 {
		e.op(opF32DemoteF64)
	}
}

func (e *emitter) integerOperation(op loop.Op, typ loop.Type, args []int) {
	push := func(local int) func() { return func() { e.get(local) } }
	switch op {
	case loop.OpNegate:
		e.zero(typ)
		e.get(args[0])
		e.op(direct[loop.OpSubtract].signed.of(wasmType(typ)))
		e.wrap(typ, op)
	case loop.OpAbsolute:
		if typ.Is(loop.ClassUnsigned) {
			e.get(args[0])
			return
		}
		e.choose(func() { e.integerOperation(loop.OpNegate, typ, args) }, push(args[0]), func() { e.negative(typ, push(args[0])) })
	case loop.OpNot:
		e.get(args[0])
		e.constant(typ, loop.IntBits(-1))
		e.op(direct[loop.OpXor].signed.of(wasmType(typ)))
		e.wrap(typ, op)
	case loop.OpMaximum:
		e.choose(push(args[1]), push(args[0]), func() { e.operation(loop.OpGreater, typ, []int{args[1], args[0]}) })
	case loop.OpMinimum:
		e.choose(push(args[1]), push(args[0]), func() { e.operation(loop.OpLess, typ, []int{args[1], args[0]}) })
	case loop.OpShiftLeft, loop.OpShiftRight:
		e.shift(op, typ, args)
	default:
		e.divide(op, typ, args)
	}
}

// negative pushes whether what push pushes is below 0.
func (e *emitter) negative(typ loop.Type, push func()) {
	push()
	e.zero(typ)
	e.op(direct[loop.OpLess].signed.of(wasmType(typ)))
}

// shift clamps the distance where the machine would take it modulo the width.
func (e *emitter) shift(op loop.Op, typ loop.Type, args []int) {
	machine, width := wasmType(typ), loop.IntBits(int64(8*typ.Bytes()))
	inside := func() {
		e.get(args[1])
		e.constant(typ, width)
		e.op(direct[loop.OpLess].unsigned.of(machine))
	}
	distance := func(otherwise loop.Bits) {
		e.choose(func() { e.get(args[1]) }, func() { e.constant(typ, otherwise) }, inside)
	}
	if op == loop.OpShiftRight && typ.Is(loop.ClassSigned) {
		e.get(args[0])
		distance(width - 1)
		e.op(shiftRight[0].of(machine))
		return
	}
	opcode := shiftLeft.of(machine)
	if op == loop.OpShiftRight {
		opcode = shiftRight[1].of(machine)
	}
	e.choose(func() {
		e.get(args[0])
		distance(0)
		e.op(opcode)
		e.wrap(typ, op)
	}, func() { e.zero(typ) }, inside)
}

// divide replaces divisors that trap by 1, which the loop IR allows for 0 and which is right for −1 up to the sign.
func (e *emitter) divide(op loop.Op, typ loop.Type, args []int) {
	machine, sign := wasmType(typ), signedness(typ)
	safe, quotient, remainder := e.local(machine), e.local(machine), e.local(machine)
	e.choose(func() { e.constant(typ, 1) }, func() { e.get(args[1]) }, func() { e.trapping(typ, args[1]) })
	e.set(safe)
	e.get(args[0])
	e.get(safe)
	e.op(divideOp[sign].of(machine))
	e.set(quotient)
	e.get(args[0])
	e.get(safe)
	e.op(remainderOp[sign].of(machine))
	e.set(remainder)
	switch op {
	case loop.OpRemainder:
		e.get(remainder)
	case loop.OpModulo:
		e.adjusted(typ, remainder, args[1], loop.OpAdd, args[1], remainder)
	case loop.OpDivideTruncate:
		e.signedQuotient(typ, args, func() { e.get(quotient) })
	default:
		one := e.local(machine)
		e.constant(typ, 1)
		e.set(one)
		e.signedQuotient(typ, args, func() { e.adjusted(typ, remainder, args[1], loop.OpSubtract, one, quotient) })
	}
	e.wrap(typ, op)
}

// trapping pushes whether a divisor is 0, or −1 of a signed type.
func (e *emitter) trapping(typ loop.Type, divisor int) {
	equals := func(value loop.Bits) {
		e.get(divisor)
		e.constant(typ, value)
		e.op(direct[loop.OpEqual].signed.of(wasmType(typ)))
	}
	equals(0)
	if typ.Is(loop.ClassSigned) {
		equals(loop.IntBits(-1))
		e.op(opI32Or)
	}
}

// signedQuotient negates the dividend where the divisor is −1 of a signed type.
func (e *emitter) signedQuotient(typ loop.Type, args []int, quotient func()) {
	if !typ.Is(loop.ClassSigned) {
		quotient()
		return
	}
	e.choose(func() { e.integerOperation(loop.OpNegate, typ, args[:1]) }, quotient, func() {
		e.get(args[1])
		e.constant(typ, loop.IntBits(-1))
		e.op(direct[loop.OpEqual].signed.of(wasmType(typ)))
	})
}

// adjusted applies op with amount to a value where the remainder is not 0 and its sign differs from the divisor's.
func (e *emitter) adjusted(typ loop.Type, remainder, divisor int, op loop.Op, amount, value int) {
	if !typ.Is(loop.ClassSigned) {
		e.get(value)
		return
	}
	machine := wasmType(typ)
	e.choose(func() {
		e.get(value)
		e.get(amount)
		e.op(direct[op].signed.of(machine))
	}, func() { e.get(value) }, func() {
		e.get(remainder)
		e.zero(typ)
		e.op(direct[loop.OpNotEqual].signed.of(machine))
		e.negative(typ, func() {
			e.get(remainder)
			e.get(divisor)
			e.op(direct[loop.OpXor].signed.of(machine))
		})
		e.op(opI32And)
	})
}
