package backend

import (
	"math"
	"slices"
	"strings"

	"fusee/backend/loop"
	"fusee/graph"
)

// decompose handles operators that are made of formulas and reductions, where loops do as well as the library or better.
func (b *builder) decompose(node *graph.Node) bool {
	write, ok := recipes[baseName(node.Target)]
	if !ok || len(node.Outputs) == 0 || node.Outputs[0].Meta.DType == graph.NoDType {
		return false
	}
	r := &recipe{b: b, node: node, device: node.Outputs[0].Meta.Device}
	if !b.emits(r.device) {
		return false
	}
	return write(r)
}

// emits reports whether loops can run on the device.
func (b *builder) emits(device graph.Device) bool {
	return b.compilation.compiler.options.Emitters[device.Type] != nil
}

// baseName strips the overload from a target of aten: "aten.sum.dim_IntList" becomes "sum". Targets of other libraries give "", but for our own.
func baseName(target string) string {
	if target == graph.UniformTarget {
		return target
	}
	name, ok := strings.CutPrefix(target, "aten.")
	name, _, _ = strings.Cut(name, ".")
	if !ok {
		return ""
	}
	return name
}

// recipes lists the operators by name; overloads are told apart by their arguments. A recipe that gives up leaves a library call.
var recipes = map[string]func(r *recipe) bool{
	"sum":                              func(r *recipe) bool { return r.simple(loop.Sum) },
	"prod":                             func(r *recipe) bool { return r.simple(loop.Product) },
	"amax":                             func(r *recipe) bool { return r.extremum(loop.Maximum) },
	"amin":                             func(r *recipe) bool { return r.extremum(loop.Minimum) },
	"max":                              func(r *recipe) bool { return r.withIndex(loop.Maximum, loop.ArgMaximum) },
	"min":                              func(r *recipe) bool { return r.withIndex(loop.Minimum, loop.ArgMinimum) },
	"any":                              func(r *recipe) bool { return r.truth(loop.Any) },
	"all":                              func(r *recipe) bool { return r.truth(loop.All) },
	"argmax":                           func(r *recipe) bool { return r.extremum(loop.ArgMaximum) },
	"argmin":                           func(r *recipe) bool { return r.extremum(loop.ArgMinimum) },
	"count_nonzero":                    (*recipe).countNonzero,
	"mean":                             (*recipe).mean,
	"var":                              func(r *recipe) bool { return r.variance(false, false) },
	"std":                              func(r *recipe) bool { return r.variance(true, false) },
	"var_mean":                         func(r *recipe) bool { return r.variance(false, true) },
	"std_mean":                         func(r *recipe) bool { return r.variance(true, true) },
	"softmax":                          func(r *recipe) bool { return r.softmax(false) },
	"_softmax":                         func(r *recipe) bool { return r.softmax(false) },
	"log_softmax":                      func(r *recipe) bool { return r.softmax(true) },
	"_log_softmax":                     func(r *recipe) bool { return r.softmax(true) },
	"logsumexp":                        (*recipe).logSumExp,
	"linalg_vector_norm":               func(r *recipe) bool { return r.vectorNorm("ord") },
	"norm":                             func(r *recipe) bool { return r.vectorNorm("p") },
	"nansum":                           (*recipe).sumOfNumbers,
	"aminmax":                          (*recipe).bothExtrema,
	"mse_loss":                         (*recipe).elementLoss,
	"l1_loss":                          (*recipe).elementLoss,
	"smooth_l1_loss":                   (*recipe).elementLoss,
	"huber_loss":                       (*recipe).elementLoss,
	"soft_margin_loss":                 (*recipe).elementLoss,
	"kl_div":                           (*recipe).elementLoss,
	"binary_cross_entropy_with_logits": (*recipe).elementLoss,
	"cross_entropy_loss":               (*recipe).crossEntropy,
	"nll_loss":                         (*recipe).negativeLogLikelihood,
	"nll_loss2d":                       (*recipe).negativeLogLikelihood,
	"nll_loss_nd":                      (*recipe).negativeLogLikelihood,
	"nll_loss_forward":                 (*recipe).negativeLogLikelihood,
	"nll_loss2d_forward":               (*recipe).negativeLogLikelihood,
	"embedding":                        (*recipe).embedding,
	"gather":                           (*recipe).gatherAlong,
	"index_select":                     (*recipe).indexSelect,
	"index":                            (*recipe).indexTensors,
	"layer_norm":                       (*recipe).layerNorm,
	"native_layer_norm":                (*recipe).layerNorm,
	"native_layer_norm_backward":       (*recipe).layerNormBackward,
	"native_batch_norm":                (*recipe).batchStatistics,
	"native_batch_norm_backward":       (*recipe).batchNormBackward,
	"group_norm":                       (*recipe).groupNorm,
	"rms_norm":                         (*recipe).rmsNorm,
	"batch_norm":                       (*recipe).batchNorm,
	"max_pool2d_with_indices":          (*recipe).maxPool,
	"max_pool2d_with_indices_backward": (*recipe).maxPoolBackward,
	"max_pool1d":                       func(r *recipe) bool { return r.windowMaximum(1) },
	"max_pool2d":                       func(r *recipe) bool { return r.windowMaximum(2) },
	"max_pool3d_with_indices":          func(r *recipe) bool { return r.windowMaximum(3) },
	"max_pool3d":                       func(r *recipe) bool { return r.windowMaximum(3) },
	"adaptive_avg_pool1d":              func(r *recipe) bool { return r.adaptiveMean(1) },
	"adaptive_avg_pool2d":              func(r *recipe) bool { return r.adaptiveMean(2) },
	"adaptive_avg_pool3d":              func(r *recipe) bool { return r.adaptiveMean(3) },
	"avg_pool1d":                       func(r *recipe) bool { return r.windowMean(1) },
	"avg_pool2d":                       func(r *recipe) bool { return r.windowMean(2) },
	"avg_pool3d":                       func(r *recipe) bool { return r.windowMean(3) },
	"linear":                           (*recipe).linear,
	"mm":                               (*recipe).matrixProduct,
	"matmul":                           (*recipe).matrixProduct,
	"addmm":                            (*recipe).addProduct,
	"scaled_dot_product_attention":     (*recipe).attention,
	"glu":                              (*recipe).gatedHalf,
	"prelu":                            func(r *recipe) bool { return r.leaky("weight") },
	"_prelu_kernel":                    func(r *recipe) bool { return r.leaky("weight") },
	"tril":                             func(r *recipe) bool { return r.triangle("le") },
	"triu":                             func(r *recipe) bool { return r.triangle("ge") },
	"bucketize":                        (*recipe).buckets,
	"cdist":                            (*recipe).distances,
	"_cdist_forward":                   (*recipe).distances,
	"pixel_shuffle":                    func(r *recipe) bool { return r.shuffled(false) },
	"pixel_unshuffle":                  func(r *recipe) bool { return r.shuffled(true) },
	"upsample_nearest1d":               func(r *recipe) bool { return r.nearestNeighbour(1, false) },
	"upsample_nearest2d":               func(r *recipe) bool { return r.nearestNeighbour(2, false) },
	"upsample_nearest3d":               func(r *recipe) bool { return r.nearestNeighbour(3, false) },
	"_upsample_nearest_exact1d":        func(r *recipe) bool { return r.nearestNeighbour(1, true) },
	"_upsample_nearest_exact2d":        func(r *recipe) bool { return r.nearestNeighbour(2, true) },
	"arange":                           (*recipe).counting,
	graph.UniformTarget:                (*recipe).uniform,
	"cat":                              (*recipe).concatenate,
	"stack":                            (*recipe).stack,
	"constant_pad_nd":                  (*recipe).padConstant,
	"reflection_pad1d":                 func(r *recipe) bool { return r.padByBorder(true) },
	"reflection_pad2d":                 func(r *recipe) bool { return r.padByBorder(true) },
	"reflection_pad3d":                 func(r *recipe) bool { return r.padByBorder(true) },
	"replication_pad1d":                func(r *recipe) bool { return r.padByBorder(false) },
	"replication_pad2d":                func(r *recipe) bool { return r.padByBorder(false) },
	"replication_pad3d":                func(r *recipe) bool { return r.padByBorder(false) },
	"flip":                             (*recipe).flip,
	"roll":                             (*recipe).roll,
	"empty":                            func(r *recipe) bool { return !r.used(0) && r.constant(number(int64(0))) },
	"zeros":                            func(r *recipe) bool { return r.constant(number(int64(0))) },
	"zeros_like":                       func(r *recipe) bool { return r.constant(number(int64(0))) },
	"new_zeros":                        func(r *recipe) bool { return r.constant(number(int64(0))) },
	"ones":                             func(r *recipe) bool { return r.constant(number(int64(1))) },
	"ones_like":                        func(r *recipe) bool { return r.constant(number(int64(1))) },
	"new_ones":                         func(r *recipe) bool { return r.constant(number(int64(1))) },
	"full":                             func(r *recipe) bool { return r.constant(number(r.argument("fill_value", 1))) },
	"full_like":                        func(r *recipe) bool { return r.constant(number(r.argument("fill_value", 1))) },
	"new_full":                         func(r *recipe) bool { return r.constant(number(r.argument("fill_value", 2))) },
}

