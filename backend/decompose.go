package backend

import "fusee/graph"

// decompose handles operators that are made of formulas and reductions.
func (b *builder) decompose(node *graph.Node) bool {
	return false
}
