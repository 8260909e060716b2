package cuda

import (
	"slices"
	"strconv"
	"strings"

	"fusee/backend/loop"
)

// extent is a size, a stride or an offset: a whole number times scalar arguments.
// The loop IR has no such products; they arise where dimensions merge.
type extent struct {
	factor    int64
	arguments []int // ascending
}

func extentOf(value loop.Int) extent {
	if argument, ok := value.Argument(); ok {
		return extent{1, []int{argument}}
	}
	static, _ := value.Static()
	return extent{factor: static}
}

func extentsOf(values []loop.Int) []extent {
	result := make([]extent, len(values))
	for i, value := range values {
		result[i] = extentOf(value)
	}
	return result
}

// static returns the number when no argument is involved.
func (e extent) static() (int64, bool) { return e.factor, len(e.arguments) == 0 || e.factor == 0 }

func (e extent) is(value int64) bool {
	static, known := e.static()
	return known && static == value
}

func (e extent) equal(other extent) bool {
	return e.factor == other.factor && (e.factor == 0 || slices.Equal(e.arguments, other.arguments))
}

func (e extent) times(other extent) extent {
	arguments := append(slices.Clone(e.arguments), other.arguments...)
	slices.Sort(arguments)
	return extent{e.factor * other.factor, arguments}
}

// divisible reports whether e is a multiple of by, whatever the arguments are.
func (e extent) divisible(by int64) bool { return e.factor%by == 0 }

// C returns the extent as an expression whose precedence is at least that of a product.
func (e extent) C() string {
	if static, known := e.static(); known {
		return strconv.FormatInt(static, 10)
	}
	var factors []string
	if e.factor != 1 {
		factors = append(factors, strconv.FormatInt(e.factor, 10))
	}
	for _, argument := range e.arguments {
		factors = append(factors, scalarName(argument))
	}
	return strings.Join(factors, " * ")
}

func scalarName(argument int) string { return "n" + strconv.Itoa(argument) }

// product multiplies all sizes; 1 for none.
func product(sizes []extent) extent {
	result := extent{factor: 1}
	for _, size := range sizes {
		result = result.times(size)
	}
	return result
}

func (e extent) known() bool {
	_, known := e.static()
	return known
}
