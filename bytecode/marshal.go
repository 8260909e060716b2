package bytecode

import "fmt"

// Type codes of the marshal format, version 4, as in CPython's Python/marshal.c.
const (
	typeNull               byte = '0'
	typeNone               byte = 'N'
	typeFalse              byte = 'F'
	typeTrue               byte = 'T'
	typeStopIteration      byte = 'S'
	typeEllipsis           byte = '.'
	typeInt                byte = 'i'
	typeInt64              byte = 'I' // no longer written
	typeFloatText          byte = 'f' // versions 0 and 1
	typeFloat              byte = 'g'
	typeComplexText        byte = 'x' // versions 0 and 1
	typeComplex            byte = 'y'
	typeLong               byte = 'l'
	typeBytes              byte = 's'
	typeInterned           byte = 't'
	typeRef                byte = 'r'
	typeTuple              byte = '('
	typeSmallTuple         byte = ')'
	typeList               byte = '['
	typeDict               byte = '{'
	typeCode               byte = 'c'
	typeUnicode            byte = 'u'
	typeSet                byte = '<'
	typeFrozenSet          byte = '>'
	typeASCII              byte = 'a'
	typeASCIIInterned      byte = 'A'
	typeShortASCII         byte = 'z'
	typeShortASCIIInterned byte = 'Z'

	flagRef byte = 0x80 // with a type code: the object gets the next reference number
)

const (
	maxMarshalDepth = 2000    // MAX_MARSHAL_STACK_DEPTH
	maxMarshalSize  = 1 << 28 // bytes an object may take when every reference to an earlier part is written out
	longDigitBits   = 15      // ints travel in base 2**15
	maxLongDigits   = 1 << 22 // far beyond any literal, and keeps the cost of a hostile int small
)

// MarshalError reports bytes that are not a marshalled object, or an object that marshal cannot write.
type MarshalError struct {
	Offset  int // byte offset in the input at which reading stopped; -1 when writing
	Message string
}

// Error implements error.
func (e *MarshalError) Error() string {
	if e.Offset < 0 {
		return "cannot marshal: " + e.Message
	}
	return fmt.Sprintf("bad marshal data at byte %d: %s", e.Offset, e.Message)
}
