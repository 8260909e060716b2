package backend

import (
	"testing"

	"fusee/backend/cpu"
	"fusee/backend/loop"
)

// textEmitter prints LLVM IR without compiling it, as a warm cache does.
type textEmitter struct{ target cpu.Target }

func (e textEmitter) Emit(kernels []*loop.Kernel) ([]Image, error) {
	images := make([]Image, len(kernels))
	for index, kernel := range kernels {
		images[index].Source = cpu.Emit(kernel, e.target)
	}
	return images, nil
}

func BenchmarkSeedExampleWithoutLLVM(b *testing.B) {
	target, _ := cpu.TargetNamed("x86-64-v3")
	compiler := New(Options{Emitters: map[string]Emitter{"cpu": textEmitter{target}}})
	g := seedExample(4)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := compiler.Compile(g); err != nil {
			b.Fatal(err)
		}
	}
}
