package bytecode

import "fusee/internal/slice"

// Unmarshal reads one object in any marshal version up to 4, as CPython's marshal.loads does, and requires that the input
// ends with it. Strings of the result share one copy of the input.
//
// Errors are *MarshalError. Memory is bounded by a small multiple of len(data), and nesting by CPython's own limit. Two
// things that CPython reads are refused: an object that contains itself, and an object that is larger than 256 MiB when
// its references are written out, so that every consumer may walk the result as a tree.
func Unmarshal(data []byte) (Object, error) {
	reader := unmarshaler{scanner: scanner{input: string(data)}}
	object, err := reader.object()
	if err != nil {
		return nil, err
	}
	if reader.remaining() > 0 {
		return nil, reader.fail("%d bytes follow the object", reader.remaining())
	}
	return object, nil
}

// nullObject is what the type code '0' reads as: the end of a dict, and an error anywhere else.
type nullObject struct{}

// reference is an object that later parts of the input may name.
type reference struct {
	object Object // nil while the object is being read
	size   int    // bytes it takes with its own references written out
}

type unmarshaler struct {
	scanner
	references []reference
	expanded   int      // bytes that references read so far stand for
	pairs      []Object // keys and values of the dicts that are being read, those of the innermost last
}

// object reads an object that is not null.
func (u *unmarshaler) object() (Object, error) {
	object, err := u.objectOrNull()
	if _, isNull := object.(nullObject); isNull && err == nil {
		return nil, u.fail("null object")
	}
	return object, err
}

func (u *unmarshaler) objectOrNull() (Object, error) {
	start := u.position + u.expanded
	code, err := u.byte()
	if err != nil {
		return nil, err
	}
	if code&flagRef == 0 {
		return u.value(code)
	}
	code &^= flagRef
	if isSingleton(code) {
		return u.value(code)
	}
	slot := len(u.references)
	u.references = append(u.references, reference{})
	object, err := u.value(code)
	if err != nil {
		return nil, err
	}
	u.references[slot] = reference{object, u.position + u.expanded - start}
	return object, nil
}

// isSingleton tells which types take no reference number even when they carry FLAG_REF.
func isSingleton(code byte) bool {
	switch code {
	case typeNull, typeNone, typeFalse, typeTrue, typeStopIteration, typeEllipsis, typeRef:
		return true
	}
	return false
}

func (u *unmarshaler) value(code byte) (Object, error) {
	switch code {
	case typeNull:
		return nullObject{}, nil
	case typeNone:
		return None, nil
	case typeFalse:
		return false, nil
	case typeTrue:
		return true, nil
	case typeStopIteration:
		return StopIteration, nil
	case typeEllipsis:
		return Ellipsis, nil
	case typeRef:
		return u.reference()
	case typeTuple, typeSmallTuple, typeList, typeSet, typeFrozenSet:
		return u.sequence(code)
	case typeDict:
		return u.dict()
	case typeCode:
		return u.code()
	case typeBytes:
		text, err := u.counted(false)
		return Bytes(text), err
	case typeShortASCII, typeShortASCIIInterned, typeASCII, typeASCIIInterned, typeUnicode, typeInterned:
		return u.str(code)
	}
	return u.number(code)
}

func (u *unmarshaler) number(code byte) (Object, error) {
	switch code {
	case typeInt:
		value, err := u.int32()
		return int64(value), err
	case typeInt64:
		return u.int64()
	case typeLong:
		return u.long()
	case typeFloat:
		return u.float64()
	case typeFloatText:
		return u.floatText()
	case typeComplex:
		return complexOf(u.float64)
	case typeComplexText:
		return complexOf(u.floatText)
	}
	return nil, u.fail("unknown type code %q", code)
}

func (u *unmarshaler) int64() (Object, error) {
	low, err := u.int32()
	if err != nil {
		return nil, err
	}
	high, err := u.int32()
	return int64(high)<<32 | int64(uint32(low)), err
}

func complexOf(part func() (float64, error)) (Object, error) {
	realPart, err := part()
	if err != nil {
		return nil, err
	}
	imaginaryPart, err := part()
	return complex(realPart, imaginaryPart), err
}

func (u *unmarshaler) str(code byte) (Object, error) {
	text, err := u.counted(code == typeShortASCII || code == typeShortASCIIInterned)
	if err != nil {
		return nil, err
	}
	if code != typeUnicode && code != typeInterned {
		return latin1(text), nil
	}
	if !validWTF8(text) {
		return nil, u.fail("str is not UTF-8")
	}
	return text, nil
}

func (u *unmarshaler) reference() (Object, error) {
	index, err := u.int32()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= len(u.references) {
		return nil, u.fail("reference %d does not exist", index)
	}
	target := u.references[index]
	if target.object == nil {
		return nil, u.fail("object contains itself")
	}
	u.expanded += target.size
	if u.expanded > maxMarshalSize {
		return nil, u.fail("references stand for more than %d bytes", maxMarshalSize)
	}
	return target.object, nil
}

