package symbolic

import (
	"math"
	"math/big"

	"github.com/go-python/gpython/py"

	"fusee/bytecode"
)

// Constant folding uses Go's big ints, and gpython's operators for floats and strings, where the differential test shows that they
// agree with CPython; everything else is folded by the host's own CPython (evaluateConstant).

// foldBinary folds an operator of the module operator over constants; nil where Python itself must decide.
func foldBinary(function string, a, b bytecode.Object) bytecode.Object {
	if folded, ints := foldInts(function, a, b); ints {
		return folded
	}
	x, y := toPython(a), toPython(b)
	if x == nil || y == nil {
		return nil
	}
	var result py.Object
	var err error
	switch function {
	case "add":
		result, err = py.Add(x, y)
	case "sub":
		result, err = py.Sub(x, y)
	case "mul":
		if !smallProduct(x, y) {
			return nil
		}
		result, err = py.Mul(x, y)
	case "floordiv", "mod":
		return foldDivision(function, a, b)
	case "truediv":
		return foldTrueDivision(a, b)
	}
	if err != nil || result == nil {
		return nil
	}
	return fromPython(result)
}

// maxFoldedBits keeps products of huge ints out of this process.
const maxFoldedBits = 1 << 16

// foldInts adds, subtracts and multiplies ints of any size; ints tells that both operands are ints and the function one of these.
func foldInts(function string, a, b bytecode.Object) (folded bytecode.Object, ints bool) {
	x, y := bigOf(a), bigOf(b)
	if x == nil || y == nil {
		return nil, false
	}
	switch function {
	case "add":
		return bytecode.NewInt(new(big.Int).Add(x, y)), true
	case "sub":
		return bytecode.NewInt(new(big.Int).Sub(x, y)), true
	case "mul":
		if x.BitLen()+y.BitLen() > maxFoldedBits {
			return nil, true
		}
		return bytecode.NewInt(new(big.Int).Mul(x, y)), true
	}
	return nil, false
}

func bigOf(object bytecode.Object) *big.Int {
	switch value := object.(type) {
	case int64:
		return big.NewInt(value)
	case *big.Int:
		return value
	}
	return nil
}

// smallProduct keeps repetition of text and products of huge numbers out of this process.
func smallProduct(x, y py.Object) bool {
	_, textX := x.(py.String)
	_, textY := y.(py.String)
	return !textX && !textY
}

func toPython(object bytecode.Object) py.Object {
	switch value := object.(type) {
	case int64:
		return py.Int(value)
	case float64:
		return py.Float(value)
	case string:
		return py.String(value)
	case *big.Int:
		return (*py.BigInt)(value)
	}
	return nil
}

func fromPython(object py.Object) bytecode.Object {
	switch value := object.(type) {
	case py.Int:
		return int64(value)
	case py.Float:
		return float64(value)
	case py.String:
		return string(value)
	case *py.BigInt:
		return bytecode.NewInt((*big.Int)(value))
	}
	return nil
}

// foldDivision is floor division and remainder of ints: the remainder takes the divisor's sign.
func foldDivision(function string, a, b bytecode.Object) bytecode.Object {
	x, okX := a.(int64)
	y, okY := b.(int64)
	if !okX || !okY || y == 0 || x == math.MinInt64 {
		return nil
	}
	quotient, remainder := x/y, x%y
	if remainder != 0 && (remainder < 0) != (y < 0) {
		quotient, remainder = quotient-1, remainder+y
	}
	if function == "mod" {
		return remainder
	}
	return quotient
}

// foldTrueDivision divides numbers that float64 holds exactly.
func foldTrueDivision(a, b bytecode.Object) bytecode.Object {
	x, okX := exactFloat(a)
	y, okY := exactFloat(b)
	if !okX || !okY || y == 0 {
		return nil
	}
	return x / y
}

