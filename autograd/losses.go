package autograd

import (
	"slices"

	"fusee/graph"
)

// classLoss is the negative log likelihood by way of the operators that also give the total weight.
func classLoss(e *emitter, args []graph.Value) graph.Value {
	loss, _ := e.likelihood(args[0], args[1], args[2], args[3], args[4])
	return loss
}

// likelihood gives the negative log likelihood and the total weight of the targets.
func (e *emitter) likelihood(scores, target, weight, reduction, ignored graph.Value) (loss, total graph.Value) {
	m, of := metaOf(scores), metaOf(target)
	name := "nll_loss_forward"
	if m.Dim() > 2 { // over planes of one row unless there are two dimensions of positions
		name = "nll_loss2d_forward"
	}
	if m.Dim() > 2 && m.Dim() != 4 {
		row := e.graph.Shapes.Product(m.Sizes[2:])
		scores = e.shaped(scores, []graph.Size{m.Sizes[0], m.Sizes[1], graph.Static(1), row})
		target = e.shaped(target, []graph.Size{m.Sizes[0], graph.Static(1), row})
	}
	results := e.call(name, scores, target, weight, reduction, ignored)
	loss, total = e.item(results, int64(0)), e.item(results, int64(1))
	if reduction == int64(0) && e.err == nil {
		loss = e.shaped(loss, of.Sizes)
	}
	return loss, total
}

// crossEntropy of scores is the logarithm of the sum of exponentials less the target's score, with the greatest score subtracted from both. Written so,
// backward reads the scores and two numbers of each row, and neither logarithms of probabilities nor their gradients lie in memory.
func crossEntropy(e *emitter, args []graph.Value) graph.Value {
	if e.err != nil {
		return nil
	}
	c := newClassification(e, args)
	loss := e.infix("-", c.logarithm, c.chosen())
	if c.weights != nil {
		loss = e.infix("*", loss, c.weights)
	}
	if smoothing, _ := number(args[5]); smoothing != 0 {
		loss = e.infix("+", e.infix("*", loss, 1-smoothing), e.infix("*", c.overClasses(args[2]), smoothing/float64(e.graph.Shapes.Specialise(c.classes))))
	}
	loss = c.averaged(e.call("where", c.valid, loss, int64(0)), args[3])
	if e.err == nil && metaOf(loss).DType != metaOf(args[0]).DType {
		loss = e.cast(loss, metaOf(args[0]).DType)
	}
	return loss
}

// classification is what a loss over classes computes of each place.
type classification struct {
	*emitter
	dim     int64
	classes graph.Size
	valid   graph.Value // the target is not to be ignored
	index   graph.Value // the target, 0 where it is ignored
	weights graph.Value // of each target's class, nil for ones
	// shifted are the scores less the greatest of their place, logarithm that of the sum of their exponentials.
	scores, greatest, shifted, logarithm graph.Value
}

func newClassification(e *emitter, args []graph.Value) *classification {
	target, weight, ignored := args[1], args[2], args[4]
	rank := metaOf(args[0]).Dim()
	c := &classification{emitter: e, dim: int64(min(1, rank-1)), scores: e.wide(args[0])}
	c.classes = metaOf(args[0]).Sizes[c.dim]
	dims := graph.List{Items: []graph.Value{c.dim}}
	c.greatest = e.unrecorded(func(e *emitter) graph.Value { return e.call("amax", c.scores, dims, true) })
	c.shifted = e.infix("-", c.scores, c.greatest)
	c.logarithm = e.call("log", e.call("sum", e.call("exp", c.shifted), dims))
	c.valid = e.infix("!=", target, ignored)
	c.index = e.call("where", c.valid, target, int64(0))
	if weight != nil && e.err == nil {
		c.weights = e.unrecorded(func(e *emitter) graph.Value {
			return e.wide(e.call("index", weight, graph.List{Items: []graph.Value{c.index}}))
		})
	}
	return c
}

// chosen is the shifted score of each target's class.
func (c *classification) chosen() graph.Value {
	score := c.call("gather", c.scores, c.dim, c.call("unsqueeze", c.index, c.dim))
	return c.call("squeeze", c.infix("-", score, c.greatest), c.dim)
}

// overClasses is the sum of the weighted losses of all classes.
func (c *classification) overClasses(weight graph.Value) graph.Value {
	dims := graph.List{Items: []graph.Value{c.dim}}
	if weight == nil {
		return c.infix("-", c.infix("*", c.logarithm, float64(c.graph.Shapes.Specialise(c.classes))), c.call("sum", c.shifted, dims))
	}
	if c.err != nil {
		return nil
	}
	sizes := make([]graph.Size, metaOf(c.shifted).Dim())
	for i := range sizes {
		sizes[i] = graph.Static(1)
	}
	sizes[c.dim] = c.classes
	spread := c.unrecorded(func(e *emitter) graph.Value { return e.wide(e.shaped(weight, sizes)) })
	losses := c.infix("-", c.call("unsqueeze", c.logarithm, c.dim), c.shifted)
	return c.call("sum", c.infix("*", losses, spread), dims)
}

// averaged combines the losses of all places as the reduction says.
func (c *classification) averaged(loss, reduction graph.Value) graph.Value {
	switch reduction {
	case int64(0):
		return loss
	case int64(2):
		return c.call("sum", loss)
	}
	total := c.unrecorded(func(e *emitter) graph.Value {
		if c.weights == nil {
			return e.call("sum", e.cast(c.valid, metaOf(loss).DType))
		}
		return e.call("sum", e.call("where", c.valid, c.weights, int64(0)))
	})
	return c.infix("/", c.call("sum", loss), total)
}

// unrecorded appends operators that gradients do not flow through.
func (e *emitter) unrecorded(write func(*emitter) graph.Value) graph.Value {
	quiet := *e
	quiet.appended = nil
	value := write(&quiet)
	e.err = quiet.err
	return value
}

// ungathered puts gradients where gather read. Where it read one element of each row, comparing positions with the index takes no memory.
func ungathered(e *emitter, args []graph.Value) graph.Value {
	gradient, self, dim, index := args[0], args[1], args[2], args[3]
	rank := metaOf(self).Dim()
	along, _ := dim.(int64)
	along = (along + int64(rank)) % int64(max(rank, 1))
	if rank == 0 || !e.readsOneOfEachRow(metaOf(self), metaOf(index), along) {
		return e.call("scatter_add", e.zeros(self), dim, index, gradient)
	}
	sizes := make([]graph.Size, rank)
	for d := range sizes {
		sizes[d] = graph.Static(1)
	}
	sizes[along] = metaOf(self).Sizes[along]
	positions := e.callWith("arange", []graph.Value{sizeValue(sizes[along])}, []graph.Keyword{{Name: "device", Value: metaOf(self).Device}})
	return e.call("where", e.infix("==", e.shaped(positions, sizes), index), gradient, int64(0))
}

func (e *emitter) readsOneOfEachRow(self, index *graph.Meta, along int64) bool {
	wanted := slices.Clone(self.Sizes)
	wanted[along] = graph.Static(1)
	return e.graph.Shapes.AllEqual(index.Sizes, wanted)
}
