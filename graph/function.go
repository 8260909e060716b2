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
	// Backward carries gradients back: Seeds stand for those of the outputs, and Gradients holds one for each argument, or nil.
	Seeds     []*Node
	Backward  []*Node
	Gradients []Value
}

// differentiable lists the tensors among a node's arguments that gradients may flow to.
func (n *Node) differentiable() []Value {
	if n.Function == nil {
		return collectTensors(slices.Concat(n.Args, keywordValues(n)))
	}
	var values []Value
	for k, gradient := range n.Function.Gradients {
		if gradient != nil {
			values = append(values, collectTensors(n.Args[k:k+1])...)
		}
	}
	return values
}

// FindFormals lists what the operations read that none of them made.
func (f *Function) FindFormals() {
	made := map[*Node]bool{}
	for _, n := range slices.Concat(f.Forward, f.Seeds, f.Backward) {
		made[n] = true
	}
	add := func(values []Value) {
		for _, v := range collectTensors(values) {
			o, isOutput := v.(*Output)
			if (!isOutput || !made[o.Node]) && !mentions(f.Formals, v) {
				f.Formals = append(f.Formals, v)
			}
		}
	}
	for _, n := range slices.Concat(f.Forward, f.Backward) {
		add(n.arguments())
	}
	add(f.Results)
	add(f.Gradients)
}

// LowerNodes gives the aten operators of some nodes, which read values of the graph or of each other, and what stands for a value of theirs.
func (g *Graph) LowerNodes(nodes []*Node) (lowered []*Node, replace func(Value) Value, err error) {
	l, err := g.lowering(nodes)
	if err != nil {
		return nil, nil, err
	}
	return l.graph.Nodes, l.replace, nil
}
