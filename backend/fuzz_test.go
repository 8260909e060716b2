package backend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/errors"

	"fusee/graph"
)

// inputTypes are the types of inputs, single precision more often.
func inputTypes() []graph.DType {
	return []graph.DType{
		graph.Float32, graph.Float32, graph.BFloat16, graph.Int64, graph.Bool, graph.Float64, graph.Float16, graph.Int32, graph.Int8, graph.Uint8,
	}
}

// generator writes random torch-level graphs.
type generator struct {
	random *rand.Rand
	graph  *graph.Graph
	values []graph.Value
}

func (g *generator) pick() graph.Value { return g.values[g.random.IntN(len(g.values))] }

// call appends a call; calls that the graph does not take (shapes that do not broadcast, types that do not fit) are skipped.
func (g *generator) call(target string, args ...graph.Value) {
	node, err := g.graph.Call(target, args, nil, graph.State{})
	if err != nil {
		return
	}
	for index := range node.Outputs {
		g.values = append(g.values, node.Output(index))
	}
}

// step appends one random call.
func (g *generator) step() {
	unary := []string{"torch.exp", "torch.relu", "torch.neg", "torch.sigmoid", "torch.tanh", "torch.abs", "torch.floor", "torch.isnan", "torch.sqrt"}
	binary := []string{"torch.add", "torch.mul", "torch.sub", "torch.maximum", "torch.lt", "torch.div", "torch.ne"}
	inPlace := []string{"Tensor.add_", "Tensor.mul_", "Tensor.copy_"}
	types := inputTypes()
	meta, _ := graph.MetaOf(g.pick())
	rank := int64(max(meta.Dim(), 1))
	dim := g.random.Int64N(rank)
	switch g.random.IntN(23) {
	case 0, 1, 2:
		g.call(unary[g.random.IntN(len(unary))], g.pick())
	case 3, 4, 5:
		g.call(binary[g.random.IntN(len(binary))], g.pick(), g.pick())
	case 6:
		g.call(binary[g.random.IntN(len(binary))], g.pick(), g.random.NormFloat64())
	case 7:
		g.call([]string{"torch.sum", "torch.amax", "torch.mean", "torch.argmax", "torch.var"}[g.random.IntN(5)], g.pick(), dim, g.random.IntN(2) == 0)
	case 8:
		g.call([]string{"torch.softmax", "torch.log_softmax", "torch.sum", "torch.any"}[g.random.IntN(4)], g.pick(), dim)
	case 9:
		g.call([]string{"torch.t", "Tensor.contiguous", "torch.clone"}[g.random.IntN(3)], g.pick())
	case 10:
		g.call([]string{"torch.unsqueeze", "torch.squeeze"}[g.random.IntN(2)], g.pick(), dim)
		g.call("torch.narrow", g.pick(), dim, int64(0), int64(1+g.random.IntN(3)))
	case 11, 14, 15, 16, 17:
		g.call(inPlace[g.random.IntN(len(inPlace))], g.pick(), g.pick())
	case 12, 13:
		g.index(dim)
	case 18, 19:
		g.join(dim)
	case 20:
		widths := graph.List{Items: []graph.Value{g.random.Int64N(4) - 1, g.random.Int64N(3)}}
		g.call("torch.constant_pad_nd", g.pick(), widths, float64(g.random.IntN(3)))
	case 21, 22:
		g.call("Tensor.to", g.pick(), types[g.random.IntN(len(types))])
	}
}

// join concatenates or stacks values of one shape.
func (g *generator) join(dim int64) {
	first := g.pick()
	meta, _ := graph.MetaOf(first)
	items := []graph.Value{first}
	for range 1 + g.random.IntN(3) {
		other := g.pick()
		if candidate, _ := graph.MetaOf(other); slices.EqualFunc(candidate.Sizes, meta.Sizes, sameSize) {
			items = append(items, other)
		}
	}
	g.call([]string{"torch.cat", "torch.stack"}[g.random.IntN(2)], graph.List{Items: items}, dim)
}

