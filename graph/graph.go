// Package graph is the tensor intermediate representation: graphs of tensor operations with their shapes, strides, element
// types and aliasing, one table of aten operators, and one table of the Python-level functions that lead to them.
package graph

import (
	"strconv"

	"fusee/internal/slice"
)

// RelationKind says how an output's memory relates to an argument's.
type RelationKind uint8

// Relations of outputs to arguments.
const (
	RelationNew  RelationKind = iota // fresh memory
	RelationSame                     // the argument itself, as in-place operations return it
	RelationView                     // another tensor over the argument's memory
)

// Relation of an output to the argument Of, which is nil for RelationNew.
type Relation struct {
	Kind RelationKind
	Of   Value
}

// New is the relation of an output with memory of its own.
func New() Relation { return Relation{} }

// SameAs is the relation of an output that is the argument itself.
func SameAs(v Value) Relation { return Relation{Kind: RelationSame, Of: v} }

// ViewOf is the relation of an output that shares the argument's memory.
func ViewOf(v Value) Relation { return Relation{Kind: RelationView, Of: v} }

// OutputInfo describes one result of a node.
type OutputInfo struct {
	Meta     Meta
	Relation Relation
}

// Origin is the user's source line a node came from, and the innermost of the calls that it was appended in (nil: not known).
type Origin struct {
	File string
	Line int
	Call *Call
}

// Call is a call of a Python function, the line that it is at, and the call that made it (nil for the outermost).
type Call struct {
	Function, File string
	Line           int
	Caller         *Call
}

// Node is one operation. Target is a canonical Python name ("torch.relu") or an aten operator ("aten.relu.default").
// Mutates lists the arguments whose elements the node writes. Random says that it also advances the random generator, MayRaise
// that what the arguments hold can make it raise (integer division by zero, indices out of range).
// Result nests the node's Outputs as Python sees them: one *Output, a List of them, or nil; ResultType names a structseq
// type such as "torch.return_types.max" and is empty for plain results. Expansion holds the aten operators that the call runs
// (from the tables, or from the host); their arguments are values of the outer graph or results of earlier nodes of the same
// expansion. Unrecorded says that the call ran while gradients were not recorded. ExpansionResults gives the value of each of the Outputs in terms of the expansion; when it is nil they are the
// outputs of the expansion's last node.
type Node struct {
	Index      int
	Name       string
	Target     string
	Callee     int64 // number of the live object that is called, which Target then only describes; 0 otherwise
	Args       []Value
	Keywords   []Keyword
	Outputs    []OutputInfo
	Mutates    []Value
	Random     bool
	MayRaise   bool
	Unrecorded bool
	Result     Value
	ResultType string
	Expansion  []*Node
	Origin     Origin

	ExpansionResults []Value

	// Function says what a node of FunctionTarget does, and Captured which tensors that reads.
	Function *Function
	Captured []Value

	// CastCache numbers the cache of autocast in which the operation finds casts of weights that operations before it made; 0 for none.
	CastCache int

	// Checkpoint is the innermost call of torch.utils.checkpoint that the operation stands in, nil for none; Recomputed says that backward computes with it
	// again what was made in one.
	Checkpoint *Checkpoint
	Recomputed bool

	// Schema is the signature of an aten operator that the table does not hold, as the host gave it; nil otherwise.
	Schema *Schema
}

// Graph is a list of nodes in order of execution; in-place operations keep their place.
type Graph struct {
	Name    string
	Inputs  []*Input
	Nodes   []*Node
	Outputs []Value
	Shapes  *ShapeEnvironment
	// Inference says that the graph runs in inference mode, though what calls it does not.
	Inference bool

	tainted map[storageKey]bool // memory that a differentiable value was written into
}

// ChangesState tells nodes that change torch's state for those behind them, and compute nothing.
func (n *Node) ChangesState() bool {
	return n.Target == "torch._C._set_grad_enabled" || n.ChangesAutocast()
}

// ChangesAutocast tells nodes that change the state of autocast.
func (n *Node) ChangesAutocast() bool {
	switch n.Target {
	case "torch.set_autocast_enabled", "torch.set_autocast_dtype", "torch.set_autocast_cache_enabled", "torch.clear_autocast_cache":
		return true
	}
	return false
}

// WritesInputs tells nodes that write memory which the graph was given.
func (n *Node) WritesInputs() bool {
	for _, v := range n.Mutates {
		if _, given := Owner(v).(*Input); given {
			return true
		}
	}
	return false
}

// State is the torch state a call runs under.
type State struct {
	GradMode      bool
	InferenceMode bool
	Autocast      bool
	DefaultDType  DType // NoDType means float32
	LeastNorm     bool  // where a bound or a tie leaves a choice of gradients, PyTorch takes the one of least norm, as from 2.15 on
	Origin        Origin
}

// NewGraph makes an empty graph.
func NewGraph(name string) *Graph {
	return &Graph{Name: name, Shapes: NewShapeEnvironment()}
}

// AddTensor appends a tensor input.
func (g *Graph) AddTensor(name string, meta Meta) *Input {
	return g.addInput(&Input{Name: name, Kind: Tensor, Meta: meta})
}

// AddInt appends an integer input whose value is the size.
func (g *Graph) AddInt(name string, size Size) *Input {
	return g.addInput(&Input{Name: name, Kind: Int, Size: size})
}

// AddFloat appends a floating-point input.
func (g *Graph) AddFloat(name string) *Input {
	return g.addInput(&Input{Name: name, Kind: Float})
}

func (g *Graph) addInput(input *Input) *Input {
	input.Index = len(g.Inputs)
	if input.Name == "" {
		input.Name = "input" + strconv.Itoa(input.Index)
	}
	g.Inputs = append(g.Inputs, input)
	return input
}

// Append adds a node whose outputs the caller knows (the host ran the operation on fake tensors). The result is the single
// output, or a tuple of them; the caller may set Result otherwise.
func (g *Graph) Append(target string, args []Value, keywords []Keyword, outputs []OutputInfo, expansion []*Node) *Node {
	node := &Node{Target: target, Args: args, Keywords: keywords, Outputs: outputs, Expansion: expansion}
	node.Result = node.defaultResult()
	g.add(node)
	return node
}

func (g *Graph) add(node *Node) {
	node.Index = len(g.Nodes)
	node.Name = nodeName(node.Target) + "_" + strconv.Itoa(node.Index)
	g.Nodes = append(g.Nodes, node)
}

func (n *Node) defaultResult() Value {
	if len(n.Outputs) == 1 {
		return n.Output(0)
	}
	return List{Items: n.Results(), Tuple: true}
}

// Output gives the k-th result as a value.
func (n *Node) Output(k int) *Output { return &Output{Node: n, Index: k} }

// Keyword gives the keyword argument of that name.
func (n *Node) Keyword(name string) (Value, bool) {
	k, ok := slice.Find(n.Keywords, func(k Keyword) bool { return k.Name == name })
	return k.Value, ok
}

// Results gives the values that the node computes, one for each output.
func (n *Node) Results() []Value {
	results := make([]Value, len(n.Outputs))
	for k := range results {
		results[k] = n.Output(k)
	}
	return results
}
