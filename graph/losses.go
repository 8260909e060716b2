package graph

func lossRows() []row {
	loss := func(schema string, r rule) row { return row{schema: schema, kind: KindLibrary, accepts: "hf", rule: r} }
	return []row{
		loss("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor", inferCrossEntropy),
		loss("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor", inferCrossEntropy),
		loss("mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", inferElementLoss),
		loss("l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", inferElementLoss),
		loss("smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor", inferElementLoss),
		loss("huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor", inferElementLoss),
		loss("soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", inferElementLoss),
		loss("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor", inferElementLoss),
		loss("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor", inferElementLoss),
		loss("kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor", inferElementLoss),
	}
}

// inferCrossEntropy covers class indices as targets; probabilities as targets stay unknown.
func inferCrossEntropy(c *inference) error {
	m, target, e := c.self(), c.tensor("target"), c.shapes
	if err := c.requireAccepted(m.DType); err != nil {
		return err
	}
	classDim := min(1, m.Dim()-1)
	if m.Dim() == 0 || target.DType != Int64 || target.Dim() != m.Dim()-1 || e.anyZero(m.Sizes) {
		return unknown("cross entropy arguments")
	}
	rest := append(append([]Size{}, m.Sizes[:classDim]...), m.Sizes[classDim+1:]...)
	if !e.AllEqual(rest, target.Sizes) {
		return unknown("cross entropy target")
	}
	weight := c.tensor("weight")
	if weight != nil && (weight.Dim() != 1 || !e.Equal(weight.Sizes[0], m.Sizes[classDim]) || weight.DType != m.DType) {
		return unknown("cross entropy weight")
	}
	reduction, _ := c.integer("reduction")
	smoothing, _ := floatOf(c.value("label_smoothing"))
	switch {
	case reduction == 1 || reduction == 2:
		return c.makeContiguous(m.DType, nil)
	case reduction == 0 && smoothing == 0:
		return c.makeContiguous(m.DType, target.Sizes)
	}
	return unknown("cross entropy reduction")
}

// inferElementLoss covers losses of two tensors of equal shape and type.
func inferElementLoss(c *inference) error {
	m, target := c.self(), c.tensor("target")
	if err := c.requireAccepted(m.DType); err != nil {
		return err
	}
	for _, name := range []string{"weight", "pos_weight"} {
		if c.value(name) != nil {
			return unknown("loss with weights")
		}
	}
	if target.DType != m.DType || !c.shapes.AllEqual(m.Sizes, target.Sizes) {
		return unknown("loss of tensors that differ")
	}
	switch reduction, _ := c.integer("reduction"); reduction {
	case 1, 2:
		return c.makeContiguous(m.DType, nil)
	case 0:
		if c.shapes.isContiguous(m) && c.shapes.isContiguous(target) {
			return c.makeContiguous(m.DType, m.Sizes)
		}
	}
	return unknown("loss layout")
}
