package autograd

import (
	"slices"

	"fusee/graph"
)

// recomputation holds what backward has computed again of checkpoints.
type recomputation struct {
	copies map[*graph.Checkpoint]map[key]graph.Value
	// written holds the roots of memory that the first nodes of the joint graph write, as many as were looked at.
	written map[key]bool
	looked  int
	err     error
}

func newRecomputation() *recomputation {
	return &recomputation{copies: map[*graph.Checkpoint]map[key]graph.Value{}, written: map[key]bool{}}
}

// recomputed gives what stands for a value where gradients flow back through an operation of a checkpoint: values that were made in the checkpoint are computed
// again, once for all its operations, where the first of them reads it. In a checkpoint within another one it is the inner one's that are; the outer one's values
// serve both.
func (j *joiner) recomputed(v graph.Value, at *graph.Checkpoint) graph.Value {
	o, made := v.(*graph.Output)
	if !made {
		return v
	}
	for at != nil && !o.Node.Checkpoint.Within(at) {
		at = at.Outer
	}
	if at == nil || j.staysAsDrawn(o) {
		return v
	}
	if j.again.copies[at] == nil {
		j.again.copies[at] = map[key]graph.Value{}
	}
	copies := j.again.copies[at]
	if copies[keyOf(v)] == nil {
		j.checkUnwritten(o.Node)
		node := copyNode(j.graph, o.Node, func(argument graph.Value) graph.Value { return j.recomputed(argument, at) })
		node.Checkpoint, node.Recomputed = nil, true
		for i := range node.Outputs {
			copies[keyOf(o.Node.Output(i))] = node.Output(i)
			j.tracked[keyOf(node.Output(i))] = j.isTracked(o.Node.Output(i))
		}
	}
	return copies[keyOf(v)]
}

// staysAsDrawn tells random numbers, which cannot be drawn again, and masks made of them, which are smaller.
func (j *joiner) staysAsDrawn(o *graph.Output) bool {
	return j.isDrawn(o) || slices.ContainsFunc(argumentsOf(o.Node), func(v graph.Value) bool {
		return j.isDrawn(v) && Bytes(metaOf(o)) < Bytes(metaOf(v))
	})
}

// isDrawn tells results of random operators, and memory that operators write.
func (j *joiner) isDrawn(v graph.Value) bool {
	o, made := v.(*graph.Output)
	return made && (o.Node.Random || len(o.Node.Mutates) > 0 || j.isWritten(v))
}

// isWritten says whether an operation of the joint graph so far writes the memory of a value.
func (j *joiner) isWritten(v graph.Value) bool {
	for ; j.again.looked < len(j.graph.Nodes); j.again.looked++ {
		for _, written := range j.graph.Nodes[j.again.looked].Mutates {
			j.again.written[keyOf(rootOf(written))] = true
		}
	}
	return j.again.written[keyOf(rootOf(v))]
}

// checkUnwritten refuses to compute again what reads memory of inputs that was written since.
func (j *joiner) checkUnwritten(n *graph.Node) {
	for _, v := range argumentsOf(n) {
		if input, given := rootOf(v).(*graph.Input); given && j.again.err == nil && j.isWritten(v) {
			j.again.err = refuse("a checkpoint reads the input %s, which the graph changes", input.Name)
		}
	}
}

// placeIn marks the nodes of a graph from one on as part of a checkpoint.
func placeIn(checkpoint *graph.Checkpoint, nodes []*graph.Node) {
	for _, n := range nodes {
		n.Checkpoint = checkpoint
	}
}
