package backend

import (
	"testing"

	"fusee/bytecode"
	"fusee/graph"
)

// groupsOf compiles a graph up to the choice of memory.
func groupsOf(t *testing.T, g *graph.Graph) *compilation {
	t.Helper()
	compiler := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}, Check: true, Disjoint: true})
	state, err := compiler.run(g, "plan")
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// allocations counts the buffers that a plan makes.
func allocations(c *compilation) int {
	count := 0
	for _, step := range c.plan.steps {
		if step.object[0] == bytecode.Object("alloc") {
			count++
		}
	}
	return count
}

// barred is a graph whose first formula is stored, since a library call writes an input between it and the second one.
func barred(second func(g *graph.Graph, meta graph.Meta, made graph.Value) graph.Value) *graph.Graph {
	g := graph.NewGraph("f")
	meta := tensorMeta(graph.Float32, 6, 6)
	x, y := g.AddTensor("x", meta), g.AddTensor("y", meta)
	made := aten(g, "aten.exp.default", meta, x)
	written := g.Append("aten.index_fill_.int_Scalar", []graph.Value{y, int64(0), y, int64(1)}, nil, []graph.OutputInfo{{Meta: meta, Relation: graph.SameAs(y)}}, nil)
	written.Mutates = []graph.Value{y}
	g.Outputs = []graph.Value{second(g, meta, made)}
	return g
}

func TestResultTakesMemoryOfWhatItIsTheLastToRead(t *testing.T) {
	state := groupsOf(t, barred(func(g *graph.Graph, meta graph.Meta, made graph.Value) graph.Value {
		return aten(g, "aten.neg.default", meta, made)
	}))
	if made := allocations(state); made != 1 {
		t.Errorf("%d buffers for two results of which one is left\n%v", made, state.result.Steps)
	}
}

func TestResultTakesNoMemoryThatIsReadElsewhere(t *testing.T) {
	transposed := tensorMeta(graph.Float32, 6, 6)
	transposed.Strides[0], transposed.Strides[1] = transposed.Strides[1], transposed.Strides[0]
	cases := map[string]func(g *graph.Graph, meta graph.Meta, made graph.Value) graph.Value{
		"at another index": func(g *graph.Graph, meta graph.Meta, made graph.Value) graph.Value {
			view := g.Append("aten.t.default", []graph.Value{made}, nil, []graph.OutputInfo{{Meta: transposed, Relation: graph.ViewOf(made)}}, nil).Output(0)
			return aten(g, "aten.add.Tensor", meta, made, view)
		},
		"by the caller": func(g *graph.Graph, meta graph.Meta, made graph.Value) graph.Value {
			g.Outputs = append(g.Outputs, made)
			return graph.List{Items: []graph.Value{made, aten(g, "aten.neg.default", meta, made)}}
		},
		"as another type": func(g *graph.Graph, meta graph.Meta, made graph.Value) graph.Value {
			return aten(g, "aten.isnan.default", tensorMeta(graph.Bool, 6, 6), made)
		},
	}
	for name, second := range cases {
		g := barred(second)
		if list, ok := g.Outputs[0].(graph.List); ok {
			g.Outputs = list.Items
		}
		state := groupsOf(t, g)
		if made := allocations(state); made != 2 {
			t.Errorf("%s: %d buffers\n%v", name, made, state.result.Steps)
		}
	}
}

func TestVerifierNoticesSharedMemory(t *testing.T) {
	g := barred(func(g *graph.Graph, meta graph.Meta, made graph.Value) graph.Value {
		g.Outputs = append(g.Outputs, made)
		return graph.List{Items: []graph.Value{made, aten(g, "aten.neg.default", meta, made)}}
	})
	g.Outputs = g.Outputs[0].(graph.List).Items
	state, err := New(Options{Emitters: map[string]Emitter{"cpu": wasmEmitter{}}}).run(g, "reuse")
	if err != nil {
		t.Fatal(err)
	}
	first, last := state.groups[0].members[0].outputs[0], state.groups[len(state.groups)-1].members[0].outputs[0]
	last.into, last.reuses = first, true
	if state.verifyMemory() == nil {
		t.Error("a returned value's memory may be taken")
	}
}
