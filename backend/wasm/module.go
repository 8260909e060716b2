package wasm

import (
	"encoding/binary"
	"sync"

	"fusee/backend/interpret"
	"fusee/backend/loop"
)

// Function numbers of the first imports.
const (
	halfToFloat = iota
	floatToHalf
	floatToBrain
	firstMath
)

// hostFunction is one imported function.
type hostFunction struct {
	name       string
	parameters []valueType
	results    []valueType
	unary      func(float64) float64
	binary     func(a, b float64) float64
	ternary    func(a, b, c float64) float64
}

// hostFunctions lists all imports in order of function numbers: conversions of narrow floats, then every float operation that the interpreter
// computes, so that both oracles agree bit for bit.
var hostFunctions = sync.OnceValue(func() []hostFunction {
	result := []hostFunction{
		{name: "half_to_float", parameters: []valueType{i32}, results: []valueType{f32}},
		{name: "float_to_half", parameters: []valueType{f32}, results: []valueType{i32}},
		{name: "float_to_brain", parameters: []valueType{f32}, results: []valueType{i32}},
	}
	for _, op := range loop.Ops() {
		if function := interpret.Function(op); function != nil {
			result = append(result, hostFunction{name: op.String(), parameters: []valueType{f64}, results: []valueType{f64}, unary: function})
		}
		if function := interpret.Function2(op); function != nil {
			result = append(result, hostFunction{name: op.String(), parameters: []valueType{f64, f64}, results: []valueType{f64}, binary: function})
		}
	}
	return append(result, specialFunctions()...)
})

// specialFunctions are those the interpreter computes by type or from three arguments.
func specialFunctions() []hostFunction {
	nextAfter := func(typ loop.Type) func(a, b float64) float64 {
		return func(a, b float64) float64 {
			return interpret.Apply(loop.OpNextAfter, typ, []loop.Bits{loop.FloatBits(a), loop.FloatBits(b)}).Float()
		}
	}
	pair, one := []valueType{f64, f64}, []valueType{f64}
	return []hostFunction{
		{name: "nextafter f32", parameters: pair, results: one, binary: nextAfter(loop.F32)},
		{name: "nextafter f64", parameters: pair, results: one, binary: nextAfter(loop.F64)},
		{name: loop.OpFusedMultiplyAdd.String(), parameters: []valueType{f64, f64, f64}, results: one, ternary: func(a, b, c float64) float64 {
			return interpret.Apply(loop.OpFusedMultiplyAdd, loop.F64, []loop.Bits{loop.FloatBits(a), loop.FloatBits(b), loop.FloatBits(c)}).Float()
		}},
	}
}

// importOf names the host function of an operation.
func importOf(op loop.Op, typ loop.Type) string {
	if op == loop.OpNextAfter {
		return op.String() + " " + typ.String()
	}
	return op.String()
}

// imports maps names to function numbers.
var imports = sync.OnceValue(func() map[string]int {
	result := map[string]int{}
	for number, function := range hostFunctions() {
		result[function.name] = number
	}
	return result
})

// module assembles the sections.
func (e *emitter) module() []byte {
	var types, imported [][]byte
	for number, function := range hostFunctions() {
		types = append(types, functionType(function.parameters, function.results))
		entry := append(name(hostModule), name(function.name)...)
		imported = append(imported, binary.AppendUvarint(append(entry, 0), uint64(number)))
	}
	own := uint64(len(types))
	types = append(types, functionType(e.parameters, nil))
	memory := append(name(hostModule), name(memoryName)...)
	imported = append(imported, append(memory, 2, 0, 1)) // a memory of at least one page
	bytes := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	bytes = append(bytes, section(1, vector(types...))...)
	bytes = append(bytes, section(2, vector(imported...))...)
	bytes = append(bytes, section(3, vector(binary.AppendUvarint(nil, own)))...)
	export := binary.AppendUvarint(append(name(functionName), 0), own)
	bytes = append(bytes, section(7, vector(export))...)
	return append(bytes, section(10, vector(e.functionBody()))...)
}

// functionBody encodes the function for the code section: locals one by one, instructions, end.
func (e *emitter) functionBody() []byte {
	locals := make([][]byte, len(e.locals))
	for index, typ := range e.locals {
		locals[index] = []byte{1, byte(typ)}
	}
	body := append(vector(locals...), e.bytes...)
	body = append(body, opEnd)
	return append(binary.AppendUvarint(nil, uint64(len(body))), body...)
}
