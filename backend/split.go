package backend

import (
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
	"fusee/internal/slice"
)

// split cuts the inner points of kernels with too few outer points into parts, so that the whole machine shares them: one kernel combines each part, and a
// second one the parts' results. The order in which elements are combined is fixed, so equal inputs give equal bits.
func split(c *compilation) error {
	c.groups = slice.FlatMap(c.groups, func(g *group) []*group {
		if parts := g.parts(); parts > 1 && g.splittable() {
			return []*group{g, c.splitInto(g, parts)}
		}
		return []*group{g}
	})
	return nil
}

// Work that a part should have at least, for its cost not to show, and numbers of threads or blocks that keep a machine busy.
const (
	rowPart    = 8192 // elements that a block, or a thread of a CPU, reads one after another
	columnPart = 256  // rows of many neighbouring columns
	columnWide = 32   // columns that a block takes
	cudaBlocks = 1024
	cpuParts   = 32

	fewestParts = 4 // which save more time than a second kernel takes
)

// parts returns how many parts pay; 1 for none.
func (g *group) parts() int64 {
	if g.library || !g.hasInner() {
		return 1
	}
	if parts := g.mostParts(); parts >= fewestParts {
		return parts
	}
	return 1
}

// mostParts returns how many parts there is work for.
func (g *group) mostParts() int64 {
	outer, inner := int64(1), int64(1)
	for dimension, size := range g.space {
		if g.inner[dimension] {
			inner *= size.Hint
		} else {
			outer *= max(size.Hint, 1)
		}
	}
	if g.device.Type != "cuda" {
		return min(cpuParts/outer, inner/rowPart)
	}
	return cudaParts(outer, inner, slices.ContainsFunc(g.members, (*operation).alongColumns))
}

// cudaParts is how many parts of the inner points a GPU has use for.
func cudaParts(outer, inner int64, alongColumns bool) int64 {
	outer = max(outer, 1)
	if alongColumns {
		return min(cudaBlocks*columnWide/outer, inner/columnPart)
	}
	return min(cudaBlocks/outer, inner/rowPart)
}

// alongColumns reports whether neighbours in memory belong to different results of a reduction.
func (op *operation) alongColumns() bool {
	if op.kind != reduction {
		return false
	}
	meta := &op.operands[0].tensor.meta
	for dimension, reduced := range op.reduced {
		if isStatic(meta.Strides[dimension], 1) && !isStatic(meta.Sizes[dimension], 1) {
			return !reduced
		}
	}
	return false
}

// splittable reports whether no element needs the result of a reduction, and what comes after the reductions needs nothing else of the kernel.
func (g *group) splittable() bool {
	for _, op := range g.members {
		after := g.follows(op)
		switch {
		case op.reduce.Positional() || op.counts():
			return false
		case after && (op.kind == reduction || g.runsInside(g.mappings[op])):
			return false
		case after && slices.ContainsFunc(op.operands, func(operand operand) bool {
			producer := g.makes(operand.tensor)
			return producer != nil && producer.kind == pointwise && !g.follows(producer)
		}):
			return false
		}
	}
	return true
}

// counts reports whether an operation reads an index, which parts of a dimension do not know.
func (op *operation) counts() bool {
	return slices.ContainsFunc(op.operands, func(operand operand) bool { return operand.scalar != nil && operand.scalar.counted > 0 })
}

// makes returns the member that makes a tensor.
func (g *group) makes(t *tensor) *operation {
	if t == nil || t.root.producer == nil || t.root.producer.group != g {
		return nil
	}
	return t.root.producer
}

// follows reports whether a member needs the result of one of the group's reductions.
func (g *group) follows(op *operation) bool {
	made := func(_ *operation, o operand) *operation { return g.makes(o.tensor) }
	return op.needs(made, func(producer *operation) bool { return producer.kind == reduction })
}

