package cuda_test

import (
	"fmt"
	"slices"

	"fusee/backend/internal/kerneltest"
	"fusee/backend/loop"
)

// The kernels that the tests print, compile and run.

func allTypes() []loop.Type {
	return []loop.Type{loop.Bool, loop.U8, loop.U16, loop.U32, loop.U64, loop.I8, loop.I16, loop.I32, loop.I64,
		loop.F16, loop.BF16, loop.F32, loop.F64}
}

// corpus returns every kernel, by name.
func corpus() []*loop.Kernel {
	var kernels []*loop.Kernel
	for _, op := range loop.Ops() {
		if op.Elementwise() {
			kernels = append(kernels, elementwise(op))
		}
	}
	for _, op := range loop.Ops() {
		if op.HasShortForm() {
			kernels = append(kernels, shortForm(op))
		}
	}
	for _, from := range allTypes() {
		kernels = append(kernels, casts(from))
	}
	for reduction := loop.Sum; reduction <= loop.ArgMinimum; reduction++ {
		kernels = append(kernels, reductions(reduction))
	}
	kernels = append(kernels, pointwiseShapes()...)
	kernels = append(kernels, aheadShapes()...)
	return append(kernels, rowShapes()...)
}

// elementwise applies op in every type of its domain, over its own set of buffers for each.
func elementwise(op loop.Op) *loop.Kernel {
	b := loop.NewBuilder("op_"+op.String(), loop.Static(pointCount))
	b.Stage()
	for _, t := range allTypes() {
		if !t.Is(op.Domain()) {
			continue
		}
		var args []loop.Value
		for i := range op.Arity() {
			buffer := b.Buffer(fmt.Sprintf("%s_%c", t, 'a'+i), t, loop.Read)
			args = append(args, b.Load(buffer, loop.Int{}, loop.Static(1)))
		}
		result := t
		if op.Predicate() {
			result = loop.Bool
		}
		out := b.Buffer(t.String()+"_out", result, loop.Write)
		b.Store(b.Do(op, result, args...), out, loop.Int{}, loop.Static(1))
	}
	return b.Kernel
}

// shortForm applies the short form of op.
func shortForm(op loop.Op) *loop.Kernel {
	b := loop.NewBuilder("short_"+op.String(), loop.Static(pointCount))
	b.Stage()
	var args []loop.Value
	for i := range op.Arity() {
		args = append(args, b.Load(b.Buffer(string(rune('a'+i)), loop.F32, loop.Read), loop.Int{}, loop.Static(1)))
	}
	result := b.Append(loop.Instruction{Op: op, Type: loop.F32, Args: args, Short: true})
	b.Store(result, b.Buffer("out", loop.F32, loop.Write), loop.Int{}, loop.Static(1))
	return b.Kernel
}

const pointCount = 1003

// casts converts from one type to all.
func casts(from loop.Type) *loop.Kernel {
	b := loop.NewBuilder("cast_"+from.String(), loop.Static(pointCount))
	b.Stage()
	value := b.Load(b.Buffer("in", from, loop.Read), loop.Int{}, loop.Static(1))
	for _, to := range allTypes() {
		out := b.Buffer(to.String(), to, loop.Write)
		b.Store(b.Cast(to, value), out, loop.Int{}, loop.Static(1))
	}
	return b.Kernel
}

// reducible reports whether the reduction takes values of type t.
func reducible(reduction loop.Reduction, t loop.Type) bool {
	switch reduction {
	case loop.Any, loop.All:
		return t == loop.Bool
	case loop.Sum, loop.Product:
		return t.Is(loop.ClassNumber)
	}
	return t.Is(loop.ClassNumber | loop.ClassBool)
}

// reductions reduces rows of every type that the reduction takes.
func reductions(reduction loop.Reduction) *loop.Kernel {
	const rows, columns = 9, 300
	b := loop.NewBuilder("reduce_"+reduction.String(), loop.Static(rows))
	for _, t := range allTypes() {
		if reducible(reduction, t) {
			in := b.Buffer(t.String(), t, loop.Read)
			out := b.Buffer(t.String()+"_out", resultType(reduction, t), loop.Write)
			b.Stage(loop.Static(columns))
			result := b.Reduce(reduction, resultType(reduction, t), b.Load(in, loop.Int{}, loop.Static(columns), loop.Static(1)))
			b.Stage()
			b.Store(result, out, loop.Int{}, loop.Static(1))
		}
	}
	return b.Kernel
}

