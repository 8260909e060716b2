package graph

// attentionRows are torch's kernels of attention on a GPU, which one of takes the place of scaled_dot_product_attention where gradients are recorded,
// and their derivatives. The forward ones also return the logarithm of each query's sum, float32, and the state of the random numbers of dropout.
func attentionRows() []row {
	forward := func(schema string, r rule) row { return row{schema: schema, kind: KindLibrary, accepts: "hf", rule: r} }
	library := func(schema string, r rule) row {
		return row{schema: schema, kind: KindLibrary, accepts: "hf", traits: belowAutograd | takesUndefined, rule: r}
	}
	return []row{
		forward("_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)", sequenceKernel(Uint64, Statics(2))),
		forward("_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)", withSums(withoutDropout(sequenceKernel(Int64, nil, Static(1))))),
		forward("_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)", withSums(withoutDropout(inferEfficientKernel))),
		library("_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)", inferFlashAttentionBackward),
		library("_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, Tensor attn_bias, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, *, float? scale=None) -> (Tensor, Tensor, Tensor)", inferCudnnAttentionBackward),
		library("_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)", inferEfficientAttentionBackward),
	}
}

// attentionKernel adds the output, laid out as the query, and the logarithms of the sums.
func (c *inference) attentionKernel(sums ...Size) (query *Meta, err error) {
	q, k, v := c.tensor("query"), c.tensor("key"), c.tensor("value")
	dropout, known := c.value("dropout_p").(float64)
	c.random = dropout != 0
	if q.Dim() != 4 || k.Dim() != 4 || v.Dim() != 4 || q.Device.Type != "cuda" || !known || c.graph.RequiresGrad(c.value("attn_bias")) {
		return nil, unknown("attention arguments")
	}
	sizes := []Size{q.Sizes[0], q.Sizes[1], q.Sizes[2], v.Sizes[3]}
	strides := c.shapes.preservedStrides(q)
	if !c.shapes.Equal(q.Sizes[3], v.Sizes[3]) {
		return nil, unknown("attention with values of another size")
	}
	if err := c.make(q.DType, sizes, strides); err != nil {
		return nil, err
	}
	return q, c.makeContiguous(Float32, append([]Size{q.Sizes[0], q.Sizes[1]}, sums...))
}

// drawn adds the two tensors that say which random numbers dropout drew.
func (c *inference) drawn(dtype DType, seed []Size) error { return c.makeContiguous(dtype, seed, nil) }

// variableLengths leaves out what only sequences of several lengths have.
func (c *inference) variableLengths() {
	c.outputs = append(c.outputs, make([]OutputInfo, 4)...)
}

// inferEfficientKernel: the sums are padded to multiples of 32 queries.
func inferEfficientKernel(c *inference) error {
	const unit = 32
	e := c.shapes
	if c.tensor("query").Dim() != 4 {
		return unknown("attention arguments")
	}
	blocks := e.FloorDivide(e.Add(c.tensor("query").Sizes[2], Static(unit-1)), Static(unit))
	q, err := c.attentionKernel(e.Multiply(blocks, Static(unit)))
	if err != nil {
		return err
	}
	c.outputs[0].Meta.Strides = c.headsInside(q.Sizes)
	return c.drawn(Int64, nil)
}

// inferCudnnAttentionBackward: the gradients lie as query, key and value do.
func inferCudnnAttentionBackward(c *inference) error {
	for _, name := range []string{"query", "key", "value"} {
		m := c.tensor(name)
		if err := c.make(m.DType, m.Sizes, c.shapes.preservedStrides(m)); err != nil {
			return err
		}
	}
	return nil
}

// inferEfficientAttentionBackward computes no gradient of the mask.
func inferEfficientAttentionBackward(c *inference) error {
	if mask, _ := c.value("grad_input_mask").(List); len(mask.Items) != 4 || mask.Items[3] != false {
		return unknown("the gradient of a mask of attention")
	}
	if err := inferFlashAttentionBackward(c); err != nil {
		return err
	}
	return c.absent()
}

// withSums is the rule of a kernel that may leave the sums out, which no caller asks for.
func withSums(kernel rule) rule {
	return func(c *inference) error {
		if !c.boolean("compute_log_sumexp") {
			return unknown("attention without sums")
		}
		return kernel(c)
	}
}

// withoutDropout is the rule of a kernel that gives the state of its random numbers in memory of the CPU.
func withoutDropout(kernel rule) rule {
	return func(c *inference) error {
		if c.value("dropout_p") != Value(0.0) {
			return unknown("attention with dropout")
		}
		return kernel(c)
	}
}

// sequenceKernel is the rule of the flash and cuDNN kernels: they also take sequences of several lengths, and end with a mask for debugging. The
// sums have more dimensions after that of the queries.
func sequenceKernel(drawn DType, seed []Size, more ...Size) rule {
	return func(c *inference) error {
		if c.tensor("query").Dim() != 4 {
			return unknown("attention arguments")
		}
		if _, err := c.attentionKernel(append(c.tensor("query").Sizes[2:3:3], more...)...); err != nil {
			return err
		}
		c.variableLengths()
		if err := c.drawn(drawn, seed); err != nil {
			return err
		}
		return c.absent()
	}
}
