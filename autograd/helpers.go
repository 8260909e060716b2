package autograd

import (
	"math"

	"fusee/graph"
	"fusee/internal/slice"
)

// helper is a function that formulas call beside operators. The arguments are as many as the formulas give.
type helper func(e *emitter, args []graph.Value) graph.Value

var helpers = map[string]helper{
	"zero": func(e *emitter, args []graph.Value) graph.Value { return e.zeros(args[0]) },
	"zeros_of": func(e *emitter, args []graph.Value) graph.Value {
		return e.eachNumber(args[0], func(graph.Size) graph.Size { return graph.Static(0) })
	},
	"negated": func(e *emitter, args []graph.Value) graph.Value {
		return e.eachNumber(args[0], func(n graph.Size) graph.Size { return e.graph.Shapes.Subtract(graph.Static(0), n) })
	},
	"sizes": func(_ *emitter, args []graph.Value) graph.Value { return sizesOf(metaOf(args[0])) },
	"size": func(_ *emitter, args []graph.Value) graph.Value {
		return sizeValue(metaOf(args[0]).Sizes[args[1].(int64)])
	},
	"count":                    func(e *emitter, args []graph.Value) graph.Value { return sizeValue(e.count(args[0], args[1])) },
	"shaped":                   func(e *emitter, args []graph.Value) graph.Value { return e.shaped(args[0], metaOf(args[1]).Sizes) },
	"plain":                    func(e *emitter, args []graph.Value) graph.Value { return e.plain(args[0]) },
	"before":                   before,
	"contiguous":               func(e *emitter, args []graph.Value) graph.Value { return e.contiguous(args[0]) },
	"rows":                     func(e *emitter, args []graph.Value) graph.Value { return e.rows(args[0]) },
	"bias_rows":                func(e *emitter, args []graph.Value) graph.Value { return e.biasRows(args[0], args[1]) },
	"spread":                   func(e *emitter, args []graph.Value) graph.Value { return e.spread(args[0], args[1], args[2], args[3]) },
	"inverse":                  inversePermutation,
	"area":                     area,
	"start_of":                 func(e *emitter, args []graph.Value) graph.Value { return e.bound(args, graph.Static(0)) },
	"end_of":                   func(e *emitter, args []graph.Value) graph.Value { return e.bound(args, e.length(args)) },
	"within":                   within,
	"inside":                   inside,
	"below":                    below,
	"above":                    above,
	"clamped":                  clamped,
	"of_lower_bound":           ofLowerBound,
	"of_upper_bound":           ofUpperBound,
	"filled":                   filled,
	"pieces":                   pieces,
	"placed":                   placed,
	"shared":                   shared,
	"averaged":                 averaged,
	"wanted":                   wanted,
	"bias_sizes":               biasSizes,
	"class_loss":               classLoss,
	"cross_entropy":            crossEntropy,
	"ungathered":               ungathered,
	"batch_statistics":         batchStatistics,
	"dropped":                  dropped,
	"added_mask":               addedMask,
	"variance_factor":          varianceFactor,
	"norm_gradient":            normGradient,
	"softmax_gradient":         softmaxGradient,
	"log_softmax_gradient":     logSoftmaxGradient,
	"relu_gradient":            reluGradient,
	"rms_norm_gradient":        rmsNormGradient,
	"rms_norm_weight_gradient": rmsNormWeightGradient,
	"glu_gradient":             gluGradient,
	"gelu_second":              geluSecond,
	"repeats_summed":           repeatsSummed,
	"interleaved_summed":       interleavedSummed,
	"cumprod_gradient":         cumprodGradient,
	"products_of_others":       productsOfOthers,
	"multivariate_digamma":     multivariateDigamma,
	"inner_product":            innerProduct,
	"padding_of":               paddingOf,
	"scatter_reduce_gradients": scatterReduceGradients,
	"convolution_second":       convolutionSecond,
	"layer_norm_again":         layerNormAgain,
	"group_norm_again":         groupNormAgain,
	"batch_norm_again":         batchNormAgain,
	"recurrent_gradients":      recurrentGradients,
	"picked":                   picked,
	"image": func(_ *emitter, args []graph.Value) graph.Value {
		sizes := metaOf(args[0]).Sizes
		return graph.List{Items: []graph.Value{sizeValue(sizes[len(sizes)-2]), sizeValue(sizes[len(sizes)-1])}}
	},
	"matmul_left": func(e *emitter, args []graph.Value) graph.Value {
		return e.matmulGradient(args[0], args[1], args[2], true)
	},
	"matmul_right": func(e *emitter, args []graph.Value) graph.Value {
		return e.matmulGradient(args[0], args[1], args[2], false)
	},
}

