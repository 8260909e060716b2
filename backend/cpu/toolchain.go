package cpu

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cockroachdb/errors"

	"fusee/backend/loop"
)

// Toolchain compiles LLVM IR to object files through libllvmlite. Loading the library takes tens of milliseconds, so Start does it in the
// background and a program whose kernels are all cached never calls Start. Safe for use by several goroutines.
type Toolchain struct {
	path     string
	start    sync.Once
	ready    chan struct{}
	failure  error
	wanted   atomic.Bool // whether a kernel waits or came already
	llvm     bindings
	triple   string
	target   uintptr
	mutex    sync.Mutex
	machines map[string][]*machine // idle ones, by target name
}

// machine is a code generator, used by one goroutine at a time.
type machine struct {
	handle     uintptr
	dataLayout string
}

// NewToolchain names the libllvmlite shared library to use; nothing is loaded yet. An empty path is a toolchain that fails to start.
func NewToolchain(path string) *Toolchain {
	return &Toolchain{path: path, ready: make(chan struct{}), machines: map[string][]*machine{}}
}

// Path returns the library's path.
func (t *Toolchain) Path() string { return t.path }

// Start begins loading the library in the background; further calls do nothing.
func (t *Toolchain) Start() {
	t.start.Do(func() {
		go func() {
			t.failure = t.load()
			close(t.ready)
			t.warm()
		}()
	})
}

// Wait starts if need be and returns when the library is loaded, or why it could not be.
func (t *Toolchain) Wait() error {
	t.wanted.Store(true)
	t.Start()
	<-t.ready
	return t.failure
}

// warm compiles a small kernel, so that the library's pages are in memory when the first real one comes.
func (t *Toolchain) warm() {
	target, ok := HostTarget()
	if !ok || t.failure != nil || t.wanted.Load() {
		return
	}
	b := loop.NewBuilder("warm", loop.Argument(0))
	b.Scalar()
	in, out := b.Buffer("in", loop.F32, loop.Read), b.Buffer("out", loop.F32, loop.Write)
	b.Stage()
	value := b.Load(in, loop.Static(0), loop.Static(1))
	b.Store(b.Do(loop.OpMaximum, loop.F32, value, b.Constant(loop.F32, loop.FloatBits(0))), out, loop.Static(0), loop.Static(1))
	_, _ = t.compileFor(target, Emit(b.Kernel, target)) // a failure will show again where it matters
}

func (t *Toolchain) load() error {
	hint := "Kernels for the CPU are compiled by LLVM, which comes with the Python package llvmlite; reinstall it."
	if t.path == "" {
		return errors.WithHint(errors.New("no LLVM library was found"), hint)
	}
	if err := t.llvm.load(t.path); err != nil {
		return errors.WithHint(errors.Wrap(err, "loading LLVM"), hint)
	}
	t.llvm.setOption("", "-disable-lsr") // takes a quarter of the compile time, and addresses are in their best form as printed
	if t.llvm.initializeTarget() != 0 || t.llvm.initializeAsmPrinter() != 0 {
		return errors.New("LLVM has no code generator for this machine")
	}
	var text *byte
	t.llvm.defaultTriple(&text)
	t.triple = t.llvm.take(text)
	t.target = t.llvm.targetFromTriple(t.triple, &text)
	if t.target == 0 {
		return errors.Newf("LLVM does not know the target %s", t.triple)
	}
	return nil
}

// Compile turns the text of one LLVM module into a relocatable object file for the target. Equal text gives equal bytes.
func (t *Toolchain) Compile(text string, target Target) ([]byte, error) {
	if err := t.Wait(); err != nil {
		return nil, err
	}
	return t.compileFor(target, text)
}

func (t *Toolchain) compileFor(target Target, text string) ([]byte, error) {
	machine := t.borrow(target)
	defer t.giveBack(target, machine)
	return t.compile(text, machine)
}

func (t *Toolchain) compile(text string, machine *machine) ([]byte, error) {
	context := t.llvm.createContext()
	defer t.llvm.disposeContext(context)
	var message *byte
	module := t.llvm.parse(context, text, &message)
	if module == 0 {
		return nil, errors.WithDetail(errors.Newf("LLVM rejects a kernel: %s", t.llvm.take(message)), text)
	}
	defer t.llvm.disposeModule(module)
	t.llvm.setTriple(module, t.triple)
	t.llvm.setDataLayout(module, machine.dataLayout)
	buffer := t.llvm.emit(machine.handle, module, 1, &message)
	if buffer == 0 {
		return nil, errors.WithDetail(errors.Newf("LLVM cannot compile a kernel: %s", t.llvm.take(message)), text)
	}
	defer t.llvm.disposeBuffer(buffer)
	return slices.Clone(unsafe.Slice(t.llvm.bufferStart(buffer), t.llvm.bufferSize(buffer))), nil
}

// verify has LLVM check the text of a module more strictly than reading it does.
func (t *Toolchain) verify(text string) error {
	context := t.llvm.createContext()
	defer t.llvm.disposeContext(context)
	var message *byte
	module := t.llvm.parse(context, text, &message)
	if module == 0 {
		return errors.New(t.llvm.take(message))
	}
	defer t.llvm.disposeModule(module)
	if t.llvm.verify(module, &message) != 0 {
		return errors.New(t.llvm.take(message))
	}
	return nil
}

// borrow takes an idle code generator or makes one, so that as many kernels compile at once as there are callers.
func (t *Toolchain) borrow(target Target) *machine {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if idle := t.machines[target.Name]; len(idle) > 0 {
		t.machines[target.Name] = idle[:len(idle)-1]
		return idle[len(idle)-1]
	}
	handle := t.llvm.createMachine(t.target, t.triple, target.Name, "", 2, "pic", "small", 0, 0, "")
	layoutHandle := t.llvm.createDataLayout(handle)
	defer t.llvm.disposeDataLayout(layoutHandle)
	var layout *byte
	t.llvm.copyDataLayout(layoutHandle, &layout)
	return &machine{handle: handle, dataLayout: t.llvm.take(layout)}
}

func (t *Toolchain) giveBack(target Target, machine *machine) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.machines[target.Name] = append(t.machines[target.Name], machine)
}
