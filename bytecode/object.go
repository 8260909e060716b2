// Package bytecode holds CPython 3.11 code objects as data: reading and writing them in the marshal format, decoding
// their instructions, disassembling them, and assembling edited instructions back into code objects.
//
// The package runs no Python and trusts no input: bytes that CPython could not have written give an error.
package bytecode

import (
	"math/big"
	"slices"
)

// Object is a Python value that the marshal format can express. Its dynamic type is one of NoneType, EllipsisType,
// StopIterationType, bool, int64, *big.Int (only where int64 is too small), float64, complex128, string, Bytes, Tuple,
// *List, *Dict, *Set and *Code. A Python str is a Go string in UTF-8; lone surrogates are encoded like other code points
// (WTF-8), as CPython's "surrogatepass" does.
type Object = any

// NoneType is the type of Python's None.
type NoneType struct{}

// EllipsisType is the type of Python's Ellipsis.
type EllipsisType struct{}

// StopIterationType stands for the exception class StopIteration, the only class that marshal knows.
type StopIterationType struct{}

// None, Ellipsis and StopIteration are the only values of their types.
var (
	None          = NoneType{}
	Ellipsis      = EllipsisType{}
	StopIteration = StopIterationType{}
)

// Bytes is a Python bytes object.
type Bytes string

// Tuple is a Python tuple.
type Tuple []Object

// List is a Python list.
type List struct{ Items []Object }

// Dict is a Python dict in insertion order: Keys[i] maps to Values[i].
type Dict struct{ Keys, Values []Object }

// Set is a Python set, or a frozenset if Frozen. Items keep the order in which they were read or built.
type Set struct {
	Items  []Object
	Frozen bool
}

// Get returns the value stored under a str key, and whether there is one.
func (d *Dict) Get(key string) (Object, bool) {
	if i := slices.Index(d.Keys, Object(key)); i >= 0 {
		return d.Values[i], true
	}
	return nil, false
}

// NewDict returns a dict of keys and values that follow each other in turn.
func NewDict(keysAndValues ...Object) *Dict {
	dict := &Dict{}
	for pair := range slices.Chunk(keysAndValues, 2) {
		dict.Set(pair[0], pair[1])
	}
	return dict
}

// Set appends a key and its value; it does not look for an earlier entry under the same key.
func (d *Dict) Set(key, value Object) {
	d.Keys = append(d.Keys, key)
	d.Values = append(d.Values, value)
}

// NewInt returns the Python int of a value: an int64 where it fits, the value itself otherwise.
func NewInt(value *big.Int) Object {
	if value.IsInt64() {
		return value.Int64()
	}
	return value
}
