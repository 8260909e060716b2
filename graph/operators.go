package graph

// binaryOperator describes a Python operator on tensors: the operator for tensor ∘ other, the one in place, and how number ∘
// tensor is computed.
type binaryOperator struct {
	name, forward, inPlace string
	reverse                function
}

func binaryOperatorTable() []binaryOperator {
	commuted := func(name string) function {
		return func(c *caller) (Value, error) {
			return c.overloadedWith(name, true, []Value{c.args[1], c.args[0]}, nil)
		}
	}
	straight := func(name string) function {
		return func(c *caller) (Value, error) { return c.overloadedWith(name, false, c.args, nil) }
	}
	return []binaryOperator{
		{"add", "add", "add_", commuted("add")},
		{"sub", "sub", "sub_", commuted("rsub")},
		{"mul", "mul", "mul_", commuted("mul")},
		{"truediv", "div", "div_", reciprocalTimes},
		{"floordiv", "floor_divide", "floor_divide_", straight("floor_divide")},
		{"mod", "remainder", "remainder_", straight("remainder")},
		{"pow", "pow", "pow_", straight("pow")},
		{"matmul", "matmul", "", nil},
		{"and", "bitwise_and", "bitwise_and_", straight("bitwise_and")},
		{"or", "bitwise_or", "bitwise_or_", straight("bitwise_or")},
		{"xor", "bitwise_xor", "bitwise_xor_", straight("bitwise_xor")},
		{"lshift", "bitwise_left_shift", "bitwise_left_shift_", straight("bitwise_left_shift")},
		{"rshift", "bitwise_right_shift", "bitwise_right_shift_", straight("bitwise_right_shift")},
		{"eq", "eq", "", commuted("eq")},
		{"ne", "ne", "", commuted("ne")},
		{"lt", "lt", "", commuted("gt")},
		{"le", "le", "", commuted("ge")},
		{"gt", "gt", "", commuted("lt")},
		{"ge", "ge", "", commuted("le")},
	}
}

// reciprocalTimes is number / tensor, which Tensor.__rtruediv__ computes as reciprocal and product.
func reciprocalTimes(c *caller) (Value, error) {
	reciprocal, err := c.overloadedWith("reciprocal", true, c.args[1:2], nil)
	if err != nil {
		return nil, err
	}
	return c.overloadedWith("mul", true, []Value{reciprocal, c.args[0]}, nil)
}

// operatorFunctions covers the operator module and the special methods of tensors.
func operatorFunctions() map[string]function {
	table := map[string]function{}
	for _, b := range binaryOperatorTable() {
		b.register(table)
	}
	for name, target := range map[string]string{"neg": "neg", "invert": "bitwise_not", "inv": "bitwise_not", "abs": "abs"} {
		table["operator."+name] = unaryOperator(target)
	}
	table["builtins.abs"], table["abs"] = unaryOperator("abs"), unaryOperator("abs")
	table["operator.pos"], table["__pos__"], table["positive"] = positive, positive, positive
	table["operator.getitem"], table["__getitem__"] = getItem, getItem
	table["operator.setitem"], table["__setitem__"] = setItem, setItem
	return table
}

func unaryOperator(name string) function {
	return func(c *caller) (Value, error) { return c.overloadedWith(name, len(c.args) == 1, c.args, c.keywords) }
}

func (b binaryOperator) register(table map[string]function) {
	forward := b.call
	table["operator."+b.name] = forward
	table["operator."+b.name+"_"] = forward // operator.and_ and operator.or_
	table["__"+b.name+"__"] = forward
	table["operator.i"+b.name] = b.assign
	table["__i"+b.name+"__"] = b.assign
	table["__r"+b.name+"__"] = func(c *caller) (Value, error) {
		if len(c.args) != 2 {
			return nil, unknown(c.target)
		}
		c.args[0], c.args[1] = c.args[1], c.args[0]
		defer func() { c.args[0], c.args[1] = c.args[1], c.args[0] }()
		return b.call(c)
	}
	if b.name == "truediv" {
		table["__rdiv__"], table["__div__"], table["__idiv__"] = table["__rtruediv__"], forward, b.assign
	}
}

func (b binaryOperator) call(c *caller) (Value, error) {
	if len(c.args) != 2 || len(c.keywords) > 0 {
		return nil, unknown(c.target)
	}
	_, left := MetaOf(c.args[0])
	_, right := MetaOf(c.args[1])
	switch {
	case left && (right || isScalar(c.args[1])):
		return c.overloadedWith(b.forward, true, c.args, nil)
	case right && isScalar(c.args[0]) && b.reverse != nil:
		return b.reverse(c)
	}
	return nil, unknown(c.target + " of these operands")
}

// assign is the in-place form; a tensor has none for comparisons and matmul, and numbers have none at all.
func (b binaryOperator) assign(c *caller) (Value, error) {
	if len(c.args) != 2 || len(c.keywords) > 0 {
		return nil, unknown(c.target)
	}
	if _, left := MetaOf(c.args[0]); !left || b.inPlace == "" {
		return b.call(c)
	}
	return c.overloadedWith(b.inPlace, true, c.args, nil)
}

// positive returns its argument.
func positive(c *caller) (Value, error) {
	if len(c.args) != 1 || len(c.keywords) > 0 || meta(c.args[0]).DType == Bool || meta(c.args[0]).DType == NoDType {
		return nil, unknown(c.target)
	}
	return c.args[0], nil
}