// eachNumber maps an int or a list of ints, whose values may change from call to call.
func (e *emitter) eachNumber(v graph.Value, f func(graph.Size) graph.Size) graph.Value {
	if list, ok := v.(graph.List); ok {
		return graph.List{Items: slice.Map(list.Items, func(item graph.Value) graph.Value { return e.eachNumber(item, f) })}
	}
	return sizeValue(f(e.integer(v)))
}

// integer reads an int, whose value may change from call to call.
func (e *emitter) integer(v graph.Value) graph.Size {
	n, ok := graph.SizeOf(v)
	if !ok {
		e.fail(refuse("the formula of a gradient computes with something that is no int"))
	}
	return n
}

// dimensions marks the dimensions that a dim argument names; None and an empty list name all.
func dimensions(rank int, dim graph.Value) []bool {
	marked := make([]bool, rank)
	list, isList := dim.(graph.List)
	if n, ok := dim.(int64); ok {
		list, isList = graph.List{Items: []graph.Value{n}}, true
	}
	for i := range marked {
		marked[i] = !isList || len(list.Items) == 0
	}
	for _, item := range list.Items {
		if n, ok := item.(int64); ok && rank > 0 {
			marked[(n+int64(rank))%int64(rank)] = true
		}
	}
	return marked
}

// count is the number of elements along the dimensions.
func (e *emitter) count(v, dim graph.Value) graph.Size {
	n := graph.Static(1)
	for i, marked := range dimensions(metaOf(v).Dim(), dim) {
		if marked {
			n = e.graph.Shapes.Multiply(n, metaOf(v).Sizes[i])
		}
	}
	return n
}

// shaped gives the elements in another shape, as a view where there is one.
func (e *emitter) shaped(v graph.Value, sizes []graph.Size) graph.Value {
	if e.err != nil || e.graph.Shapes.AllEqual(metaOf(v).Sizes, sizes) {
		return v
	}
	if node, err := e.graph.CallOperator("view", []graph.Value{v, sizeList(sizes)}, nil, e.state); err == nil {
		return e.noted(node)
	}
	return e.call("view", e.contiguous(v), sizeList(sizes))
}

// zeros makes zeros like a tensor, without reading it: it need not be kept for that.
func (e *emitter) zeros(like graph.Value) graph.Value {
	m := metaOf(like)
	return e.callWith("zeros", []graph.Value{sizesOf(m)}, []graph.Keyword{{Name: "dtype", Value: m.DType}, {Name: "device", Value: m.Device}})
}

// contiguous gives the elements row by row, in a copy where they are not.
func (e *emitter) contiguous(v graph.Value) graph.Value {
	if e.err != nil || e.graph.Shapes.IsContiguous(metaOf(v)) {
		return v
	}
	return e.callWith("clone", []graph.Value{v}, []graph.Keyword{{Name: "memory_format", Value: graph.ContiguousFormat}})
}

// plain gives a tensor whose strides say how it is laid out: row by row, or with the channels last. Sizes of 1 leave that open.
func (e *emitter) plain(v graph.Value) graph.Value {
	if e.err != nil || e.graph.Shapes.Unambiguous(metaOf(v)) {
		return v
	}
	return e.callWith("clone", []graph.Value{v}, []graph.Keyword{{Name: "memory_format", Value: graph.ContiguousFormat}})
}

// before is the sum of the numbers before a position in a list.
func before(e *emitter, args []graph.Value) graph.Value {
	lengths, _ := args[0].(graph.List)
	end, _ := args[1].(int64)
	total := graph.Static(0)
	for _, item := range lengths.Items[:min(end, int64(len(lengths.Items)))] {
		total = e.graph.Shapes.Add(total, e.integer(item))
	}
	return sizeValue(total)
}

