package backend

import (
	"strings"

	"fusee/backend/loop"
	"fusee/graph"
)

// tensor is a value of the program. A view names the tensor whose memory it describes as its root; all others are their own root.
type tensor struct {
	name     string
	meta     graph.Meta
	root     *tensor
	producer *operation // nil for inputs
	input    int        // number of the graph input, −1 for none
	uses     []*operation
	output   bool    // the graph returns it
	into     *tensor // an in-place operation's result: the tensor whose memory it is stored to
	// overwritten is the operation, no barrier, that stores its result over the tensor: what reads the tensor comes before it.
	overwritten *operation
	reuses      bool        // it is stored into memory that the plan made for another value, which nothing reads any more
	aliased     bool        // a library call gave views of the memory that do not name it as their root
	untracked   *graph.Node // of a view that torch does not count as one
}

// memory returns the tensor whose memory the tensor's elements are in.
func (t *tensor) memory() *tensor {
	memory := t.root
	for memory.into != nil {
		memory = memory.into.root
	}
	return memory
}

// scalar is a number that is known at run time only: a graph input or a size.
type scalar struct {
	typ  loop.Type // I64 or F64
	size graph.Size
	slot int // of the graph input; −1 for a size
	// counted is the dimension of the operation's result, plus one, whose index the number is; 0 for none.
	counted int
	// state is a tensor of the CPU whose element number item the number is; nil for none.
	state *tensor
	item  int64
}

// operand is what an operation reads: a tensor or a scalar.
type operand struct {
	tensor *tensor
	scalar *scalar
	as     loop.Type  // pointwise operations convert the element to it first
	gather *gathering // of a tensor that is read at computed indices
}

type kind uint8

// Kinds of operations.
const (
	library   kind = iota // a call of an aten operator
	pointwise             // a formula over elements at one index
	reduction             // combines elements along dimensions
)

// operation is one step of the program before fusion.
type operation struct {
	kind     kind
	name     string // for people and kernel names
	node     *graph.Node
	operands []operand
	outputs  []*tensor // nil entries for outputs that are arguments

	body    *graph.Expression // pointwise
	compute loop.Type         // of the body
	result  loop.Type         // stored type

	reduce  loop.Reduction // reduction of operands[0]
	reduced []bool         // by dimension of the operand
	part    bool           // of part of the elements: the output's last dimension counts the parts

	draws *drawing // set where the values are random numbers; the body is not used then

	rounded bool // nothing is made of it but what is rounded to bfloat16

	apart bool // it does not join what reads it: at single points of a reduction it costs more than memory

	index   int
	segment int // number of barriers before it
	barrier bool
	group   *group
}

// program is the straight-line form of a graph that passes work on.
type program struct {
	graph      *graph.Graph
	inputs     []*tensor // nil for scalar inputs
	operations []*operation
	outputs    []operand
	values     map[valueKey]operand
	// apart lists the inputs that are written without a barrier: a plan may only run where no other input shares memory with them.
	apart []*tensor
	items items
}

// valueKey identifies a graph value; *graph.Output pointers are not unique.
type valueKey struct {
	node  *graph.Node
	input *graph.Input
	index int
}

func keyOf(value graph.Value) (valueKey, bool) {
	switch v := value.(type) {
	case *graph.Input:
		return valueKey{input: v}, true
	case *graph.Output:
		return valueKey{node: v.Node, index: v.Index}, true
	}
	return valueKey{}, false
}

func newTensor(name string, meta graph.Meta) *tensor {
	t := &tensor{name: name, meta: meta, input: -1}
	t.root = t
	return t
}

// machineType maps a tensor's element type to the loop IR; false for types loops cannot compute on.
func machineType(dtype graph.DType) (loop.Type, bool) {
	typ, ok := machineTypes()[dtype]
	return typ, ok
}

func machineTypes() map[graph.DType]loop.Type {
	return map[graph.DType]loop.Type{
		graph.Bool: loop.Bool, graph.Uint8: loop.U8, graph.Int8: loop.I8, graph.Int16: loop.I16, graph.Int32: loop.I32,
		graph.Int64: loop.I64, graph.Float16: loop.F16, graph.BFloat16: loop.BF16, graph.Float32: loop.F32, graph.Float64: loop.F64,
		graph.Uint16: loop.U16, graph.Uint32: loop.U32, graph.Uint64: loop.U64,
	}
}

// computeType is the type arithmetic on values of a type happens in.
func computeType(typ loop.Type) loop.Type {
	if typ.Is(loop.ClassStorage) {
		return loop.F32
	}
	return typ
}

// unusual flags mean that the elements in memory are not the tensor's values, or that there is no plain memory.
const unusual = graph.FlagConjNeg | graph.FlagNotPlain

// loopable reports whether loops can read or write the tensor.
func loopable(meta *graph.Meta) bool {
	_, ok := machineType(meta.DType)
	return ok && meta.Flags&unusual == 0
}

// shortName strips "aten." and the overload from a target.
func shortName(target string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(target, "aten."), ".")
	return strings.Trim(name, "_")
}

// whole says whether the operand is a tensor that is read element by element.
func (o operand) whole() bool { return o.tensor != nil && o.gather == nil }