// constant fills the output with one number.
func (r *recipe) constant(value *graph.Expression) bool {
	switch value.Constant.(type) {
	case bool, int64, float64:
		return r.commit(r.formula(baseName(r.node.Target), r.result(0), value))
	}
	return false
}

// reductionDimensions reads the dimensions of a reduction's self.
func (r *recipe) reductionDimensions(self *tensor) []bool {
	return r.dimensions(len(self.meta.Sizes), r.argument("dim", 1))
}

// simple is a sum or product in the type of the result.
func (r *recipe) simple(how loop.Reduction) bool {
	self := r.tensor("self", 0)
	return r.commit(r.reduce(how, self, r.reductionDimensions(self), r.node.Outputs[0].Meta.DType, r.result(0)))
}

// extremum is a reduction that compares values of the type of self.
func (r *recipe) extremum(how loop.Reduction) bool {
	self := r.tensor("self", 0)
	return r.commit(r.reduce(how, self, r.reductionDimensions(self), self.meta.DType, r.result(0)))
}

// withIndex is max or min: of all elements, or along a dimension with the position of the first extremum. With two tensors it is a formula and does not come here.
func (r *recipe) withIndex(how, position loop.Reduction) bool {
	if len(r.node.Outputs) == 1 {
		return r.extremum(how)
	}
	self := r.tensor("self", 0)
	reduced := r.reductionDimensions(self)
	values := r.reduce(how, self, reduced, self.meta.DType, r.result(0))
	return r.commit(values, r.reduce(position, self, reduced, self.meta.DType, r.result(1)))
}

