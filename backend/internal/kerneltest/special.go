package kerneltest

import (
	"fmt"
	"math/rand/v2"

	"fusee/backend/interpret"
	"fusee/backend/loop"
)

// Special returns kernels for what the other cases leave out: selects, bit casts, positions, scalar arguments, conditions on loads and stores, and several
// stages.
func Special() []Case {
	return []Case{selection(), selectionAcrossCalls(loop.F32), selectionAcrossCalls(loop.F64), conditional(), bitcast(loop.F32, loop.I32), bitcast(loop.I64, loop.F64), softmax(5, 33), softmax(3, 70), softmax(2, 1), scalars(), gather(true), gather(false), sideBySide(false), sideBySide(true), pieces(1, 5, 23, 4), pieces(70, 3, 40, 1), pieces(1, 4, 1000, 1), Uniform(loop.F32), Uniform(loop.F64)}
}

func fixed() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func selection() Case {
	const size = 45
	b := loop.NewBuilder("kernel", loop.Static(size))
	one, zero := loop.Static(1), loop.Static(0)
	c, x, out := b.Buffer("c", loop.Bool, loop.Read), b.Buffer("x", loop.BF16, loop.Read), b.Buffer("out", loop.BF16, loop.Write)
	b.Stage()
	constant := b.Constant(loop.BF16, loop.FloatBits(1.5))
	b.Store(b.Do(loop.OpSelect, loop.BF16, b.Load(c, zero, one), b.Load(x, zero, one), constant), out, zero, one)
	buffers := [][]byte{Fill(loop.Bool, size, fixed()), Fill(loop.BF16, size, fixed()), make([]byte, 2*size)}
	return Case{Name: "select", Kernel: b.Kernel, Buffers: buffers, Work: size}
}

// selectionAcrossCalls is softplus, whose condition is computed before functions are called.
func selectionAcrossCalls(typ loop.Type) Case {
	const size = 45
	b := loop.NewBuilder("kernel", loop.Static(size))
	one, zero := loop.Static(1), loop.Static(0)
	x, out := b.Buffer("x", typ, loop.Read), b.Buffer("out", typ, loop.Write)
	b.Stage()
	value := b.Load(x, zero, one)
	large := b.Do(loop.OpGreater, loop.Bool, value, b.Constant(typ, loop.FloatBits(20)))
	b.Store(b.Do(loop.OpSelect, typ, large, value, b.Do(loop.OpLog1P, typ, b.Do(loop.OpExp, typ, value))), out, zero, one)
	buffers := [][]byte{Fill(typ, size, fixed()), make([]byte, size*typ.Bytes())}
	return Case{Name: "softplus", Kernel: b.Kernel, Buffers: buffers, Work: size, Tolerance: 4}
}

// conditional reads where the index is odd and stores where it is below 30.
func conditional() Case {
	const size = 45
	b := loop.NewBuilder("kernel", loop.Static(size))
	one, zero := loop.Static(1), loop.Static(0)
	x, out := b.Buffer("x", loop.F32, loop.Read), b.Buffer("out", loop.F32, loop.Write)
	b.Stage()
	index := b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64})
	bit := b.Do(loop.OpAnd, loop.I64, index, b.Constant(loop.I64, 1))
	odd := b.Do(loop.OpEqual, loop.Bool, bit, b.Constant(loop.I64, 1))
	value := b.Load(x, zero, one)
	load := b.Kernel.Instruction(value)
	load.Args = []loop.Value{odd}
	low := b.Do(loop.OpLess, loop.Bool, index, b.Constant(loop.I64, 30))
	b.Store(value, out, zero, one)
	store := &b.Kernel.Stages[0].Body[len(b.Kernel.Stages[0].Body)-1]
	store.Args = append(store.Args, low)
	buffers := [][]byte{Fill(loop.F32, size, fixed()), make([]byte, 4*size)}
	return Case{Name: "conditional", Kernel: b.Kernel, Buffers: buffers, Work: size}
}

