package backend

import (
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// Normalisations that are trained, on a GPU: the statistics of the batch, and what carries gradients back, as formulas and reductions that fuse with what is
// around them. Elsewhere ATen's own kernels do it.

// perChannelOnly marks all dimensions but that of channels.
func perChannelOnly(rank int) []bool {
	reduced := make([]bool, rank)
	for dimension := range reduced {
		reduced[dimension] = dimension != 1
	}
	return reduced
}

// spreads are sums over everything but the channels, of one pass over memory: of the differences from the mean of some elements of the channel, and of
// their squares. That is near the mean by the measure of the deviation, so that little is lost where what is left of it is subtracted later.
type spreads struct {
	sum, squares *tensor // one of each channel
	samples      []*tensor
	count        float64
	wide         graph.DType
}

func (r *recipe) spreads(self *tensor) spreads {
	reduced := perChannelOnly(len(self.meta.Sizes))
	s := spreads{count: r.count(self, reduced), wide: r.wide(self.meta.DType)}
	channels := self.meta.Sizes[1:2]
	operands := []*tensor{self}
	for k := range sampled {
		sample := self.sample(k)
		operands = append(operands, sample)
		vector := sample.meta
		vector.Sizes, vector.Strides = channels, self.meta.Strides[1:2]
		s.samples = append(s.samples, self.under(vector))
	}
	difference := r.formula("sub", r.freshLike(s.wide, self), apply("sub", arg(0), origin(1)), operands...)
	square := r.formula("square", r.freshLike(s.wide, self), apply("mul", arg(0), arg(0)), difference)
	s.sum = r.reduce(loop.Sum, difference, reduced, s.wide, r.fresh(s.wide, channels))
	s.squares = r.reduce(loop.Sum, square, reduced, s.wide, r.fresh(s.wide, channels))
	return s
}

// sampled is how many elements of a channel the differences are taken from.
const sampled = 8

// origin is the mean of the samples, whose operands begin at the number given.
func origin(first int) *graph.Expression {
	total := arg(first)
	for k := 1; k < sampled; k++ {
		total = apply("add", total, arg(first+k))
	}
	return apply("mul", total, number(1.0/sampled))
}

// sample views one element of each channel, spread over the other dimensions without any rhythm.
func (t *tensor) sample(k int) *tensor {
	meta := t.meta
	meta.Strides, meta.Sizes = slices.Clone(t.meta.Strides), slices.Clone(t.meta.Sizes)
	offset := t.meta.Offset.Hint
	for dimension, size := range t.meta.Sizes {
		if dimension == 1 {
			continue
		}
		offset += int64(k*(2*dimension+3)%sampled) * (size.Hint - 1) / (sampled - 1) * t.meta.Strides[dimension].Hint
		meta.Sizes[dimension], meta.Strides[dimension] = graph.Static(1), graph.Static(0)
	}
	meta.Offset = graph.Static(offset)
	return t.under(meta)
}

// known reports whether sizes, strides and offset of a tensor are numbers.
func known(t *tensor) bool {
	isKnown := func(size graph.Size) bool { return size.Expr == nil }
	return isKnown(t.meta.Offset) && !slices.ContainsFunc(slices.Concat(t.meta.Sizes, t.meta.Strides), func(size graph.Size) bool { return !isKnown(size) })
}

// freshLike makes an intermediate result that lies as a tensor does, so that loops over it go the same way.
func (r *recipe) freshLike(dtype graph.DType, t *tensor) *tensor {
	result := r.fresh(dtype, t.meta.Sizes)
	result.meta.Strides = t.meta.Strides
	return result
}

// deviations is the sum of squared differences from the mean, as a formula of sum and squares.
func (s *spreads) deviations() *graph.Expression {
	mean := apply("div", arg(0), number(s.count))
	return apply("maximum", apply("sub", arg(1), apply("mul", arg(0), mean)), number(0.0))
}

// channelVariance is the variance of everything but the channels, on a GPU.
func (r *recipe) channelVariance(self, output *tensor, reduced []bool, root, withMean bool) (written, ok bool) {
	if r.device.Type != "cuda" || root || withMean || len(reduced) < 2 || !slices.Equal(reduced, perChannelOnly(len(reduced))) || significantElements(self, reduced) < 2 {
		return false, false
	}
	if len(output.meta.Sizes) != 1 || !known(self) {
		return false, false
	}
	s := r.spreads(self)
	divisor := max(s.count-r.correction(), 0)
	return r.commit(r.formulaIn("var", s.wide, output, apply("div", s.deviations(), number(divisor)), s.sum, s.squares)), true
}

// significantElements is the number of elements that a reduction combines.
func significantElements(t *tensor, reduced []bool) int64 {
	return product(chosenSizes(t.meta.Sizes, reduced))
}

// batchStatistics normalises by the mean and the variance of the batch, and gives the mean and the inverse deviation too.
func (r *recipe) batchStatistics() bool {
	if r.device.Type != "cuda" {
		return r.batchNormOnly()
	}
	self, weight, bias := r.tensor("input", 0), r.optional("weight", 1), r.optional("bias", 2)
	rank := len(self.meta.Sizes)
	if r.device.Type != "cuda" || !known(self) || !r.flag("training", 5) || r.argument("running_mean", 3) != nil || rank < 2 || r.failed || len(r.node.Outputs) != 3 {
		return false
	}
	s := r.spreads(self)
	mean := r.formulaIn("mean", s.wide, r.result(1), apply("add", origin(1), apply("div", arg(0), number(s.count))), append([]*tensor{s.sum}, s.samples...)...)
	variance := apply("div", s.deviations(), number(s.count))
	scale := r.formulaIn("rsqrt", s.wide, r.result(2), apply("rsqrt", apply("add", variance, number(r.number("eps", 7, 1e-5)))), s.sum, s.squares)
	normal := apply("mul", apply("sub", arg(0), arg(1)), arg(2))
	var factors [2]*tensor
	for index, t := range []*tensor{weight, bias} {
		if t != nil {
			factors[index] = r.perChannel(t, rank)
		}
	}
	operands := []*tensor{self, r.perChannel(mean, rank), r.perChannel(scale, rank)}
	return r.commit(r.affine("batch_norm", s.wide, normal, operands, factors[0], factors[1]), mean, scale)
}

// batchNormBackward carries gradients through a norm by the statistics of the batch.
func (r *recipe) batchNormBackward() bool {
	gradient, self, weight := r.tensor("grad_out", 0), r.tensor("input", 1), r.optional("weight", 2)
	mean, scale := r.optional("save_mean", 5), r.optional("save_invstd", 6)
	rank := len(self.meta.Sizes)
	if r.device.Type != "cuda" || !r.flag("train", 7) || mean == nil || scale == nil || r.failed || rank < 2 {
		return false
	}
	n := normBackward{recipe: r, gradient: gradient, self: self, mean: r.perChannel(mean, rank), scale: r.perChannel(scale, rank), wide: r.wide(self.meta.DType)}
	if weight != nil {
		n.weight = r.perChannel(weight, rank)
	}
	reduced := perChannelOnly(rank)
	count := r.count(self, reduced)
	ofBias, ofWeight := n.parameters(reduced)
	if r.failed {
		return false
	}
	body := apply("sub", apply("sub", arg(0), apply("div", arg(4), number(count))), apply("mul", n.normal(), apply("div", arg(5), number(count))))
	operands := []*tensor{gradient, self, n.mean, n.scale, r.perChannel(ofBias, rank), r.perChannel(ofWeight, rank)}
	body = apply("mul", body, arg(3))
	if n.weight != nil {
		body, operands = apply("mul", body, arg(6)), append(operands, n.weight)
	}
	return n.commitMasked(r.formulaIn("norm_backward", n.wide, r.result(0), body, operands...), ofWeight, ofBias)
}

// layerNormBackward carries gradients through a norm of rows, whose own two sums lie in the kernel of the result.
func (r *recipe) layerNormBackward() bool {
	gradient, self, weight := r.tensor("grad_out", 0), r.tensor("input", 1), r.optional("weight", 5)
	mean, scale := r.tensor("mean", 3), r.tensor("rstd", 4)
	if r.device.Type != "cuda" || r.failed {
		return false
	}
	reduced := r.trailing(len(self.meta.Sizes), r.argument("normalized_shape", 2))
	n := normBackward{recipe: r, gradient: gradient, self: self, mean: mean, scale: scale, weight: weight, wide: r.wide(self.meta.DType)}
	rows, count := kept(self.meta.Sizes, reduced), r.count(self, reduced)
	weighted := gradient
	if weight != nil {
		weighted = r.formula("mul", r.fresh(n.wide, self.meta.Sizes), apply("mul", arg(0), arg(1)), gradient, weight)
	}
	product := r.formula("mul", r.fresh(n.wide, self.meta.Sizes), apply("mul", arg(0), n.normal()), weighted, self, mean, scale)
	first := r.reduce(loop.Sum, weighted, reduced, n.wide, r.fresh(n.wide, rows))
	second := r.reduce(loop.Sum, product, reduced, n.wide, r.fresh(n.wide, rows))
	centred := apply("sub", apply("sub", arg(0), apply("div", arg(4), number(count))), apply("mul", n.normal(), apply("div", arg(5), number(count))))
	result := r.formulaIn("norm_backward", n.wide, r.result(0), apply("mul", centred, arg(3)), weighted, self, mean, scale, first, second)
	leading := make([]bool, len(reduced))
	for dimension := range reduced {
		leading[dimension] = !reduced[dimension]
	}
	ofBias, ofWeight := n.parameters(leading)
	return n.commitMasked(result, ofWeight, ofBias)
}

// normBackward is what the gradients of both norms have in common. Mean and scale broadcast to the elements.
type normBackward struct {
	*recipe
	gradient, self, mean, scale, weight *tensor
	wide                                graph.DType
}

// normal is the normalised element; operands 1, 2 and 3 are element, mean and scale.
func (n *normBackward) normal() *graph.Expression {
	return apply("mul", apply("sub", arg(1), arg(2)), arg(3))
}

// parameters are the gradients of bias and weight, in the type that is computed in. They are the node's results where those have that type.
func (n *normBackward) parameters(reduced []bool) (ofBias, ofWeight *tensor) {
	product := n.formula("mul", n.freshLike(n.wide, n.self), apply("mul", arg(0), n.normal()), n.gradient, n.self, n.mean, n.scale)
	ofBias = n.reduce(loop.Sum, n.gradient, reduced, n.wide, n.parameter(2, reduced))
	return ofBias, n.reduce(loop.Sum, product, reduced, n.wide, n.parameter(1, reduced))
}

// parameter is where the gradient of a parameter goes.
func (n *normBackward) parameter(index int, reduced []bool) *tensor {
	if n.wants(index) && n.node.Outputs[index].Meta.DType == n.wide {
		return n.result(index)
	}
	var sizes []graph.Size
	for dimension, size := range n.self.meta.Sizes {
		if !reduced[dimension] {
			sizes = append(sizes, size)
		}
	}
	return n.fresh(n.wide, sizes)
}

func (n *normBackward) wants(index int) bool {
	return len(n.node.Outputs) == 3 && n.node.Outputs[index].Meta.DType != graph.NoDType
}

// commitMasked names those of the three gradients that are wanted.
func (n *normBackward) commitMasked(result, ofWeight, ofBias *tensor) bool {
	outputs := []*tensor{result, nil, nil}
	for index, found := range []*tensor{nil, ofWeight, ofBias} {
		switch {
		case found == nil || !n.wants(index):
		case n.node.Outputs[index].Meta.DType == n.wide:
			outputs[index] = found
		default:
			outputs[index] = n.formulaIn("sum", n.wide, n.result(index), arg(0), found)
		}
	}
	return n.commit(outputs...)
}
