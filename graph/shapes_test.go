package graph

import (
	"math/rand"
	"strconv"
	"testing"
)

func TestSizeArithmetic(t *testing.T) {
	e := NewShapeEnvironment()
	s0, s1 := e.NewSymbol(6, 2, SymbolSource{}), e.NewSymbol(4, 2, SymbolSource{Dim: 1})
	product := e.Multiply(s0, s1)
	for _, c := range []struct {
		got  Size
		want string
		hint int64
	}{
		{e.Add(s0, s0), "2*s0", 12},
		{e.Subtract(e.Add(s0, s1), s0), "s1", 4},
		{e.Subtract(s0, s0), "0", 0},
		{e.Multiply(e.Add(s0, Static(1)), e.Subtract(s0, Static(1))), "s0*s0 - 1", 35},
		{e.FloorDivide(product, s1), "s0", 6},
		{e.FloorDivide(e.Add(product, s1), s1), "s0 + 1", 7},
		{e.FloorDivide(e.Multiply(Static(4), s0), Static(2)), "2*s0", 12},
		{e.FloorDivide(e.Add(s0, Static(1)), Static(2)), "(s0 + 1)//2", 3},
		{e.Modulo(product, s0), "0", 0},
		{e.Modulo(s0, Static(4)), "s0 % 4", 2},
		{e.Maximum(s0, Static(1)), "s0", 6},
		{e.Minimum(s0, e.Add(s0, s1)), "s0", 6},
		{e.Maximum(s1, s0), "max(s0, s1)", 6},
		{e.Multiply(Static(2), e.FloorDivide(s0, Static(4))), "2*(s0//4)", 2},
		{e.Subtract(Static(3), s0), "-1*s0 + 3", -3},
		{e.Product([]Size{s0, Static(3), s1}), "3*s0*s1", 72},
	} {
		if c.got.String() != c.want || c.got.Hint != c.hint {
			t.Errorf("got %s (%d), want %s (%d)", c.got, c.got.Hint, c.want, c.hint)
		}
	}
	if len(e.Guards()) != 0 {
		t.Errorf("arithmetic left guards: %v", e.Guards())
	}
}

func TestDecisionsRecordGuards(t *testing.T) {
	e := NewShapeEnvironment()
	s0, s1 := e.NewSymbol(6, 2, SymbolSource{}), e.NewSymbol(4, 2, SymbolSource{Dim: 1})
	if e.IsOne(s0) || e.IsZero(s0) || e.Equal(s0, Static(-3)) || !e.LessEqual(Static(2), s0) || !e.Less(s0, e.Add(s0, s1)) {
		t.Error("a decision that the lower bound settles came out wrong")
	}
	if len(e.Guards()) != 0 {
		t.Errorf("settled decisions left guards: %v", e.Guards())
	}
	if e.Equal(s0, s1) || !e.Less(s1, s0) || !e.LessEqual(s0, Static(10)) || !e.Equal(e.Multiply(Static(2), s0), e.Multiply(Static(3), s1)) {
		t.Error("a decision disagrees with the hints")
	}
	e.Equal(s0, s1)
	checkGolden(t, "guards.txt", e.String()+"\n")
	for _, g := range e.Guards() {
		if !g.Holds(map[string]int64{"s0": 6, "s1": 4}) {
			t.Errorf("%s does not hold for the hints", g)
		}
	}
	if e.Guards()[0].Holds(map[string]int64{"s0": 4, "s1": 4}) || e.Guards()[0].Holds(nil) {
		t.Error("a guard holds where it must not")
	}
}

// TestRandomExpressions compares canonical forms with direct evaluation at other symbol values.
func TestRandomExpressions(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	for range 2000 {
		e := NewShapeEnvironment()
		a, b := e.NewSymbol(5, 0, SymbolSource{}), e.NewSymbol(3, 0, SymbolSource{})
		size, evaluate := randomSize(random, e, a, b, 4)
		if got := evaluate(5, 3); got != size.Hint {
			t.Fatalf("%s: hint %d, direct %d", size, size.Hint, got)
		}
		x, y := random.Int63n(20)+1, random.Int63n(20)+1
		if size.Expr == nil {
			if got := evaluate(x, y); got != size.Hint {
				t.Fatalf("static %d, direct %d at %d, %d", size.Hint, got, x, y)
			}
			continue
		}
		got, ok := size.Expr.Evaluate(map[string]int64{"s0": x, "s1": y})
		if want := evaluate(x, y); ok && got != want {
			t.Fatalf("%s = %d at %d, %d, direct %d", size, got, x, y, want)
		}
	}
}