func (r *recipe) truth(how loop.Reduction) bool {
	self := r.tensor("self", 0)
	return r.commit(r.reduce(how, self, r.reductionDimensions(self), graph.Bool, r.result(0)))
}

func (r *recipe) countNonzero() bool {
	self := r.tensor("self", 0)
	nonzero := r.formulaIn("ne", self.meta.DType, r.fresh(graph.Bool, self.meta.Sizes), apply("ne", arg(0), number(int64(0))), self)
	return r.commit(r.reduce(loop.Sum, nonzero, r.reductionDimensions(self), graph.Int64, r.result(0)))
}

// sumOfNumbers leaves NaN out.
func (r *recipe) sumOfNumbers() bool {
	self, dtype := r.tensor("self", 0), r.node.Outputs[0].Meta.DType
	if !self.meta.DType.IsFloat() {
		return r.simple(loop.Sum)
	}
	numbers := apply("where", apply("isnan", arg(0)), number(0.0), arg(0))
	each := r.formula("numbers", r.fresh(self.meta.DType, self.meta.Sizes), numbers, self)
	return r.commit(r.reduce(loop.Sum, each, r.reductionDimensions(self), dtype, r.result(0)))
}

func (r *recipe) bothExtrema() bool {
	self := r.tensor("self", 0)
	reduced := r.reductionDimensions(self)
	least := r.reduce(loop.Minimum, self, reduced, self.meta.DType, r.result(0))
	return r.commit(least, r.reduce(loop.Maximum, self, reduced, self.meta.DType, r.result(1)))
}

