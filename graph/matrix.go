package graph

import (
	"cmp"
	"slices"
)

func matrix(schema string, r rule) row {
	return row{schema: schema, kind: KindMatrix, traits: oneType, rule: r}
}

func matrixRows() []row {
	return []row{
		matrix("mm(Tensor self, Tensor mat2) -> Tensor", inferMM),
		matrix("bmm(Tensor self, Tensor mat2) -> Tensor", inferBMM),
		matrix("matmul(Tensor self, Tensor other) -> Tensor", inferMatmul),
		matrix("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", inferAddMM),
		matrix("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", inferAddMM),
		matrix("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", inferAddR),
		matrix("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", inferAddMM),
		matrix("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", inferAddMM),
		matrix("mv(Tensor self, Tensor vec) -> Tensor", inferMV),
		matrix("dot(Tensor self, Tensor tensor) -> Tensor", inferDot),
		matrix("vdot(Tensor self, Tensor other) -> Tensor", inferDot),
		matrix("outer(Tensor self, Tensor vec2) -> Tensor", inferOuter),
		matrix("inner(Tensor self, Tensor other) -> Tensor", inferInner),
		matrix("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", inferLinear),
		{schema: "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, " +
			"bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor", kind: KindMatrix, rule: inferAttention},
	}
}

// matrixType checks that all tensors share one type that matrix products take.
func (c *inference) matrixType() (DType, error) {
	d := c.self().DType
	onlyCPU := d.IsIntegral() && c.self().Device.Type != "cpu"
	if d == Bool || d == NoDType || d.unpromotable() || d == Complex32 || onlyCPU {
		return NoDType, unknown(c.op.String() + " does not take " + d.String())
	}
	for _, v := range c.tensors() {
		if meta(v).DType != d {
			return NoDType, unknown(c.op.String() + " of different types")
		}
	}
	return d, nil
}

// matrixProduct gives the shape of the product of the last two dimensions; batch dimensions must be equal.
func (c *inference) matrixProduct(a, b []Size, dimensions int) ([]Size, error) {
	e, n := c.shapes, dimensions-2
	if len(a) != dimensions || len(b) != dimensions || !e.AllEqual(a[:n], b[:n]) || !e.Equal(a[n+1], b[n]) {
		return nil, unknown(c.op.String() + ": shapes do not fit")
	}
	return append(slices.Clone(a[:n+1]), b[n+1]), nil
}

// product adds the output of a matrix product of these sizes, or gives the error that there was in their place.
func (c *inference) product(sizes []Size, err error) error {
	d, typeError := c.matrixType()
	if err := cmp.Or(typeError, err); err != nil {
		return err
	}
	return c.makeContiguous(d, sizes)
}

func inferMM(c *inference) error {
	return c.product(c.matrixProduct(c.tensor("self").Sizes, c.tensor("mat2").Sizes, 2))
}

func inferBMM(c *inference) error {
	return c.product(c.matrixProduct(c.tensor("self").Sizes, c.tensor("mat2").Sizes, 3))
}

func inferMV(c *inference) error {
	m, v := c.tensor("self"), c.tensor("vec")
	if m.Dim() != 2 || v.Dim() != 1 || !c.shapes.Equal(m.Sizes[1], v.Sizes[0]) {
		return unknown("mv shapes")
	}
	return c.product(m.Sizes[:1], nil)
}

func inferDot(c *inference) error {
	a, b := meta(c.values[0]), meta(c.values[1])
	if a.Dim() != 1 || b.Dim() != 1 || !c.shapes.Equal(a.Sizes[0], b.Sizes[0]) {
		return unknown("dot shapes")
	}
	return c.product(nil, nil)
}

func inferOuter(c *inference) error {
	a, b := meta(c.values[0]), meta(c.values[1])
	if a.Dim() != 1 || b.Dim() != 1 || a.DType != b.DType {
		return unknown("outer arguments")
	}
	return c.makeContiguous(a.DType, []Size{a.Sizes[0], b.Sizes[0]})
}

func inferInner(c *inference) error {
	a, b := meta(c.values[0]), meta(c.values[1])
	if a.Dim() == 0 || b.Dim() == 0 || !c.shapes.Equal(a.Sizes[a.Dim()-1], b.Sizes[b.Dim()-1]) {
		return unknown("inner shapes")
	}
	return c.product(slices.Concat(a.Sizes[:a.Dim()-1], b.Sizes[:b.Dim()-1]), nil)
}

// inferAddMM covers self·beta + alpha·(a @ b), where self broadcasts to the product.
func inferAddMM(c *inference) error {
	d, err := c.matrixType()
	if err != nil {
		return err
	}
	if err := c.checkScalars(d); err != nil {
		return err
	}
	sizes, err := c.addedProduct(meta(c.values[1]).Sizes, meta(c.values[2]).Sizes)
	if err != nil {
		return err
	}
	if !c.shapes.broadcastsTo(c.self().Sizes, sizes) {
		return unknown(c.op.String() + ": the added tensor does not fit")
	}
	return c.makeContiguous(d, sizes)
}

