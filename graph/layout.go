package graph

import "slices"

// This file decides properties of strides as c10::TensorImpl does, and the strides of fresh tensors as ATen does. Source of
// the rules: c10/core/TensorImpl.cpp, c10/core/MemoryFormat.h, aten/src/ATen/ExpandUtils.cpp of PyTorch.

func (e *ShapeEnvironment) anyZero(sizes []Size) bool {
	return slices.ContainsFunc(sizes, e.IsZero)
}

// contiguousIn says whether the dimensions, listed outermost first, are laid out densely in that order; size-1 dimensions may
// have any stride.
func (e *ShapeEnvironment) contiguousIn(order []int, sizes, strides []Size) bool {
	expected := Static(1)
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		if e.IsOne(sizes[d]) {
			continue
		}
		if !e.Equal(strides[d], expected) {
			return false
		}
		expected = e.Multiply(expected, sizes[d])
	}
	return true
}

func rowMajor(dimensions int) []int {
	order := make([]int, dimensions)
	for i := range order {
		order[i] = i
	}
	return order
}

// channelsLastOrder lists dimensions outermost first for the channels-last formats of 4 and 5 dimensions.
func channelsLastOrder(dimensions int) []int {
	switch dimensions {
	case 4:
		return []int{0, 2, 3, 1}
	case 5:
		return []int{0, 2, 3, 4, 1}
	}
	return nil
}

// IsContiguous decides whether a tensor's elements lie in row-major order without gaps, as c10 does.
func (e *ShapeEnvironment) IsContiguous(m *Meta) bool { return e.isContiguous(m) }

func (e *ShapeEnvironment) isContiguous(m *Meta) bool {
	return e.anyZero(m.Sizes) || e.contiguousIn(rowMajor(m.Dim()), m.Sizes, m.Strides)
}

func (e *ShapeEnvironment) isChannelsLast(m *Meta, dimensions int) bool {
	return m.Dim() == dimensions && e.contiguousIn(channelsLastOrder(dimensions), m.Sizes, m.Strides)
}

// Unambiguous says whether the strides are exactly those of a fresh tensor, row-major or channels-last. Sizes of 1 can leave open which.
func (e *ShapeEnvironment) Unambiguous(m *Meta) bool {
	return plainlyContiguous(m.Sizes, m.Strides) || !e.isContiguous(m) && (e.isChannelsLast(m, 4) || e.isChannelsLast(m, 5))
}

func (e *ShapeEnvironment) isDense(m *Meta) bool {
	return e.isContiguous(m) || e.isChannelsLast(m, 4) || e.isChannelsLast(m, 5) || e.isPermutedDense(m)
}

// isPermutedDense says whether some order of the dimensions is dense without overlap.
func (e *ShapeEnvironment) isPermutedDense(m *Meta) bool {
	var order []int
	for d, size := range m.Sizes {
		if e.LessEqual(Static(2), size) {
			order = append(order, d)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case e.Equal(m.Strides[a], m.Strides[b]):
			return 0
		case e.Less(m.Strides[a], m.Strides[b]):
			return 1
		}
		return -1
	})
	return e.contiguousIn(order, m.Sizes, m.Strides)
}

// stridesLikeChannelsLast is torch's guess at the memory format behind strides, for 4 and 5 dimensions.
func (e *ShapeEnvironment) stridesLikeChannelsLast(m *Meta) bool {
	order := channelsLastOrder(m.Dim())
	if order == nil || e.IsZero(m.Strides[1]) {
		return false
	}
	least := Static(0)
	for i := len(order) - 1; i >= 0; i-- {
		d := order[i]
		if e.IsZero(m.Sizes[d]) || e.Less(m.Strides[d], least) || d == 0 && e.Equal(least, m.Strides[1]) {
			return false
		}
		least = e.Multiply(m.Strides[d], m.Sizes[d])
	}
	return true
}

// suggestedFormat is Tensor::suggest_memory_format.
func (e *ShapeEnvironment) suggestedFormat(m *Meta) MemoryFormat {
	if !e.stridesLikeChannelsLast(m) {
		return ContiguousFormat
	}
	if m.Dim() == 5 {
		return ChannelsLast3D
	}
	return ChannelsLast
}

// formatStrides gives the strides of a fresh tensor in a memory format; false when the format does not fit the dimensions.
func (e *ShapeEnvironment) formatStrides(format MemoryFormat, sizes []Size) ([]Size, bool) {
	if format == ContiguousFormat {
		return e.contiguousStrides(sizes), true
	}
	order := channelsLastOrder(len(sizes))
	if order == nil || (format == ChannelsLast) != (len(sizes) == 4) {
		return nil, false
	}
	slices.Reverse(order)
	return e.packedStrides(order, sizes), true
}

// packedStrides are those of a tensor without gaps whose dimensions lie in this order, innermost first.
func (e *ShapeEnvironment) packedStrides(order []int, sizes []Size) []Size {
	strides := make([]Size, len(sizes))
	next := Static(1)
	for _, d := range order {
		strides[d] = next
		next = e.Multiply(next, e.atLeastOne(sizes[d]))
	}
	return strides
}

// contiguousStrides gives row-major strides; dimensions of size 0 count as 1, as in torch.
func (e *ShapeEnvironment) contiguousStrides(sizes []Size) []Size {
	strides := make([]Size, len(sizes))
	next := Static(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = next
		if i > 0 {
			next = e.Multiply(next, e.atLeastOne(sizes[i]))
		}
	}
	return strides
}

// atLeastOne decides whether a size is 0, which counts as 1 in strides. Without an environment symbols are taken for other than 0.
func (e *ShapeEnvironment) atLeastOne(s Size) Size {
	if e == nil && s.Expr == nil && s.Hint < 1 || e != nil && e.IsZero(s) {
		return Static(1)
	}
	return s
}

// preservedStrides is the layout of empty_like and clone: the same strides when dense, else the nearest dense ones.
func (e *ShapeEnvironment) preservedStrides(m *Meta) []Size {
	if e.isDense(m) {
		return m.Strides
	}
	return e.denseStrides(m)
}

// denseStrides keeps the order of the dimensions and closes the gaps (at::infer_dense_strides).
func (e *ShapeEnvironment) denseStrides(m *Meta) []Size {
	order := e.sortedDimensions(m.Dim(), func(a, b int) int {
		switch {
		case e.IsZero(m.Strides[a]) || e.IsZero(m.Strides[b]):
			return 0
		case e.Less(m.Strides[a], m.Strides[b]):
			return -1
		case e.Less(m.Strides[b], m.Strides[a]) || e.Less(m.Sizes[b], m.Sizes[a]):
			return 1
		}
		return 0
	})
	return e.packedStrides(order, m.Sizes)
}

// sortedDimensions lists dimensions innermost first, sorted by TensorIterator's insertion sort, which tolerates comparisons
// that answer "cannot say" (0).
func (e *ShapeEnvironment) sortedDimensions(n int, compare func(a, b int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = n - 1 - i
	}
	for i := 1; i < n; i++ {
		moving := i
		for j := i - 1; j >= 0; j-- {
			comparison := compare(order[j], order[moving])
			if comparison < 0 {
				break
			}
			if comparison > 0 {
				order[j], order[moving] = order[moving], order[j]
				moving = j
			}
		}
	}
	return order
}
