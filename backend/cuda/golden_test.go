package cuda_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fusee/backend/cuda"
	"fusee/backend/cuda/internal/find"
	"fusee/backend/cuda/nvrtc"
	"fusee/backend/loop"
)

var update = flag.Bool("update", false, "rewrite the golden files with what is printed now")

// goldenKernels names the kernels whose source people read in testdata.
func goldenKernels() []string {
	return []string{"add_relu", "add_relu_aligned", "dynamic_rows", "masked", "mixed_types", "layer_norm", "softmax_block", "normaliser", "gathered", "side_by_side", "parts", "chosen_score", "pieces_odd",
		"softmax_dynamic", "column_sum", "total_sum", "positions", "op_divide_floor", "drawn"}
}

func named(t *testing.T, name string) *loop.Kernel {
	t.Helper()
	for _, kernel := range corpus() {
		if kernel.Name == name {
			return kernel
		}
	}
	t.Fatalf("no kernel %s in the corpus", name)
	return nil
}

// TestGolden compares sources with testdata; `go test ./backend/cuda -update` rewrites them.
func TestGolden(t *testing.T) {
	for _, name := range goldenKernels() {
		kernel := named(t, name)
		source, err := cuda.Emit(kernel, cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := "/*\n" + kernel.String() + "*/\n" + source.Text
		path := filepath.Join("testdata", name+".cu")
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != text {
			t.Errorf("%s differs from what is printed now (%v); look at it and run with -update", path, err)
		}
	}
}

func TestPrintingIsDeterministic(t *testing.T) {
	for _, kernel := range corpus() {
		first, err := cuda.Emit(kernel, cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if second, err := cuda.Emit(kernel, cuda.Options{}); err != nil || second != first {
			t.Errorf("%s: the second source differs (%v)", kernel.Name, err)
		}
	}
}

func TestDependentLaunchWaitsFirst(t *testing.T) {
	for _, name := range []string{"add_relu", "softmax_warp"} {
		source, err := cuda.Emit(named(t, name), cuda.Options{DependentLaunch: true})
		if err != nil {
			t.Fatal(err)
		}
		body := source.Text[strings.Index(source.Text, source.Symbol):]
		wait, load := strings.Index(body, "griddepcontrol.wait"), strings.Index(body, "load<")
		if wait < 0 || load < wait {
			t.Errorf("%s: no wait before the first load:\n%s", name, body)
		}
	}
}

func TestEmitRefuses(t *testing.T) {
	tooMany := loop.NewBuilder("too_many", loop.Static(64))
	tooMany.Buffer("x", loop.F64, loop.Read)
	tooMany.Stage(loop.Static(2000))
	for range 20 {
		tooMany.Reduce(loop.Sum, loop.F64, tooMany.Load(0, loop.Int{}, loop.Statics(1, 64)...))
	}
	invalid := addRelu("not an identifier", loop.Static(4), 4)
	for _, kernel := range []*loop.Kernel{tooMany.Kernel, invalid} {
		if source, err := cuda.Emit(kernel, cuda.Options{}); err == nil {
			t.Errorf("%s is printed:\n%s", kernel.Name, source.Text)
		}
	}
}

// TestDependentLaunchFetchesAhead compiles a product of a row by a matrix, whose rows may be fetched before the row is there.
func TestDependentLaunchFetchesAhead(t *testing.T) {
	b := loop.NewBuilder("row_by_matrix", loop.Static(512))
	row, matrix := b.Buffer("row", loop.BF16, loop.Read), b.Buffer("matrix", loop.BF16, loop.Read)
	result := b.Buffer("result", loop.F32, loop.Write)
	b.Stage(loop.Static(768))
	left := b.Cast(loop.F32, b.Load(row, loop.Int{}, loop.Statics(0, 1)...))
	right := b.Cast(loop.F32, b.Load(matrix, loop.Int{}, loop.Statics(768, 1)...))
	total := b.Reduce(loop.Sum, loop.F32, b.Do(loop.OpMultiply, loop.F32, left, right))
	b.Stage()
	b.Store(total, result, loop.Int{}, loop.Static(1))
	options := cuda.OptionsFor("sm_90")
	source, err := cuda.Emit(b.Kernel, options)
	if err != nil {
		t.Fatal(err)
	}
	body := source.Text[strings.Index(source.Text, source.Symbol):]
	fetch, wait := strings.Index(body, "prefetch.global.L2"), strings.Index(body, "griddepcontrol.wait")
	if fetch < 0 || fetch > wait || strings.Count(body, "prefetch") != 1 {
		t.Errorf("the rows of the matrix alone are to be fetched ahead:\n%s", body)
	}
	library, err := nvrtc.Open(find.NVRTC(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	compiler := cuda.Compiler{Library: library, Architecture: "sm_90", Options: options}
	if _, err := compiler.Compile([]*loop.Kernel{b.Kernel}); err != nil {
		t.Errorf("%v\n%s", err, body)
	}
}
