package cpu

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"fusee/backend/internal/kerneltest"
)

// compileAll compiles kernels as one module, because linking each by itself would take most of the test's time.
func compileAll(t *testing.T, toolchain *Toolchain, target Target, cases []kerneltest.Case) map[string]func([]unsafe.Pointer, []int64, int64, int64) int64 {
	t.Helper()
	objects := map[string][]byte{}
	for index := range cases {
		kernel := cases[index].Kernel
		kernel.Name = fmt.Sprintf("kernel_%d", index)
		text := Emit(kernel, target)
		if err := toolchain.verify(text); err != nil {
			t.Fatalf("%s: %v\n%s", cases[index].Name, err, text)
		}
		object, err := toolchain.Compile(text, target)
		if err != nil {
			t.Fatalf("%s: %+v\n%s", cases[index].Name, err, text)
		}
		objects[kernel.Name] = object
	}
	return linkAll(t, objects)
}

func TestAgreesWithInterpreter(t *testing.T) {
	target, toolchain := hostTarget(t), NewToolchain(library(t))
	if err := toolchain.Wait(); err != nil {
		t.Fatal(err)
	}
	cases := kerneltest.All()
	functions := compileAll(t, toolchain, target, cases)
	for index := range cases {
		c := &cases[index]
		want := c.Interpret()
		for _, ends := range [][]int64{{c.Work}, {0, 1, c.Work / 3, c.Work / 3, c.Work}} {
			got := c.Copy()
			if !runPieces(functions[c.Kernel.Name], got, c.Scalars, c.Work, ends) {
				t.Errorf("%s: an index is out of range", c.Name)
			}
			if difference := c.Compare(got, want, c.Tolerance); difference != "" {
				t.Errorf("in pieces that end at %v: %s\n%s", ends, difference, c.Kernel)
			}
		}
	}
}

// runPieces calls a kernel for parts of its outer points, as threads do, and reports whether none failed.
func runPieces(run func([]unsafe.Pointer, []int64, int64, int64) int64, buffers [][]byte, scalars []int64, work int64, ends []int64) bool {
	pointers := make([]unsafe.Pointer, len(buffers))
	for index, buffer := range buffers {
		pointers[index] = unsafe.Pointer(unsafe.SliceData(buffer))
	}
	begin, failed := int64(0), int64(0)
	for _, end := range ends {
		end = max(begin, min(end, work))
		failed |= run(pointers, scalars, begin, end)
		begin = end
	}
	return failed == 0
}

// TestPartsRunTogether cuts the points of a kernel in parts elsewhere than between parts.
func TestPartsRunTogether(t *testing.T) {
	target, toolchain := hostTarget(t), NewToolchain(library(t))
	if err := toolchain.Wait(); err != nil {
		t.Fatal(err)
	}
	c := kerneltest.InParts()
	run := compileAll(t, toolchain, target, []kerneltest.Case{c})[c.Kernel.Name]
	want := c.Interpret()
	for _, ends := range [][]int64{{c.Work}, {3, 8, 80, c.Work}, {0, 5, 75, 76, c.Work}} {
		got := c.Copy()
		if !runPieces(run, got, c.Scalars, c.Work, ends) {
			t.Error("fails")
		}
		if difference := c.Compare(got, want, 0); difference != "" {
			t.Errorf("cut at %v: %s", ends, difference)
		}
	}
}

func TestIndexOutOfRangeFails(t *testing.T) {
	target, toolchain := hostTarget(t), NewToolchain(library(t))
	if err := toolchain.Wait(); err != nil {
		t.Fatal(err)
	}
	c := kerneltest.OutOfRange()
	run := compileAll(t, toolchain, target, []kerneltest.Case{c})[c.Kernel.Name]
	if runPieces(run, c.Copy(), c.Scalars, c.Work, []int64{c.Work}) {
		t.Error("reads past the end of the table")
	}
	if !runPieces(run, c.Copy(), c.Scalars, c.Work, []int64{140}) {
		t.Error("fails before the index that is out of range")
	}
}

func TestEqualKernelsGiveEqualText(t *testing.T) {
	for _, target := range targets() {
		for index, c := range kerneltest.All() {
			first := Emit(c.Kernel, target)
			if again := Emit(c.Kernel, target); index%50 == 0 && first != again {
				t.Errorf("%s differs from itself", c.Name)
			}
		}
	}
}

func TestEveryTargetCompiles(t *testing.T) {
	toolchain := NewToolchain(library(t))
	if err := toolchain.Wait(); err != nil {
		t.Fatal(err)
	}
	cases := append(kerneltest.Special(), kerneltest.Reductions()[:30]...)
	for _, target := range targets() {
		for _, c := range cases {
			text := Emit(c.Kernel, target)
			object, err := toolchain.Compile(text, target)
			if err != nil || !strings.HasPrefix(string(object), "\x7fELF") {
				t.Errorf("%s for %s: %v\n%s", c.Name, target.Name, err, text)
			}
		}
	}
}
