package backend

import (
	"strings"
	"testing"

	"fusee/graph"
)

// linearRelu is relu(linear(x, w, b)) on the device, whose linear part is also returned when kept.
func linearRelu(t *testing.T, device string, kept bool) *graph.Graph {
	t.Helper()
	g := graph.NewGraph("layer")
	meta := func(sizes ...int64) graph.Meta {
		result := tensorMeta(graph.Float32, sizes...)
		result.Device = graph.Device{Type: device}
		return result
	}
	x, w, b := g.AddTensor("x", meta(8, 16)), g.AddTensor("w", meta(32, 16)), g.AddTensor("b", meta(32))
	product := aten(g, "aten.linear.default", meta(8, 32), x, w, b)
	g.Outputs = []graph.Value{aten(g, "aten.relu.default", meta(8, 32), product)}
	if kept {
		g.Outputs = append(g.Outputs, product)
	}
	return g
}

func TestReluGoesIntoTheLinearLayerBefore(t *testing.T) {
	compiler := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}, "cuda": wasmEmitter{}}, Check: true})
	for _, test := range []struct {
		device string
		kept   bool
		joined bool
	}{{"cuda", false, true}, {"cuda", true, false}, {"cpu", false, false}} {
		compiled, err := compiler.Compile(linearRelu(t, test.device, test.kept))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(compiled.Steps, "\n")
		if joined := strings.Contains(text, "_addmm_activation"); joined != test.joined || joined == (len(compiled.Kernels) == 1) {
			t.Errorf("on %s, kept %v: %d kernels\n%s", test.device, test.kept, len(compiled.Kernels), text)
		}
		if test.joined && !strings.Contains(text, "view of slot 1 as float32[16, 32]{1, 16}") {
			t.Errorf("the weight is not transposed:\n%s", text)
		}
	}
}
