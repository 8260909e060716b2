package graph

import (
	"cmp"
	"math"

	"fusee/internal/slice"
)

const tensorOptions = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

func factory(schema string, r rule) row {
	return row{schema: schema, kind: KindFactory, traits: noGradient, rule: r}
}

func factoryRows() []row {
	like := tensorOptions + ", MemoryFormat? memory_format=None) -> Tensor"
	fresh := tensorOptions + ") -> Tensor"
	return []row{
		factory("empty.memory_format(SymInt[] size, *, "+like, inferFilled),
		factory("zeros(SymInt[] size, *, "+fresh, inferFilled),
		factory("ones(SymInt[] size, *, "+fresh, inferFilled),
		factory("full(SymInt[] size, Scalar fill_value, *, "+fresh, inferFull),
		factory("scalar_tensor(Scalar s, *, "+fresh, inferScalarTensor),
		factory("empty_strided(SymInt[] size, SymInt[] stride, *, "+fresh, inferEmptyStrided),
		factory("empty_like(Tensor self, *, "+like, inferLike),
		factory("zeros_like(Tensor self, *, "+like, inferLike),
		factory("ones_like(Tensor self, *, "+like, inferLike),
		factory("full_like(Tensor self, Scalar fill_value, *, "+like, inferLike),
		factory("new_empty(Tensor self, SymInt[] size, *, "+fresh, inferFilled),
		factory("new_zeros(Tensor self, SymInt[] size, *, "+fresh, inferFilled),
		factory("new_ones(Tensor self, SymInt[] size, *, "+fresh, inferFilled),
		factory("new_full(Tensor self, SymInt[] size, Scalar fill_value, *, "+fresh, inferFilled),
		factory("new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, "+fresh, inferEmptyStrided),
		factory("arange(Scalar end, *, "+fresh, inferArange),
		factory("arange.start(Scalar start, Scalar end, *, "+fresh, inferArange),
		factory("arange.start_step(Scalar start, Scalar end, Scalar step=1, *, "+fresh, inferArange),
		factory("linspace(Scalar start, Scalar end, int steps, *, "+fresh, inferLinspace),
		factory("eye(SymInt n, *, "+fresh, inferEye),
		factory("eye.m(SymInt n, SymInt m, *, "+fresh, inferEye),
	}
}

// options reads dtype, layout, device and pin_memory; a tensor argument supplies what is absent.
func (c *inference) options(fallback DType) (DType, Device, error) {
	device := Device{Type: "cpu"}
	if m, ok := MetaOf(c.values[0]); ok {
		fallback, device = m.DType, m.Device
	}
	if given, ok := c.value("device").(Device); ok {
		device = given
	}
	if layout := c.value("layout"); layout != nil && layout != Strided || c.boolean("pin_memory") {
		return NoDType, device, unknown("layout or pinned memory")
	}
	d := c.dtype("dtype", fallback)
	if d.unpromotable() {
		return NoDType, device, unknown("factory of an unusual type")
	}
	if c.op.Schema.Position("fill_value") >= 0 && !d.takes(c.value("fill_value")) {
		return NoDType, device, ErrForbidden
	}
	return d, device, nil
}

func (c *inference) create(d DType, device Device, sizes, strides []Size) error {
	err := c.make(d, sizes, strides)
	if err == nil {
		c.outputs[0].Meta.Device = device
	}
	return err
}

func inferFilled(c *inference) error {
	d, device, err := c.options(c.state.defaultDType())
	sizes, ok := c.sizes("size")
	if err != nil || !ok {
		return cmp.Or[error](err, unknown("factory arguments"))
	}
	format, given := c.value("memory_format").(MemoryFormat)
	if !given {
		format = ContiguousFormat
	}
	strides, ok := c.shapes.formatStrides(format, sizes)
	if !ok {
		return unknown("memory format")
	}
	return c.create(d, device, sizes, strides)
}

// inferFull takes the type from the number: bool and int64 for bools and integers, the default type for floats.
func inferFull(c *inference) error {
	fallback, typeError := c.scalarType("fill_value")
	d, device, err := c.options(fallback)
	sizes, ok := c.sizes("size")
	if typeError != nil || err != nil || !ok {
		return cmp.Or[error](err, unknown("full arguments"))
	}
	return c.create(d, device, sizes, c.shapes.contiguousStrides(sizes))
}