func resultType(reduction loop.Reduction, t loop.Type) loop.Type {
	if reduction.Positional() {
		return loop.I64
	}
	return t
}

// float32Buffers declares float32 buffers; the last one is written.
func float32Buffers(b *loop.Builder, alignment int, names ...string) {
	buffers(b, loop.F32, alignment, names...)
}

// buffers adds buffers of one type, of which the last one is written.
func buffers(b *loop.Builder, typ loop.Type, alignment int, names ...string) {
	for i, name := range names {
		mode := loop.Read
		if i == len(names)-1 {
			mode = loop.Write
		}
		b.Kernel.Buffers[b.Buffer(name, typ, mode)].Alignment = alignment
	}
}

// scaledSum stores x + 2*y over the given sizes, strides and offset of y; x and the result are contiguous.
func scaledSum(name string, sizes, strides []int64, offset int64) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Statics(sizes...)...)
	float32Buffers(b, 4, "x", "y", "out")
	b.Stage()
	dense := loop.Statics(contiguous(sizes)...)
	y := b.Load(1, loop.Static(offset), loop.Statics(strides...)...)
	twice := b.Do(loop.OpMultiply, loop.F32, y, b.Constant(loop.F32, loop.FloatBits(2)))
	b.Store(b.Do(loop.OpAdd, loop.F32, b.Load(0, loop.Int{}, dense...), twice), 2, loop.Int{}, dense...)
	return b.Kernel
}

func contiguous(sizes []int64) []int64 {
	strides, next := make([]int64, len(sizes)), int64(1)
	for d := len(sizes) - 1; d >= 0; d-- {
		strides[d], next = next, next*sizes[d]
	}
	return strides
}

func pointwiseShapes() []*loop.Kernel {
	return []*loop.Kernel{
		addReluOf(loop.I8, "add_relu_bytes", loop.Static(5008), 16), addRelu("add_relu", loop.Static(5003), 4), addRelu("add_relu_aligned", loop.Static(2048), 16),
		addRelu("add_relu_dynamic", loop.Argument(0), 4), addRelu("add_relu_huge", loop.Static(1<<33), 16),
		scaledSum("scalar", nil, nil, 0),
		scaledSum("broadcast_row", []int64{7, 64}, []int64{0, 1}, 0),
		scaledSum("broadcast_column", []int64{7, 64}, []int64{1, 0}, 0),
		scaledSum("broadcast_all", []int64{7, 64}, []int64{0, 0}, 3),
		scaledSum("transposed", []int64{33, 20}, []int64{1, 33}, 0),
		scaledSum("flipped", []int64{50}, []int64{-1}, 49),
		scaledSum("odd_rows", []int64{5, 6, 7}, []int64{42, 7, 1}, 1),
		scaledSum("padded_rows", []int64{6, 10, 8}, []int64{200, 16, 1}, 0),
		scaledSum("even_rows", []int64{9, 6}, []int64{8, 1}, 2),
		dynamicRows("dynamic_rows"), indices("indices"), masked("masked"), gathered("gathered"), sideBySide("side_by_side"), sumSideBySide("sum_side_by_side"), inParts("parts", 2048, 8, 4099, 1), inParts("parts_even", 2048, 64), inParts("parts_many", slices.Repeat([]int64{40}, 130)...), channelsLast("channels_last"),
		inPlace("in_place"), mixedTypes("mixed_types"), stages("two_stages"), uniform("scalar_arguments"),
	}
}

// addRelu is relu(x + y) * 2 over n contiguous numbers.
func addRelu(name string, n loop.Int, alignment int) *loop.Kernel {
	return addReluOf(loop.F32, name, n, alignment)
}