// wide returns the type to compute intermediate results of floats in: float32 for float16 and bfloat16.
func (r *recipe) wide(dtype graph.DType) graph.DType {
	switch dtype {
	case graph.Float64:
		return graph.Float64
	case graph.Float16, graph.BFloat16, graph.Float32:
		return graph.Float32
	}
	r.failed = true
	return graph.Float32
}

func (r *recipe) mean() bool {
	self, output := r.tensor("self", 0), r.result(0)
	reduced := r.reductionDimensions(self)
	wide := r.wide(output.meta.DType)
	total := r.reduce(loop.Sum, self, reduced, wide, r.fresh(wide, output.meta.Sizes))
	return r.commit(r.formulaIn("div", wide, output, apply("div", arg(0), number(r.count(self, reduced))), total))
}

// correction is how much less than the number of elements a variance is divided by.
func (r *recipe) correction() float64 {
	if unbiased, ok := r.argument("unbiased", -1).(bool); ok {
		return map[bool]float64{true: 1}[unbiased]
	}
	return r.number("correction", -1, 1)
}

// variance computes in double on the CPU, as eager does.
func (r *recipe) variance(root, withMean bool) bool {
	self, output := r.tensor("self", 0), r.result(0)
	reduced := r.reductionDimensions(self)
	if written, ok := r.channelVariance(self, output, reduced, root, withMean); ok {
		return written
	}
	wide := r.wide(self.meta.DType)
	if r.device.Type != "cuda" {
		wide = graph.Float64
	}
	count := r.count(self, reduced)
	mean, squares := r.moments(self, reduced, wide, output.meta.Sizes)
	body := apply("div", arg(0), number(math.Max(count-r.correction(), 0)))
	if root {
		body = apply("sqrt", body)
	}
	outputs := []*tensor{r.formulaIn("var", wide, output, body, squares)}
	if withMean {
		outputs = append(outputs, r.formulaIn("mean", wide, r.result(1), arg(0), r.reshaped(mean, r.node.Outputs[1].Meta.Sizes)))
	}
	return r.commit(outputs...)
}

// moments returns the mean, with reduced dimensions kept as 1, and the sum of squared differences from it in the given shape.
func (r *recipe) moments(self *tensor, reduced []bool, wide graph.DType, shape []graph.Size) (mean, squares *tensor) {
	rows := kept(self.meta.Sizes, reduced)
	total := r.reduce(loop.Sum, self, reduced, wide, r.fresh(wide, rows))
	mean = r.formula("mean", r.fresh(wide, rows), apply("div", arg(0), number(r.count(self, reduced))), total)
	difference := r.formula("sub", r.fresh(wide, self.meta.Sizes), apply("sub", arg(0), arg(1)), self, mean)
	square := r.formula("square", r.fresh(wide, self.meta.Sizes), apply("mul", arg(0), arg(0)), difference)
	return mean, r.reduce(loop.Sum, square, reduced, wide, r.fresh(wide, shape))
}

// reshaped drops dimensions of one element from a fresh tensor: the same memory under fewer sizes.
func (r *recipe) reshaped(t *tensor, sizes []graph.Size) *tensor {
	meta := t.meta
	meta.Sizes, meta.Strides = sizes, contiguousStrides(r.b.program.graph.Shapes, sizes)
	return t.under(meta)
}

// softmax subtracts the row's maximum before exponentiating, so that nothing overflows.
func (r *recipe) softmax(logarithm bool) bool {
	self, output := r.tensor("self", 0), r.result(0)
	reduced := r.reductionDimensions(self)
	wide, rows := r.wide(output.meta.DType), kept(self.meta.Sizes, reduced)
	_, shifted, power, total := r.exponentials(self, reduced, wide)
	if !logarithm {
		r.pending[len(r.pending)-2].rounded = output.meta.DType == graph.BFloat16 && r.device.Type == "cpu" // the exponentials
		return r.commit(r.formulaIn("softmax", wide, output, apply("div", arg(0), arg(1)), power, total))
	}
	log := r.formula("log", r.fresh(wide, rows), apply("log", arg(0)), total)
	return r.commit(r.formulaIn("log_softmax", wide, output, apply("sub", arg(0), arg(1)), shifted, log))
}