func (c *inference) scalarType(name string) (DType, error) {
	d, ok := numberType(c.value(name))
	if !ok {
		return NoDType, unknown(name + " is no number")
	}
	return d.ofNumber(c.state.defaultDType()), nil
}

func inferScalarTensor(c *inference) error {
	d, device, err := c.options(c.state.defaultDType())
	number, ok := numberType(c.value("s"))
	if err != nil || !ok || number.IsComplex() && !d.IsComplex() {
		return unknown("scalar_tensor arguments")
	}
	return c.create(d, device, nil, nil)
}

func inferEmptyStrided(c *inference) error {
	d, device, err := c.options(c.state.defaultDType())
	sizes, ok := c.sizes("size")
	strides, stridesOK := c.sizes("stride")
	if err != nil || !ok || !stridesOK || len(sizes) != len(strides) {
		return unknown("empty_strided arguments")
	}
	for _, s := range strides {
		if s.Hint < 0 {
			return unknown("negative stride")
		}
	}
	return c.create(d, device, sizes, strides)
}

func inferLike(c *inference) error {
	m := c.self()
	d, device, err := c.options(m.DType)
	strides, ok := c.likeStrides(m)
	if err != nil || !ok {
		return cmp.Or[error](err, unknown("memory format"))
	}
	return c.create(d, device, m.Sizes, strides)
}

// likeStrides reads memory_format; absent means preserve.
func (c *inference) likeStrides(m *Meta) ([]Size, bool) {
	format, given := c.value("memory_format").(MemoryFormat)
	if !given || format == PreserveFormat {
		return c.shapes.preservedStrides(m), true
	}
	return c.shapes.formatStrides(format, m.Sizes)
}

// maximumLength bounds the number of elements that ranges may have.
const maximumLength = 1 << 48

func inferArange(c *inference) error {
	fallback := Int64
	for _, name := range []string{"start", "end", "step"} {
		if d, ok := numberType(c.value(name)); ok && d.IsFloat() {
			fallback = c.state.defaultDType()
		}
	}
	d, device, err := c.options(fallback)
	if err != nil || d == Bool || d.IsComplex() {
		return unknown("arange type")
	}
	length, ok := c.arangeLength(d)
	if !ok {
		return unknown("arange bounds")
	}
	return c.create(d, device, []Size{length}, Statics(1))
}

// arangeLength is ceil((end − start) / step), for integers exactly.
func (c *inference) arangeLength(d DType) (Size, bool) {
	start, step := Value(int64(0)), Value(int64(1))
	if c.op.Schema.Position("start") >= 0 {
		start = c.value("start")
	}
	if c.op.Schema.Position("step") >= 0 {
		step = c.value("step")
	}
	a, okA := SizeOf(start)
	b, okB := SizeOf(c.value("end"))
	s, okS := SizeOf(step)
	if !okA || !okB || !okS {
		return arangeFloatLength(start, c.value("end"), step, d)
	}
	e := c.shapes
	pinned := e.Specialise(s)
	if pinned == 0 {
		return Size{}, false
	}
	length := e.FloorDivide(e.Add(e.Subtract(b, a), Static(pinned-sign(pinned))), Static(pinned))
	return length, e.LessEqual(Static(0), e.Multiply(e.Subtract(b, a), Static(sign(pinned)))) && length.Hint < maximumLength
}

func sign(n int64) int64 {
	if n < 0 {
		return -1
	}
	return 1
}

func arangeFloatLength(start, end, step Value, d DType) (Size, bool) {
	numbers, ok := slice.MapAll([]Value{start, end, step}, floatOf)
	if !ok || numbers[2] == 0 || !d.IsFloat() {
		return Size{}, false
	}
	length := math.Ceil((numbers[1] - numbers[0]) / numbers[2])
	return Static(int64(length)), length >= 0 && length < maximumLength
}

func floatOf(v Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func inferLinspace(c *inference) error {
	d, device, err := c.options(c.state.defaultDType())
	steps, ok := c.size("steps")
	if err != nil || !ok || !d.IsFloat() {
		return unknown("linspace arguments")
	}
	return c.create(d, device, []Size{steps}, Statics(1))
}

func inferEye(c *inference) error {
	d, device, err := c.options(c.state.defaultDType())
	rows, ok := c.size("n")
	columns, given := c.size("m")
	if !given {
		columns = rows
	}
	if err != nil || !ok {
		return unknown("eye arguments")
	}
	sizes := []Size{rows, columns}
	return c.create(d, device, sizes, c.shapes.contiguousStrides(sizes))
}