// rows joins all dimensions but the last one.
func (e *emitter) rows(v graph.Value) graph.Value {
	m := metaOf(v)
	if e.err != nil || m.Dim() == 0 {
		return v
	}
	last := m.Sizes[m.Dim()-1]
	return e.shaped(v, []graph.Size{e.graph.Shapes.Product(m.Sizes[:m.Dim()-1]), last})
}

// biasRows gives what a linear layer's bias sums. torch multiplies a contiguous vector as a matrix of one row (at::linear, addmm), and the sum over that row
// turns -0.0 into 0.0; a vector with gaps it multiplies as it is, and the bias gets the gradient itself.
func (e *emitter) biasRows(grad, input graph.Value) graph.Value {
	if m := metaOf(input); e.err != nil || m.Dim() != 1 || !e.graph.Shapes.IsContiguous(m) {
		return grad
	}
	return e.rows(grad)
}

// spread repeats what a reduction gave over the dimensions that it reduced.
func (e *emitter) spread(v, self, dim, keep graph.Value) graph.Value {
	m := metaOf(self)
	if keep != true {
		sizes := make([]graph.Size, m.Dim())
		for i, marked := range dimensions(m.Dim(), dim) {
			sizes[i] = m.Sizes[i]
			if marked {
				sizes[i] = graph.Static(1)
			}
		}
		v = e.shaped(v, sizes)
	}
	return e.call("expand", v, sizesOf(m))
}

// fit sums a gradient over the dimensions along which its tensor was broadcast, and casts it to the tensor's type.
func (e *emitter) fit(v graph.Value, like *graph.Meta) graph.Value {
	if _, isTensor := graph.MetaOf(v); e.err != nil || !isTensor {
		return e.fail(refuse("a gradient is no tensor"))
	}
	v = e.summedTo(v, like.Sizes)
	if e.err == nil && metaOf(v).DType != like.DType {
		v = e.cast(v, like.DType)
	}
	if e.err == nil && metaOf(v).Device != like.Device {
		return e.fail(refuse("a gradient on another device than its tensor"))
	}
	return v
}

func (e *emitter) summedTo(v graph.Value, sizes []graph.Size) graph.Value {
	m, shapes := metaOf(v), e.graph.Shapes
	if e.err != nil || shapes.AllEqual(m.Sizes, sizes) {
		return v
	}
	leading := m.Dim() - len(sizes)
	dims := graph.List{}
	for i := range m.Sizes {
		if i < leading || shapes.IsOne(sizes[i-leading]) && !shapes.IsOne(m.Sizes[i]) {
			dims.Items = append(dims.Items, int64(i))
		}
	}
	if len(dims.Items) > 0 {
		v = e.shapedIfNeeded(e.call("sum", v, dims, true), sizes)
	}
	if e.err == nil && !shapes.AllEqual(metaOf(v).Sizes, sizes) {
		v = e.call("expand", v, sizeList(sizes))
	}
	return v
}

// shapedIfNeeded drops leading dimensions of one element.
func (e *emitter) shapedIfNeeded(v graph.Value, sizes []graph.Size) graph.Value {
	if metaOf(v).Dim() > len(sizes) {
		return e.shaped(v, metaOf(v).Sizes[metaOf(v).Dim()-len(sizes):])
	}
	return v
}

func inversePermutation(e *emitter, args []graph.Value) graph.Value {
	list, ok := args[0].(graph.List)
	if !ok {
		return e.fail(refuse("a permutation is no list"))
	}
	rank := int64(len(list.Items))
	inverse := make([]graph.Value, rank)
	for i, item := range list.Items {
		n, _ := item.(int64)
		inverse[(n+rank)%rank] = int64(i)
	}
	return graph.List{Items: inverse}
}

// area is the number of elements of one channel.
func area(e *emitter, args []graph.Value) graph.Value {
	return sizeValue(e.graph.Shapes.Product(metaOf(args[0]).Sizes[2:]))
}

