package backend

import (
	"context"
	"testing"

	"fusee/graph"
)

type call = func(target string, args ...graph.Value) graph.Value

// inPlaceGraph has calls write three inputs that are apart, and returns those too.
func inPlaceGraph(t *testing.T, write func(call call, x, y, z graph.Value) []graph.Value) *graph.Graph {
	t.Helper()
	g := graph.NewGraph("f")
	meta := tensorMeta(graph.Float32, 4, 6)
	call := func(target string, args ...graph.Value) graph.Value {
		node, err := g.Call(target, args, nil, graph.State{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Output(0)
	}
	x, y, z := g.AddTensor("x", meta), g.AddTensor("y", meta), g.AddTensor("z", meta)
	g.Outputs = append(write(call, x, y, z), x, y, z)
	return g
}

// overwriting gives programs with the number of kernels that they take.
func overwriting() map[string]struct {
	kernels int
	write   func(call call, x, y, z graph.Value) []graph.Value
} {
	return map[string]struct {
		kernels int
		write   func(call call, x, y, z graph.Value) []graph.Value
	}{
		"a momentum and a parameter": {1, func(call call, x, y, z graph.Value) []graph.Value {
			call("Tensor.mul_", y, 0.9)
			call("Tensor.add_", y, z)
			call("Tensor.sub_", x, call("torch.mul", y, 0.1))
			return nil
		}},
		"the old value after the write": {1, func(call call, x, y, z graph.Value) []graph.Value {
			old := call("torch.mul", x, 3.0)
			call("Tensor.add_", x, y)
			return []graph.Value{call("torch.add", old, x), x}
		}},
		"the old value at other indices": {3, func(call call, x, y, z graph.Value) []graph.Value {
			rows := call("torch.sum", x, int64(1))
			call("Tensor.add_", x, y)
			return []graph.Value{rows, call("torch.sum", x, int64(1))}
		}},
		"two tensors that read each other": {1, func(call call, x, y, z graph.Value) []graph.Value {
			call("Tensor.add_", x, y)
			call("Tensor.mul_", y, x)
			call("Tensor.sub_", x, y)
			return []graph.Value{y}
		}},
		"a write that reads nothing of what was there": {3, func(call call, x, y, z graph.Value) []graph.Value {
			old := call("torch.add", x, 1.0)
			call("Tensor.copy_", x, z)
			call("Tensor.copy_", x, y)
			return []graph.Value{old, call("torch.exp", x)}
		}},
	}
}

// TestOverwriting compares with kernels of one operation each, between barriers.
func TestOverwriting(t *testing.T) {
	for name, program := range overwriting() {
		t.Run(name, func(t *testing.T) {
			g := inPlaceGraph(t, program.write)
			inputs, err := RandomInputs(g, 7)
			if err != nil {
				t.Fatal(err)
			}
			comparison, err := CompareFused(context.Background(), g, inputs)
			if err != nil || comparison.Largest != 0 {
				t.Fatalf("%v, differs by %g", err, comparison.Largest)
			}
			compiler := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}, Check: true, Disjoint: true})
			compiled, err := compiler.Compile(g)
			if err != nil {
				t.Fatal(err)
			}
			launches := 0
			for _, step := range compiled.Steps {
				if len(step) > 6 && step[:6] == "kernel" {
					launches++
				}
			}
			if launches > program.kernels {
				t.Errorf("%d launches, not %d\n%v", launches, program.kernels, compiled.Steps)
			}
		})
	}
}

// TestVerifyOrder finds a group that stores over what a later one reads.
func TestVerifyOrder(t *testing.T) {
	g := inPlaceGraph(t, overwriting()["the old value at other indices"].write)
	state, err := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}, Disjoint: true}).run(g, "schedule")
	if err != nil {
		t.Fatal(err)
	}
	if err := verifyOrder(state.groups); err != nil {
		t.Error(err)
	}
	reversed := make([]*group, 0, len(state.groups))
	for index := range state.groups {
		reversed = append(reversed, state.groups[len(state.groups)-1-index])
	}
	if verifyOrder(reversed) == nil {
		t.Error("groups in reverse order pass")
	}
}
