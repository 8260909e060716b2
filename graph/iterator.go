package graph

// This file computes shapes and strides of pointwise results as TensorIterator does (aten/src/ATen/TensorIterator.cpp).

// broadcast gives the common shape; false when the shapes do not fit.
func (e *ShapeEnvironment) broadcast(shapes ...[]Size) ([]Size, bool) {
	var result []Size
	for _, shape := range shapes {
		if len(shape) > len(result) {
			result, shape = shape, result
		}
		merged := append([]Size(nil), result...)
		for i := range shape {
			at := len(result) - len(shape) + i
			size, ok := e.broadcastSize(result[at], shape[i])
			if !ok {
				return nil, false
			}
			merged[at] = size
		}
		result = merged
	}
	return result, true
}

// broadcastSize prefers the static one of two equal sizes, so that equality with a constant simplifies what follows.
func (e *ShapeEnvironment) broadcastSize(a, b Size) (Size, bool) {
	switch {
	case e.IsOne(b):
		return a, true
	case e.IsOne(a):
		return b, true
	case !e.Equal(a, b):
		return Size{}, false
	case b.IsStatic():
		return b, true
	}
	return a, true
}

// iteratorStrides gives the strides of an output that the iterator allocates, from the layouts of its input tensors.
func (e *ShapeEnvironment) iteratorStrides(shape []Size, inputs []*Meta) []Size {
	if strides, ok := e.fastStrides(shape, inputs); ok {
		return strides
	}
	n := len(shape)
	extended := make([][]Size, len(inputs))
	for i, m := range inputs {
		extended[i] = e.broadcastStrides(m, shape)
	}
	order := e.sortedDimensions(n, func(a, b int) int { return e.compareDimensions(a, b, shape, extended) })
	if isRowMajorOrder(order) {
		return e.contiguousStrides(shape)
	}
	strides := make([]Size, n)
	next := Static(1)
	for _, d := range order {
		strides[d] = next
		next = e.Multiply(next, shape[d])
	}
	return strides
}

func isRowMajorOrder(order []int) bool {
	for i, d := range order {
		if d != len(order)-1-i {
			return false
		}
	}
	return true
}

// fastStrides covers inputs of one shape that are all contiguous, all channels-last, or all dense with the same strides.
func (e *ShapeEnvironment) fastStrides(shape []Size, inputs []*Meta) ([]Size, bool) {
	contiguous, channelsLast, dense, equalStrides := true, true, true, true
	for _, m := range inputs {
		if !e.AllEqual(m.Sizes, shape) {
			return nil, false
		}
	}
	for _, m := range inputs {
		contiguous = contiguous && e.isContiguous(m)
	}
	if contiguous {
		return e.contiguousStrides(shape), true
	}
	for _, m := range inputs {
		channelsLast = channelsLast && e.isChannelsLast(m, 4)
	}
	if channelsLast {
		return e.formatStrides(ChannelsLast, shape)
	}
	for _, m := range inputs {
		dense = dense && e.isDense(m)
		equalStrides = equalStrides && e.AllEqual(m.Strides, inputs[0].Strides)
	}
	if dense && equalStrides {
		return inputs[0].Strides, true
	}
	return nil, false
}

// broadcastStrides aligns strides with shape; broadcast dimensions get stride 0.
func (e *ShapeEnvironment) broadcastStrides(m *Meta, shape []Size) []Size {
	strides := make([]Size, len(shape))
	offset := len(shape) - m.Dim()
	for i := range m.Sizes {
		if !e.IsOne(m.Sizes[i]) || e.IsOne(shape[offset+i]) {
			strides[offset+i] = m.Strides[i]
		}
	}
	return strides
}

// compareDimensions orders two dimensions by the strides of the first input that can tell.
func (e *ShapeEnvironment) compareDimensions(a, b int, shape []Size, strides [][]Size) int {
	for _, s := range strides {
		switch {
		case e.IsZero(s[a]) || e.IsZero(s[b]):
			continue
		case e.Less(s[a], s[b]):
			return -1
		case e.Less(s[b], s[a]):
			return 1
		case e.Less(shape[b], shape[a]):
			return 1
		}
	}
	return 0
}

// broadcastsTo says whether the first shape broadcasts to the second.
func (e *ShapeEnvironment) broadcastsTo(shape, target []Size) bool {
	joined, ok := e.broadcast(target, shape)
	return ok && e.AllEqual(joined, target)
}
