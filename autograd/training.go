package autograd

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/errors"

	"fusee/graph"
)

// Training is a differentiated graph (docs/contracts.md, section 5).
type Training struct {
	// Functional is the graph in aten operators, with the results as outputs. Of in-place operations it holds those on the memory of inputs only.
	Functional *graph.Graph
	// Joint computes the results and then the gradients; its inputs are the graph's and then the gradients of the differentiable results.
	Joint *graph.Graph
	// Forward gives the results and then what Backward reads and is neither input nor result.
	Forward *graph.Graph
	// Backward takes what Saved says, then the gradients of the differentiable results, then Numbers, and gives the gradients of the inputs in Gradients.
	Backward *graph.Graph
	// Results counts the results. Each owns its memory.
	Results int
	// Differentiable says of each result whether gradients flow into it.
	Differentiable []bool
	Saved          []Place
	// Numbers says where the forward pass finds the ints and floats that Backward takes after the gradients.
	Numbers []graph.SymbolSource
	// Why says of each of Saved what reads it, and why it is not computed again.
	Why       []string
	Gradients []int
	// Needs lists for each gradient the differentiable results, by position among them, that it flows from.
	Needs [][]int
	// Linear says that gradients of 0 give gradients of 0, as those that a program's own torch.autograd.Function computes need not.
	Linear bool
	// Changed lists the inputs whose memory the graph writes.
	Changed []int
	// Random lists the devices whose generators the graph draws from, which a replay must set back.
	Random []string
	// Outputs makes the graph's outputs from its inputs and then the results; nil where the outputs are the results.
	Outputs *graph.Graph
}

// Place says where something that backward reads comes from: an input of the graph, or an output of Forward.
type Place struct {
	Input bool
	Index int
}

// Options say how a graph is differentiated.
type Options struct {
	// MemoryBudget is how much of the bytes that a minimum cut keeps may be kept, from 0, where all that can be is computed again from the inputs,
	// to 1.
	MemoryBudget float64
}

// Refusal is the reason why a graph is not differentiated.
type Refusal string

func (r Refusal) Error() string { return string(r) }

func refuse(format string, arguments ...any) error { return Refusal(fmt.Sprintf(format, arguments...)) }

// pass is one stage.
type pass struct {
	name string
	run  func(*differentiation) error
}

func passes() []pass {
	return []pass{{"functional", functional}, {"layouts", layouts}, {"joint", joint}, {"partition", partition}}
}

// differentiation is what the passes hand on.
type differentiation struct {
	source  *graph.Graph
	state   graph.State
	options Options
	outputs outputs
	result  *Training
	// overwritten is what in-place operations wrote of the functional graph's values, or of what stands for them later.
	overwritten *overwritten
	// leaves says of each of a whole step's leaves in the functional graph what else stands for it.
	leaves map[key][]graph.Value
	// laidOut is the functional graph in the layouts that its operators like best, and laidResults are the results in it.
	laidOut     *graph.Graph
	laidResults []graph.Value
	// read marks what the derivatives read of the joint graph's values, much as autograd keeps it.
	read map[key]bool
	// boundary is the number of the joint graph's nodes that belong to the forward pass.
	boundary int
}

// Differentiate makes the forward and backward graphs of a graph; its nodes may be torch-level or aten-level, and the graph is not changed. The
// state is the one of the capture. The error is a Refusal where the graph holds something that has no derivative here. Decisions on sizes that
// change become guards of the graph's environment, unless there is an error.
func Differentiate(g *graph.Graph, state graph.State, options Options) (*Training, error) {
	before := g.Shapes.Clone()
	state.GradMode = false // what the passes append is not recorded again
	d := &differentiation{source: g, state: state, options: options, result: &Training{}, overwritten: newOverwritten()}
	err := d.run()
	if err != nil {
		g.Shapes.Restore(before)
		return nil, err
	}
	return d.result, nil
}

func (d *differentiation) run() error {
	if err := d.checkPlainInputs(); err != nil {
		return err
	}
	for _, pass := range passes() {
		if err := pass.run(d); err != nil {
			return errors.Wrapf(err, "autograd pass %s", pass.name)
		}
	}
	for _, g := range d.graphs() {
		g.Canonicalise()
	}
	return d.verify()
}

// graphs lists the graphs that the passes made.
func (d *differentiation) graphs() []*graph.Graph {
	r := d.result
	made := []*graph.Graph{r.Functional, r.Joint, r.Forward, r.Backward}
	if r.Outputs != nil {
		made = append(made, r.Outputs)
	}
	return made
}

