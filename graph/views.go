package graph

import (
	"cmp"
	"slices"

	"fusee/internal/slice"
)

func view(schema string, r rule) row { return row{schema: schema, kind: KindView, rule: r} }

func viewRows() []row {
	return []row{
		view("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", inferView),
		view("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", inferView), // what reshape makes of a copy: torch counts it as no view
		{schema: "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", kind: KindView, traits: noGradient, rule: inferViewDType},
		view("alias(Tensor(a) self) -> Tensor(a)", inferAlias),
		{schema: "detach(Tensor(a) self) -> Tensor(a)", kind: KindView, traits: noGradient, rule: inferAlias},
		view("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", inferExpand),
		view("permute(Tensor(a) self, int[] dims) -> Tensor(a)", inferPermute),
		view("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", inferTranspose),
		view("t(Tensor(a) self) -> Tensor(a)", inferT),
		view("numpy_T(Tensor(a) self) -> Tensor(a)", inferReversed),
		view("mT(Tensor(a) self) -> Tensor(a)", inferMatrixTranspose),
		view("squeeze(Tensor(a) self) -> Tensor(a)", inferSqueeze),
		view("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", inferSqueezeDims),
		view("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", inferSqueezeDims),
		view("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", inferUnsqueeze),
		view("slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", inferSlice),
		view("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", inferSelect),
		view("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", inferNarrow),
		view("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)", inferAsStrided),
		view("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", inferUnfold),
		view("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", inferDiagonal),
		view("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", inferMoveDim),
		view("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)", inferMoveDims),
		view("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", inferUnflatten),
		view("view_as_real(Tensor(a) self) -> Tensor(a)", inferViewAsReal),
		view("view_as_complex(Tensor(a) self) -> Tensor(a)", inferViewAsComplex),
		view("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", inferSplit),
		view("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", inferSplitSizes),
		view("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", inferChunk),
		view("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", inferUnbind),
		view("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]", inferTensorSplit),
		view("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]", inferTensorSplitAt),
	}
}

// inferredSizes replaces one −1 among requested sizes by what is left of the elements.
func (e *ShapeEnvironment) inferredSizes(requested []Size, elements Size) ([]Size, bool) {
	sizes := slices.Clone(requested)
	known, hole := Static(1), -1
	for i, s := range sizes {
		switch {
		case s.IsStatic() && s.Hint == -1 && hole < 0:
			hole = i
		case s.Hint < 0:
			return nil, false
		default:
			known = e.Multiply(known, s)
		}
	}
	if hole < 0 {
		return sizes, e.Equal(known, elements)
	}
	if e.IsZero(known) || !e.IsZero(e.Modulo(elements, known)) {
		return nil, false
	}
	sizes[hole] = e.FloorDivide(elements, known)
	return sizes, true
}

// viewStrides gives the strides under which old memory reads as the new shape; false when a copy is needed. Source of the
// algorithm: at::detail::computeStride.
func (e *ShapeEnvironment) viewStrides(m *Meta, shape []Size) ([]Size, bool) {
	if m.Dim() == 0 {
		return slices.Repeat([]Size{Static(1)}, len(shape)), true
	}
	if e.anyZero(m.Sizes) {
		if e.AllEqual(m.Sizes, shape) {
			return m.Strides, true
		}
		return e.emptyViewStrides(shape), true
	}
	strides := make([]Size, len(shape))
	at := len(shape) - 1
	base, elements, covered := m.Strides[m.Dim()-1], Static(1), Static(1)
	for d := m.Dim() - 1; d >= 0; d-- {
		elements = e.Multiply(elements, m.Sizes[d])
		if d > 0 && (e.IsOne(m.Sizes[d-1]) || e.Equal(m.Strides[d-1], e.Multiply(elements, base))) {
			continue
		}
		for at >= 0 && (e.Less(covered, elements) || e.IsOne(shape[at])) {
			strides[at] = e.Multiply(covered, base)
			covered = e.Multiply(covered, shape[at])
			at--
		}
		if !e.Equal(covered, elements) {
			return nil, false
		}
		if d > 0 {
			base, elements, covered = m.Strides[d-1], Static(1), Static(1)
		}
	}
	return strides, at < 0
}

