package backend

import (
	"cmp"
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// finish orders and merges the kernel's dimensions and fills the accesses in.
func (k *kernelBuilder) finish() {
	outer := k.mergeDimensions(k.dimensions(false))
	inner := k.mergeDimensions(k.dimensions(true))
	if k.group.split {
		outer = append([]merged{k.partDimension(inner)}, outer...)
	}
	k.result.work = graph.Static(1)
	for _, size := range outer {
		k.result.work = k.shapes.Multiply(k.result.work, size.size)
		k.Kernel.Outer = append(k.Kernel.Outer, k.integer(size.size))
	}
	sizes := make([]loop.Int, len(inner))
	for index, size := range inner {
		sizes[index] = k.integer(size.size)
	}
	if len(sizes) == 0 {
		sizes = []loop.Int{loop.Static(1)}
	}
	for _, stage := range k.inners {
		k.Kernel.Stages[stage].Inner = sizes
	}
	k.fillPositions(append(slices.Clone(outer), inner...))
	k.fillOrdinals(append(slices.Clone(outer), inner...))
	for index := range k.Kernel.Stages {
		strides := slices.Clone(outer)
		if slices.Contains(k.inners, index) {
			strides = append(strides, inner...)
			if len(inner) == 0 {
				strides = append(strides, merged{})
			}
		}
		k.fillAccesses(&k.Kernel.Stages[index], strides)
	}
	k.cut(inner, sizes)
}

// partDimension is the outer dimension that counts parts of an inner one, whose accesses it moves by a part's size.
func (k *kernelBuilder) partDimension(inner []merged) merged {
	counter := len(k.group.space) - 1
	parts := k.group.space[counter]
	chosen, size := k.piece(inner, parts.Hint)
	for _, at := range k.walks() {
		stride := k.shapes.Multiply(at.strides[inner[chosen].dimension-1], size)
		at.strides[counter] = k.shapes.Add(at.strides[counter], stride)
	}
	return merged{parts, counter + 1}
}

// cut has the stages go over one part of the inner dimension that parts share, whose sizes they share. It comes last, when all scalar arguments are known.
func (k *kernelBuilder) cut(inner []merged, sizes []loop.Int) {
	if !k.group.split {
		return
	}
	chosen, size := k.piece(inner, k.group.space[len(k.group.space)-1].Hint)
	span := &loop.Span{Size: k.integer(size), Total: k.integer(inner[chosen].size)}
	k.Kernel.Span = span
	sizes[chosen] = loop.Argument(k.Kernel.Scalars)
}

// merged is a loop dimension: one of the group's, or several that every access walks as one. Strides belong to the innermost of them.
type merged struct {
	size      graph.Size
	dimension int // the innermost of the group's dimensions plus one; 0 for none
}

// dimensions lists the group's outer or inner dimensions of more than one element, outermost first: in the order of memory of the first tensor stored,
// or loaded where nothing of full extent is stored. Positional reductions count in program order.
func (k *kernelBuilder) dimensions(inner bool) []int {
	var result []int
	for dimension, size := range k.group.space {
		counts := k.group.split && dimension == len(k.group.space)-1
		if k.group.inner[dimension] == inner && !isStatic(size, 1) && !counts {
			result = append(result, dimension)
		}
	}
	guide, ok := k.guide(result)
	positional := inner && slices.ContainsFunc(k.group.members, func(op *operation) bool { return op.reduce.Positional() })
	if !ok || positional {
		return result
	}
	slices.SortStableFunc(result, func(a, b int) int { return cmp.Compare(guide.strides[b].Hint, guide.strides[a].Hint) })
	return result
}

// guide picks the access that decides the order of dimensions: a store that walks all of them, else the last load that does.
func (k *kernelBuilder) guide(dimensions []int) (strided, bool) {
	var result strided
	found, stored := false, false
	for _, place := range k.places {
		store := k.Kernel.Buffers[place.access.Buffer].Mode != loop.Read
		if walksAll(place.at, dimensions) && (!stored || store && !stored) {
			result, found, stored = place.at, true, store
		}
	}
	return result, found
}

// walksAll reports whether the access has a known stride other than 0 along each of the dimensions.
func walksAll(at strided, dimensions []int) bool {
	for _, dimension := range dimensions {
		if stride := at.strides[dimension]; stride.Expr != nil || stride.Hint == 0 {
			return false
		}
	}
	return true
}

// mergeDimensions joins neighbours that every access walks without a gap.
func (k *kernelBuilder) mergeDimensions(dimensions []int) []merged {
	var result []merged
	for _, dimension := range dimensions {
		size := k.group.space[dimension]
		if last := len(result) - 1; last >= 0 && k.contiguous(result[last].dimension-1, dimension) {
			result[last] = merged{k.shapes.Multiply(result[last].size, size), dimension + 1}
			continue
		}
		result = append(result, merged{size, dimension + 1})
	}
	return result
}

// fillPositions says which of the kernel's dimensions positions are along.
func (k *kernelBuilder) fillPositions(dimensions []merged) {
	for number, along := range k.counted {
		k.Kernel.Instruction(number).Index = slices.IndexFunc(dimensions, func(m merged) bool { return m.dimension == along+1 })
	}
}

// contiguous reports whether every access steps over the whole of the inner dimension when the outer index advances, and nothing asks for an index along
// either of them.
func (k *kernelBuilder) contiguous(outer, inner int) bool {
	for _, along := range k.counted {
		if along == outer || along == inner {
			return false
		}
	}
	return !slices.ContainsFunc(k.walks(), func(at strided) bool {
		whole := k.shapes.Multiply(at.strides[inner], k.group.space[inner])
		return !sameSize(at.strides[outer], whole)
	})
}

// fillAccesses gives the accesses of a stage their final strides.
func (k *kernelBuilder) fillAccesses(stage *loop.Stage, dimensions []merged) {
	for index := range stage.Body {
		access := stage.Body[index].Access
		if access == nil {
			continue
		}
		position := slices.IndexFunc(k.places, func(p place) bool { return p.access == access })
		at := k.places[position].at
		access.Offset = k.integer(at.offset)
		for _, dimension := range dimensions {
			stride := graph.Static(0)
			if dimension.dimension > 0 {
				stride = at.strides[dimension.dimension-1]
			}
			access.Strides = append(access.Strides, k.integer(stride))
		}
	}
}
