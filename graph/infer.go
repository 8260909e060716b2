package graph

import (
	"slices"
	"strings"

	"fusee/internal/slice"
)

// inference works out the outputs of one operator call.
type inference struct {
	graph   *Graph
	shapes  *ShapeEnvironment
	state   State
	op      *Op
	values  []Value // one per schema parameter
	outputs []OutputInfo
	mutates []Value
	random  bool
}

func (c *inference) value(name string) Value {
	if i := c.op.Schema.Position(name); i >= 0 {
		return c.values[i]
	}
	return nil
}

// tensor gives the metadata of a tensor argument, nil when it is None or a number.
func (c *inference) tensor(name string) *Meta {
	m, _ := MetaOf(c.value(name))
	return m
}

// self is the metadata of the first parameter, which the schemas using it declare as a tensor.
func (c *inference) self() *Meta {
	m, ok := MetaOf(c.values[0])
	if !ok {
		return &Meta{DType: NoDType}
	}
	return m
}

func (c *inference) boolean(name string) bool {
	b, _ := c.value(name).(bool)
	return b
}

func (c *inference) text(name string) string {
	s, _ := c.value(name).(string)
	return s
}

// dtype gives a type argument, or the fallback when it is None.
func (c *inference) dtype(name string, fallback DType) DType {
	if d, ok := c.value(name).(DType); ok {
		return d
	}
	return fallback
}

// size gives an integer argument; false when it is None or something else.
func (c *inference) size(name string) (Size, bool) { return SizeOf(c.value(name)) }

// SizeOf reads an integer value, plain or symbolic; false where the value is none.
func SizeOf(v Value) (Size, bool) {
	switch v := v.(type) {
	case int64:
		return Static(v), true
	case Size:
		return v, true
	case *Input:
		return v.Size, v.Kind == Int
	}
	return Size{}, false
}

// SizeValue is the argument form of a size.
func SizeValue(s Size) Value {
	if s.IsStatic() {
		return s.Hint
	}
	return s
}

func sizeValues(sizes []Size) List { return List{Items: slice.Map(sizes, SizeValue)} }

// integer gives an integer argument as a plain number, pinning symbols.
func (c *inference) integer(name string) (int64, bool) {
	s, ok := c.size(name)
	if !ok {
		return 0, false
	}
	return c.shapes.Specialise(s), true
}

// sizes gives a list of integers; false when the value is no such list.
func (c *inference) sizes(name string) ([]Size, bool) { return SizesOf(c.value(name)) }

// SizesOf reads a list of integers, which may change from call to call; false when the value is no such list.
func SizesOf(v Value) ([]Size, bool) {
	list, ok := v.(List)
	if !ok {
		return nil, false
	}
	return slice.MapAll(list.Items, SizeOf)
}

// integers is sizes with symbols pinned.
func (c *inference) integers(name string) ([]int64, bool) {
	sizes, ok := c.sizes(name)
	return slice.Map(sizes, c.shapes.Specialise), ok
}

// wrapDim maps a dimension counted from the end; 0-d tensors count as 1-d.
func wrapDim(dim int64, dimensions int) (int, bool) {
	n := int64(max(dimensions, 1))
	if dim < -n || dim >= n {
		return 0, false
	}
	return int((dim + n) % n), true
}

// dim gives a dimension argument of the first tensor.
func (c *inference) dim(name string) (int, error) {
	n, ok := c.integer(name)
	d, inRange := wrapDim(n, c.self().Dim())
	if !ok || !inRange {
		return 0, unknown(name + " is no dimension")
	}
	return d, nil
}

// make adds an output with fresh memory.
func (c *inference) make(d DType, sizes, strides []Size) error {
	if d == NoDType {
		return unknown(c.op.String() + ": no common type")
	}
	if !representable(sizes) {
		return unknown(c.op.String() + ": negative size, or more elements than memory can hold")
	}
	c.keepNatural(sizes)
	c.outputs = append(c.outputs, OutputInfo{Meta: Meta{DType: d, Sizes: sizes, Strides: strides}, Relation: New()})
	return nil
}

