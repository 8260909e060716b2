package cuda_test

import (
	"testing"

	"fusee/backend/cuda"
	"fusee/backend/cuda/internal/find"
	"fusee/backend/cuda/nvrtc"
	"fusee/backend/loop"
)

// BenchmarkCompile measures source to cubin for single kernels, without NVRTC's own cache.
func BenchmarkCompile(b *testing.B) {
	library, err := nvrtc.Open(find.NVRTC(b), 0)
	if err != nil {
		b.Fatal(err)
	}
	compiler := cuda.Compiler{Library: library, Architecture: "sm_90", NoCache: true}
	for _, kernel := range corpus() {
		switch kernel.Name {
		case "add_relu", "add_relu_aligned", "layer_norm", "softmax_block", "softmax_dynamic":
			b.Run(kernel.Name, func(b *testing.B) {
				for b.Loop() {
					if _, err := compiler.Compile([]*loop.Kernel{kernel}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
