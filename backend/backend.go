package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/backend/loop"
	"fusee/bytecode"
	"fusee/graph"
)

// Options choose how graphs are compiled.
type Options struct {
	// Emitters make code of loop kernels, by the device type they run on ("cpu", "cuda"). Tensors of other devices are left to library calls.
	Emitters map[string]Emitter
	// RoundIntermediates rounds float16 and bfloat16 values wherever eager would, instead of only where they are stored or compared.
	RoundIntermediates bool
	// Unfused makes every operation a kernel of its own, to compare with.
	Unfused bool
	// Disjoint says that whoever runs a plan compares the addresses of its inputs first, as section 7 of docs/contracts.md says of "apart". Inputs that
	// are written are no barriers then.
	Disjoint bool
	// Consumes says that a plan is handed its inputs to keep, and frees each after its last use.
	Consumes bool
	// Batch makes alike small kernels the parts of one; the emitters must take kernels with parts.
	Batch bool
	// Check runs the verifiers between passes.
	Check bool
}

// Emitter makes code of loop kernels for one kind of device.
type Emitter interface {
	// Emit returns an image for each kernel, in order. Kernels are verified and have distinct names.
	Emit(kernels []*loop.Kernel) ([]Image, error)
}

// Image is one kernel's code.
type Image struct {
	Source string // for people: LLVM IR, CUDA C
	Code   []byte
	// Block, Items and Shared are the launch geometry of a GPU kernel: threads per block, outer points per block, dynamic shared memory in bytes.
	Block, Items, Shared int64
	Dependent            bool // a GPU kernel waits for the one before it by itself, and so may be launched before that has ended
	Warnings             []string
}

// ErrNoCode marks the error of a graph whose kernels were written, but whose emitter made no code of them.
var ErrNoCode = errors.New("no code was made of a kernel")

// Compiler compiles graphs. It has no state beside its options and is safe for use by several goroutines if the emitters are.
type Compiler struct {
	options Options
}

// New makes a compiler.
func New(options Options) *Compiler { return &Compiler{options: options} }

// Compiled is a compiled graph.
type Compiled struct {
	Plan  bytecode.Object // section 7 of docs/contracts.md
	Apart bool            // the plan is for inputs that do not share memory with those that it writes
	// ReadsGenerator says that the plan reads the state of a GPU's random generator, which it cannot within a CUDA graph that is captured.
	ReadsGenerator bool
	Kernels        []Kernel
	Steps          []string // the plan's steps for people
	Warnings       []string
}

// Kernel describes a kernel for people.
type Kernel struct {
	Name       string
	Device     string
	Operations []string // what was fused, in program order
	Loop       string   // loop IR
	Source     string   // what the emitter printed
}

// compilation is the state that passes hand on.
type compilation struct {
	compiler *Compiler
	graph    *graph.Graph
	program  *program
	groups   []*group
	kernels  []*kernel // in order of groups; nil for library calls
	unique   []*kernel // distinct ones, in order of first launch
	images   map[string]Image
	plan     *plan
	result   *Compiled
}

// pass is one stage of compiling.
type pass struct {
	name string
	run  func(*compilation) error
	why  string // why it stands where it stands
}

// passes returns all passes in their order.
func passes() []pass {
	return []pass{
		{"lower", lower, "first: everything after it knows aten operators only"},
		{"build", build, "after lower; decides what is a formula, a reduction, a view, or a library call"},
		{"common", common, "after build, when equal formulas are plain to see; before dead, which removes the copies"},
		{"dead", dead, "before fuse, so that unused operations keep nothing apart"},
		{"epilogues", epilogues, "after dead, so that uses are counted right; before fuse, which would make kernels of the activations"},
		{"fuse", fuse, "needs all uses of every value; barriers are in place since build"},
		{"schedule", schedule, "orders groups once fusion has fixed what depends on what"},
		{"split", split, "after schedule, between whose groups it puts those that combine parts; before loops, which writes both"},
		{"reuse", reuse, "after split, when all groups stand in the order they run; before loops, which writes kernels for the memory chosen here"},
		{"loops", loops, "writes kernels of the groups that fusion made, in the order they run"},
		{"batch", batch, "after loops, which shows what kernels are alike; before emit, which compiles what is left"},
		{"emit", emit, "all kernels at once, so that equal ones compile once and others in parallel"},
		{"plan", makePlan, "last: memory is planned over the final order of kernels"},
	}
}

// Compile turns a graph of torch-level or aten-level nodes into a launch plan. The graph is not changed. Equal graphs give equal plans.
func (c *Compiler) Compile(g *graph.Graph) (*Compiled, error) {
	state, err := c.run(g, "")
	if err != nil {
		return nil, err
	}
	return state.result, nil
}

// run executes passes up to and including the one named; all when the name is empty.
func (c *Compiler) run(g *graph.Graph, last string) (*compilation, error) {
	state := &compilation{compiler: c, graph: g, result: &Compiled{}}
	for _, pass := range passes() {
		if err := pass.run(state); err != nil {
			return nil, errors.Wrapf(err, "backend pass %s", pass.name)
		}
		if pass.name == last {
			break
		}
	}
	return state, nil
}

func lower(c *compilation) (err error) {
	c.graph, err = c.graph.Lower()
	if err == nil && c.compiler.options.Check {
		err = c.graph.Verify()
	}
	return err
}

// loops writes a kernel for every group that is no library call.
func loops(c *compilation) error {
	c.kernels = make([]*kernel, len(c.groups))
	constants := c.program.constants()
	for index, g := range c.groups {
		if g.library {
			continue
		}
		k := buildKernel(c, g)
		constants.mark(g, k)
		c.kernels[index] = k
	}
	return nil
}

// kernelName names a kernel after what it does and a digest of its text, so that equal kernels have equal names and others differ.
func kernelName(k *kernel) string {
	const longest = 60
	digest := sha256.Sum256([]byte(k.loop.String()))
	name := "fused_" + strings.Join(k.operations, "_")
	if len(k.operations) == 1 {
		name = k.operations[0]
	}
	name = strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return "k_" + name[:min(len(name), longest)] + "_" + hex.EncodeToString(digest[:6])
}

// emit has each device's emitter make its kernels.
func emit(c *compilation) error {
	c.images = map[string]Image{}
	byDevice := map[string][]*kernel{}
	for index, k := range c.kernels {
		device := c.groups[index].device.Type
		if k != nil && slices.Contains(c.unique, k) {
			byDevice[device] = append(byDevice[device], k)
		}
	}
	devices := make([]string, 0, len(byDevice))
	for device := range byDevice {
		devices = append(devices, device)
	}
	slices.Sort(devices)
	for _, device := range devices {
		if err := c.emitFor(device, byDevice[device]); err != nil {
			return err
		}
	}
	return nil
}

func (c *compilation) emitFor(device string, kernels []*kernel) error {
	text := make([]*loop.Kernel, len(kernels))
	for index, k := range kernels {
		text[index] = k.loop
	}
	images, err := c.compiler.options.Emitters[device].Emit(text)
	if err != nil {
		return errors.Mark(err, ErrNoCode)
	}
	for index, k := range kernels {
		image := images[index]
		c.images[k.loop.Name] = image
		c.result.Warnings = append(c.result.Warnings, image.Warnings...)
		c.result.Kernels = append(c.result.Kernels, Kernel{
			Name: k.loop.Name, Device: device, Operations: k.operations, Loop: k.loop.String(), Source: image.Source,
		})
	}
	return nil
}
