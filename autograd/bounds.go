package autograd

import "fusee/graph"

// The gradients of clamp to bounds that are tensors, of least norm: a value that is one of the bounds shares the gradient with it, unless the
// bounds are one or cross. The arguments are the gradient, the value and the bounds, either of which may be nil.

// clamped is the gradient of the value.
func clamped(e *emitter, args []graph.Value) graph.Value {
	gradient, value, low, high := args[0], args[1], args[2], args[3]
	switch {
	case high == nil:
		return e.ofHigher(gradient, value, low)
	case low == nil:
		return e.ofLower(gradient, value, high)
	}
	outside := e.infix("|", e.infix("<", value, low), e.infix(">", value, high))
	tie := e.infix("|", e.infix("==", value, low), e.infix("==", value, high))
	return e.either(outside, int64(0), e.either(e.infix("&", tie, e.infix("<", low, high)), e.half(gradient), gradient))
}

// ofLowerBound is the gradient of the lower bound.
func ofLowerBound(e *emitter, args []graph.Value) graph.Value {
	gradient, value, low, high := args[0], args[1], args[2], args[3]
	if high == nil {
		return e.ofHigher(gradient, low, value)
	}
	under := e.infix("&", e.infix("<", value, low), e.infix("<=", low, high))
	tie := e.infix("&", e.infix("==", value, low), e.infix("<", low, high))
	return e.either(under, gradient, e.either(tie, e.half(gradient), int64(0)))
}

// ofUpperBound is the gradient of the upper bound, which wins where the bounds cross.
func ofUpperBound(e *emitter, args []graph.Value) graph.Value {
	gradient, value, low, high := args[0], args[1], args[2], args[3]
	if low == nil {
		return e.ofLower(gradient, high, value)
	}
	over := e.infix("&", e.infix(">", value, high), e.infix("<=", low, high))
	tie := e.infix("&", e.infix("==", value, high), e.infix("<", low, high))
	return e.either(e.infix("|", over, e.infix("<", high, low)), gradient, e.either(tie, e.half(gradient), int64(0)))
}

// ofHigher is the gradient of one of two values of which the higher one was taken.
func (e *emitter) ofHigher(gradient, one, other graph.Value) graph.Value {
	return e.either(e.infix("==", one, other), e.half(gradient), e.either(e.infix("<", one, other), int64(0), gradient))
}

// ofLower is the gradient of one of two values of which the lower one was taken.
func (e *emitter) ofLower(gradient, one, other graph.Value) graph.Value {
	return e.either(e.infix("==", one, other), e.half(gradient), e.either(e.infix(">", one, other), int64(0), gradient))
}

func (e *emitter) either(condition, one, other graph.Value) graph.Value {
	return e.call("where", condition, one, other)
}

func (e *emitter) half(gradient graph.Value) graph.Value { return e.infix("/", gradient, int64(2)) }
