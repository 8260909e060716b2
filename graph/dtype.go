package graph

import "math"

// DType is an element type of tensors. The zero value is no type at all.
type DType uint8

// The element types that graphs can hold.
const (
	NoDType DType = iota
	Uint8
	Int8
	Int16
	Int32
	Int64
	Float16
	Float32
	Float64
	Complex32
	Complex64
	Complex128
	Bool
	BFloat16
	Float8E5M2
	Float8E4M3FN
	Float8E5M2FNUZ
	Float8E4M3FNUZ
	Uint16
	Uint32
	Uint64
	numDTypes
)

// Category is the rank of an element type in type promotion: a higher category wins whatever the widths.
type Category uint8

// Categories in promotion order.
const (
	CategoryNone Category = iota
	CategoryBool
	CategoryInt
	CategoryFloat
	CategoryComplex
)

type dtypeRow struct {
	name       string
	bytes      int
	scalarType int // number in c10::ScalarType
	category   Category
}

var dtypeTable = [numDTypes]dtypeRow{
	Uint8:          {"uint8", 1, 0, CategoryInt},
	Int8:           {"int8", 1, 1, CategoryInt},
	Int16:          {"int16", 2, 2, CategoryInt},
	Int32:          {"int32", 4, 3, CategoryInt},
	Int64:          {"int64", 8, 4, CategoryInt},
	Float16:        {"float16", 2, 5, CategoryFloat},
	Float32:        {"float32", 4, 6, CategoryFloat},
	Float64:        {"float64", 8, 7, CategoryFloat},
	Complex32:      {"complex32", 4, 8, CategoryComplex},
	Complex64:      {"complex64", 8, 9, CategoryComplex},
	Complex128:     {"complex128", 16, 10, CategoryComplex},
	Bool:           {"bool", 1, 11, CategoryBool},
	BFloat16:       {"bfloat16", 2, 15, CategoryFloat},
	Float8E5M2:     {"float8_e5m2", 1, 23, CategoryFloat},
	Float8E4M3FN:   {"float8_e4m3fn", 1, 24, CategoryFloat},
	Float8E5M2FNUZ: {"float8_e5m2fnuz", 1, 25, CategoryFloat},
	Float8E4M3FNUZ: {"float8_e4m3fnuz", 1, 26, CategoryFloat},
	Uint16:         {"uint16", 2, 27, CategoryInt},
	Uint32:         {"uint32", 4, 28, CategoryInt},
	Uint64:         {"uint64", 8, 29, CategoryInt},
}

func (d DType) row() dtypeRow {
	if d >= numDTypes {
		return dtypeRow{}
	}
	return dtypeTable[d]
}

// String gives torch's name of the type without the "torch." prefix.
func (d DType) String() string {
	if name := d.row().name; name != "" {
		return name
	}
	return "none"
}

// Bytes is the size of one element, 0 for NoDType.
func (d DType) Bytes() int { return d.row().bytes }

// ScalarType is torch's own number for the type (c10::ScalarType); −1 for NoDType.
func (d DType) ScalarType() int {
	if d == NoDType || d >= numDTypes {
		return -1
	}
	return dtypeTable[d].scalarType
}

// Category is the type's rank in promotion.
func (d DType) Category() Category { return d.row().category }

// IsFloat says whether the type is a real floating-point type.
func (d DType) IsFloat() bool { return d.Category() == CategoryFloat }

// IsComplex says whether the type is complex.
func (d DType) IsComplex() bool { return d.Category() == CategoryComplex }

// IsIntegral says whether the type is an integer type; bool is not.
func (d DType) IsIntegral() bool { return d.Category() == CategoryInt }

// holds says whether a number is one of an integer type's.
func (d DType) holds(number int64) bool {
	bits := 8 * d.Bytes()
	switch d {
	case Uint8, Uint16, Uint32:
		return number >= 0 && number < 1<<bits
	case Uint64:
		return number >= 0
	}
	return number >= -1<<(bits-1) && number <= 1<<(bits-1)-1
}

// takes says whether eager lets a number become an element of the type: an integer type takes what it can hold, cut to an integer, and an
// unsigned one also negative integers, which wrap around (c10::overflows). Of numbers that only a call knows, those that always fit are taken.
func (d DType) takes(number Value) bool {
	switch n := number.(type) {
	case bool, complex128:
		return true
	case int64:
		unsigned := d.IsIntegral() && !d.holds(-1)
		return !d.IsIntegral() || d.holds(n) || unsigned && d.holds(-n)
	case float64:
		return !d.IsIntegral() || math.Abs(n) < 1<<63 && d.holds(int64(n))
	}
	kind, isNumber := numberType(number)
	return !isNumber || !d.IsIntegral() || d == Int64 && !kind.IsFloat()
}

// IsDifferentiable says whether tensors of the type can require gradients.
func (d DType) IsDifferentiable() bool { return d.IsFloat() || d.IsComplex() }

// Real is the type of the real and imaginary parts of a complex type, the type itself otherwise.
func (d DType) Real() DType {
	if d.IsComplex() {
		return d - Complex32 + Float16 // the types stand in the same order
	}
	return d
}

// ParseDType finds a type by torch's name without the "torch." prefix ("float32").
func ParseDType(name string) (DType, bool) {
	for d := Uint8; d < numDTypes; d++ {
		if dtypeTable[d].name == name {
			return d, true
		}
	}
	return NoDType, false
}

// DTypeOfScalarType finds a type by torch's own number for it.
func DTypeOfScalarType(number int) (DType, bool) {
	for d := Uint8; d < numDTypes; d++ {
		if dtypeTable[d].scalarType == number {
			return d, true
		}
	}
	return NoDType, false
}
