package autograd

import (
	"slices"

	"fusee/graph"
)

// postponed is a write of inputs' memory that nothing needs yet: as a barrier in the midst of the graph it would keep apart what runs before and behind it.
type postponed struct {
	touches map[key]bool // inputs that it reads or writes
	write   func() error
}

// postpone leaves a write of the memory of inputs for later, but for graphs that go on behind backward, which do not look out for it.
func (j *joiner) postpone(touched []graph.Value, write func(*emitter)) error {
	if j.whole != nil {
		e := j.emitter()
		write(e)
		return e.err
	}
	j.later(touched, func() error {
		e := j.emitter()
		write(e)
		return e.err
	})
	return nil
}

func (j *joiner) later(touched []graph.Value, write func() error) {
	p := postponed{touches: map[key]bool{}, write: write}
	for _, v := range touched {
		if input, ok := rootOf(v).(*graph.Input); ok {
			p.touches[keyOf(input)] = true
		}
	}
	j.postponed = append(j.postponed, p)
}

// write appends all writes that were left for later.
func (j *joiner) write() error {
	waiting := j.postponed
	j.postponed = nil
	for _, p := range waiting {
		if err := p.write(); err != nil {
			return err
		}
	}
	return nil
}

// inTurn writes a node of the functional graph, ahead of it the writes that it could see, and leaves one that no result depends on for later.
func (j *joiner) inTurn(n *graph.Node) error {
	var touched []graph.Value
	for _, v := range argumentsOf(n) {
		touched = append(touched, j.replace(v))
	}
	if slices.ContainsFunc(touched, j.mayBeWaitedFor) {
		if err := j.write(); err != nil {
			return err
		}
	}
	if !counts(n) {
		return j.forward(n)
	}
	j.values[keyOf(n.Output(0))] = touched[0]
	j.later(touched, func() error {
		copyNode(j.graph, n, j.replace)
		return nil
	})
	return nil
}

// mayBeWaitedFor says whether a waiting write may concern a value: by its input, or where an input is a view of memory that others may share.
func (j *joiner) mayBeWaitedFor(v graph.Value) bool {
	input, ok := rootOf(v).(*graph.Input)
	return ok && slices.ContainsFunc(j.postponed, func(p postponed) bool { return p.touches[keyOf(input)] || input.Meta.Flags&graph.FlagView != 0 })
}

// counts tells additions to a counter among the inputs, such as that of the batches that a norm has seen.
func counts(n *graph.Node) bool {
	if operatorName(n) != "add_" || len(n.Mutates) != 1 || len(n.Outputs) != 1 || n.Outputs[0].Relation.Kind != graph.RelationSame {
		return false
	}
	input, ok := n.Mutates[0].(*graph.Input)
	return ok && input.Meta.Dim() == 0 && input.Meta.DType.IsIntegral() && input.Meta.Flags&graph.FlagView == 0 && len(argumentsOf(n)) == 1
}

// laidOutLike gives the gradient of an image or of a convolution's weights in their layout; autograd would turn it around, one by one.
func (j *joiner) laidOutLike(gradient graph.Value, input *graph.Input) graph.Value {
	if input.Meta.Dim() != 4 || input.Meta.Device.Type != "cuda" || j.graph.Shapes.AllEqual(metaOf(gradient).Strides, input.Meta.Strides) {
		return gradient
	}
	if laidOut, err := j.emitter().owned(gradient, input); err == nil {
		return laidOut
	}
	return gradient
}
