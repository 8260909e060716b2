package graph

// moduleFunctions covers Python functions of torch.nn.functional and torch that only check and forward, for hosts that keep them
// whole, and builtins whose Python signature has defaults the operator lacks.
func moduleFunctions() map[string]function {
	return map[string]function{
		"torch.nn.functional.relu":          functionalActivation("relu", "inplace"),
		"torch.nn.functional.silu":          functionalActivation("silu", "inplace"),
		"torch.nn.functional.mish":          functionalActivation("mish", "inplace"),
		"torch.nn.functional.relu6":         functionalActivation("relu6", "inplace"),
		"torch.nn.functional.selu":          functionalActivation("selu", "inplace"),
		"torch.nn.functional.hardsigmoid":   functionalActivation("hardsigmoid", "inplace"),
		"torch.nn.functional.hardswish":     functionalActivation("hardswish", "inplace"),
		"torch.nn.functional.elu":           functionalActivation("elu", "alpha", "inplace"),
		"torch.nn.functional.leaky_relu":    functionalActivation("leaky_relu", "negative_slope", "inplace"),
		"torch.nn.functional.hardtanh":      functionalActivation("hardtanh", "min_val", "max_val", "inplace"),
		"torch.nn.functional.softmax":       functionalSoftmax("aten.softmax.int"),
		"torch.nn.functional.log_softmax":   functionalSoftmax("aten.log_softmax.int"),
		"torch.nn.functional.sigmoid":       functionalActivation("sigmoid"),
		"torch.nn.functional.tanh":          functionalActivation("tanh"),
		"torch.nn.functional.layer_norm":    layerNorm,
		"torch.nn.functional.dropout":       functionalDropout,
		"torch.nn.functional.embedding":     functionalEmbedding,
		"torch.nn.functional.cross_entropy": functionalCrossEntropy,
		"torch.nn.functional.mse_loss":      functionalMSELoss,
		"pad":                               pad,
		"tensor":                            tensorOfNumber,
		"isreal":                            refuse,
	}
}

// functionalActivation forwards to the operator, in place when the last parameter asks for it.
func functionalActivation(name string, parameters ...string) function {
	names := append([]string{"input"}, parameters...)
	return func(c *caller) (Value, error) {
		bound, err := c.arguments(names...)
		if err != nil {
			return nil, err
		}
		target := name
		switch inPlace := bound["inplace"]; inPlace {
		case nil, false:
		case true:
			target += "_"
		default:
			return nil, unknown("inplace is no bool")
		}
		delete(bound, "inplace")
		var keywords []Keyword
		for _, parameter := range parameters {
			if v, given := bound[parameter]; given {
				keywords = append(keywords, Keyword{parameter, v})
			}
		}
		return c.overloadedWith(target, false, []Value{bound["input"]}, keywords)
	}
}

// functionalSoftmax needs an explicit dim: the implicit one warns.
func functionalSoftmax(target string) function {
	return func(c *caller) (Value, error) {
		bound, err := c.arguments("input", "dim", "_stacklevel", "dtype")
		if err != nil || bound["dim"] == nil {
			return nil, unknown("softmax without dim")
		}
		return c.call(target, bound["input"], bound["dim"], bound["dtype"])
	}
}

func layerNorm(c *caller) (Value, error) {
	bound, err := c.arguments("input", "normalized_shape", "weight", "bias", "eps")
	if err != nil {
		return nil, err
	}
	eps, given := bound["eps"]
	if !given {
		eps = 1e-5
	}
	return c.call("aten.layer_norm.default", bound["input"], bound["normalized_shape"], bound["weight"], bound["bias"], eps)
}

func functionalDropout(c *caller) (Value, error) {
	bound, err := c.arguments("input", "p", "training", "inplace")
	if err != nil {
		return nil, err
	}
	p, given := bound["p"]
	if !given {
		p = 0.5
	}
	training, given := bound["training"]
	if !given {
		training = true
	}
	target := "aten.dropout.default"
	if bound["inplace"] == true {
		target = "aten.dropout_.default"
	}
	return c.call(target, bound["input"], p, training)
}