func (e *ShapeEnvironment) emptyViewStrides(shape []Size) []Size {
	strides := make([]Size, len(shape))
	next := Static(1)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = next
		next = e.Multiply(next, e.atLeastOne(shape[i]))
	}
	return strides
}

func inferView(c *inference) error {
	requested, ok := c.sizes("size")
	if !ok {
		return unknown("view sizes")
	}
	return c.viewAs(requested)
}

func (c *inference) viewAs(requested []Size) error {
	m := c.self()
	sizes, ok := c.shapes.inferredSizes(requested, c.shapes.Product(m.Sizes))
	if !ok {
		return unknown("sizes do not fit the elements")
	}
	strides, ok := c.shapes.viewStrides(m, sizes)
	if !ok {
		return unknown("view needs a copy")
	}
	return c.view(sizes, strides, m.Offset)
}

func inferViewDType(c *inference) error {
	m := c.self()
	d := c.dtype("dtype", m.DType)
	if d.Bytes() != m.DType.Bytes() || d.IsComplex() != m.DType.IsComplex() || d == m.DType || c.graph.RequiresGrad(c.values[0]) {
		return unknown("view as a type of another width, as the same, or under autograd")
	}
	return c.viewOfType(d, m.Sizes, m.Strides, m.Offset)
}

func inferAlias(c *inference) error {
	m := c.self()
	return c.view(m.Sizes, m.Strides, m.Offset)
}

func inferExpand(c *inference) error {
	m := c.self()
	requested, ok := c.sizes("size")
	missing := len(requested) - m.Dim()
	if missing < 0 {
		return unknown("expand to fewer dimensions")
	}
	sizes, strides := make([]Size, len(requested)), make([]Size, len(requested))
	negative := slices.ContainsFunc(requested, func(size Size) bool { return size.Hint < 0 })
	if !ok || m.Dim() == 0 && (negative || !representable(requested)) {
		return unknown("expand sizes")
	}
	if m.Dim() == 0 {
		return c.view(requested, strides, m.Offset)
	}
	for i := len(requested) - 1; i >= 0; i-- {
		if i >= missing {
			sizes[i], strides[i] = m.Sizes[i-missing], m.Strides[i-missing]
		} else {
			sizes[i], strides[i] = Static(1), c.shapes.Multiply(sizes[i+1], strides[i+1])
		}
		if err := c.expandTo(requested[i], &sizes[i], &strides[i], i < missing); err != nil {
			return err
		}
	}
	return c.view(sizes, strides, m.Offset)
}

func (c *inference) expandTo(requested Size, size, stride *Size, leading bool) error {
	switch {
	case requested.IsStatic() && requested.Hint == -1 && !leading:
		return nil
	case requested.Hint < 0:
		return unknown("expand to a negative size")
	case c.shapes.Equal(*size, requested):
		return nil
	case !c.shapes.IsOne(*size):
		return unknown("expand of a dimension that is not 1")
	}
	*size, *stride = requested, Static(0)
	return nil
}

func pick[T any](items []T, order []int) []T {
	return slice.Map(order, func(i int) T { return items[i] })
}

func (c *inference) permuteBy(order []int) error {
	m := c.self()
	return c.view(pick(m.Sizes, order), pick(m.Strides, order), m.Offset)
}

func inferPermute(c *inference) error {
	order, ok := c.wrappedDims("dims", c.self().Dim())
	if !ok || len(order) != c.self().Dim() {
		return unknown("permute dimensions")
	}
	return c.permuteBy(order)
}

// wrappedDims reads distinct dimensions, counted from the end when negative.
func (c *inference) wrappedDims(name string, dimensions int) ([]int, bool) {
	numbers, ok := c.integers(name)
	order := make([]int, len(numbers))
	for i, n := range numbers {
		d, inRange := wrapDim(n, dimensions)
		if !inRange || slices.Contains(order[:i], d) {
			return nil, false
		}
		order[i] = d
	}
	return order, ok
}

func (c *inference) swapped(a, b int) error {
	order := rowMajor(c.self().Dim())
	if len(order) > 0 {
		order[a], order[b] = order[b], order[a]
	}
	return c.permuteBy(order)
}