// logSumExp leaves infinite maxima out of the shift, whose difference would be NaN.
func (r *recipe) logSumExp() bool {
	self, output := r.tensor("self", 0), r.result(0)
	reduced := r.reductionDimensions(self)
	wide, rows := r.wide(output.meta.DType), kept(self.meta.Sizes, reduced)
	greatest := r.reduce(loop.Maximum, self, reduced, wide, r.fresh(wide, rows))
	shift := r.formula("where", r.fresh(wide, rows), apply("where", apply("isinf", arg(0)), number(int64(0)), arg(0)), greatest)
	power := r.formula("exp", r.fresh(wide, self.meta.Sizes), apply("exp", apply("sub", arg(0), arg(1))), self, shift)
	total := r.reduce(loop.Sum, power, reduced, wide, r.fresh(wide, output.meta.Sizes))
	flat := r.reshaped(shift, output.meta.Sizes)
	return r.commit(r.formulaIn("logsumexp", wide, output, apply("add", apply("log", arg(0)), arg(1)), total, flat))
}

// trailing marks the dimensions that a list of normalized sizes covers.
func (r *recipe) trailing(rank int, value graph.Value) []bool {
	list, ok := value.(graph.List)
	if !ok || len(list.Items) > rank {
		r.failed = true
		return make([]bool, rank)
	}
	return slices.Concat(make([]bool, rank-len(list.Items)), slices.Repeat([]bool{true}, len(list.Items)))
}

// used reports whether the caller takes a result of the node, or another node that does anything does.
func (r *recipe) used(index int) bool {
	return index < len(r.node.Outputs) && r.b.valueUsed(r.node.Output(index))
}

func (b *builder) valueUsed(value graph.Value) bool {
	wanted, _ := keyOf(value)
	takes := func(value graph.Value) bool {
		key, ok := keyOf(value)
		return ok && key == wanted
	}
	g := b.compilation.graph
	return slices.ContainsFunc(g.Outputs, takes) || slices.ContainsFunc(g.Nodes, func(node *graph.Node) bool {
		return slices.ContainsFunc(tensorArguments(node), takes) && (!readsOnly(node) || b.nodeUsed(node))
	})
}

// readsOnly reports whether an operator only describes memory.
func readsOnly(node *graph.Node) bool {
	op, known := graph.LookUp(node.Target)
	return known && op.Kind == graph.KindView && len(node.Mutates) == 0
}

func (b *builder) nodeUsed(node *graph.Node) bool {
	for index := range node.Outputs {
		if b.valueUsed(node.Output(index)) {
			return true
		}
	}
	return false
}

func (r *recipe) layerNorm() bool {
	if r.device.Type == "cpu" && (r.used(1) || r.used(2)) {
		return false // ATen's backward takes its own kernel's mean, whose rounding shows in rows far off centre
	}
	self, weight, bias := r.tensor("input", 0), r.optional("weight", 2), r.optional("bias", 3)
	reduced := r.trailing(len(self.meta.Sizes), r.argument("normalized_shape", 1))
	wide, rows := r.wide(self.meta.DType), kept(self.meta.Sizes, reduced)
	mean, squares := r.moments(self, reduced, wide, rows)
	variance, moments := apply("div", arg(0), number(r.count(self, reduced))), []*tensor{squares}
	if r.device.Type == "cpu" {
		// ATen's CPU kernel merges the moments of a row's first chunk with those of nothing (RowwiseMoments, moments_utils.h), which adds 0 times
		// the square of a mean: NaN where that overflows.
		variance = apply("add", variance, apply("mul", number(0.0), apply("mul", arg(1), arg(1))))
		moments = append(moments, mean)
	}
	scale := r.formula("rsqrt", r.fresh(wide, rows), apply("rsqrt", apply("add", variance, number(r.number("eps", 4, 1e-5)))), moments...)
	normal := apply("mul", apply("sub", arg(0), arg(1)), arg(2))
	outputs := []*tensor{r.affine("layer_norm", wide, normal, []*tensor{self, mean, scale}, weight, bias)}
	if len(r.node.Outputs) == 3 {
		outputs = append(outputs, r.formulaIn("mean", wide, r.result(1), arg(0), mean), r.formulaIn("rstd", wide, r.result(2), arg(0), scale))
	}
	return r.commit(outputs...)
}