// keepNatural guards that sizes which are natural numbers now are none that mean something else, such as −1, at another call.
func (c *inference) keepNatural(sizes []Size) {
	for _, size := range sizes {
		c.shapes.LessEqual(Static(0), size)
	}
}

// representable says whether a tensor of these sizes can exist at all.
func representable(sizes []Size) bool {
	elements := 1.0
	return !slices.ContainsFunc(sizes, func(s Size) bool {
		elements *= float64(max(s.Hint, 1))
		return s.Hint < 0 || elements > 1<<56
	})
}

// makeContiguous adds row-major outputs with fresh memory.
func (c *inference) makeContiguous(d DType, shapes ...[]Size) error {
	for _, sizes := range shapes {
		if err := c.make(d, sizes, c.shapes.contiguousStrides(sizes)); err != nil {
			return err
		}
	}
	return nil
}

// view adds an output over the first argument's memory.
func (c *inference) view(sizes, strides []Size, offset Size) error {
	c.keepNatural(sizes)
	meta := Meta{DType: c.self().DType, Sizes: sizes, Strides: strides, Offset: offset}
	c.outputs = append(c.outputs, OutputInfo{Meta: meta, Relation: ViewOf(c.values[0])})
	return nil
}

// returnSelf makes the first argument the output.
func (c *inference) returnSelf() {
	c.outputs = append(c.outputs, OutputInfo{Meta: *c.self(), Relation: SameAs(c.values[0])})
}

// tensors lists all tensor arguments, those in lists included.
func (c *inference) tensors() []Value { return collectTensors(c.values) }

// Tensors lists the tensors among values and in the lists that they hold, in order.
func Tensors(values ...Value) []Value { return collectTensors(values) }

func collectTensors(values []Value) []Value { return slice.FlatMap(values, tensorsOf) }

func tensorsOf(v Value) []Value {
	if list, ok := v.(List); ok {
		return collectTensors(list.Items)
	}
	if _, ok := MetaOf(v); ok {
		return []Value{v}
	}
	return nil
}

// device is where the results live: that of the arguments, which must agree unless a 0-d CPU tensor may join.
func (c *inference) device() (Device, bool) {
	var device Device
	found, scalar := false, false
	for _, v := range c.tensors() {
		m, _ := MetaOf(v)
		isScalar := m.Dim() == 0 && m.Device.Type == "cpu"
		switch {
		case !found || scalar && !isScalar:
			device, found, scalar = m.Device, true, isScalar
		case m.Device == device || isScalar && c.op.traits&mixedDevices != 0:
		default:
			return device, false
		}
	}
	if !found {
		device.Type = "cpu"
	}
	return device, found && (!scalar || c.onlyDevice(device))
}

// onlyDevice checks that no tensor that came before a longer one lives elsewhere.
func (c *inference) onlyDevice(device Device) bool {
	return !slices.ContainsFunc(c.tensors(), func(v Value) bool {
		m, _ := MetaOf(v)
		return m.Device != device
	})
}

// accepts checks the element types of the tensors that take part in the computation.
func (c *inference) accepts(d DType) bool {
	letter := d.letter()
	return letter != 0 && (c.op.Accepts == "" || strings.IndexByte(c.op.Accepts, letter) >= 0)
}

// letter stands for the type in what rows accept; 0 for types that no row takes.
func (d DType) letter() byte {
	switch {
	case d.unpromotable() || d == Complex32:
		return 0
	case d.IsFloat() && d.Bytes() == 2:
		return 'h'
	}
	return [...]byte{CategoryNone: 0, CategoryBool: 'b', CategoryInt: 'i', CategoryFloat: 'f', CategoryComplex: 'c'}[d.Category()]
}

// run applies the operator's rule and completes the outputs.
func (c *inference) run() error {
	if err := c.op.rule(c); err != nil {
		return err
	}
	if c.op.InPlace {
		if err := c.storeInFirst(); err != nil {
			return err
		}
	}
	c.random = c.random || c.op.traits&randomOp != 0
	return c.complete()
}

