package graph

import (
	"cmp"
	"slices"
)

func shape(schema string, r rule) row { return row{schema: schema, kind: KindShape, rule: r} }

func shapeRows() []row {
	return []row{
		shape("cat(Tensor[] tensors, int dim=0) -> Tensor", inferCat),
		shape("stack(Tensor[] tensors, int dim=0) -> Tensor", inferStack),
		shape("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor", inferPad),
		shape("repeat(Tensor self, SymInt[] repeats) -> Tensor", inferRepeat),
		shape("flip(Tensor self, int[] dims) -> Tensor", inferFlip),
		shape("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", inferRoll),
		shape("tril(Tensor self, SymInt diagonal=0) -> Tensor", inferTriangle),
		shape("triu(Tensor self, SymInt diagonal=0) -> Tensor", inferTriangle),
		shape("tril_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)", inferTriangle),
		shape("triu_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)", inferTriangle),
		shape("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", inferSort),
		shape("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", inferSort),
		shape("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", inferArgsort),
		shape("topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", inferTopK),
		shape("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor", inferRepeatInterleave),
		shape("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", inferDiagEmbed),
		shape("glu(Tensor self, int dim=-1) -> Tensor", inferGLU),
		shape("slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", inferWritten(inferSlice)),
		shape("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", inferWritten(inferSelect)),
		shape("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", inferWritten(inferDiagonal)),
	}
}

// listed gives the tensors of a list argument; false when it is empty.
func (c *inference) listed() ([]*Meta, bool) {
	list, _ := c.values[0].(List)
	metas := make([]*Meta, len(list.Items))
	for i, v := range list.Items {
		metas[i] = meta(v)
	}
	return metas, len(metas) > 0
}

func commonTypeOf(metas []*Meta) DType {
	var types resultType
	for _, m := range metas {
		types.addTensor(m)
	}
	return types.common()
}

// inferWritten is the rule of a copy of the first argument that holds the second one where a view is; its other arguments are the view's, by
// name. The copy has the strides of the original.
func inferWritten(view rule) rule {
	return func(c *inference) error {
		m := c.self()
		if !c.shapes.isDense(m) {
			return unknown("a write into a tensor with gaps")
		}
		part := &inference{graph: c.graph, shapes: c.shapes, state: c.state, op: c.op, values: c.values}
		if err := view(part); err != nil {
			return err
		}
		if !c.shapes.AllEqual(part.outputs[0].Meta.Sizes, c.tensor("src").Sizes) {
			return unknown("a write of other sizes")
		}
		return c.make(m.DType, m.Sizes, m.Strides)
	}
}

// inferCat keeps a memory format that all tensors share. Empty one-dimensional tensors are skipped, as torch does for old code.
func inferCat(c *inference) error {
	metas, ok := c.listed()
	n, dimOK := c.integer("dim")
	if !ok || !dimOK {
		return unknown("cat of nothing")
	}
	counted := slices.DeleteFunc(slices.Clone(metas), func(m *Meta) bool { return m.Dim() == 1 && c.shapes.IsZero(m.Sizes[0]) })
	if len(counted) == 0 {
		return c.makeContiguous(commonTypeOf(metas), []Size{Static(0)})
	}
	d, inRange := wrapDim(n, counted[0].Dim())
	if !inRange || counted[0].Dim() == 0 {
		return unknown("cat dimension")
	}
	sizes, err := c.joinedSizes(counted, d)
	if err != nil {
		return err
	}
	strides, _ := c.shapes.formatStrides(c.sharedFormat(metas), sizes)
	return c.make(commonTypeOf(metas), sizes, strides)
}

