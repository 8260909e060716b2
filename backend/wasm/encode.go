package wasm

import (
	"encoding/binary"
	"math"
)

// valueType is a WebAssembly value type, as encoded.
type valueType byte

const (
	i32 valueType = 0x7f
	i64 valueType = 0x7e
	f32 valueType = 0x7d
	f64 valueType = 0x7c
)

// Opcodes, named as in the specification (webassembly.github.io/spec, binary format of instructions).
const (
	opUnreachable   = 0x00
	opBlock         = 0x02
	opLoop          = 0x03
	opEnd           = 0x0b
	opBranch        = 0x0c
	opBranchIf      = 0x0d
	opIf            = 0x04
	opElse          = 0x05
	opCall          = 0x10
	opSelect        = 0x1b
	opLocalGet      = 0x20
	opLocalSet      = 0x21
	opI32Const      = 0x41
	opI64Const      = 0x42
	opF32Const      = 0x43
	opF64Const      = 0x44
	opI32Eqz        = 0x45
	opI32Ne         = 0x47
	opI32Add        = 0x6a
	opI32And        = 0x71
	opI32Or         = 0x72
	opI64LtS        = 0x53
	opI64GeS        = 0x59
	opI64GeU        = 0x5a
	opI64Add        = 0x7c
	opI64Sub        = 0x7d
	opI64Mul        = 0x7e
	opI64DivS       = 0x7f
	opI64RemS       = 0x81
	opI32WrapI64    = 0xa7
	opI32Extend8S   = 0xc0
	opI32Extend16S  = 0xc1
	opF64PromoteF32 = 0xbb
	opF32DemoteF64  = 0xb6
	emptyBlock      = 0x40
)

// code is the body of a function under construction.
type code struct{ bytes []byte }

func (c *code) op(opcodes ...byte) { c.bytes = append(c.bytes, opcodes...) }

func (c *code) unsigned(value uint64) { c.bytes = binary.AppendUvarint(c.bytes, value) }

func (c *code) signed(value int64) { c.bytes = appendSigned(c.bytes, value) }

func (c *code) i32Const(value int32) {
	c.op(opI32Const)
	c.signed(int64(value))
}

func (c *code) i64Const(value int64) {
	c.op(opI64Const)
	c.signed(value)
}

func (c *code) f32Const(value float32) {
	c.op(opF32Const)
	c.bytes = binary.LittleEndian.AppendUint32(c.bytes, math.Float32bits(value))
}

func (c *code) f64Const(value float64) {
	c.op(opF64Const)
	c.bytes = binary.LittleEndian.AppendUint64(c.bytes, math.Float64bits(value))
}

func (c *code) get(local int) {
	c.op(opLocalGet)
	c.unsigned(uint64(local))
}

func (c *code) set(local int) {
	c.op(opLocalSet)
	c.unsigned(uint64(local))
}

func (c *code) call(function int) {
	c.op(opCall)
	c.unsigned(uint64(function))
}

// appendSigned encodes in signed LEB128.
func appendSigned(bytes []byte, value int64) []byte {
	for {
		low := byte(value & 0x7f)
		value >>= 7
		if value == 0 && low&0x40 == 0 || value == -1 && low&0x40 != 0 {
			return append(bytes, low)
		}
		bytes = append(bytes, low|0x80)
	}
}

// section prefixes content with its number and length.
func section(number byte, content []byte) []byte {
	bytes := binary.AppendUvarint([]byte{number}, uint64(len(content)))
	return append(bytes, content...)
}

// vector encodes a count and the items.
func vector(items ...[]byte) []byte {
	bytes := binary.AppendUvarint(nil, uint64(len(items)))
	for _, item := range items {
		bytes = append(bytes, item...)
	}
	return bytes
}

// name encodes a string.
func name(text string) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(text))), text...)
}

// functionType encodes a signature.
func functionType(parameters, results []valueType) []byte {
	bytes := []byte{0x60}
	for _, types := range [][]valueType{parameters, results} {
		bytes = binary.AppendUvarint(bytes, uint64(len(types)))
		for _, typ := range types {
			bytes = append(bytes, byte(typ))
		}
	}
	return bytes
}
