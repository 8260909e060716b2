package backend

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"fusee/backend/cpu"
	"fusee/graph"
)

// tensorMeta describes a contiguous CPU tensor.
func tensorMeta(dtype graph.DType, sizes ...int64) graph.Meta {
	shape := graph.Statics(sizes...)
	return graph.Meta{DType: dtype, Device: graph.Device{Type: "cpu"}, Sizes: shape, Strides: contiguousStrides(nil, shape)}
}

// aten appends a node with one fresh output.
func aten(g *graph.Graph, target string, meta graph.Meta, args ...graph.Value) *graph.Output {
	return g.Append(target, args, nil, []graph.OutputInfo{{Meta: meta}}, nil).Output(0)
}

// seedExample is relu(x + y) * 2 over the given sizes.
func seedExample(sizes ...int64) *graph.Graph {
	g := graph.NewGraph("f")
	meta := tensorMeta(graph.Float32, sizes...)
	x, y := g.AddTensor("x", meta), g.AddTensor("y", meta)
	sum := aten(g, "aten.add.Tensor", meta, x, y)
	relu := aten(g, "aten.relu.default", meta, sum)
	g.Outputs = []graph.Value{aten(g, "aten.mul.Tensor", meta, relu, int64(2))}
	return g
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden files")
	flag.Parse()
	os.Exit(m.Run())
}

// cpuEmitter makes an emitter with the LLVM that the environment names, or skips the test.
func cpuEmitter(t testing.TB) *CPUEmitter {
	t.Helper()
	path := os.Getenv("FUSEE_TEST_LLVM")
	if python := os.Getenv("FUSEE_TEST_PYTHON"); path == "" && python != "" {
		script := "import llvmlite, os; print(os.path.join(os.path.dirname(llvmlite.__file__), 'binding', 'libllvmlite.so'), end='')"
		output, err := exec.Command(python, "-c", script).Output()
		if err != nil {
			t.Fatal(err)
		}
		path = string(output)
	}
	if path == "" {
		t.Skip("FUSEE_TEST_LLVM and FUSEE_TEST_PYTHON are unset")
	}
	target, ok := cpu.HostTarget()
	if !ok {
		t.Skip("no kernels for this machine")
	}
	return &CPUEmitter{Toolchain: cpu.NewToolchain(path), Target: target}
}

func TestSeedExampleIsOneKernel(t *testing.T) {
	compiler := New(Options{Emitters: map[string]Emitter{"cpu": cpuEmitter(t)}, Check: true})
	compiled, err := compiler.Compile(seedExample(4))
	if err != nil {
		t.Fatal(err)
	}
	if len(compiled.Kernels) != 1 {
		t.Errorf("%d kernels", len(compiled.Kernels))
	}
	t.Logf("%v\n%s\n%s", compiled.Steps, compiled.Kernels[0].Loop, compiled.Plan)
}
