package graph

import "slices"

// storageKey names a tensor by what made it.
type storageKey struct {
	input  *Input
	node   *Node
	output int
}

func keyOf(v Value) storageKey {
	switch v := v.(type) {
	case *Input:
		return storageKey{input: v}
	case *Output:
		return storageKey{node: v.Node, output: v.Index}
	}
	return storageKey{}
}

// relationOf gives how a value came from another one.
func relationOf(v Value) Relation {
	if o, ok := v.(*Output); ok && o.Node != nil && o.Index < len(o.Node.Outputs) {
		return o.Node.Outputs[o.Index].Relation
	}
	return Relation{}
}

// root follows views and in-place results to the tensor that owns the memory, as autograd sees it: detach starts afresh.
func root(v Value) Value {
	for {
		r := relationOf(v)
		if r.Kind == RelationNew || isDetached(v) {
			return v
		}
		v = r.Of
	}
}

func isDetached(v Value) bool {
	o, ok := v.(*Output)
	return ok && (o.Node.MakesLeaf() || slices.Contains([]string{"detach", "data", "alias_detached"}, nodeName(o.Node.Target)))
}

// RequiresGrad says whether a tensor requires gradients at this point of the graph: by its own metadata, or because a
// differentiable value was written into its memory since.
func (g *Graph) RequiresGrad(v Value) bool {
	m, ok := MetaOf(v)
	if !ok || !m.DType.IsDifferentiable() {
		return false
	}
	return m.RequiresGrad || g.tainted[keyOf(root(v))]
}

// Recorded says whether autograd records the operation. While gradients are not recorded, views of what requires gradients, and what is written
// in place, still require them. What an assignment to items writes is no result of it, but of the operations it consists of.
func (n *Node) Recorded() bool {
	return !n.Unrecorded && (slices.ContainsFunc(n.Outputs, func(o OutputInfo) bool { return o.Meta.RequiresGrad }) ||
		len(n.Outputs) == 0 && slices.ContainsFunc(n.Expansion, (*Node).Recorded))
}

// noteMutation remembers that gradients flow into the memory behind v.
func (g *Graph) noteMutation(v Value) {
	if g.tainted == nil {
		g.tainted = map[storageKey]bool{}
	}
	g.tainted[keyOf(root(v))] = true
}

// givesList says whether a call gives a list of tensors, of which there may be one alone.
func (n *Node) givesList() bool {
	_, isList := n.Result.(List)
	return isList || len(n.Outputs) > 1
}

// isPiece says whether v came from a function that returns several views at once, such as split.
func isPiece(v Value) bool {
	for r := relationOf(v); r.Kind != RelationNew; v, r = r.Of, relationOf(r.Of) {
		if o, ok := v.(*Output); ok && r.Kind == RelationView && o.Node.givesList() {
			return true
		}
	}
	return false
}

// AfreshError is the answer where what gets a history shares memory with something of another: through Node, which detaches, or makes views while
// gradients are not recorded. Autograd gives the history to the one alone, or refuses. It is an ErrUnknown.
type AfreshError struct{ Node *Node }

func (e *AfreshError) Error() string {
	return "graph: no exact rule: a history behind " + e.Node.Target
}

// Is makes errors.Is(err, ErrUnknown) hold.
func (e *AfreshError) Is(target error) bool { return target == ErrUnknown }

// beginningAfresh finds the operation through which v first shares the memory of a tensor that the graph made, without its history.
func beginningAfresh(v Value) (first *Node) {
	for r := relationOf(v); r.Kind != RelationNew; v, r = r.Of, relationOf(r.Of) {
		o, made := v.(*Output)
		if made && !o.Node.MakesLeaf() && (isDetached(v) || r.Kind == RelationView && o.Node.Unrecorded) {
			first = o.Node
		}
	}
	if _, given := v.(*Input); given {
		return nil // such graphs run under PyTorch's own autograd
	}
	return first
}

// wasCut says whether several views at once, that gradients flow through, were made of the memory of v: once it is written, autograd cannot make
// their histories anew, and refuses to record what reads them.
func (g *Graph) wasCut(v Value) bool {
	return slices.ContainsFunc(g.Nodes, func(n *Node) bool {
		if len(n.Outputs) == 0 || !n.givesList() {
			return false
		}
		piece := n.Outputs[0]
		return piece.Relation.Kind == RelationView && piece.Meta.RequiresGrad && SameValue(root(piece.Relation.Of), root(v))
	})
}

// DetachedFromOwner tells tensors that share the memory of one that requires gradients, do not require any themselves, and are neither what detach
// gave nor views of an argument that were made with grad mode off: those the operators of a launch plan make as they are.
func (g *Graph) DetachedFromOwner(v Value) bool {
	holder := Owner(v)
	if holder == v || !g.RequiresGrad(holder) || g.RequiresGrad(v) {
		return false
	}
	for relationOf(v).Kind == RelationSame {
		v = relationOf(v).Of
	}
	if isDetached(v) {
		return false
	}
	for ; relationOf(v).Kind != RelationNew; v = relationOf(v).Of {
		if isDetached(v) {
			return true
		}
	}
	_, given := holder.(*Input)
	return !given
}

// leafRoot says whether v is, or is a view of, a leaf that requires gradients.
func (g *Graph) leafRoot(v Value) bool {
	m, ok := MetaOf(root(v))
	return ok && m.RequiresGrad && m.Flags&FlagGradFn == 0
}
