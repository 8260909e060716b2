package service

import (
	"os"
	"sync"

	"github.com/cockroachdb/errors"

	"fusee/backend"
	"fusee/backend/cache"
	"fusee/backend/cpu"
	"fusee/backend/cuda"
	"fusee/backend/cuda/nvrtc"
	"fusee/backend/cuda/workers"
	"fusee/backend/loop"
	"fusee/bytecode"
	"fusee/trace"
)

const (
	defaultCacheLimit = 1 << 30          // bytes
	parallelKernels   = 16               // NVRTC compiles at once
	deviceFile        = "/dev/nvidiactl" // there is one wherever a CUDA driver runs
)

// codeGenerators make kernels. What they print depends on the machine that the trace was made on, so it says which that is.
type codeGenerators interface {
	// forDevices gives the emitters by device type; architecture is that of the GPU, "" without one.
	forDevices(architecture string) map[string]backend.Emitter
	// missing says what keeps kernels for a device type from being made here, "" where nothing does or nobody could help it.
	missing(device, architecture string) string
	// foresee is told that kernels for a GPU of this architecture may be needed soon.
	foresee(architecture string)
	// takeWarnings returns what went wrong beside a compile since it was asked last, such as a cache folder that cannot be used.
	takeWarnings() []string
	// close ends the work; the host has gone.
	close()
	// machine names the level of the CPU ("" where no kernels are made for it), and says whether its C library has vector mathematics.
	machine() (name string, vectorMath bool)
}

// emitters are the code generators of one process, loaded when the first kernel needs them.
type emitters struct {
	cache     *cache.Cache
	warnings  []string
	toolchain *cpu.Toolchain
	target    cpu.Target
	cpuReady  bool
	nvrtcPath string
	nvrtcOnce sync.Once
	nvrtc     *nvrtc.Library
	nvrtcFail error
	cold      bool                     // there was nothing in the disk cache
	program   string                   // what the workers run; "" where none may be started
	workers   map[string]*workers.Pool // by architecture
}

func newEmitters(hello bytecode.Object, program string) codeGenerators {
	e := &emitters{
		toolchain: cpu.NewToolchain(trace.Text(hello, "llvm")), nvrtcPath: trace.Text(hello, "nvrtc"), program: program, workers: map[string]*workers.Pool{},
	}
	e.target, e.cpuReady = cpu.HostTarget()
	folder := trace.Text(hello, "cache_dir")
	if folder != "" {
		limit, ok := trace.Field(trace.Field(hello, "settings"), "cache_size").(int64)
		if !ok {
			limit = defaultCacheLimit
		}
		opened, err := cache.Open(folder, limit)
		if err != nil {
			e.warnings = append(e.warnings, withHints(err))
		}
		e.cache = opened
	}
	if e.cold = e.cache == nil || e.cache.Empty(); e.cold {
		e.start(trace.Text(hello, "cuda_arch"))
	}
	return e
}

// start loads in the background what the first kernel is going to need, which takes longer than capturing. The host knows its GPU only
// once it is in use; before that any device may come.
func (e *emitters) start(architecture string) {
	if architecture == "" {
		e.toolchain.Start()
	}
	if _, err := os.Stat(deviceFile); e.nvrtcPath != "" && (architecture != "" || err == nil) {
		go e.warmNVRTC(architecture)
	}
}

func (e *emitters) warmNVRTC(architecture string) {
	if library, err := e.library(); err == nil { // else it will show again where it matters
		library.Warm(architecture)
	}
}

// foresee starts the processes that help compiling for a GPU while a function is still being captured, unless the disk cache may well
// hold its kernels.
func (e *emitters) foresee(architecture string) {
	if e.cold && architecture != "" && e.nvrtcPath != "" {
		go e.workersFor(architecture).Start() // the capture need not wait while processes are made
	}
}

// workersFor gives the pool of an architecture. One goroutine at a time calls it.
func (e *emitters) workersFor(architecture string) *workers.Pool {
	if e.workers[architecture] == nil {
		e.workers[architecture] = newWorkers(e.program, e.nvrtcPath, architecture)
	}
	return e.workers[architecture]
}