func inferTranspose(c *inference) error {
	a, firstError := c.dim("dim0")
	b, secondError := c.dim("dim1")
	if err := cmp.Or(firstError, secondError); err != nil {
		return err
	}
	return c.swapped(a, b)
}

func inferT(c *inference) error {
	if c.self().Dim() > 2 {
		return unknown("t of more than two dimensions")
	}
	return c.swapped(0, max(0, c.self().Dim()-1))
}

func inferReversed(c *inference) error {
	if n := c.self().Dim(); n != 2 && n != 0 {
		return unknown("T of other than two dimensions")
	}
	order := rowMajor(c.self().Dim())
	slices.Reverse(order)
	return c.permuteBy(order)
}

func inferMatrixTranspose(c *inference) error {
	n := c.self().Dim()
	if n < 2 {
		return unknown("mT of fewer than two dimensions")
	}
	return c.swapped(n-2, n-1)
}

func inferSqueeze(c *inference) error {
	return c.squeezeWhere(func(int) bool { return true })
}

func (c *inference) squeezeWhere(asked func(int) bool) error {
	m := c.self()
	return c.permuteBy(slices.DeleteFunc(rowMajor(m.Dim()), func(d int) bool { return asked(d) && c.shapes.IsOne(m.Sizes[d]) }))
}

func inferSqueezeDims(c *inference) error {
	dims, err := c.listedDims(c.value("dim"))
	if err != nil {
		return err
	}
	return c.squeezeWhere(func(d int) bool { return slices.Contains(dims, d) })
}

func inferUnsqueeze(c *inference) error {
	m := c.self()
	n, ok := c.integer("dim")
	d, inRange := wrapDim(n, m.Dim()+1)
	if !ok || !inRange {
		return unknown("unsqueeze dimension")
	}
	stride := Static(1)
	if d < m.Dim() {
		stride = c.shapes.Multiply(m.Sizes[d], m.Strides[d])
	}
	return c.view(slices.Insert(slices.Clone(m.Sizes), d, Static(1)), slices.Insert(slices.Clone(m.Strides), d, stride), m.Offset)
}

// clampIndex brings a slice bound into 0…length, counting from the end when negative.
func (e *ShapeEnvironment) clampIndex(index, length Size) Size {
	if e.Less(index, Static(0)) {
		index = e.Add(index, length)
		if e.Less(index, Static(0)) {
			return Static(0)
		}
	}
	if e.Less(length, index) {
		return length
	}
	return index
}

func (c *inference) sliceDim(d int, start, end, step Size) error {
	m, e := c.self(), c.shapes
	start, end = e.clampIndex(start, m.Sizes[d]), e.clampIndex(end, m.Sizes[d])
	if e.Less(end, start) {
		end = start
	}
	size := e.FloorDivide(e.Add(e.Subtract(end, start), e.Subtract(step, Static(1))), step)
	return c.view(withSize(m.Sizes, d, size), withSize(m.Strides, d, e.Multiply(m.Strides[d], step)), e.Add(m.Offset, e.Multiply(start, m.Strides[d])))
}

func inferSlice(c *inference) error {
	d, err := c.dim("dim")
	if err != nil || c.self().Dim() == 0 {
		return unknown("slice dimension")
	}
	start, given := c.size("start")
	if !given {
		start = Static(0)
	}
	end, given := c.size("end")
	if !given {
		end = c.self().Sizes[d]
	}
	step, ok := c.size("step")
	if !ok || !c.shapes.Less(Static(0), step) {
		return unknown("slice step")
	}
	return c.sliceDim(d, start, end, step)
}

func inferSelect(c *inference) error {
	m := c.self()
	d, err := c.dim("dim")
	index, ok := c.size("index")
	if err != nil || !ok || m.Dim() == 0 {
		return unknown("select arguments")
	}
	if c.shapes.Less(index, Static(0)) {
		index = c.shapes.Add(index, m.Sizes[d])
	}
	if c.shapes.Less(index, Static(0)) || !c.shapes.Less(index, m.Sizes[d]) {
		return unknown("select out of range")
	}
	offset := c.shapes.Add(m.Offset, c.shapes.Multiply(index, m.Strides[d]))
	return c.view(slices.Delete(slices.Clone(m.Sizes), d, d+1), slices.Delete(slices.Clone(m.Strides), d, d+1), offset)
}

