package cuda_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"fusee/backend"
	"fusee/backend/cuda"
	"fusee/backend/cuda/internal/find"
	"fusee/backend/cuda/nvrtc"
	"fusee/backend/loop"
	"fusee/graph"
)

// recorded is the part of graph/testdata/oracle.json that says which functions were called with what.
type recorded struct {
	Tensors [][5]any // dtype, sizes, strides, offset, requires_grad
	Cases   [][5]any // target, arguments, keywords, grad mode, result
}

func readRecorded(t *testing.T) *recorded {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "graph", "testdata", "oracle.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

func integers(value any) []graph.Size {
	var result []int64
	for _, item := range value.([]any) {
		result = append(result, int64(item.(float64)))
	}
	return graph.Statics(result...)
}

// tensor adds the k-th recorded tensor, moved to a GPU, to g.
func (r *recorded) tensor(g *graph.Graph, k int) graph.Value {
	spec := r.Tensors[k]
	dtype, _ := graph.ParseDType(spec[0].(string))
	return g.AddTensor("", graph.Meta{
		DType: dtype, Device: graph.Device{Type: "cuda"}, Sizes: integers(spec[1]), Strides: integers(spec[2]),
		Offset: graph.Static(int64(spec[3].(float64))), Flags: graph.FlagLeaf,
	})
}

// value decodes an argument; false for kinds that kernels have nothing to do with.
func (r *recorded) value(g *graph.Graph, v any) (graph.Value, bool) {
	switch v := v.(type) {
	case string:
		if index, isTensor := strings.CutPrefix(v, "@"); isTensor {
			k, err := strconv.Atoi(index)
			return r.tensor(g, k), err == nil
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v), true
		}
	case []any:
		items, ok := r.values(g, v)
		return graph.List{Items: items}, ok
	case map[string]any:
		name, isType := v["d"].(string)
		dtype, known := graph.ParseDType(name)
		return dtype, isType && known
	}
	return v, true
}

func (r *recorded) values(g *graph.Graph, items []any) ([]graph.Value, bool) {
	var result []graph.Value
	for _, item := range items {
		value, ok := r.value(g, item)
		if !ok {
			return nil, false
		}
		result = append(result, value)
	}
	return result, true
}

// graphOf builds a graph of one recorded call, nil when the graph room leaves it to the host.
func (r *recorded) graphOf(call [5]any) *graph.Graph {
	g := graph.NewGraph("case")
	args, ok := r.values(g, call[1].([]any))
	var keywords []graph.Keyword
	names := call[2].(map[string]any)
	for name, v := range names {
		value, decoded := r.value(g, v)
		keywords, ok = append(keywords, graph.Keyword{Name: name, Value: value}), ok && decoded
	}
	if !ok || call[4] == nil {
		return nil
	}
	node, err := g.Call(call[0].(string), args, keywords, graph.State{})
	if err != nil {
		return nil
	}
	if output, isTensor := node.Result.(*graph.Output); isTensor {
		g.Outputs = []graph.Value{output}
		return g
	}
	return nil
}

// printer is an emitter that prints and keeps the kernels it is given.
type printer struct {
	kernels []*loop.Kernel
	seen    map[string]bool
}

func (p *printer) Emit(kernels []*loop.Kernel) ([]backend.Image, error) {
	images := make([]backend.Image, len(kernels))
	for i, kernel := range kernels {
		source, err := cuda.Emit(kernel, cuda.Options{})
		if err != nil {
			return nil, err
		}
		images[i] = backend.Image{Source: source.Text, Block: int64(source.Threads), Items: int64(source.Items)}
		if !p.seen[kernel.Name] {
			p.seen[kernel.Name] = true
			p.kernels = append(p.kernels, kernel)
		}
	}
	return images, nil
}

// kernelsOfCalls compiles every recorded call whose function and first tensor are new together, for a GPU, and returns the kernels by function.
func kernelsOfCalls(t *testing.T) map[string][]*loop.Kernel {
	r, result, met := readRecorded(t), map[string][]*loop.Kernel{}, map[string]bool{}
	for _, call := range r.Cases {
		key := fmt.Sprint(call[0], call[1], len(call[2].(map[string]any)))
		if g := r.graphOf(call); g != nil && !met[key] {
			met[key] = true
			p := &printer{seen: map[string]bool{}}
			compiler := backend.New(backend.Options{Emitters: map[string]backend.Emitter{"cuda": p}})
			if _, err := compiler.Compile(g); err != nil {
				t.Errorf("%s%v: %v", call[0], call[1], err)
			}
			result[call[0].(string)] = append(result[call[0].(string)], p.kernels...)
		}
	}
	return result
}

// TestKernelsOfRecordedCallsCompile prints the kernels of thousands of calls, and compiles one of each function, taking element types and
// architectures in turn.
func TestKernelsOfRecordedCallsCompile(t *testing.T) {
	byFunction := kernelsOfCalls(t)
	var functions []string
	printed := 0
	for function, kernels := range byFunction {
		printed += len(kernels)
		if len(kernels) > 0 {
			functions = append(functions, function)
		}
	}
	slices.Sort(functions)
	if len(functions) < 150 {
		t.Errorf("only %d functions become kernels", len(functions))
	}
	library, err := nvrtc.Open(find.NVRTC(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	for turn, architecture := range []string{"sm_80", "sm_90", "sm_100"} {
		var chosen []*loop.Kernel
		for i := turn; i < len(functions); i += 3 {
			kernels := byFunction[functions[i]]
			chosen = append(chosen, kernels[i/3%len(kernels)])
		}
		compiler := cuda.Compiler{Library: library, Architecture: architecture}
		if _, err := compiler.Compile(chosen); err != nil {
			t.Errorf("%s: %v\n%v", architecture, err, errors.GetAllDetails(err))
		}
	}
	t.Logf("%d kernels printed, %d compiled", printed, len(functions))
}
