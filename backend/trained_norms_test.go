package backend

import (
	"context"
	"math"
	"slices"
	"testing"

	"fusee/graph"
)

// onGPU is a float32 tensor with the channels of each place together, or row by row.
func onGPU(g *graph.Graph, together bool, sizes ...int64) graph.Meta {
	meta := graph.Meta{DType: graph.Float32, Device: graph.Device{Type: "cuda"}, Sizes: graph.Statics(sizes...), Strides: contiguousStrides(g.Shapes, graph.Statics(sizes...))}
	if together {
		meta.Strides = graph.Statics(sizes[1]*sizes[2]*sizes[3], 1, sizes[1]*sizes[3], sizes[1])
	}
	return meta
}

// results appends an operator with several results.
func results(g *graph.Graph, target string, args []graph.Value, metas ...graph.Meta) *graph.Node {
	infos := make([]graph.OutputInfo, len(metas))
	for i, meta := range metas {
		infos[i].Meta = meta
	}
	return g.Append(target, args, nil, infos, nil)
}

// norm holds the sizes of a test, [N, C, H, W], and its numbers in the order of the dimensions.
type norm struct{ n, c, h, w int }

func (s norm) count() float64 { return float64(s.n * s.h * s.w) }

// each calls f with the position of every element and its channel.
func (s norm) each(f func(at, channel int)) {
	for at := range s.n * s.c * s.h * s.w {
		f(at, at/(s.h*s.w)%s.c)
	}
}

// reference computes a batch norm and its gradients in float64.
func (s norm) reference(x, gradient, weight, bias []float64) (result, mean, scale, ofInput, ofWeight, ofBias []float64) {
	result, ofInput = make([]float64, len(x)), make([]float64, len(x))
	mean, scale, ofWeight, ofBias = make([]float64, s.c), make([]float64, s.c), make([]float64, s.c), make([]float64, s.c)
	s.each(func(at, c int) { mean[c] += x[at] / s.count() })
	s.each(func(at, c int) { scale[c] += (x[at] - mean[c]) * (x[at] - mean[c]) / s.count() })
	for c := range scale {
		scale[c] = 1 / math.Sqrt(scale[c]+1e-5)
	}
	s.each(func(at, c int) {
		normal := (x[at] - mean[c]) * scale[c]
		result[at] = normal*weight[c] + bias[c]
		ofWeight[c] += gradient[at] * normal
		ofBias[c] += gradient[at]
	})
	s.each(func(at, c int) {
		normal := (x[at] - mean[c]) * scale[c]
		ofInput[at] = scale[c] * weight[c] * (gradient[at] - ofBias[c]/s.count() - normal*ofWeight[c]/s.count())
	})
	return result, mean, scale, ofInput, ofWeight, ofBias
}

// lay puts numbers in the order of the dimensions into the order of memory.
func (s norm) lay(values []float64, together bool) *Data {
	sizes := []int64{int64(s.n), int64(s.c), int64(s.h), int64(s.w)}
	if !together {
		return floats(values, sizes...)
	}
	stored := make([]float64, len(values))
	for at, value := range values {
		w, h, c, n := at%s.w, at/s.w%s.h, at/(s.w*s.h)%s.c, at/(s.w*s.h*s.c)
		stored[((n*s.h+h)*s.w+w)*s.c+c] = value
	}
	data := floats(stored, sizes...)
	data.Strides = []int64{sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]}
	return data
}

// TestTrainedBatchNorm compares the loops of a norm by the statistics of the batch, and of its gradients, with float64, far off zero too.
func TestTrainedBatchNorm(t *testing.T) {
	for _, s := range []norm{{2, 3, 4, 5}, {16, 3, 17, 16}} {
		for _, together := range []bool{false, true} {
			checkBatchNorm(t, s, together)
		}
	}
}

func checkBatchNorm(t *testing.T, s norm, together bool) {
	t.Helper()
	g := graph.NewGraph("norm")
	image := onGPU(g, together, int64(s.n), int64(s.c), int64(s.h), int64(s.w))
	vector := onGPU(g, false, int64(s.c))
	x, gradient, weight, bias := g.AddTensor("x", image), g.AddTensor("gradient", image), g.AddTensor("weight", vector), g.AddTensor("bias", vector)
	forward := results(g, "aten.native_batch_norm.default", []graph.Value{x, weight, bias, nil, nil, true, 0.1, 1e-5}, image, vector, vector)
	mask := graph.List{Items: []graph.Value{true, true, true}}
	backward := results(g, "aten.native_batch_norm_backward.default",
		[]graph.Value{gradient, x, weight, nil, nil, forward.Output(1), forward.Output(2), true, 1e-5, mask}, image, vector, vector)
	for _, node := range []*graph.Node{forward, backward} {
		for i := range node.Outputs {
			g.Outputs = append(g.Outputs, node.Output(i))
		}
	}
	values := make([][]float64, 2)
	for k := range values {
		values[k] = make([]float64, s.n*s.c*s.h*s.w)
		s.each(func(at, c int) {
			values[k][at] = float64((at*(k+3)*7919)%97)/50 + float64(10*c*(1-k)) - 0.96*float64(k)
		})
	}
	scales, shifts := []float64{0.5, 2, -1}, []float64{0, 1, -3}
	inputs := []*Data{s.lay(values[0], together), s.lay(values[1], together), floats(scales, 3), floats(shifts, 3)}
	outputs, err := Run(context.Background(), g, inputs, true)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	a, b, c, d, e, f := s.reference(values[0], values[1], scales, shifts)
	for k, want := range [][]float64{a, b, c, d, e, f} {
		largest := 0.0
		for _, value := range want {
			largest = max(largest, math.Abs(value))
		}
		for at, got := range outputs[k].Elements() {
			if math.Abs(got.Float()-want[at]) > 2e-5*largest {
				t.Fatalf("%v together=%v: result %d is %v at %d, not %v", s, together, k, got.Float(), at, want[at])
			}
		}
	}
}

