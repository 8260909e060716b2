package graph

import (
	"strconv"

	"fusee/internal/slice"
)

// Value is an argument of a node. It is one of *Output, *Input, nil (None), bool, int64, float64, complex128, string,
// DType, Device, Layout, MemoryFormat, List, Slice, Ellipsis, Size.
type Value interface{}

// Output names one result of a node. Two Outputs are the same value when node and index agree; see SameValue.
type Output struct {
	Node  *Node
	Index int
}

// InputKind says what a graph input is.
type InputKind uint8

// Kinds of graph inputs.
const (
	Tensor InputKind = iota
	Int
	Float
)

// Input is a parameter of the graph. Meta is set for tensors only; an Int input's symbolic size is in Size.
type Input struct {
	Index int
	Name  string
	Kind  InputKind
	Meta  Meta
	Size  Size
	// Memory names the storage of a tensor at capture, which inputs with the same number share; 0 where it is not known.
	Memory int64
}

// List is a Python list, or a tuple when Tuple is set.
type List struct {
	Items []Value
	Tuple bool
}

// Slice is a Python slice object; absent bounds are nil.
type Slice struct {
	Start, Stop, Step Value
}

// Ellipsis is Python's `...`.
type Ellipsis struct{}

// Keyword is one keyword argument.
type Keyword struct {
	Name  string
	Value Value
}

// Device is where a tensor's elements live. Index is 0 for the CPU.
type Device struct {
	Type  string
	Index int
}

// String gives "cpu" or "cuda:0".
func (d Device) String() string {
	if d.Type == "cpu" || d.Type == "" {
		return "cpu"
	}
	return d.Type + ":" + strconv.Itoa(d.Index)
}

// Layout is a tensor layout by torch's name without the prefix.
type Layout string

// Strided is the layout of every dense tensor.
const Strided Layout = "strided"

// MemoryFormat is a memory format by torch's name without the prefix.
type MemoryFormat string

// Memory formats.
const (
	ContiguousFormat MemoryFormat = "contiguous_format"
	PreserveFormat   MemoryFormat = "preserve_format"
	ChannelsLast     MemoryFormat = "channels_last"
	ChannelsLast3D   MemoryFormat = "channels_last_3d"
)

// MetaFlags are the properties of a tensor besides its layout, numbered as in the contract between host and compiler.
type MetaFlags uint16

// Flags of a tensor.
const (
	FlagParameter MetaFlags = 1
	FlagLeaf      MetaFlags = 2
	FlagGradFn    MetaFlags = 4
	FlagInference MetaFlags = 8
	FlagConjNeg   MetaFlags = 16
	FlagNotPlain  MetaFlags = 32
	FlagView      MetaFlags = 64
	FlagHooked    MetaFlags = 128
	// FlagIntercepted marks instances of a subclass of torch.Tensor that are plain memory to everything but __torch_function__.
	FlagIntercepted MetaFlags = 256
	// FlagWrapper marks instances of a subclass that wraps other tensors, whose operations only Python can run.
	FlagWrapper MetaFlags = 512
)

// Meta describes a tensor without its elements. Strides and Offset count elements.
type Meta struct {
	DType          DType
	Device         Device
	Sizes, Strides []Size
	Offset         Size
	RequiresGrad   bool
	Flags          MetaFlags
}

// Dim is the number of dimensions.
func (m *Meta) Dim() int { return len(m.Sizes) }

// MetaOf gives the metadata of a tensor value; false when the value is no tensor.
func MetaOf(v Value) (*Meta, bool) {
	switch v := v.(type) {
	case *Input:
		if v.Kind == Tensor {
			return &v.Meta, true
		}
	case *Output:
		if v.Node != nil && v.Index >= 0 && v.Index < len(v.Node.Outputs) {
			return &v.Node.Outputs[v.Index].Meta, v.Node.Outputs[v.Index].Meta.DType != NoDType
		}
	}
	return nil, false
}

// SameValue says whether two values name the same graph input or the same result of the same node.
func SameValue(a, b Value) bool {
	switch a := a.(type) {
	case *Input:
		other, ok := b.(*Input)
		return ok && a == other
	case *Output:
		other, ok := b.(*Output)
		return ok && a.Node == other.Node && a.Index == other.Index
	}
	return false
}

// MapValue applies a function to a value, or to each of those that a list or a slice holds.
func MapValue(v Value, f func(Value) Value) Value {
	switch v := v.(type) {
	case List:
		return List{Items: slice.Map(v.Items, func(item Value) Value { return MapValue(item, f) }), Tuple: v.Tuple}
	case Slice:
		return Slice{MapValue(v.Start, f), MapValue(v.Stop, f), MapValue(v.Step, f)}
	}
	return f(v)
}