func addReluOf(typ loop.Type, name string, n loop.Int, alignment int) *loop.Kernel {
	b := loop.NewBuilder(name, n)
	if _, dynamic := n.Argument(); dynamic {
		b.Scalar()
	}
	buffers(b, typ, alignment, "x", "y", "out")
	b.Stage()
	one, zero, two := loop.Static(1), loop.IntBits(0), loop.IntBits(2)
	if typ.Is(loop.ClassFloat) {
		zero, two = loop.FloatBits(0), loop.FloatBits(2)
	}
	sum := b.Do(loop.OpAdd, typ, b.Load(0, loop.Int{}, one), b.Load(1, loop.Int{}, one))
	relu := b.Do(loop.OpMaximum, typ, sum, b.Constant(typ, zero))
	b.Store(b.Do(loop.OpMultiply, typ, relu, b.Constant(typ, two)), 2, loop.Int{}, one)
	return b.Kernel
}

// dynamicRows adds a row to a matrix of n0 rows of n1 numbers that lie n2 apart.
func dynamicRows(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Argument(0), loop.Argument(1))
	b.Kernel.Scalars = 3
	float32Buffers(b, 4, "x", "row", "out")
	b.Stage()
	one := loop.Static(1)
	x := b.Load(0, loop.Int{}, loop.Argument(2), one)
	b.Store(b.Do(loop.OpAdd, loop.F32, x, b.Load(1, loop.Int{}, loop.Int{}, one)), 2, loop.Int{}, loop.Argument(1), one)
	return b.Kernel
}

// indices stores 100*i0 + i1.
func indices(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Statics(13, 20)...)
	b.Buffer("out", loop.I64, loop.Write)
	b.Stage()
	row := b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64, Index: 0})
	column := b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64, Index: 1})
	scaled := b.Do(loop.OpMultiply, loop.I64, row, b.Constant(loop.I64, loop.IntBits(100)))
	b.Store(b.Do(loop.OpAdd, loop.I64, scaled, column), 0, loop.Int{}, loop.Statics(20, 1)...)
	return b.Kernel
}

// masked pads a row of 30 numbers to 40 with zeros, and stores only even positions of a second buffer.
func masked(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(40))
	float32Buffers(b, 4, "x", "out")
	b.Buffer("even", loop.F32, loop.Write)
	b.Stage()
	at := b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64, Index: 0})
	inside := b.Do(loop.OpLess, loop.Bool, at, b.Constant(loop.I64, loop.IntBits(30)))
	access := func(buffer int) *loop.Access {
		return &loop.Access{Buffer: buffer, Strides: loop.Statics(1)}
	}
	x := b.Append(loop.Instruction{Op: loop.OpLoad, Type: loop.F32, Args: []loop.Value{inside}, Access: access(0)})
	b.Store(x, 1, loop.Int{}, loop.Static(1))
	two, zero := b.Constant(loop.I64, loop.IntBits(2)), b.Constant(loop.I64, loop.IntBits(0))
	even := b.Do(loop.OpEqual, loop.Bool, b.Do(loop.OpRemainder, loop.I64, at, two), zero)
	b.Append(loop.Instruction{Op: loop.OpStore, Type: loop.F32, Args: []loop.Value{x, even}, Access: access(2)})
	return b.Kernel
}

// gathered reads rows of a table at indices from 0 to 2, but not in every other column.
func gathered(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Statics(6, 16)...)
	float32Buffers(b, 4, "table", "out")
	index := b.Buffer("index", loop.U8, loop.Read)
	b.Stage()
	column := b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64, Index: 1})
	even := b.Do(loop.OpEqual, loop.Bool, b.Do(loop.OpAnd, loop.I64, column, b.Constant(loop.I64, 1)), b.Constant(loop.I64, 0))
	row := b.Do(loop.OpRemainder, loop.I64, b.Cast(loop.I64, b.Load(index, loop.Int{}, loop.Statics(1, 0)...)), b.Constant(loop.I64, 3))
	indirect := []loop.Indirect{{Stride: loop.Static(16), Size: loop.Static(3)}}
	b.Store(b.Gather(0, loop.Int{}, loop.Statics(0, 1), even, []loop.Value{row}, indirect), 1, loop.Int{}, loop.Statics(16, 1)...)
	return b.Kernel
}

