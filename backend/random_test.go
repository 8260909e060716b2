package backend

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"fusee/backend/loop"
	"fusee/graph"
)

// philoxWords is Philox4x32-10 in plain arithmetic.
func philoxWords(key uint64, counter [4]uint32) [4]uint32 {
	first, second := uint32(key), uint32(key>>32)
	for range 10 {
		one, two := uint64(counter[0])*0xD2511F53, uint64(counter[2])*0xCD9E8D57
		counter = [4]uint32{uint32(two>>32) ^ counter[1] ^ first, uint32(two), uint32(one>>32) ^ counter[3] ^ second, uint32(one)}
		first, second = first+0x9E3779B9, second+0xBB67AE85
	}
	return counter
}

// TestPhiloxVectors compares with the vectors of Random123 (kat_vectors).
func TestPhiloxVectors(t *testing.T) {
	for _, vector := range []struct {
		key           uint64
		counter, want [4]uint32
	}{
		{0, [4]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{1<<64 - 1, [4]uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0_a4093822, [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philoxWords(vector.key, vector.counter); got != vector.want {
			t.Errorf("%x: %x instead of %x", vector.counter, got, vector.want)
		}
	}
}

// deal runs what eager's kernels do: each thread takes lanes neighbours in turn; where that is one, it uses up the numbers that it drew at once
// before it draws again, else it draws at each turn.
func deal(seed uint64, first uint64, threads, lanes, elements, atOnce int) []float64 {
	result := make([]float64, elements)
	for thread := range threads {
		call := first
		draw := func() []float64 {
			words := philoxWords(seed, [4]uint32{uint32(call), uint32(call >> 32), uint32(thread), 0})
			call++
			return uniformNumbers(words, atOnce)
		}
		if lanes == 1 {
			for start := thread; start < elements; start += threads * atOnce {
				for turn, number := range draw() {
					if at := start + turn*threads; at < elements {
						result[at] = number
					}
				}
			}
			continue
		}
		for start := thread * lanes; start < elements; start += threads * lanes {
			var numbers []float64
			for len(numbers) < lanes {
				numbers = append(numbers, draw()...)
			}
			copy(result[start:start+lanes], numbers)
		}
	}
	return result
}

func uniformNumbers(words [4]uint32, atOnce int) []float64 {
	var result []float64
	if atOnce == 2 {
		for _, pair := range [][2]uint32{{words[0], words[1]}, {words[2], words[3]}} {
			result = append(result, float64(uint64(pair[0])^uint64(pair[1])<<21)/(1<<53)+1.0/(1<<54))
		}
		return result
	}
	for _, word := range words {
		result = append(result, float64(float32(word)*(1.0/(1<<32))+1.0/(1<<33)))
	}
	return result
}

// drawn runs a graph that draws for a tensor of the given layout, number 1 of the state's two.
func drawn(t *testing.T, state [4]uint64, lanes int64, sizes, strides []int64, dtype graph.DType) []loop.Bits {
	t.Helper()
	g := graph.NewGraph("drawn")
	cpu := graph.Device{Type: "cpu"}
	input := g.AddTensor("state", graph.Meta{DType: graph.Int64, Device: cpu, Sizes: graph.Statics(2, 4), Strides: graph.Statics(4, 1)})
	args := []graph.Value{input, int64(1), lanes, listOf(sizes), listOf(strides)}
	node, err := g.Call(graph.UniformTarget, args, []graph.Keyword{{Name: "dtype", Value: dtype}, {Name: "device", Value: cpu}}, graph.State{})
	if err != nil {
		t.Fatal(err)
	}
	g.Outputs = []graph.Value{node.Output(0)}
	storage := make([]byte, 64)
	for column, value := range state {
		binary.LittleEndian.PutUint64(storage[32+8*column:], value)
	}
	outputs, err := Run(context.Background(), g, []*Data{{DType: graph.Int64, Sizes: []int64{2, 4}, Strides: []int64{4, 1}, Storage: storage}}, true)
	if err != nil {
		t.Fatal(err)
	}
	flat := &Data{DType: dtype, Sizes: []int64{product(graph.Statics(sizes...))}, Strides: []int64{1}, Storage: outputs[0].Storage}
	return flat.Elements()
}

func listOf(numbers []int64) graph.List {
	list := graph.List{}
	for _, n := range numbers {
		list.Items = append(list.Items, n)
	}
	return list
}

// TestNumbersAreDealtAsEagerDeals compares kernels with a walk through eager's threads, in memory order.
func TestNumbersAreDealtAsEagerDeals(t *testing.T) {
	const seed, first, threads = 0x8123456789abcdef, 0xffffffff3, 512
	for _, c := range []struct {
		sizes, strides []int64
		lanes          int
		dtype          graph.DType
	}{
		{[]int64{1}, []int64{1}, 1, graph.Float32},
		{[]int64{4099}, []int64{1}, 1, graph.Float32},
		{[]int64{4099}, []int64{1}, 1, graph.Float64},
		{[]int64{40, 100}, []int64{1, 40}, 1, graph.Float32},
		{[]int64{2, 3, 512, 4}, []int64{6144, 1, 12, 3}, 2, graph.Float32},
		{[]int64{5, 2048}, []int64{2048, 1}, 4, graph.Float32},
		{[]int64{5, 2048}, []int64{1, 5}, 8, graph.Float32},
	} {
		count, atOnce := int(product(graph.Statics(c.sizes...))), 4
		if c.dtype == graph.Float64 {
			atOnce = 2
		}
		want := deal(seed, first, threads, c.lanes, count, atOnce)
		shift := uint64(0)
		for 1<<shift < c.lanes {
			shift++
		}
		for _, lanes := range []int64{int64(c.lanes), -1} {
			got := drawn(t, [4]uint64{seed, first, threads, shift}, lanes, c.sizes, c.strides, c.dtype)
			for element, number := range want {
				if got[element].Float() != number {
					t.Fatalf("%v, %d lanes: element %d is %v instead of %v", c.sizes, lanes, element, got[element].Float(), number)
				}
			}
		}
	}
}

// TestDropoutOfAGPU compiles what eager's dropout becomes: one step reads the generator, and the kernel of all else is passed what it says.
func TestDropoutOfAGPU(t *testing.T) {
	g := graph.NewGraph("dropped")
	sizes, strides := graph.Statics(6, 4), graph.Statics(4, 1)
	x := g.AddTensor("x", graph.Meta{DType: graph.BFloat16, Device: graph.Device{Type: "cuda"}, Sizes: sizes, Strides: strides})
	sine, err := g.Call("aten.sin.default", []graph.Value{x}, nil, graph.State{})
	if err != nil {
		t.Fatal(err)
	}
	dropped, err := g.Call("aten.dropout.default", []graph.Value{sine.Output(0), 0.5, true}, nil, graph.State{})
	if err != nil {
		t.Fatal(err)
	}
	g.Outputs = []graph.Value{dropped.Output(0)}
	drawn, err := g.Draw(graph.Drawing{On: func(string) bool { return true }}, graph.State{})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := New(Options{Emitters: map[string]Emitter{"cuda": wasmEmitter{}}, Check: true}).Compile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"slot 1 = state of the generator of cuda:0", "slot 2 = alloc", "kernel k_fused_sin_uniform_lt_mul_mul", "free slot 1"}
	if len(compiled.Steps) != len(want) {
		t.Fatalf("%q", compiled.Steps)
	}
	for index, step := range compiled.Steps {
		if !strings.HasPrefix(step, want[index]) {
			t.Errorf("%q instead of %q", step, want[index])
		}
	}
}
