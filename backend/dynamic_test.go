package backend

import (
	"context"
	"math"
	"testing"

	"fusee/backend/interpret"
	"fusee/backend/loop"
	"fusee/bytecode"
	"fusee/graph"
)

// dynamicSoftmax is softmax(x·y + s) over rows of a matrix whose sizes are known at run time only.
func dynamicSoftmax(t *testing.T) *graph.Graph {
	t.Helper()
	g := graph.NewGraph("dynamic")
	rows := g.Shapes.NewSymbol(3, 2, graph.SymbolSource{Input: 0, Dim: 0})
	columns := g.Shapes.NewSymbol(5, 2, graph.SymbolSource{Input: 0, Dim: 1})
	meta := graph.Meta{DType: graph.Float32, Device: graph.Device{Type: "cpu"}, Sizes: []graph.Size{rows, columns}, Strides: []graph.Size{columns, graph.Static(1)}}
	vector := graph.Meta{DType: graph.Float32, Device: meta.Device, Sizes: []graph.Size{columns}, Strides: graph.Statics(1)}
	x, y, s := g.AddTensor("x", meta), g.AddTensor("y", vector), g.AddFloat("s")
	product := aten(g, "aten.mul.Tensor", meta, x, y)
	sum := aten(g, "aten.add.Tensor", meta, product, s)
	g.Outputs = []graph.Value{aten(g, "aten.softmax.int", meta, sum, int64(1))}
	return g
}

func floats(values []float64, sizes ...int64) *Data {
	memory := &interpret.Bytes{Type: loop.F32, Data: make([]byte, 4*len(values))}
	for index, value := range values {
		memory.Store(int64(index), loop.FloatBits(value))
	}
	strides := graph.Hints(contiguousStrides(nil, graph.Statics(sizes...)))
	return &Data{DType: graph.Float32, Sizes: sizes, Strides: strides, Storage: memory.Data}
}

// TestOneKernelServesEverySize runs one plan, made at sizes 3 by 5, on matrices of other sizes.
func TestOneKernelServesEverySize(t *testing.T) {
	g := dynamicSoftmax(t)
	for _, sizes := range [][2]int64{{3, 5}, {2, 2}, {7, 31}} {
		rows, columns := sizes[0], sizes[1]
		x, y := make([]float64, rows*columns), make([]float64, columns)
		for index := range x {
			x[index] = float64(index%7) / 4
		}
		for index := range y {
			y[index] = float64(index%3) - 1
		}
		shift := &Data{Number: int64(math.Float64bits(0.5))}
		outputs, err := Run(context.Background(), g, []*Data{floats(x, rows, columns), floats(y, columns), shift}, true)
		if err != nil {
			t.Fatalf("%+v", err)
		}
		got := outputs[0].Elements()
		for row := range rows {
			total := 0.0
			for column := range columns {
				total += math.Exp(x[row*columns+column]*y[column] + 0.5)
			}
			for column := range columns {
				want := math.Exp(x[row*columns+column]*y[column]+0.5) / total
				if gap := math.Abs(got[row*columns+column].Float() - want); gap > 1e-6 {
					t.Fatalf("%v: element %d,%d is off by %g", sizes, row, column, gap)
				}
			}
		}
	}
}

func TestEqualGraphsGiveEqualPlans(t *testing.T) {
	compile := func(seed uint64) string {
		compiled, err := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}}).Compile(randomGraph(seed, 20))
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := bytecode.Marshal(compiled.Plan)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes)
	}
	for seed := range uint64(20) {
		first, again := compile(seed), compile(seed)
		if first != again {
			t.Errorf("seed %d gives different plans", seed)
		}
	}
}

// TestLongSumsAreDividedAmongPoints sums a matrix of a million elements in two reductions.
func TestLongSumsAreDividedAmongPoints(t *testing.T) {
	g := graph.NewGraph("sum")
	meta := tensorMeta(graph.Float32, 512, 512)
	x := g.AddTensor("x", meta)
	square := aten(g, "aten.mul.Tensor", meta, x, x)
	g.Outputs = []graph.Value{aten(g, "aten.mean.default", tensorMeta(graph.Float32), square)}
	compiled, err := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}, Check: true}).Compile(g)
	if err != nil {
		t.Fatal(err)
	}
	if len(compiled.Kernels) != 2 {
		t.Errorf("%d kernels: %v", len(compiled.Kernels), compiled.Steps)
	}
	values := make([]float64, 512*512)
	for index := range values {
		values[index] = float64(index%5) - 2
	}
	outputs, err := Run(context.Background(), g, []*Data{floats(values, 512, 512)}, true)
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for _, value := range values {
		want += value * value / float64(len(values))
	}
	if got := outputs[0].Elements()[0].Float(); math.Abs(got-want) > 1e-6 {
		t.Errorf("mean is %v, want %v", got, want)
	}
}
