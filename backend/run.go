package backend

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/errors"

	"fusee/backend/interpret"
	"fusee/backend/loop"
	"fusee/backend/wasm"
	"fusee/bytecode"
	"fusee/graph"
	"fusee/internal/slice"
)

// Data is a tensor with its elements, or a number when DType is NoDType.
type Data struct {
	DType          graph.DType
	Sizes, Strides []int64
	Offset         int64  // of the first element in Storage, in elements
	Storage        []byte // little-endian
	Number         int64  // of scalar inputs; floats as their bits
}

// ErrNotRunnable marks graphs that hold operators without loops, which only torch can run.
var ErrNotRunnable = errors.New("the graph calls operators that only torch can run")

// Run compiles a graph to WebAssembly and executes its plan on the inputs in order. With fuse false every operation is a kernel of its own. The
// error is ErrNotRunnable where the graph needs torch.
func Run(ctx context.Context, g *graph.Graph, inputs []*Data, fuse bool) ([]*Data, error) {
	compiler := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}, "cuda": wasmEmitter{}}, Check: true, RoundIntermediates: true, Unfused: !fuse, Disjoint: fuse})
	compiled, err := compiler.Compile(g)
	if err != nil {
		return nil, err
	}
	runtime, err := wasm.NewRuntime(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = runtime.Close(ctx) }()
	r := &runner{ctx: ctx, runtime: runtime, plan: compiled.Plan.(*bytecode.Dict)}
	return r.run(inputs)
}

// wasmEmitter makes modules that Run executes.
type wasmEmitter struct{}

// Emit implements Emitter.
func (wasmEmitter) Emit(kernels []*loop.Kernel) ([]Image, error) {
	images := make([]Image, len(kernels))
	for index, kernel := range kernels {
		images[index] = Image{Source: kernel.String(), Code: wasm.Emit(kernel)}
	}
	return images, nil
}

// RandomInputs makes contiguous or strided inputs as the graph describes them, always the same for one seed. Symbolic sizes take their values at capture.
func RandomInputs(g *graph.Graph, seed uint64) ([]*Data, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	inputs := make([]*Data, len(g.Inputs))
	for index, input := range g.Inputs {
		switch input.Kind {
		case graph.Int:
			inputs[index] = &Data{Number: input.Size.Hint}
			continue
		case graph.Float:
			inputs[index] = &Data{Number: int64(math.Float64bits(random.NormFloat64()))}
			continue
		}
		typ, ok := machineType(input.Meta.DType)
		if !ok {
			return nil, errors.Wrapf(ErrNotRunnable, "input %s of type %s", input.Name, input.Meta.DType)
		}
		inputs[index] = randomTensor(&input.Meta, typ, random)
	}
	return inputs, nil
}

func randomTensor(meta *graph.Meta, typ loop.Type, random *rand.Rand) *Data {
	data := &Data{DType: meta.DType, Sizes: graph.Hints(meta.Sizes), Strides: graph.Hints(meta.Strides), Offset: meta.Offset.Hint}
	memory := &interpret.Bytes{Type: typ, Data: make([]byte, data.extent()*int64(typ.Bytes()))}
	for element := range data.extent() {
		value := loop.FloatBits(random.NormFloat64())
		switch {
		case typ == loop.Bool:
			value = loop.BoolBits(random.IntN(2) == 1)
		case typ.Is(loop.ClassInteger):
			value = loop.IntBits(int64(random.IntN(10)))
		}
		memory.Store(element, value)
	}
	data.Storage = memory.Data
	return data
}

// extent is the number of elements of storage that the tensor spans.
func (d *Data) extent() int64 {
	last := d.Offset
	for dimension, size := range d.Sizes {
		if size == 0 {
			return d.Offset
		}
		last += (size - 1) * d.Strides[dimension]
	}
	return last + 1
}

// Elements returns the tensor's elements in row-major order of its dimensions, as constants of the loop IR.
func (d *Data) Elements() []loop.Bits {
	typ, _ := machineType(d.DType)
	memory := &interpret.Bytes{Type: typ, Data: d.Storage}
	var result []loop.Bits
	var visit func(dimension int, index int64)
	visit = func(dimension int, index int64) {
		if dimension == len(d.Sizes) {
			result = append(result, memory.Load(index))
			return
		}
		for position := range d.Sizes[dimension] {
			visit(dimension+1, index+position*d.Strides[dimension])
		}
	}
	visit(0, d.Offset)
	return result
}

// runner executes a plan.
type runner struct {
	ctx     context.Context
	runtime *wasm.Runtime
	plan    *bytecode.Dict
	slots   []*contents
	kernels []*wasm.Kernel
}

// contents is the contents of a slot: a tensor in the runtime's memory, or a number.
type contents struct {
	Data
	storage uint32 // address
	bytes   int64
}

func (r *runner) run(inputs []*Data) ([]*Data, error) {
	count, _ := r.plan.Get("slots")
	r.slots = make([]*contents, count.(int64))
	for index, input := range inputs {
		slot := &contents{Data: *input, bytes: int64(len(input.Storage))}
		var err error
		if slot.storage, err = r.runtime.Allocate(slot.bytes); err != nil {
			return nil, err
		}
		r.runtime.Write(slot.storage, input.Storage)
		r.slots[index] = slot
	}
	kernels, _ := r.plan.Get("kernels")
	for _, kernel := range kernels.(*bytecode.List).Items {
		loaded, err := r.runtime.Load(r.ctx, []byte(kernel.(bytecode.Tuple)[2].(bytecode.Bytes)))
		if err != nil {
			return nil, err
		}
		r.kernels = append(r.kernels, loaded)
	}
	steps, _ := r.plan.Get("steps")
	for _, step := range steps.(*bytecode.List).Items {
		if err := r.step(step.(bytecode.Tuple)); err != nil {
			return nil, err
		}
	}
	return r.outputs()
}