func randomSize(random *rand.Rand, e *ShapeEnvironment, a, b Size, depth int) (Size, func(x, y int64) int64) {
	switch kind := random.Intn(9); {
	case depth == 0 || kind < 2:
		return a, func(x, _ int64) int64 { return x }
	case kind == 2:
		return b, func(_, y int64) int64 { return y }
	case kind == 3:
		n := random.Int63n(5)
		return Static(n), func(_, _ int64) int64 { return n }
	default:
		l, left := randomSize(random, e, a, b, depth-1)
		r, right := randomSize(random, e, a, b, depth-1)
		divisor := random.Int63n(4) + 1
		switch kind {
		case 4:
			return e.Add(l, r), func(x, y int64) int64 { return left(x, y) + right(x, y) }
		case 5:
			return e.Subtract(l, r), func(x, y int64) int64 { return left(x, y) - right(x, y) }
		case 6:
			return e.Multiply(l, r), func(x, y int64) int64 { return left(x, y) * right(x, y) }
		case 7:
			return e.FloorDivide(l, Static(divisor)), func(x, y int64) int64 { return floorDivide(left(x, y), divisor) }
		}
		return e.Modulo(l, Static(divisor)), func(x, y int64) int64 { return left(x, y) - divisor*floorDivide(left(x, y), divisor) }
	}
}

// symbolicInput makes a contiguous tensor with the named symbols as leading sizes.
func symbolicInput(g *Graph, name string, hints []int64, static ...int64) *Input {
	meta := plain(Float32)
	for d, hint := range hints {
		meta.Sizes = append(meta.Sizes, g.Shapes.NewSymbol(hint, 2, SymbolSource{Input: len(g.Inputs), Dim: d}))
	}
	meta.Sizes = append(meta.Sizes, Statics(static...)...)
	meta.Strides = g.Shapes.contiguousStrides(meta.Sizes)
	return g.AddTensor(name, meta)
}

func TestSymbolicCalls(t *testing.T) {
	g := NewGraph("symbolic")
	x := symbolicInput(g, "x", []int64{5, 7}, 8)
	w, b := g.AddTensor("w", plain(Float32, 16, 8)), g.AddTensor("b", plain(Float32, 16))
	n := func(target string, args []Value, keywords ...Keyword) Value {
		return mustCall(t, g, target, args, keywords...).Result
	}
	linear := n("torch._C._nn.linear", []Value{x, w, b})
	activated := n("torch._C._nn.gelu", []Value{linear})
	heads := n("Tensor.view", []Value{activated, x.Meta.Sizes[0], int64(-1), int64(4), int64(4)})
	turned := n("Tensor.transpose", []Value{heads, int64(1), int64(2)})
	scores := n("operator.matmul", []Value{turned, n("Tensor.transpose", []Value{turned, int64(-1), int64(-2)})})
	weights := n("torch.softmax", []Value{scores, int64(-1)})
	mixed := n("torch.matmul", []Value{weights, turned})
	joined := n("torch.reshape", []Value{n("Tensor.transpose", []Value{mixed, int64(1), int64(2)}), List{Items: []Value{x.Meta.Sizes[0], x.Meta.Sizes[1], int64(16)}}})
	pair := n("torch.cat", []Value{List{Items: []Value{joined, linear}}, int64(1)})
	last := n("operator.getitem", []Value{pair, List{Items: []Value{Slice{}, int64(-1)}, Tuple: true}})
	y := symbolicInput(g, "y", []int64{5}, 1)
	g.Outputs = []Value{n("operator.add", []Value{last, y}), n("torch.sum", []Value{pair})}
	lowered, err := g.Lower()
	if err != nil {
		t.Fatal(err)
	}
	for _, graph := range []*Graph{g, lowered} {
		if err := graph.Verify(); err != nil {
			t.Error(err)
		}
	}
	checkGolden(t, "symbolic.txt", g.String()+lowered.String())
}