// mayRaise says whether eager raises for some contents of the arguments: integer division checks for zero, indices for range.
func (c *inference) mayRaise() bool {
	switch strings.TrimSuffix(c.op.Schema.Name, "_") {
	case "cross_entropy_loss", "nll_loss_nd", "binary_cross_entropy", "bernoulli":
		return true
	case "floor_divide", "remainder", "fmod", "div":
		types, err := c.promotion()
		return err == nil && !types.compute.IsDifferentiable()
	}
	return c.op.Kind == KindIndex
}

// ErrCannotStore is the answer for in-place operations on a tensor of a type that cannot hold the result, where eager raises and fake tensors
// may not. It is an ErrUnknown.
const ErrCannotStore = unknown("in-place operation on a tensor whose type cannot hold the result")

// storeInFirst turns the functional result into an in-place one: same shape, castable type.
func (c *inference) storeInFirst() error {
	m := c.self()
	result := c.outputs[0].Meta
	if !canCast(result.DType, m.DType) {
		return ErrCannotStore
	}
	if !c.shapes.AllEqual(m.Sizes, result.Sizes) {
		return unknown(c.op.String() + ": the result does not fit the first argument")
	}
	c.outputs = nil
	c.returnSelf()
	c.mutates = append(c.mutates, c.values[0])
	return nil
}

// complete fills in device, requires_grad and flags of the outputs, and rejects mutations that autograd or memory overlap forbid.
func (c *inference) complete() error {
	for _, v := range c.mutates {
		if err := c.checkMutation(v); err != nil {
			return err
		}
	}
	gradient := c.gradient()
	if gradient && c.op.traits&(unsettledGradient|belowAutograd) != 0 {
		return unknown(c.op.String() + " of a tensor that requires gradients")
	}
	for i := range c.outputs {
		c.completeOutput(&c.outputs[i], gradient)
	}
	return nil
}

// gradient says whether differentiable results of the operator require gradients.
func (c *inference) gradient() bool {
	if !c.state.GradMode || c.op.traits&noGradient != 0 {
		return false
	}
	return slices.ContainsFunc(c.tensors(), c.graph.RequiresGrad)
}

func (c *inference) completeOutput(o *OutputInfo, gradient bool) {
	m := &o.Meta
	if m.Device.Type == "" {
		m.Device, _ = c.device()
	}
	requires := gradient && m.DType.IsDifferentiable()
	recorded := requires
	switch {
	case o.Relation.Kind == RelationSame:
		requires = requires && len(c.mutates) > 0 || c.graph.RequiresGrad(o.Relation.Of)
		recorded = requires
		m.Flags &^= FlagLeaf | FlagGradFn
	case o.Relation.Kind == RelationView && c.op.traits&noGradient == 0:
		requires = m.DType.IsDifferentiable() && c.graph.RequiresGrad(o.Relation.Of) // even while gradients are not recorded
		m.Flags = FlagView
	default:
		m.Flags = 0
	}
	m.Flags |= c.inferenceFlag(o)
	if m.Flags&FlagInference != 0 {
		m.Flags &^= FlagView // inference tensors do not track views
	}
	m.RequiresGrad = requires
	switch leaf, known := leafOf(o.Relation); {
	case known:
		m.Flags |= leaf
	case recorded:
		m.Flags |= FlagGradFn
	default:
		m.Flags |= FlagLeaf
	}
}

// inferenceFlag marks what inference mode makes, and what shares memory with an inference tensor.
func (c *inference) inferenceFlag(o *OutputInfo) MetaFlags {
	if o.Relation.Kind == RelationNew {
		if c.state.InferenceMode {
			return FlagInference
		}
		return 0
	}
	return meta(o.Relation.Of).Flags & FlagInference
}

// leafOf keeps the leaf flags of an argument that is returned unchanged and requires gradients itself.
func leafOf(r Relation) (MetaFlags, bool) {
	m, ok := MetaOf(r.Of)
	if !ok || r.Kind != RelationSame || !m.RequiresGrad {
		return 0, false
	}
	return m.Flags & (FlagLeaf | FlagGradFn), true
}