func (r *runner) outputs() ([]*Data, error) {
	list, _ := r.plan.Get("outputs")
	return slice.TryMap(list.(*bytecode.List).Items, r.output)
}

func (r *runner) output(number bytecode.Object) (*Data, error) {
	slot := r.slots[number.(int64)]
	storage, ok := r.runtime.Read(slot.storage, uint32(slot.bytes))
	if !ok {
		return nil, errors.New("an output lies outside the memory")
	}
	output := slot.Data
	output.Storage = storage
	return &output, nil
}

func (r *runner) step(step bytecode.Tuple) error {
	switch step[0].(string) {
	case "alloc":
		return r.allocate(step)
	case "view":
		return r.view(step)
	case "kernel":
		return r.kernel(step)
	case "free":
		r.slots[step[1].(int64)] = nil
		return nil
	case "written":
		return nil
	}
	return errors.Wrapf(ErrNotRunnable, "%v.%v", step[1], step[2])
}

func (r *runner) allocate(step bytecode.Tuple) error {
	dtype, _ := graph.DTypeOfScalarType(int(step[2].(int64)))
	slot := &contents{Data: Data{DType: dtype, Sizes: r.integers(step[5]), Strides: r.integers(step[6])}}
	slot.bytes = slot.extent() * int64(dtype.Bytes())
	address, err := r.runtime.Allocate(slot.bytes)
	slot.storage = address
	r.slots[step[1].(int64)] = slot
	return err
}

func (r *runner) view(step bytecode.Tuple) error {
	base := *r.slots[step[2].(int64)]
	base.Sizes, base.Strides, base.Offset = r.integers(step[3]), r.integers(step[4]), base.Offset+r.integer(step[5])
	r.slots[step[1].(int64)] = &base
	return nil
}

func (r *runner) kernel(step bytecode.Tuple) error {
	var pointers []uint32
	for _, number := range step[2].(*bytecode.List).Items {
		slot := r.slots[number.(int64)]
		pointers = append(pointers, slot.storage+uint32(slot.Offset*int64(slot.DType.Bytes())))
	}
	return r.kernels[step[1].(int64)].Run(r.ctx, pointers, r.integers(step[3]), 0, r.integer(step[4]))
}

func (r *runner) integers(list bytecode.Object) []int64 {
	var result []int64
	for _, item := range list.(*bytecode.List).Items {
		result = append(result, r.integer(item))
	}
	return result
}

// item reads an element of a tensor of int64.
func (r *runner) item(slot *contents, number int64) int64 {
	storage, _ := r.runtime.Read(slot.storage, uint32(slot.bytes))
	memory := &interpret.Bytes{Type: loop.I64, Data: storage}
	return memory.Load(slot.Offset + number).Int()
}

// integer evaluates an integer of the plan.
func (r *runner) integer(object bytecode.Object) int64 {
	expression, ok := object.(bytecode.Tuple)
	if !ok {
		return object.(int64)
	}
	switch expression[0].(string) {
	case "slot":
		return r.slots[expression[1].(int64)].Number
	case "size":
		return r.slots[expression[1].(int64)].Sizes[expression[2].(int64)]
	case "stride":
		return r.slots[expression[1].(int64)].Strides[expression[2].(int64)]
	case "item":
		return r.item(r.slots[expression[1].(int64)], expression[2].(int64))
	}
	left, right := r.integer(expression[1]), r.integer(expression[2])
	switch expression[0].(string) {
	case "+":
		return left + right
	case "-":
		return left - right
	case "*":
		return left * right
	case "max":
		return max(left, right)
	case "min":
		return min(left, right)
	}
	quotient := left / right
	if left%right != 0 && (left < 0) != (right < 0) {
		quotient--
	}
	if expression[0] == bytecode.Object("%") {
		return left - quotient*right
	}
	return quotient
}

// Comparison says how far two runs of a graph differ.
type Comparison struct {
	Outputs int     // number of tensors compared
	Largest float64 // greatest absolute difference between elements; NaN equals NaN
}

// CompareFused runs a graph fused and unfused on the inputs and compares the outputs.
func CompareFused(ctx context.Context, g *graph.Graph, inputs []*Data) (*Comparison, error) {
	fused, err := Run(ctx, g, inputs, true)
	if err != nil {
		return nil, err
	}
	unfused, err := Run(ctx, g, inputs, false)
	if err != nil {
		return nil, err
	}
	result := &Comparison{Outputs: len(fused)}
	for index := range fused {
		result.Largest = max(result.Largest, difference(fused[index], unfused[index]))
	}
	return result, nil
}

func difference(a, b *Data) float64 {
	if !slices.Equal(a.Sizes, b.Sizes) || a.DType != b.DType {
		return math.Inf(1)
	}
	largest := 0.0
	left, right := a.Elements(), b.Elements()
	for index := range left {
		if left[index] == right[index] {
			continue
		}
		if !a.DType.IsFloat() {
			largest = max(largest, math.Abs(float64(left[index].Int()-right[index].Int())))
			continue
		}
		x, y := left[index].Float(), right[index].Float()
		switch gap := math.Abs(x - y); {
		case x == y || x != x && y != y:
		case gap != gap:
			return math.Inf(1)
		default:
			largest = max(largest, gap)
		}
	}
	return largest
}
