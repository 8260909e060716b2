// Package cuda prints kernels of the loop IR as CUDA C, compiles them with NVRTC, and says how to launch them.
//
// # How a kernel runs
//
// The launch passes one argument per buffer, one 64-bit integer per scalar, and the number of outer points, and starts
// ceil(work/Items) blocks of Threads threads in one dimension.
//
// A pointwise kernel gives each thread one vector of 16 bytes, loaded and stored plainly: cache hints, grid-stride loops
// and bulk copies measured 4 to 11 % slower on an H200. Whether pointers are aligned is often known at launch only; the
// kernel looks, and falls back to single elements.
//
// A reduction gives each outer point a group of threads: part of a warp or a warp for short rows, a block for long ones,
// or, when neighbouring outer points are neighbours in memory, threads that are apart. Rows that fit stay in registers
// from one stage to the next.
//
// # Rounding
//
// Results equal those of PyTorch's CUDA kernels. The compiler's contraction of a multiplication and an addition into one
// rounding stays on, because CUDA's own functions are built that way in PyTorch (eight double-precision ones differ
// without it); multiplications of the loop IR are printed as intrinsics that are never contracted.
package cuda

import (
	"fmt"
	"maps"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/backend/loop"
)

// Options choose between forms of the code; the zero value is right for plain launches.
type Options struct {
	// DependentLaunch makes the kernel wait for the kernel before it in the stream, as a launch with the programmatic
	// dependent launch attribute requires, and lets the one after it begin to do so early. Needs sm_90 or later.
	DependentLaunch bool
}

// Source is a kernel as CUDA C and how to launch it.
type Source struct {
	Symbol  string // name of the function
	Text    string // the translation unit; needs no header
	Threads int    // per block
	Items   int    // outer points per block
	Shared  int    // bytes of dynamic shared memory
}

// Emit prints kernel as CUDA C. It fails when the kernel breaks a rule of the loop IR or needs more shared memory than
// a block has.
func Emit(kernel *loop.Kernel, options Options) (Source, error) {
	if err := kernel.Verify(); err != nil {
		return Source{}, err
	}
	n := newNest(likeAllParts(kernel))
	e := &emitter{nest: n, schedule: n.schedule(), options: options, helpers: map[string]bool{"types": true},
		names: map[loop.Value]string{}, places: map[int]string{}}
	if bytes := e.sharedBytes(); bytes > maximumShared {
		return Source{}, errors.Newf("kernel %s needs %d bytes of shared memory of %d", kernel.Name, bytes, maximumShared)
	}
	e.fuseOnline()
	e.schedule = e.schedule.without(e.canKeepRows())
	if e.schedule.group > 1 {
		n.deferOuter()
		e.takeSeveral()
	}
	text := e.kernel()
	return Source{
		Symbol: e.symbol(), Text: declarations(e.helpers) + text,
		Threads: e.schedule.threads, Items: e.schedule.items(kernel.Pointwise()),
	}, nil
}

const maximumShared = 48 << 10 // static shared memory of a block, on every architecture

// emitter prints one kernel.
type emitter struct {
	nest     *nest
	schedule schedule
	options  Options
	helpers  map[string]bool // used so far
	text     strings.Builder
	depth    int
	places   map[int]string            // expressions of the positions along dimensions, where they are declared
	names    map[loop.Value]string     // expressions of values that are not variables of their own
	lanes    int                       // of the strip being printed
	slow     bool                      // printing the path for pointers that are not aligned
	resident map[loop.Value]loop.Value // loads kept in registers between stages, to the load that fills them
	ahead    map[loop.Value]loop.Value // loads kept in registers before the kernel waits for the one ahead of it, to the one that names them

	aheadNames map[loop.Value]string // of single elements that are read before that
	shared     int                   // stages at the beginning that are the same for all of a group's rows, where it takes several
}

// line prints one line at the present depth.
func (e *emitter) line(format string, arguments ...any) {
	if format != "" && !strings.HasPrefix(format, "#") {
		e.text.WriteString(strings.Repeat("    ", e.depth))
	}
	fmt.Fprintf(&e.text, format+"\n", arguments...)
}

// block prints a header and, in braces, what body prints.
func (e *emitter) block(header string, body func()) {
	e.line("%s", strings.TrimSpace(header+" {"))
	e.depth++
	body()
	e.depth--
	e.line("}")
}

