// Package wasm emits loop kernels as WebAssembly modules and runs them with wazero, so that kernels execute in go test and in
// `fusee replay --run` with no Python, C compiler or GPU. Code is scalar and follows the loop IR closely: it is an oracle, not a fast path.
package wasm

import (
	"fusee/backend/loop"
)

// Names that connect a module with its host: one imported memory, imported functions, one exported function with a pointer (i32) for each buffer,
// then an i64 for each scalar, then the first outer point and the one after the last.
const (
	hostModule   = "host"
	memoryName   = "memory"
	functionName = "run"
)

// Emit returns the module of a verified kernel.
func Emit(kernel *loop.Kernel) []byte {
	e := &emitter{kernel: kernel, values: make([]int, kernel.Values())}
	for range kernel.Buffers {
		e.parameters = append(e.parameters, i32)
	}
	for range kernel.Scalars {
		e.parameters = append(e.parameters, i64)
	}
	e.parameters = append(e.parameters, i64, i64)
	e.point, e.span = e.local(i64), e.local(i64)
	for range kernel.Outer {
		e.outer = append(e.outer, e.local(i64))
	}
	e.points()
	return e.module()
}

type emitter struct {
	code
	kernel     *loop.Kernel
	parameters []valueType
	locals     []valueType
	values     []int // local of each value
	point      int
	span       int // local with the length of the point's piece
	outer      []int
	index      []int // local of the position along each dimension entered
	sums       map[loop.Value]*accumulator
	position   int // local with the row-major number of the inner point
}

// accumulator is the running state of a reduction.
type accumulator struct {
	in       *loop.Instruction
	typ      loop.Type
	value    int // locals
	position int
	started  int
}

// local declares a local variable and returns its number.
func (e *emitter) local(typ valueType) int {
	e.locals = append(e.locals, typ)
	return len(e.parameters) + len(e.locals) - 1
}

func (e *emitter) begin() int { return len(e.parameters) - 2 }

// int pushes a size or stride.
func (e *emitter) int(value loop.Int) {
	if argument, ok := value.Argument(); ok {
		if argument == e.kernel.Scalars {
			e.get(e.span)
			return
		}
		e.get(len(e.kernel.Buffers) + argument)
		return
	}
	number, _ := value.Static()
	e.i64Const(number)
}

// loop repeats body while the local index is below what limit pushes.
func (e *emitter) loop(index int, limit func(), body func()) {
	e.op(opBlock, emptyBlock, opLoop, emptyBlock)
	e.get(index)
	limit()
	e.op(opI64GeS, opBranchIf, 1)
	body()
	e.increment(index)
	e.op(opBranch, 0, opEnd, opEnd)
}

func (e *emitter) increment(local int) {
	e.get(local)
	e.i64Const(1)
	e.op(opI64Add)
	e.set(local)
}

// points runs the stages for every outer point.
func (e *emitter) points() {
	e.get(e.begin())
	e.set(e.point)
	e.loop(e.point, func() { e.get(e.begin() + 1) }, func() {
		e.decompose()
		for stage := range e.kernel.Stages {
			e.stage(&e.kernel.Stages[stage])
		}
	})
}

// decompose sets the outer indices of the point.
func (e *emitter) decompose() {
	rest := e.local(i64)
	e.get(e.point)
	e.set(rest)
	for dimension := len(e.outer) - 1; dimension >= 0; dimension-- {
		e.get(rest)
		e.int(e.kernel.Outer[dimension])
		e.op(opI64RemS)
		e.set(e.outer[dimension])
		e.get(rest)
		e.int(e.kernel.Outer[dimension])
		e.op(opI64DivS)
		e.set(rest)
	}
	e.index = append([]int(nil), e.outer...)
	if e.kernel.Span != nil {
		e.piece(e.kernel.Span)
	}
}

