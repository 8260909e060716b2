package autograd

import (
	"slices"
	"strings"

	"fusee/graph"
)

// fewestConvolutions pay for laying out what the first one takes and the last one makes.
const fewestConvolutions = 3

// layouts lays out images on a GPU with the channels of each place together, as the library convolves them without turning them around before and after,
// in both directions. What is between the convolutions follows; results, and operators that look at memory, get the layout that the program has.
func layouts(d *differentiation) error {
	d.laidOut, d.laidResults = d.result.Functional, d.outputs.results
	count := 0
	for _, n := range d.result.Functional.Nodes {
		if convolvesImages(n) {
			count++
		}
	}
	if count < fewestConvolutions {
		return nil
	}
	a := &arranger{emitter: &emitter{state: d.state}, values: map[key]graph.Value{}, overwritten: d.overwritten}
	a.emitter.state.GradMode = true
	a.graph = &graph.Graph{Name: d.source.Name, Inputs: d.source.Inputs, Shapes: d.source.Shapes}
	for _, n := range d.result.Functional.Nodes {
		start := len(a.graph.Nodes)
		a.node(n)
		placeIn(n.Checkpoint, a.graph.Nodes[start:])
	}
	results := make([]graph.Value, len(d.outputs.results))
	for i, v := range d.outputs.results {
		results[i] = a.declared(v)
	}
	if a.err == nil {
		d.laidOut, d.laidResults = a.graph, results
	}
	return nil // where it cannot be done, the program's own layout does
}

// convolvesImages tells convolutions on a GPU that the library has kernels of both layouts for.
func convolvesImages(n *graph.Node) bool {
	name := operatorName(n)
	if name != "conv2d" && name != "convolution" || len(n.Outputs) != 1 {
		return false
	}
	groups, _ := n.Argument("groups")
	transposed, _ := n.Argument("transposed")
	weight, _ := n.Argument("weight")
	m, w := &n.Outputs[0].Meta, metaOf(weight)
	return m.Device.Type == "cuda" && m.Dim() == 4 && m.DType.IsFloat() && m.DType != graph.Float64 && groups == graph.Value(int64(1)) && transposed != true &&
		m.Sizes[1].Hint > 1 && w.Dim() == 4 && w.Sizes[1].Hint > 1
}

// operatorName is the name of an aten operator without its overload.
func operatorName(n *graph.Node) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(n.Target, "aten."), ".")
	if n.Target == graph.UniformTarget {
		return "uniform"
	}
	return name
}

// arranger writes a graph anew in other layouts.
type arranger struct {
	*emitter
	values      map[key]graph.Value
	overwritten *overwritten
}

func (a *arranger) current(v graph.Value) graph.Value {
	if known := a.values[keyOf(v)]; known != nil {
		return known
	}
	return v // an input
}

// moved says whether a value lies otherwise than the program says.
func (a *arranger) moved(v graph.Value) bool {
	return !a.graph.Shapes.AllEqual(metaOf(a.current(v)).Strides, metaOf(v).Strides)
}

// declared gives a value in the layout that the program says.
func (a *arranger) declared(v graph.Value) graph.Value {
	if !a.moved(v) {
		return a.current(v)
	}
	laidOut, err := a.owned(a.current(v), v)
	if err != nil {
		return a.fail(err)
	}
	return laidOut
}

func (a *arranger) node(n *graph.Node) {
	convolves := convolvesImages(n)
	switch {
	case a.err != nil:
		return
	case convolves || a.follows(n) && slices.ContainsFunc(argumentsOf(n), a.moved):
		a.again(n, convolves)
		return
	}
	a.bind(n, copyNode(a.graph, n, a.declared))
}

func (a *arranger) bind(n, node *graph.Node) {
	for i := range n.Outputs {
		a.values[keyOf(n.Output(i))] = node.Output(i)
	}
	a.overwritten.follow(n, node, a.current)
}

// follows tells operators whose rule says how their results lie for arguments that lie in any way.
func (a *arranger) follows(n *graph.Node) bool {
	op, ok := graph.LookUp(n.Target)
	if !ok || n.Random || len(n.Outputs) != 1 || n.Outputs[0].Relation.Kind != graph.RelationNew {
		return false
	}
	if name := operatorName(n); name == "batch_norm" || strings.HasSuffix(name, "pool2d") {
		return true
	}
	return len(n.Mutates) == 0 && (op.Kind == graph.KindPointwise || op.Kind == graph.KindReduction)
}

// again appends a node for its arguments as they lie now, images and weights of convolutions with their channels together.
func (a *arranger) again(n *graph.Node, convolves bool) {
	replace := a.current
	if convolves {
		replace = a.together
	}
	args, keywords := make([]graph.Value, len(n.Args)), make([]graph.Keyword, len(n.Keywords))
	for i, arg := range n.Args {
		args[i] = mapped(arg, replace)
	}
	for i, k := range n.Keywords {
		keywords[i] = graph.Keyword{Name: k.Name, Value: mapped(k.Value, replace)}
	}
	node, err := a.graph.Call(n.Target, args, keywords, a.state)
	if a.err != nil || err != nil || node.Outputs[0].Meta.DType != n.Outputs[0].Meta.DType {
		a.fail(refuse("%s in another layout", n.Target))
		return
	}
	node.Outputs[0].Meta.RequiresGrad = n.Outputs[0].Meta.RequiresGrad
	node.MayRaise, node.Origin, node.Unrecorded = n.MayRaise, n.Origin, n.Unrecorded
	a.bind(n, node)
}

// together gives an image, or the weights of a convolution, with the channels of each place side by side.
func (a *arranger) together(v graph.Value) graph.Value {
	now := a.current(v)
	m := metaOf(now)
	if a.err != nil || m.Dim() != 4 || a.graph.Shapes.Equal(m.Strides[1], graph.Static(1)) && a.graph.Shapes.Unambiguous(m) {
		return now
	}
	a.state.GradMode = true
	turned := a.callWith("clone", []graph.Value{now}, []graph.Keyword{{Name: "memory_format", Value: graph.ChannelsLast}})
	if o, ok := turned.(*graph.Output); ok {
		o.Node.Outputs[0].Meta.RequiresGrad = metaOf(v).RequiresGrad
	}
	return turned
}