// sideBySide reads rows of two matrices as one row, the first one backwards, with a column of ones between them.
func sideBySide(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Statics(5, 20)...)
	float32Buffers(b, 4, "x", "y", "out")
	b.Stage()
	column := b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64, Index: 1})
	first := b.Do(loop.OpLess, loop.Bool, column, b.Constant(loop.I64, loop.IntBits(7)))
	last := b.Do(loop.OpGreaterEqual, loop.Bool, column, b.Constant(loop.I64, loop.IntBits(8)))
	left := b.Gather(0, loop.Static(6), loop.Statics(7, -1), first, nil, nil)
	right := b.Gather(1, loop.Static(-8), loop.Statics(12, 1), last, nil, nil)
	other := b.Do(loop.OpSelect, loop.F32, last, right, b.Constant(loop.F32, loop.FloatBits(1)))
	b.Store(b.Do(loop.OpSelect, loop.F32, first, left, other), 2, loop.Int{}, loop.Statics(20, 1)...)
	return b.Kernel
}

// sumSideBySide sums rows that lie in two matrices, the first of which ends at a multiple of a vector, and the second before the row does.
func sumSideBySide(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(5))
	float32Buffers(b, 16, "x", "y", "out")
	b.Stage(loop.Static(64))
	column := b.Append(loop.Instruction{Op: loop.OpIndex, Type: loop.I64, Index: 1})
	test := func(op loop.Op, bound int64) loop.Value {
		return b.Do(op, loop.Bool, column, b.Constant(loop.I64, loop.IntBits(bound)))
	}
	first, inside := test(loop.OpLessEqual, 31), b.Do(loop.OpAnd, loop.Bool, test(loop.OpGreater, 31), test(loop.OpLess, 60))
	left := b.Gather(0, loop.Int{}, loop.Statics(32, 1), first, nil, nil)
	right := b.Gather(1, loop.Static(-32), loop.Statics(28, 1), inside, nil, nil)
	sum := b.Reduce(loop.Sum, loop.F32, b.Do(loop.OpSelect, loop.F32, first, left, right))
	b.Stage()
	b.Store(sum, 2, loop.Int{}, loop.Statics(1)...)
	return b.Kernel
}

// inParts is relu(x + y) * 2 over several vectors.
func inParts(name string, points ...int64) *loop.Kernel {
	kernel := addRelu(name, loop.Static(points[0]), 4)
	kernel.Parts = points
	return kernel
}

// channelsLast copies a channels-last image batch, whose dimensions are not in the order of memory.
func channelsLast(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Statics(2, 8, 5, 6)...)
	float32Buffers(b, 4, "x", "out")
	b.Stage()
	strides := loop.Statics(240, 1, 48, 8)
	b.Store(b.Do(loop.OpNegate, loop.F32, b.Load(0, loop.Int{}, strides...)), 1, loop.Int{}, strides...)
	return b.Kernel
}

func inPlace(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(77))
	b.Buffer("x", loop.F32, loop.ReadWrite)
	b.Stage()
	x := b.Load(0, loop.Int{}, loop.Static(1))
	b.Store(b.Do(loop.OpAdd, loop.F32, x, x), 0, loop.Int{}, loop.Static(1))
	return b.Kernel
}

// mixedTypes is where(mask, bfloat16 + float16, float64) as bfloat16, float16 and float32.
func mixedTypes(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(1001))
	one := loop.Static(1)
	load := func(name string, t loop.Type) loop.Value {
		return b.Load(b.Buffer(name, t, loop.Read), loop.Int{}, one)
	}
	b.Stage()
	sum := b.Do(loop.OpAdd, loop.F32, b.Cast(loop.F32, load("x", loop.BF16)), b.Cast(loop.F32, load("y", loop.F16)))
	chosen := b.Do(loop.OpSelect, loop.F32, load("mask", loop.Bool), sum, b.Cast(loop.F32, load("z", loop.F64)))
	for _, t := range []loop.Type{loop.BF16, loop.F16, loop.F32} {
		b.Store(b.Cast(t, chosen), b.Buffer("out "+t.String(), t, loop.Write), loop.Int{}, one)
	}
	return b.Kernel
}

