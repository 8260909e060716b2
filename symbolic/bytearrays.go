package symbolic

import (
	"strings"

	"fusee/bytecode"
	"fusee/internal/slice"
)

// byteArray is a bytearray that the program makes during capture; what changes one is left to Python.
type byteArray struct{ content string }

func (v *byteArray) typeName() string { return "bytearray" }

// constructByteArray is bytearray() of nothing, of bytes, of a length, and of numbers.
func (in *Interpreter) constructByteArray(arguments Arguments) (Value, bool, error) {
	if len(arguments.Positional)+len(arguments.Keywords) == 0 {
		return &byteArray{}, true, nil
	}
	value, ok, err := in.singleReal(arguments)
	if !ok || err != nil {
		return nil, ok, err
	}
	if content, ok := bytesOf(value); ok {
		return &byteArray{content}, true, nil
	}
	switch v := value.(type) {
	case *Constant:
		if n, isInt := v.Value.(int64); isInt && n >= 0 && n <= maxUnrolled {
			return &byteArray{strings.Repeat("\x00", int(n))}, true, nil
		}
	case *List, *Tuple, *Range:
		content, err := in.joinBytes(v)
		return &byteArray{content}, content != "" || err != nil, err
	}
	return nil, false, nil
}

// joinBytes puts numbers from 0 to 255 together; "" where there are none or others.
func (in *Interpreter) joinBytes(sequence Value) (string, error) {
	items, err := in.iterableItems(sequence)
	if err != nil {
		return "", err
	}
	content := make([]byte, len(items))
	for i, item := range items {
		value, err := in.real(item)
		if err != nil {
			return "", err
		}
		n, ok := constantInt(value)
		if !ok || n < 0 || n > 255 {
			return "", nil
		}
		content[i] = byte(n)
	}
	return string(content), nil
}

// bytesOf gives what a bytes or a bytearray holds.
func bytesOf(value Value) (string, bool) {
	if array, ok := value.(*byteArray); ok {
		return array.content, true
	}
	content, ok := constantAs[bytecode.Bytes](value)
	return string(content), ok
}

// equalBytes is == where a bytearray is on one side; done is false where there is none.
func (in *Interpreter) equalBytes(left, right Value) (equal, done bool, err error) {
	if _, ok := left.(*byteArray); !ok {
		left, right = right, left
	}
	array, ok := left.(*byteArray)
	if !ok || hasMethods(right) {
		return false, false, nil
	}
	if content, ok := bytesOf(right); ok {
		return content == array.content, true, nil
	}
	return modelled(in.differs(right))
}

func (v *byteArray) length(*Interpreter) (int, error) { return len(v.content), nil }

func (v *byteArray) getItem(in *Interpreter, key Value) (Value, error) {
	key, err := in.real(key)
	if err != nil {
		return nil, err
	}
	slice, ok := key.(*SliceValue)
	if !ok {
		return in.sequenceItem("bytearray", v.numbers(), key, nil)
	}
	positions, err := in.slicePositions(slice, len(v.content))
	if err != nil {
		return nil, err
	}
	picked := make([]byte, len(positions))
	for k, position := range positions {
		picked[k] = v.content[position]
	}
	return &byteArray{string(picked)}, nil
}

func (v *byteArray) numbers() []Value {
	return slice.Map([]byte(v.content), func(b byte) Value { return integer(int64(b)) })
}

func (v *byteArray) setItem(*Interpreter, Value, Value) error {
	return unsupported(reasonMutation, "an item of a bytearray")
}

func (v *byteArray) iterate(*Interpreter) (iterator, error) {
	return &sequenceIterator{items: v.numbers(), kind: "bytearray_iterator", origin: v}, nil
}

func (v *byteArray) contains(in *Interpreter, item Value) (bool, error) {
	item, err := in.real(item)
	if err != nil {
		return false, err
	}
	if part, ok := bytesOf(item); ok {
		return strings.Contains(v.content, part), nil
	}
	if n, ok := constantInt(item); ok && n >= 0 && n <= 255 {
		return strings.IndexByte(v.content, byte(n)) >= 0, nil
	}
	return false, unsupported(reasonBuiltinCall, "%s in a bytearray", item.typeName())
}

func (v *byteArray) getAttribute(in *Interpreter, name string) (Value, error) {
	if name == "__class__" {
		return in.classOf(v)
	}
	return nil, unsupported(reasonAttribute, "bytearray.%s", name)
}
