package autograd

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"fusee/graph"
)

// policy says what a cut may compute again and what keeping costs.
type policy struct {
	// everything may be computed again that gives the same twice, not only what fusion makes free.
	everything bool
	// chosen values are kept, and cost no bytes.
	chosen map[key]bool
	// scale is what a byte costs. Inputs and chosen values cost 1.
	scale int64
}

// repeatsAtAnyCost says whether a node gives the same when it runs again. Operators outside the table are not known to.
func repeatsAtAnyCost(n *graph.Node) bool {
	_, known := graph.LookUp(n.Target)
	return known && len(n.Mutates) == 0 && !n.Random && n.Function == nil
}

// within lists what is kept within a budget: from what a minimum cut keeps, what is dearest to compute again for its bytes. What cannot be computed
// again is kept whatever the budget is. A greater budget keeps at least as many bytes.
func (p *partitioner) within(budget float64) []graph.Value {
	fewest := p.cut(policy{scale: 1})
	if budget >= 1 {
		return fewest
	}
	free := policy{everything: true, chosen: map[key]bool{}, scale: p.valueCount() + 1} // so that all inputs cost less than a byte
	least := p.cut(free)
	room := budget*float64(madeBytes(fewest)) - float64(madeBytes(least))
	for _, v := range least {
		free.chosen[keyOf(v)] = true
	}
	for _, v := range p.dearest(fewest) {
		if bytes := float64(Bytes(metaOf(v))); !free.chosen[keyOf(v)] && bytes <= room {
			free.chosen[keyOf(v)] = true
			room -= bytes
		}
	}
	return p.cut(free)
}

// valueCount counts the values of the joint graph.
func (p *partitioner) valueCount() int64 {
	count := len(p.joint.Inputs)
	for _, n := range p.joint.Nodes {
		count += len(n.Outputs)
	}
	return int64(count)
}

// madeBytes sums the bytes of values that are no inputs.
func madeBytes(values []graph.Value) int64 {
	bytes := int64(0)
	for _, v := range values {
		if _, made := v.(*graph.Output); made {
			bytes += Bytes(metaOf(v))
		}
	}
	return bytes
}

// dearest sorts the values of a cut that are made by what computing them again from the others takes for each of their bytes, most first.
func (p *partitioner) dearest(cut []graph.Value) []graph.Value {
	there := keysOf(cut)
	worth := map[key]float64{}
	var made []graph.Value
	for _, v := range cut {
		if _, isOutput := v.(*graph.Output); !isOutput {
			continue
		}
		made = append(made, v)
		for _, n := range behind(v, there) {
			worth[keyOf(v)] += work(n) / float64(Bytes(metaOf(v)))
		}
	}
	slices.SortStableFunc(made, func(a, b graph.Value) int { return cmp.Compare(worth[keyOf(b)], worth[keyOf(a)]) })
	return made
}

func keysOf(values []graph.Value) map[key]bool {
	keys := map[key]bool{}
	for _, v := range values {
		keys[keyOf(v)] = true
	}
	return keys
}

// behind lists the nodes that run to compute a value again where the others of a set, and the inputs, are there.
func behind(v graph.Value, there map[key]bool) []*graph.Node {
	var nodes []*graph.Node
	seen := map[*graph.Node]bool{}
	var visit func(graph.Value)
	visit = func(v graph.Value) {
		o, made := v.(*graph.Output)
		if !made || seen[o.Node] {
			return
		}
		seen[o.Node] = true
		nodes = append(nodes, o.Node)
		for _, argument := range argumentsOf(o.Node) {
			if !there[keyOf(argument)] {
				visit(argument)
			}
		}
	}
	visit(v)
	return nodes
}

// work estimates the operations of a node: of a matrix product of m·k and k·n elements m·k·n, which is the root of the product of the numbers of
// elements of all three; of others the elements that they read and write.
func work(n *graph.Node) float64 {
	product, sum := 1.0, 0.0
	for _, v := range append(argumentsOf(n), n.Results()...) {
		if m, isTensor := graph.MetaOf(v); isTensor {
			elements := float64(Bytes(m)) / float64(m.DType.Bytes())
			sum += elements
			if m.Dim() > 1 { // a bias is not multiplied
				product *= elements
			}
		}
	}
	op, known := graph.LookUp(n.Target)
	switch {
	case known && op.Kind == graph.KindMatrix:
		return max(math.Sqrt(product), sum)
	case isView(n):
		return 0
	}
	return sum
}

// mostReaders is how many operators that read a kept value are named.
const mostReaders = 3

// explain says of each value that is kept what reads it, and why it is not computed again.
func (p *partitioner) explain(kept []graph.Value) {
	readers := p.readers(len(kept))
	there := keysOf(kept)
	for i, v := range kept {
		p.d.result.Why = append(p.d.result.Why, neededBy(readers[i])+"; "+p.whyNotAgain(v, there))
	}
}

// readers lists for each of the first inputs of backward the operators that read it or views of it, each once.
func (p *partitioner) readers(count int) [][]string {
	readers := make([][]string, count)
	for _, n := range p.d.result.Backward.Nodes {
		if isView(n) {
			continue
		}
		for _, v := range argumentsOf(n) {
			input, given := rootOf(v).(*graph.Input)
			if given && input.Index < count && !slices.Contains(readers[input.Index], operatorName(n)) {
				readers[input.Index] = append(readers[input.Index], operatorName(n))
			}
		}
	}
	return readers
}

func neededBy(readers []string) string {
	switch more := len(readers) - mostReaders; {
	case len(readers) == 0:
		return "handed out as a gradient"
	case more > 0:
		return fmt.Sprintf("needed by %s and %d more", strings.Join(readers[:mostReaders], ", "), more)
	}
	return "needed by " + strings.Join(readers, ", ")
}

// whyNotAgain says why a value is kept instead of being computed again from the others and the inputs.
func (p *partitioner) whyNotAgain(v graph.Value, there map[key]bool) string {
	o, made := v.(*graph.Output)
	if !made {
		return "it is an input, which the caller mostly holds anyway"
	}
	nodes := behind(v, there)
	dearest := slices.MaxFunc(nodes, func(a, b *graph.Node) int { return cmp.Compare(workBeyondFusion(a), workBeyondFusion(b)) })
	switch {
	case slices.ContainsFunc(nodes, func(n *graph.Node) bool { return n.Random }):
		return "recomputing it would draw other random numbers"
	case slices.ContainsFunc(nodes, func(n *graph.Node) bool { return len(n.Mutates) > 0 }):
		return "recomputing it would write memory again"
	case workBeyondFusion(dearest) > 0:
		return "recomputing it would run " + operatorName(dearest)
	case o.Node.Checkpoint != nil:
		return "it leaves a checkpoint"
	case p.stored[keyOf(v)]:
		return "recomputing it would take a kernel of its own, as an operator of the library reads it"
	}
	return "it has fewer bytes than what it is computed from"
}

// workBeyondFusion is the work of a node that fusion does not make free.
func workBeyondFusion(n *graph.Node) float64 {
	if repeats(n) {
		return 0
	}
	return work(n)
}