// checkMutation rejects what eager rejects: writing into memory where elements overlap, and in-place operations on leaves and
// on views of leaves while gradients are recorded.
func (c *inference) checkMutation(v Value) error {
	m, ok := MetaOf(v)
	if !ok {
		return unknown("writes into something that is no plain tensor")
	}
	if m.Flags&FlagInference != 0 && !c.state.InferenceMode {
		return ErrForbidden // eager raises once the elements are written
	}
	for i, s := range m.Strides {
		if c.shapes.IsZero(s) && c.shapes.Less(Static(1), m.Sizes[i]) {
			return ErrForbidden // fake tensors have no memory that could overlap
		}
	}
	if c.readsWhatItWrites(v) {
		return ErrForbidden
	}
	if c.state.GradMode && c.graph.leafRoot(v) {
		if m.Flags&FlagView != 0 {
			return ErrForbidden // fake tensors know no base
		}
		return unknown("writes into a leaf that requires gradients")
	}
	if c.gradient() && (isPiece(v) || isForeignView(v)) || c.graph.wasCut(v) {
		return ErrForbidden
	}
	if n := beginningAfresh(v); n != nil && c.gradient() {
		return &AfreshError{n}
	}
	return nil
}

// readsWhatItWrites says whether eager refuses to write into v for what the operator reads, or computes from what it has written already.
func (c *inference) readsWhatItWrites(v Value) bool {
	switch c.op.Kind {
	case KindPointwise, KindCopy:
		return c.readsPartOf(v)
	case KindIndex, KindMatrix, KindReduction, KindScan, KindShape:
		return c.readsMemoryOf(v)
	}
	return false
}

// ShareMemory says whether two values show the memory of one tensor, or of two that had one storage at capture.
func ShareMemory(a, b Value) bool {
	a, b = Owner(a), Owner(b)
	one, okOne := a.(*Input)
	other, okOther := b.(*Input)
	return SameValue(a, b) || okOne && okOther && one.Memory != 0 && one.Memory == other.Memory
}

// readsMemoryOf says whether an argument beside v itself, of which there may be several, shares its memory.
func (c *inference) readsMemoryOf(v Value) bool {
	written := 0
	for _, other := range c.tensors() {
		if SameValue(other, v) {
			written++
		} else if ShareMemory(other, v) {
			return true
		}
	}
	return written > 1
}

// readsPartOf says whether an argument shares part of the memory of v, or all of it in another order (at::get_overlap_status).
func (c *inference) readsPartOf(v Value) bool {
	sharing := slices.DeleteFunc(c.tensors(), func(other Value) bool {
		return SameValue(other, v) || !ShareMemory(other, v)
	})
	if len(sharing) == 0 {
		return false // nothing is asked of sizes that change
	}
	written := meta(v)
	begin, end, known := c.shapes.memory(written)
	return known && slices.ContainsFunc(sharing, func(other Value) bool {
		read := meta(other)
		first, last, known := c.shapes.memory(read)
		if !known || c.shapes.LessEqual(last, begin) || c.shapes.LessEqual(end, first) {
			return false
		}
		return !c.shapes.Equal(first, begin) || !c.shapes.Equal(last, end) || !c.shapes.AllEqual(read.Strides, written.Strides)
	})
}

// memory is the range of elements that a dense tensor takes; known is false for others and those without elements.
func (e *ShapeEnvironment) memory(m *Meta) (begin, end Size, known bool) {
	if e.anyZero(m.Sizes) || !e.isDense(m) {
		return begin, end, false
	}
	return m.Offset, e.Add(m.Offset, e.Product(m.Sizes)), true
}

// isForeignView says whether v is a view that was made before the graph, by a function that may have returned several at once.
func isForeignView(v Value) bool {
	base, ok := Owner(v).(*Input)
	return ok && base.Kind == Tensor && base.Meta.Flags&FlagView != 0 && base.Meta.RequiresGrad
}

// ErrForbidden is the answer for operations that eager refuses, or may refuse, and fake tensors do not. It is an ErrUnknown.
const ErrForbidden = unknown("an operation that eager refuses: in place on elements that overlap, on a view of a leaf or on one of several views that gradients flow through, with sizes that do not fit, or of numbers that no element holds")