func inferNarrow(c *inference) error {
	m, e := c.self(), c.shapes
	d, err := c.dim("dim")
	start, ok := c.size("start")
	length, lengthOK := c.size("length")
	if err != nil || !ok || !lengthOK || m.Dim() == 0 || e.Less(length, Static(0)) {
		return unknown("narrow arguments")
	}
	if e.Less(start, Static(0)) {
		start = e.Add(start, m.Sizes[d])
	}
	if e.Less(start, Static(0)) || e.Less(m.Sizes[d], e.Add(start, length)) {
		return unknown("narrow out of range")
	}
	return c.sliceDim(d, start, e.Add(start, length), Static(1))
}

// Owner follows views and in-place results to the tensor whose memory they show.
func Owner(v Value) Value {
	for r := relationOf(v); r.Kind != RelationNew && r.Of != nil; r = relationOf(v) {
		v = r.Of
	}
	return v
}

func inferAsStrided(c *inference) error {
	sizes, ok := c.sizes("size")
	strides, stridesOK := c.sizes("stride")
	if !ok || !stridesOK || len(sizes) != len(strides) {
		return unknown("as_strided arguments")
	}
	for i := range sizes {
		if sizes[i].Hint < 0 || strides[i].Hint < 0 {
			return unknown("as_strided with negative numbers")
		}
	}
	offset, given := c.size("storage_offset")
	if !given {
		offset = c.self().Offset
	} else if _, ok := Owner(c.values[0]).(*Input); ok {
		return unknown("as_strided at a place that depends on where the argument begins")
	}
	if offset.Hint < 0 || !c.withinStorage(sizes, strides, offset) {
		return unknown("as_strided may leave the storage")
	}
	return c.view(sizes, strides, offset)
}

// withinStorage checks that the view stays inside the elements that the argument itself reaches: the storage is at least that
// large, and how much larger is not known here.
func (c *inference) withinStorage(sizes, strides []Size, offset Size) bool {
	e, m := c.shapes, c.self()
	if e.anyZero(m.Sizes) {
		return false
	}
	return e.LessEqual(e.lastElement(sizes, strides, offset), e.lastElement(m.Sizes, m.Strides, m.Offset))
}

func (e *ShapeEnvironment) lastElement(sizes, strides []Size, offset Size) Size {
	for i := range sizes {
		offset = e.Add(offset, e.Multiply(e.Subtract(sizes[i], Static(1)), strides[i]))
	}
	return offset
}

func inferUnfold(c *inference) error {
	m := c.self()
	d, err := c.dim("dimension")
	size, ok := c.size("size")
	step, stepOK := c.size("step")
	if err != nil || !ok || !stepOK || m.Dim() == 0 || size.Hint < 0 || step.Hint < 1 || !c.shapes.LessEqual(size, m.Sizes[d]) {
		return unknown("unfold arguments")
	}
	sizes, strides := append(slices.Clone(m.Sizes), size), append(slices.Clone(m.Strides), m.Strides[d])
	windows := c.shapes.FloorDivide(c.shapes.Subtract(m.Sizes[d], size), step)
	sizes[d] = c.shapes.Add(windows, Static(1))
	strides[d] = c.shapes.Multiply(m.Strides[d], step)
	return c.view(sizes, strides, m.Offset)
}

func inferDiagonal(c *inference) error {
	m, e := c.self(), c.shapes
	a, err := c.dim("dim1")
	b, err2 := c.dim("dim2")
	shift, ok := c.integer("offset")
	if err != nil || err2 != nil || !ok || a == b || m.Dim() < 2 {
		return unknown("diagonal dimensions")
	}
	rows, columns := m.Sizes[a], m.Sizes[b]
	offset := m.Offset
	start := e.Multiply(Static(shift), m.Strides[b])
	if shift >= 0 {
		columns = e.Subtract(columns, Static(shift))
	} else {
		rows = e.Add(rows, Static(shift))
		start = e.Multiply(Static(-shift), m.Strides[a])
	}
	length := e.Minimum(rows, columns)
	if e.LessEqual(length, Static(0)) {
		length, start = Static(0), Static(0)
	}
	kept := slices.DeleteFunc(rowMajor(m.Dim()), func(d int) bool { return d == a || d == b })
	return c.view(append(pick(m.Sizes, kept), length), append(pick(m.Strides, kept), e.Add(m.Strides[a], m.Strides[b])), e.Add(offset, start))
}

