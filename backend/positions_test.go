package backend

import (
	"context"
	"testing"

	"fusee/backend/interpret"
	"fusee/backend/loop"
	"fusee/graph"
)

// TestPositionsAlongADimension compares an index with the position in a row, with dimensions before and behind it that merge, and in a reduction.
func TestPositionsAlongADimension(t *testing.T) {
	g := graph.NewGraph("positions")
	x := g.AddTensor("x", tensorMeta(graph.Float32, 2, 3, 4, 5))
	index := g.AddTensor("index", tensorMeta(graph.Int64, 2, 3, 1, 5))
	positions := aten(g, "aten.arange.start_step", tensorMeta(graph.Int64, 4), int64(1), int64(9), int64(2))
	column := aten(g, "aten.view.default", tensorMeta(graph.Int64, 4, 1), positions, graph.List{Items: []graph.Value{int64(4), int64(1)}})
	column.Node.Outputs[0].Relation = graph.ViewOf(positions)
	equal := aten(g, "aten.eq.Tensor", tensorMeta(graph.Bool, 2, 3, 4, 5), column, index)
	chosen := aten(g, "aten.where.ScalarOther", tensorMeta(graph.Float32, 2, 3, 4, 5), equal, x, int64(0))
	total := aten(g, "aten.sum.dim_IntList", tensorMeta(graph.Float32, 2, 3, 5), chosen, graph.List{Items: []graph.Value{int64(2)}})
	g.Outputs = []graph.Value{chosen, total}
	values := make([]float64, 120)
	indices := make([]int64, 30)
	for i := range values {
		values[i] = float64(i%11) - 3
	}
	for i := range indices {
		indices[i] = int64(i % 9)
	}
	for _, fused := range []bool{true, false} {
		outputs, err := Run(context.Background(), g, []*Data{floats(values, 2, 3, 4, 5), integersOf(indices, 2, 3, 1, 5)}, fused)
		if err != nil {
			t.Fatalf("%+v", err)
		}
		sums := outputs[1].Elements()
		for i, got := range outputs[0].Elements() {
			row, column := i/20*5+i%5, i/5%4
			want := 0.0
			if int64(1+2*column) == indices[row] {
				want = values[i]
			}
			if got.Float() != want {
				t.Errorf("element %d is %v, not %v", i, got.Float(), want)
			}
			if column := (int(indices[row]) - 1) / 2; indices[row]%2 == 1 && column < 4 {
				if want := values[i/20*20+column*5+i%5]; sums[row].Float() != want {
					t.Errorf("sum %d is %v, not %v", row, sums[row].Float(), want)
				}
			}
		}
	}
}

func integersOf(values []int64, sizes ...int64) *Data {
	memory := &interpret.Bytes{Type: loop.I64, Data: make([]byte, 8*len(values))}
	for index, value := range values {
		memory.Store(int64(index), loop.IntBits(value))
	}
	strides := graph.Hints(contiguousStrides(nil, graph.Statics(sizes...)))
	return &Data{DType: graph.Int64, Sizes: sizes, Strides: strides, Storage: memory.Data}
}
