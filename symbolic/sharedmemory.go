package symbolic

import (
	"slices"

	"fusee/bytecode"
	"fusee/graph"
)

// storageOf is the number that the host gave the storage of an existing tensor.
func (in *Interpreter) storageOf(t *Tensor) int64 {
	if t.id == 0 {
		return 0
	}
	d, err := in.session.Object(t.id)
	if err != nil {
		return 0
	}
	fields, _ := d.Payload.(bytecode.Tuple)
	if len(fields) <= storageField {
		return 0
	}
	storage, _ := fields[storageField].(int64)
	return storage
}

// storageField is the place of the storage in the description of a tensor.
const storageField = 7

// readsWhatItWrites says whether an argument shares memory with one that the call writes, by torch's naming rule and as out=. Eager may refuse that,
// or compute from what it has written; fake tensors have no memory.
func (c *hostedCall) readsWhatItWrites() bool {
	var written []graph.Value
	if graph.IsInPlace(c.target) && len(c.args) > 0 {
		written = graph.Tensors(c.args[0])
	}
	read := graph.Tensors(c.args...)
	for _, keyword := range c.keywords {
		tensors := graph.Tensors(keyword.Value)
		read = append(read, tensors...)
		if keyword.Name == "out" {
			written = append(written, tensors...)
		}
	}
	return slices.ContainsFunc(written, func(target graph.Value) bool {
		return slices.ContainsFunc(read, func(other graph.Value) bool {
			return !graph.SameValue(target, other) && graph.ShareMemory(target, other)
		})
	})
}
