package backend

import (
	"testing"

	"fusee/bytecode"
	"fusee/graph"
)

// elementBytes is the memory of a contiguous tensor.
func elementBytes(dtype graph.DType, sizes []int64) int64 {
	bytes := int64(dtype.Bytes())
	for _, size := range sizes {
		bytes *= size
	}
	return bytes
}

// plannedPeak is the most memory that a plan of static sizes holds at a time, without its inputs.
func plannedPeak(c *compilation) int64 {
	held, now, peak := map[int]int64{}, int64(0), int64(0)
	made := map[int]*tensor{}
	for t, slot := range c.plan.slotOf {
		if t.root == t && t.producer != nil && t.producer.kind == library && t.producer.node.Outputs[0].Relation.Kind == graph.RelationNew {
			made[slot] = t
		}
	}
	for _, step := range c.plan.steps {
		switch step.object[0] {
		case bytecode.Object("alloc"):
			var sizes []int64
			for _, size := range step.object[5].(*bytecode.List).Items {
				sizes = append(sizes, size.(int64))
			}
			dtype, _ := graph.DTypeOfScalarType(int(step.object[2].(int64)))
			held[step.slots[0]] = elementBytes(dtype, sizes)
			now += held[step.slots[0]]
			peak = max(peak, now)
		case bytecode.Object("aten"):
			for _, slot := range step.object[4].(*bytecode.List).Items {
				if t := made[int(slot.(int64))]; t != nil {
					held[int(slot.(int64))] = elementBytes(t.meta.DType, graph.Hints(t.meta.Sizes))
					now += held[int(slot.(int64))]
				}
			}
			peak = max(peak, now)
		case bytecode.Object("free"):
			now -= held[int(step.object[1].(int64))]
		}
	}
	return peak
}

// eagerPeak is the same for eager, if every result is dropped after its last use.
func eagerPeak(g *graph.Graph) int64 {
	owner := map[valueKey]valueKey{} // whose memory a value is in
	last := map[valueKey]int{}
	own := func(value graph.Value) (valueKey, bool) {
		key, ok := keyOf(value)
		return owner[key], ok && owner[key].node != nil
	}
	for index, node := range g.Nodes {
		for _, value := range tensorArguments(node) {
			if key, ok := own(value); ok {
				last[key] = index
			}
		}
		for output, info := range node.Outputs {
			key := valueKey{node: node, index: output}
			owner[key] = key
			if info.Relation.Kind != graph.RelationNew {
				of, _ := keyOf(info.Relation.Of)
				owner[key] = owner[of]
			}
			last[owner[key]] = index
		}
	}
	for _, output := range g.Outputs {
		if key, ok := own(output); ok {
			last[key] = len(g.Nodes)
		}
	}
	return followPeak(g, owner, last)
}

func followPeak(g *graph.Graph, owner map[valueKey]valueKey, last map[valueKey]int) int64 {
	now, peak := int64(0), int64(0)
	live := map[valueKey]int64{}
	for index, node := range g.Nodes {
		for output, info := range node.Outputs {
			if key := (valueKey{node: node, index: output}); owner[key] == key {
				live[key] = elementBytes(info.Meta.DType, graph.Hints(info.Meta.Sizes))
				now += live[key]
			}
		}
		peak = max(peak, now)
		for key, bytes := range live {
			if last[key] <= index {
				now -= bytes
				delete(live, key)
			}
		}
	}
	return peak
}

// TestPeakOfMemory compares plans of random graphs with eager. Kernels may run in another order than their operations did, which costs little and seldom.
func TestPeakOfMemory(t *testing.T) {
	const graphs = 400
	above := 0
	for seed := range uint64(graphs) {
		compiler := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}, Check: true, Disjoint: true})
		state, err := compiler.run(randomGraph(seed, 3+int(seed)%30), "plan")
		if err != nil {
			t.Fatal(err)
		}
		planned, eager := plannedPeak(state), eagerPeak(state.graph)
		if planned > eager {
			above++
		}
		if 4*planned > 5*eager {
			t.Errorf("seed %d: %d bytes, eager %d\n%s\n%v", seed, planned, eager, state.graph, state.result.Steps)
		}
	}
	if above > graphs/50 {
		t.Errorf("%d of %d plans need more memory than eager", above, graphs)
	}
}