// index reads a tensor at indices that are made to lie within one of its dimensions.
func (g *generator) index(dim int64) {
	self, before := g.pick(), len(g.values)
	meta, _ := graph.MetaOf(self)
	if dim >= int64(meta.Dim()) || meta.Sizes[dim].Hint == 0 {
		return
	}
	g.call("torch.remainder", g.pick(), meta.Sizes[dim].Hint)
	if len(g.values) == before {
		return
	}
	index := g.values[before]
	g.call("torch.index_select", self, dim, index)
	g.call("torch.gather", self, dim, index)
	if dim == 0 {
		g.call("torch.embedding", self, index)
	}
	if dim == int64(min(1, meta.Dim()-1)) {
		g.call("torch._C._nn.cross_entropy_loss", self, index, nil, g.random.Int64N(3), int64(1))
	}
}

// rearranged gives a tensor's memory gaps, an offset, or its dimensions in reverse order.
func (g *generator) rearranged(meta graph.Meta) graph.Meta {
	switch g.random.IntN(4) {
	case 0:
		meta.Offset = graph.Static(3)
	case 1:
		for dimension := range meta.Strides {
			meta.Strides[dimension].Hint *= 2
		}
	case 2:
		next := int64(1)
		for dimension, size := range meta.Sizes {
			meta.Strides[dimension] = graph.Static(next)
			next *= max(size.Hint, 1)
		}
	}
	return meta
}

// randomGraph makes a graph of the given number of calls whose inputs share a few shapes and types.
func randomGraph(seed uint64, calls int) *graph.Graph {
	g := &generator{random: rand.New(rand.NewPCG(seed, 1)), graph: graph.NewGraph(fmt.Sprintf("random%d", seed))}
	shapes := [][]int64{{3, 5}, {5}, {3, 1}, {5, 3}, {}, {2, 3, 5}, {0, 5}, {1, 1, 5}, {17}, {3, 67}, {2, 3, 1, 5}}
	types := inputTypes()
	for number := range 4 {
		meta := tensorMeta(types[g.random.IntN(len(types))], shapes[g.random.IntN(len(shapes))]...)
		g.values = append(g.values, g.graph.AddTensor(fmt.Sprintf("x%d", number), g.rearranged(meta)))
	}
	for range calls {
		g.step()
	}
	for range 3 {
		g.graph.Outputs = append(g.graph.Outputs, g.pick())
	}
	g.graph.Outputs = append(g.graph.Outputs, g.values[len(g.values)-1])
	for _, input := range g.graph.Inputs {
		g.graph.Outputs = append(g.graph.Outputs, input) // what was written to it
	}
	return g.graph
}

// checkFusion compares fused with unfused execution of a random graph and reports whether it could run.
func checkFusion(t *testing.T, seed uint64, calls int) bool {
	t.Helper()
	g := randomGraph(seed, calls)
	inputs, err := RandomInputs(g, seed)
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := CompareFused(context.Background(), g, inputs)
	if errors.Is(err, ErrNotRunnable) {
		return false
	}
	if err != nil {
		t.Fatalf("seed %d: %+v\n%s", seed, err, g)
	}
	if comparison.Largest != 0 {
		t.Errorf("seed %d: fused and unfused differ by %g\n%s", seed, comparison.Largest, g)
	}
	return true
}

func TestFusedEqualsUnfusedOnRandomGraphs(t *testing.T) {
	const graphs = 60
	ran := 0
	for seed := range uint64(graphs) {
		if checkFusion(t, seed, 3+int(seed)%12) {
			ran++
		}
	}
	checkFusion(t, 52413, 10+2413%25) // a softmax of a softmax, both returned
	if ran < graphs/2 {
		t.Errorf("only %d of %d graphs could run", ran, graphs)
	}
}

func FuzzFusedEqualsUnfused(f *testing.F) {
	f.Add(uint64(1), byte(8))
	f.Add(uint64(2), byte(20))
	f.Fuzz(func(t *testing.T, seed uint64, calls byte) { checkFusion(t, seed, int(calls)%32) })
}