// length is the size of the dimension that a slice is taken along.
func (e *emitter) length(args []graph.Value) graph.Size {
	m := metaOf(args[0])
	dim, _ := args[1].(int64)
	return m.Sizes[(dim+int64(m.Dim()))%int64(m.Dim())]
}

// bound is a bound of a slice (tensor, dim, bound), counted from the start and within the tensor.
func (e *emitter) bound(args []graph.Value, absent graph.Size) graph.Value {
	if args[2] == nil {
		return sizeValue(absent)
	}
	shapes, n, length, zero := e.graph.Shapes, e.integer(args[2]), e.length(args), graph.Static(0)
	if shapes.Less(n, zero) {
		n = shapes.Add(n, length)
	}
	switch {
	case shapes.Less(n, zero):
		n = zero
	case !shapes.LessEqual(n, length):
		n = length
	}
	return sizeValue(n)
}

// within says where clamp leaves a value as it is.
func within(e *emitter, args []graph.Value) graph.Value {
	value, low, high := args[0], args[1], args[2]
	switch {
	case low == nil:
		return e.infix("<=", value, high)
	case high == nil:
		return e.infix(">=", value, low)
	}
	return e.infix("&", e.infix(">=", value, low), e.infix("<=", value, high))
}

// inside says where clamp leaves a value as it is and a little more or less would not be the bound.
func inside(e *emitter, args []graph.Value) graph.Value {
	value, low, high := args[0], args[1], args[2]
	switch {
	case low == nil:
		return e.infix("<", value, high)
	case high == nil:
		return e.infix(">", value, low)
	}
	return e.infix("&", e.infix(">", value, low), e.infix("<", value, high))
}

// below says where clamp gives its lower bound.
func below(e *emitter, args []graph.Value) graph.Value {
	value, low, high := args[0], args[1], args[2]
	under := e.infix("<", value, low)
	if high == nil {
		return under
	}
	return e.infix("&", under, e.infix("<", low, high))
}

// above says where clamp gives its upper bound, which wins where the bounds cross.
func above(e *emitter, args []graph.Value) graph.Value {
	value, low, high := args[0], args[1], args[2]
	over := e.infix(">", value, high)
	if low == nil {
		return over
	}
	return e.infix("|", over, e.infix("<", high, low))
}

// filled puts zeros in the place of gradients that are not there.
func filled(e *emitter, args []graph.Value) graph.Value {
	gradients, results := args[0].(graph.List), args[1].(graph.List)
	list := graph.List{}
	for i, g := range gradients.Items {
		if g == nil {
			g = e.zeros(results.Items[i])
		}
		list.Items = append(list.Items, g)
	}
	return list
}

// pieces cuts the gradient of a concatenation.
func pieces(e *emitter, args []graph.Value) graph.Value {
	tensors, _ := args[1].(graph.List)
	dim, _ := args[2].(int64)
	start := graph.Static(0)
	list := graph.List{}
	for _, t := range tensors.Items {
		m := metaOf(t)
		if m.Dim() != metaOf(args[0]).Dim() { // an empty vector among matrices, as older programs write
			list.Items = append(list.Items, e.zeros(t))
			continue
		}
		length := e.length([]graph.Value{t, dim})
		list.Items = append(list.Items, e.call("narrow", args[0], dim, sizeValue(start), sizeValue(length)))
		start = e.graph.Shapes.Add(start, length)
	}
	return list
}

// placed puts gradients where the elements came from that were picked along a dimension.
func placed(e *emitter, args []graph.Value) graph.Value {
	gradient, self, dim, indices := args[0], args[1], args[2], args[3]
	if args[4] != true && metaOf(self).Dim() > 0 {
		gradient, indices = e.call("unsqueeze", gradient, dim), e.call("unsqueeze", indices, dim)
	}
	return e.call("scatter", e.zeros(self), dim, indices, gradient)
}