// piece sets the length of the point's piece: the lesser of its size and of what is left; a loop to less than 0 does not run.
func (e *emitter) piece(span *loop.Span) {
	rest := e.local(i64)
	e.int(span.Total)
	e.get(e.outer[span.Dimension])
	e.int(span.Size)
	e.op(opI64Mul, opI64Sub)
	e.set(rest)
	e.get(rest)
	e.int(span.Size)
	e.get(rest)
	e.int(span.Size)
	e.op(opI64LtS, opSelect)
	e.set(e.span)
}

func (e *emitter) stage(stage *loop.Stage) {
	if len(stage.Inner) == 0 {
		e.body(stage)
		return
	}
	e.sums = map[loop.Value]*accumulator{}
	for number := range stage.Body {
		if in := &stage.Body[number]; in.Op == loop.OpReduce {
			e.startReduction(stage.First+loop.Value(number), in)
		}
	}
	e.position = e.local(i64)
	e.i64Const(0)
	e.set(e.position)
	e.nest(stage, 0)
	for number := range stage.Body {
		value := stage.First + loop.Value(number)
		if sum := e.sums[value]; sum != nil {
			e.values[value] = sum.value
			if sum.in.Reduction.Positional() {
				e.values[value] = sum.position
			}
		}
	}
}

func (e *emitter) nest(stage *loop.Stage, level int) {
	if level == len(stage.Inner) {
		e.body(stage)
		e.increment(e.position)
		return
	}
	index := e.local(i64)
	e.i64Const(0)
	e.set(index)
	e.index = append(e.index, index)
	e.loop(index, func() { e.int(stage.Inner[level]) }, func() { e.nest(stage, level+1) })
	e.index = e.index[:len(e.index)-1]
}

func (e *emitter) startReduction(value loop.Value, in *loop.Instruction) {
	typ := e.kernel.Instruction(in.Args[0]).Type
	sum := &accumulator{in: in, typ: typ, value: e.local(wasmType(typ)), position: e.local(i64), started: e.local(i32)}
	e.sums[value] = sum
	e.constant(typ, loop.Identity(in.Reduction, typ))
	e.set(sum.value)
	e.i64Const(0)
	e.set(sum.position)
	e.i32Const(0)
	e.set(sum.started)
}

func (e *emitter) body(stage *loop.Stage) {
	for number := range stage.Body {
		e.instruction(stage.First+loop.Value(number), &stage.Body[number])
	}
}

func (e *emitter) instruction(value loop.Value, in *loop.Instruction) {
	switch in.Op {
	case loop.OpStore:
		e.store(in)
		return
	case loop.OpReduce:
		e.accumulate(e.sums[value])
		return
	case loop.OpConstant:
		e.constant(in.Type, in.Bits)
	case loop.OpArgument:
		e.get(len(e.kernel.Buffers) + in.Index)
		if in.Type == loop.F64 {
			e.op(0xbf) // f64.reinterpret_i64
		}
	case loop.OpIndex:
		e.get(e.index[in.Index])
	case loop.OpLoad:
		e.load(in)
	default:
		e.compute(in)
	}
	e.values[value] = e.local(wasmType(in.Type))
	e.set(e.values[value])
}

// address pushes the byte address of an access.
func (e *emitter) address(access *loop.Access) {
	e.int(access.Offset)
	for dimension, stride := range access.Strides {
		if stride.Is(0) {
			continue
		}
		e.get(e.index[dimension])
		e.int(stride)
		e.op(opI64Mul, opI64Add)
	}
	e.i64Const(int64(e.kernel.Buffers[access.Buffer].Type.Bytes()))
	e.op(opI64Mul, opI32WrapI64)
	e.get(access.Buffer)
	e.op(opI32Add)
}

// memoryAccess returns the opcodes that load and store an element, which sign- or zero-extend narrow integers as their values are.
func memoryAccess(typ loop.Type) (load, store byte) {
	switch typ {
	case loop.Bool, loop.U8:
		return 0x2d, 0x3a
	case loop.I8:
		return 0x2c, 0x3a
	case loop.I16:
		return 0x2e, 0x3b
	case loop.U16, loop.F16, loop.BF16:
		return 0x2f, 0x3b
	case loop.I32, loop.U32:
		return 0x28, 0x36
	case loop.F32:
		return 0x2a, 0x38
	case loop.F64:
		return 0x2b, 0x39
	}
	return 0x29, 0x37
}

