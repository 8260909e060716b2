package autograd

import (
	"strings"

	"fusee/graph"
)

// overwritten is what in-place operations on intermediates left of the program's memory: autograd refuses to go back through an operation that kept
// something which was written since, but for what the writing operation itself keeps, which it copies.
type overwritten struct {
	// memory names the values that own memory and were written since by what they are in the functional graph.
	memory map[key]key
	// writers says of nodes that compute what is stored what stood there before.
	writers map[*graph.Node]key
}

func newOverwritten() *overwritten {
	return &overwritten{memory: map[key]key{}, writers: map[*graph.Node]key{}}
}

// note marks what a value stood on before these nodes computed what is stored there.
func (o *overwritten) note(before graph.Value, writers []*graph.Node) {
	memory := keyOf(rootOf(before))
	o.memory[memory] = memory
	for _, n := range writers {
		o.writers[n] = memory
	}
}

// follow marks what stands in another graph for the values that a node made; now is what stands for the node.
func (o *overwritten) follow(n, now *graph.Node, values func(graph.Value) graph.Value) {
	if memory, ok := o.writers[n]; ok {
		o.writers[now] = memory
	}
	for i := range n.Outputs {
		v := n.Output(i)
		if memory, ok := o.memory[keyOf(v)]; ok {
			o.memory[keyOf(values(v))] = memory
		}
	}
}

// reads says whether a node reads elements that were written since by another operation than this writer.
func (o *overwritten) reads(n, writer *graph.Node) bool {
	if readsSizes(n) {
		return false
	}
	for _, v := range argumentsOf(n) {
		memory, ok := o.memory[keyOf(rootOf(v))]
		if copied, writes := o.writers[writer]; ok && !(writes && memory == copied) {
			return true
		}
	}
	return false
}

// checkRead refuses to go back through an operation of which backward, from a node of the joint graph on, reads what the program has overwritten.
func (j *joiner) checkRead(en entry, start int) error {
	for _, n := range j.graph.Nodes[start:] {
		if j.overwritten.reads(n, en.source) {
			return refuse("what backward through %s reads was overwritten", en.node.Target)
		}
	}
	return nil
}

// noteRead marks what nodes of the joint graph, from this one on, read.
func (j *joiner) noteRead(start int) {
	for _, n := range j.graph.Nodes[start:] {
		if readsSizes(n) {
			continue
		}
		for _, v := range argumentsOf(n) {
			j.read[keyOf(v)], j.read[keyOf(rootOf(v))] = true, true
		}
	}
}

// readsSizes tells operators that read no elements.
func readsSizes(n *graph.Node) bool { return strings.HasSuffix(operatorName(n), "_like") }
