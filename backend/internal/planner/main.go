// Command planner compiles aten-level graphs to launch plans for tests written in Python. It reads requests from standard input and answers
// on standard output; both are a 4-byte little-endian length and that many bytes of marshal.
//
// A request is a dict: "llvm" (path of the LLVM library), "options" (dict), "inputs" [metadata…], "nodes" [(target, args, keywords, outputs, mutated, random)…], "outputs"
// [value…]. Metadata is (dtype, sizes, strides, offset); an output is (metadata, relation) with relation None, ("same", value) or ("view", value).
// Values are ("n", node, output), ("i", input), ("list", [value…]), ("dtype", name), ("device", name), ("memory_format", name), ("layout", name),
// or ("c", constant). The answer is a dict with "plan", "kernels" [(name, operations, loop IR, source)…] and "steps", or with "error".
//
// Options are "round", "unfused" and "disjoint", as in backend.Options. With "data", a list of the bytes of each input's storage, the graph runs on
// WebAssembly instead, and the answer is a dict with "results" [(metadata, bytes)…], None where the graph needs torch.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"os"

	"github.com/cockroachdb/errors"

	"fusee/backend"
	"fusee/backend/cpu"
	"fusee/bytecode"
	"fusee/graph"
)

func main() {
	input, output := bufio.NewReader(os.Stdin), os.Stdout
	toolchains := map[string]*cpu.Toolchain{}
	for {
		request, err := readMessage(input)
		if err != nil {
			return // the test is over
		}
		answer, err := respond(request, toolchains)
		if err != nil {
			answer = &bytecode.Dict{}
			answer.Set("error", errors.FlattenDetails(err)+err.Error())
		}
		if err := writeMessage(output, answer); err != nil {
			os.Exit(1)
		}
	}
}

func readMessage(input io.Reader) (bytecode.Object, error) {
	var length uint32
	if err := binary.Read(input, binary.LittleEndian, &length); err != nil {
		return nil, err
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(input, message); err != nil {
		return nil, err
	}
	return bytecode.Unmarshal(message)
}

func writeMessage(output io.Writer, object bytecode.Object) error {
	message, err := bytecode.Marshal(object)
	if err != nil {
		return err
	}
	framed := binary.LittleEndian.AppendUint32(nil, uint32(len(message)))
	_, err = output.Write(append(framed, message...))
	return err
}

// respond compiles one request. A request the reader does not understand is an error of the test, reported like any other.
func respond(object bytecode.Object, toolchains map[string]*cpu.Toolchain) (answer *bytecode.Dict, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = errors.Newf("panic: %+v", failure)
		}
	}()
	request := object.(*bytecode.Dict)
	g := readGraph(request)
	settings := get(request, "options").(*bytecode.Dict)
	if data, ok := request.Get("data"); ok {
		return execute(g, items(data), !flag(settings, "unfused"))
	}
	llvm := get(request, "llvm").(string)
	if toolchains[llvm] == nil {
		toolchains[llvm] = cpu.NewToolchain(llvm)
	}
	target, _ := cpu.HostTarget()
	options := backend.Options{
		Emitters: map[string]backend.Emitter{"cpu": &backend.CPUEmitter{Toolchain: toolchains[llvm], Target: target}}, Check: true, Batch: true,
	}
	options.RoundIntermediates, options.Unfused, options.Disjoint = flag(settings, "round"), flag(settings, "unfused"), flag(settings, "disjoint")
	compiled, err := backend.New(options).Compile(g)
	if err != nil {
		return nil, err
	}
	return describe(compiled), nil
}

// flag is a setting that is false where it is not given.
func flag(settings *bytecode.Dict, name string) bool {
	value, _ := settings.Get(name)
	on, _ := value.(bool)
	return on
}

// execute runs a graph on WebAssembly.
func execute(g *graph.Graph, data []bytecode.Object, fuse bool) (*bytecode.Dict, error) {
	inputs := make([]*backend.Data, len(g.Inputs))
	for index, input := range g.Inputs {
		meta := input.Meta
		inputs[index] = &backend.Data{
			DType: meta.DType, Sizes: graph.Hints(meta.Sizes), Strides: graph.Hints(meta.Strides), Offset: meta.Offset.Hint,
			Storage: []byte(data[index].(bytecode.Bytes)),
		}
	}
	answer := &bytecode.Dict{}
	results, err := backend.Run(context.Background(), g, inputs, fuse)
	if errors.Is(err, backend.ErrNotRunnable) {
		answer.Set("results", bytecode.None)
		return answer, nil
	}
	if err != nil {
		return nil, err
	}
	list := &bytecode.List{}
	for _, result := range results {
		meta := bytecode.Tuple{result.DType.String(), numbers(result.Sizes), numbers(result.Strides), result.Offset}
		list.Items = append(list.Items, bytecode.Tuple{meta, bytecode.Bytes(result.Storage)})
	}
	answer.Set("results", list)
	return answer, nil
}

func numbers(values []int64) *bytecode.List {
	list := &bytecode.List{}
	for _, value := range values {
		list.Items = append(list.Items, value)
	}
	return list
}

func describe(compiled *backend.Compiled) *bytecode.Dict {
	kernels, steps := &bytecode.List{}, &bytecode.List{}
	for _, kernel := range compiled.Kernels {
		operations := bytecode.Tuple{}
		for _, name := range kernel.Operations {
			operations = append(operations, name)
		}
		kernels.Items = append(kernels.Items, bytecode.Tuple{kernel.Name, operations, kernel.Loop, kernel.Source})
	}
	for _, step := range compiled.Steps {
		steps.Items = append(steps.Items, step)
	}
	answer := &bytecode.Dict{}
	answer.Set("plan", compiled.Plan)
	answer.Set("kernels", kernels)
	answer.Set("steps", steps)
	return answer
}
