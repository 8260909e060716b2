package graph

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

func plain(d DType, sizes ...int64) Meta {
	var shapes *ShapeEnvironment
	return Meta{DType: d, Device: Device{Type: "cpu"}, Sizes: Statics(sizes...), Strides: shapes.contiguousStrides(Statics(sizes...)), Flags: FlagLeaf}
}

var gradMode = State{GradMode: true}

func mustCall(t *testing.T, g *Graph, target string, args []Value, keywords ...Keyword) *Node {
	t.Helper()
	n, err := g.Call(target, args, keywords, gradMode)
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return n
}

// checkGolden compares text with a file under testdata.
func checkGolden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s differs; got:\n%s", path, text)
	}
}

func seedGraph(t *testing.T) *Graph {
	g := NewGraph("f")
	x, y := g.AddTensor("x", plain(Float32, 4)), g.AddTensor("y", plain(Float32, 4))
	z := mustCall(t, g, "operator.add", []Value{x, y})
	r := mustCall(t, g, "torch.relu", []Value{z.Result})
	m := mustCall(t, g, "operator.mul", []Value{r.Result, int64(2)})
	g.Outputs = []Value{m.Result}
	return g
}

func TestSeedGraph(t *testing.T) {
	g := seedGraph(t)
	lowered, err := g.Lower()
	if err != nil {
		t.Fatal(err)
	}
	for _, graph := range []*Graph{g, lowered} {
		if err := graph.Verify(); err != nil {
			t.Error(err)
		}
	}
	checkGolden(t, "seed.txt", g.String()+lowered.String())
}

func TestUnknownLeavesGraphAlone(t *testing.T) {
	g := NewGraph("f")
	x := g.AddTensor("x", plain(Float32, 4))
	for _, target := range []string{"torch.nonzero", "Tensor.item", "no.such", ""} {
		if _, err := g.Call(target, []Value{x}, nil, gradMode); !errors.Is(err, ErrUnknown) || len(g.Nodes) != 0 {
			t.Errorf("%s: error %v, %d nodes", target, err, len(g.Nodes))
		}
	}
}

func TestMayRaise(t *testing.T) {
	g := NewGraph("f")
	x, n := g.AddTensor("x", plain(Float32, 4)), g.AddTensor("n", plain(Int64, 4))
	for _, c := range []struct {
		target string
		args   []Value
		want   bool
	}{
		{"operator.floordiv", []Value{n, n}, true},
		{"operator.floordiv", []Value{x, n}, false},
		{"operator.truediv", []Value{n, n}, false},
		{"operator.getitem", []Value{x, n}, true},
		{"operator.add", []Value{n, n}, false},
	} {
		if got := mustCall(t, g, c.target, c.args).MayRaise; got != c.want {
			t.Errorf("%s: %v", c.target, got)
		}
	}
}
