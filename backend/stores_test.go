package backend

import (
	"context"
	"fmt"
	"math"
	"testing"

	"fusee/graph"
)

// readByNothing returns x + 1 of a matrix of one row, and the sum of it over copies of that row, of which there may be none: the size of y less taken.
func readByNothing(t *testing.T, device string, copies, taken int64, dynamic bool) *graph.Graph {
	t.Helper()
	g := graph.NewGraph("nothing")
	row, many := tensorMeta(graph.Float32, 1, 7), tensorMeta(graph.Float32, copies+taken)
	row.Device.Type, many.Device.Type = device, device
	if dynamic {
		many.Sizes[0] = g.Shapes.NewSymbol(copies+taken, 2, graph.SymbolSource{Input: 1, Dim: 0})
	}
	call := func(target string, args ...graph.Value) graph.Value {
		node, err := g.Call(target, args, nil, graph.State{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Output(0)
	}
	x, y := g.AddTensor("x", row), g.AddTensor("y", many)
	shifted := call("torch.add", x, int64(1))
	count := g.Shapes.Subtract(many.Sizes[0], graph.Static(taken))
	spread := call("Tensor.expand", shifted, graph.List{Items: []graph.Value{count, int64(7)}})
	g.Outputs = []graph.Value{shifted, call("torch.sum", spread), call("torch.neg", y)}
	return g
}

// TestWhatIsReadByNothingIsStored checks values that the program returns and that kernels over no points read.
func TestWhatIsReadByNothingIsStored(t *testing.T) {
	for _, device := range []string{"cpu", "cuda"} {
		for _, dynamic := range []bool{false, true} {
			for copies := range int64(3) {
				g := readByNothing(t, device, copies, 5, dynamic)
				inputs, err := RandomInputs(g, 3)
				if err != nil {
					t.Fatal(err)
				}
				outputs, err := Run(context.Background(), g, inputs, true)
				if err != nil {
					t.Fatalf("%+v", err)
				}
				checkReadByNothing(t, fmt.Sprintf("%s, dynamic %v, %d copies", device, dynamic, copies), copies, inputs[0], outputs)
			}
		}
	}
}

func checkReadByNothing(t *testing.T, name string, copies int64, x *Data, outputs []*Data) {
	t.Helper()
	total, shifted := 0.0, outputs[0].Elements()
	for index, element := range x.Elements() {
		value := float64(float32(element.Float() + 1))
		if shifted[index].Float() != value {
			t.Errorf("%s: element %d is %g, not %g", name, index, shifted[index].Float(), value)
		}
		total += float64(copies) * value
	}
	if got := outputs[1].Elements()[0].Float(); math.Abs(got-total) > 1e-4 {
		t.Errorf("%s: the sum is %g, not %g", name, got, total)
	}
}

// TestVerifyStores finds a value that a kernel over no points is to store.
func TestVerifyStores(t *testing.T) {
	g := readByNothing(t, "cpu", 0, 5, false)
	state, err := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}}).run(g, "fuse")
	if err != nil {
		t.Fatal(err)
	}
	f := &fusion{shapes: g.Shapes, groups: state.groups}
	if err := f.verifyStores(); err != nil {
		t.Error(err)
	}
	for _, g := range f.groups {
		for _, op := range g.members {
			if op.name == "add" {
				user := op.outputs[0].uses[0].group
				f.start(op)
				user.members = append(user.members, op)
				user.mappings[op], user.stored[op.outputs[0]] = mapping{-1, 1}, true
			}
		}
	}
	if f.verifyStores() == nil {
		t.Error("a kernel over no points may store a value")
	}
}
