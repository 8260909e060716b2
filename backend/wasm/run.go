package wasm

import (
	"context"
	"math"
	"slices"

	"github.com/cockroachdb/errors"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"fusee/backend/loop"
)

// Runtime runs modules in one linear memory, where tensors' storage lies too.
type Runtime struct {
	runtime wazero.Runtime
	memory  api.Memory
	used    uint32
}

const pageSize = 1 << 16

// NewRuntime starts wazero with the host functions that kernels import.
func NewRuntime(ctx context.Context) (*Runtime, error) {
	runtime := wazero.NewRuntime(ctx)
	host := runtime.NewHostModuleBuilder(hostModule + " functions")
	for _, function := range hostFunctions() {
		host.NewFunctionBuilder().WithGoFunction(api.GoFunc(function.call), apiTypes(function.parameters), apiTypes(function.results)).Export(function.name)
	}
	if _, err := host.Instantiate(ctx); err != nil {
		return nil, err
	}
	relay, err := runtime.InstantiateWithConfig(ctx, relayModule(), wazero.NewModuleConfig().WithName(hostModule))
	if err != nil {
		return nil, err
	}
	return &Runtime{runtime: runtime, memory: relay.Memory(), used: 16}, nil
}

// relayModule owns the memory and passes the host functions on, because wazero's host modules cannot export a memory.
func relayModule() []byte {
	var types, imported, exported [][]byte
	for number, function := range hostFunctions() {
		types = append(types, functionType(function.parameters, function.results))
		entry := append(name(hostModule+" functions"), name(function.name)...)
		imported = append(imported, append(entry, 0, byte(number)))
		exported = append(exported, append(name(function.name), 0, byte(number)))
	}
	exported = append(exported, append(name(memoryName), 2, 0))
	bytes := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	bytes = append(bytes, section(1, vector(types...))...)
	bytes = append(bytes, section(2, vector(imported...))...)
	bytes = append(bytes, section(5, vector([]byte{0, 1}))...)
	return append(bytes, section(7, vector(exported...))...)
}

func apiTypes(types []valueType) []api.ValueType {
	result := make([]api.ValueType, len(types))
	for index, typ := range types {
		result[index] = api.ValueType(typ)
	}
	return result
}

// call runs the function on wazero's stack.
func (h hostFunction) call(_ context.Context, stack []uint64) {
	argument := func(index int) float64 { return math.Float64frombits(stack[index]) }
	switch {
	case h.unary != nil:
		stack[0] = math.Float64bits(h.unary(argument(0)))
	case h.binary != nil:
		stack[0] = math.Float64bits(h.binary(argument(0), argument(1)))
	case h.ternary != nil:
		stack[0] = math.Float64bits(h.ternary(argument(0), argument(1), argument(2)))
	case h.name == "half_to_float":
		stack[0] = api.EncodeF32(loop.HalfFloat(uint16(stack[0])))
	case h.name == "float_to_half":
		stack[0] = uint64(loop.HalfBits(api.DecodeF32(stack[0])))
	default:
		stack[0] = uint64(loop.BrainBits(api.DecodeF32(stack[0])))
	}
}

// Close frees everything.
func (r *Runtime) Close(ctx context.Context) error { return r.runtime.Close(ctx) }

// Allocate reserves zeroed bytes and returns their address, a multiple of 16.
func (r *Runtime) Allocate(size int64) (uint32, error) {
	const limit = 1 << 30
	end := int64(r.used) + (size+15)&^15
	if size < 0 || end > limit {
		return 0, errors.Newf("%d bytes do not fit the memory of the WebAssembly runtime", size)
	}
	if missing := end - int64(r.memory.Size()); missing > 0 {
		if _, ok := r.memory.Grow(uint32((missing + pageSize - 1) / pageSize)); !ok {
			return 0, errors.New("the memory of the WebAssembly runtime cannot grow")
		}
	}
	address := r.used
	r.used = uint32(end)
	return address, nil
}

// Write copies bytes to an address, and Read from there; false when they are outside the memory.
func (r *Runtime) Write(address uint32, bytes []byte) bool { return r.memory.Write(address, bytes) }

// Read copies bytes out of the memory.
func (r *Runtime) Read(address, size uint32) ([]byte, bool) {
	view, ok := r.memory.Read(address, size)
	return append([]byte(nil), view...), ok
}

// Kernel is a loaded module.
type Kernel struct {
	module api.Module
	run    api.Function
}

// Load compiles a module that Emit made. Accesses outside the memory end the run with an error.
func (r *Runtime) Load(ctx context.Context, module []byte) (*Kernel, error) {
	instance, err := r.runtime.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return nil, errors.Wrap(err, "loading a kernel")
	}
	return &Kernel{instance, instance.ExportedFunction(functionName)}, nil
}

// Run executes outer points begin…end with the addresses of the buffers' first elements. An index out of range is an error.
func (k *Kernel) Run(ctx context.Context, pointers []uint32, scalars []int64, begin, end int64) error {
	var arguments []uint64
	for _, pointer := range pointers {
		arguments = append(arguments, uint64(pointer))
	}
	for _, scalar := range slices.Concat(scalars, []int64{begin, end}) {
		arguments = append(arguments, uint64(scalar))
	}
	_, err := k.run.Call(ctx, arguments...)
	return errors.Wrap(err, "running a kernel")
}

// Close frees the kernel.
func (k *Kernel) Close(ctx context.Context) error { return k.module.Close(ctx) }