func exactFloat(object bytecode.Object) (float64, bool) {
	switch value := object.(type) {
	case float64:
		return value, true
	case int64:
		return float64(value), value > -1<<53 && value < 1<<53
	}
	return 0, false
}

func foldUnary(function string, a bytecode.Object) bytecode.Object {
	switch value := a.(type) {
	case int64:
		switch function {
		case "neg":
			if value != math.MinInt64 {
				return -value
			}
		case "pos":
			return value
		case "invert":
			return ^value
		}
	case float64:
		switch function {
		case "neg":
			return -value
		case "pos":
			return value
		}
	}
	return nil
}

// foldCompare compares ints, floats and strings; ok is false where Python itself must decide.
func foldCompare(function string, a, b bytecode.Object) (result, ok bool) {
	if order, comparable := orderConstants(a, b); comparable {
		switch function {
		case "lt":
			return order < 0, true
		case "le":
			return order <= 0, true
		case "eq":
			return order == 0, true
		case "ne":
			return order != 0, true
		case "gt":
			return order > 0, true
		case "ge":
			return order >= 0, true
		}
	}
	if function != "eq" && function != "ne" {
		return false, false
	}
	if differentKinds(a, b) {
		return function == "ne", true
	}
	return false, false
}

// orderConstants orders two ints, two floats that are no NaN, or two strings; UTF-8 orders as code points do.
func orderConstants(a, b bytecode.Object) (int, bool) {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return compareOrdered(x, y), true
		}
	case float64:
		if y, ok := b.(float64); ok && x == x && y == y {
			return compareOrdered(x, y), true
		}
	case string:
		if y, ok := b.(string); ok {
			return compareOrdered(x, y), true
		}
	}
	x, okX := exactFloat(a)
	y, okY := exactFloat(b)
	if okX && okY && x == x && y == y {
		return compareOrdered(x, y), true
	}
	return 0, false
}

func compareOrdered[T int64 | float64 | string](x, y T) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// differentKinds tells pairs that are unequal for their types alone.
func differentKinds(a, b bytecode.Object) bool {
	return kindClass(a) != kindClass(b)
}

func kindClass(object bytecode.Object) int {
	switch object.(type) {
	case bytecode.NoneType:
		return 1
	case string:
		return 2
	case bytecode.Bytes:
		return 3
	case bytecode.EllipsisType:
		return 4
	case notImplemented:
		return 5
	}
	return 0 // numbers, bools among them
}

func constantTruth(object bytecode.Object) bool {
	switch value := object.(type) {
	case bytecode.NoneType:
		return false
	case bool:
		return value
	case int64:
		return value != 0
	case float64:
		return value != 0
	case complex128:
		return value != 0
	case string:
		return value != ""
	case bytecode.Bytes:
		return value != ""
	}
	return true
}

func constantInt(value Value) (int64, bool) {
	if truth, ok := constantAs[bool](value); ok && truth {
		return 1, true
	} else if ok {
		return 0, true
	}
	return constantAs[int64](value)
}

// constantAs gives the value of a constant of one Go type.
func constantAs[T bytecode.Object](value Value) (content T, ok bool) {
	constant, ok := value.(*Constant)
	if !ok {
		return content, false
	}
	content, ok = constant.Value.(T)
	return content, ok
}

func stringOf(value Value) (string, bool) {
	if lazy, ok := value.(*Lazy); ok {
		value = lazy.value
	}
	return constantAs[string](value)
}

// constantKey is a Go map key under which equal constants of one kind meet: True, 1 and 1.0 are one key as in Python.
func constantKey(object bytecode.Object) any {
	switch value := object.(type) {
	case bool:
		if value {
			return int64(1)
		}
		return int64(0)
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
		if value != value {
			return nil // every NaN is a key of its own
		}
	case complex128:
		if imag(value) == 0 {
			return constantKey(real(value))
		}
	case *big.Int:
		return "big " + value.String()
	case string:
		return "str " + value
	case bytecode.Bytes:
		return "bytes " + string(value)
	}
	return object
}
