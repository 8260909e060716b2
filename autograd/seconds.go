package autograd

import "fusee/graph"

// convolutionSecond gives the gradients of what convolution_backward computes, with respect to the gradient that it is given, the input and the weight: a
// convolution is linear in its input and in its weight. The arguments are the gradients of its results, and its own.
func convolutionSecond(e *emitter, args []graph.Value) graph.Value {
	grads, given, input, weight, settings := args[0].(graph.List).Items, args[1], args[2], args[3], args[4:]
	ofInput, ofWeight, ofBias := grads[0], grads[1], grads[2]
	convolution := func(x, w graph.Value) graph.Value {
		return e.call("convolution", append([]graph.Value{x, w, nil}, settings...)...)
	}
	backward := func(x, w graph.Value, wanted int) graph.Value {
		mask := graph.List{Items: []graph.Value{wanted == 0, wanted == 1, false}}
		results := e.call("convolution_backward", append(append([]graph.Value{given, x, w, nil}, settings...), mask)...)
		return e.item(results, int64(wanted))
	}
	var again graph.Value
	inputs, weights := e.call("zeros_like", input), e.call("zeros_like", weight)
	if ofInput != nil {
		ofInput = e.plain(ofInput)
		again, weights = convolution(ofInput, weight), backward(ofInput, weight, 1)
	}
	if ofWeight != nil {
		ofWeight = e.plain(ofWeight)
		again, inputs = e.sum(again, convolution(input, ofWeight)), backward(input, ofWeight, 0)
	}
	if ofBias != nil {
		again = e.sum(again, e.call("expand", e.overChannels(ofBias, given), sizesOf(metaOf(given))))
	}
	return graph.List{Items: []graph.Value{again, inputs, weights}}
}

// sum adds two values, of which the first may be missing.
func (e *emitter) sum(a, b graph.Value) graph.Value {
	if a == nil {
		return b
	}
	return e.call("add", a, b)
}

// overChannels shapes a value for each channel as another tensor has its channels.
func (e *emitter) overChannels(v, like graph.Value) graph.Value {
	sizes := make([]graph.Size, metaOf(like).Dim())
	for i := range sizes {
		sizes[i] = graph.Static(1)
	}
	sizes[1] = metaOf(like).Sizes[1]
	return e.shaped(v, sizes)
}

// picked takes from images what maxima were found at: the arguments are the images, and the indices within each.
func picked(e *emitter, args []graph.Value) graph.Value {
	flat := func(v graph.Value) graph.Value {
		sizes := metaOf(v).Sizes
		outer := len(sizes) - 2
		area := e.graph.Shapes.Product(sizes[outer:])
		return e.shaped(v, append(append([]graph.Size(nil), sizes[:outer]...), area))
	}
	return e.shaped(e.call("gather", flat(args[0]), int64(-1), flat(args[1])), metaOf(args[1]).Sizes)
}
