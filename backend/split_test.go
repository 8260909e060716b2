package backend

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"fusee/graph"
)

// longGraph returns x + 1, the sum of it, and twice the greatest element of each column, of a matrix on the device.
func longGraph(t *testing.T, device string, rows, columns int64, dynamic bool) *graph.Graph {
	t.Helper()
	g := graph.NewGraph("long")
	meta := tensorMeta(graph.Float32, rows, columns)
	meta.Device = graph.Device{Type: device}
	if dynamic {
		meta.Sizes[0] = g.Shapes.NewSymbol(rows, 2, graph.SymbolSource{Input: 0, Dim: 0})
	}
	call := func(target string, args ...graph.Value) graph.Value {
		node, err := g.Call(target, args, nil, graph.State{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Output(0)
	}
	x := g.AddTensor("x", meta)
	shifted := call("torch.add", x, int64(1))
	g.Outputs = []graph.Value{shifted, call("torch.sum", shifted), call("torch.mul", call("torch.amax", x, int64(0)), int64(2))}
	return g
}

func TestLongReductionsAreSplit(t *testing.T) {
	for _, device := range []string{"cpu", "cuda"} {
		for _, shape := range [][2]int64{{70001, 1}, {9001, 8}, {3, 30011}} {
			for _, dynamic := range []bool{false, true} {
				name := fmt.Sprintf("%s %v dynamic %v", device, shape, dynamic)
				checkLong(t, name, longGraph(t, device, shape[0], shape[1], dynamic), shape)
			}
		}
	}
}

func checkLong(t *testing.T, name string, g *graph.Graph, shape [2]int64) {
	t.Helper()
	inputs, err := RandomInputs(g, 1)
	if err != nil {
		t.Fatal(err)
	}
	outputs, err := Run(context.Background(), g, inputs, true)
	if err != nil {
		t.Fatalf("%s: %+v", name, err)
	}
	x, shifted, total := inputs[0].Elements(), outputs[0].Elements(), 0.0
	greatest := make([]float64, shape[1])
	for index := range greatest {
		greatest[index] = math.Inf(-1)
	}
	for index, element := range x {
		value := float64(float32(element.Float() + 1))
		if shifted[index].Float() != value {
			t.Fatalf("%s: element %d is %g, not %g", name, index, shifted[index].Float(), value)
		}
		total += value
		column := int64(index) % shape[1]
		greatest[column] = max(greatest[column], element.Float())
	}
	if got := outputs[1].Elements()[0].Float(); math.Abs(got-total) > math.Abs(total)*1e-5 {
		t.Errorf("%s: the sum is %g, not %g", name, got, total)
	}
	for column, got := range outputs[2].Elements() {
		if got.Float() != float64(float32(2*greatest[column])) {
			t.Errorf("%s: column %d has %g, not %g", name, column, got.Float(), 2*greatest[column])
		}
	}
}

func TestEachReductionIsSplitInTwo(t *testing.T) {
	compiler := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}, Check: true})
	compiled, err := compiler.Compile(longGraph(t, "cpu", 100003, 1, false))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(compiled.Steps)
	if len(compiled.Kernels) != 4 || strings.Count(text, "alloc") != 5 {
		t.Errorf("%d kernels, steps %s", len(compiled.Kernels), text)
	}
}
