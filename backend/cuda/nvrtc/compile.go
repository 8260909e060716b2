package nvrtc

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/cockroachdb/errors"
)

// Program is one translation unit to compile.
type Program struct {
	Name         string // file name in messages, such as "add_relu.cu"
	Source       string // CUDA C, without a NUL byte
	Architecture string // real architecture, such as "sm_90"
	NoCache      bool   // do not read or write NVRTC's own disk cache
}

// Result is the outcome for one Program: a cubin, or the error.
type Result struct {
	Image []byte
	Err   error
}

// options are the command-line options for program. Multiplications may contract with
// additions (NVRTC's default): eager's kernels and CUDA's math functions are compiled so.
func (l *Library) options(program Program) []string {
	options := []string{"--gpu-architecture=" + program.Architecture}
	if l.version.AtLeast(12, 4) {
		options = append(options, "--minimal")
	}
	if program.NoCache && l.version.AtLeast(12, 9) {
		options = append(options, "--no-cache")
	}
	return options
}

// Compile compiles program to a cubin for its architecture. When the source is wrong the
// error carries NVRTC's log and the numbered source as details.
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
	options := l.options(program)
	arguments := cStrings(options)
	result := l.api.compileProgram(handle, int32(len(options)), &arguments[0])
	runtime.KeepAlive(arguments)
	if err := l.check(result, "nvrtcCompileProgram"); err != nil {
		return nil, l.explain(err, handle, program, options)
	}
	image, err := l.read(handle, l.api.codeSize, l.api.code)
	return image, errors.Wrapf(err, "cannot read the cubin of %q", program.Name)
}

// explain adds what a person needs to find the mistake.
func (l *Library) explain(err error, handle uintptr, program Program, options []string) error {
	log, logErr := l.read(handle, l.api.logSize, l.api.log)
	err = errors.Wrapf(err, "cannot compile %q for %s", program.Name, program.Architecture)
	err = errors.WithDetailf(err, "options: %s\n%s", strings.Join(options, " "), strings.TrimRight(string(log), "\x00\n"))
	err = errors.WithDetail(err, numbered(program.Source))
	return errors.WithSecondaryError(err, logErr)
}

// read fetches a buffer through one of NVRTC's pairs of size and data functions.
func (l *Library) read(handle uintptr, size func(uintptr, *uintptr) int32, data func(uintptr, *byte) int32) ([]byte, error) {
	var length uintptr
	if err := l.check(size(handle, &length), "size of a result"); err != nil || length == 0 {
		return nil, err
	}
	buffer := make([]byte, length)
	return buffer, l.check(data(handle, &buffer[0]), "data of a result")
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