func bitcast(from, to loop.Type) Case {
	const size = 45
	b := loop.NewBuilder("kernel", loop.Static(size))
	in, out := b.Buffer("in", from, loop.Read), b.Buffer("out", to, loop.Write)
	b.Stage()
	b.Store(b.Do(loop.OpBitcast, to, b.Load(in, loop.Static(0), loop.Static(1))), out, loop.Static(0), loop.Static(1))
	buffers := [][]byte{Fill(from, size, fixed()), make([]byte, size*to.Bytes())}
	if from == loop.I64 { // keep clear of NaNs, whose payloads machines may change
		calmIntegers(buffers[0])
	}
	return Case{Name: "bitcast " + from.String(), Kernel: b.Kernel, Buffers: buffers, Work: size}
}

func calmIntegers(data []byte) {
	for index := 7; index < len(data); index += 8 {
		data[index] &= 0x3f
	}
}

// softmax is three stages over rows, with lanes along the rows.
func softmax(rows, columns int64) Case {
	b := loop.NewBuilder("kernel", loop.Static(rows))
	x, out := b.Buffer("x", loop.F32, loop.Read), b.Buffer("out", loop.F32, loop.Write)
	load := func() loop.Value { return b.Load(x, loop.Static(0), loop.Static(columns), loop.Static(1)) }
	b.Stage(loop.Static(columns))
	greatest := b.Reduce(loop.Maximum, loop.F32, load())
	b.Stage()
	twice := b.Do(loop.OpMultiply, loop.F32, greatest, b.Constant(loop.F32, loop.FloatBits(1)))
	b.Stage(loop.Static(columns))
	power := b.Do(loop.OpExp, loop.F32, b.Do(loop.OpSubtract, loop.F32, load(), twice))
	sum := b.Reduce(loop.Sum, loop.F64, b.Cast(loop.F64, power))
	b.Stage(loop.Static(columns))
	power = b.Do(loop.OpExp, loop.F32, b.Do(loop.OpSubtract, loop.F32, load(), twice))
	b.Store(b.Do(loop.OpDivide, loop.F32, power, b.Cast(loop.F32, sum)), out, loop.Static(0), loop.Static(columns), loop.Static(1))
	data := Fill(loop.F32, int(rows*columns), fixed())
	calm(loop.F32, data)
	return Case{Name: "softmax", Kernel: b.Kernel, Buffers: [][]byte{data, make([]byte, 4*rows*columns)}, Work: rows, Tolerance: 2}
}

// gather reads rows of a table where a condition holds: at one index for each row, or for each element.
func gather(byRow bool) Case {
	const rows, columns, entries = 7, 21, 5
	b := loop.NewBuilder("kernel", loop.Statics(rows, columns)...)
	dense := loop.Statics(columns, 1)
	at := dense
	if byRow {
		at = loop.Statics(1, 0)
	}
	table, index := b.Buffer("table", loop.F32, loop.Read), b.Buffer("index", loop.I64, loop.Read)
	asked, out := b.Buffer("asked", loop.Bool, loop.Read), b.Buffer("out", loop.F32, loop.Write)
	b.Stage()
	indirect := []loop.Indirect{{Stride: loop.Static(columns), Size: loop.Static(entries)}}
	place := b.Load(index, loop.Static(0), at...)
	value := b.Gather(table, loop.Static(0), loop.Statics(0, 1), b.Load(asked, loop.Static(0), at...), []loop.Value{place}, indirect)
	b.Store(value, out, loop.Static(0), dense...)
	random := fixed()
	buffers := [][]byte{Fill(loop.F32, entries*columns, random), make([]byte, 8*rows*columns), Fill(loop.Bool, rows*columns, random), make([]byte, 4*rows*columns)}
	indices := &interpret.Bytes{Type: loop.I64, Data: buffers[1]}
	for element := range int64(rows * columns) {
		indices.Store(element, loop.IntBits(random.Int64N(entries)))
		if buffers[2][element] == 0 {
			indices.Store(element, loop.IntBits(-100)) // never read
		}
	}
	return Case{Name: fmt.Sprintf("gather by row %v", byRow), Kernel: b.Kernel, Buffers: buffers, Work: rows * columns}
}

