package graph

import (
	"slices"

	"fusee/internal/slice"
)

// GradientsTarget is the operation that asks for gradients within a graph: `of(outputs, inputs, gradients, retain_graph)` of the host's module
// fusee._gradients, where gradients holds one of each output, or None for 1. It gives the tuple of the inputs' gradients, each in memory of its
// own, laid out as autograd lays out the gradient of a leaf. What it reads beside its arguments is the history of the outputs. A fifth argument, which
// says whether the gradients have a history themselves (create_graph); a sixth and a seventh name tensors on the way, and what takes the place of the
// gradients that flow to them.
const GradientsTarget = "fusee._gradients.of"

// LeafTarget is the operation that has a tensor require gradients from here on: `leaf(tensor)` of the host's module fusee._gradients. To autograd its
// result is a leaf, whatever made the memory that it shares with its argument; Python gives the argument itself.
const LeafTarget = "fusee._gradients.leaf"

// MakesLeaf says whether the node is one of LeafTarget.
func (n *Node) MakesLeaf() bool { return n.Target == LeafTarget }

// MakesLeaves says whether gradients may end at tensors that the graph makes.
func (g *Graph) MakesLeaves() bool { return slices.ContainsFunc(g.Nodes, (*Node).MakesLeaf) }

// AppendLeaf appends an operation of LeafTarget, recorded whether or not gradients are.
func (g *Graph) AppendLeaf(v Value, origin Origin) *Node {
	m := *meta(v)
	m.RequiresGrad, m.Flags = true, m.Flags&^FlagGradFn|FlagLeaf
	node := g.Append(LeafTarget, []Value{v}, nil, []OutputInfo{{Meta: m, Relation: ViewOf(v)}}, nil)
	node.Origin = origin
	return node
}

// AsksForGradients says whether the node is one of GradientsTarget.
func (n *Node) AsksForGradients() bool { return n.Target == GradientsTarget }

// CreatesHistory says whether the gradients that the node gives can be differentiated again.
func (n *Node) CreatesHistory() bool {
	return n.AsksForGradients() && len(n.Args) > 4 && n.Args[4] == Value(true)
}

// Cuts are the tensors on the way whose gradients are replaced, and what they are replaced by.
func (n *Node) Cuts() (tensors, gradients []Value) {
	if len(n.Args) < 7 {
		return nil, nil
	}
	return n.Args[5].(List).Items, n.Args[6].(List).Items
}

// KeepsHistory says whether the history that gradients flowed back through can be used again.
func (n *Node) KeepsHistory() bool { return n.AsksForGradients() && n.Args[3] == Value(true) }

// HasGradients says whether the graph asks for gradients of its own results.
func (g *Graph) HasGradients() bool { return slices.ContainsFunc(g.Nodes, (*Node).AsksForGradients) }

// History is what gradients of some tensors flow back through.
type History struct {
	Nodes  map[*Node]bool
	Inputs []*Input // that require gradients, in order of the graph
	Leaves []*Node  // of LeafTarget, in order of the graph
	// Hidden is an operation that gradients flow back to and from there to nothing that the graph names, nil where there is none.
	Hidden *Node
	wanted map[storageKey]bool
	roots  map[storageKey]bool
}

// HistoryOf follows tensors back through the operations that autograd recorded among the nodes, the first ones of the graph.
func (g *Graph) HistoryOf(tensors []Value, nodes []*Node) *History {
	h := &History{Nodes: map[*Node]bool{}, wanted: map[storageKey]bool{}, roots: map[storageKey]bool{}}
	for _, v := range tensors {
		h.want(g, v)
	}
	for _, n := range slices.Backward(nodes) {
		if !n.Recorded() || !h.reaches(n) {
			continue
		}
		h.through(g, n)
	}
	slices.Reverse(h.Leaves)
	for _, input := range g.Inputs {
		if h.wanted[keyOf(input)] {
			h.Inputs = append(h.Inputs, input)
		}
	}
	return h
}

// through goes on from an operation to what gradients flow to from there.
func (h *History) through(g *Graph, n *Node) {
	if n.MakesLeaf() {
		h.Leaves = append(h.Leaves, n)
		return
	}
	h.Nodes[n] = true
	arguments := slice.Filter(h.differentiable(n), g.RequiresGrad)
	for _, v := range arguments {
		h.want(g, v)
	}
	if len(arguments) == 0 && len(n.Mutates) == 0 {
		h.Hidden = n
	}
}

func keywordValues(n *Node) []Value {
	return slice.Map(n.Keywords, func(k Keyword) Value { return k.Value })
}

func (h *History) want(g *Graph, v Value) {
	if g.RequiresGrad(v) {
		h.wanted[keyOf(v)], h.roots[keyOf(root(v))] = true, true
	}
}

// reaches says whether a recorded node made what is wanted, or wrote it into memory.
func (h *History) reaches(n *Node) bool {
	for k, o := range n.Outputs {
		if o.Meta.RequiresGrad && h.wanted[keyOf(n.Output(k))] {
			return true
		}
	}
	return slices.ContainsFunc(n.Mutates, func(v Value) bool { return h.roots[keyOf(root(v))] })
}

// Wants says whether gradients flow to a tensor.
func (h *History) Wants(v Value) bool { return h.wanted[keyOf(v)] }

// Meets says whether both histories have an operation in common.
func (h *History) Meets(other *History) bool {
	for n := range h.Nodes {
		if other.Nodes[n] {
			return true
		}
	}
	return false
}

// MeetsWhatIsFreed says whether both histories have an operation in common that autograd kept something for: once backward has freed it, it raises.
func (h *History) MeetsWhatIsFreed(other *History) bool {
	for n := range h.Nodes {
		if other.Nodes[n] && !n.keepsNothing() {
			return true
		}
	}
	return false
}

// keepsNothing says whether autograd keeps no tensor of a node for backward.
func (n *Node) keepsNothing() bool {
	if len(n.Expansion) == 0 {
		return n.Function == nil && KeepsNothing(n.Target)
	}
	return !slices.ContainsFunc(n.Expansion, func(one *Node) bool { return !one.keepsNothing() })
}

// GradientMeta describes the gradient of a tensor as autograd keeps it: laid out like the tensor where that is dense, else row by row
// (torch/csrc/autograd/functions/accumulate_grad.h of PyTorch).
func (e *ShapeEnvironment) GradientMeta(m *Meta) Meta {
	strides := m.Strides
	if !e.isDense(m) {
		strides = e.contiguousStrides(m.Sizes)
	}
	return Meta{DType: m.DType, Device: m.Device, Sizes: m.Sizes, Strides: strides, Offset: Static(0), Flags: FlagLeaf}
}
