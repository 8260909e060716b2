package graph

import "slices"

func index(schema string, r rule) row { return row{schema: schema, kind: KindIndex, rule: r} }

func indexRows() []row {
	return []row{
		index("embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", inferEmbedding),
		index("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", inferGather),
		index("index_select(Tensor self, int dim, Tensor index) -> Tensor", inferIndexSelect),
		index("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", inferIndex),
		index("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", inferIndexPut),
		index("index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)", inferIndexPut),
		index("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", inferScatter),
		index("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", inferScatter),
		index("scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)", inferScatter),
		index("scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)", inferScatter),
		index("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", inferScatter),
		index("scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)", inferScatter),
		index("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor", inferScatter),
		index("scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor(a!)", inferScatter),
		index("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", inferIndexAdd),
		index("index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!)", inferIndexAdd),
		index("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", inferIndexAdd),
		index("index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)", inferIndexAdd),
		index("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", inferIndexFill),
		index("index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)", inferIndexFill),
	}
}

func isIndexType(d DType) bool { return d == Int64 || d == Int32 }

func inferEmbedding(c *inference) error {
	weight, indices := c.tensor("weight"), c.tensor("indices")
	if weight.Dim() != 2 || !isIndexType(indices.DType) || c.boolean("sparse") {
		return unknown("embedding arguments")
	}
	return c.picked(weight, 0, indices, append(slices.Clone(indices.Sizes), weight.Sizes[1]))
}

// picked adds the row-major output of an operator that takes elements at indices along a dimension, of which there must be some.
func (c *inference) picked(m *Meta, d int, index *Meta, sizes []Size) error {
	if c.nothingToIndex(m, d, index) {
		return ErrForbidden
	}
	return c.makeContiguous(m.DType, sizes)
}

// nothingToIndex says whether dimension d is empty while there are indices into it, which fake tensors do not mind.
func (c *inference) nothingToIndex(m *Meta, d int, index *Meta) bool {
	return c.shapes.IsZero(m.Sizes[d]) && !c.shapes.anyZero(index.Sizes)
}

// indexFits checks that every dimension of index but dim lies within m.
func (c *inference) indexFits(index, m *Meta, dim int) bool {
	if index.Dim() != m.Dim() {
		return false
	}
	for d := range index.Sizes {
		if d != dim && !c.shapes.LessEqual(index.Sizes[d], m.Sizes[d]) {
			return false
		}
	}
	return true
}

func inferGather(c *inference) error {
	m, index := c.self(), c.tensor("index")
	d, err := c.dim("dim")
	if err != nil || index.DType != Int64 || m.Dim() == 0 || c.boolean("sparse_grad") || !c.indexFits(index, m, d) {
		return unknown("gather arguments")
	}
	return c.picked(m, d, index, index.Sizes)
}

func inferIndexSelect(c *inference) error {
	m, index := c.self(), c.tensor("index")
	d, err := c.dim("dim")
	if err != nil || !isIndexType(index.DType) || index.Dim() != 1 || m.Dim() == 0 || m.DType.unpromotable() {
		return unknown("index_select arguments")
	}
	return c.picked(m, d, index, withSize(m.Sizes, d, index.Sizes[0]))
}

// indexing is the layout of an advanced-indexing operation: the broadcast shape of the index tensors and the dimensions they
// replace, as in aten/src/ATen/native/TensorAdvancedIndexing.cpp.
type indexing struct {
	shape    []Size
	indexed  []int
	adjacent bool
	indices  []*Meta
}

func (c *inference) indexing(m *Meta) (*indexing, error) {
	list, _ := c.value("indices").(List)
	x := &indexing{}
	var shapes [][]Size
	for d, v := range list.Items {
		index, ok := MetaOf(v)
		if !ok {
			continue
		}
		if !isIndexType(index.DType) || index.Device != m.Device {
			return nil, unknown("index that is no integer tensor")
		}
		x.indexed, x.indices, shapes = append(x.indexed, d), append(x.indices, index), append(shapes, index.Sizes)
	}
	shape, ok := c.shapes.broadcast(shapes...)
	if !ok || len(x.indexed) == 0 || len(list.Items) > m.Dim() {
		return nil, unknown("index shapes")
	}
	x.shape = shape
	n := len(x.indexed)
	x.adjacent = x.indexed[n-1]-x.indexed[0] == n-1
	return x, nil
}

// order lists the dimensions of m with the indexed ones together: in place when adjacent, in front otherwise; at is where they
// start.
func (x *indexing) order(dimensions int) (order []int, at int) {
	rest := slices.DeleteFunc(rowMajor(dimensions), func(d int) bool { return slices.Contains(x.indexed, d) })
	if x.adjacent {
		at = x.indexed[0]
	}
	return slices.Insert(rest, at, x.indexed...), at
}