// sideBySide reads rows of two matrices as one row, the first one backwards, and a number between them; or sums that row, and finds its greatest element.
func sideBySide(reduces bool) Case {
	const rows, left, gap, right = 3, 41, 2, 37
	const columns = left + gap + right
	b := loop.NewBuilder("kernel", loop.Static(rows))
	strides := loop.Statics(columns, 1)
	if !reduces {
		b.Kernel.Outer = loop.Statics(rows, columns)
	}
	x, y, out := b.Buffer("x", loop.F32, loop.Read), b.Buffer("y", loop.F32, loop.Read), b.Buffer("out", loop.F32, loop.Write)
	b.Stage()
	if reduces {
		b.Kernel.Stages[0].Inner = loop.Statics(columns)
	}
	index := b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64, Index: 1})
	test := func(op loop.Op, bound int64) loop.Value {
		return b.Do(op, loop.Bool, index, b.Constant(loop.I64, loop.IntBits(bound)))
	}
	first, last := test(loop.OpLess, left), test(loop.OpGreaterEqual, left+gap)
	inside := b.Do(loop.OpAnd, loop.Bool, last, test(loop.OpLess, columns))
	one := b.Gather(x, loop.Static(left-1), loop.Statics(left, -1), first, nil, nil)
	other := b.Gather(y, loop.Static(-left-gap), loop.Statics(right, 1), inside, nil, nil)
	value := b.Do(loop.OpSelect, loop.F32, first, b.Do(loop.OpNegate, loop.F32, one), b.Do(loop.OpSelect, loop.F32, inside, other, b.Constant(loop.F32, loop.FloatBits(2.5))))
	random := fixed()
	buffers := [][]byte{Fill(loop.F32, rows*left, random), Fill(loop.F32, rows*right, random), make([]byte, 4*rows*columns)}
	if !reduces {
		b.Store(value, out, loop.Static(0), strides...)
		return Case{Name: "side by side", Kernel: b.Kernel, Buffers: buffers, Work: rows * columns}
	}
	calm(loop.F32, buffers[0])
	calm(loop.F32, buffers[1])
	sum := b.Reduce(loop.Sum, loop.F64, b.Cast(loop.F64, value))
	place := b.Reduce(loop.ArgMaximum, loop.I64, value)
	b.Stage()
	b.Store(b.Do(loop.OpAdd, loop.F32, b.Cast(loop.F32, sum), b.Cast(loop.F32, place)), out, loop.Static(0), loop.Static(1))
	return Case{Name: "side by side, summed", Kernel: b.Kernel, Buffers: buffers, Work: rows, Tolerance: 64}
}

// pieces sums a matrix over its rows in parts, of which the last is short and, with five parts of 7, another one empty.
func pieces(columns, parts, rows, wide int64) Case {
	size := (rows + parts - 1) / parts
	if rows == 23 {
		size = 7
	}
	b := loop.NewBuilder("kernel", loop.Statics(parts, columns)...)
	in, out := b.Buffer("in", loop.F32, loop.Read), b.Buffer("out", loop.F64, loop.Write)
	total := loop.Argument(b.Scalar())
	b.Kernel.Span = &loop.Span{Size: loop.Static(size), Total: total}
	b.Stage(loop.Argument(1), loop.Static(wide))
	value := b.Load(in, loop.Static(0), loop.Statics(size*columns*wide, 1, columns*wide, columns)...)
	sum := b.Reduce(loop.Sum, loop.F64, b.Cast(loop.F64, value))
	b.Stage()
	b.Store(sum, out, loop.Static(0), loop.Statics(1, parts)...)
	data := Fill(loop.F32, int(rows*columns*wide), fixed())
	calm(loop.F32, data)
	return Case{
		Name: fmt.Sprintf("%d pieces of %dx%dx%d", parts, rows, wide, columns), Kernel: b.Kernel, Scalars: []int64{rows}, Work: parts * columns,
		Buffers: [][]byte{data, make([]byte, 8*parts*columns)}, Tolerance: 64,
	}
}

