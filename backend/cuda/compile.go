package cuda

import (
	"github.com/cockroachdb/errors"

	"fusee/backend/cuda/nvrtc"
	"fusee/backend/cuda/workers"
	"fusee/backend/loop"
)

// Compiler turns kernels into device code for one architecture.
type Compiler struct {
	Library      *nvrtc.Library
	Architecture string // such as "sm_90"
	Options      Options
	Workers      *workers.Pool // processes that help; nil for none
	NoCache      bool          // keep NVRTC from its own disk cache, for measurements
}

// Kernel is a compiled kernel: its source and launch shape, and a cubin.
type Kernel struct {
	Source
	Image []byte
}

// Compile compiles all kernels, several at once as the library allows. The results stand in the order of the kernels;
// the error is that of the first kernel that fails.
func (c *Compiler) Compile(kernels []*loop.Kernel) ([]Kernel, error) {
	results := make([]Kernel, len(kernels))
	programs := make([]nvrtc.Program, len(kernels))
	for i, kernel := range kernels {
		source, err := Emit(kernel, c.Options)
		if err != nil {
			return nil, err
		}
		results[i].Source = source
		programs[i] = nvrtc.Program{
			Name: kernel.Name + ".cu", Source: source.Text, Architecture: c.Architecture, NoCache: c.NoCache,
		}
	}
	for i, outcome := range c.compileAll(programs) {
		if outcome.Err != nil {
			return nil, errors.WithDetail(outcome.Err, kernels[i].String())
		}
		results[i].Image = outcome.Image
	}
	return results, nil
}

func (c *Compiler) compileAll(programs []nvrtc.Program) []nvrtc.Result {
	if c.Workers == nil {
		return c.Library.CompileAll(programs)
	}
	return c.Workers.CompileAll(programs, c.Library.Compile)
}