// shared divides a gradient equally among the elements that are the extremum.
func shared(e *emitter, args []graph.Value) graph.Value {
	gradient, self, result, dim, keep := args[0], args[1], args[2], args[3], args[4]
	extremum := e.spread(result, self, dim, keep)
	mask := e.infix("==", self, extremum)
	if dim == nil {
		mask = e.infix("|", mask, e.infix("&", e.call("isnan", self), e.call("isnan", extremum)))
	}
	dims := graph.List{}
	for i, marked := range dimensions(metaOf(self).Dim(), dim) {
		if marked {
			dims.Items = append(dims.Items, int64(i))
		}
	}
	return e.infix("*", e.infix("/", e.spread(gradient, self, dim, keep), e.call("sum", mask, dims, true)), mask)
}

// averaged is the gradient of one element of a loss under a reduction.
func averaged(e *emitter, args []graph.Value) graph.Value {
	if args[2] == int64(1) {
		return e.infix("/", args[0], sizeValue(e.count(args[1], nil)))
	}
	return args[0]
}

func wanted(e *emitter, args []graph.Value) graph.Value {
	list := graph.List{}
	for _, v := range args {
		_, isTensor := graph.MetaOf(v)
		list.Items = append(list.Items, isTensor && e.tracked != nil && e.tracked(v))
	}
	return list
}

func biasSizes(_ *emitter, args []graph.Value) graph.Value {
	if m, ok := graph.MetaOf(args[0]); ok {
		return sizesOf(m)
	}
	return nil
}

// addedMask is the mask of attention that its kernel adds to the scores; of truth values, what is false takes a score to -inf.
func addedMask(e *emitter, args []graph.Value) graph.Value {
	mask, query := args[0], args[1]
	if mask == nil || metaOf(mask).DType != graph.Bool {
		return mask
	}
	nothing := e.infix("*", e.cast(mask, metaOf(query).DType), 0.0)
	return e.either(mask, nothing, math.Inf(-1))
}

// dropped multiplies by 1/(1 − p) where a draw of a Bernoulli distribution is one, as eager does on the CPU. The draws are kept as truth values.
// On a GPU a kernel of the library does both.
func dropped(e *emitter, args []graph.Value) graph.Value {
	m := metaOf(args[0])
	p, known := number(args[1])
	switch {
	case m.Device.Type != "cpu" && m.Device.Type != "cuda" || !known:
		return e.fail(refuse("gradients through random numbers (dropout on %s)", m.Device))
	case p >= 1: // nothing is drawn
		return e.infix("*", args[0], 0.0)
	case m.Device.Type == "cuda":
		return e.call("native_dropout", args[0], p, true)
	}
	drawn := e.call("bernoulli_", e.call("empty_like", args[0]), 1-p)
	mask := e.infix("!=", drawn, int64(0))
	return e.infix("*", args[0], e.infix("/", e.cast(mask, m.DType), 1-p))
}

// varianceFactor is 2 / (number of elements − correction).
func varianceFactor(e *emitter, args []graph.Value) graph.Value {
	correction, known := number(args[2])
	if args[2] == nil {
		correction, known = 1, true
	}
	if !known {
		return e.fail(refuse("gradients of a variance whose correction changes"))
	}
	elements := e.count(args[0], args[1])
	if elements.IsStatic() || correction != math.Trunc(correction) {
		return 2 / (float64(e.graph.Shapes.Specialise(elements)) - correction)
	}
	m := metaOf(args[0])
	like := []graph.Keyword{{Name: "dtype", Value: m.DType}, {Name: "device", Value: m.Device}}
	two := e.callWith("full", []graph.Value{graph.List{}, 2.0}, like)
	return e.infix("/", two, sizeValue(e.graph.Shapes.Subtract(elements, graph.Static(int64(correction)))))
}

func normGradient(e *emitter, args []graph.Value) graph.Value {
	gradient, self, result, order, dim, keep := args[0], args[1], args[2], args[3], args[4], args[5]
	n, given := number(order)
	switch {
	case order == nil || given && n == 2:
		zero := e.infix("==", result, int64(0))
		return e.infix("*", e.spread(e.call("where", zero, int64(0), e.infix("/", gradient, result)), self, dim, keep), self)
	case given && n == 1:
		return e.infix("*", e.spread(gradient, self, dim, keep), e.call("sign", self))
	}
	return e.fail(refuse("gradients of a norm of this order"))
}