// InParts returns a case of a kernel in parts of several sizes, one of them empty, that adds one vector to another in place.
func InParts() Case {
	b := loop.NewBuilder("kernel", loop.Static(5))
	one, zero := loop.Static(1), loop.Static(0)
	x, y := b.Buffer("x", loop.F32, loop.Read), b.Buffer("y", loop.F32, loop.ReadWrite)
	b.Stage()
	b.Store(b.Do(loop.OpAdd, loop.F32, b.Load(x, zero, one), b.Load(y, zero, one)), y, zero, one)
	b.Kernel.Parts = []int64{5, 0, 70, 1, 33}
	c := Case{Name: "in parts", Kernel: b.Kernel}
	for _, points := range b.Kernel.Parts {
		c.Buffers = append(c.Buffers, Fill(loop.F32, int(points), fixed()), Fill(loop.F32, int(points), fixed()))
		c.Work += points
	}
	return c
}

// OutOfRange returns a case that fails: one of its indices is one too large.
func OutOfRange() Case {
	c := gather(false)
	c.Name = "index out of range"
	indices := &interpret.Bytes{Type: loop.I64, Data: c.Buffers[1]}
	indices.Store(140, loop.IntBits(5))
	c.Buffers[2][140] = 1
	return c
}

// scalars multiplies by numbers passed at launch.
func scalars() Case {
	const size = 19
	b := loop.NewBuilder("kernel", loop.Argument(0))
	b.Scalar()
	b.Scalar()
	b.Scalar()
	in, out := b.Buffer("in", loop.F64, loop.Read), b.Buffer("out", loop.F64, loop.Write)
	b.Stage()
	whole := b.Append(loop.Instruction{Op: loop.OpArgument, Type: loop.I64, Index: 1})
	real := b.Append(loop.Instruction{Op: loop.OpArgument, Type: loop.F64, Index: 2})
	value := b.Do(loop.OpMultiply, loop.F64, b.Load(in, loop.Static(0), loop.Static(1)), real)
	b.Store(b.Do(loop.OpAdd, loop.F64, value, b.Cast(loop.F64, whole)), out, loop.Static(0), loop.Static(1))
	buffers := [][]byte{Fill(loop.F64, size, fixed()), make([]byte, 8*size)}
	return Case{Name: "scalars", Kernel: b.Kernel, Buffers: buffers, Scalars: []int64{size, -3, int64(loop.FloatBits(0.25))}, Work: size}
}

// All returns every case. Tests run them whole and in parts of no point, one, and fewer than a register holds.
func All() []Case {
	cases := append(Elementwise(67), Elementwise(1)[:20]...)
	cases = append(cases, Elementwise(0)[:20]...)
	cases = append(cases, Casts(67)...)
	cases = append(cases, Reductions()...)
	cases = append(cases, Layouts()...)
	return append(cases, Special()...)
}

// Uniform draws random numbers for keys and counters in memory.
func Uniform(typ loop.Type) Case {
	const size = 45
	b := loop.NewBuilder("kernel", loop.Static(size))
	one, zero := loop.Static(1), loop.Static(0)
	keys, counters, out := b.Buffer("keys", loop.U64, loop.Read), b.Buffer("counters", loop.U64, loop.Read), b.Buffer("out", typ, loop.Write)
	b.Stage()
	p := loop.Philox{Builder: b}
	counter := b.Load(counters, zero, one)
	sequence, chosen := p.Divide(p.Convert(loop.U64, b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64})), 2)
	words := p.Words(b.Load(keys, zero, one), counter, sequence)
	number := p.Single
	if typ == loop.F64 {
		number = p.Double
	}
	b.Store(number(words, chosen), out, zero, one)
	buffers := [][]byte{Fill(loop.U64, size, fixed()), Fill(loop.U64, size, rand.New(rand.NewPCG(3, 4))), make([]byte, size*typ.Bytes())}
	return Case{Name: "uniform " + typ.String(), Kernel: b.Kernel, Buffers: buffers, Work: size}
}
