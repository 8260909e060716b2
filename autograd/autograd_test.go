package autograd

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fusee/graph"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// builder writes the graphs of the tests.
type builder struct {
	t *testing.T
	*graph.Graph
}

func newBuilder(t *testing.T, name string) builder { return builder{t, graph.NewGraph(name)} }

func contiguous(sizes ...int64) graph.Meta {
	strides, stride := make([]int64, len(sizes)), int64(1)
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = stride
		stride *= sizes[i]
	}
	return graph.Meta{DType: graph.Float32, Device: graph.Device{Type: "cpu"}, Sizes: graph.Statics(sizes...), Strides: graph.Statics(strides...)}
}

// leaf adds an input that requires gradients, data one that does not.
func (b builder) leaf(name string, sizes ...int64) graph.Value {
	m := contiguous(sizes...)
	m.RequiresGrad, m.Flags = true, graph.FlagLeaf
	return b.AddTensor(name, m)
}

func (b builder) data(name string, sizes ...int64) graph.Value {
	return b.AddTensor(name, contiguous(sizes...))
}

func (b builder) call(target string, args ...graph.Value) graph.Value {
	b.t.Helper()
	node, err := b.Call(target, args, nil, graph.State{GradMode: true})
	if err != nil {
		b.t.Fatalf("%s: %v", target, err)
	}
	return node.Result
}

func (b builder) differentiate(outputs ...graph.Value) (*Training, error) {
	return b.differentiateWithin(1, outputs...)
}

func (b builder) differentiateWithin(budget float64, outputs ...graph.Value) (*Training, error) {
	b.Outputs = outputs
	return Differentiate(b.Graph, graph.State{GradMode: true}, Options{MemoryBudget: budget})
}

func (t *Training) text() string {
	var b strings.Builder
	for _, g := range []*graph.Graph{t.Functional, t.Joint, t.Forward, t.Backward, t.Outputs} {
		if g != nil {
			b.WriteString(g.String() + "\n")
		}
	}
	return b.String()
}

// programs are graphs whose stages are kept in golden files.
func programs() map[string]func(builder) []graph.Value {
	return map[string]func(builder) []graph.Value{
		"perceptron": func(b builder) []graph.Value {
			x := b.data("x", 4, 8)
			hidden := b.call("torch._C._nn.gelu", b.call("torch._C._nn.linear", x, b.leaf("up", 16, 8), b.leaf("bias", 16)))
			return []graph.Value{b.call("torch.mean", b.call("torch._C._nn.linear", hidden, b.leaf("down", 8, 16)))}
		},
		"in_place": func(b builder) []graph.Value {
			x := b.leaf("x", 4, 4)
			product := b.call("operator.mul", x, x)
			transposed := b.call("torch.t", product)
			b.call("Tensor.add_", product, x)
			return []graph.Value{b.call("torch.exp", transposed)}
		},
		"views": func(b builder) []graph.Value {
			x := b.leaf("x", 4, 4)
			product := b.call("operator.mul", x, 3.0)
			return []graph.Value{b.call("torch.t", product), product, b.call("torch.t", x)}
		},
		"statistics": func(b builder) []graph.Value {
			x, weight, bias := b.data("x", 4, 3, 5), b.leaf("weight", 3), b.leaf("bias", 3)
			mean, variance := b.data("mean", 3), b.data("variance", 3)
			return []graph.Value{b.call("torch.relu", b.call("torch.batch_norm", x, weight, bias, mean, variance, true, 0.1, 1e-5, true))}
		},
	}
}

