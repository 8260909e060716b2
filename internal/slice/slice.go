// Package slice holds what the standard package slices lacks: functions that make one slice from another.
package slice

import "slices"

// Map applies a function to each item, in order.
func Map[T, U any](items []T, f func(T) U) []U {
	results := make([]U, len(items))
	for i, item := range items {
		results[i] = f(item)
	}
	return results
}

// TryMap applies a function that may fail to each item, in order, and stops at the first error.
func TryMap[T, U any](items []T, f func(T) (U, error)) (results []U, err error) {
	results = make([]U, len(items))
	for i, item := range items {
		if results[i], err = f(item); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// MapAll applies a function that not every item fits; false, with no results, at the first that does not.
func MapAll[T, U any](items []T, f func(T) (U, bool)) (results []U, ok bool) {
	results = make([]U, len(items))
	for i, item := range items {
		if results[i], ok = f(item); !ok {
			return nil, false
		}
	}
	return results, true
}

// Filter gives the items that a test holds for, in order; nil for none. The given slice stays as it is.
func Filter[T any](items []T, keep func(T) bool) (kept []T) {
	for _, item := range items {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// FlatMap joins the slices that a function gives for the items; nil for none.
func FlatMap[T, U any](items []T, f func(T) []U) (results []U) {
	for _, item := range items {
		results = append(results, f(item)...)
	}
	return results
}

// Find gives the first item that a test holds for.
func Find[T any](items []T, test func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(items, test); i >= 0 {
		return items[i], true
	}
	return found, false
}