// TestTrainedLayerNorm compares the loops of the gradients of a norm of rows with float64.
func TestTrainedLayerNorm(t *testing.T) {
	const rows, columns = 600, 20
	g := graph.NewGraph("norm")
	matrix, vector, column := onGPU(g, false, rows, columns), onGPU(g, false, columns), onGPU(g, false, rows, 1)
	x, gradient, weight := g.AddTensor("x", matrix), g.AddTensor("gradient", matrix), g.AddTensor("weight", vector)
	shape := graph.List{Items: []graph.Value{int64(columns)}}
	forward := results(g, "aten.native_layer_norm.default", []graph.Value{x, shape, weight, nil, 1e-5}, matrix, column, column)
	mask := graph.List{Items: []graph.Value{true, true, true}}
	backward := results(g, "aten.native_layer_norm_backward.default",
		[]graph.Value{gradient, x, shape, forward.Output(1), forward.Output(2), weight, nil, mask}, matrix, vector, vector)
	g.Outputs = []graph.Value{backward.Output(0), backward.Output(1), backward.Output(2)}
	// Rows are the channels of a batch norm without scale, whose gradients are multiplied by the weight before.
	s := norm{1, rows, 1, columns}
	values, gradients, weighted, scales := make([]float64, rows*columns), make([]float64, rows*columns), make([]float64, rows*columns), make([]float64, columns)
	ones, zeros := make([]float64, rows), make([]float64, rows)
	s.each(func(at, row int) {
		values[at], gradients[at] = float64(at*7919%97)/50+float64(row%5), float64(at*104729%89)/40-1
		scales[at%columns], ones[row] = float64(at%columns%7)/4-0.5, 1
		weighted[at] = gradients[at] * scales[at%columns]
	})
	outputs, err := Run(context.Background(), g, []*Data{floats(values, rows, columns), floats(gradients, rows, columns), floats(scales, columns)}, true)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	_, mean, scale, ofInput, _, _ := s.reference(values, weighted, ones, zeros)
	ofWeight, ofBias := make([]float64, columns), make([]float64, columns)
	s.each(func(at, row int) {
		ofWeight[at%columns] += gradients[at] * (values[at] - mean[row]) * scale[row]
		ofBias[at%columns] += gradients[at]
	})
	for k, want := range [][]float64{ofInput, ofWeight, ofBias} {
		for at, got := range outputs[k].Elements() {
			if math.Abs(got.Float()-want[at]) > 1e-4 {
				t.Fatalf("result %d is %v at %d, not %v", k, got.Float(), at, want[at])
			}
		}
	}
}

// TestGroupsOfEqualSizes checks that images of as many channels as there are images are fused as others are, and not with the two dimensions exchanged.
func TestGroupsOfEqualSizes(t *testing.T) {
	square, other := fusedOperations(t, norm{64, 64, 28, 28}), fusedOperations(t, norm{32, 64, 28, 28})
	if !slices.EqualFunc(square, other, slices.Equal[[]string]) {
		t.Errorf("fused %v, not %v", square, other)
	}
}

// fusedOperations lists what the kernels of the gradients of two norms, whose results were added, are made of.
func fusedOperations(t *testing.T, s norm) [][]string {
	t.Helper()
	g := graph.NewGraph("norms")
	image, vector := onGPU(g, true, int64(s.n), int64(s.c), int64(s.h), int64(s.w)), onGPU(g, false, int64(s.c))
	gradient := g.AddTensor("gradient", image)
	for range 2 {
		x, weight, mean, scale := g.AddTensor("x", image), g.AddTensor("weight", vector), g.AddTensor("mean", vector), g.AddTensor("scale", vector)
		mask := graph.List{Items: []graph.Value{true, true, true}}
		node := results(g, "aten.native_batch_norm_backward.default", []graph.Value{gradient, x, weight, nil, nil, mean, scale, true, 1e-5, mask}, image, vector, vector)
		g.Outputs = append(g.Outputs, node.Output(0), node.Output(1), node.Output(2))
	}
	compiler := New(Options{Emitters: map[string]Emitter{"cuda": wasmEmitter{}}, Check: true, Disjoint: true})
	state, err := compiler.run(g, "plan")
	if err != nil {
		t.Fatal(err)
	}
	var result [][]string
	for _, k := range state.kernels {
		result = append(result, k.operations)
	}
	return result
}
