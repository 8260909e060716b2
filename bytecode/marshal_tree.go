package bytecode

import "encoding/binary"

// Tree is a marshalled object in the form in which it was written: which parts are references to earlier ones, which
// strings are interned, which of several type codes was chosen. Writing a tree that was read gives the same bytes, which
// Unmarshal and Marshal do not promise.
type Tree struct {
	Type    byte    // type code, without FLAG_REF
	Ref     bool    // FLAG_REF: the object has a reference number, in order of appearance
	Payload string  // what follows the type code, except lengths and items; of a code object its six numbers
	Items   []*Tree // items of a container, keys and values of a dict in turn, fields of a code object
}

// Layout of a code object: five numbers, eight objects, a number, two objects (w_object in Python/marshal.c).
const (
	codeNumbersBefore = 5
	codeObjectsBefore = 8
	codeObjects       = 10
)

// ReadTree reads a marshalled object of any version up to 4 and requires that the input ends with it. Errors are
// *MarshalError; memory and nesting are bounded as for Unmarshal. References may lead to objects that contain them.
func ReadTree(data []byte) (*Tree, error) {
	reader := treeReader{scanner: scanner{input: string(data)}}
	tree, err := reader.node()
	if err != nil {
		return nil, err
	}
	if tree.Type == typeNull {
		return nil, reader.fail("null object")
	}
	if reader.remaining() > 0 {
		return nil, reader.fail("%d bytes follow the object", reader.remaining())
	}
	return tree, nil
}

type treeReader struct {
	scanner
	references int
}

func (r *treeReader) node() (*Tree, error) {
	code, err := r.byte()
	if err != nil {
		return nil, err
	}
	tree := &Tree{Type: code &^ flagRef, Ref: code&flagRef != 0}
	if tree.Ref && !isSingleton(tree.Type) {
		r.references++
	}
	switch tree.Type {
	case typeTuple, typeSmallTuple, typeList, typeSet, typeFrozenSet:
		tree.Items, err = r.items(tree.Type == typeSmallTuple)
	case typeDict:
		tree.Items, err = r.dictItems()
	case typeCode:
		err = r.code(tree)
	default:
		tree.Payload, err = r.leaf(tree.Type)
	}
	return tree, err
}

// object reads a node that is not null.
func (r *treeReader) object() (*Tree, error) {
	tree, err := r.node()
	if err == nil && tree.Type == typeNull {
		err = r.fail("null object")
	}
	return tree, err
}

func (r *treeReader) items(short bool) ([]*Tree, error) {
	count, err := r.length(short)
	if err != nil {
		return nil, err
	}
	if err := r.open(count); err != nil {
		return nil, err
	}
	defer r.close()
	items := make([]*Tree, count)
	for i := range items {
		r.item()
		if items[i], err = r.object(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// dictItems reads keys and values up to the null object, which may stand in the place of either.
func (r *treeReader) dictItems() ([]*Tree, error) {
	if err := r.open(0); err != nil {
		return nil, err
	}
	defer r.close()
	var items []*Tree
	for {
		item, err := r.node()
		if err != nil || item.Type == typeNull {
			return items, err
		}
		items = append(items, item)
	}
}

func (r *treeReader) code(tree *Tree) error {
	if err := r.open(0); err != nil {
		return err
	}
	defer r.close()
	before, err := r.take(4 * codeNumbersBefore)
	if err != nil {
		return err
	}
	firstLine := ""
	for i := range codeObjects {
		if i == codeObjectsBefore {
			if firstLine, err = r.take(4); err != nil {
				return err
			}
		}
		item, err := r.object()
		if err != nil {
			return err
		}
		tree.Items = append(tree.Items, item)
	}
	tree.Payload = before + firstLine
	return nil
}

// leaf reads the payload of an object that contains no others.
func (r *treeReader) leaf(code byte) (string, error) {
	switch code {
	case typeNull, typeNone, typeFalse, typeTrue, typeStopIteration, typeEllipsis:
		return "", nil
	case typeInt:
		return r.take(4)
	case typeInt64, typeFloat:
		return r.take(8)
	case typeComplex:
		return r.take(16)
	case typeRef:
		return r.reference()
	case typeLong:
		return r.long()
	case typeComplexText:
		return r.complexText()
	case typeShortASCII, typeShortASCIIInterned, typeFloatText:
		return r.counted(true)
	case typeBytes, typeASCII, typeASCIIInterned, typeUnicode, typeInterned:
		return r.counted(false)
	}
	return "", r.fail("unknown type code %q", code)
}

func (r *treeReader) reference() (string, error) {
	start := r.position
	index, err := r.int32()
	if err == nil && (index < 0 || index >= r.references) {
		err = r.fail("reference %d does not exist", index)
	}
	return r.input[start:r.position], err
}

func (r *treeReader) long() (string, error) {
	start := r.position
	_, _, err := r.longDigits()
	return r.input[start:r.position], err
}

func (r *treeReader) complexText() (string, error) {
	start := r.position
	if _, err := r.counted(true); err != nil {
		return "", err
	}
	_, err := r.counted(true)
	return r.input[start:r.position], err
}

// Write returns the marshalled form of the tree. Errors are *MarshalError, for trees that were not read but built: a
// nesting deeper than marshal allows, an unknown type code, a length that does not fit it.
func (t *Tree) Write() ([]byte, error) {
	return t.append(nil, 0)
}

func (t *Tree) append(out []byte, depth int) ([]byte, error) {
	if depth > maxMarshalDepth {
		return nil, writeError("tree is nested too deeply or contains itself")
	}
	code := t.Type
	if t.Ref {
		code |= flagRef
	}
	out = append(out, code)
	switch t.Type {
	case typeSmallTuple, typeShortASCII, typeShortASCIIInterned, typeFloatText:
		if t.length() > 255 {
			return nil, writeError("type code %q cannot have length %d", t.Type, t.length())
		}
		out = append(out, byte(t.length()))
	case typeTuple, typeList, typeSet, typeFrozenSet, typeBytes, typeASCII, typeASCIIInterned, typeUnicode, typeInterned:
		out = binary.LittleEndian.AppendUint32(out, uint32(t.length()))
	case typeCode:
		return t.appendCode(out, depth)
	case typeNull, typeNone, typeFalse, typeTrue, typeStopIteration, typeEllipsis, typeInt, typeInt64, typeFloat, typeComplex,
		typeRef, typeLong, typeComplexText, typeDict:
	default:
		return nil, writeError("unknown type code %q", t.Type)
	}
	out = append(out, t.Payload...)
	out, err := appendTrees(out, t.Items, depth)
	if err == nil && t.Type == typeDict {
		out = append(out, typeNull)
	}
	return out, err
}

// length is what the form states as its length: of a leaf its bytes, of a container its items.
func (t *Tree) length() int { return len(t.Payload) + len(t.Items) }

func (t *Tree) appendCode(out []byte, depth int) ([]byte, error) {
	if len(t.Items) != codeObjects || len(t.Payload) != 4*(codeNumbersBefore+1) {
		return nil, writeError("code object has %d fields", len(t.Items))
	}
	out = append(out, t.Payload[:4*codeNumbersBefore]...)
	out, err := appendTrees(out, t.Items[:codeObjectsBefore], depth)
	if err != nil {
		return nil, err
	}
	out = append(out, t.Payload[4*codeNumbersBefore:]...)
	return appendTrees(out, t.Items[codeObjectsBefore:], depth)
}

func appendTrees(out []byte, items []*Tree, depth int) ([]byte, error) {
	var err error
	for _, item := range items {
		if out, err = item.append(out, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}