// splitInto leaves the group the partial results and returns a group that combines them.
func (c *compilation) splitInto(g *group, parts int64) *group {
	last := &group{
		mappings: map[*operation]mapping{}, stored: map[*tensor]bool{}, after: g.after, segment: g.segment, device: g.device, order: g.order,
		space: slices.Clone(g.space), inner: make([]bool, len(g.space)),
	}
	for dimension, inner := range g.inner {
		if inner {
			last.space[dimension] = graph.Static(1)
		}
	}
	place := slices.Index(g.inner, true)
	last.space[place], last.inner[place] = graph.Static(parts), true
	g.space, g.inner = append(g.space, graph.Static(parts)), append(g.inner, false)
	g.split = true
	following := slices.DeleteFunc(slices.Clone(g.members), func(op *operation) bool { return !g.follows(op) })
	g.members = slices.DeleteFunc(g.members, func(op *operation) bool { return slices.Contains(following, op) })
	for _, op := range following {
		g.hand(op, last)
	}
	for index, op := range g.members {
		if op.kind == reduction {
			g.members[index] = c.splitReduction(g, last, op, parts)
		}
	}
	g.after = map[*group]bool{last: true}
	for next := range last.after {
		g.after[next] = true
	}
	return last
}

// hand moves a member to another group.
func (g *group) hand(op *operation, other *group) {
	other.members = append(other.members, op)
	other.mappings[op] = g.mappings[op]
	op.group = other
	for _, output := range op.outputs {
		if g.stored[output] {
			delete(g.stored, output)
			other.stored[output] = true
		}
	}
}

// splitReduction returns the reduction of one part, and has the last group combine all parts to the reduction's result.
func (c *compilation) splitReduction(g, last *group, op *operation, parts int64) *operation {
	result := op.outputs[0]
	meta := result.meta
	meta.DType = partialType(op, g.device)
	meta.Sizes = append(slices.Clone(result.meta.Sizes), graph.Static(parts))
	meta.Strides, meta.Offset, meta.Flags = contiguousStrides(c.graph.Shapes, meta.Sizes), graph.Static(0), 0
	partial := newTensor(result.name+".parts", meta)
	typ, _ := machineType(meta.DType)

	first := *op
	first.outputs, first.result, first.group, first.part = []*tensor{partial}, typ, g, true
	partial.producer = &first
	m := g.mappings[op]
	g.mappings[&first] = append(slices.Clone(m), len(g.space)-1)
	g.stored[partial] = true

	second := *op
	second.operands = []operand{{tensor: partial, as: typ}}
	second.reduced = append(make([]bool, len(result.meta.Sizes)), true)
	second.compute, second.group = computeType(typ), last
	result.producer = &second
	partial.uses = []*operation{&second}
	last.members = append(last.members, &second)
	last.mappings[&second] = m
	if g.stored[result] {
		delete(g.stored, result)
		last.stored[result] = true
	}
	return &first
}

// partialType is the type that partial results of a reduction are kept in: wide enough that splitting loses nothing.
func partialType(op *operation, device graph.Device) graph.DType {
	as := dtypeOf(op.operands[0].as)
	adds := op.reduce == loop.Sum || op.reduce == loop.Product
	switch {
	case !as.IsFloat() || !adds:
		return as
	case device.Type == "cuda" && as != graph.Float64:
		return graph.Float32
	}
	return graph.Float64
}

// dtypeOf is the element type that the loop IR calls typ.
func dtypeOf(typ loop.Type) graph.DType {
	for dtype, known := range machineTypes() {
		if known == typ {
			return dtype
		}
	}
	return graph.NoDType
}

// piece chooses the inner dimension that parts share, and how many positions each gets. A dimension whose neighbours lie side by side is cut at multiples of
// what vectors of any type take.
func (k *kernelBuilder) piece(inner []merged, parts int64) (chosen int, size graph.Size) {
	const together = 64
	for index := range inner {
		if inner[chosen].size.Hint < parts && inner[index].size.Hint > inner[chosen].size.Hint {
			chosen = index
		}
	}
	unit := int64(1)
	if chosen == len(inner)-1 {
		unit = together
	}
	count := graph.Static(parts * unit)
	rounded := k.shapes.FloorDivide(k.shapes.Add(inner[chosen].size, graph.Static(parts*unit-1)), count)
	return chosen, k.shapes.Multiply(rounded, graph.Static(unit))
}
