package backend

import (
	"context"
	"math"
	"testing"

	"fusee/backend/loop"
	"fusee/graph"
)

// on makes a description of a contiguous tensor on a GPU.
func on(sizes ...int64) graph.Meta {
	meta := tensorMeta(graph.Float32, sizes...)
	meta.Device = graph.Device{Type: "cuda"}
	return meta
}

// decodingLayer is x + attention(norm(x)) of one token, with as many keys as given, as decoders write it.
func decodingLayer(t *testing.T, keys int64) *graph.Graph {
	t.Helper()
	const width, heads = 24, 3
	g := graph.NewGraph("layer")
	x, scale, shift := g.AddTensor("x", on(1, 1, width)), g.AddTensor("scale", on(width)), g.AddTensor("shift", on(width))
	project, bias, out := g.AddTensor("project", on(width, width)), g.AddTensor("bias", on(width)), g.AddTensor("out", on(width, width))
	key, value := g.AddTensor("key", on(1, heads, keys, width/heads)), g.AddTensor("value", on(1, heads, keys, width/heads))
	call := func(target string, args ...graph.Value) graph.Value {
		node, err := g.Call(target, args, nil, graph.State{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Output(0)
	}
	list := func(sizes ...int64) graph.Value {
		var result graph.List
		for _, size := range sizes {
			result.Items = append(result.Items, size)
		}
		return result
	}
	normal := call("torch.layer_norm", x, list(width), scale, shift, 1e-5)
	query := call("torch._C._nn.linear", normal, project, bias)
	query = call("Tensor.transpose", call("Tensor.view", query, int64(1), int64(1), int64(heads), int64(width/heads)), int64(1), int64(2))
	var attended graph.Value = aten(g, "aten.scaled_dot_product_attention.default", on(1, heads, 1, width/heads), query, key, value)
	attended = call("Tensor.reshape", call("Tensor.transpose", attended, int64(1), int64(2)), int64(1), int64(1), int64(width))
	g.Outputs = []graph.Value{call("torch.add", x, call("torch._C._nn.linear", attended, out))}
	return g
}

// decoded computes the layer in double precision.
func decoded(inputs [][]float64, keys int) []float64 {
	const width, heads = 24, 3
	x, scale, shift, project, bias, out, key, value := inputs[0], inputs[1], inputs[2], inputs[3], inputs[4], inputs[5], inputs[6], inputs[7]
	mean, variance := 0.0, 0.0
	for _, element := range x {
		mean += element / width
	}
	for _, element := range x {
		variance += (element - mean) * (element - mean) / width
	}
	normal := make([]float64, width)
	for index := range normal {
		normal[index] = (x[index]-mean)/math.Sqrt(variance+1e-5)*scale[index] + shift[index]
	}
	times := func(matrix, row []float64) []float64 {
		result := make([]float64, width)
		for index := range matrix {
			result[index/width] += matrix[index] * row[index%width]
		}
		return result
	}
	query := times(project, normal)
	attended := make([]float64, width)
	const each = width / heads
	for head := range heads {
		total, weights := 0.0, make([]float64, keys)
		for place := range keys {
			score := 0.0
			for index := range each {
				score += (query[head*each+index] + bias[head*each+index]) * key[(head*keys+place)*each+index] / math.Sqrt(each)
			}
			weights[place] = math.Exp(score)
			total += weights[place]
		}
		for place := range keys {
			for index := range each {
				attended[head*each+index] += weights[place] / total * value[(head*keys+place)*each+index]
			}
		}
	}
	result := times(out, attended)
	for index := range result {
		result[index] += x[index]
	}
	return result
}

func TestDecodingOneTokenNeedsNoLibrary(t *testing.T) {
	for _, keys := range []int64{1, 5} {
		g := decodingLayer(t, keys)
		inputs, err := RandomInputs(g, 3)
		if err != nil {
			t.Fatal(err)
		}
		numbers := make([][]float64, len(inputs))
		for index, input := range inputs {
			for _, element := range input.Elements() {
				numbers[index] = append(numbers[index], element.Float())
			}
		}
		for _, fuse := range []bool{true, false} {
			outputs, err := Run(context.Background(), g, inputs, fuse)
			if err != nil {
				t.Fatalf("%d keys: %+v", keys, err)
			}
			for index, want := range decoded(numbers, int(keys)) {
				if got := outputs[0].Elements()[index].Float(); math.Abs(got-want) > 1e-5*(1+math.Abs(want)) {
					t.Errorf("%d keys, fused %v: element %d is %g, not %g", keys, fuse, index, got, want)
				}
			}
		}
	}
}

func TestNormalisationBelongsToTheProductAfterIt(t *testing.T) {
	compiler := New(Options{Emitters: map[string]Emitter{"cuda": wasmEmitter{}}, Check: true})
	for keys, kernels := range map[int64]int{1: 3, 5: 4} {
		compiled, err := compiler.Compile(decodingLayer(t, keys))
		if err != nil {
			t.Fatal(err)
		}
		if len(compiled.Kernels) != kernels {
			t.Errorf("%d keys: %d kernels, not %d: %s", keys, len(compiled.Kernels), kernels, compiled.Steps)
		}
	}
}

// TestConstantsAreInputsThatNothingWrites looks at the buffers that kernels may read before the kernel ahead of them has ended.
func TestConstantsAreInputsThatNothingWrites(t *testing.T) {
	for _, written := range []bool{false, true} {
		g := decodingLayer(t, 5)
		if written {
			result := aten(g, "aten.relu_.default", on(1, 1, 24), g.Inputs[0])
			result.Node.Mutates, result.Node.Outputs[0].Relation = []graph.Value{g.Inputs[0]}, graph.SameAs(g.Inputs[0])
		}
		compiler := New(Options{Emitters: map[string]Emitter{"cuda": wasmEmitter{}}, Check: true})
		state, err := compiler.run(g, "loops")
		if err != nil {
			t.Fatal(err)
		}
		marked, first := 0, 0
		for index, k := range state.kernels {
			if k == nil {
				continue
			}
			for number, buffer := range k.loop.Buffers {
				if buffer.Constant {
					marked++
					if root := k.arguments[number]; root.producer != nil || buffer.Mode != loop.Read {
						t.Errorf("kernel %d: %s is no constant", index, root.name)
					}
				}
			}
			if k.loop.First {
				first++
			}
		}
		if (marked > 0) == written || first > 1 || (first == 1) == written {
			t.Errorf("an input is written: %v; %d constant buffers, %d first kernels", written, marked, first)
		}
	}
}