// wide is a tensor of 16-bit floats in float32, and any other as it is.
func (e *emitter) wide(v graph.Value) graph.Value {
	if m := metaOf(v); m.DType.IsFloat() && m.DType.Bytes() < 4 {
		return e.cast(v, graph.Float32)
	}
	return v
}

func softmaxGradient(e *emitter, args []graph.Value) graph.Value {
	gradient, result := e.wide(args[0]), e.wide(args[1])
	product := e.infix("*", gradient, result)
	return e.infix("-", product, e.infix("*", result, e.call("sum", product, graph.List{Items: args[2:3]}, true)))
}

func logSoftmaxGradient(e *emitter, args []graph.Value) graph.Value {
	gradient, result := e.wide(args[0]), e.wide(args[1])
	return e.infix("-", gradient, e.infix("*", e.call("exp", result), e.call("sum", gradient, graph.List{Items: args[2:3]}, true)))
}

// normalised gives x · rsqrt(mean(x²) + eps) and the second factor.
func (e *emitter) normalised(input, shape, eps graph.Value) (normal, scale, dims graph.Value) {
	m := metaOf(input)
	list := graph.List{}
	for i := range shape.(graph.List).Items {
		list.Items = append([]graph.Value{int64(m.Dim() - 1 - i)}, list.Items...)
	}
	if _, ok := number(eps); !ok {
		return e.fail(refuse("gradients of rms_norm with eps=None")), nil, nil
	}
	x := e.wide(input)
	scale = e.call("rsqrt", e.infix("+", e.call("mean", e.infix("*", x, x), list, true), eps))
	return e.infix("*", x, scale), scale, list
}

func rmsNormGradient(e *emitter, args []graph.Value) graph.Value {
	normal, scale, dims := e.normalised(args[1], args[2], args[4])
	gradient := e.wide(args[0])
	if args[3] != nil {
		gradient = e.infix("*", gradient, e.wide(args[3]))
	}
	mean := e.call("mean", e.infix("*", gradient, normal), dims, true)
	return e.infix("*", scale, e.infix("-", gradient, e.infix("*", normal, mean)))
}

func rmsNormWeightGradient(e *emitter, args []graph.Value) graph.Value {
	normal, _, _ := e.normalised(args[1], args[2], args[4])
	return e.infix("*", e.wide(args[0]), normal)
}

// gluGradient: of a · sigmoid(b), where a and b are the halves.
func gluGradient(e *emitter, args []graph.Value) graph.Value {
	gradient, self, dim := args[0], args[1], args[2]
	half := sizeValue(e.graph.Shapes.FloorDivide(e.length([]graph.Value{self, dim}), graph.Static(2)))
	a, gate := e.call("narrow", self, dim, int64(0), half), e.call("sigmoid", e.call("narrow", self, dim, half, half))
	left := e.infix("*", gradient, gate)
	right := e.infix("*", e.infix("*", left, a), e.infix("-", int64(1), gate))
	return e.call("cat", graph.List{Items: []graph.Value{left, right}}, dim)
}

// geluSecond is a gradient times the second derivative of gelu: (2 - x²) φ(x), where φ is the density of the normal distribution; with "tanh", of
// which t is the tanh and slope the derivative of its argument, (1 - t²) (slope + x/2 (slope' - 2 t slope²)).
func geluSecond(e *emitter, args []graph.Value) graph.Value {
	const root, cubic = 0.7978845608028654, 0.044715 // sqrt(2/π), and the factor of x³ in the argument of tanh
	gradient, x := args[0], args[1]
	square := e.infix("*", x, x)
	if args[2] != "tanh" {
		density := e.infix("*", e.call("exp", e.infix("*", square, -0.5)), 0.3989422804014327)
		return e.infix("*", e.infix("*", gradient, density), e.infix("-", int64(2), square))
	}
	t := e.call("tanh", e.infix("*", x, e.infix("+", e.infix("*", square, root*cubic), root)))
	slope := e.infix("+", e.infix("*", square, 3*root*cubic), root)
	bend := e.infix("-", e.infix("*", x, 6*root*cubic), e.infix("*", e.infix("*", t, int64(2)), e.infix("*", slope, slope)))
	along := e.infix("+", slope, e.infix("*", e.infix("*", x, 0.5), bend))
	return e.infix("*", e.infix("*", gradient, e.infix("-", int64(1), e.infix("*", t, t))), along)
}

