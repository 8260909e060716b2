package cuda_test

import (
	"encoding/binary"
	"math"

	"fusee/backend/loop"
)

// The evaluator runs a kernel point by point in Go: what the printed code must agree with.

// number is a value of any type: floats in real, all others in whole (sign-extended, or 0 and 1).
type number struct {
	real  float64
	whole int64
}

type evaluator struct {
	kernel  *loop.Kernel
	buffers [][]byte
	scalars []int64
	values  map[loop.Value]number
	at      []int64
}

// evaluate runs the kernel on buffers in place.
func evaluate(kernel *loop.Kernel, buffers [][]byte, scalars []int64) {
	e := &evaluator{kernel: kernel, buffers: buffers, scalars: scalars, values: map[loop.Value]number{}}
	e.each(kernel.Outer, nil, func(outer []int64) {
		for s := range kernel.Stages {
			e.stage(&kernel.Stages[s], outer)
		}
	})
}

func (e *evaluator) stage(stage *loop.Stage, outer []int64) {
	for i, in := range stage.Body {
		if in.Op == loop.OpReduce {
			e.values[stage.First+loop.Value(i)] = initial(in.Reduction, e.kernel.Instruction(in.Args[0]).Type)
		}
	}
	place := int64(0)
	best := map[loop.Value]number{}
	e.each(stage.Inner, outer, func(at []int64) {
		e.at = at
		for i := range stage.Body {
			e.instruction(&stage.Body[i], stage.First+loop.Value(i), place, best)
		}
		place++
	})
}

// each visits all points of sizes in row-major order, with prefix before each.
func (e *evaluator) each(sizes []loop.Int, prefix []int64, visit func([]int64)) {
	if len(sizes) == 0 {
		visit(append([]int64{}, prefix...))
		return
	}
	for i := range e.number(sizes[0]) {
		e.each(sizes[1:], append(append([]int64{}, prefix...), i), visit)
	}
}

func (e *evaluator) number(value loop.Int) int64 {
	if argument, ok := value.Argument(); ok {
		return e.scalars[argument]
	}
	static, _ := value.Static()
	return static
}

func (e *evaluator) element(access *loop.Access) int64 {
	at := e.number(access.Offset)
	for d, stride := range access.Strides {
		at += e.at[d] * e.number(stride)
	}
	return at
}

func (e *evaluator) instruction(in *loop.Instruction, value loop.Value, place int64, best map[loop.Value]number) {
	args := make([]number, len(in.Args))
	for i, arg := range in.Args {
		args[i] = e.values[arg]
	}
	switch in.Op {
	case loop.OpStore:
		if len(args) == 1 || args[1].whole != 0 {
			write(e.buffers[in.Access.Buffer], in.Type, e.element(in.Access), args[0])
		}
	case loop.OpReduce:
		e.reduce(in, value, args[0], place, best)
	default:
		e.values[value] = e.compute(in, args)
	}
}

func (e *evaluator) compute(in *loop.Instruction, args []number) number {
	switch in.Op {
	case loop.OpConstant:
		if in.Type.Is(loop.ClassFloat | loop.ClassStorage) {
			return number{real: in.Bits.Float()}
		}
		return number{whole: in.Bits.Int()}
	case loop.OpArgument:
		bits := e.scalars[in.Index]
		return number{math.Float64frombits(uint64(bits)), bits}
	case loop.OpIndex:
		return number{whole: e.at[in.Index]}
	case loop.OpLoad:
		if len(args) == 1 && args[0].whole == 0 {
			return number{}
		}
		return read(e.buffers[in.Access.Buffer], in.Type, e.element(in.Access))
	case loop.OpCast:
		return cast(args[0], e.kernel.Instruction(in.Args[0]).Type, in.Type)
	case loop.OpSelect:
		return args[2-args[0].whole]
	}
	return apply(in.Op, e.kernel.Instruction(in.Args[0]).Type, args)
}

func (e *evaluator) reduce(in *loop.Instruction, value loop.Value, arg number, place int64, best map[loop.Value]number) {
	t := e.kernel.Instruction(in.Args[0]).Type
	if in.Reduction.Positional() {
		if place == 0 || better(in.Reduction, t, arg, best[value]) {
			best[value] = arg
			e.values[value] = number{whole: place}
		}
		return
	}
	op := map[loop.Reduction]loop.Op{
		loop.Sum: loop.OpAdd, loop.Product: loop.OpMultiply, loop.Maximum: loop.OpMaximum, loop.Minimum: loop.OpMinimum,
		loop.Any: loop.OpOr, loop.All: loop.OpAnd}[in.Reduction]
	if place == 0 {
		e.values[value] = arg
		return
	}
	if t.Is(loop.ClassFloat) { // not rounded at each step: the kernel's order differs
		e.values[value] = number{real: realOp(op, t, []number{e.values[value], arg})}
		return
	}
	e.values[value] = apply(op, t, []number{e.values[value], arg})
}

