package cuda_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"fusee/backend/cuda"
	"fusee/backend/cuda/internal/find"
	"fusee/backend/cuda/nvrtc"
)

func TestEveryKernelCompiles(t *testing.T) {
	library, err := nvrtc.Open(find.NVRTC(t), 0)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	kernels := corpus()
	for _, architecture := range []string{"sm_80", "sm_90", "sm_100"} {
		compiler := cuda.Compiler{Library: library, Architecture: architecture}
		compiled, err := compiler.Compile(kernels)
		if err != nil {
			t.Fatalf("%s: %v\n%v", architecture, err, errors.GetAllDetails(err))
		}
		for i, kernel := range compiled {
			if len(kernel.Image) == 0 || kernel.Symbol != kernels[i].Name {
				t.Errorf("%s for %s: %d bytes, symbol %s", kernels[i].Name, architecture, len(kernel.Image), kernel.Symbol)
			}
		}
	}
}
