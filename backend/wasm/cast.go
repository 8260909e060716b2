package wasm

import (
	"math"

	"fusee/backend/loop"
)

const floats = loop.ClassFloat | loop.ClassStorage

// cast converts the value on the stack as loop.OpCast says.
func (e *emitter) cast(from, to loop.Type) {
	switch {
	case to == loop.Bool:
		e.constant(from, 0)
		e.op(direct[loop.OpNotEqual].signed.of(wasmType(from)))
	case from.Is(floats) && to.Is(floats):
		e.floatToFloat(wasmType(from), to)
	case to.Is(floats):
		e.integerToFloat(from, to)
	case from.Is(floats):
		e.floatToInteger(from, to)
	default:
		e.integerToInteger(from, to)
	}
}

// floatToFloat rounds to the type, by way of float32 for the narrow ones.
func (e *emitter) floatToFloat(from valueType, to loop.Type) {
	switch {
	case to == loop.F64 && from == f32:
		e.op(opF64PromoteF32)
	case to != loop.F64 && from == f64:
		e.op(opF32DemoteF64)
	}
	switch to {
	case loop.F16:
		e.call(floatToHalf)
		e.call(halfToFloat)
	case loop.BF16:
		e.call(floatToBrain)
		e.fromMemory(loop.BF16)
	}
}

func (e *emitter) integerToFloat(from, to loop.Type) {
	convert := map[valueType]map[bool]byteSet{
		f32: {true: {0xb2, 0xb4}, false: {0xb3, 0xb5}},
		f64: {true: {0xb7, 0xb9}, false: {0xb8, 0xba}},
	}[wasmType(to)][from.Is(loop.ClassSigned)]
	e.op(convert[i32-wasmType(from)])
	if to.Is(loop.ClassStorage) {
		e.floatToFloat(f32, to)
	}
}

// byteSet holds opcodes for i32 and i64.
type byteSet [2]byte

// floatToInteger gives what x86-64's conversion gives: the lowest number of 32 or 64 bits where the value does not fit, then narrowed.
func (e *emitter) floatToInteger(from, to loop.Type) {
	machine, lowest, limit, opcode := i32, loop.IntBits(math.MinInt32), float64(1<<31), byte(2)
	if to.Bytes() == 8 || to.Is(loop.ClassUnsigned) {
		machine, lowest, limit, opcode = i64, loop.IntBits(math.MinInt64), 1<<63, 6
	}
	number := e.local(f64)
	if wasmType(from) == f32 {
		e.op(opF64PromoteF32)
	}
	e.op(0x9d) // f64.trunc
	e.set(number)
	e.choose(func() {
		e.get(number)
		e.op(0xfc, opcode) // saturating truncation of f64, signed
	}, func() { e.constant(integerOf(machine), lowest) }, func() {
		e.get(number)
		e.f64Const(-limit)
		e.op(0x66) // f64.ge
		e.get(number)
		e.f64Const(limit)
		e.op(0x63, opI32And) // f64.lt
	})
	e.integerToInteger(integerOf(machine), to)
}

func integerOf(machine valueType) loop.Type {
	if machine == i64 {
		return loop.I64
	}
	return loop.I32
}

func (e *emitter) integerToInteger(from, to loop.Type) {
	switch {
	case wasmType(from) == i64 && wasmType(to) == i32:
		e.op(opI32WrapI64)
	case wasmType(from) == i32 && wasmType(to) == i64 && from.Is(loop.ClassSigned):
		e.op(0xac) // i64.extend_i32_s
	case wasmType(from) == i32 && wasmType(to) == i64:
		e.op(0xad) // i64.extend_i32_u
	}
	e.wrap(to, loop.OpCast)
}

// bitcast reinterprets the value on the stack as another type of the same width.
func (e *emitter) bitcast(from, to loop.Type) {
	switch {
	case from == loop.F16:
		e.call(floatToHalf)
	case from == loop.BF16:
		e.call(floatToBrain)
	case from == loop.F32 && to != loop.F32:
		e.op(0xbc) // i32.reinterpret_f32
	case from == loop.F64 && to != loop.F64:
		e.op(0xbd) // i64.reinterpret_f64
	}
	switch {
	case to == loop.F16 || to == loop.BF16:
		e.i32Const(0xffff)
		e.op(opI32And)
		e.fromMemory(to)
	case to == loop.F32 && from != loop.F32:
		e.op(0xbe)
	case to == loop.F64 && from != loop.F64:
		e.op(0xbf)
	default:
		e.wrap(to, loop.OpBitcast)
	}
}
