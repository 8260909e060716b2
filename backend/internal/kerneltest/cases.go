// Package kerneltest generates loop kernels with inputs for tests that compare the emitters and the interpreter.
package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"fusee/backend/interpret"
	"fusee/backend/loop"
	"fusee/internal/slice"
)

// Case is a kernel with the contents of its buffers, as bytes.
type Case struct {
	Name    string
	Kernel  *loop.Kernel
	Buffers [][]byte
	Scalars []int64
	Work    int64
	// Tolerance is the number of units in the last place of each output by which implementations of the kernel's functions may differ.
	Tolerance float64
	failed    bool
}

// specials are values at which semantics differ.
func specials() []float64 {
	return []float64{
		0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -7, 100, -100.75, 1e-3, 1e-30, -1e30, math.Inf(1), math.Inf(-1), math.NaN(),
		math.MaxFloat32, 127.5, 128, 255, 256, 32768, 65504, 65520, 2147483648, -2147483649, 1e10, 6.1e-5, 5.9e-8, 1e-40,
	}
}

// Fill returns the bytes of count elements: special values first, then random ones.
func Fill(typ loop.Type, count int, random *rand.Rand) []byte {
	memory := &interpret.Bytes{Type: typ, Data: make([]byte, count*typ.Bytes())}
	special := specials()
	for index := range count {
		var value loop.Bits
		switch {
		case typ.Is(loop.ClassFloat | loop.ClassStorage):
			number := random.NormFloat64() * 4
			if random.IntN(8) == 0 {
				number = special[random.IntN(len(special))]
			}
			value = interpret.Cast(loop.F64, typ, loop.FloatBits(number), false)
		case typ == loop.Bool:
			value = loop.BoolBits(random.IntN(2) == 1)
		default:
			value = interpret.Cast(loop.I64, typ, loop.IntBits(randomInteger(random)), false)
		}
		memory.Store(int64(index), value)
	}
	return memory.Data
}

func randomInteger(random *rand.Rand) int64 {
	switch random.IntN(4) {
	case 0:
		return int64(random.Uint64())
	case 1:
		return []int64{0, 1, -1, math.MinInt64, math.MaxInt64, math.MinInt32, -128, 127}[random.IntN(8)]
	}
	return int64(random.IntN(41)) - 20
}

// Types returns the types that operations with the given domain take.
func Types(domain loop.Class) []loop.Type {
	var result []loop.Type
	for typ := loop.Bool; typ <= loop.F64; typ++ {
		if typ.Is(domain) {
			result = append(result, typ)
		}
	}
	return result
}

// transcendental operations are computed by different libraries.
func transcendental(op loop.Op) bool {
	return op >= loop.OpPower && op <= loop.OpLogGamma && op != loop.OpNextAfter
}

// Elementwise returns a case for every elementwise operation and type.
func Elementwise(size int64) []Case {
	return slice.FlatMap(slice.Filter(loop.Ops(), loop.Op.Elementwise), func(op loop.Op) []Case {
		return slice.Map(Types(op.Domain()), func(typ loop.Type) Case { return elementwise(op, typ, size) })
	})
}

func elementwise(op loop.Op, typ loop.Type, size int64) Case {
	random := rand.New(rand.NewPCG(uint64(op), uint64(typ)))
	b := loop.NewBuilder("kernel", loop.Static(size))
	b.Stage()
	var buffers [][]byte
	var args []loop.Value
	for number := range op.Arity() {
		buffer := b.Buffer(fmt.Sprintf("in%d", number), typ, loop.Read)
		data := Fill(typ, int(size), random)
		args = append(args, b.Load(buffer, loop.Static(0), loop.Static(1)))
		if number == 1 && divides(op) && typ.Is(loop.ClassInteger) {
			avoidZero(typ, data)
		}
		buffers = append(buffers, data)
	}
	result := typ
	if op.Predicate() {
		result = loop.Bool
	}
	out := b.Buffer("out", result, loop.Write)
	b.Store(b.Do(op, result, args...), out, loop.Static(0), loop.Static(1))
	buffers = append(buffers, make([]byte, size*int64(result.Bytes())))
	c := Case{Name: fmt.Sprintf("%s %s %d", op, typ, size), Kernel: b.Kernel, Buffers: buffers, Work: size}
	switch {
	case (op == loop.OpPower || op == loop.OpLogGamma) && typ == loop.F64:
		c.Tolerance = 64 // Go's own are this far off
	case transcendental(op) && typ == loop.F64:
		c.Tolerance = 8
	case transcendental(op) || op == loop.OpModulo || op == loop.OpReciprocalSquareRoot:
		c.Tolerance = 1
	}
	return c
}

func divides(op loop.Op) bool {
	return op == loop.OpDivideFloor || op == loop.OpDivideTruncate || op == loop.OpModulo || op == loop.OpRemainder
}

func avoidZero(typ loop.Type, data []byte) {
	memory := &interpret.Bytes{Type: typ, Data: data}
	for index := range int64(len(data) / typ.Bytes()) {
		if memory.Load(index) == 0 {
			memory.Store(index, 1)
		}
	}
}

// Casts returns a case for every pair of types.
func Casts(size int64) []Case {
	return slice.FlatMap(Types(loop.ClassAny), func(from loop.Type) []Case {
		return slice.Map(Types(loop.ClassAny), func(to loop.Type) Case { return cast(from, to, size) })
	})
}

