package backend

import (
	"strings"
	"testing"

	"fusee/graph"
)

// sideBySideRead returns the sum of three matrices side by side, and their product with a matrix where that is asked for.
func sideBySideRead(t *testing.T, device string, multiplied bool) *graph.Graph {
	t.Helper()
	g := graph.NewGraph("joined")
	input := func(name string, sizes ...int64) graph.Value {
		meta := tensorMeta(graph.Float32, sizes...)
		meta.Device.Type = device
		return g.AddTensor(name, meta)
	}
	call := func(target string, args ...graph.Value) graph.Value {
		node, err := g.Call(target, args, nil, graph.State{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Output(0)
	}
	parts := graph.List{Items: []graph.Value{input("a", 64, 96), input("b", 64, 96), input("c", 64, 96)}}
	whole := call("torch.cat", parts, int64(1))
	g.Outputs = []graph.Value{call("torch.sum", whole, int64(0))}
	if multiplied {
		g.Outputs = append(g.Outputs, call("torch.mm", whole, input("weight", 288, 32)))
	}
	return g
}

// TestLibraryJoinsWhatItReads checks that a GPU's library joins tensors where it reads the result, so that loops have to store nothing for it.
func TestLibraryJoinsWhatItReads(t *testing.T) {
	for _, test := range []struct {
		device              string
		multiplied, library bool
	}{{"cuda", true, true}, {"cuda", false, false}, {"cpu", true, false}} {
		g := sideBySideRead(t, test.device, test.multiplied)
		compiled, err := New(Options{Emitters: map[string]Emitter{test.device: wasmEmitter{}}}).Compile(g)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(compiled.Steps, "\n"); strings.Contains(text, "aten.cat") != test.library {
			t.Errorf("%+v: %s", test, text)
		}
	}
}
