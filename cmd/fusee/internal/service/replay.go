package service

import (
	"cmp"

	"fusee/backend"
	"fusee/backend/cpu"
	"fusee/backend/loop"
	"fusee/bytecode"
	"fusee/internal/slice"
	"fusee/trace"
	"github.com/cockroachdb/errors"
)

// Replayed is what replaying a trace came to.
type Replayed struct {
	Hello        bytecode.Object // what the host said first: versions and settings
	Compilations []*Compilation
	Failures     []string // why requests failed, as they did when they were recorded
	Questions    int
	// Complete is false for a trace that ends in the middle of a compilation, as when one side died.
	Complete bool
	// Departed is true where a lenient replay accepted something else than recorded.
	Departed bool
}

// Replay compiles again what a trace recorded, with no Python, LLVM or GPU: kernels are printed anew for the recorded machine, and their
// compiled code is taken from the trace. The error is a *trace.Mismatch when the compiler says something else than recorded; what came
// before it is returned too. version is that of this binary.
func Replay(version string, player *trace.Player) (*Replayed, error) {
	return replay(version, player, player)
}

// replay answers from the transport, which is the player or leads to it.
func replay(version string, player *trace.Player, transport trace.Transport) (*Replayed, error) {
	replayed := &Replayed{Complete: player.Complete()}
	said, heard := player.Messages(false), player.Messages(true)
	if len(heard) == 0 || heard[0][0] != "hello" || len(heard[0]) != 2 {
		return nil, errors.WithHint(errors.New("the trace holds no compilation"), "it was cut short; record it again")
	}
	replayed.Hello = heard[0][1]
	recorded := newRecording(said)
	if player.Lenient {
		recorded.absent = []byte("not compiled")
	} else if err := recorded.check(version); err != nil {
		return nil, err
	}
	for _, message := range said {
		if message[0] == "ask" {
			replayed.Questions++
		}
	}
	s := New(recorded.version, transport)
	s.newGenerators = recorded.generators
	s.Observe = func(c *Compilation) { replayed.Compilations = append(replayed.Compilations, c) }
	s.observeFailure = func(err error) { replayed.Failures = append(replayed.Failures, err.Error()) }
	err := s.Run()
	replayed.Departed = player.Departed()
	return replayed, err
}

// recording is what a trace tells about the machine that it was made on.
type recording struct {
	version    string
	protocol   int64
	cpu        string
	vectorMath bool
	code       map[string][]byte // compiled kernels by name; the name holds a digest of the loops
	llvm       string
	nvrtc      string
	// absent stands for the code of a kernel that is not in the trace; empty, so that its graph gets no plan, unless the replay is lenient.
	absent []byte
}

func newRecording(said []trace.Message) *recording {
	r := &recording{code: map[string][]byte{}}
	for _, message := range said {
		if len(message) != 2 {
			continue
		}
		switch message[0] {
		case "ready":
			r.version, r.cpu = trace.Text(message[1], "version"), trace.Text(message[1], "cpu")
			r.protocol, _ = trace.Field(message[1], "protocol").(int64)
			r.vectorMath, _ = trace.Field(message[1], "vector_math").(bool)
		case "done":
			for _, graph := range trace.Items(trace.Field(message[1], "graphs")) {
				training := trace.Field(graph, "training")
				for _, plan := range []bytecode.Object{trace.Field(graph, "plan"), trace.Field(training, "forward"), trace.Field(training, "backward")} {
					r.keepKernels(trace.Field(plan, "kernels"))
				}
			}
		}
	}
	return r
}

func (r *recording) keepKernels(kernels bytecode.Object) {
	for _, item := range trace.Items(kernels) {
		if kernel, ok := item.(bytecode.Tuple); ok && len(kernel) >= 3 {
			name, _ := kernel[1].(string)
			code, _ := kernel[2].(bytecode.Bytes)
			r.code[name] = []byte(code)
		}
	}
}

// check explains a trace of another version before it shows as a difference somewhere.
func (r *recording) check(version string) error {
	if r.version == version && r.protocol == Protocol {
		return nil
	}
	made := cmp.Or(r.version, "?")
	err := errors.Newf("the trace was made by fusee %s (protocol %d); this is fusee %s (protocol %d)", made, r.protocol, version, Protocol)
	return errors.WithHint(err, "replay it with that version, or pass --lenient to see what this version makes of it")
}

func (r *recording) generators(hello bytecode.Object) codeGenerators {
	r.llvm, r.nvrtc = trace.Text(hello, "llvm"), trace.Text(hello, "nvrtc")
	return r
}

func (r *recording) close() {}

func (r *recording) foresee(string) {}

func (r *recording) missing(string, string) string { return "" }

func (r *recording) takeWarnings() []string { return nil }

func (r *recording) machine() (name string, vectorMath bool) { return r.cpu, r.vectorMath }

func (r *recording) forDevices(architecture string) map[string]backend.Emitter {
	table := map[string]backend.Emitter{}
	if target, ok := cpu.TargetNamed(r.cpu); ok && r.llvm != "" {
		target.VectorMath = r.vectorMath
		table["cpu"] = &recordedEmitter{r, func(kernel *loop.Kernel) (backend.Image, error) {
			return backend.Image{Source: cpu.Emit(kernel, target)}, nil
		}}
	}
	if architecture != "" && r.nvrtc != "" {
		table["cuda"] = &recordedEmitter{r, printCUDA(architecture)}
	}
	return table
}

// recordedEmitter prints kernels and takes their compiled code from a trace.
type recordedEmitter struct {
	from  *recording
	print func(*loop.Kernel) (backend.Image, error)
}

// Emit implements backend.Emitter. A kernel that is not in the trace failed to compile then, or is another one now.
func (e *recordedEmitter) Emit(kernels []*loop.Kernel) ([]backend.Image, error) {
	return slice.TryMap(kernels, e.image)
}

func (e *recordedEmitter) image(kernel *loop.Kernel) (backend.Image, error) {
	image, err := e.print(kernel)
	image.Code = e.from.absent
	if code, ok := e.from.code[kernel.Name]; ok {
		image.Code = code
	}
	return image, err
}

// PlainReport gives the report in Go's own types, without its times, which differ from run to run.
func (c *Compilation) PlainReport() map[string]any {
	plain, _ := plainObject(c.Report).(map[string]any)
	delete(plain, "times")
	return plain
}

func plainObject(object bytecode.Object) any {
	switch value := object.(type) {
	case bytecode.NoneType:
		return nil
	case *bytecode.List:
		return slice.Map(value.Items, plainObject)
	case *bytecode.Dict:
		fields := map[string]any{}
		for i, key := range value.Keys {
			if name, ok := key.(string); ok {
				fields[name] = plainObject(value.Values[i])
			}
		}
		return fields
	}
	return object
}