func (r *recipe) rmsNorm() bool {
	self, weight := r.tensor("input", 0), r.optional("weight", 2)
	if r.argument("eps", 3) == nil {
		return false // the default depends on the type, and on torch's version
	}
	reduced := r.trailing(len(self.meta.Sizes), r.argument("normalized_shape", 1))
	wide, rows := r.wide(self.meta.DType), kept(self.meta.Sizes, reduced)
	square := r.formula("square", r.fresh(wide, self.meta.Sizes), apply("mul", arg(0), arg(0)), self)
	total := r.reduce(loop.Sum, square, reduced, wide, r.fresh(wide, rows))
	mean := apply("div", arg(0), number(r.count(self, reduced)))
	scale := r.formula("rsqrt", r.fresh(wide, rows), apply("rsqrt", apply("add", mean, number(r.number("eps", 3, 0)))), total)
	return r.commit(r.affine("rms_norm", wide, apply("mul", arg(0), arg(1)), []*tensor{self, scale}, weight, nil))
}

// affine multiplies by a weight and adds a bias where they are given.
func (r *recipe) affine(name string, wide graph.DType, body *graph.Expression, operands []*tensor, weight, bias *tensor) *tensor {
	if weight != nil {
		body = apply("mul", body, arg(len(operands)))
		operands = append(operands, weight)
	}
	if bias != nil {
		body = apply("add", body, arg(len(operands)))
		operands = append(operands, bias)
	}
	return r.formulaIn(name, wide, r.result(0), body, operands...)
}

// batchNorm is inference with running statistics: a scale and a shift for each channel.
func (r *recipe) batchNorm() bool {
	self, mean, variance := r.tensor("input", 0), r.optional("running_mean", 3), r.optional("running_var", 4)
	weight, bias := r.optional("weight", 1), r.optional("bias", 2)
	if r.flag("training", 5) && mean == nil && r.device.Type != "cuda" && len(r.node.Outputs) == 1 {
		result, _, _ := r.normaliseBatch()
		return r.commit(result)
	}
	if r.flag("training", 5) || mean == nil || variance == nil || len(self.meta.Sizes) < 2 {
		return false
	}
	wide := r.wide(self.meta.DType)
	channels := func(t *tensor) *tensor { return r.perChannel(t, len(self.meta.Sizes)) }
	shape := channels(mean).meta.Sizes
	root := apply("rsqrt", apply("add", arg(0), number(r.number("eps", 7, 1e-5))))
	scale := r.formula("rsqrt", r.fresh(wide, shape), root, channels(variance))
	normal := apply("mul", apply("sub", arg(0), arg(1)), arg(2))
	var factors [2]*tensor
	for index, t := range []*tensor{weight, bias} {
		if t != nil {
			factors[index] = channels(t)
		}
	}
	return r.commit(r.affine("batch_norm", wide, normal, []*tensor{self, channels(mean), scale}, factors[0], factors[1]))
}

// perChannel views a vector so that it broadcasts along dimension 1 of the given rank.
func (r *recipe) perChannel(t *tensor, rank int) *tensor {
	if len(t.meta.Sizes) != 1 {
		r.failed = true
		return t
	}
	meta := t.meta
	meta.Sizes, meta.Strides = graph.Statics(make([]int64, rank-1)...), graph.Statics(make([]int64, rank-1)...)
	meta.Sizes[0], meta.Strides[0] = t.meta.Sizes[0], t.meta.Strides[0]
	for dimension := 1; dimension < rank-1; dimension++ {
		meta.Sizes[dimension] = graph.Static(1)
	}
	return t.under(meta)
}
