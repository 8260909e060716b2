// Package nvrtc compiles CUDA C to device code with NVIDIA's runtime compiler
// (libnvrtc), called through its C interface without cgo. It needs no GPU and
// no driver. The functions and their contracts are those of the "NVRTC: CUDA
// Runtime Compilation" user guide of CUDA 12.6 and later.
package nvrtc

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/cockroachdb/errors"
	"github.com/ebitengine/purego"
)

// Version is the version of a loaded NVRTC library.
type Version struct{ Major, Minor int }

// AtLeast reports whether v is the given version or a later one.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// Library is a loaded NVRTC. Its methods may be called from many goroutines;
// at most as many programs as the limit given to Open compile at once.
type Library struct {
	version       Version
	architectures []int
	slots         chan struct{}
	api           functions
}

// functions are the C functions used, with the result nvrtcResult as int32.
type functions struct {
	version         func(major, minor *int32) int32
	supportedCount  func(count *int32) int32
	supported       func(architectures *int32) int32
	errorString     func(result int32) string
	createProgram   func(program *uintptr, source, name string, headers int32, contents, names uintptr) int32
	destroyProgram  func(program *uintptr) int32
	compileProgram  func(program uintptr, count int32, options **byte) int32
	log, cubin, ptx buffer
}

// buffer is a pair of functions that hand out the size and then the bytes of a result.
type buffer struct {
	size func(program uintptr, size *uintptr) int32
	data func(program uintptr, data *byte) int32
}

// symbols pairs each C function with the place that holds it.
func (f *functions) symbols() map[string]any {
	return map[string]any{
		"nvrtcVersion":              &f.version,
		"nvrtcGetNumSupportedArchs": &f.supportedCount,
		"nvrtcGetSupportedArchs":    &f.supported,
		"nvrtcGetErrorString":       &f.errorString,
		"nvrtcCreateProgram":        &f.createProgram,
		"nvrtcDestroyProgram":       &f.destroyProgram,
		"nvrtcCompileProgram":       &f.compileProgram,
		"nvrtcGetProgramLogSize":    &f.log.size,
		"nvrtcGetProgramLog":        &f.log.data,
		"nvrtcGetCUBINSize":         &f.cubin.size,
		"nvrtcGetCUBIN":             &f.cubin.data,
		"nvrtcGetPTXSize":           &f.ptx.size,
		"nvrtcGetPTX":               &f.ptx.data,
	}
}

// Open loads the NVRTC library at path. At most limit programs compile at once;
// zero or less means one per processor. It fails when the file cannot be loaded or
// lacks one of the functions used.
func Open(path string, limit int) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW)
	if err != nil {
		return nil, errors.WithHint(errors.Wrapf(err, "cannot load NVRTC from %q", path),
			"Install the nvidia-cuda-nvrtc wheel that the installed torch depends on.")
	}
	if limit <= 0 {
		limit = runtime.NumCPU()
	}
	library := &Library{slots: make(chan struct{}, limit)}
	if err := library.api.resolve(handle); err != nil {
		return nil, errors.Wrapf(err, "the library at %q is not an NVRTC that can be used", path)
	}
	err = errors.CombineErrors(library.readVersion(), library.readArchitectures())
	if err != nil {
		return nil, err
	}
	return library, nil
}

func (f *functions) resolve(handle uintptr) error {
	for name, place := range f.symbols() {
		address, err := purego.Dlsym(handle, name)
		if err != nil {
			return errors.WithHint(errors.Wrapf(err, "function %s is missing", name), "CUDA 12.6 or later has it.")
		}
		purego.RegisterFunc(place, address)
	}
	return nil
}

func (l *Library) readVersion() error {
	var major, minor int32
	if err := l.check(l.api.version(&major, &minor), "nvrtcVersion"); err != nil {
		return err
	}
	l.version = Version{int(major), int(minor)}
	return nil
}

// check turns an nvrtcResult into an error that names the function.
func (l *Library) check(result int32, function string) error {
	if result == 0 {
		return nil
	}
	return errors.Newf("%s: %s", function, l.api.errorString(result))
}

// Version returns the version of the library.
func (l *Library) Version() Version { return l.version }

// Architectures returns the compute capabilities that the library compiles for, in
// ascending order, each as major*10+minor: 90 is sm_90.
func (l *Library) Architectures() []int { return slices.Clone(l.architectures) }

func (l *Library) readArchitectures() error {
	var count int32
	if err := l.check(l.api.supportedCount(&count), "nvrtcGetNumSupportedArchs"); err != nil || count <= 0 {
		return err
	}
	found := make([]int32, count)
	if err := l.check(l.api.supported(&found[0]), "nvrtcGetSupportedArchs"); err != nil {
		return err
	}
	for _, architecture := range found {
		l.architectures = append(l.architectures, int(architecture))
	}
	return nil
}

// cStrings returns a NULL-terminated array of C strings; everything lives in Go memory.
func cStrings(values []string) []*byte {
	pointers := make([]*byte, len(values)+1)
	for i, value := range values {
		pointers[i] = unsafe.SliceData(append([]byte(value), 0))
	}
	return pointers
}
