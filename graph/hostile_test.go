package graph

import (
	"errors"
	"math/rand"
	"testing"
)

// hostileValues are arguments of every type, in range or not.
func hostileValues(g *Graph) []Value {
	plainInput := g.AddTensor("x", plain(Float32, 2, 3))
	return []Value{
		plainInput, g.AddTensor("y", plain(Int64, 3)), g.AddTensor("z", plain(Float32)), g.AddTensor("e", plain(Complex64, 0, 2)),
		g.AddTensor("c", plain(BFloat16, 2, 3, 4, 5)), g.AddTensor("u", plain(Uint16, 2)), g.AddTensor("b", plain(Bool, 2, 3)),
		g.AddTensor("broken", Meta{DType: Float32, Sizes: Statics(2, 2), Strides: Statics(1)}),
		g.AddTensor("huge", Meta{DType: Float32, Sizes: Statics(1<<40, 1<<40), Strides: Statics(1<<40, 1)}),
		g.AddInt("n", g.Shapes.NewSymbol(3, 0, SymbolSource{Dim: -1})), g.AddFloat("f"),
		nil, true, false, int64(0), int64(1), int64(-1), int64(7), int64(-1 << 63), int64(1<<63 - 1), 0.5, -1e300, 1i, "mean", "same", "",
		Float32, Bool, NoDType, DType(200), Device{}, Device{Type: "cuda", Index: 3}, Device{Type: "cuda", Index: -1}, Strided, ContiguousFormat, ChannelsLast,
		MemoryFormat("x"), List{}, List{Items: []Value{int64(1)}}, List{Items: []Value{int64(0), int64(-1)}, Tuple: true},
		List{Items: []Value{plainInput, plainInput}}, List{Items: []Value{plainInput, nil}, Tuple: true}, List{Items: []Value{nil, "x"}},
		Slice{}, Slice{int64(1), nil, int64(0)}, Slice{plainInput, nil, nil}, Ellipsis{}, Static(4), Static(-4), (*Output)(nil), struct{}{},
	}
}

// hostileTargets are all targets that the tables know by name, in the forms callers use.
func hostileTargets() []string {
	var targets []string
	for name := range ops() {
		targets = append(targets, "torch."+name, "Tensor."+name)
	}
	for name := range functions() {
		targets = append(targets, name, "torch."+name, "Tensor."+name)
	}
	return append(targets, Targets()...)
}

// TestHostileCalls calls everything with nonsense: the answer is a valid node or ErrUnknown, never a panic.
func TestHostileCalls(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for _, target := range hostileTargets() {
		for range 4 {
			hostileCall(t, target, random)
		}
	}
}

func hostileCall(t *testing.T, target string, random *rand.Rand) {
	g := NewGraph("hostile")
	values := hostileValues(g)
	args := make([]Value, random.Intn(5))
	for i := range args {
		args[i] = values[random.Intn(len(values))]
		if i == 0 && random.Intn(4) > 0 {
			args[i] = values[random.Intn(7)]
		}
	}
	var keywords []Keyword
	for _, name := range []string{"dim", "keepdim", "dtype", "size", "other", "out"} {
		if random.Intn(12) == 0 {
			keywords = append(keywords, Keyword{name, values[random.Intn(len(values))]})
		}
	}
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s(%v, %v) panics: %v", target, args, keywords, r)
		}
	}()
	_, err := g.Call(target, args, keywords, State{GradMode: random.Intn(2) == 0})
	if err != nil && !errors.Is(err, ErrUnknown) {
		t.Errorf("%s(%v): %v", target, args, err)
	}
	if err := g.Verify(); err != nil {
		t.Errorf("%s(%v): %v", target, args, err)
	}
	if lowered, err := g.Lower(); err != nil {
		t.Errorf("%s(%v): %v", target, args, err)
	} else if lowered.String() == "" {
		t.Error("no text")
	}
}

// TestNoCallLosesItsOut calls everything with out=: a table that dropped it would lose what the program writes there.
func TestNoCallLosesItsOut(t *testing.T) {
	random := rand.New(rand.NewSource(2))
	for _, target := range hostileTargets() {
		for count := 1; count < 5; count++ {
			g := NewGraph("out")
			values := hostileValues(g)
			args := []Value{values[0]}
			for len(args) < count {
				args = append(args, values[random.Intn(len(values))])
			}
			node, err := g.Call(target, args, []Keyword{{"out", values[0]}}, State{})
			if err == nil && len(node.Mutates) == 0 {
				t.Errorf("%s(%v, out=...) forgets out", target, args)
			}
		}
	}
}
