package autograd

import (
	"errors"
	"strings"
	"testing"

	"fusee/graph"
)

// ask appends the question for gradients of a sum of an output with respect to inputs.
func (b builder) ask(output graph.Value, keep bool, inputs ...graph.Value) []graph.Value {
	var infos []graph.OutputInfo
	for _, input := range inputs {
		m, _ := graph.MetaOf(input)
		infos = append(infos, graph.OutputInfo{Meta: b.Shapes.GradientMeta(m)})
	}
	node := b.Append(graph.GradientsTarget, []graph.Value{graph.List{Items: []graph.Value{output}}, graph.List{Items: inputs},
		graph.List{Items: []graph.Value{nil}}, keep}, nil, infos, nil)
	node.Unrecorded = true
	gradients := make([]graph.Value, len(infos))
	for k := range infos {
		gradients[k] = node.Output(k)
	}
	return gradients
}

func (b builder) expand(outputs ...graph.Value) (*Whole, error) {
	b.Outputs = outputs
	return Expand(b.Graph, graph.State{GradMode: true})
}

// TestExpand writes a step: the gradient stands where it was asked for, and the update of the weight comes behind all that reads it.
func TestExpand(t *testing.T) {
	b := newBuilder(t, "step")
	x, weight := b.data("x", 4, 8), b.leaf("weight", 2, 8)
	loss := b.call("torch.sum", b.call("torch.tanh", b.call("torch._C._nn.linear", x, weight)))
	gradient := b.ask(loss, false, weight)[0]
	if _, err := b.Call("Tensor.sub_", []graph.Value{weight, gradient}, nil, graph.State{}); err != nil {
		t.Fatal(err)
	}
	whole, err := b.expand(loss)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Freed) != 1 || whole.Graph.HasGradients() {
		t.Errorf("freed %v in\n%s", whole.Freed, whole.Graph)
	}
	last := whole.Graph.Nodes[len(whole.Graph.Nodes)-1]
	if !strings.HasPrefix(last.Target, "aten.sub_.") || !graph.SameValue(last.Mutates[0], whole.Graph.Inputs[1]) {
		t.Errorf("the last operation is %s", last.Target)
	}
}

// TestExpandGivesMemoryOfTheirOwn to gradients that are equal.
func TestExpandGivesMemoryOfTheirOwn(t *testing.T) {
	b := newBuilder(t, "sum")
	x, y := b.leaf("x", 4), b.leaf("y", 4)
	loss := b.call("torch.sum", b.call("operator.add", x, y))
	whole, err := b.expand(b.ask(loss, false, x, y)...)
	if err != nil {
		t.Fatal(err)
	}
	if first, second := rootOf(whole.Graph.Outputs[0]), rootOf(whole.Graph.Outputs[1]); graph.SameValue(first, second) {
		t.Errorf("both gradients are %s", graph.FormatValue(first))
	}
}

// TestExpandRefuses what only autograd can do.
func TestExpandRefuses(t *testing.T) {
	cases := map[string]func(builder) []graph.Value{
		"an output can still be differentiated": func(b builder) []graph.Value {
			x := b.leaf("x", 4)
			b.ask(b.call("torch.sum", x), false, x)
			return []graph.Value{b.call("torch.exp", x)}
		},
		"was written before gradients were asked for": func(b builder) []graph.Value {
			x, y := b.leaf("x", 4), b.data("y", 4)
			loss := b.call("torch.sum", b.call("operator.mul", x, y))
			b.call("Tensor.add_", y, int64(1))
			return b.ask(loss, false, x)
		},
		"gradients flow into the memory of an input": func(b builder) []graph.Value {
			x, y := b.leaf("x", 4), b.data("y", 4)
			gradient := b.ask(b.call("torch.sum", x), false, x)
			b.call("Tensor.add_", y, x)
			return gradient
		},
		"has no derivative in the table": func(b builder) []graph.Value {
			x := b.leaf("x", 4)
			return b.ask(b.call("torch.sum", b.call("torch.nextafter", x, b.data("y", 4))), false, x)
		},
		"nextafter.default has no derivative in the table": func(b builder) []graph.Value {
			x := b.leaf("x", 4)
			overwritten := b.call("torch.nextafter", x, b.data("y", 4))
			return b.ask(b.call("torch.sum", b.call("Tensor.copy_", overwritten, x)), false, x)
		},
	}
	for reason, write := range cases {
		b := newBuilder(t, "refused")
		_, err := b.expand(write(b)...)
		var refusal Refusal
		if !errors.As(err, &refusal) || !strings.Contains(string(refusal), reason) {
			t.Errorf("%q instead of %q", err, reason)
		}
	}
}
