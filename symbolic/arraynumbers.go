package symbolic

import (
	"math"
	"slices"

	"fusee/bytecode"
)

// longScalar is the type of NumPy's scalars that hold an int of 64 bits, which they compute with as Python does.
const longScalar = "numpy.int64"

// arrayNumber is a scalar of NumPy of 64 bits by its value: an int that is computed with, and that Python is given as NumPy's type.
type arrayNumber struct{ number Value }

func (v *arrayNumber) typeName() string { return longScalar }

func (v *arrayNumber) getAttribute(_ *Interpreter, name string) (Value, error) {
	return nil, unsupported(reasonAttribute, "%s.%s", longScalar, name)
}

func (v *arrayNumber) getItem(*Interpreter, Value) (Value, error) {
	return nil, unsupported(reasonItem, "%s[...]", longScalar)
}

func (v *arrayNumber) truth(in *Interpreter) (bool, error) { return in.truth(v.number) }

// integerScalar is the int of a scalar of NumPy; nil for anything else.
func (in *Interpreter) integerScalar(value Value) (Value, error) {
	if array, ok := value.(*arrayNumber); ok {
		return array.number, nil
	}
	if opaque, ok := value.(*Opaque); ok && opaque.kind == longScalar {
		return in.given("operator.index", opaque.object)
	}
	return nil, nil
}

// scalarBinary is an operator between a scalar of NumPy and an int or a tensor, which takes it for an int; handled is false where there is none.
func (in *Interpreter) scalarBinary(row operatorRow, left, right Value) (Value, bool, error) {
	operands := []Value{left, right}
	found, tensor := false, false
	for i, operand := range operands {
		number, err := in.integerScalar(operand)
		if err != nil {
			return nil, true, err
		}
		if number != nil {
			operands[i], found = number, true
		} else if _, isTensor := operand.(*Tensor); isTensor {
			tensor = true
		} else if !isInteger(operand) {
			return nil, false, nil
		}
	}
	switch {
	case !found:
		return nil, false, nil
	case tensor:
		return modelled(in.tensorBinary(row, operands[0], operands[1]))
	case !slices.Contains([]string{"add", "sub", "mul", "floordiv", "mod"}, row.function):
		return nil, true, unsupported(reasonOperator, "%s %s %s", left.typeName(), row.sign, right.typeName())
	}
	return modelled(in.scalarResult(row, operands))
}

// isInteger tells ints that computing with a scalar of 64 bits leaves one of 64 bits.
func isInteger(value Value) bool {
	number, ok := value.(*Number)
	_, constant := constantAs[int64](value)
	return constant || ok && number.isInt()
}

// scalarResult computes as with ints. NumPy wraps around where those do not fit and gives zero for what is divided by zero, with a warning.
func (in *Interpreter) scalarResult(row operatorRow, operands []Value) (Value, error) {
	divides := row.function == "floordiv" || row.function == "mod"
	if divisor, known := operands[1].(*Constant); divides && (!known || divisor.Value == bytecode.Object(int64(0)) || divisor.Value == bytecode.Object(int64(-1))) {
		return nil, unsupported(reasonOperator, "%s by such a number", row.sign)
	}
	result, err := in.binary(row, operands[0], operands[1])
	if err != nil {
		return nil, err
	}
	if !isInteger(result) || slices.ContainsFunc(operands, atLimit) {
		return nil, unsupported(reasonOperator, "%s of numbers that large", row.sign)
	}
	return &arrayNumber{result}, nil
}

// atLimit tells ints so large that what is computed from symbolic ones may not fit at another call.
func atLimit(value Value) bool {
	constant, ok := value.(*Constant)
	if !ok {
		return false
	}
	n, isInt := constant.Value.(int64)
	return !isInt || n > math.MaxInt32 || n < math.MinInt32
}