// verify checks the structure of what the passes made.
func (d *differentiation) verify() error {
	for _, g := range d.graphs() {
		if err := g.Verify(); err != nil {
			return errors.Wrap(err, "a differentiated graph")
		}
	}
	return nil
}

func (d *differentiation) checkPlainInputs() error {
	for _, input := range d.source.Inputs {
		switch {
		case input.Meta.Flags&(graph.FlagNotPlain|graph.FlagConjNeg|graph.FlagIntercepted) != 0:
			return refuse("gradients with the input %s, which is no plain tensor", input.Name)
		case input.Meta.Flags&graph.FlagInference != 0:
			return refuse("gradients with the input %s, an inference tensor", input.Name)
		case input.Meta.RequiresGrad && input.Meta.DType.IsComplex():
			return refuse("gradients of complex numbers")
		}
	}
	return nil
}

// key names a tensor by what made it.
type key struct {
	input *graph.Input
	node  *graph.Node
	index int
}

func keyOf(v graph.Value) key {
	switch v := v.(type) {
	case *graph.Input:
		return key{input: v}
	case *graph.Output:
		return key{node: v.Node, index: v.Index}
	}
	return key{}
}

// relationOf says how a value's memory relates to another's.
func relationOf(v graph.Value) graph.Relation {
	if o, ok := v.(*graph.Output); ok {
		return o.Node.Outputs[o.Index].Relation
	}
	return graph.New()
}

// rootOf follows views and in-place results to the tensor that owns the memory.
func rootOf(v graph.Value) graph.Value {
	for r := relationOf(v); r.Kind != graph.RelationNew; r = relationOf(v) {
		v = r.Of
	}
	return v
}

// metaOf is the metadata of a value that is known to be a tensor.
func metaOf(v graph.Value) *graph.Meta {
	m, ok := graph.MetaOf(v)
	if !ok {
		return &graph.Meta{}
	}
	return m
}

// mapped applies a function to every tensor in a value.
func mapped(v graph.Value, f func(graph.Value) graph.Value) graph.Value {
	return graph.MapValue(v, func(v graph.Value) graph.Value {
		switch v.(type) {
		case *graph.Input, *graph.Output:
			return f(v)
		}
		return v
	})
}

// copyNode appends a copy of an aten node to a graph, with its tensors replaced.
func copyNode(to *graph.Graph, n *graph.Node, replace func(graph.Value) graph.Value) *graph.Node {
	args := make([]graph.Value, len(n.Args))
	for i, arg := range n.Args {
		args[i] = mapped(arg, replace)
	}
	keywords := make([]graph.Keyword, len(n.Keywords))
	for i, k := range n.Keywords {
		keywords[i] = graph.Keyword{Name: k.Name, Value: mapped(k.Value, replace)}
	}
	infos := make([]graph.OutputInfo, len(n.Outputs))
	for i, o := range n.Outputs {
		o.Relation.Of = mapped(o.Relation.Of, replace)
		infos[i] = o
	}
	node := to.Append(n.Target, args, keywords, infos, nil)
	for _, v := range n.Mutates {
		node.Mutates = append(node.Mutates, mapped(v, replace))
	}
	node.Random, node.MayRaise, node.Origin, node.Schema = n.Random, n.MayRaise, n.Origin, n.Schema
	node.Unrecorded, node.Callee, node.Function = n.Unrecorded, n.Callee, n.Function
	node.Checkpoint, node.Recomputed = n.Checkpoint, n.Recomputed
	for _, v := range n.Captured {
		node.Captured = append(node.Captured, mapped(v, replace))
	}
	if _, nested := n.Result.(graph.List); nested && n.Function != nil {
		list := graph.List{Tuple: true}
		for i := range n.Outputs {
			list.Items = append(list.Items, node.Output(i))
		}
		node.Result = list
	}
	if len(n.Outputs) == 1 && strings.HasSuffix(schemaReturns(n), "[]") {
		node.Result = graph.List{Items: []graph.Value{node.Output(0)}, Tuple: true}
	}
	return node
}

// argumentsOf lists the tensors that a node reads or writes.
func argumentsOf(n *graph.Node) []graph.Value {
	values := append([]graph.Value(nil), n.Args...)
	for _, k := range n.Keywords {
		values = append(values, k.Value)
	}
	values = append(values, n.Captured...)
	return graph.Tensors(values...)
}