// unrolled prints a loop over lanes 0…count-1 that the compiler unrolls; for one lane just the body.
func (e *emitter) unrolled(variable string, count int, body func()) {
	e.line("#pragma unroll")
	e.block(fmt.Sprintf("for (u32 %s = 0; %s < %d; ++%s)", variable, variable, count, variable), body)
}

func (e *emitter) symbol() string { return e.nest.kernel.Name }

// index is the type of positions and offsets.
func (e *emitter) index() string {
	if e.schedule.narrow {
		return "i32"
	}
	return "i64"
}

func (e *emitter) kernel() string {
	e.firstBlocks()
	e.line(`extern "C" __global__ void __launch_bounds__(%d)`, e.schedule.threads)
	e.block(fmt.Sprintf("%s(\n    %s)", e.symbol(), strings.Join(e.parameters(), ",\n    ")), func() {
		if e.nest.kernel.Pointwise() {
			e.choosePart()
			e.awaitKernelBefore()
			e.pointwise()
		} else {
			e.rows()
		}
	})
	return e.text.String()
}

// parameters declares the arguments. Written buffers overlap no other, so all pointers may be declared restrict.
func (e *emitter) parameters() []string {
	var result []string
	for part := range max(len(e.nest.kernel.Parts), 1) {
		for i, buffer := range e.nest.kernel.Buffers {
			result = append(result, e.pointer(i)+" "+e.parameterName(part, i))
			e.useType(buffer.Type)
		}
	}
	for i := range e.nest.kernel.Scalars {
		result = append(result, "const i64 "+scalarName(i))
	}
	if e.nest.kernel.Parts != nil {
		return append(result, "const i64")
	}
	return append(result, "const i64 work")
}

// pointer is the type of a buffer's pointer.
func (e *emitter) pointer(buffer int) string {
	qualifier := ""
	if e.nest.kernel.Buffers[buffer].Mode == loop.Read {
		qualifier = "const "
	}
	return fmt.Sprintf("%s%s *__restrict__", qualifier, memoryName(e.nest.kernel.Buffers[buffer].Type))
}

func (e *emitter) useType(t loop.Type) {
	if t.Is(loop.ClassStorage) {
		e.helpers[t.String()] = true
	}
}

// bufferName makes the buffer's name an identifier; its number keeps it apart from all others.
func (e *emitter) bufferName(buffer int) string {
	letters := []byte(e.nest.kernel.Buffers[buffer].Name)
	for i, letter := range letters {
		plain := letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z' || letter == '_' || i > 0 && letter >= '0' && letter <= '9'
		if !plain {
			letters[i] = '_'
		}
	}
	return fmt.Sprintf("%s_%d", letters, buffer)
}

// pointwise prints a kernel whose threads each take some neighbouring outer points.
func (e *emitter) pointwise() {
	strip := strip{emitter: e, position: "i", sizes: e.nest.outer, width: e.schedule.vector, exact: len(e.nest.outer) > 1}
	for _, s := range e.nest.stages {
		strip.body = append(strip.body, s.body...)
	}
	position := fmt.Sprintf("(%s)%s * %d + threadIdx.x", e.index(), e.ownBlock(), e.schedule.threads)
	if strip.width > 1 {
		position = fmt.Sprintf("(%s) * %d", position, strip.width)
	}
	e.line("const %s i = %s;", e.index(), position)
	conditions := strip.alignment()
	if strip.width == 1 || product(e.nest.outer).divisible(int64(strip.width)) {
		e.line("if (i >= work)")
		e.line("    return;")
	} else {
		conditions = append([]string{fmt.Sprintf("i + %d <= work", strip.width)}, conditions...)
	}
	e.fastAndSlow(conditions, strip.emit, func() { e.pointByPoint(strip) })
}

// pointByPoint prints the computation of a strip as a loop over its points, as far as they exist.
func (e *emitter) pointByPoint(s strip) {
	e.line("#pragma unroll 1")
	header := fmt.Sprintf("for (%s at = i; at < i + %d && at < work; ++at)", e.index(), s.width)
	s.position, s.width = "at", 1
	e.block(header, s.emit)
}

// fastAndSlow prints the code for when all conditions hold, and that for when one does not if there are any.
func (e *emitter) fastAndSlow(conditions []string, fast, slow func()) {
	if len(conditions) == 0 {
		fast()
		return
	}
	e.block("if ("+strings.Join(conditions, " && ")+")", func() {
		fast()
		e.line("return;")
	})
	e.names = map[loop.Value]string{}
	maps.Copy(e.names, e.aheadNames)
	slow()
}