// stages is a pointwise kernel of two stages; the second uses a value of the first.
func stages(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(64))
	float32Buffers(b, 16, "x", "y", "out")
	b.Stage()
	x := b.Load(0, loop.Int{}, loop.Static(1))
	b.Stage()
	y := b.Load(1, loop.Int{}, loop.Static(1))
	b.Store(b.Do(loop.OpSubtract, loop.F32, x, y), 2, loop.Int{}, loop.Static(1))
	return b.Kernel
}

// uniform multiplies by a float argument and adds a scalar in memory, with extreme constants thrown in.
func uniform(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(100))
	b.Scalar()
	float32Buffers(b, 4, "x", "bias", "out")
	b.Stage()
	factor := b.Cast(loop.F32, b.Append(loop.Instruction{Op: loop.OpArgument, Type: loop.F64, Index: 0}))
	product := b.Do(loop.OpMultiply, loop.F32, b.Load(0, loop.Int{}, loop.Static(1)), factor)
	sum := b.Do(loop.OpAdd, loop.F32, product, b.Load(1, loop.Int{}, loop.Int{}))
	bounded := b.Do(loop.OpMinimum, loop.F32, sum, b.Constant(loop.F32, loop.FloatBits(1e30)))
	b.Store(b.Do(loop.OpSubtract, loop.F32, bounded, b.Constant(loop.F32, loop.FloatBits(-0.1015625))), 2, loop.Int{}, loop.Static(1))
	return b.Kernel
}

func rowShapes() []*loop.Kernel {
	static := loop.Static
	return []*loop.Kernel{
		softmax("softmax_warp", static(10), static(256), loop.F32, 256),
		softmax("softmax_part_of_warp", static(100), static(24), loop.F32, 24),
		softmax("softmax_odd", static(6), static(37), loop.BF16, 37),
		softmax("softmax_block", static(3), static(2560), loop.BF16, 2560),
		softmax("softmax_long", static(2), static(33000), loop.F16, 33000),
		softmax("softmax_streamed", static(1), static(70000), loop.F16, 70000),
		normaliser("normaliser", 4, 5000), chosenScore("chosen_score", 5, 3000), pieces("pieces", 3, 20000, 8192, 1), pieces("pieces_odd", 4, 20001, 6720, 1),
		pieces("pieces_columns", 5, 301, 64, 40), normaliser("normaliser_short", 33, 50), dynamicSoftmax("softmax_dynamic"), layerNorm("layer_norm", 5, 768), layerNorm("layer_norm_odd", 3, 515),
		columnSum("column_sum", 6, 100), columnSum("column_sum_short", 300, 7), columnSum("column_sum_long", 1500, 40),
		innerDimensions("inner_dimensions"), totalSum("total_sum", 10001), totalSum("total_sum_even", 4096),
		softmaxInPlace("softmax_in_place"), unitRows("unit_rows"), positions("positions"), drawnKernel("drawn", loop.F32), drawnKernel("drawn_double", loop.F64),
	}
}

// softmax is a softmax along rows of type t, computed in float32.
func softmax(name string, rows, columns loop.Int, t loop.Type, rowStride int64) *loop.Kernel {
	b := loop.NewBuilder(name, rows)
	in, out := b.Buffer("x", t, loop.Read), b.Buffer("out", t, loop.Write)
	softmaxStages(b, in, out, columns, t, loop.Static(rowStride))
	return b.Kernel
}

func softmaxStages(b *loop.Builder, in, out int, columns loop.Int, t loop.Type, rowStride loop.Int) {
	one := loop.Static(1)
	load := func() loop.Value { return b.Cast(loop.F32, b.Load(in, loop.Int{}, rowStride, one)) }
	exponential := func(greatest loop.Value) loop.Value {
		return b.Do(loop.OpExp, loop.F32, b.Do(loop.OpSubtract, loop.F32, load(), greatest))
	}
	b.Stage(columns)
	greatest := b.Reduce(loop.Maximum, loop.F32, load())
	b.Stage(columns)
	sum := b.Reduce(loop.Sum, loop.F32, exponential(greatest))
	b.Stage(columns)
	b.Store(b.Cast(t, b.Do(loop.OpDivide, loop.F32, exponential(greatest), sum)), out, loop.Int{}, rowStride, one)
}