// inferAddR is a pointwise iteration over self, a column and a row.
func inferAddR(c *inference) error {
	d, err := c.matrixType()
	if err != nil {
		return err
	}
	a, b := meta(c.values[1]), meta(c.values[2])
	if err := c.checkScalars(d); err != nil || a.Dim() != 1 || b.Dim() != 1 {
		return unknown("addr arguments")
	}
	sizes := []Size{a.Sizes[0], b.Sizes[0]}
	if !c.shapes.broadcastsTo(c.self().Sizes, sizes) {
		return unknown("addr: the added tensor does not fit")
	}
	added := &Meta{Sizes: sizes, Strides: c.shapes.broadcastStrides(c.self(), sizes)}
	column := &Meta{Sizes: []Size{a.Sizes[0], Static(1)}, Strides: []Size{a.Strides[0], Static(1)}}
	return c.make(d, sizes, c.shapes.iteratorStrides(sizes, []*Meta{added, column, b}))
}

func (c *inference) addedProduct(a, b []Size) ([]Size, error) {
	switch c.op.Schema.Name {
	case "addmm":
		return c.matrixProduct(a, b, 2)
	case "baddbmm":
		return c.matrixProduct(a, b, 3)
	case "addbmm":
		sizes, err := c.matrixProduct(a, b, 3)
		if err != nil {
			return nil, err
		}
		return sizes[1:], nil
	case "addmv":
		if len(a) == 2 && len(b) == 1 && c.shapes.Equal(a[1], b[0]) {
			return a[:1], nil
		}
	}
	return nil, unknown(c.op.String() + ": shapes do not fit")
}

// inferMatmul broadcasts batch dimensions and treats vectors as matrices whose extra dimension is dropped again.
func inferMatmul(c *inference) error {
	a, b := meta(c.values[0]).Sizes, meta(c.values[1]).Sizes
	if len(a) == 0 || len(b) == 0 {
		return unknown("matmul of a 0-d tensor")
	}
	return c.product(c.matmulSizes(a, b))
}

func (c *inference) matmulSizes(a, b []Size) ([]Size, error) {
	rows, columns := a[:0:0], b[:0:0]
	inner, batchA, batchB := a[len(a)-1], a[:0], b[:0]
	if len(a) > 1 {
		rows, batchA = a[len(a)-2:len(a)-1], a[:len(a)-2]
	}
	shared := b[0]
	if len(b) > 1 {
		shared, columns, batchB = b[len(b)-2], b[len(b)-1:], b[:len(b)-2]
	}
	batch, ok := c.shapes.broadcast(batchA, batchB)
	if !ok || !c.shapes.Equal(inner, shared) {
		return nil, unknown("matmul shapes")
	}
	return slices.Concat(batch, rows, columns), nil
}

func inferLinear(c *inference) error {
	input, weight, bias := c.tensor("input").Sizes, c.tensor("weight").Sizes, c.tensor("bias")
	if len(input) == 0 || len(weight) != 2 || !c.shapes.Equal(input[len(input)-1], weight[1]) || bias != nil && !c.shapes.AllEqual(bias.Sizes, weight[:1]) {
		return unknown("linear shapes")
	}
	return c.product(append(slices.Clone(input[:len(input)-1]), weight[0]), nil)
}

// inferAttention covers the CPU's fused kernel, whose result is laid out like the query. On accelerators the layout depends on
// which kernel is picked.
func inferAttention(c *inference) error {
	q, k, v := c.tensor("query"), c.tensor("key"), c.tensor("value")
	dropout, isPlain := c.value("dropout_p").(float64)
	if q.Dim() != 4 || k.Dim() != 4 || v.Dim() != 4 || !isPlain || dropout != 0 || q.Device.Type != "cpu" {
		return unknown("attention arguments")
	}
	d, e := q.DType, c.shapes
	fits := e.Equal(q.Sizes[0], k.Sizes[0]) && c.headsFit(q, k) && e.AllEqual(k.Sizes, v.Sizes) && e.Equal(q.Sizes[3], k.Sizes[3])
	if !fits || !d.IsFloat() || k.DType != d || v.DType != d {
		return unknown("attention shapes or types")
	}
	if mask := c.tensor("attn_mask"); mask != nil && (!c.maskFits(mask, q, k) || c.boolean("is_causal")) {
		return unknown("attention mask")
	}
	if !c.fusedLayout(q) || !c.fusedLayout(k) || !c.fusedLayout(v) {
		return unknown("attention layout")
	}
	return c.make(d, q.Sizes, c.shapes.preservedStrides(q))
}

// headsFit says whether there are as many heads of keys as of queries, or, in grouped attention, a divisor of that. The fused kernel itself,
// which has no parameter for it, takes both.
func (c *inference) headsFit(q, k *Meta) bool {
	if c.op.Schema.Position("enable_gqa") >= 0 && !c.boolean("enable_gqa") {
		return c.shapes.Equal(q.Sizes[1], k.Sizes[1])
	}
	heads, groups := c.shapes.Specialise(q.Sizes[1]), c.shapes.Specialise(k.Sizes[1])
	return groups > 0 && heads%groups == 0
}

// fusedLayout says whether the fused kernel takes the tensor: elements of a head side by side, and at least one.
func (c *inference) fusedLayout(m *Meta) bool {
	return !c.shapes.anyZero(m.Sizes) && c.shapes.IsOne(m.Strides[3])
}

// maskFits says whether the fused kernel takes the mask: for one of three dimensions torch computes attention step by step, laid out otherwise.
func (c *inference) maskFits(mask, q, k *Meta) bool {
	if mask.Dim() != 2 && mask.Dim() != 4 {
		return false
	}
	scores := append(slices.Clone(q.Sizes[:3]), k.Sizes[2])
	return c.shapes.broadcastsTo(mask.Sizes, scores) && (mask.DType == Bool || mask.DType == q.DType) && !c.graph.RequiresGrad(c.value("attn_mask"))
}