func BenchmarkCall(b *testing.B) {
	for i := range b.N {
		g := NewGraph("bench" + strconv.Itoa(i))
		x := g.AddTensor("x", plain(Float32, 64, 64))
		for range 100 {
			if _, err := g.Call("operator.add", []Value{x, x}, nil, gradMode); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkBuildTable(b *testing.B) {
	for range b.N {
		buildOpTable()
	}
}

func TestLowerEndIsOneGuard(t *testing.T) {
	e := NewShapeEnvironment()
	size, number := e.NewSymbol(6, 0, SymbolSource{}), e.NewSymbol(9, Unbounded, SymbolSource{Dim: -1})
	if e.IsOne(size) || e.IsZero(size) || !e.Less(Static(1), size) || e.Equal(e.Multiply(Static(4), size), Static(1)) {
		t.Error("a decision disagrees with the hints")
	}
	if !e.Less(Static(5), number) || !e.LessEqual(Static(3), number) || e.Equal(number, Static(6)) {
		t.Error("a decision disagrees with the hints")
	}
	if got, want := e.String(), "2 <= s0\n7 <= s1"; got != want {
		t.Errorf("guards\n%s\nwant\n%s", got, want)
	}
}

func TestPinnedSymbolsAreReplaced(t *testing.T) {
	e := NewShapeEnvironment()
	a, b, c := e.NewSymbol(6, 0, SymbolSource{}), e.NewSymbol(6, 0, SymbolSource{}), e.NewSymbol(3, 0, SymbolSource{})
	sum := e.Add(b, e.Modulo(c, Static(2)))
	if !e.Equal(a, b) || !e.Equal(c, Static(3)) || !e.Equal(b, a) {
		t.Error("a decision disagrees with the hints")
	}
	if got := e.Canonical(sum); got.String() != "s0 + 1" || got.Hint != 7 {
		t.Errorf("got %s (%d), want s0 + 1 (7)", got, got.Hint)
	}
	if len(e.Guards()) != 2 {
		t.Errorf("the same decision left guards twice: %v", e.Guards())
	}
	if !e.Equal(a, Static(6)) || e.Canonical(b).String() != "6" {
		t.Errorf("s1 follows s0 to %s, want 6", e.Canonical(b))
	}
}

// TestCanonicalKeepsValues compares random expressions before and after pinning, under values that satisfy the guards.
func TestCanonicalKeepsValues(t *testing.T) {
	random := rand.New(rand.NewSource(5))
	for round := range 200 {
		e := NewShapeEnvironment()
		symbols := []Size{e.NewSymbol(4, 0, SymbolSource{}), e.NewSymbol(4, 0, SymbolSource{}), e.NewSymbol(2, 0, SymbolSource{})}
		expression := symbols[round%3]
		for range 4 {
			operand := symbols[random.Intn(3)]
			switch random.Intn(4) {
			case 0:
				expression = e.Add(expression, operand)
			case 1:
				expression = e.Multiply(expression, operand)
			case 2:
				expression = e.FloorDivide(expression, Static(int64(random.Intn(3)+1)))
			default:
				expression = e.Maximum(e.Subtract(expression, operand), Static(1))
			}
		}
		e.Equal(symbols[0], symbols[1])
		e.Equal(e.Multiply(Static(2), symbols[2]), symbols[0])
		for half := int64(0); half < 5; half++ {
			values := map[string]int64{"s0": 2 * half, "s1": 2 * half, "s2": half}
			before, known := (&Expr{Op: ExprAdd, Args: []*Expr{constant(0), expression.polynomial().expr()}}).Evaluate(values)
			after, knownAfter := (&Expr{Op: ExprAdd, Args: []*Expr{constant(0), e.Canonical(expression).polynomial().expr()}}).Evaluate(values)
			if !known || !knownAfter || before != after {
				t.Fatalf("%s is %d, %s is %d under %v", expression, before, e.Canonical(expression), after, values)
			}
		}
	}
}

// TestPinnedQuotientsAreReplaced looks at sizes that are 1 though no symbol can be solved for: the dimension broadcasts.
func TestPinnedQuotientsAreReplaced(t *testing.T) {
	e := NewShapeEnvironment()
	a, b := e.NewSymbol(2, 0, SymbolSource{}), e.NewSymbol(3, 0, SymbolSource{})
	half := e.FloorDivide(e.Add(a, Static(1)), Static(2))
	product := e.Multiply(e.FloorDivide(b, Static(2)), half)
	if !e.IsOne(half) || !e.IsOne(product) {
		t.Error("a decision disagrees with the hints")
	}
	for _, c := range []struct {
		size Size
		want string
	}{{half, "1"}, {product, "1"}, {e.Multiply(half, Static(3)), "3"}, {e.Add(half, a), "s0 + 1"}, {e.Add(product, b), "s1 + 1"}} {
		if got := e.Canonical(c.size).String(); got != c.want {
			t.Errorf("%s is written %s, want %s", c.size, got, c.want)
		}
	}
}
