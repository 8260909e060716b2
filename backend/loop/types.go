package loop

import "math"

// Type is the machine type of a value or of a buffer's elements.
type Type uint8

// The types. Bool is stored as one byte that is 0 or 1, loaded as "not zero".
const (
	Invalid Type = iota
	Bool
	U8
	U16
	U32
	U64
	I8
	I16
	I32
	I64
	F16
	BF16
	F32
	F64
	typeCount
)

// Class groups types by the arithmetic they allow.
type Class uint8

// The classes, as bits so that an operation can allow several.
const (
	ClassBool Class = 1 << iota
	ClassUnsigned
	ClassSigned
	ClassStorage // F16 and BF16: no arithmetic
	ClassFloat   // F32 and F64

	ClassInteger = ClassUnsigned | ClassSigned
	ClassNumber  = ClassInteger | ClassFloat
	ClassBits    = ClassInteger | ClassBool
	ClassAny     = ClassBool | ClassNumber | ClassStorage
)

type typeInfo struct {
	name  string
	bytes int
	class Class
}

func (t Type) info() typeInfo {
	table := [typeCount]typeInfo{
		Invalid: {"invalid", 0, 0},
		Bool:    {"bool", 1, ClassBool},
		U8:      {"u8", 1, ClassUnsigned},
		U16:     {"u16", 2, ClassUnsigned},
		U32:     {"u32", 4, ClassUnsigned},
		U64:     {"u64", 8, ClassUnsigned},
		I8:      {"i8", 1, ClassSigned},
		I16:     {"i16", 2, ClassSigned},
		I32:     {"i32", 4, ClassSigned},
		I64:     {"i64", 8, ClassSigned},
		F16:     {"f16", 2, ClassStorage},
		BF16:    {"bf16", 2, ClassStorage},
		F32:     {"f32", 4, ClassFloat},
		F64:     {"f64", 8, ClassFloat},
	}
	if t >= typeCount {
		return table[Invalid]
	}
	return table[t]
}

// String returns the type's name in the printed form, such as "f32".
func (t Type) String() string { return t.info().name }

// Bytes returns the size of one element in memory.
func (t Type) Bytes() int { return t.info().bytes }

// Class returns the class the type belongs to.
func (t Type) Class() Class { return t.info().class }

// Is reports whether the type belongs to one of the classes.
func (t Type) Is(class Class) bool { return t.info().class&class != 0 }

// Int is a whole number that is known at compile time or that the launch passes in: a size, a stride or an offset.
// The zero Int is the static number 0.
type Int struct {
	static   int64
	argument int // index of the scalar argument plus one
}

// Static returns an Int known at compile time.
func Static(value int64) Int { return Int{static: value} }

// Argument returns the Int that the launch passes as scalar argument number index.
func Argument(index int) Int { return Int{argument: index + 1} }

// Static returns the number and true when it is known at compile time.
func (i Int) Static() (int64, bool) { return i.static, i.argument == 0 }

// Argument returns the index of the scalar argument and true when the launch passes the number.
func (i Int) Argument() (int, bool) { return i.argument - 1, i.argument != 0 }

// Is reports whether the Int is static and equal to value.
func (i Int) Is(value int64) bool { return i.argument == 0 && i.static == value }

// Statics returns a static Int for each value.
func Statics(values ...int64) []Int {
	result := make([]Int, len(values))
	for index, value := range values {
		result[index] = Static(value)
	}
	return result
}

// Bits encodes a constant: the bits of a float64 for floating-point types (which must hold the number exactly), two's
// complement in 64 bits for integers, 0 or 1 for Bool.
type Bits uint64

// FloatBits encodes a floating-point constant.
func FloatBits(value float64) Bits { return Bits(math.Float64bits(value)) }

// IntBits encodes an integer constant.
func IntBits(value int64) Bits { return Bits(value) }

// BoolBits encodes a truth value.
func BoolBits(value bool) Bits {
	if value {
		return 1
	}
	return 0
}

// Float decodes a constant of a floating-point type.
func (b Bits) Float() float64 { return math.Float64frombits(uint64(b)) }

// Int decodes a constant of an integer type; a U64 comes as its two's complement.
func (b Bits) Int() int64 { return int64(b) }

// Bool decodes a constant of type Bool.
func (b Bits) Bool() bool { return b != 0 }

// Least returns the value no other of the type is less than: minus infinity, the lowest integer, false.
func Least(typ Type) Bits {
	switch {
	case typ.Is(ClassFloat | ClassStorage):
		return FloatBits(math.Inf(-1))
	case typ.Is(ClassSigned):
		return IntBits(math.MinInt64 >> (64 - 8*typ.Bytes()))
	}
	return 0
}

// Greatest returns the value no other of the type is greater than.
func Greatest(typ Type) Bits {
	switch {
	case typ.Is(ClassFloat | ClassStorage):
		return FloatBits(math.Inf(1))
	case typ.Is(ClassSigned):
		return IntBits(math.MaxInt64 >> (64 - 8*typ.Bytes()))
	case typ == Bool:
		return BoolBits(true)
	}
	return Bits(uint64(math.MaxUint64) >> (64 - 8*typ.Bytes()))
}