func (u *unmarshaler) sequence(code byte) (Object, error) {
	items, err := u.items(code == typeSmallTuple)
	if err != nil {
		return nil, err
	}
	switch code {
	case typeList:
		return &List{Items: items}, nil
	case typeSet, typeFrozenSet:
		return &Set{Items: items, Frozen: code == typeFrozenSet}, nil
	}
	return Tuple(items), nil
}

func (u *unmarshaler) items(short bool) ([]Object, error) {
	count, err := u.length(short)
	if err != nil {
		return nil, err
	}
	if err := u.open(count); err != nil {
		return nil, err
	}
	defer u.close()
	items := make([]Object, count)
	for i := range items {
		u.item()
		if items[i], err = u.object(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (u *unmarshaler) dict() (Object, error) {
	if err := u.open(0); err != nil {
		return nil, err
	}
	defer u.close()
	base := len(u.pairs)
	for {
		key, err := u.objectOrNull()
		if err != nil {
			return nil, err
		}
		if _, isNull := key.(nullObject); isNull {
			return u.dictOf(base), nil
		}
		value, err := u.objectOrNull()
		if err != nil {
			return nil, err
		}
		if _, isNull := value.(nullObject); isNull {
			return u.dictOf(base), nil
		}
		u.pairs = append(u.pairs, key, value)
	}
}

// dictOf takes the pairs from number base on for a dict, which needs no more memory than they fill.
func (u *unmarshaler) dictOf(base int) *Dict {
	pairs := u.pairs[base:]
	u.pairs = u.pairs[:base]
	if len(pairs) == 0 {
		return &Dict{}
	}
	count := len(pairs) / 2
	objects := make([]Object, len(pairs))
	dict := &Dict{Keys: objects[:count:count], Values: objects[count:]}
	for i := range count {
		dict.Keys[i], dict.Values[i] = pairs[2*i], pairs[2*i+1]
	}
	return dict
}

// code reads the fields of a code object in the order of w_object in CPython's Python/marshal.c.
func (u *unmarshaler) code() (Object, error) {
	if err := u.open(0); err != nil {
		return nil, err
	}
	defer u.close()
	fields := codeReader{unmarshaler: u}
	code := &Code{
		ArgCount:        fields.number(),
		PosOnlyArgCount: fields.number(),
		KwOnlyArgCount:  fields.number(),
		StackSize:       fields.number(),
		Flags:           CodeFlags(fields.number()),
		Code:            fields.bytes(),
		Consts:          fields.tuple(),
		Names:           fields.names(),
		LocalsPlusNames: fields.names(),
		LocalsPlusKinds: fields.bytes(),
		FileName:        fields.str(),
		Name:            fields.str(),
		QualName:        fields.str(),
		FirstLine:       fields.number(),
		LineTable:       fields.bytes(),
		ExceptionTable:  fields.bytes(),
	}
	if fields.err == nil {
		fields.err = code.validate(u)
	}
	if fields.err != nil {
		return nil, fields.err
	}
	return code, nil
}

// codeReader reads fields until the first error, which it keeps.
type codeReader struct {
	*unmarshaler
	err error
}

func (r *codeReader) number() int {
	if r.err != nil {
		return 0
	}
	var value int
	value, r.err = r.int32()
	return value
}

func readField[T any](r *codeReader, wanted string) T {
	var field T
	if r.err != nil {
		return field
	}
	object, err := r.object()
	if err != nil {
		r.err = err
		return field
	}
	field, ok := object.(T)
	if !ok {
		r.err = r.fail("field of a code object is not a %s", wanted)
	}
	return field
}

func (r *codeReader) bytes() []byte { return []byte(readField[Bytes](r, "bytes object")) }
func (r *codeReader) str() string   { return readField[string](r, "str") }
func (r *codeReader) tuple() Tuple  { return readField[Tuple](r, "tuple") }

func (r *codeReader) names() []string { return slice.Map(r.tuple(), r.name) }

func (r *codeReader) name(object Object) string {
	name, ok := object.(string)
	if !ok && r.err == nil {
		r.err = r.fail("name in a code object is not a str")
	}
	return name
}

// validate refuses what CPython's _PyCode_Validate refuses, so that accessors of Code need no checks.
func (c *Code) validate(u *unmarshaler) error {
	switch {
	case c.ArgCount < c.PosOnlyArgCount || c.PosOnlyArgCount < 0 || c.KwOnlyArgCount < 0 || c.StackSize < 0:
		return u.fail("code object has a count that cannot be")
	case len(c.LocalsPlusKinds) != len(c.LocalsPlusNames):
		return u.fail("code object has %d variables and %d kinds", len(c.LocalsPlusNames), len(c.LocalsPlusKinds))
	case len(c.Code)%2 != 0:
		return u.fail("code of %d bytes is not a sequence of two-byte entries", len(c.Code))
	case c.NArgs() > c.NLocals():
		return u.fail("code object has more arguments than locals")
	}
	return nil
}
