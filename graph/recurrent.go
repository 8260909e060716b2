package graph

// recurrentRows are oneDNN's layers of LSTM on a CPU, in one direction: their inputs are ordered by time, whatever the flags say.
func recurrentRows() []row {
	return []row{
		{schema: "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
			kind: KindLibrary, accepts: "f", traits: belowAutograd, rule: inferRecurrentLayer},
		{schema: "mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor hx_, Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, bool train, bool bidirectional, int[] batch_sizes, bool batch_first, Tensor workspace) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
			kind: KindLibrary, accepts: "f", traits: belowAutograd, rule: inferRecurrentBackward},
	}
}

// inferRecurrentLayer: how large the last result is, which backward alone reads, the library knows.
func inferRecurrentLayer(c *inference) error {
	input, hidden := c.tensor("input"), c.tensor("hx_")
	size, known := c.size("hidden_size")
	if !known || input.Dim() != 3 || c.shapes.anyZero(input.Sizes) || c.boolean("has_biases") != (c.tensor("weight2").Dim() == 1) {
		return unknown("arguments of a recurrent layer")
	}
	output := []Size{input.Sizes[0], input.Sizes[1], size}
	if err := c.makeContiguous(input.DType, output, hidden.Sizes, c.tensor("cx_").Sizes); err != nil {
		return err
	}
	return c.makeContiguous(Uint8, Statics(0))
}

func inferRecurrentBackward(c *inference) error {
	for _, name := range []string{"input", "weight1", "weight2", "weight3", "weight4", "hx_", "cx_tmp"} {
		if err := c.contiguousLike(name); err != nil {
			return err
		}
	}
	return nil
}
