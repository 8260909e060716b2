package graph

// Checkpoint is a call of torch.utils.checkpoint: what its operations make is not kept for backward, which computes it again from what they read.
type Checkpoint struct {
	// Outer is the checkpoint that this one is called in, nil for none.
	Outer *Checkpoint
	// Reentrant says that gradients of it can be had by backward alone, as PyTorch computes it again in an autograd of its own.
	Reentrant bool
}

// Within says whether a checkpoint is another one, or called in it. The checkpoint may be nil, for operations that stand in none.
func (c *Checkpoint) Within(outer *Checkpoint) bool {
	for ; c != nil; c = c.Outer {
		if c == outer {
			return true
		}
	}
	return false
}

// Outermost is the checkpoint that is called in no other.
func (c *Checkpoint) Outermost() *Checkpoint {
	for c.Outer != nil {
		c = c.Outer
	}
	return c
}

// Span is a range of the nodes of a graph: from First to before End.
type Span struct{ First, End int }

// Checkpoints gives the nodes of each outermost checkpoint of the graph, in order.
func (g *Graph) Checkpoints() []Span {
	var spans []Span
	var last *Checkpoint
	for i, n := range g.Nodes {
		switch {
		case n.Checkpoint == nil:
			last = nil
		case n.Checkpoint.Outermost() == last:
			spans[len(spans)-1].End = i + 1
		default:
			last = n.Checkpoint.Outermost()
			spans = append(spans, Span{i, i + 1})
		}
	}
	return spans
}
