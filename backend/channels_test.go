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

// residual is relu(norm(conv(relu(norm(conv(x))))) + x), with the last two in place, three times.
func residual(t *testing.T, observed bool) *graph.Graph {
	t.Helper()
	g := graph.NewGraph("residual")
	meta := func(sizes ...int64) graph.Meta {
		result := tensorMeta(graph.Float32, sizes...)
		result.Device = graph.Device{Type: "cuda"}
		return result
	}
	image := meta(2, 4, 8, 8)
	pair := func(item int64) graph.Value { return graph.List{Items: []graph.Value{item, item}} }
	var x graph.Value = g.AddTensor("x", image)
	mean, variance := g.AddTensor("mean", meta(4)), g.AddTensor("variance", meta(4))
	normalised := func(x graph.Value) *graph.Output {
		made := aten(g, "aten.conv2d.default", image, x, g.AddTensor("weight", meta(4, 4, 3, 3)), nil, pair(1), pair(1))
		return aten(g, "aten.batch_norm.default", image, made, nil, nil, mean, variance, false, 0.1, 1e-5, true)
	}
	inPlace := func(target string, value *graph.Output, args ...graph.Value) *graph.Output {
		result := aten(g, target, image, append([]graph.Value{value}, args...)...)
		result.Node.Mutates, result.Node.Outputs[0].Relation = []graph.Value{value}, graph.SameAs(value)
		return result
	}
	for range 3 {
		first := normalised(x)
		hidden := aten(g, "aten.relu.default", image, first)
		sum := inPlace("aten.add_.Tensor", normalised(hidden), x)
		if observed {
			g.Outputs = append(g.Outputs, aten(g, "aten.mean.dim", meta(2, 4), first, graph.List{Items: []graph.Value{int64(2), int64(3)}}))
		}
		x = inPlace("aten.relu_.default", sum)
	}
	g.Outputs = append(g.Outputs, aten(g, "aten.mean.dim", meta(2, 4), x, graph.List{Items: []graph.Value{int64(2), int64(3)}}))
	return g
}

func TestNormsAndActivationsAreFoldedIntoConvolutions(t *testing.T) {
	compiler := New(Options{Emitters: map[string]Emitter{"cuda": wasmEmitter{}}, Check: true})
	for observed, want := range map[bool][3]int{false: {3, 3, 0}, true: {0, 3, 3}} {
		compiled, err := compiler.Compile(residual(t, observed))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(compiled.Steps, "\n")
		got := [3]int{strings.Count(text, "cudnn_convolution_relu"), strings.Count(text, "cudnn_convolution_add_relu"), strings.Count(text, "aten.conv2d")}
		if got != want {
			t.Errorf("observed %v: calls %v, not %v\n%s", observed, got, want, text)
		}
	}
}

// TestVectorsAreWrittenBesideImages checks that a formula stored over a vector is no barrier where images lie otherwise than the program says, and that one stored
// over an image is.
func TestVectorsAreWrittenBesideImages(t *testing.T) {
	for _, image := range []bool{false, true} {
		g := convolutions(t, "cuda", 3, false)
		sizes := []int64{4}
		if image {
			sizes = []int64{2, 4, 8, 8}
		}
		meta := tensorMeta(graph.Float32, sizes...)
		meta.Device = graph.Device{Type: "cuda"}
		for range 2 {
			statistics, found := g.AddTensor("statistics", meta), g.AddTensor("found", meta)
			if _, err := g.Call("Tensor.lerp_", []graph.Value{statistics, found, 0.1}, nil, graph.State{}); err != nil {
				t.Fatal(err)
			}
		}
		compiler := New(Options{Emitters: map[string]Emitter{"cuda": wasmEmitter{}}, Check: true, Disjoint: true})
		state, err := compiler.run(g, "plan")
		if err != nil {
			t.Fatal(err)
		}
		segments := state.program.operations[len(state.program.operations)-1].segment
		if (segments > 0) != image {
			t.Errorf("image %v: %d barriers", image, segments)
		}
	}
}
