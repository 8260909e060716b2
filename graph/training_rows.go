package graph

import "slices"

// trainingRows are operators that only the forward and backward parts of a trained graph call: torch's own backward operators, and forward
// operators that also give what those read.
func trainingRows() []row {
	library := func(schema string, r rule) row {
		return row{schema: schema, kind: KindLibrary, accepts: "hf", traits: belowAutograd, rule: r}
	}
	return []row{
		library("native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)", inferNativeLayerNorm),
		library("native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", inferLayerNormBackward),
		library("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)", inferNativeGroupNorm),
		library("native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", inferGroupNormBackward),
		library("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)", inferNativeBatchNorm),
		library("native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", inferBatchNormBackward),
		library("embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor", inferEmbeddingBackward),
		library("nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)", inferClassLossForward),
		library("nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor", inferLikeArgument("self")),
		library("nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)", inferClassLossForward),
		library("nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor", inferLikeArgument("self")),
		library("max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)", inferPool2DWithIndices),
		library("max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor", inferPoolBackward),
		library("avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor", inferPoolBackward),
		library("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor", inferPoolBackward),
		library("convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", inferConvolutionBackward),
		library("slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor", inferPlacedInZeros),
		library("select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor", inferPlacedInZeros),
		library("diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor", inferPlacedInZeros),
		library("unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor", inferPlacedInZeros),
		library("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)", inferFlashAttention),
		library("_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)", inferFlashAttentionBackward),
	}
}

// absent adds an output that is not computed, which is no error.
func (c *inference) absent() error {
	c.outputs = append(c.outputs, OutputInfo{})
	return nil
}

// masked adds the k-th output unless the output mask leaves it out.
func (c *inference) masked(k int, add func() error) error {
	mask, _ := c.value("output_mask").(List)
	if k >= len(mask.Items) || mask.Items[k] != true {
		return c.absent()
	}
	return add()
}

// maskedLike adds a row-major output of the type and sizes of each named argument that the mask asks for.
func (c *inference) maskedLike(names ...string) error {
	for k, name := range names {
		if err := c.masked(k, func() error { return c.contiguousLike(name) }); err != nil {
			return err
		}
	}
	return nil
}

// contiguousLike adds a row-major output of the type and sizes of an argument, none where that is None.
func (c *inference) contiguousLike(name string) error {
	m := c.tensor(name)
	if m == nil {
		return c.absent()
	}
	return c.makeContiguous(m.DType, m.Sizes)
}

// inferLikeArgument is the rule of operators whose result is a row-major tensor like one argument.
func inferLikeArgument(name string) rule {
	return func(c *inference) error {
		m := c.tensor(name)
		return c.makeContiguous(m.DType, m.Sizes)
	}
}

// statisticsType is the type that means and deviations are kept in: float32 of 16-bit floats on accelerators, else that of the tensor.
func (c *inference) statisticsType() (DType, error) {
	d := c.self().DType
	switch {
	case d.Bytes() >= 4:
		return d, nil
	case c.self().Device.Type != "cpu":
		return Float32, nil
	}
	return NoDType, unknown(c.op.String() + " of 16-bit floats on the CPU")
}

func inferNativeLayerNorm(c *inference) error {
	m := c.self()
	if err := inferLayerNorm(c); err != nil {
		return err
	}
	d, err := c.statisticsType()
	if err != nil || c.shapes.anyZero(m.Sizes) {
		return unknown("layer norm statistics")
	}
	shape, _ := c.sizes("normalized_shape")
	rows := slices.Concat(m.Sizes[:m.Dim()-len(shape)], slices.Repeat(Statics(1), len(shape)))
	return c.makeContiguous(d, rows, rows)
}

func inferLayerNormBackward(c *inference) error { return c.maskedLike("input", "weight", "bias") }

func inferNativeGroupNorm(c *inference) error {
	m := c.self()
	groups, ok := c.size("group")
	batch, batched := c.size("N")
	d, err := c.statisticsType()
	if err != nil || !ok || !batched || m.Dim() < 2 || !c.shapes.isContiguous(m) || c.shapes.anyZero(m.Sizes) {
		return unknown("group norm arguments")
	}
	if err := c.sameFloatType("weight", "bias"); err != nil {
		return err
	}
	if err := c.makeContiguous(m.DType, m.Sizes); err != nil {
		return err
	}
	statistics := []Size{batch, groups}
	return c.makeContiguous(d, statistics, statistics)
}

