package autograd

import (
	"slices"

	"fusee/graph"
)

// productsOfOthers gives for each element the product of the others along a dimension, or of all others, without dividing.
func productsOfOthers(e *emitter, args []graph.Value) graph.Value {
	self, dim := args[0], args[1]
	m := metaOf(self)
	if dim == nil {
		all := productsOfOthers(e, []graph.Value{e.shaped(self, []graph.Size{e.graph.Shapes.Product(m.Sizes)}), int64(0)})
		if e.err != nil {
			return nil
		}
		return e.shaped(all, m.Sizes)
	}
	if m.Dim() == 0 {
		return e.call("ones_like", self)
	}
	dims := graph.List{Items: []graph.Value{dim}}
	before := e.productsBefore(self, dim)
	behind := e.call("flip", e.productsBefore(e.call("flip", self, dims), dim), dims)
	return e.infix("*", before, behind)
}

// productsBefore gives for each element the product of those before it.
func (e *emitter) productsBefore(self, dim graph.Value) graph.Value {
	if e.err != nil {
		return nil
	}
	length, one := e.length([]graph.Value{self, dim}), graph.Static(1)
	if e.graph.Shapes.IsZero(length) {
		return e.call("ones_like", self)
	}
	first := e.call("ones_like", e.call("narrow", self, dim, int64(0), int64(1)))
	rest := e.call("cumprod", e.call("narrow", self, dim, int64(0), sizeValue(e.graph.Shapes.Subtract(length, one))), dim)
	return e.call("cat", graph.List{Items: []graph.Value{first, rest}}, dim)
}

// cumprodGradient: up to the first zero, results are divided by the element; at the first zero count the products of the others up to the second
// one; behind it nothing depends on the element.
func cumprodGradient(e *emitter, args []graph.Value) graph.Value {
	gradient, self, result, dim := args[0], args[1], args[2], args[3]
	dims := graph.List{Items: []graph.Value{dim}}
	isZero := e.infix("==", self, int64(0))
	zeros := e.call("cumsum", isZero, dim)
	none, one := e.infix("==", zeros, int64(0)), e.infix("==", zeros, int64(1))
	first := e.infix("&", isZero, one)
	counted := e.call("where", none, e.infix("*", gradient, result), int64(0))
	behind := e.call("flip", e.call("cumsum", e.call("flip", counted, dims), dim), dims)
	plain := e.infix("/", behind, e.call("where", isZero, int64(1), self))
	others := e.call("cumprod", e.call("where", first, int64(1), self), dim)
	atZero := e.call("sum", e.call("where", one, e.infix("*", gradient, others), int64(0)), dims, true)
	return e.call("where", first, atZero, e.call("where", none, plain, int64(0)))
}

// multivariateDigamma is the gradient of mvlgamma: the sum of digamma(self − j/2) for j below p.
func multivariateDigamma(e *emitter, args []graph.Value) graph.Value {
	gradient, self := args[0], args[1]
	p, _ := args[2].(int64)
	total := e.call("digamma", self)
	for j := int64(1); j < p; j++ {
		total = e.infix("+", total, e.call("digamma", e.infix("-", self, float64(j)/2)))
	}
	return e.infix("*", gradient, total)
}

// innerProduct sums products over the last dimensions of both.
func innerProduct(e *emitter, args []graph.Value) graph.Value {
	a, b := metaOf(args[0]), metaOf(args[1])
	product := e.call("mm", e.rows(args[0]), e.call("t", e.rows(args[1])))
	sizes := append(append([]graph.Size{}, a.Sizes[:max(a.Dim()-1, 0)]...), b.Sizes[:max(b.Dim()-1, 0)]...)
	if e.err != nil {
		return nil
	}
	return e.shaped(product, sizes)
}

// paddingOf gives numbers for the words "valid" and "same", where the latter pads both sides alike.
func paddingOf(e *emitter, args []graph.Value) graph.Value {
	m := metaOf(args[0])
	dilation, _ := args[2].(graph.List)
	list := graph.List{}
	for i := range m.Sizes[2:] {
		n := int64(1)
		if len(dilation.Items) > 0 {
			n = e.graph.Shapes.Specialise(e.integer(dilation.Items[min(i, len(dilation.Items)-1)]))
		}
		total := n * (e.graph.Shapes.Specialise(m.Sizes[2+i]) - 1)
		switch {
		case args[1] == "valid":
			total = 0
		case total%2 != 0:
			return e.fail(refuse("gradients of a convolution that pads one side more than the other"))
		}
		list.Items = append(list.Items, total/2)
	}
	return list
}

// interleavedSummed adds the gradients of the repetitions that repeat_interleave made.
func interleavedSummed(e *emitter, args []graph.Value) graph.Value {
	m := metaOf(args[1])
	repeats := e.integer(args[2])
	dim, along := args[3].(int64)
	sizes := m.Sizes
	if !along {
		sizes, dim = []graph.Size{e.graph.Shapes.Product(m.Sizes)}, 0
	}
	at := (dim+int64(len(sizes)))%int64(len(sizes)) + 1
	split := append(append(append([]graph.Size{}, sizes[:at]...), repeats), sizes[at:]...)
	summed := e.call("sum", e.shaped(args[0], split), graph.List{Items: []graph.Value{at}})
	if e.err != nil {
		return nil
	}
	return e.shaped(summed, m.Sizes)
}

// scatterReduceGradients gives the gradients of self and src. Extrema that are reached more than once share theirs.
func scatterReduceGradients(e *emitter, args []graph.Value) graph.Value {
	gradient, self, dim, index, src, result := args[0], args[1], args[2], args[3], args[4], args[7]
	gathered := func(v graph.Value) graph.Value { return e.call("gather", v, dim, index) }
	ofSelf := gradient
	var ofSource graph.Value
	switch args[5] {
	case "sum":
		ofSource = gathered(gradient)
	case "mean":
		count := e.call("scatter_add", e.zeros(self), dim, index, e.call("ones_like", src))
		if args[6] == true {
			count = e.infix("+", count, int64(1))
		}
		ofSelf = e.infix("/", gradient, e.call("clamp_min", count, int64(1)))
		ofSource = gathered(ofSelf)
	case "amax", "amin":
		chosen, given := e.cast(e.infix("==", self, result), metaOf(self).DType), e.cast(e.infix("==", src, gathered(result)), metaOf(self).DType)
		portion := e.infix("/", gradient, e.call("scatter_add", chosen, dim, index, given))
		ofSelf, ofSource = e.infix("*", chosen, portion), e.infix("*", given, gathered(portion))
	default:
		return e.fail(refuse("gradients of scatter_reduce of %v", args[5]))
	}
	if args[6] != true {
		ofSelf = e.call("scatter", ofSelf, dim, index, int64(0))
	}
	return graph.List{Items: []graph.Value{ofSelf, ofSource}}
}

// recurrentGradients are those of the arguments of a layer of LSTM, of which the biases may be missing. The arguments are the gradients of its
// results, which may be missing too, the results, and the layer's own.
func recurrentGradients(e *emitter, args []graph.Value) graph.Value {
	const tensors = 7
	grads, results, given, settings := args[0].(graph.List).Items, args[1].(graph.List).Items, args[2:2+tensors], args[2+tensors:]
	call := slices.Concat(given, results[:3], grads[:3], settings, results[3:])
	found := e.call("mkldnn_rnn_layer_backward", call...)
	gradients := make([]graph.Value, tensors)
	for i := range gradients {
		gradients[i] = e.item(found, int64(i))
	}
	return graph.List{Items: gradients}
}
