package bytecode

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// Marshal writes an object in marshal format version 4 so that CPython's marshal.loads reads an equal object. It writes
// no references, so parts that occur twice are written twice. A Go int is accepted as a Python int.
//
// Errors are *MarshalError: a Go type that is not an Object, a str that is not WTF-8, nesting deeper than CPython allows
// (cyclic lists included), or a result of more than 256 MiB.
func Marshal(object Object) ([]byte, error) {
	return AppendMarshal(make([]byte, 0, 256), object)
}

// AppendMarshal is Marshal, appending to buffer. On error buffer's contents beyond its length are undefined.
func AppendMarshal(buffer []byte, object Object) ([]byte, error) {
	writer := marshalWriter{out: buffer, limit: len(buffer) + maxMarshalSize}
	if err := writer.object(object); err != nil {
		return nil, err
	}
	return writer.out, nil
}

type marshalWriter struct {
	out   []byte
	depth int
	limit int
}

func writeError(format string, arguments ...any) error {
	return &MarshalError{Offset: -1, Message: fmt.Sprintf(format, arguments...)}
}

func (w *marshalWriter) object(object Object) error {
	switch value := object.(type) {
	case string:
		return w.str(value, false)
	case int64:
		w.int64(value)
	case int:
		w.int64(int64(value))
	case NoneType:
		w.out = append(w.out, typeNone)
	case bool:
		w.bool(value)
	case float64:
		w.out = append(w.out, typeFloat)
		w.float(value)
	case complex128:
		w.out = append(w.out, typeComplex)
		w.float(real(value))
		w.float(imag(value))
	case Bytes:
		w.bytes(string(value))
	case EllipsisType:
		w.out = append(w.out, typeEllipsis)
	case StopIterationType:
		w.out = append(w.out, typeStopIteration)
	case *big.Int:
		return w.bigInt(value)
	default:
		return w.container(object)
	}
	return nil
}

// container bounds depth and size here, once per container, because scalars can exceed neither by much.
func (w *marshalWriter) container(object Object) error {
	if w.depth >= maxMarshalDepth-1 {
		return writeError("object is nested too deeply or contains itself")
	}
	if len(w.out) > w.limit {
		return writeError("object takes more than %d bytes", maxMarshalSize)
	}
	w.depth++
	defer func() { w.depth-- }()
	switch value := object.(type) {
	case Tuple:
		return w.tuple(value)
	case *List:
		return w.sequence(typeList, value.Items)
	case *Dict:
		return w.dict(value)
	case *Set:
		if value.Frozen {
			return w.sequence(typeFrozenSet, value.Items)
		}
		return w.sequence(typeSet, value.Items)
	case *Code:
		return w.code(value)
	}
	return writeError("type %T is not a Python object", object)
}

func (w *marshalWriter) bool(value bool) {
	if value {
		w.out = append(w.out, typeTrue)
	} else {
		w.out = append(w.out, typeFalse)
	}
}

func (w *marshalWriter) uint32(value int) {
	w.out = binary.LittleEndian.AppendUint32(w.out, uint32(value))
}

func (w *marshalWriter) float(value float64) {
	w.out = binary.LittleEndian.AppendUint64(w.out, math.Float64bits(value))
}

func (w *marshalWriter) int64(value int64) {
	if int64(int32(value)) == value {
		w.out = append(w.out, typeInt)
		w.out = binary.LittleEndian.AppendUint32(w.out, uint32(value))
		return
	}
	magnitude := uint64(value)
	if value < 0 {
		magnitude = -magnitude
	}
	w.out = append(w.out, typeLong)
	header := len(w.out)
	w.uint32(0)
	count := 0
	for ; magnitude != 0; magnitude >>= longDigitBits {
		w.out = binary.LittleEndian.AppendUint16(w.out, uint16(magnitude&(1<<longDigitBits-1)))
		count++
	}
	if value < 0 {
		count = -count
	}
	binary.LittleEndian.PutUint32(w.out[header:], uint32(count))
}