// normaliser stores the greatest element of each row and the sum of the exponentials of all less that.
func normaliser(name string, rows, columns int64) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(rows))
	float32Buffers(b, 4, "x", "out")
	inner, one := loop.Static(columns), loop.Static(1)
	load := func() loop.Value {
		return b.Do(loop.OpMultiply, loop.F32, b.Load(0, loop.Int{}, inner, one), b.Constant(loop.F32, loop.FloatBits(0.5)))
	}
	b.Stage(inner)
	greatest := b.Reduce(loop.Maximum, loop.F32, load())
	b.Stage(inner)
	sum := b.Reduce(loop.Sum, loop.F32, b.Do(loop.OpExp, loop.F32, b.Do(loop.OpSubtract, loop.F32, load(), greatest)))
	b.Stage()
	b.Store(greatest, 1, loop.Int{}, loop.Static(2))
	b.Store(sum, 1, loop.Static(1), loop.Static(2))
	return b.Kernel
}

// chosenScore stores for each row the difference between its greatest element and the one that an index names.
func chosenScore(name string, rows, columns int64) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(rows))
	float32Buffers(b, 4, "x", "out")
	index := b.Buffer("index", loop.U8, loop.Read)
	inner, one := loop.Static(columns), loop.Static(1)
	b.Stage()
	place := b.Cast(loop.I64, b.Load(index, loop.Int{}, one))
	some := b.Do(loop.OpNotEqual, loop.Bool, place, b.Constant(loop.I64, 3))
	chosen := b.Gather(0, loop.Int{}, []loop.Int{inner}, some, []loop.Value{place}, []loop.Indirect{{Stride: one, Size: inner}})
	b.Stage(inner)
	greatest := b.Reduce(loop.Maximum, loop.F32, b.Load(0, loop.Int{}, inner, one))
	b.Stage()
	b.Store(b.Do(loop.OpSubtract, loop.F32, greatest, chosen), 1, loop.Int{}, one)
	return b.Kernel
}

// pieces sums a matrix over its rows in parts of the given size.
func pieces(name string, parts, rows, size, columns int64) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Statics(parts, columns)...)
	float32Buffers(b, 4, "x", "out")
	b.Kernel.Span = &loop.Span{Size: loop.Static(size), Total: loop.Static(rows)}
	b.Stage(loop.Argument(0))
	sum := b.Reduce(loop.Sum, loop.F32, b.Load(0, loop.Int{}, loop.Statics(size*columns, 1, columns)...))
	b.Stage()
	b.Store(sum, 1, loop.Int{}, loop.Statics(1, parts)...)
	return b.Kernel
}

func dynamicSoftmax(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Argument(0))
	b.Kernel.Scalars = 2
	in, out := b.Buffer("x", loop.F32, loop.Read), b.Buffer("out", loop.F32, loop.Write)
	softmaxStages(b, in, out, loop.Argument(1), loop.F32, loop.Argument(1))
	return b.Kernel
}

func softmaxInPlace(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(4))
	buffer := b.Buffer("x", loop.F32, loop.ReadWrite)
	softmaxStages(b, buffer, buffer, loop.Static(600), loop.F32, loop.Static(600))
	return b.Kernel
}

