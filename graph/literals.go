package graph

import "slices"

// mostLiterals bounds lists that become expressions, as those grow with each number.
const mostLiterals = 16

// literal makes a one-dimensional tensor of the numbers of a list: choices by position, which fuse into whatever reads them.
func (c *caller) literal(numbers []Value, d DType, device Value) (Value, error) {
	if len(numbers) == 0 || len(numbers) > mostLiterals {
		return nil, unknown("a list of that length as a tensor")
	}
	if slices.ContainsFunc(numbers, func(number Value) bool { return !d.takes(number) }) {
		return nil, ErrForbidden
	}
	length, last := int64(len(numbers)), len(numbers)-1
	result, err := c.newTensor("aten.full.default", d, device, List{Items: []Value{length}}, numbers[last])
	if err != nil || last == 0 {
		return result, err
	}
	positions, err := c.newTensor("aten.arange.default", Int64, device, length)
	for place := last - 1; place >= 0 && err == nil; place-- {
		result, err = c.chosenAt(positions, int64(place), numbers[place], result)
	}
	return result, err
}

// chosenAt is the number at one position, and what was there before at all others.
func (c *caller) chosenAt(positions Value, place int64, number, others Value) (Value, error) {
	here, err := c.call("aten.eq.Scalar", positions, place)
	if err != nil {
		return nil, err
	}
	return c.call("aten.where.ScalarSelf", here, number, others)
}

// literalType is the type of torch.tensor of numbers: what is asked for, or that of the widest kind among them.
func (c *caller) literalType(numbers []Value, asked Value) (DType, bool) {
	widest := NoDType
	for _, number := range numbers {
		d, ok := numberType(number)
		if !ok {
			return NoDType, false
		}
		if widest == NoDType || d.Category() > widest.Category() {
			widest = d
		}
	}
	if d, ok := asked.(DType); ok || asked != nil {
		return d, ok && (len(numbers) == 1 || d.Category() >= widest.Category())
	}
	return widest.ofNumber(c.state.defaultDType()), true
}

// indexList is a list of ints as an index tensor on the device of what it indexes.
func (c *caller) indexList(list List, device Device) (Value, error) {
	if list.Tuple || slices.ContainsFunc(list.Items, func(item Value) bool { _, isInt := item.(int64); return !isInt }) {
		return nil, unknown("a list in an index that holds other things than ints")
	}
	return c.literal(list.Items, Int64, device)
}
