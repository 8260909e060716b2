package graph

import "slices"

// FunctionTarget is a call of a torch.autograd.Function that autograd records: `apply(function, *arguments)` of the host's module fusee._gradients, where
// the function is the node's Callee.
const FunctionTarget = "fusee._gradients.apply"

// Function is what a call of a torch.autograd.Function does, in operations. Tensors of the graph that they read beside each other's results are the
// Formals, for which the node's Captured stand.
type Function struct {
	Formals []Value
	Forward []*Node
	Results []Value // one for each output of the node
	// Backwards carry gradients back: a single one where those that are not there count as 0, else one for each set of them that may be there.
	Backwards []*Backward
}

// Backward is what the backward of a Function does for some gradients of its results.
type Backward struct {
	Seeds     []*Node // stand for the gradients of the outputs; nil for one that is None
	Nodes     []*Node
	Gradients []Value // one for each argument, or nil
}

// BackwardOf is what backward does where gradients of these outputs are there; nil where that is not known.
func (f *Function) BackwardOf(there []bool) *Backward {
	if len(f.Backwards) == 1 {
		return f.Backwards[0]
	}
	for _, b := range f.Backwards {
		if slices.EqualFunc(b.Seeds, there, func(seed *Node, has bool) bool { return (seed != nil) == has }) {
			return b
		}
	}
	return nil
}

// nodes lists the operations of forward and backward.
func (f *Function) nodes() []*Node {
	nodes := slices.Clone(f.Forward)
	for _, b := range f.Backwards {
		nodes = append(nodes, b.Nodes...)
	}
	return nodes
}

// differentiable lists the tensors among a node's arguments that gradients may flow to.
func (h *History) differentiable(n *Node) []Value {
	if n.Function == nil {
		return collectTensors(slices.Concat(n.Args, keywordValues(n)))
	}
	there := make([]bool, len(n.Outputs))
	for k, o := range n.Outputs {
		there[k] = o.Meta.RequiresGrad && h.wanted[keyOf(n.Output(k))]
	}
	backward := n.Function.BackwardOf(there)
	if backward == nil {
		return nil
	}
	var values []Value
	for k, gradient := range backward.Gradients {
		if gradient != nil {
			values = append(values, collectTensors(n.Args[k:k+1])...)
		}
	}
	return values
}

// FindFormals lists what the operations read that none of them made.
func (f *Function) FindFormals() {
	made := map[*Node]bool{}
	for _, n := range f.nodes() {
		made[n] = true
	}
	for _, b := range f.Backwards {
		for _, seed := range b.Seeds {
			made[seed] = true
		}
	}
	add := func(values []Value) {
		for _, v := range collectTensors(values) {
			o, isOutput := v.(*Output)
			if (!isOutput || !made[o.Node]) && !mentions(f.Formals, v) {
				f.Formals = append(f.Formals, v)
			}
		}
	}
	for _, n := range f.nodes() {
		add(n.arguments())
	}
	add(f.Results)
	for _, b := range f.Backwards {
		add(b.Gradients)
	}
}

// LowerNodes gives the aten operators of some nodes, which read values of the graph or of each other, and what stands for a value of theirs.
func (g *Graph) LowerNodes(nodes []*Node) (lowered []*Node, replace func(Value) Value, err error) {
	l, err := g.lowering(nodes)
	if err != nil {
		return nil, nil, err
	}
	return l.graph.Nodes, l.replace, nil
}
