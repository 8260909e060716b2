package graph

import (
	"slices"
	"strings"
	"testing"
)

// TestDerivativeTable keeps a listing of the derivatives, which the tests of gradients go through row by row, and checks that each row names an
// operator and parameters that there are.
func TestDerivativeTable(t *testing.T) {
	var listing strings.Builder
	for _, target := range DifferentiableTargets() {
		derivative, _ := DerivativeOf(target)
		op, ok := LookUp(target)
		if !ok {
			t.Errorf("%s has a derivative and is not in the table", target)
			continue
		}
		listing.WriteString(target + "\n")
		if derivative.Instead != "" {
			listing.WriteString("    instead: " + derivative.Instead + "\n")
		}
		if derivative.Written != "" {
			listing.WriteString("    written: " + derivative.Written + "\n")
		}
		for _, g := range derivative.Gradients {
			listing.WriteString("    " + strings.Join(g.Parameters, ", ") + ": " + g.Formula + "\n")
			if g.LeastNorm != "" {
				listing.WriteString("        of least norm: " + g.LeastNorm + "\n")
			}
			if slices.ContainsFunc(g.Parameters, func(name string) bool { return op.Schema.Position(name) < 0 }) {
				t.Errorf("%s has no parameters %v", target, g.Parameters)
			}
		}
	}
	checkGolden(t, "derivatives.txt", listing.String())
}

// TestKeepsNothing tells operators that backward goes through twice in PyTorch, without retain_graph, from those where it raises the second time.
func TestKeepsNothing(t *testing.T) {
	for target, want := range map[string]bool{
		"add.Tensor": true, "sub.Tensor": true, "neg.default": true, "sum.dim_IntList": true, "mean.default": true, "clone.default": true, "view.default": true,
		"slice.Tensor": true, "select.int": true, "cat.default": true, "stack.default": true, "flip.default": true, "cumsum.default": true, "floor.default": true,
		"unbind.int": true, "split.Tensor": true, "repeat.default": true, "mul.Scalar": true,
		"mul.Tensor": false, "div.Tensor": false, "relu.default": false, "exp.default": false, "masked_fill.Scalar": false, "linear.default": false, "nextafter.default": false,
		"cross_entropy_loss.default": false,
	} {
		if KeepsNothing("aten."+target) != want {
			t.Errorf("%s keeps nothing: %v", target, !want)
		}
	}
}
