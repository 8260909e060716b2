package autograd

import "fusee/graph"

// classLoss is the negative log likelihood by way of the operators that also give the total weight.
func classLoss(e *emitter, args []graph.Value) graph.Value {
	scores, target, weight, reduction, ignored := args[0], args[1], args[2], args[3], args[4]
	loss, total := e.likelihood(scores, target, weight, reduction, ignored)
	smoothing, _ := number(args[5])
	if e.err != nil || smoothing == 0 {
		return loss
	}
	classes := metaOf(scores).Sizes[min(1, metaOf(scores).Dim()-1)].Hint
	smooth := e.smoothLoss(args)
	switch reduction {
	case int64(1):
		smooth = e.infix("/", e.call("sum", smooth), total)
	case int64(2):
		smooth = e.call("sum", smooth)
	}
	return e.infix("+", e.infix("*", loss, 1-smoothing), e.infix("*", smooth, smoothing/float64(classes)))
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

// smoothLoss is the negative sum of the weighted scores of all classes, 0 at targets that are ignored.
func (e *emitter) smoothLoss(args []graph.Value) graph.Value {
	scores, target, weight, ignored := args[0], args[1], args[2], args[4]
	m := metaOf(scores)
	dim := min(1, m.Dim()-1)
	if weight != nil {
		sizes := make([]graph.Size, m.Dim()-dim)
		for i := range sizes {
			sizes[i] = graph.Static(1)
		}
		sizes[0] = m.Sizes[dim]
		scores = e.infix("*", scores, e.shaped(weight, sizes))
	}
	summed := e.negated(e.call("sum", scores, graph.List{Items: []graph.Value{int64(dim)}}))
	return e.call("where", e.infix("==", target, ignored), int64(0), summed)
}
