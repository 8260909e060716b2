package autograd

import (
	"testing"

	"fusee/graph"
)

// TestFunction differentiates a torch.autograd.Function by its own backward, which reads what forward made.
func TestFunction(t *testing.T) {
	b := newBuilder(t, "function")
	x := b.leaf("x", 4)
	inner := newBuilder(t, "inner")
	inner.Inputs = b.Inputs
	made := inner.call("torch.exp", x)
	seed := inner.Append("fusee._gradients.seed", nil, nil, []graph.OutputInfo{{Meta: contiguous(4)}}, nil)
	carried := inner.call("operator.mul", seed.Result, made)
	function := &graph.Function{Forward: inner.Nodes[:1], Results: []graph.Value{made}, Backwards: []*graph.Backward{
		{Seeds: []*graph.Node{seed}, Nodes: inner.Nodes[2:], Gradients: []graph.Value{carried}}}}
	function.FindFormals()
	if len(function.Formals) != 1 || !graph.SameValue(function.Formals[0], x) {
		t.Fatalf("it reads %v of outside", function.Formals)
	}
	m := contiguous(4)
	m.RequiresGrad = true
	node := b.Append(graph.FunctionTarget, []graph.Value{x}, nil, []graph.OutputInfo{{Meta: m}}, nil)
	node.Function, node.Captured = function, function.Formals
	training, err := b.differentiate(node.Output(0))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, n := range training.Joint.Nodes {
		targets = append(targets, n.Target)
	}
	if len(targets) != 2 || targets[0] != "aten.exp.default" || targets[1] != "aten.mul.Tensor" {
		t.Errorf("the joint graph is %v", targets)
	}
	if training.Functional.Nodes[0].Function != function {
		t.Error("a replay would not call the function")
	}
}
