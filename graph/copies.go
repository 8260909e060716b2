package graph

func copyRows() []row {
	copies := func(schema, text string, r rule) row {
		return row{schema: schema, kind: KindCopy, body: formula(text), rule: r}
	}
	return []row{
		copies("_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor", "self", inferLike),
		copies("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", "self", inferClone),
		copies("copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", "src", inferCopyInto),
		copies("fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", "value", inferFillInto),
		copies("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", "value", inferFillInto),
		copies("zero_(Tensor(a!) self) -> Tensor(a!)", "0", inferFillInto),
	}
}

func inferClone(c *inference) error {
	m := c.self()
	strides, ok := c.likeStrides(m)
	if !ok {
		return unknown("memory format")
	}
	return c.make(m.DType, m.Sizes, strides)
}

func (c *inference) mutateSelf() error {
	c.returnSelf()
	c.mutates = append(c.mutates, c.values[0])
	return nil
}

func inferCopyInto(c *inference) error {
	m, src := c.self(), c.tensor("src")
	if src != nil && (!c.shapes.broadcastsTo(src.Sizes, m.Sizes) || src.DType.IsComplex() && !m.DType.IsComplex()) {
		return unknown("copy_ of something that does not fit")
	}
	return c.mutateSelf()
}

func inferFillInto(c *inference) error {
	m, value := c.self(), meta(c.value("value"))
	number, _ := numberType(c.value("value"))
	if value.Dim() != 0 || !m.DType.IsComplex() && (value.DType.IsComplex() || number.IsComplex()) {
		return unknown("fill_ with something that does not fit")
	}
	if !m.DType.takes(c.value("value")) {
		return ErrForbidden
	}
	return c.mutateSelf()
}