// initial is the result over no points.
func initial(reduction loop.Reduction, t loop.Type) number {
	switch reduction {
	case loop.Product:
		return number{1, 1}
	case loop.All:
		return number{whole: 1}
	}
	return number{}
}

func better(reduction loop.Reduction, t loop.Type, value, best number) bool {
	if t.Is(loop.ClassFloat) && (math.IsNaN(value.real) || math.IsNaN(best.real)) {
		return math.IsNaN(value.real) && !math.IsNaN(best.real)
	}
	if reduction == loop.ArgMinimum {
		value, best = best, value
	}
	return compare(t, value, best) > 0
}

// compare orders two numbers that are not NaN.
func compare(t loop.Type, a, b number) int {
	less, greater := a.whole < b.whole, a.whole > b.whole
	switch {
	case t.Is(loop.ClassFloat):
		less, greater = a.real < b.real, a.real > b.real
	case t == loop.U64:
		less, greater = uint64(a.whole) < uint64(b.whole), uint64(a.whole) > uint64(b.whole)
	}
	switch {
	case less:
		return -1
	case greater:
		return 1
	}
	return 0
}

// wrap narrows an integer to its type.
func wrap(t loop.Type, value int64) number {
	if shift := 64 - 8*t.Bytes(); t.Is(loop.ClassSigned) {
		return number{whole: value << shift >> shift}
	} else {
		return number{whole: int64(uint64(value) << shift >> shift)}
	}
}

func round(t loop.Type, value float64) number {
	switch t {
	case loop.F32:
		return number{real: float64(float32(value))}
	case loop.F16:
		return number{real: float64(loop.HalfFloat(loop.HalfBits(float32(value))))}
	case loop.BF16:
		return number{real: float64(loop.BrainFloat(loop.BrainBits(float32(value))))}
	}
	return number{real: value}
}

const fractional = loop.ClassFloat | loop.ClassStorage

func cast(value number, from, to loop.Type) number {
	switch {
	case to == loop.Bool && from.Is(fractional):
		return truth(value.real != 0)
	case to == loop.Bool:
		return truth(value.whole != 0)
	case to.Is(fractional) && from.Is(fractional):
		return round(to, value.real)
	case to.Is(fractional) && from == loop.U64 && to == loop.F64:
		return number{real: float64(uint64(value.whole))}
	case to.Is(fractional) && from == loop.U64:
		return round(to, float64(float32(uint64(value.whole))))
	case to == loop.F64:
		return number{real: float64(value.whole)}
	case to.Is(fractional):
		return round(to, float64(float32(value.whole)))
	case from.Is(fractional):
		return wrap(to, int64(value.real))
	}
	return wrap(to, value.whole)
}

func truth(value bool) number {
	if value {
		return number{whole: 1}
	}
	return number{}
}

func read(buffer []byte, t loop.Type, element int64) number {
	bytes := buffer[element*int64(t.Bytes()):]
	switch t {
	case loop.F64:
		return number{real: math.Float64frombits(binary.LittleEndian.Uint64(bytes))}
	case loop.F32:
		return number{real: float64(math.Float32frombits(binary.LittleEndian.Uint32(bytes)))}
	case loop.F16:
		return number{real: float64(loop.HalfFloat(binary.LittleEndian.Uint16(bytes)))}
	case loop.BF16:
		return number{real: float64(loop.BrainFloat(binary.LittleEndian.Uint16(bytes)))}
	}
	value := uint64(0)
	for i := range t.Bytes() {
		value |= uint64(bytes[i]) << (8 * i)
	}
	if t == loop.Bool {
		return truth(value != 0)
	}
	return wrap(t, int64(value))
}

func write(buffer []byte, t loop.Type, element int64, value number) {
	bits := uint64(value.whole)
	switch t {
	case loop.F64:
		bits = math.Float64bits(value.real)
	case loop.F32:
		bits = uint64(math.Float32bits(float32(value.real)))
	case loop.F16:
		bits = uint64(loop.HalfBits(float32(value.real)))
	case loop.BF16:
		bits = uint64(loop.BrainBits(float32(value.real)))
	}
	for i := range t.Bytes() {
		buffer[int(element)*t.Bytes()+i] = byte(bits >> (8 * i))
	}
}
