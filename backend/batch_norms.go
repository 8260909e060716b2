package backend

import (
	"fusee/graph"
)

// Normalisations of images by statistics that are computed on the spot, on a CPU, where nothing but the result is asked for.

// groupNorm takes the statistics of each group of channels, spreads them over its channels, and has one formula for all elements, which fuses with what
// follows.
func (r *recipe) groupNorm() bool {
	self, weight, bias := r.tensor("input", 0), r.optional("weight", 2), r.optional("bias", 3)
	rank, groups := len(self.meta.Sizes), r.integer("num_groups", 1, 0)
	if r.failed || r.device.Type == "cuda" || rank < 2 || !known(self) || groups < 1 || product(self.meta.Sizes) == 0 {
		return false
	}
	split := r.splitChannels(self, groups)
	reduced := make([]bool, rank+1)
	for dimension := 2; dimension <= rank; dimension++ {
		reduced[dimension] = true
	}
	wide, rows := r.wide(self.meta.DType), kept(split.meta.Sizes, reduced)
	mean, squares := r.moments(split, reduced, wide, rows)
	scale := r.formula("rsqrt", r.fresh(wide, rows), r.inverseDeviation(split, reduced, 4), squares)
	channels := kept(self.meta.Sizes, reduced[:rank])
	spread := func(t *tensor) *tensor {
		whole := kept(split.meta.Sizes, append(make([]bool, 3), reduced[3:]...))
		return r.reshaped(r.formula("spread", r.fresh(wide, whole), arg(0), t), channels)
	}
	operands := []*tensor{self, spread(mean), spread(scale)}
	return r.commit(r.affine("group_norm", wide, normalised(), operands, r.channelVector(weight, rank), r.channelVector(bias, rank)))
}

// splitChannels views the channels as groups of them.
func (r *recipe) splitChannels(t *tensor, groups int64) *tensor {
	meta, width := t.meta, t.meta.Sizes[1].Hint/groups
	meta.Sizes = append([]graph.Size{t.meta.Sizes[0], graph.Static(groups), graph.Static(width)}, t.meta.Sizes[2:]...)
	stride := t.meta.Strides[1].Hint
	meta.Strides = append([]graph.Size{t.meta.Strides[0], graph.Static(stride * width), graph.Static(stride)}, t.meta.Strides[2:]...)
	return t.under(meta)
}

// inverseDeviation is a formula of the sum of squared differences from the mean, its operand 0.
func (r *recipe) inverseDeviation(self *tensor, reduced []bool, epsilon int) *graph.Expression {
	variance := apply("div", arg(0), number(r.count(self, reduced)))
	return apply("rsqrt", apply("add", variance, number(r.number("eps", epsilon, 1e-5))))
}

// normalised is a formula of element, mean and inverse deviation.
func normalised() *graph.Expression {
	return apply("mul", apply("sub", arg(0), arg(1)), arg(2))
}

// channelVector views a parameter that may be absent so that it broadcasts along the channels.
func (r *recipe) channelVector(t *tensor, rank int) *tensor {
	if t == nil {
		return nil
	}
	return r.perChannel(t, rank)
}

// normaliseBatch is a batch norm by the statistics of the batch, in double as eager computes them: mean and squares are one of each channel.
func (r *recipe) normaliseBatch() (result, mean, squares *tensor) {
	self, weight, bias := r.tensor("input", 0), r.optional("weight", 1), r.optional("bias", 2)
	rank := len(self.meta.Sizes)
	if r.failed || rank < 2 || !known(self) {
		r.failed = true
		return nil, nil, nil
	}
	reduced := perChannelOnly(rank)
	rows := kept(self.meta.Sizes, reduced)
	mean, squares = r.moments(self, reduced, graph.Float64, rows)
	wide := r.wide(self.meta.DType)
	scale := r.formulaIn("rsqrt", graph.Float64, r.fresh(wide, rows), r.inverseDeviation(self, reduced, 7), squares)
	centre := r.formulaIn("mean", graph.Float64, r.fresh(wide, rows), arg(0), mean)
	operands, normal := []*tensor{self, centre, scale}, normalised()
	if wide != graph.Float64 {
		rest := r.formulaIn("rest", graph.Float64, r.fresh(wide, rows), apply("sub", arg(0), arg(1)), mean, centre)
		operands = append(operands, rest)
		normal = apply("mul", apply("sub", apply("sub", arg(0), arg(1)), arg(3)), arg(2))
	}
	return r.affine("batch_norm", wide, normal, operands, r.channelVector(weight, rank), r.channelVector(bias, rank)), mean, squares
}

// batchNormOnly leaves out the statistics, which nobody asks for, as a norm of single images has it.
func (r *recipe) batchNormOnly() bool {
	if r.device.Type == "cuda" || !r.flag("training", 5) || r.argument("running_mean", 3) != nil || r.used(1) || r.used(2) {
		return false
	}
	result, _, _ := r.normaliseBatch()
	outputs := []*tensor{result}
	for index := 1; index < len(r.node.Outputs) && !r.failed; index++ {
		outputs = append(outputs, r.formula("statistics", r.result(index), number(0.0))) // never computed
	}
	return r.commit(outputs...)
}

// updatingNorm is a batch norm that also brings the statistics of the past up to date. It stays with the library where their memory has other names.
func (b *builder) updatingNorm(node *graph.Node) bool {
	if node.Target != "aten.batch_norm.default" || len(node.Mutates) != 2 || len(node.Outputs) != 1 || !b.emits(node.Outputs[0].Meta.Device) {
		return false
	}
	r := &recipe{b: b, node: node, device: node.Outputs[0].Meta.Device}
	past := []*tensor{r.optional("running_mean", 3), r.optional("running_var", 4)}
	momentum, known := r.argument("momentum", 6).(float64)
	if r.device.Type == "cuda" || !known || past[0] == nil || past[1] == nil || past[0].memory() == past[1].memory() || !b.separate(past[0]) || !b.separate(past[1]) {
		return false
	}
	result, mean, squares := r.normaliseBatch()
	if r.failed {
		return false
	}
	self := r.tensor("input", 0)
	unbiased := apply("div", arg(1), number(r.count(self, perChannelOnly(len(self.meta.Sizes)))-1))
	if r.failed || !r.commit(result) {
		return false
	}
	for index, found := range []*tensor{mean, squares} {
		value := []*graph.Expression{arg(1), unbiased}[index]
		body := apply("add", apply("mul", number(momentum), value), apply("mul", number(1-momentum), arg(0)))
		r.pending = nil
		next := newTensor(past[index].name, past[index].meta)
		r.formulaIn("update", graph.Float64, next, body, past[index], r.reshaped(found, past[index].meta.Sizes))
		b.supersede(past[index], r.pending[0], next)
	}
	return true
}
