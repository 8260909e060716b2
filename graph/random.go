package graph

func randomRows() []row {
	like := tensorOptions + ", MemoryFormat? memory_format=None) -> Tensor"
	fresh := tensorOptions + ") -> Tensor"
	random := func(schema string, traits trait, r rule) row {
		return row{schema: schema, kind: KindRandom, traits: traits | randomOp, rule: r}
	}
	return []row{
		{schema: "dropout(Tensor input, float p, bool train) -> Tensor", kind: KindRandom, rule: inferDropout},
		{schema: "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", kind: KindRandom, rule: inferDropoutInto},
		random("rand(SymInt[] size, *, "+fresh, noGradient, inferRandomFresh),
		random("randn(SymInt[] size, *, "+fresh, noGradient, inferRandomFresh),
		random("randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", noGradient, inferRandomInteger),
		random("rand_like(Tensor self, *, "+like, noGradient, inferRandomLike),
		random("randn_like(Tensor self, *, "+like, noGradient, inferRandomLike),
		random("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", 0, inferBernoulli),
		random("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)", noGradient, inferRandomInto),
		random("normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)", noGradient, inferRandomFloatInto),
		random("uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)", noGradient, inferRandomFloatInto),
		random("exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)", noGradient, inferRandomFloatInto),
		random("log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)", noGradient, inferRandomFloatInto),
		random("cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)", noGradient, inferRandomFloatInto),
		random("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)", noGradient, inferRandomFloatInto),
		random("bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)", noGradient, inferRandomFloatInto),
		{schema: "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", kind: KindRandom, accepts: "hf", traits: randomOp | belowAutograd, rule: inferMaskedDropout},
		random("_fusee_generator_state(Tensor[] given, int[] draws, *, Device device) -> Tensor", noGradient, inferGeneratorState),
		factory("_fusee_uniform(Tensor state, int number, int lanes, SymInt[] size, SymInt[] stride, *, "+fresh, inferEmptyStrided),
		{schema: "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor", kind: KindRandom, accepts: "hf", rule: inferLeak},
		{schema: "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)", kind: KindRandom, accepts: "hf", traits: belowAutograd, rule: inferNoisyLeak},
	}
}

// inferDropout returns the argument itself when there is nothing to drop.
func inferDropout(c *inference) error {
	m := c.self()
	p, ok := c.value("p").(float64)
	if !ok || p < 0 || p > 1 || !m.DType.IsFloat() {
		return unknown("dropout arguments")
	}
	if !c.boolean("train") || p == 0 || c.shapes.anyZero(m.Sizes) {
		c.returnSelf()
		return nil
	}
	c.random = true
	if !c.shapes.isDense(m) {
		return unknown("dropout of a tensor with gaps")
	}
	return c.make(m.DType, m.Sizes, c.shapes.iteratorStrides(m.Sizes, []*Meta{m, m}))
}

// inferMaskedDropout is the rule of the kernel behind dropout on a GPU, which also gives what it keeps, as truth values.
func inferMaskedDropout(c *inference) error {
	m := c.self()
	p, ok := c.value("p").(float64)
	if !ok || p <= 0 || p >= 1 || c.value("train") != true || m.Device.Type != "cuda" || c.shapes.anyZero(m.Sizes) || !c.shapes.isDense(m) {
		return unknown("dropout arguments")
	}
	strides := c.shapes.iteratorStrides(m.Sizes, []*Meta{m})
	if err := c.make(m.DType, m.Sizes, strides); err != nil {
		return err
	}
	return c.make(Bool, m.Sizes, strides)
}

func inferDropoutInto(c *inference) error {
	m := c.self()
	p, ok := c.value("p").(float64)
	if !ok || p < 0 || p > 1 || !m.DType.IsFloat() {
		return unknown("dropout arguments")
	}
	if !c.boolean("train") || p == 0 || c.shapes.anyZero(m.Sizes) {
		c.returnSelf()
		return nil
	}
	c.random = true
	return c.mutateSelf()
}

func inferRandomFresh(c *inference) error {
	if d := c.dtype("dtype", c.state.defaultDType()); !d.IsFloat() {
		return unknown("random numbers of this type")
	}
	return inferFilled(c)
}

func inferRandomInteger(c *inference) error {
	low, okLow := c.size("low")
	high, okHigh := c.size("high")
	if !okLow || !okHigh || !c.shapes.Less(low, high) || c.dtype("dtype", Int64) != Int64 {
		return unknown("randint arguments")
	}
	return inferFilled(c)
}

func inferRandomLike(c *inference) error {
	if d := c.dtype("dtype", c.self().DType); !d.IsFloat() {
		return unknown("random numbers of this type")
	}
	return inferLike(c)
}

func inferBernoulli(c *inference) error {
	m := c.self()
	if !m.DType.IsFloat() || c.value("generator") != nil {
		return unknown("bernoulli arguments")
	}
	return c.makeContiguous(m.DType, m.Sizes)
}

func inferRandomInto(c *inference) error {
	if c.value("generator") != nil || c.graph.RequiresGrad(c.values[0]) {
		return unknown("random fill of this tensor")
	}
	return c.mutateSelf()
}

func inferRandomFloatInto(c *inference) error {
	if !c.self().DType.IsFloat() {
		return unknown("random fill of this type")
	}
	return inferRandomInto(c)
}

// inferLeak is the rule of rrelu, which draws the slope of each negative element when it trains.
func inferLeak(c *inference) error {
	m := c.self()
	if m.Device.Type != "cpu" || !c.shapes.IsContiguous(m) || c.value("generator") != nil {
		return unknown("rrelu arguments")
	}
	c.random = c.boolean("training")
	return c.makeContiguous(m.DType, m.Sizes)
}

// inferNoisyLeak is inferLeak with the slopes, 1 for positive elements, as a second result.
func inferNoisyLeak(c *inference) error {
	noise := c.tensor("noise")
	if err := inferLeak(c); err != nil {
		return err
	}
	return c.make(noise.DType, noise.Sizes, c.shapes.iteratorStrides(noise.Sizes, []*Meta{noise}))
}

// numbersOfState is how many numbers a row of a state has: the seed, the first counter, the number of threads, and the binary logarithm of how
// many neighbours a thread takes at once.
const numbersOfState = 4

// inferGeneratorState is the rule of the state of a GPU's generator ahead of some draws, a row each.
func inferGeneratorState(c *inference) error {
	draws, ok := c.integers("draws")
	device, known := c.value("device").(Device)
	if !ok || !known || device.Type != "cuda" || len(draws)%fieldsOfDraw != 0 {
		return unknown("state of a generator")
	}
	sizes := Statics(int64(len(draws)/fieldsOfDraw), numbersOfState)
	return c.create(Int64, Device{Type: "cpu"}, sizes, c.shapes.contiguousStrides(sizes))
}
