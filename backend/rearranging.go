package backend

import (
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// gatedHalf multiplies the first half along a dimension by the sigmoid of the second.
func (r *recipe) gatedHalf() bool {
	self, output := r.tensor("self", 0), r.result(0)
	dimension := r.dimensionOr(len(self.meta.Sizes), 1, len(self.meta.Sizes)-1)
	if r.failed || !known(self) {
		return false
	}
	meta := self.meta
	meta.Sizes = slices.Clone(meta.Sizes)
	half := meta.Sizes[dimension].Hint / 2
	meta.Sizes[dimension] = graph.Static(half)
	gate := meta
	gate.Offset = graph.Static(meta.Offset.Hint + half*meta.Strides[dimension].Hint)
	sigmoid := apply("div", number(1.0), apply("add", number(1.0), apply("exp", apply("neg", arg(1)))))
	return r.commit(r.formulaIn("glu", r.wide(self.meta.DType), output, apply("mul", arg(0), sigmoid), self.under(meta), self.under(gate)))
}

// leaky multiplies what is not positive by a weight, which broadcasts or is one of each channel.
func (r *recipe) leaky(weights string) bool {
	self, weight := r.tensor("self", 0), r.tensor(weights, 1)
	rank := len(self.meta.Sizes)
	switch {
	case r.failed || weight.meta.DType != self.meta.DType:
		return false
	case len(weight.meta.Sizes) == 1 && isStatic(weight.meta.Sizes[0], 1):
	case len(weight.meta.Sizes) == 1 && rank > 1:
		weight = r.perChannel(weight, rank)
	}
	if !broadcasts(weight.meta.Sizes, self.meta.Sizes) {
		return false
	}
	body := apply("where", apply("gt", arg(0), number(0.0)), arg(0), apply("mul", arg(1), arg(0)))
	return r.commit(r.formulaIn("prelu", r.wide(self.meta.DType), r.result(0), body, self, weight))
}

// triangle keeps what a comparison of column less row with the diagonal says.
func (r *recipe) triangle(keeps string) bool {
	self, diagonal := r.tensor("self", 0), r.integer("diagonal", 1, 0)
	rank := len(self.meta.Sizes)
	if r.failed || rank < 2 {
		return false
	}
	shape := append(unitSizes(rank-2), self.meta.Sizes[rank-2:]...)
	body := apply(keeps, apply("sub", arg(1), arg(0)), number(diagonal))
	kept := r.formulaIn("triangle", graph.Int64, r.fresh(graph.Bool, shape), body)
	position := func(dimension int) operand {
		return operand{scalar: &scalar{typ: loop.I64, slot: -1, counted: 1 + dimension}, as: loop.I64}
	}
	r.pending[len(r.pending)-1].operands = []operand{position(rank - 2), position(rank - 1)}
	return r.commit(r.choose("triangle", self.meta.DType, r.result(0), apply("where", arg(0), arg(1), number(int64(0))), kept, self))
}

// mostBoundaries is how many comparisons of vectors take no longer than a search of single elements.
const mostBoundaries = 64

// buckets counts the boundaries that lie before each element.
func (r *recipe) buckets() bool {
	self, boundaries, output := r.tensor("self", 0), r.tensor("boundaries", 1), r.result(0)
	if r.failed || r.device.Type != "cpu" || len(boundaries.meta.Sizes) != 1 || product(boundaries.meta.Sizes) > mostBoundaries || boundaries.meta.DType != self.meta.DType || !known(boundaries) {
		return false
	}
	rank := len(self.meta.Sizes) + 1
	sizes := append(slices.Clone(boundaries.meta.Sizes), self.meta.Sizes...)
	after := "ge"
	if right, _ := r.node.Keyword("right"); right == true {
		after = "gt"
	}
	body := apply("not", apply(after, arg(0), arg(1)))
	before := r.formulaIn("before", self.meta.DType, r.fresh(graph.Bool, sizes), body, spread(boundaries, 0, rank), self)
	reduced := make([]bool, rank)
	reduced[0] = true
	return r.commit(r.reduce(loop.Sum, before, reduced, graph.Int64, output))
}

// distances are norms of the differences of all pairs of rows.
func (r *recipe) distances() bool {
	left, right, output := r.tensor("x1", 0), r.tensor("x2", 1), r.result(0)
	n := vectorNorm{r, r.number("p", 2, 2), r.wide(left.meta.DType)}
	rank := len(left.meta.Sizes)
	if r.failed || n.order == 2 || rank < 2 || rank != len(right.meta.Sizes) || !sameSizes(left.meta.Sizes[:rank-2], right.meta.Sizes[:rank-2]) {
		return false
	}
	first, second := unsqueezed(left, rank-1), unsqueezed(right, rank-2)
	sizes := append(slices.Clone(output.meta.Sizes), left.meta.Sizes[rank-1])
	difference := r.formula("sub", r.fresh(n.wide, sizes), apply("sub", arg(0), arg(1)), first, second)
	each := r.formula("norm", r.fresh(n.wide, sizes), n.term(), difference)
	reduced := make([]bool, rank+1)
	reduced[rank] = true
	total := r.reduce(n.combination(), each, reduced, n.wide, r.fresh(n.wide, output.meta.Sizes))
	return r.commit(r.formulaIn("cdist", n.wide, output, n.root(), total))
}

// split views a dimension as several whose sizes multiply to it.
func (t *tensor) split(dimension int, sizes ...int64) *tensor {
	meta := t.meta
	stride := t.meta.Strides[dimension].Hint
	strides := make([]graph.Size, len(sizes))
	for index := len(sizes) - 1; index >= 0; index-- {
		strides[index] = graph.Static(stride)
		stride *= sizes[index]
	}
	meta.Sizes = slices.Concat(t.meta.Sizes[:dimension], graph.Statics(sizes...), t.meta.Sizes[dimension+1:])
	meta.Strides = slices.Concat(t.meta.Strides[:dimension], strides, t.meta.Strides[dimension+1:])
	return t.under(meta)
}

// shortestCopied is the last dimension of a copy that fills the vectors of a CPU, and widestWoven one whose neighbours are computed in one lane (cpu/interleave.go).
const shortestCopied, widestWoven = 8, 4

// copyOf is a row-major copy of a view, under the sizes of the node's result.
func (r *recipe) copyOf(view *tensor) bool {
	if last := view.meta.Sizes[len(view.meta.Sizes)-1]; r.device.Type == "cpu" && last.Hint > widestWoven && last.Hint < shortestCopied {
		return false
	}
	output := r.node.Outputs[0].Meta
	copied := r.formula("copy", r.fresh(view.meta.DType, view.meta.Sizes), arg(0), view)
	return r.commit(r.reshaped(copied, output.Sizes))
}

// shuffled moves the factors of channels between them and the sides of an image.
func (r *recipe) shuffled(back bool) bool {
	self, rank := r.tensor("self", 0), len(r.node.Outputs[0].Meta.Sizes)
	factor := r.integer("factor", 1, 0)
	if r.failed || rank < 3 || !known(self) || factor < 1 || product(self.meta.Sizes) == 0 {
		return false
	}
	first, sizes := rank-3, self.meta.Sizes
	if back {
		view := self.split(rank-1, sizes[rank-1].Hint/factor, factor).split(rank-2, sizes[rank-2].Hint/factor, factor)
		return r.copyOf(view.ordered(first, 0, 2, 4, 1, 3))
	}
	return r.copyOf(self.split(first, sizes[first].Hint/factor/factor, factor, factor).ordered(first, 0, 3, 1, 4, 2))
}

// ordered permutes the dimensions from number first on.
func (t *tensor) ordered(first int, order ...int) *tensor {
	meta := t.meta
	meta.Sizes, meta.Strides = slices.Clone(meta.Sizes), slices.Clone(meta.Strides)
	for index, from := range order {
		meta.Sizes[first+index], meta.Strides[first+index] = t.meta.Sizes[first+from], t.meta.Strides[first+from]
	}
	return t.under(meta)
}