func inferMoveDim(c *inference) error {
	source, err := c.dim("source")
	destination, err2 := c.dim("destination")
	if err != nil || err2 != nil {
		return unknown("movedim dimensions")
	}
	return c.moveDims([]int{source}, []int{destination})
}

func inferMoveDims(c *inference) error {
	source, ok := c.wrappedDims("source", c.self().Dim())
	destination, ok2 := c.wrappedDims("destination", c.self().Dim())
	if !ok || !ok2 || len(source) != len(destination) {
		return unknown("movedim dimensions")
	}
	return c.moveDims(source, destination)
}

func (c *inference) moveDims(source, destination []int) error {
	n := c.self().Dim()
	if n == 0 {
		return c.permuteBy(nil)
	}
	rest := slices.DeleteFunc(rowMajor(n), func(d int) bool { return slices.Contains(source, d) })
	order := make([]int, n)
	for d := range order {
		if i := slices.Index(destination, d); i >= 0 {
			order[d] = source[i]
		} else {
			order[d], rest = rest[0], rest[1:]
		}
	}
	return c.permuteBy(order)
}

func inferUnflatten(c *inference) error {
	m := c.self()
	d, err := c.dim("dim")
	requested, ok := c.sizes("sizes")
	if err != nil || !ok || m.Dim() == 0 || len(requested) == 0 {
		return unknown("unflatten arguments")
	}
	sizes, ok := c.shapes.inferredSizes(requested, m.Sizes[d])
	if !ok {
		return unknown("unflatten sizes")
	}
	return c.viewAs(slices.Concat(m.Sizes[:d], sizes, m.Sizes[d+1:]))
}

func inferViewAsReal(c *inference) error {
	m := c.self()
	if !m.DType.IsComplex() {
		return unknown("view_as_real of a real tensor")
	}
	twice := func(s Size) Size { return c.shapes.Multiply(Static(2), s) }
	sizes, strides := append(slices.Clone(m.Sizes), Static(2)), append(slice.Map(m.Strides, twice), Static(1))
	return c.viewOfType(m.DType.Real(), sizes, strides, twice(m.Offset))
}

func inferViewAsComplex(c *inference) error {
	m, e := c.self(), c.shapes
	last := m.Dim() - 1
	if last < 0 || !m.DType.IsFloat() || m.DType == BFloat16 || !e.Equal(m.Sizes[last], Static(2)) || !e.IsOne(m.Strides[last]) {
		return unknown("view_as_complex of another layout")
	}
	half := func(s Size) (Size, bool) { return e.FloorDivide(s, Static(2)), e.IsZero(e.Modulo(s, Static(2))) }
	strides, even := slice.MapAll(m.Strides[:last], half)
	if !even {
		return unknown("view_as_complex of odd strides")
	}
	return c.viewOfType(complexOf(m.DType), m.Sizes[:last], strides, e.FloorDivide(m.Offset, Static(2)))
}