func (c *inference) joinedSizes(metas []*Meta, d int) ([]Size, error) {
	e := c.shapes
	sizes := slices.Clone(metas[0].Sizes)
	for _, m := range metas[1:] {
		if m.Dim() != len(sizes) {
			return nil, unknown("cat of different numbers of dimensions")
		}
		expected := slices.Clone(sizes)
		expected[d] = m.Sizes[d]
		if !e.AllEqual(expected, m.Sizes) {
			return nil, unknown("cat sizes")
		}
		sizes[d] = e.Add(sizes[d], m.Sizes[d])
	}
	return sizes, nil
}

func (c *inference) sharedFormat(metas []*Meta) MemoryFormat {
	format := c.shapes.suggestedFormat(metas[0])
	for _, m := range metas[1:] {
		if c.shapes.suggestedFormat(m) != format {
			return ContiguousFormat
		}
	}
	return format
}

func inferStack(c *inference) error {
	metas, ok := c.listed()
	n, dimOK := c.integer("dim")
	if !ok || !dimOK {
		return unknown("stack of nothing")
	}
	first := metas[0]
	d, inRange := wrapDim(n, first.Dim()+1)
	for _, m := range metas {
		if !inRange || !c.shapes.AllEqual(m.Sizes, first.Sizes) || c.shapes.suggestedFormat(m) != ContiguousFormat {
			return unknown("stack sizes or layout")
		}
	}
	return c.makeContiguous(commonTypeOf(metas), slices.Insert(slices.Clone(first.Sizes), d, Static(int64(len(metas)))))
}

func inferPad(c *inference) error {
	m, e := c.self(), c.shapes
	pad, ok := c.sizes("pad")
	if !ok || len(pad)%2 != 0 || len(pad)/2 > m.Dim() {
		return unknown("pad list")
	}
	sizes := slices.Clone(m.Sizes)
	for i := range len(pad) / 2 {
		d := m.Dim() - 1 - i
		cut := e.Add(e.Minimum(pad[2*i], Static(0)), e.Minimum(pad[2*i+1], Static(0)))
		if !e.LessEqual(Static(0), e.Add(sizes[d], cut)) {
			return unknown("pad to a negative size")
		}
		sizes[d] = e.Add(sizes[d], e.Add(pad[2*i], pad[2*i+1]))
	}
	if err := c.checkScalars(m.DType); err != nil {
		return err
	}
	return c.padded(m, pad, sizes)
}

// padded keeps the memory format; where all padding is negative or zero the result is a clone of a part.
func (c *inference) padded(m *Meta, pad, sizes []Size) error {
	if !slices.ContainsFunc(pad, func(s Size) bool { return c.shapes.Less(Static(0), s) }) {
		return c.make(m.DType, sizes, c.shapes.preservedStrides(&Meta{Sizes: sizes, Strides: m.Strides}))
	}
	strides, _ := c.shapes.formatStrides(c.shapes.suggestedFormat(m), sizes)
	return c.make(m.DType, sizes, strides)
}

func inferRepeat(c *inference) error {
	m, e := c.self(), c.shapes
	repeats, ok := c.sizes("repeats")
	missing := len(repeats) - m.Dim()
	if !ok || missing < 0 {
		return unknown("repeat arguments")
	}
	sizes := slices.Clone(repeats)
	for d := range m.Sizes {
		sizes[missing+d] = e.Multiply(m.Sizes[d], repeats[missing+d])
	}
	return c.makeContiguous(m.DType, sizes)
}

func inferFlip(c *inference) error {
	m := c.self()
	if _, ok := c.wrappedDims("dims", m.Dim()); !ok {
		return unknown("flip dimensions")
	}
	return c.make(m.DType, m.Sizes, c.shapes.preservedStrides(m))
}

func inferRoll(c *inference) error {
	m := c.self()
	shifts, ok := c.sizes("shifts")
	dims, dimsOK := c.wrappedDims("dims", m.Dim())
	if !ok || !dimsOK || len(shifts) == 0 || len(dims) != len(shifts) && (len(dims) != 0 || len(shifts) != 1) {
		return unknown("roll arguments")
	}
	if !plainlyContiguous(m.Sizes, m.Strides) || c.shapes.anyZero(m.Sizes) || m.Dim() == 0 {
		return unknown("roll of a tensor that is not row-major")
	}
	return c.makeContiguous(m.DType, m.Sizes)
}

