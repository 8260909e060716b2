package backend

import (
	"strings"
	"testing"

	"fusee/graph"
)

// convolutions is relu(conv(…)) so many times of an image on the device, then the mean of each channel, or the image itself.
func convolutions(t *testing.T, device string, count int, whole bool) *graph.Graph {
	t.Helper()
	g := graph.NewGraph("images")
	meta := func(sizes ...int64) graph.Meta {
		result := tensorMeta(graph.Float32, sizes...)
		result.Device = graph.Device{Type: device}
		return result
	}
	var x graph.Value = g.AddTensor("x", meta(2, 4, 8, 8))
	list := func(items ...int64) graph.Value {
		var result graph.List
		for _, item := range items {
			result.Items = append(result.Items, item)
		}
		return result
	}
	for range count {
		weight := g.AddTensor("weight", meta(4, 4, 3, 3))
		x = aten(g, "aten.conv2d.default", meta(2, 4, 8, 8), x, weight, nil, list(1, 1), list(1, 1))
		x = aten(g, "aten.relu.default", meta(2, 4, 8, 8), x)
	}
	if !whole {
		x = aten(g, "aten.mean.dim", meta(2, 4), x, list(2, 3))
	}
	g.Outputs = []graph.Value{x}
	return g
}

func TestChannelsOfImagesLieTogetherBetweenConvolutions(t *testing.T) {
	compiler := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}, "cuda": wasmEmitter{}}, Check: true})
	for _, test := range []struct {
		device string
		count  int
		whole  bool
		turned int // kernels that turn images and weights
	}{{"cuda", 3, false, 4}, {"cuda", 5, true, 7}, {"cuda", 1, false, 0}, {"cuda", 3, true, 0}, {"cpu", 3, false, 0}} {
		compiled, err := compiler.Compile(convolutions(t, test.device, test.count, test.whole))
		if err != nil {
			t.Fatal(err)
		}
		turned := 0
		for _, step := range compiled.Steps {
			if strings.HasPrefix(step, "kernel k_turn") || strings.HasPrefix(step, "kernel k_fused_relu_turn") {
				turned++
			}
		}
		if text := strings.Join(compiled.Steps, "\n"); turned != test.turned || strings.Contains(text, "{256, 1, 32, 4}") != (turned > 0) {
			t.Errorf("%+v: %d kernels turn\n%s", test, turned, text)
		}
	}
}