func inferGroupNormBackward(c *inference) error {
	if !c.shapes.isContiguous(c.tensor("input")) || !c.shapes.isContiguous(c.tensor("grad_out")) {
		return unknown("group norm layout")
	}
	mask, _ := c.value("output_mask").(List)
	channels, ok := c.size("C")
	if !ok || len(mask.Items) != 3 {
		return unknown("group norm arguments")
	}
	m := c.tensor("input")
	for k, sizes := range [][]Size{m.Sizes, {channels}, {channels}} {
		if err := c.masked(k, func() error { return c.makeContiguous(m.DType, sizes) }); err != nil {
			return err
		}
	}
	return nil
}

// inferNativeBatchNorm gives the statistics of the batch besides; with those of the past it keeps none.
func inferNativeBatchNorm(c *inference) error {
	if err := inferBatchNorm(c); err != nil {
		return err
	}
	d, err := c.statisticsType()
	training, kept := c.boolean("training"), []Size{c.self().Sizes[1]}
	if err != nil || c.self().Device.Type != "cpu" && !training {
		return unknown("batch norm statistics")
	}
	if !training {
		kept = Statics(0)
	}
	return c.makeContiguous(d, kept, kept)
}

func inferBatchNormBackward(c *inference) error {
	m := c.tensor("input")
	for k, name := range []string{"input", "weight", "weight"} {
		err := c.masked(k, func() error {
			if p := c.tensor(name); k > 0 && p != nil {
				return c.makeContiguous(p.DType, p.Sizes)
			}
			if !c.unambiguous(m) {
				return unknown("batch norm layout")
			}
			return c.makeLike(m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func inferEmbeddingBackward(c *inference) error {
	m, indices := c.self(), c.tensor("indices")
	rows, ok := c.size("num_weights")
	if !ok || m.Dim() == 0 || indices == nil || !isIndexType(indices.DType) {
		return unknown("embedding gradient")
	}
	return c.makeContiguous(m.DType, []Size{rows, m.Sizes[m.Dim()-1]})
}

func inferClassLossForward(c *inference) error {
	if err := inferCrossEntropy(c); err != nil {
		return err
	}
	if planes := c.op.Schema.Name == "nll_loss2d_forward"; planes != (c.self().Dim() == 4) || !planes && c.self().Dim() > 2 {
		return unknown("class loss dimensions")
	}
	return c.makeContiguous(c.self().DType, nil)
}

func inferPool2DWithIndices(c *inference) error {
	if err := inferPool2D(c); err != nil {
		return err
	}
	m := c.self()
	if !c.unambiguous(m) {
		return unknown("pooling layout")
	}
	strides, _ := c.shapes.formatStrides(c.shapes.suggestedFormat(m), c.outputs[0].Meta.Sizes)
	return c.make(Int64, c.outputs[0].Meta.Sizes, strides)
}

func inferPoolBackward(c *inference) error {
	m := c.tensor("self")
	if !c.unambiguous(m) {
		return unknown("pooling layout")
	}
	return c.makeLike(m)
}

func inferConvolutionBackward(c *inference) error {
	v := &convolution{inference: c, input: c.tensor("input"), weight: c.tensor("weight")}
	if v.input.Dim() != v.weight.Dim() || v.input.DType != v.weight.DType || !c.unambiguous(v.input) || !c.unambiguous(v.weight) {
		return unknown("convolution gradient")
	}
	for k, m := range []*Meta{v.input, v.weight} {
		if err := c.masked(k, func() error { return v.layout(m.Sizes) }); err != nil {
			return err
		}
	}
	return c.masked(2, func() error {
		sizes, ok := c.sizes("bias_sizes")
		if !ok {
			return unknown("convolution bias")
		}
		return c.makeContiguous(v.input.DType, sizes)
	})
}

func inferPlacedInZeros(c *inference) error {
	sizes, ok := c.sizes("input_sizes")
	if !ok {
		return unknown("sizes of a gradient")
	}
	return c.makeContiguous(c.self().DType, sizes)
}

// headsInside are the strides of [batch, heads, positions, features] stored with the heads after the positions.
func (c *inference) headsInside(sizes []Size) []Size {
	e := c.shapes
	row := e.Multiply(sizes[1], sizes[3])
	return []Size{e.Multiply(sizes[2], row), sizes[3], row, Static(1)}
}

func inferFlashAttention(c *inference) error {
	q := c.tensor("query")
	if q.Dim() != 4 || q.Device.Type != "cpu" || q.DType.Bytes() < 4 {
		return unknown("attention arguments")
	}
	if err := inferAttention(c); err != nil {
		return err
	}
	e := c.shapes
	return c.make(q.DType, q.Sizes[:3], []Size{e.Multiply(q.Sizes[1], q.Sizes[2]), Static(1), q.Sizes[1]})
}

func inferFlashAttentionBackward(c *inference) error {
	for _, name := range []string{"query", "key", "value"} {
		m := c.tensor(name)
		if err := c.make(m.DType, m.Sizes, c.headsInside(m.Sizes)); err != nil {
			return err
		}
	}
	return nil
}