// repeatsSummed adds the gradients of the copies that repeat made.
func repeatsSummed(e *emitter, args []graph.Value) graph.Value {
	m := metaOf(args[1])
	repeats, _ := args[2].(graph.List)
	leading := len(repeats.Items) - m.Dim()
	var sizes []graph.Size
	dims := graph.List{}
	for i, item := range repeats.Items {
		dims.Items = append(dims.Items, int64(len(sizes)))
		sizes = append(sizes, e.integer(item))
		if i >= leading {
			sizes = append(sizes, m.Sizes[i-leading])
		}
	}
	if len(dims.Items) == 0 {
		return args[0]
	}
	return e.call("sum", e.shaped(args[0], sizes), dims, false)
}

// matmulGradient is the gradient of one factor of a product that broadcasts batches and takes vectors for matrices.
func (e *emitter) matmulGradient(gradient, left, right graph.Value, ofLeft bool) graph.Value {
	a, b := metaOf(left), metaOf(right)
	if a.Dim() == 1 && b.Dim() == 1 {
		return e.infix("*", gradient, map[bool]graph.Value{true: right, false: left}[ofLeft])
	}
	if a.Dim() == 1 {
		left, gradient = e.call("unsqueeze", left, int64(0)), e.call("unsqueeze", gradient, int64(-2))
	}
	if b.Dim() == 1 {
		right, gradient = e.call("unsqueeze", right, int64(-1)), e.call("unsqueeze", gradient, int64(-1))
	}
	if e.err != nil {
		return nil
	}
	var result graph.Value
	switch factor := metaOf(right); {
	case ofLeft:
		result = e.summedTo(e.call("matmul", gradient, e.call("transpose", right, int64(-2), int64(-1))), metaOf(left).Sizes)
	case factor.Dim() == 2:
		result = e.call("mm", e.call("t", e.rows(left)), e.rows(gradient))
	default:
		result = e.summedTo(e.call("matmul", e.call("transpose", left, int64(-2), int64(-1)), gradient), factor.Sizes)
	}
	if ofLeft {
		return e.shaped(result, a.Sizes)
	}
	return e.shaped(result, b.Sizes)
}

// batchStatistics is the operator behind batch_norm. On a GPU it is written so that loops compute it, fused with what is around it; the statistics of the
// past are brought up to date when all else has been computed.
func batchStatistics(e *emitter, args []graph.Value) graph.Value {
	input, mean, variance, momentum := args[0], args[3], args[4], args[6]
	if metaOf(input).Device.Type != "cuda" || args[5] != true || e.postpone == nil {
		return e.call("native_batch_norm", args...)
	}
	results := e.call("native_batch_norm", input, args[1], args[2], nil, nil, true, momentum, args[7])
	if mean == nil || e.err != nil {
		return results
	}
	dims := graph.List{}
	for d := range metaOf(input).Sizes {
		if d != 1 {
			dims.Items = append(dims.Items, int64(d))
		}
	}
	unbiased := e.unrecorded(func(e *emitter) graph.Value {
		return e.callWith("var", []graph.Value{input, dims}, []graph.Keyword{{Name: "correction", Value: int64(1)}})
	})
	found := e.item(results, int64(1))
	if err := e.postpone([]graph.Value{mean, variance}, func(e *emitter) {
		e.call("lerp_", mean, e.likeType(found, mean), momentum)
		e.call("lerp_", variance, e.likeType(unbiased, variance), momentum)
	}); err != nil {
		return e.fail(err)
	}
	return results
}

// likeType casts a tensor to the type of another one.
func (e *emitter) likeType(v, like graph.Value) graph.Value {
	if e.err != nil || metaOf(v).DType == metaOf(like).DType {
		return v
	}
	return e.cast(v, metaOf(like).DType)
}
