package backend

import (
	"slices"

	"fusee/backend/loop"
	"fusee/graph"
)

// Losses of two tensors, element by element: a formula of each pair, and then its mean or sum.

// elementLoss describes such a loss. Operand 0 is self and operand 1 the target; nil where it has no formula.
type elementLoss func(r *recipe) *graph.Expression

var elementLosses = map[string]elementLoss{
	"mse_loss":                         func(*recipe) *graph.Expression { return squared(apply("sub", arg(0), arg(1))) },
	"l1_loss":                          func(*recipe) *graph.Expression { return distance() },
	"smooth_l1_loss":                   smoothDistance,
	"huber_loss":                       huberDistance,
	"soft_margin_loss":                 func(*recipe) *graph.Expression { return softMargin() },
	"kl_div":                           divergence,
	"binary_cross_entropy_with_logits": logitsEntropy,
}

func squared(e *graph.Expression) *graph.Expression { return apply("mul", e, e) }

// distance is |self - target|.
func distance() *graph.Expression { return apply("abs", apply("sub", arg(0), arg(1))) }

func smoothDistance(r *recipe) *graph.Expression {
	beta := r.number("beta", 3, 1)
	if beta == 0 {
		return distance()
	}
	near := apply("div", apply("mul", number(0.5), squared(distance())), number(beta))
	return apply("where", apply("lt", distance(), number(beta)), near, apply("sub", distance(), number(0.5*beta)))
}

func huberDistance(r *recipe) *graph.Expression {
	delta := r.number("delta", 3, 1)
	near := apply("mul", number(0.5), squared(distance()))
	far := apply("mul", number(delta), apply("sub", distance(), number(0.5*delta)))
	return apply("where", apply("le", distance(), number(delta)), near, far)
}

// softMargin takes the logarithm of a sum, as eager does: near 0 both lose what the sum does not hold.
func softMargin() *graph.Expression {
	return apply("log1p", apply("exp", apply("mul", apply("neg", arg(1)), arg(0))))
}

// divergence has 0 log 0 = 0, as xlogy has.
func divergence(r *recipe) *graph.Expression {
	if r.flag("log_target", -1) {
		return apply("mul", apply("exp", arg(1)), apply("sub", arg(1), arg(0)))
	}
	entropy := apply("where", apply("eq", arg(1), number(0.0)), number(0.0), apply("mul", arg(1), apply("log", arg(1))))
	return apply("sub", entropy, apply("mul", arg(1), arg(0)))
}

// logitsEntropy has a weight of the positive examples as operand 2 where it is given.
func logitsEntropy(r *recipe) *graph.Expression {
	logarithm := apply("sub", apply("minimum", arg(0), number(0.0)), apply("log1p", apply("exp", apply("neg", apply("abs", arg(0))))))
	if r.argument("pos_weight", 3) != nil {
		weight := apply("add", apply("mul", apply("sub", arg(2), number(1.0)), arg(1)), number(1.0))
		logarithm = apply("mul", weight, logarithm)
	}
	return apply("sub", apply("mul", apply("sub", number(1.0), arg(1)), arg(0)), logarithm)
}

// elementLoss computes the loss in the wide type; each operand broadcasts to self, which the targets are as large as.
func (r *recipe) elementLoss() bool {
	self, target := r.tensor("self", 0), r.tensor("target", 1)
	body := elementLosses[baseName(r.node.Target)](r)
	dtype, operands := self.meta.DType, []*tensor{self, target}
	if r.failed || target.meta.DType != dtype || !sameSizes(self.meta.Sizes, target.meta.Sizes) || r.node.Outputs[0].Meta.DType != dtype {
		return false
	}
	for _, name := range []string{"pos_weight", "weight"} {
		factor := r.optional(name, -1)
		if factor == nil {
			continue
		}
		if factor.meta.DType != dtype || !broadcasts(factor.meta.Sizes, self.meta.Sizes) {
			return false
		}
		if name == "weight" {
			body = apply("mul", body, arg(len(operands)))
		}
		operands = append(operands, factor)
	}
	return r.reducedLoss(body, operands)
}

// broadcasts reports whether sizes broadcast to those of a whole without making that larger.
func broadcasts(sizes, whole []graph.Size) bool {
	if len(sizes) > len(whole) {
		return false
	}
	for dimension, size := range whole[len(whole)-len(sizes):] {
		if !isStatic(sizes[dimension], 1) && !sameSize(sizes[dimension], size) {
			return false
		}
	}
	return true
}

// reducedLoss commits the formula of each element, or its mean or sum, as the node's reduction says.
func (r *recipe) reducedLoss(body *graph.Expression, operands []*tensor) bool {
	name, self := baseName(r.node.Target), operands[0]
	wide, reduction := r.wide(self.meta.DType), r.integer("reduction", -1, reductionMean)
	if reduction == reductionNone {
		return r.commit(r.formulaIn(name, wide, r.result(0), body, operands...))
	}
	every := slices.Repeat([]bool{true}, len(self.meta.Sizes))
	each := r.formula(name, r.fresh(wide, self.meta.Sizes), body, operands...)
	if reduction == reductionSum {
		return r.commit(r.reduce(loop.Sum, each, every, wide, r.result(0)))
	}
	total := r.reduce(loop.Sum, each, every, wide, r.fresh(wide, nil))
	return r.commit(r.formulaIn("mean", wide, r.result(0), apply("div", arg(0), number(r.count(self, every))), total))
}
