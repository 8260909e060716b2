package graph

import (
	"strings"
	"testing"
)

func onGPU(dtype DType, sizes ...int64) Meta {
	s := Statics(sizes...)
	return Meta{DType: dtype, Device: Device{Type: "cuda"}, Sizes: s, Strides: NewShapeEnvironment().contiguousStrides(s)}
}

// drawnText draws in kernels what a program of dropouts and fills draws.
func drawnText(t *testing.T, fused bool, program func(g *Graph, x *Input)) string {
	t.Helper()
	g := NewGraph("g")
	x := g.AddTensor("x", onGPU(BFloat16, 6, 4))
	program(g, x)
	drawn, err := g.Draw(Drawing{Fused: fused, On: func(string) bool { return true }}, State{})
	if err != nil {
		t.Fatal(err)
	}
	if err := drawn.Verify(); err != nil {
		t.Fatal(err)
	}
	return drawn.String()
}

func call(t *testing.T, g *Graph, target string, args []Value, keywords ...Keyword) Value {
	t.Helper()
	node, err := g.Call(target, args, keywords, State{})
	if err != nil {
		t.Fatal(err)
	}
	return node.Output(0)
}

// TestDraws sees to it that the generator's state is read ahead of all that draws, and again after what the library draws; that what begins where
// an input does says so; and that one seed serves all with fused numbers.
func TestDraws(t *testing.T) {
	program := func(g *Graph, x *Input) {
		first := call(t, g, "aten.dropout.default", []Value{x, 0.5, true})
		doubled := call(t, g, "aten.mul.Tensor", []Value{first, 2.0})
		second := call(t, g, "aten.dropout.default", []Value{doubled, 0.25, true})
		noise := call(t, g, "aten.randn_like.default", []Value{second})
		third := call(t, g, "aten.rand_like.default", []Value{noise}, Keyword{"dtype", Float64})
		g.Outputs = []Value{second, third}
	}
	text := drawnText(t, false, program)
	for _, want := range []string{
		"fusee._random.generator_state([x], [24, 4, 2, 0, 0, 24, 4, 2, -1, 0], device=cuda:0)",
		"uniform(generator_state_0, 0, -1, [6, 4], [4, 1], dtype=torch.float32, device=cuda:0)",
		"uniform(generator_state_0, 1, 8, [6, 4], [4, 1], dtype=torch.float32, device=cuda:0)",
		"aten.randn_like.default(",
		"fusee._random.generator_state([], [24, 2, 8, -1, 0], device=cuda:0)",
		"0, 1, [6, 4], [4, 1], dtype=torch.float64, device=cuda:0)",
	} {
		place := strings.Index(text, want)
		if place < 0 {
			t.Fatalf("%s does not follow in\n%s", want, drawnText(t, false, program))
		}
		text = text[place:]
	}
	text = drawnText(t, true, program)
	if strings.Count(text, "aten.randint.low(") != 1 || strings.Count(text, "uniform(randint_0, ") != 5 || strings.Count(text, " random") != 1 {
		t.Error(text)
	}
}

// TestWhatIsNotDrawn leaves to the library what it is not known for how eager draws it.
func TestWhatIsNotDrawn(t *testing.T) {
	for name, program := range map[string]func(g *Graph, x *Input){
		"everything is dropped": func(g *Graph, x *Input) {
			g.Outputs = []Value{call(t, g, "aten.dropout.default", []Value{x, 1.0, true})}
		},
		"bounds that are rounded": func(g *Graph, x *Input) { call(t, g, "aten.uniform_.default", []Value{x, 0.0, 0.3}) },
		"transposed input": func(g *Graph, x *Input) {
			g.Outputs = []Value{call(t, g, "aten.dropout.default", []Value{call(t, g, "aten.t.default", []Value{x}), 0.5, true})}
		},
	} {
		if text := drawnText(t, false, program); strings.Contains(text, "fusee._random") {
			t.Errorf("%s\n%s", name, text)
		}
	}
}