func (e *emitters) machine() (name string, vectorMath bool) {
	if !e.cpuReady {
		return "", false
	}
	return e.target.Name, e.target.VectorMath
}

func (e *emitters) missing(device, architecture string) string {
	switch {
	case device == "cpu" && e.cpuReady && e.toolchain.Path() == "":
		return "no LLVM library was found, so operators run one by one; install the Python package llvmlite"
	case device == "cuda" && architecture != "" && e.nvrtcPath == "":
		return "NVRTC was not found, so operators run one by one on the GPU; it comes with torch's CUDA packages"
	}
	return ""
}

// close ends the workers and trims the disk cache, in which the host keeps conversations without counting them.
func (e *emitters) close() {
	for _, pool := range e.workers {
		pool.Stop()
	}
	_ = e.cache.EnforceLimit() // nobody is left to be told
}

func (e *emitters) takeWarnings() []string {
	taken := e.warnings
	e.warnings = nil
	return taken
}

func (e *emitters) forDevices(architecture string) map[string]backend.Emitter {
	table := map[string]backend.Emitter{}
	if e.cpuReady && e.toolchain.Path() != "" {
		table["cpu"] = &backend.CPUEmitter{Toolchain: e.toolchain, Target: e.target, Cache: e.cache}
	}
	if architecture != "" && e.nvrtcPath != "" {
		table["cuda"] = &cudaEmitter{e, architecture}
	}
	return table
}

// cudaEmitter compiles kernels for one GPU architecture, keeping the cubins in the disk cache.
type cudaEmitter struct {
	owner        *emitters
	architecture string
}

// library loads NVRTC once.
func (e *emitters) library() (*nvrtc.Library, error) {
	e.nvrtcOnce.Do(func() { e.nvrtc, e.nvrtcFail = nvrtc.Open(e.nvrtcPath, parallelKernels) })
	return e.nvrtc, e.nvrtcFail
}

// Emit implements backend.Emitter.
func (c *cudaEmitter) Emit(kernels []*loop.Kernel) ([]backend.Image, error) {
	images := make([]backend.Image, len(kernels))
	keys := make([]cache.Key, len(kernels))
	var missing []*loop.Kernel
	var places []int
	for i, kernel := range kernels {
		printed, err := printCUDA(c.architecture)(kernel)
		if err != nil {
			return nil, err
		}
		images[i] = printed
		keys[i] = cache.KeyOf([]byte("cuda cubin"), []byte(c.architecture), []byte(c.owner.nvrtcPath), []byte(printed.Source))
		if code, ok := c.owner.cache.Get(keys[i]); ok {
			images[i].Code = code
			continue
		}
		missing = append(missing, kernel)
		places = append(places, i)
	}
	if len(missing) == 0 {
		return images, nil
	}
	return images, c.compile(missing, places, keys, images)
}

// printCUDA returns what writes a kernel's source and launch geometry for an architecture.
func printCUDA(architecture string) func(*loop.Kernel) (backend.Image, error) {
	options := cuda.OptionsFor(architecture)
	return func(kernel *loop.Kernel) (backend.Image, error) {
		source, err := cuda.Emit(kernel, options)
		return backend.Image{
			Source: source.Text, Block: int64(source.Threads), Items: int64(source.Items), Shared: int64(source.Shared), Dependent: options.DependentLaunch,
		}, err
	}
}

func (c *cudaEmitter) compile(missing []*loop.Kernel, places []int, keys []cache.Key, images []backend.Image) error {
	library, err := c.owner.library()
	if err != nil {
		return errors.WithHint(err, "kernels for the GPU are compiled by NVRTC, which comes with torch's CUDA packages")
	}
	pool := c.owner.workersFor(c.architecture)
	if len(missing) >= worthWorkers {
		pool.Start()
	}
	compiler := &cuda.Compiler{Library: library, Architecture: c.architecture, Options: cuda.OptionsFor(c.architecture), Workers: pool}
	compiled, err := compiler.Compile(missing)
	if err != nil {
		return err
	}
	for k, kernel := range compiled {
		at := places[k]
		images[at].Code = kernel.Image
		if err := c.owner.cache.Put(keys[at], kernel.Image); err != nil {
			images[at].Warnings = append(images[at].Warnings, err.Error())
		}
	}
	return nil
}
