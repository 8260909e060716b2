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
			if slices.ContainsFunc(g.Parameters, func(name string) bool { return op.Schema.Position(name) < 0 }) {
				t.Errorf("%s has no parameters %v", target, g.Parameters)
			}
		}
	}
	checkGolden(t, "derivatives.txt", listing.String())
}