func (w *marshalWriter) bigInt(value *big.Int) error {
	if value.IsInt64() {
		w.int64(value.Int64())
		return nil
	}
	count := (value.BitLen() + longDigitBits - 1) / longDigitBits
	if count > maxLongDigits {
		return writeError("int has %d bits", value.BitLen())
	}
	signed := count
	if value.Sign() < 0 {
		signed = -count
	}
	w.out = append(w.out, typeLong)
	w.uint32(signed)
	w.digits(value.Bytes(), count)
	return nil
}

// digits writes count base 2**15 digits, least significant first, of a big-endian magnitude.
func (w *marshalWriter) digits(magnitude []byte, count int) {
	accumulator, bits := uint32(0), 0
	next := len(magnitude) - 1
	for range count {
		for bits < longDigitBits && next >= 0 {
			accumulator |= uint32(magnitude[next]) << bits
			bits += 8
			next--
		}
		w.out = binary.LittleEndian.AppendUint16(w.out, uint16(accumulator&(1<<longDigitBits-1)))
		accumulator >>= longDigitBits
		bits = max(bits-longDigitBits, 0)
	}
}

func (w *marshalWriter) bytes(value string) {
	w.out = append(w.out, typeBytes)
	w.uint32(len(value))
	w.out = append(w.out, value...)
}

func (w *marshalWriter) str(value string, interned bool) error {
	if !isASCII(value) {
		return w.unicode(value, interned)
	}
	w.counted(stringType(typeShortASCII, typeShortASCIIInterned, interned), stringType(typeASCII, typeASCIIInterned, interned), len(value))
	w.out = append(w.out, value...)
	return nil
}

// counted writes a type and a length: in one byte, behind the short type, where that holds it.
func (w *marshalWriter) counted(short, long byte, length int) {
	if length < 256 {
		w.out = append(w.out, short, byte(length))
		return
	}
	w.out = append(w.out, long)
	w.uint32(length)
}

func (w *marshalWriter) unicode(value string, interned bool) error {
	if !validWTF8(value) {
		return writeError("str %q is not UTF-8", value)
	}
	w.out = append(w.out, stringType(typeUnicode, typeInterned, interned))
	w.uint32(len(value))
	w.out = append(w.out, value...)
	return nil
}

func stringType(plain, internedType byte, interned bool) byte {
	if interned {
		return internedType
	}
	return plain
}

func (w *marshalWriter) tuple(items Tuple) error {
	w.counted(typeSmallTuple, typeTuple, len(items))
	return w.items(items)
}

func (w *marshalWriter) sequence(kind byte, items []Object) error {
	w.out = append(w.out, kind)
	w.uint32(len(items))
	return w.items(items)
}

func (w *marshalWriter) items(items []Object) error {
	for _, item := range items {
		if err := w.object(item); err != nil {
			return err
		}
	}
	return nil
}

func (w *marshalWriter) dict(value *Dict) error {
	if len(value.Keys) != len(value.Values) {
		return writeError("dict has %d keys and %d values", len(value.Keys), len(value.Values))
	}
	w.out = append(w.out, typeDict)
	for i, key := range value.Keys {
		if err := w.object(key); err != nil {
			return err
		}
		if err := w.object(value.Values[i]); err != nil {
			return err
		}
	}
	w.out = append(w.out, typeNull)
	return nil
}

func (w *marshalWriter) code(c *Code) error {
	w.out = append(w.out, typeCode)
	for _, number := range [...]int{c.ArgCount, c.PosOnlyArgCount, c.KwOnlyArgCount, c.StackSize, int(c.Flags)} {
		w.uint32(number)
	}
	w.bytes(string(c.Code))
	if err := w.tuple(c.Consts); err != nil {
		return err
	}
	if err := w.names(c.Names); err != nil {
		return err
	}
	if err := w.names(c.LocalsPlusNames); err != nil {
		return err
	}
	w.bytes(string(c.LocalsPlusKinds))
	for _, text := range [...]string{c.FileName, c.Name, c.QualName} {
		if err := w.str(text, true); err != nil {
			return err
		}
	}
	w.uint32(c.FirstLine)
	w.bytes(string(c.LineTable))
	w.bytes(string(c.ExceptionTable))
	return nil
}

func (w *marshalWriter) names(names []string) error {
	w.counted(typeSmallTuple, typeTuple, len(names))
	for _, name := range names {
		if err := w.str(name, true); err != nil {
			return err
		}
	}
	return nil
}
