package backend

import (
	"slices"

	"fusee/graph"
)

// sameSize compares sizes without leaving a guard: symbolic ones are the same when their canonical expressions are.
func sameSize(a, b graph.Size) bool {
	if a.Expr == nil || b.Expr == nil {
		return a.Expr == nil && b.Expr == nil && a.Hint == b.Hint
	}
	return a.String() == b.String()
}

func isStatic(size graph.Size, value int64) bool { return size.Expr == nil && size.Hint == value }

// sameSizes compares lists.
func sameSizes(a, b []graph.Size) bool { return slices.EqualFunc(a, b, sameSize) }

// product multiplies sizes' values at capture.
func product(sizes []graph.Size) int64 {
	result := int64(1)
	for _, size := range sizes {
		result *= size.Hint
	}
	return result
}

// contiguousStrides gives row-major strides; dimensions of size 0 count as 1.
func contiguousStrides(shapes *graph.ShapeEnvironment, sizes []graph.Size) []graph.Size {
	strides := make([]graph.Size, len(sizes))
	next := graph.Static(1)
	for dimension := len(sizes) - 1; dimension >= 0; dimension-- {
		strides[dimension] = next
		if !isStatic(sizes[dimension], 0) {
			next = shapes.Multiply(next, sizes[dimension])
		}
	}
	return strides
}
