package autograd

import (
	"slices"
	"strings"

	"fusee/graph"
	"fusee/internal/slice"
)

// splitApart has pieces that unsafe_split makes as views until they are written: to autograd they are none, though they lie in the memory of one
// tensor, since who calls it promises not to miss what is written over.
func (f *functionaliser) splitApart(n *graph.Node) error {
	return f.again(n, strings.Replace(n.Target, "aten.unsafe_", "aten.", 1))
}

func splitsApart(n *graph.Node) bool { return strings.HasPrefix(n.Target, "aten.unsafe_split") }

// store makes a value what a tensor that owns its memory holds. Where that has gaps, as pieces of a tensor have, the value has none.
func (f *functionaliser) store(e *emitter, target, value graph.Value) error {
	laidOut := e.ordered(value, target)
	f.dense = f.dense || e.err == nil && !f.graph.Shapes.AllEqual(metaOf(laidOut).Strides, metaOf(target).Strides)
	f.values[keyOf(target)] = laidOut
	f.generation[keyOf(target)]++
	return e.err
}

// moved says whether a node reads something that lies otherwise than the program says.
func (f *functionaliser) moved(n *graph.Node) bool {
	return slices.ContainsFunc(argumentsOf(n), f.isMoved)
}

func (f *functionaliser) isMoved(v graph.Value) bool {
	return f.dense && !f.graph.Shapes.AllEqual(metaOf(f.current(v)).Strides, metaOf(v).Strides)
}

// checkUnmoved refuses outputs that would not lie as the program says.
func (f *functionaliser) checkUnmoved(outputs []graph.Value) error {
	if slices.ContainsFunc(outputs, f.isMoved) {
		return refuse("an in-place operation on an intermediate whose memory has gaps")
	}
	return f.failed
}

// again appends a call of an operator in the place of a node, and finds anew what its results look like.
func (f *functionaliser) again(n *graph.Node, target string) error {
	state := f.state
	state.GradMode, state.Origin = !n.Unrecorded, n.Origin
	args := slice.Map(n.Args, func(arg graph.Value) graph.Value { return mapped(arg, f.current) })
	keywords := slice.Map(n.Keywords, func(k graph.Keyword) graph.Keyword {
		return graph.Keyword{Name: k.Name, Value: mapped(k.Value, f.current)}
	})
	node, err := f.graph.Call(target, args, keywords, state)
	if err != nil || len(node.Outputs) != len(n.Outputs) || n.MakesLeaf() {
		return refuse("%s of what lies otherwise than the program says", n.Target)
	}
	node.Unrecorded = n.Unrecorded
	for i, o := range n.Outputs {
		node.Outputs[i].Meta.RequiresGrad = o.Meta.RequiresGrad
		f.values[keyOf(n.Output(i))], f.made[keyOf(n.Output(i))] = node.Output(i), f.generation[keyOf(rootOf(n.Output(i)))]
	}
	return nil
}

// reshapes tells in-place operations that change no element, but how a tensor is looked at.
func reshapes(n *graph.Node) bool {
	return slices.Contains([]string{"t_", "transpose_", "squeeze_", "unsqueeze_"}, operatorName(n))
}

// reshape takes a view for a tensor from here on.
func (f *functionaliser) reshape(n *graph.Node) error {
	target := n.Mutates[0]
	for _, view := range f.graph.Nodes {
		isView := len(view.Outputs) > 0 && view.Outputs[0].Relation.Kind == graph.RelationView
		if isView && graph.SameValue(rootOf(view.Output(0)), f.current(target)) || relationOf(target).Kind != graph.RelationNew {
			return refuse("%s on an intermediate that has views", n.Target)
		}
	}
	e := f.emitter(n)
	args := append([]graph.Value{f.current(target)}, n.Args[1:]...)
	f.values[keyOf(target)] = e.call(strings.TrimSuffix(operatorName(n), "_"), args...)
	return e.err
}