// layerNorm normalises rows and applies weights, in bfloat16.
func layerNorm(name string, rows, columns int64) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(rows))
	x, weight, out := b.Buffer("x", loop.BF16, loop.Read), b.Buffer("weight", loop.BF16, loop.Read), b.Buffer("out", loop.BF16, loop.Write)
	inner, one := loop.Static(columns), loop.Static(1)
	load := func() loop.Value { return b.Cast(loop.F32, b.Load(x, loop.Int{}, inner, one)) }
	b.Stage(inner)
	sum := b.Reduce(loop.Sum, loop.F32, load())
	b.Stage()
	count := b.Constant(loop.F32, loop.FloatBits(float64(columns)))
	mean := b.Do(loop.OpDivide, loop.F32, sum, count)
	b.Stage(inner)
	centred := b.Do(loop.OpSubtract, loop.F32, load(), mean)
	squares := b.Reduce(loop.Sum, loop.F32, b.Do(loop.OpMultiply, loop.F32, centred, centred))
	b.Stage()
	variance := b.Do(loop.OpDivide, loop.F32, squares, b.Constant(loop.F32, loop.FloatBits(float64(columns))))
	scale := b.Do(loop.OpReciprocalSquareRoot, loop.F32, b.Do(loop.OpAdd, loop.F32, variance, b.Constant(loop.F32, loop.FloatBits(0x1p-16))))
	b.Stage(inner)
	normal := b.Do(loop.OpMultiply, loop.F32, b.Do(loop.OpSubtract, loop.F32, load(), mean), scale)
	weighted := b.Do(loop.OpMultiply, loop.F32, normal, b.Cast(loop.F32, b.Load(weight, loop.Int{}, loop.Int{}, one)))
	b.Store(b.Cast(loop.BF16, weighted), out, loop.Int{}, inner, one)
	return b.Kernel
}

// columnSum sums a matrix over its rows.
func columnSum(name string, rows, columns int64) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(columns))
	float32Buffers(b, 4, "x", "out")
	b.Stage(loop.Static(rows))
	sum := b.Reduce(loop.Sum, loop.F32, b.Load(0, loop.Int{}, loop.Static(1), loop.Static(columns)))
	b.Stage()
	b.Store(sum, 1, loop.Int{}, loop.Static(1))
	return b.Kernel
}

// innerDimensions sums a (6, 5, 8) tensor over its first and last dimension, and stores the deviations.
func innerDimensions(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(5))
	float32Buffers(b, 4, "x", "out")
	strides := loop.Statics(8, 40, 1)
	b.Stage(loop.Statics(6, 8)...)
	sum := b.Reduce(loop.Sum, loop.F32, b.Load(0, loop.Int{}, strides...))
	b.Stage(loop.Statics(6, 8)...)
	b.Store(b.Do(loop.OpSubtract, loop.F32, b.Load(0, loop.Int{}, strides...), sum), 1, loop.Int{}, strides...)
	return b.Kernel
}

func totalSum(name string, count int64) *loop.Kernel {
	b := loop.NewBuilder(name)
	float32Buffers(b, 4, "x", "out")
	b.Stage(loop.Static(count))
	sum := b.Reduce(loop.Sum, loop.F32, b.Load(0, loop.Int{}, loop.Static(1)))
	b.Stage()
	b.Store(sum, 1, loop.Int{})
	return b.Kernel
}

// unitRows has rows of one element.
func unitRows(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(50))
	float32Buffers(b, 4, "x", "out")
	b.Stage(loop.Static(1))
	greatest := b.Reduce(loop.Maximum, loop.F32, b.Load(0, loop.Int{}, loop.Statics(1, 1)...))
	b.Stage()
	b.Store(greatest, 1, loop.Int{}, loop.Static(1))
	return b.Kernel
}

// positions finds the place of the least and of the greatest number in blocks of rows, and their sum.
func positions(name string) *loop.Kernel {
	b := loop.NewBuilder(name, loop.Static(3))
	b.Buffer("x", loop.F32, loop.Read)
	b.Buffer("out", loop.I64, loop.Write)
	b.Stage(loop.Statics(4, 300)...)
	x := b.Load(0, loop.Int{}, loop.Statics(1200, 300, 1)...)
	least, greatest := b.Reduce(loop.ArgMinimum, loop.I64, x), b.Reduce(loop.ArgMaximum, loop.I64, x)
	b.Stage()
	b.Store(b.Do(loop.OpAdd, loop.I64, least, greatest), 1, loop.Int{}, loop.Static(1))
	return b.Kernel
}

// drawnKernel draws random numbers.
func drawnKernel(name string, typ loop.Type) *loop.Kernel {
	kernel := kerneltest.Uniform(typ).Kernel
	kernel.Name = name
	return kernel
}