// pieces adds one view per piece of dimension d.
func (c *inference) pieces(d int, lengths []Size) error {
	start := Static(0)
	for _, length := range lengths {
		end := c.shapes.Add(start, length)
		if err := c.sliceDim(d, start, end, Static(1)); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// evenPieces cuts length into pieces of a size of one or more, the last one what is left. How many there are is guarded.
func (c *inference) evenPieces(length, size Size) []Size {
	e, count := c.shapes, max((length.Hint+size.Hint-1)/size.Hint, 1)
	ahead := e.Multiply(Static(count-1), size)
	if count > 1 {
		e.Less(ahead, length)
	}
	e.LessEqual(length, e.Add(ahead, size))
	return append(slices.Repeat([]Size{size}, int(count-1)), e.Subtract(length, ahead))
}

// maximumPieces bounds how many outputs one node may have.
const maximumPieces = 1 << 16

func inferSplit(c *inference) error {
	d, err := c.dim("dim")
	size, ok := c.size("split_size")
	if err != nil || !ok || c.self().Dim() == 0 {
		return unknown("split arguments")
	}
	length := c.self().Sizes[d]
	if c.shapes.LessEqual(size, Static(0)) {
		if c.shapes.Less(size, Static(0)) || !c.shapes.IsZero(length) {
			return unknown("split size")
		}
		size = Static(1)
	}
	if length.Hint/size.Hint > maximumPieces {
		return unknown("split size")
	}
	return c.pieces(d, c.evenPieces(length, size))
}

func inferSplitSizes(c *inference) error {
	d, err := c.dim("dim")
	lengths, ok := c.sizes("split_sizes")
	if err != nil || !ok || c.self().Dim() == 0 {
		return unknown("split arguments")
	}
	total := Static(0)
	for _, s := range lengths {
		if s.Hint < 0 {
			return unknown("split sizes")
		}
		total = c.shapes.Add(total, s)
	}
	if !c.shapes.Equal(total, c.self().Sizes[d]) {
		return unknown("split sizes do not add up")
	}
	return c.pieces(d, lengths)
}

func inferChunk(c *inference) error {
	d, err := c.dim("dim")
	chunks, ok := c.integer("chunks")
	if err != nil || !ok || chunks < 1 || chunks > maximumPieces || c.self().Dim() == 0 {
		return unknown("chunk arguments")
	}
	e, length := c.shapes, c.self().Sizes[d]
	if e.IsZero(length) {
		return c.pieces(d, slices.Repeat([]Size{Static(0)}, int(chunks)))
	}
	if rest := e.Modulo(length, Static(chunks)); rest.IsStatic() && rest.Hint == 0 {
		return c.pieces(d, slices.Repeat([]Size{e.FloorDivide(length, Static(chunks))}, int(chunks)))
	}
	return c.pieces(d, c.evenPieces(length, e.FloorDivide(e.Add(length, Static(chunks-1)), Static(chunks))))
}

func inferUnbind(c *inference) error {
	m := c.self()
	d, err := c.dim("dim")
	if err != nil || m.Dim() == 0 {
		return unknown("unbind dimension")
	}
	count := c.shapes.Specialise(m.Sizes[d])
	if count > maximumPieces {
		return unknown("unbind of a long dimension")
	}
	sizes, strides := slices.Delete(slices.Clone(m.Sizes), d, d+1), slices.Delete(slices.Clone(m.Strides), d, d+1)
	for i := range count {
		if err := c.view(sizes, strides, c.shapes.Add(m.Offset, c.shapes.Multiply(Static(i), m.Strides[d]))); err != nil {
			return err
		}
	}
	return nil
}

func inferTensorSplit(c *inference) error {
	d, err := c.dim("dim")
	sections, ok := c.integer("sections")
	if err != nil || !ok || sections < 1 || sections > maximumPieces || c.self().Dim() == 0 {
		return unknown("tensor_split arguments")
	}
	lengths := make([]Size, sections)
	for i := range lengths { // the first ones are longer by one element where there is a rest
		rest := c.shapes.Add(c.self().Sizes[d], Static(sections-1-int64(i)))
		lengths[i] = c.shapes.FloorDivide(rest, Static(sections))
	}
	return c.pieces(d, lengths)
}

func inferTensorSplitAt(c *inference) error {
	d, err := c.dim("dim")
	indices, ok := c.sizes("indices")
	if err != nil || !ok || c.self().Dim() == 0 {
		return unknown("tensor_split arguments")
	}
	start := Static(0)
	for _, end := range append(slices.Clone(indices), c.self().Sizes[d]) {
		if err := c.sliceDim(d, start, end, Static(1)); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// viewOfType adds an output over the first argument's memory that has elements of another type.
func (c *inference) viewOfType(d DType, sizes, strides []Size, offset Size) error {
	err := c.view(sizes, strides, offset)
	c.outputs[0].Meta.DType = d
	return err
}