func cast(from, to loop.Type, size int64) Case {
	random := rand.New(rand.NewPCG(uint64(from), uint64(to)))
	b := loop.NewBuilder("kernel", loop.Static(size))
	in, out := b.Buffer("in", from, loop.Read), b.Buffer("out", to, loop.Write)
	b.Stage()
	b.Store(b.Cast(to, b.Load(in, loop.Static(0), loop.Static(1))), out, loop.Static(0), loop.Static(1))
	buffers := [][]byte{Fill(from, int(size), random), make([]byte, size*int64(to.Bytes()))}
	return Case{Name: fmt.Sprintf("cast %s to %s %d", from, to, size), Kernel: b.Kernel, Buffers: buffers, Work: size}
}

// Reductions returns a case for every reduction and type over rows, columns and middle dimensions of awkward sizes.
func Reductions() []Case {
	var cases []Case
	for reduction := loop.Sum; reduction <= loop.ArgMinimum; reduction++ {
		for _, typ := range Types(reducible(reduction)) {
			for _, shape := range [][3]int64{{3, 131, 1}, {2, 5, 11}, {0, 5, 3}} {
				cases = append(cases, reduce(reduction, typ, shape))
			}
		}
	}
	return cases
}

func reducible(reduction loop.Reduction) loop.Class {
	if reduction == loop.Any || reduction == loop.All {
		return loop.ClassBool
	}
	return loop.ClassNumber
}

// reduce combines along the middle of three dimensions.
func reduce(reduction loop.Reduction, typ loop.Type, shape [3]int64) Case {
	random := rand.New(rand.NewPCG(uint64(reduction), uint64(typ)))
	b := loop.NewBuilder("kernel", loop.Static(shape[0]), loop.Static(shape[2]))
	result := typ
	if reduction.Positional() {
		result = loop.I64
	}
	in, out := b.Buffer("in", typ, loop.Read), b.Buffer("out", result, loop.Write)
	b.Stage(loop.Static(shape[1]))
	value := b.Load(in, loop.Static(0), loop.Static(shape[1]*shape[2]), loop.Static(1), loop.Static(shape[2]))
	total := b.Reduce(reduction, result, value)
	b.Stage()
	b.Store(total, out, loop.Static(0), loop.Static(shape[2]), loop.Static(1))
	data := Fill(typ, int(shape[0]*shape[1]*shape[2]), random)
	c := Case{
		Name: fmt.Sprintf("%s %s %v", reduction, typ, shape), Kernel: b.Kernel, Work: shape[0] * shape[2],
		Buffers: [][]byte{data, make([]byte, shape[0]*shape[2]*int64(result.Bytes()))},
	}
	if typ.Is(loop.ClassFloat) && (reduction == loop.Sum || reduction == loop.Product) {
		calm(typ, data)
		c.Tolerance = 1 << 14 // the order of combination is the emitter's choice
	}
	return c
}

// calm makes values moderate, so that sums in different orders can be compared.
func calm(typ loop.Type, data []byte) {
	memory := &interpret.Bytes{Type: typ, Data: data}
	for index := range int64(len(data) / typ.Bytes()) {
		value := memory.Load(index).Float()
		if !(math.Abs(value) < 1e3) || math.Abs(value) < 1e-3 {
			value = 1.25
		}
		memory.Store(index, loop.FloatBits(math.Abs(value)/4+0.5))
	}
}

// Layouts returns copies of a matrix under strides: transposed, broadcast, with gaps, and with sizes passed at launch.
func Layouts() []Case {
	var cases []Case
	for _, typ := range []loop.Type{loop.F32, loop.F64, loop.BF16, loop.F16, loop.Bool, loop.I8, loop.I64} {
		for _, strides := range [][2]int64{{13, 1}, {1, 7}, {0, 1}, {1, 0}, {0, 0}, {26, 2}, {3, 5}} {
			cases = append(cases, layout(typ, 7, 13, strides, false), layout(typ, 7, 13, strides, true))
		}
		cases = append(cases, layout(typ, 7, 0, [2]int64{1, 1}, false), layout(typ, 0, 7, [2]int64{1, 1}, true), layout(typ, 1, 1, [2]int64{1, 1}, false))
	}
	return cases
}

func layout(typ loop.Type, rows, columns int64, strides [2]int64, dynamic bool) Case {
	random := rand.New(rand.NewPCG(uint64(rows), uint64(strides[0])))
	b := loop.NewBuilder("kernel")
	var scalars []int64
	number := func(value int64) loop.Int {
		if !dynamic {
			return loop.Static(value)
		}
		scalars = append(scalars, value)
		return loop.Argument(b.Scalar())
	}
	b.Kernel.Outer = []loop.Int{number(rows), number(columns)}
	in, out := b.Buffer("in", typ, loop.Read), b.Buffer("out", typ, loop.Write)
	b.Stage()
	value := b.Load(in, loop.Static(3), number(strides[0]), number(strides[1]))
	b.Store(value, out, loop.Static(0), number(columns), loop.Static(1))
	span := 4 + max(rows-1, 0)*strides[0] + max(columns-1, 0)*strides[1]
	return Case{
		Name: fmt.Sprintf("layout %s %dx%d %v dynamic %v", typ, rows, columns, strides, dynamic), Kernel: b.Kernel, Scalars: scalars, Work: rows * columns,
		Buffers: [][]byte{Fill(typ, int(span), random), make([]byte, rows*columns*int64(typ.Bytes()))},
	}
}