func functionalEmbedding(c *caller) (Value, error) {
	bound, err := c.arguments("input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
	if err != nil || bound["max_norm"] != nil {
		return nil, unknown("embedding that renormalises")
	}
	padding := Value(int64(-1))
	if n, ok := bound["padding_idx"].(int64); ok {
		rows := meta(bound["weight"])
		if rows.Dim() == 0 {
			return nil, unknown("embedding weight")
		}
		padding = n
		if n < 0 {
			padding = sizeValue(c.graph.Shapes.Add(Static(n), rows.Sizes[0]))
		}
	}
	return c.call("aten.embedding.default", bound["weight"], bound["input"], padding, bound["scale_grad_by_freq"] == true, bound["sparse"] == true)
}

// reductionNumber is the enumeration behind the word.
func reductionNumber(v Value, given bool) (int64, bool) {
	if !given {
		return 1, true
	}
	word, _ := v.(string)
	number, ok := map[string]int64{"none": 0, "mean": 1, "sum": 2}[word]
	return number, ok
}

func functionalCrossEntropy(c *caller) (Value, error) {
	bound, err := c.arguments("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction", "label_smoothing")
	if err != nil || bound["size_average"] != nil || bound["reduce"] != nil {
		return nil, unknown("cross_entropy arguments")
	}
	word, given := bound["reduction"]
	reduction, ok := reductionNumber(word, given)
	if !ok {
		return nil, unknown("cross_entropy reduction")
	}
	ignored, given := bound["ignore_index"]
	if !given {
		ignored = int64(-100)
	}
	smoothing, given := bound["label_smoothing"]
	if !given {
		smoothing = 0.0
	}
	return c.call("aten.cross_entropy_loss.default", bound["input"], bound["target"], bound["weight"], reduction, ignored, smoothing)
}

func functionalMSELoss(c *caller) (Value, error) {
	bound, err := c.arguments("input", "target", "size_average", "reduce", "reduction")
	if err != nil || bound["size_average"] != nil || bound["reduce"] != nil {
		return nil, unknown("mse_loss arguments")
	}
	word, given := bound["reduction"]
	reduction, ok := reductionNumber(word, given)
	if !ok {
		return nil, unknown("mse_loss reduction")
	}
	return c.call("aten.mse_loss.default", bound["input"], bound["target"], reduction)
}

// pad covers constant padding.
func pad(c *caller) (Value, error) {
	bound, err := c.arguments("input", "pad", "mode", "value")
	if err != nil {
		return nil, err
	}
	if mode, given := bound["mode"]; given && mode != "constant" {
		return nil, unknown("pad mode")
	}
	value := bound["value"]
	if value == nil {
		value = int64(0)
	}
	return c.call("aten.constant_pad_nd.default", bound["input"], bound["pad"], value)
}

// tensorOfNumber is torch.tensor of one Python number.
func tensorOfNumber(c *caller) (Value, error) {
	bound, err := c.arguments("data", "dtype", "device", "requires_grad")
	if err != nil || bound["requires_grad"] != nil && bound["requires_grad"] != false {
		return nil, unknown("tensor arguments")
	}
	d, ok := numberType(bound["data"])
	if !ok {
		return nil, unknown("tensor of something that is no number")
	}
	switch {
	case bound["dtype"] != nil:
		if d, ok = bound["dtype"].(DType); !ok {
			return nil, unknown("tensor type")
		}
	case d.IsFloat():
		d = c.state.defaultDType()
	case d.IsComplex():
		d = complexOf(c.state.defaultDType())
	}
	op, _ := LookUp("aten.scalar_tensor.default")
	values, err := op.Bind([]Value{bound["data"]}, []Keyword{{"dtype", d}, {"device", bound["device"]}})
	if err != nil {
		return nil, unknown(err.Error())
	}
	node, err := c.emit(op, values)
	if err != nil {
		return nil, err
	}
	return node.Result, nil
}
