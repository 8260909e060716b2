package backend

import (
	"slices"

	"fusee/graph"
)

// mapping says for each dimension of an operation's own index space which kernel dimension runs along it; −1 where the dimension has one
// element.
type mapping []int

func (m mapping) equal(other mapping) bool { return slices.Equal(m, other) }

// strided is how a kernel reads memory: a stride for each kernel dimension, in elements.
type strided struct {
	strides []graph.Size
	offset  graph.Size
}

// reading returns how an operation with index space sizes, placed in the kernel by m, walks over an operand that broadcasts to it.
func reading(shapes *graph.ShapeEnvironment, operand *tensor, sizes []graph.Size, m mapping, rank int) strided {
	result := strided{strides: make([]graph.Size, rank)}
	result.offset = shapes.Subtract(operand.meta.Offset, operand.root.meta.Offset)
	shift := len(sizes) - len(operand.meta.Sizes)
	for dimension := range operand.meta.Sizes {
		own := dimension + shift
		if m[own] < 0 || isStatic(operand.meta.Sizes[dimension], 1) {
			continue
		}
		result.strides[m[own]] = shapes.Add(result.strides[m[own]], operand.meta.Strides[dimension])
	}
	return result
}

// invert finds the mapping of a tensor's own dimensions under which reading it at its own strides is the given access; false when there
// is none, as for slices and for reshapes across dimensions.
func invert(meta *graph.Meta, access strided, space []graph.Size) (mapping, bool) {
	result := make(mapping, len(meta.Sizes))
	for dimension := range result {
		result[dimension] = -1
	}
	if !isStatic(access.offset, 0) {
		return nil, false
	}
	for kernel, stride := range access.strides {
		if isStatic(stride, 0) || isStatic(space[kernel], 1) {
			continue
		}
		dimension := dimensionWith(meta, stride, space[kernel])
		if dimension < 0 || result[dimension] >= 0 {
			return nil, false
		}
		result[dimension] = kernel
	}
	for dimension := range result {
		if result[dimension] < 0 && !isStatic(meta.Sizes[dimension], 1) {
			return nil, false
		}
	}
	return result, true
}

// dimensionWith finds the dimension of the given stride and size.
func dimensionWith(meta *graph.Meta, stride, size graph.Size) int {
	for dimension := range meta.Sizes {
		if sameSize(meta.Strides[dimension], stride) && sameSize(meta.Sizes[dimension], size) && !isStatic(size, 1) {
			return dimension
		}
	}
	return -1
}

// identity maps each dimension of sizes to the kernel dimension of the same number, and single elements to none.
func identity(sizes []graph.Size) mapping {
	result := make(mapping, len(sizes))
	for dimension, size := range sizes {
		result[dimension] = dimension
		if isStatic(size, 1) {
			result[dimension] = -1
		}
	}
	return result
}
