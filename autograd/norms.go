package autograd

import "fusee/graph"

// The gradients of norms in operators that can be differentiated again: of x minus its mean, divided by its deviation.

// centred gives what a norm makes of x along dimensions, and the factor that it multiplies with.
func (e *emitter) centred(x, dims, eps graph.Value) (normal, scale graph.Value) {
	difference := e.infix("-", x, e.call("mean", x, dims, true))
	scale = e.call("rsqrt", e.infix("+", e.call("mean", e.infix("*", difference, difference), dims, true), eps))
	return e.infix("*", difference, scale), scale
}

// throughNorm is the gradient of x, of that of the norm.
func (e *emitter) throughNorm(gradient, normal, scale, dims graph.Value) graph.Value {
	mean, product := e.call("mean", gradient, dims, true), e.call("mean", e.infix("*", gradient, normal), dims, true)
	return e.infix("*", scale, e.infix("-", e.infix("-", gradient, mean), e.infix("*", normal, product)))
}

// weighted multiplies with a weight, which may be missing.
func (e *emitter) weighted(gradient, weight graph.Value) graph.Value {
	if weight == nil {
		return gradient
	}
	return e.infix("*", gradient, e.wide(weight))
}

// layerNormAgain: the arguments are the gradient, the input, the weight, the sizes that are normalised, and eps.
func layerNormAgain(e *emitter, args []graph.Value) graph.Value {
	gradient, x, weight := e.wide(args[0]), e.wide(args[1]), args[2]
	dims := graph.List{}
	for i := range args[3].(graph.List).Items {
		dims.Items = append(dims.Items, int64(-1-i))
	}
	normal, scale := e.centred(x, dims, args[4])
	return graph.List{Items: []graph.Value{e.throughNorm(e.weighted(gradient, weight), normal, scale, dims), e.infix("*", gradient, normal), gradient}}
}

// perChannel are the gradients of a norm whose weight and bias belong to channels.
func (e *emitter) perChannel(ofInput, gradient, normal graph.Value) graph.Value {
	dims := otherThanChannels(gradient)
	return graph.List{Items: []graph.Value{ofInput, e.call("sum", e.infix("*", gradient, normal), dims), e.call("sum", gradient, dims)}}
}

// otherThanChannels lists the dimensions of a tensor but the second one.
func otherThanChannels(v graph.Value) graph.Value {
	dims := graph.List{Items: []graph.Value{int64(0)}}
	for i := 2; i < metaOf(v).Dim(); i++ {
		dims.Items = append(dims.Items, int64(i))
	}
	return dims
}

// channels shapes what each channel has one of, which may be missing, as another tensor has its channels.
func (e *emitter) channels(v, like graph.Value) graph.Value {
	if v == nil {
		return nil
	}
	return e.overChannels(e.wide(v), like)
}

// groupNormAgain: the arguments are the gradient, the input, the weight, the number of images, that of groups, and eps.
func groupNormAgain(e *emitter, args []graph.Value) graph.Value {
	gradient, x := e.wide(args[0]), e.wide(args[1])
	sizes := metaOf(x).Sizes
	images, known := graph.SizeOf(args[3])
	groups, grouped := graph.SizeOf(args[4])
	if !known || !grouped {
		return e.fail(refuse("gradients of group_norm with these groups"))
	}
	shape := []graph.Size{images, groups, e.graph.Shapes.FloorDivide(e.graph.Shapes.Product(sizes[1:]), groups)}
	dims := graph.List{Items: []graph.Value{int64(2)}}
	normal, scale := e.centred(e.shaped(x, shape), dims, args[5])
	through := e.throughNorm(e.shaped(e.weighted(gradient, e.channels(args[2], x)), shape), normal, scale, dims)
	return e.perChannel(e.shaped(through, sizes), gradient, e.shaped(normal, sizes))
}

// batchNormAgain: the arguments are the gradient, the input, the weight, the running mean and variance, whether the batch's own are taken, and eps.
func batchNormAgain(e *emitter, args []graph.Value) graph.Value {
	gradient, x := e.wide(args[0]), e.wide(args[1])
	weighted := e.weighted(gradient, e.channels(args[2], x))
	if args[5] == true {
		dims := otherThanChannels(x)
		normal, scale := e.centred(x, dims, args[6])
		return e.perChannel(e.throughNorm(weighted, normal, scale, dims), gradient, normal)
	}
	scale := e.call("rsqrt", e.infix("+", e.channels(args[4], x), args[6]))
	normal := e.infix("*", e.infix("-", x, e.channels(args[3], x)), scale)
	return e.perChannel(e.infix("*", weighted, scale), gradient, normal)
}