func (e *emitter) load(in *loop.Instruction) {
	load, _ := memoryAccess(in.Type)
	read := func() {
		e.checkIndices(in)
		e.address(in.Access)
		e.indices(in)
		e.op(load, 0, 0)
		e.fromMemory(in.Type)
	}
	if len(in.Args) == 0 {
		read()
		return
	}
	e.get(e.values[in.Args[0]])
	e.op(opIf, byte(wasmType(in.Type)))
	read()
	e.op(0x05) // else
	e.constant(in.Type, 0)
	e.op(opEnd)
}

// checkIndices traps where a computed index is out of range.
func (e *emitter) checkIndices(in *loop.Instruction) {
	for number, indirect := range in.Access.Indirect {
		e.get(e.values[in.Args[1+number]])
		e.int(indirect.Size)
		e.op(opI64GeU, opIf, emptyBlock, opUnreachable, opEnd)
	}
}

// indices moves the byte address on the stack by what computed indices add.
func (e *emitter) indices(in *loop.Instruction) {
	for number, indirect := range in.Access.Indirect {
		e.get(e.values[in.Args[1+number]])
		e.int(indirect.Stride)
		e.i64Const(int64(in.Type.Bytes()))
		e.op(opI64Mul, opI64Mul, opI32WrapI64, opI32Add)
	}
}

// fromMemory turns an element on the stack into a value.
func (e *emitter) fromMemory(typ loop.Type) {
	switch typ {
	case loop.Bool:
		e.i32Const(0)
		e.op(opI32Ne)
	case loop.F16:
		e.call(halfToFloat)
	case loop.BF16:
		e.i32Const(16)
		e.op(0x74, 0xbe) // i32.shl, f32.reinterpret_i32
	}
}

func (e *emitter) store(in *loop.Instruction) {
	_, store := memoryAccess(in.Type)
	if len(in.Args) == 2 {
		e.get(e.values[in.Args[1]])
		e.op(opIf, emptyBlock)
	}
	e.address(in.Access)
	e.get(e.values[in.Args[0]])
	switch in.Type {
	case loop.F16:
		e.call(floatToHalf)
	case loop.BF16:
		e.call(floatToBrain)
	}
	e.op(store, 0, 0)
	if len(in.Args) == 2 {
		e.op(opEnd)
	}
}

// accumulate combines a value into a reduction.
func (e *emitter) accumulate(sum *accumulator) {
	value := e.values[sum.in.Args[0]]
	if sum.in.Reduction.Positional() {
		e.better(sum, value)
		e.op(opIf, emptyBlock)
		e.get(value)
		e.set(sum.value)
		e.get(e.position)
		e.set(sum.position)
		e.i32Const(1)
		e.set(sum.started)
		e.op(opEnd)
		return
	}
	op, _ := sum.in.Reduction.Combine()
	e.operation(op, sum.typ, []int{sum.value, value})
	e.set(sum.value)
}

// better pushes whether a value replaces the one held: when it is the first, strictly greater (or less), or the first NaN.
func (e *emitter) better(sum *accumulator, value int) {
	order := loop.OpGreater
	if sum.in.Reduction == loop.ArgMinimum {
		order = loop.OpLess
	}
	e.get(sum.started)
	e.op(opI32Eqz)
	e.operation(order, sum.typ, []int{value, sum.value})
	if sum.typ.Is(loop.ClassFloat) {
		e.operation(loop.OpNotEqual, sum.typ, []int{value, value})
		e.operation(loop.OpEqual, sum.typ, []int{sum.value, sum.value})
		e.op(opI32And, opI32Or)
	}
	e.op(opI32Or)
}