// TestStages keeps what every pass makes of some graphs.
func TestStages(t *testing.T) {
	for name, write := range programs() {
		b := newBuilder(t, name)
		training, err := b.differentiate(write(b)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(training.text()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != training.text() {
			t.Errorf("%s differs; got:\n%s", path, training.text())
		}
	}
}

// TestPointwiseWorkIsDoneAgain keeps the argument of a chain of pointwise operations rather than what lies between them.
func TestPointwiseWorkIsDoneAgain(t *testing.T) {
	b := newBuilder(t, "chain")
	x := b.leaf("x", 64)
	training, err := b.differentiate(b.call("torch.sin", b.call("torch.exp", b.call("torch.tanh", x))))
	if err != nil {
		t.Fatal(err)
	}
	if len(training.Saved) != 1 || !training.Saved[0].Input {
		t.Errorf("kept %v, want the input alone", training.Saved)
	}
}

// TestRefusals gives reasons for what has no derivative here.
func TestRefusals(t *testing.T) {
	cases := map[string]func(builder) graph.Value{
		"has no derivative in the table": func(b builder) graph.Value { return b.call("torch.nextafter", b.leaf("x", 4), b.data("y", 4)) },
		"gradients flow through an input that the graph changes": func(b builder) graph.Value {
			buffer := b.data("buffer", 4)
			b.call("Tensor.add_", buffer, int64(1))
			return b.call("operator.mul", b.leaf("x", 4), buffer)
		},
	}
	for reason, write := range cases {
		b := newBuilder(t, "refused")
		_, err := b.differentiate(write(b))
		var refusal Refusal
		if !errors.As(err, &refusal) || !strings.Contains(string(refusal), reason) {
			t.Errorf("%q instead of %q", err, reason)
		}
	}
}

// TestNeeds lists the results that each gradient depends on.
func TestNeeds(t *testing.T) {
	b := newBuilder(t, "two")
	x, y := b.leaf("x", 4), b.leaf("y", 4)
	training, err := b.differentiate(b.call("torch.exp", x), b.call("operator.mul", x, y))
	if err != nil {
		t.Fatal(err)
	}
	if len(training.Needs) != 2 || len(training.Needs[0]) != 2 || len(training.Needs[1]) != 1 || training.Needs[1][0] != 1 {
		t.Errorf("needs %v", training.Needs)
	}
}

// TestCut finds the cheapest cut of a network in which the first bottleneck is not it.
func TestCut(t *testing.T) {
	n := newNetwork()
	a, b, c := n.node(), n.node(), n.node()
	n.connect(flowSource, a, 9)
	n.connect(a, b, 4)
	n.connect(a, c, 4)
	n.connect(b, flowSink, 3)
	n.connect(c, flowSink, 2)
	reached := n.cut()
	if !reached[a] || !reached[b] || !reached[c] || reached[flowSink] {
		t.Errorf("reached %v, want all but the sink", reached)
	}
}

// TestFormulas parses every formula of the table.
func TestFormulas(t *testing.T) {
	for _, target := range graph.DifferentiableTargets() {
		derivative, _ := graph.DerivativeOf(target)
		texts := []string{derivative.Instead}
		for _, g := range slices.Concat(derivative.Gradients, derivative.Again) {
			texts = append(texts, g.Formula)
		}
		for _, text := range texts {
			if _, err := parseFormula(text); text != "" && err != nil {
				t.Errorf("%s: %v", target, err)
			}
		}
	}
	for _, wrong := range []string{"", "grad *", "f(grad", "(a", "a b", "[1,"} {
		if _, err := parseFormula(wrong); err == nil {
			t.Errorf("%q is a formula", wrong)
		}
	}
}

// TestCrossEntropyKeepsTwoNumbersOfEachRow besides the scores, and no table of probabilities.
func TestCrossEntropyKeepsTwoNumbersOfEachRow(t *testing.T) {
	b := newBuilder(t, "loss")
	target := contiguous(64)
	target.DType = graph.Int64
	scores := b.call("operator.mul", b.leaf("x", 64, 1000), b.leaf("y", 64, 1000))
	training, err := b.differentiate(b.call("torch._C._nn.cross_entropy_loss", scores, b.AddTensor("target", target)))
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range training.Forward.Outputs[training.Results:] {
		if m := metaOf(input); Bytes(m) > Bytes(metaOf(scores)) || m.Dim() > 1 && m.Sizes[1].Hint > 1 {
			t.Errorf("keeps %s", m)
		}
	}
}

// TestBudgets has the product of two matrices kept before a sine of it, whose bytes are as many, and neither where nothing may be.
func TestBudgets(t *testing.T) {
	for budget, want := range map[float64]int{0: 0, 0.5: 1, 1: 2} {
		b := newBuilder(t, "budget")
		x, weight := b.leaf("x", 16, 16), b.leaf("weight", 16, 16)
		product := b.call("operator.matmul", x, weight)
		training, err := b.differentiateWithin(budget, b.call("torch.sum", b.call("operator.matmul", b.call("torch.sin", product), weight)))
		if err != nil {
			t.Fatal(err)
		}
		made := slices.DeleteFunc(slices.Clone(training.Saved), func(place Place) bool { return place.Input })
		if len(made) != want {
			t.Errorf("budget %v: kept %v, want %d values that were made: %v", budget, training.Saved, want, training.Why)
		}
	}
}
