package backend

import (
	"fusee/graph"
	"fusee/internal/slice"
)

// items reads an argument that is a list of tensors; the recipe fails when one is none that loops can read.
func (r *recipe) items(name string) []*tensor {
	list, ok := r.argument(name, 0).(graph.List)
	r.failed = r.failed || !ok || len(list.Items) == 0
	var result []*tensor
	for _, item := range list.Items {
		key, isValue := keyOf(item)
		found := r.b.program.values[key].tensor
		if !isValue || found == nil || found.meta.Device != r.device || !loopable(&found.meta) {
			r.failed = true
			return nil
		}
		result = append(result, found)
	}
	return result
}

// concatenate lays tensors side by side along a dimension. Empty vectors among others are skipped, as torch does for old code.
func (r *recipe) concatenate() bool {
	sizes := r.node.Outputs[0].Meta.Sizes
	sources := r.items("tensors")
	if r.failed || len(sizes) == 0 {
		return false
	}
	return r.sideBySide(sources, r.dimensionOr(len(sizes), 1, 0))
}

// sideBySide lays tensors one after another along a dimension of the result.
func (r *recipe) sideBySide(sources []*tensor, dimension int) bool {
	if r.failed {
		return false
	}
	sizes, shapes := r.node.Outputs[0].Meta.Sizes, r.b.program.graph.Shapes
	var parts []box
	at := graph.Static(0)
	for _, source := range sources {
		if len(source.meta.Sizes) != len(sizes) {
			continue
		}
		along := wholes(sizes)
		next := shapes.Add(at, source.meta.Sizes[dimension])
		along[dimension] = []interval{{low: at, high: next, step: 1}}
		parts, at = append(parts, boxes(source, along)...), next
	}
	return r.assemble(parts, nil)
}

// stack is a concatenation along a new dimension.
func (r *recipe) stack() bool {
	sources := r.items("tensors")
	rank := len(r.node.Outputs[0].Meta.Sizes)
	dimension := r.dimensionOr(rank, 1, 0)
	if r.failed {
		return false
	}
	for index, source := range sources {
		sources[index] = unsqueezed(source, dimension)
	}
	return r.sideBySide(sources, dimension)
}

// unsqueezed is a tensor with a dimension of one element more.
func unsqueezed(t *tensor, dimension int) *tensor {
	rank := len(t.meta.Sizes) + 1
	meta := t.meta
	meta.Sizes, meta.Strides = unitSizes(rank), make([]graph.Size, rank)
	for from := range t.meta.Sizes {
		to := from
		if from >= dimension {
			to++
		}
		meta.Sizes[to], meta.Strides[to] = t.meta.Sizes[from], t.meta.Strides[from]
	}
	view := newTensor(t.name, meta)
	view.root = t.root
	return view
}

// dimensionOr reads a dim argument that has a default.
func (r *recipe) dimensionOr(rank, position, otherwise int) int {
	if r.argument("dim", position) == nil {
		return otherwise
	}
	return r.dimension(rank, position)
}

// numbers reads a list of integers that are known at compile time.
func (r *recipe) numbers(name string, position int) []int64 {
	list, ok := r.argument(name, position).(graph.List)
	r.failed = r.failed || !ok
	return slice.Map(list.Items, func(item graph.Value) int64 {
		value, known := item.(int64)
		r.failed = r.failed || !known
		return value
	})
}

// padding is one operator that pads: intervals gives those that a dimension of the source and its padding become.
func (r *recipe) padding(fill graph.Value, intervals func(size graph.Size, before, after int64) []interval) bool {
	self, widths := r.tensor("self", 0), r.numbers("pad", 1)
	rank := len(self.meta.Sizes)
	if r.failed || len(widths)%2 != 0 || len(widths) > 2*rank {
		return false
	}
	choices := wholes(r.node.Outputs[0].Meta.Sizes)
	for pair := range len(widths) / 2 {
		dimension := rank - 1 - pair
		before, after := widths[2*pair], widths[2*pair+1]
		size := self.meta.Sizes[dimension]
		if size.Expr != nil && (before != 0 || after != 0) {
			return false
		}
		if before != 0 || after != 0 {
			choices[dimension] = intervals(size, before, after)
		}
	}
	return r.assemble(boxes(self, choices), fill)
}

// padConstant surrounds a tensor by one number; negative widths cut.
func (r *recipe) padConstant() bool {
	fill := r.argument("value", 2)
	switch fill.(type) {
	case nil:
		fill = int64(0)
	case bool, int64, float64:
	default:
		return false
	}
	return r.padding(fill, func(size graph.Size, before, after int64) []interval {
		low := max(before, 0)
		start := max(-before, 0)
		length := size.Hint - start - max(-after, 0)
		return []interval{{low: graph.Static(low), high: graph.Static(low + max(length, 0)), start: graph.Static(start), step: 1}}
	})
}

// padByBorder surrounds a tensor by its own elements: those next to the border in reverse order, or that at the border again.
func (r *recipe) padByBorder(reflect bool) bool {
	step, inset := int64(0), int64(0)
	if reflect {
		step, inset = -1, 1
	}
	return r.padding(nil, func(size graph.Size, before, after int64) []interval {
		r.failed = r.failed || before < 0 || after < 0 || size.Hint == 0
		last := before + size.Hint
		return []interval{
			{high: graph.Static(before), start: graph.Static(before * inset), step: step},
			{low: graph.Static(before), high: graph.Static(last), step: 1},
			{low: graph.Static(last), high: graph.Static(last + after), start: graph.Static(size.Hint - 1 - inset), step: step},
		}
	})
}

// flip reverses dimensions.
func (r *recipe) flip() bool {
	self := r.tensor("self", 0)
	if list, ok := r.argument("dims", 1).(graph.List); r.failed || !ok || len(list.Items) == 0 {
		return false
	}
	choices := wholes(self.meta.Sizes)
	for dimension, reversed := range r.dimensions(len(self.meta.Sizes), r.argument("dims", 1)) {
		if reversed {
			size := self.meta.Sizes[dimension]
			last := r.b.program.graph.Shapes.Subtract(size, graph.Static(1))
			choices[dimension] = []interval{{high: size, start: last, step: -1}}
		}
	}
	return r.assemble(boxes(self, choices), nil)
}

// roll moves elements along dimensions, and those that leave at one end come back at the other.
func (r *recipe) roll() bool {
	self, shifts, dims := r.tensor("self", 0), r.numbers("shifts", 1), r.numbers("dims", 2)
	rank := int64(len(self.meta.Sizes))
	if r.failed || len(dims) != len(shifts) {
		return false
	}
	choices := wholes(self.meta.Sizes)
	for index, dimension := range dims {
		dimension = (dimension + rank) % max(rank, 1)
		size := self.meta.Sizes[dimension]
		if size.Expr != nil || size.Hint == 0 || len(choices[dimension]) > 1 {
			return false
		}
		shift := ((shifts[index] % size.Hint) + size.Hint) % size.Hint
		choices[dimension] = []interval{
			{high: graph.Static(shift), start: graph.Static(size.Hint - shift), step: 1},
			{low: graph.Static(shift), high: size, step: 1},
		}
	}
	return r.assemble(boxes(self, choices), nil)
}