func inferTriangle(c *inference) error {
	m := c.self()
	if m.Dim() < 2 || m.DType.unpromotable() {
		return unknown("tril or triu of a vector")
	}
	return c.updated(func() error { return c.makeContiguous(m.DType, m.Sizes) })
}

func inferSort(c *inference) error {
	m := c.self()
	if _, err := c.dim("dim"); err != nil || m.DType.IsComplex() || m.DType.unpromotable() {
		return unknown("sort arguments")
	}
	strides := c.shapes.preservedStrides(m)
	return cmp.Or(c.make(m.DType, m.Sizes, strides), c.make(Int64, m.Sizes, strides))
}

func inferArgsort(c *inference) error {
	if err := inferSort(c); err != nil {
		return err
	}
	c.outputs = c.outputs[1:]
	return nil
}

func inferTopK(c *inference) error {
	m := c.self()
	d, err := c.dim("dim")
	k, ok := c.size("k")
	if err != nil || !ok || m.DType.IsComplex() || m.DType == Bool || m.DType.unpromotable() || k.Hint < 0 {
		return unknown("topk arguments")
	}
	sizes := slices.Clone(m.Sizes)
	if m.Dim() > 0 {
		if !c.shapes.LessEqual(k, sizes[d]) {
			return unknown("topk of more than there are")
		}
		sizes[d] = k
	} else if !c.shapes.LessEqual(k, Static(1)) {
		return unknown("topk of more than there are")
	}
	if err := c.makeContiguous(m.DType, sizes); err != nil {
		return err
	}
	return c.makeContiguous(Int64, sizes)
}

func inferRepeatInterleave(c *inference) error {
	m, e := c.self(), c.shapes
	repeats, ok := c.size("repeats")
	if !ok || repeats.Hint < 0 || c.value("output_size") != nil {
		return unknown("repeat_interleave arguments")
	}
	if c.value("dim") == nil {
		return c.makeContiguous(m.DType, []Size{e.Multiply(e.Product(m.Sizes), repeats)})
	}
	d, err := c.dim("dim")
	if err != nil || m.Dim() == 0 {
		return unknown("repeat_interleave dimension")
	}
	return c.makeContiguous(m.DType, withSize(m.Sizes, d, e.Multiply(m.Sizes[d], repeats)))
}

func inferDiagEmbed(c *inference) error {
	m, e := c.self(), c.shapes
	shift, ok := c.integer("offset")
	a, okA := c.integer("dim1")
	b, okB := c.integer("dim2")
	dimA, inA := wrapDim(a, m.Dim()+1)
	dimB, inB := wrapDim(b, m.Dim()+1)
	if !ok || !okA || !okB || !inA || !inB || dimA == dimB || m.Dim() == 0 {
		return unknown("diag_embed arguments")
	}
	side := e.Add(m.Sizes[m.Dim()-1], Static(max(shift, -shift)))
	sizes := slices.Clone(m.Sizes[:m.Dim()-1])
	sizes = slices.Insert(sizes, min(dimA, dimB), side)
	return c.makeContiguous(m.DType, slices.Insert(sizes, max(dimA, dimB), side))
}

func inferGLU(c *inference) error {
	m, e := c.self(), c.shapes
	d, err := c.dim("dim")
	if err != nil || m.Dim() == 0 || !m.DType.IsFloat() || !e.IsZero(e.Modulo(m.Sizes[d], Static(2))) || !e.isContiguous(m) {
		return unknown("glu arguments")
	}
	return c.makeContiguous(m.DType, withSize(m.Sizes, d, e.FloorDivide(m.Sizes[d], Static(2))))
}
