package graph

import "slices"

// mapped applies a function to each item.
func mapped[T, U any](items []T, f func(T) U) []U {
	results := make([]U, len(items))
	for i, item := range items {
		results[i] = f(item)
	}
	return results
}

// allMapped applies a function that not every item fits; false where one does not.
func allMapped[T, U any](items []T, f func(T) (U, bool)) (results []U, ok bool) {
	results = make([]U, len(items))
	for i, item := range items {
		if results[i], ok = f(item); !ok {
			return nil, false
		}
	}
	return results, true
}

// find gives the first item that a test holds for.
func find[T any](items []T, test func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(items, test); i >= 0 {
		return items[i], true
	}
	return found, false
}

// withSize is a shape with another size in one dimension.
func withSize(sizes []Size, d int, size Size) []Size {
	sizes = slices.Clone(sizes)
	sizes[d] = size
	return sizes
}
