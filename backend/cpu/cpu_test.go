package cpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"fusee/backend/loop"
)

// library returns the path of libllvmlite that the environment names, or skips the test.
func library(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("FUSEE_TEST_LLVM"); path != "" {
		return path
	}
	python := os.Getenv("FUSEE_TEST_PYTHON")
	if python == "" {
		t.Skip("FUSEE_TEST_LLVM and FUSEE_TEST_PYTHON are unset")
	}
	script := "import llvmlite, os; print(os.path.join(os.path.dirname(llvmlite.__file__), 'binding', 'libllvmlite.so'), end='')"
	output, err := exec.Command(python, "-c", script).Output()
	if err != nil {
		t.Fatalf("asking %s for llvmlite: %v", python, err)
	}
	return string(output)
}

func hostTarget(t testing.TB) Target {
	t.Helper()
	target, ok := HostTarget()
	if !ok {
		t.Skipf("kernels are not emitted for %s", runtime.GOARCH)
	}
	return target
}

// link makes a callable function of an object file.
func link(t testing.TB, symbol string, object []byte) func(pointers []unsafe.Pointer, scalars []int64, begin, end int64) int64 {
	t.Helper()
	return linkAll(t, map[string][]byte{symbol: object})[symbol]
}

// linkAll makes callable functions of object files, by symbol.
func linkAll(t testing.TB, objects map[string][]byte) map[string]func(pointers []unsafe.Pointer, scalars []int64, begin, end int64) int64 {
	t.Helper()
	directory := t.TempDir()
	shared, arguments := filepath.Join(directory, "kernels.so"), filepath.Join(directory, "arguments")
	var sources strings.Builder
	for symbol, object := range objects {
		source := filepath.Join(directory, symbol+".o")
		if err := os.WriteFile(source, object, 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&sources, source)
	}
	if err := os.WriteFile(arguments, []byte(sources.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("cc", "-shared", "-o", shared, "@"+arguments, "-lmvec", "-lm").CombinedOutput(); err != nil {
		t.Skipf("no C compiler links the kernels: %v\n%s", err, output)
	}
	handle, err := purego.Dlopen(shared, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = purego.Dlclose(handle) })
	functions := map[string]func(pointers []unsafe.Pointer, scalars []int64, begin, end int64) int64{}
	for symbol := range objects {
		var entry func(pointers, scalars unsafe.Pointer, begin, end int64) int64
		purego.RegisterLibFunc(&entry, handle, symbol)
		functions[symbol] = func(pointers []unsafe.Pointer, scalars []int64, begin, end int64) int64 {
			return entry(unsafe.Pointer(unsafe.SliceData(pointers)), unsafe.Pointer(unsafe.SliceData(scalars)), begin, end)
		}
	}
	return functions
}

func reluAddMul(size int64) *loop.Kernel {
	b := loop.NewBuilder("relu_add_mul", loop.Static(size))
	x, y, out := b.Buffer("x", loop.F32, loop.Read), b.Buffer("y", loop.F32, loop.Read), b.Buffer("out", loop.F32, loop.Write)
	b.Stage()
	one, zero := loop.Static(1), loop.Static(0)
	sum := b.Do(loop.OpAdd, loop.F32, b.Load(x, zero, one), b.Load(y, zero, one))
	limit := b.Constant(loop.F32, loop.FloatBits(0))
	relu := b.Do(loop.OpSelect, loop.F32, b.Do(loop.OpLess, loop.Bool, sum, limit), limit, sum)
	b.Store(b.Do(loop.OpMultiply, loop.F32, relu, b.Constant(loop.F32, loop.FloatBits(2))), out, zero, one)
	return b.Kernel
}

func TestSeedExampleKernel(t *testing.T) {
	target, toolchain := hostTarget(t), NewToolchain(library(t))
	start := time.Now()
	if err := toolchain.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("loading LLVM: %v", time.Since(start))
	const size = 1 << 20
	kernel := reluAddMul(size)
	text := Emit(kernel, target)
	start = time.Now()
	object, err := toolchain.Compile(text, target)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("first compile: %v, %d bytes", time.Since(start), len(object))
	start = time.Now()
	if _, err := toolchain.Compile(text, target); err != nil {
		t.Fatal(err)
	}
	t.Logf("second compile: %v\n%s", time.Since(start), text)
	run := link(t, kernel.Name, object)
	x, y, out := make([]float32, size), make([]float32, size), make([]float32, size)
	for index := range x {
		x[index], y[index] = float32(index%7)-3, 0.5
	}
	pointers := []unsafe.Pointer{unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&out[0])}
	best := time.Hour
	for range 20 {
		start := time.Now()
		run(pointers, nil, 0, size)
		best = min(best, time.Since(start))
	}
	t.Logf("2^20 floats on one core: %v", best)
	for index := range out {
		if want := max(x[index]+y[index], 0) * 2; out[index] != want {
			t.Fatalf("element %d is %v, want %v", index, out[index], want)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	target, toolchain := hostTarget(b), NewToolchain(library(b))
	if err := toolchain.Wait(); err != nil {
		b.Fatal(err)
	}
	kernel := reluAddMul(1 << 20)
	for b.Loop() {
		if _, err := toolchain.Compile(Emit(kernel, target), target); err != nil {
			b.Fatal(err)
		}
	}
}
