package nvrtc

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/errors"
)

// Program is one translation unit to compile.
type Program struct {
	Name         string // file name in messages, such as "add_relu.cu"
	Source       string // CUDA C, without a NUL byte
	Architecture string // of the GPU, such as "sm_90"
	NoCache      bool   // do not read or write NVRTC's own disk cache
}

// Result is the outcome for one Program: an image for the driver's module loader, or the error.
type Result struct {
	Image []byte
	Err   error
}

// target returns the value of the architecture option, and whether it is a virtual one: for a GPU that is newer than the
// library, the newest virtual architecture that such a GPU runs, whose PTX the driver then compiles.
func (l *Library) target(architecture string) (target string, virtual bool) {
	number, isNumber := strings.CutPrefix(architecture, "sm_")
	wanted, err := strconv.Atoi(number)
	if !isNumber || err != nil || slices.Contains(l.architectures, wanted) {
		return architecture, false
	}
	for _, known := range slices.Backward(l.architectures) {
		if known < wanted {
			return fmt.Sprintf("compute_%d", known), true
		}
	}
	return architecture, false
}

// options are the command-line options for program. Multiplications may contract with
// additions (NVRTC's default): eager's kernels and CUDA's math functions are compiled so.
func (l *Library) options(target string, program Program) []string {
	options := []string{"--gpu-architecture=" + target}
	if l.version.AtLeast(12, 4) {
		options = append(options, "--minimal")
	}
	if program.NoCache && l.version.AtLeast(12, 9) {
		options = append(options, "--no-cache")
	}
	return options
}

// Compile compiles program to a cubin for its architecture, or to PTX when the library does not know an architecture
// that new. When the source is wrong the error carries NVRTC's log and the numbered source as details.
func (l *Library) Compile(program Program) ([]byte, error) {
	if strings.IndexByte(program.Source, 0) >= 0 || strings.IndexByte(program.Name, 0) >= 0 {
		return nil, errors.Newf("the CUDA source of %q holds a NUL byte", program.Name)
	}
	l.slots <- struct{}{}
	defer func() { <-l.slots }()
	var handle uintptr
	result := l.api.createProgram(&handle, program.Source, program.Name, 0, 0, 0)
	if err := l.check(result, "nvrtcCreateProgram"); err != nil {
		return nil, err
	}
	defer l.api.destroyProgram(&handle)
	return l.compile(handle, program)
}

func (l *Library) compile(handle uintptr, program Program) ([]byte, error) {
	target, virtual := l.target(program.Architecture)
	options := l.options(target, program)
	arguments := cStrings(options)
	code := l.api.compileProgram(handle, int32(len(options)), &arguments[0])
	runtime.KeepAlive(arguments)
	if err := l.check(code, "nvrtcCompileProgram"); err != nil {
		return nil, l.explain(err, handle, program, options)
	}
	result := l.api.cubin
	if virtual {
		result = l.api.ptx
	}
	image, err := l.read(handle, result)
	return image, errors.Wrapf(err, "cannot read what %q was compiled to", program.Name)
}

// explain adds what a person needs to find the mistake.
func (l *Library) explain(err error, handle uintptr, program Program, options []string) error {
	log, logErr := l.read(handle, l.api.log)
	err = errors.Wrapf(err, "cannot compile %q for %s", program.Name, program.Architecture)
	err = errors.WithDetailf(err, "options: %s\n%s", strings.Join(options, " "), strings.TrimRight(string(log), "\x00\n"))
	err = errors.WithDetail(err, numbered(program.Source))
	return errors.WithSecondaryError(err, logErr)
}

// read fetches one of NVRTC's results.
func (l *Library) read(handle uintptr, from buffer) ([]byte, error) {
	var length uintptr
	if err := l.check(from.size(handle, &length), "size of a result"); err != nil || length == 0 {
		return nil, err
	}
	data := make([]byte, length)
	return data, l.check(from.data(handle, &data[0]), "data of a result")
}

// numbered returns source with a line number before each line, as messages count them.
func numbered(source string) string {
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimRight(source, "\n"), "\n") {
		fmt.Fprintf(&out, "%4d  %s\n", i+1, line)
	}
	return out.String()
}

// CompileAll compiles all programs, as many at once as the library's limit allows, and returns
// one result per program in the same order.
func (l *Library) CompileAll(programs []Program) []Result {
	results := make([]Result, len(programs))
	var group sync.WaitGroup
	for i, program := range programs {
		group.Go(func() { results[i].Image, results[i].Err = l.Compile(program) })
	}
	group.Wait()
	return results
}

// Warm compiles an empty kernel, which makes the library set up what it keeps for later ones. Without an architecture it takes one
// that the library knows.
func (l *Library) Warm(architecture string) {
	if architecture == "" && len(l.architectures) > 0 {
		architecture = fmt.Sprintf("sm_%d", l.architectures[0])
	}
	_, _ = l.Compile(Program{Name: "warm.cu", Source: `extern "C" __global__ void warm() {}`, Architecture: architecture}) // a failure will show again
}
