package graph

func normalise(schema, accepts string, traits trait, r rule) row {
	return row{schema: schema, kind: KindNormalise, accepts: accepts, traits: traits, rule: r}
}

func normalisationRows() []row {
	return []row{
		normalise("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", "hf", 0, inferSoftmax),
		normalise("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", "hf", 0, inferSoftmax),
		normalise("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", "hf", 0, inferSoftmax),
		normalise("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", "hf", 0, inferSoftmax),
		normalise("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", "hf", 0, inferSoftmax),
		normalise("layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor", "hf", 0, inferLayerNorm),
		normalise("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", "hf", 0, inferLayerNorm),
		normalise("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor", "hf", 0, inferGroupNorm),
		normalise("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor", "hf", 0, inferBatchNorm),
	}
}

func inferSoftmax(c *inference) error {
	d := c.dtype("dtype", c.self().DType)
	if c.boolean("half_to_float") || !c.accepts(d) {
		return unknown("softmax type")
	}
	return c.scanned(d)
}

// sameFloatType checks that the optional parameters have the input's type.
func (c *inference) sameFloatType(names ...string) error {
	d := c.self().DType
	for _, name := range names {
		if m := c.tensor(name); m != nil && m.DType != d {
			return unknown(c.op.String() + " of mixed types")
		}
	}
	return c.requireAccepted(d)
}

func inferLayerNorm(c *inference) error {
	m, e := c.self(), c.shapes
	if err := c.sameFloatType("weight", "bias"); err != nil {
		return err
	}
	shape, ok := c.sizes("normalized_shape")
	if !ok || len(shape) == 0 || len(shape) > m.Dim() || !e.AllEqual(shape, m.Sizes[m.Dim()-len(shape):]) {
		return unknown("normalized_shape")
	}
	for _, name := range []string{"weight", "bias"} {
		if p := c.tensor(name); p != nil && !e.AllEqual(p.Sizes, shape) {
			return unknown(name + " does not have the normalized shape")
		}
	}
	if c.op.Schema.Name == "rms_norm" {
		return c.rmsNorm(m)
	}
	return c.makeContiguous(m.DType, m.Sizes)
}

// rmsNorm is a chain of pointwise operations in eager: its result follows the layout of the input.
func (c *inference) rmsNorm(m *Meta) error {
	if !plainlyContiguous(m.Sizes, m.Strides) || c.shapes.anyZero(m.Sizes) {
		return unknown("rms_norm of a tensor that is not row-major")
	}
	return c.makeContiguous(m.DType, m.Sizes)
}

func (c *inference) channelVectors(channels Size, names ...string) error {
	for _, name := range names {
		if p := c.tensor(name); p != nil && (p.Dim() != 1 || !c.shapes.Equal(p.Sizes[0], channels)) {
			return unknown(name + " is not one number per channel")
		}
	}
	return nil
}

func inferGroupNorm(c *inference) error {
	m, e := c.self(), c.shapes
	if err := c.sameFloatType("weight", "bias"); err != nil {
		return err
	}
	groups, ok := c.size("num_groups")
	if !ok || m.Dim() < 2 || groups.Hint < 1 || e.anyZero(m.Sizes) || !e.IsZero(e.Modulo(m.Sizes[1], groups)) {
		return unknown("group_norm arguments")
	}
	if err := c.channelVectors(m.Sizes[1], "weight", "bias"); err != nil {
		return err
	}
	if m.Device.Type != "cpu" {
		return c.makeContiguous(m.DType, m.Sizes)
	}
	return c.makeLike(m)
}

// makeLike adds an output in the memory format torch guesses for m.
func (c *inference) makeLike(m *Meta) error {
	strides, _ := c.shapes.formatStrides(c.shapes.suggestedFormat(m), m.Sizes)
	return c.make(m.DType, m.Sizes, strides)
}

func (c *inference) unambiguous(m *Meta) bool { return c.shapes.Unambiguous(m) }

func inferBatchNorm(c *inference) error {
	m, e := c.self(), c.shapes
	statistics := []string{"weight", "bias", "running_mean", "running_var"}
	if err := c.sameFloatType(statistics...); err != nil {
		return err
	}
	if m.Dim() < 2 || e.anyZero(m.Sizes) {
		return unknown("batch_norm input")
	}
	if err := c.channelVectors(m.Sizes[1], statistics...); err != nil {
		return err
	}
	mean, variance := c.value("running_mean"), c.value("running_var")
	if (mean == nil) != (variance == nil) || mean == nil && !c.boolean("training") {
		return unknown("batch_norm statistics")
	}
	if c.graph.RequiresGrad(mean) || c.graph.RequiresGrad(variance) {
		return unknown("batch_norm statistics that require gradients")
	}
	if c.boolean("training") && mean != nil {
		c.mutates = append(c.mutates, mean, variance)
	}
	if m.Device.Type != "cpu" && !c.unambiguous(m) {
		return unknown("batch_norm layout")
	}
	if c.shapes.isContiguous(m) {
		return c.makeContiguous(m.DType, m.Sizes)
	}
	return c.makeLike(m)
}