// source describes the indexed tensor over the result's shape: stride 0 in the dimensions that indices replace.
func (x *indexing) source(m *Meta) (*Meta, int) {
	order, at := x.order(m.Dim())
	sizes, strides := pick(m.Sizes, order), pick(m.Strides, order)
	n := len(x.indexed)
	source := &Meta{Sizes: slices.Concat(sizes[:at], x.shape, sizes[at+n:])}
	source.Strides = slices.Concat(strides[:at], make([]Size, len(x.shape)), strides[at+n:])
	return source, at
}

func inferIndex(c *inference) error {
	m := c.self()
	x, err := c.indexing(m)
	if err != nil {
		return err
	}
	source, at := x.source(m)
	operands := []*Meta{source}
	for _, index := range x.indices {
		operands = append(operands, c.shapes.placedIndex(index, x.shape, at, len(source.Sizes)))
	}
	if c.shapes.anyZero(m.Sizes) && !c.shapes.anyZero(source.Sizes) {
		return ErrForbidden
	}
	return c.make(m.DType, source.Sizes, c.shapes.iteratorStrides(source.Sizes, operands))
}

// placedIndex expands an index tensor to the indices' common shape and surrounds it with dimensions of 1.
func (e *ShapeEnvironment) placedIndex(index *Meta, shape []Size, at, dimensions int) *Meta {
	sizes := slices.Repeat(Statics(1), dimensions)
	copy(sizes[at:], shape)
	strides, ok := e.viewStrides(&Meta{Sizes: shape, Strides: e.broadcastStrides(index, shape)}, sizes)
	if !ok {
		strides = e.contiguousStrides(sizes)
	}
	return &Meta{Sizes: sizes, Strides: strides}
}

func inferIndexPut(c *inference) error {
	m, values := c.self(), c.tensor("values")
	x, err := c.indexing(m)
	if err != nil {
		return err
	}
	source, _ := x.source(m)
	if !c.shapes.broadcastsTo(values.Sizes, source.Sizes) || values.DType != m.DType || c.shapes.anyZero(m.Sizes) {
		return unknown("index_put values")
	}
	return c.updated(func() error { return c.make(m.DType, m.Sizes, c.shapes.preservedStrides(m)) })
}

// updated returns the first argument for in-place operators and makes the functional result otherwise.
func (c *inference) updated(functional func() error) error {
	if !c.op.Schema.Parameters[0].Mutated {
		return functional()
	}
	c.returnSelf()
	c.mutates = append(c.mutates, c.values[0])
	return nil
}

func inferScatter(c *inference) error {
	m, index := c.self(), c.tensor("index")
	d, err := c.dim("dim")
	if err != nil || index.DType != Int64 || m.Dim() == 0 || !c.indexFits(index, m, d) {
		return unknown("scatter arguments")
	}
	if c.nothingToIndex(m, d, index) {
		return ErrForbidden
	}
	if src := c.tensor("src"); src != nil && (src.DType != m.DType || !c.indexFits(index, src, -1)) {
		return unknown("scatter source")
	}
	if c.op.Schema.Position("reduce") >= 0 && !c.reduceAllowed(m) {
		return unknown("scatter reduction")
	}
	return c.updated(func() error { return c.makeContiguous(m.DType, m.Sizes) })
}

func (c *inference) reduceAllowed(m *Meta) bool {
	return slices.Contains([]string{"sum", "prod", "mean", "amax", "amin"}, c.text("reduce")) && m.DType.Category() >= CategoryInt &&
		!m.DType.IsComplex()
}

func inferIndexAdd(c *inference) error {
	m, index, source := c.self(), c.tensor("index"), c.tensor("source")
	d, err := c.dim("dim")
	if err != nil || index.DType != Int64 {
		return unknown("index_add arguments")
	}
	if index.Dim() != 1 || m.Dim() == 0 || source.DType != m.DType || source.Dim() != m.Dim() {
		return ErrForbidden
	}
	if !c.shapes.AllEqual(withSize(m.Sizes, d, index.Sizes[0]), source.Sizes) || c.nothingToIndex(m, d, index) {
		return ErrForbidden
	}
	if err := c.checkScalars(m.DType); err != nil {
		return err
	}
	return c.updated(func() error { return c.makeContiguous(m.DType, m.Sizes) })
}

func inferIndexFill(c *inference) error {
	m, index := c.self(), c.tensor("index")
	d, err := c.dim("dim")
	if err != nil || index.DType != Int64 || index.Dim() > 1 || m.Dim() == 0 {
		return unknown("index_fill arguments")
	}
	if c.nothingToIndex(m, d, index) {
		return ErrForbidden
	}
	if err := c.checkScalars(m.DType); err != nil {
		return err
	}
	return c.updated(func() error { return c.make(m.DType, m.Sizes, c.shapes.preservedStrides(m)) })
}
