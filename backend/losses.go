package backend

import (
	"fusee/backend/loop"
	"fusee/graph"
)

// Reductions of losses (at::Reduction).
const (
	reductionNone = 0
	reductionMean = 1
	reductionSum  = 2
)

// classes describes a classification loss: scores with a dimension of classes, and a target class for each place apart from them.
type classes struct {
	self, target *tensor
	reduced      []bool // marks the dimension of classes
	dimension    int
	wide         graph.DType
	valid        *tensor // bool: the target is not to be ignored
	weight       *tensor // of each target's class; nil for ones
}

// classification reads the arguments that the losses have in common; the recipe fails where targets are probabilities.
func (r *recipe) classification() classes {
	c := classes{self: r.tensor("self", 0), target: r.tensor("target", 1)}
	rank := len(c.self.meta.Sizes)
	c.dimension = min(1, rank-1)
	c.wide = r.wide(c.self.meta.DType)
	r.failed = r.failed || rank == 0 || len(c.target.meta.Sizes) != rank-1 || !integers(c.target)
	if r.failed || isStatic(c.self.meta.Sizes[c.dimension], 0) {
		r.failed = true
		return c
	}
	c.reduced = make([]bool, rank)
	c.reduced[c.dimension] = true
	ignored := apply("ne", arg(0), number(r.integer("ignore_index", 4, -100)))
	c.valid = r.formulaIn("ne", graph.Int64, r.fresh(graph.Bool, c.target.meta.Sizes), ignored, c.target)
	if weight := r.optional("weight", 2); weight != nil {
		p := picking{picked: []int{0}, indices: []*tensor{c.target}, condition: c.valid, axes: []int{-1}}
		c.weight = r.pick(weight, p, r.fresh(weight.meta.DType, c.target.meta.Sizes))
	}
	return c
}

func (r *recipe) integer(name string, position int, otherwise int64) int64 {
	switch value := r.argument(name, position).(type) {
	case int64:
		return value
	case nil:
		return otherwise
	}
	r.failed = true
	return otherwise
}

// chosen reads the score of each target's class.
func (r *recipe) chosen(c classes) *tensor {
	p := picking{picked: []int{c.dimension}, indices: []*tensor{c.target}, condition: c.valid, axes: make([]int, len(c.self.meta.Sizes))}
	for dimension := range p.axes {
		p.axes[dimension] = dimension
		if dimension > c.dimension {
			p.axes[dimension]--
		}
	}
	p.axes[c.dimension] = -1
	return r.pick(c.self, p, r.fresh(c.self.meta.DType, c.target.meta.Sizes))
}

// negativeLogLikelihood takes logarithms of probabilities as scores.
func (r *recipe) negativeLogLikelihood() bool {
	c := r.classification()
	if r.failed {
		return false
	}
	return r.averaged(c, apply("neg", arg(2)), r.chosen(c))
}

// crossEntropy is the logarithm of the sum of exponentials less the target's score, with the greatest score subtracted from both. Smoothed labels add the mean
// of that over all classes.
func (r *recipe) crossEntropy() bool {
	smoothing := r.number("label_smoothing", 5, 0)
	c := r.classification()
	if r.failed || smoothing != 0 && c.weight != nil {
		return false
	}
	rows := kept(c.self.meta.Sizes, c.reduced)
	greatest, shifted, _, total := r.exponentials(c.self, c.reduced, c.wide)
	flat := func(t *tensor) *tensor { return r.reshaped(t, c.target.meta.Sizes) }
	score := apply("sub", arg(2), arg(3))
	operands := []*tensor{r.chosen(c), flat(greatest), flat(total)}
	if smoothing != 0 {
		count := r.count(c.self, c.reduced)
		all := r.reduce(loop.Sum, shifted, c.reduced, c.wide, r.fresh(c.wide, rows))
		score = apply("add", apply("mul", score, number(1-smoothing)), apply("mul", arg(5), number(smoothing/count)))
		operands = append(operands, flat(all))
	}
	return r.averaged(c, apply("sub", apply("log", arg(4)), score), operands...)
}

// exponentials returns the greatest element along the reduced dimensions, the differences from it, their exponentials, and the sum of those.
func (r *recipe) exponentials(self *tensor, reduced []bool, wide graph.DType) (greatest, shifted, power, total *tensor) {
	rows := kept(self.meta.Sizes, reduced)
	greatest = r.reduce(loop.Maximum, self, reduced, wide, r.fresh(wide, rows))
	shifted = r.formula("sub", r.fresh(wide, self.meta.Sizes), apply("sub", arg(0), arg(1)), self, greatest)
	power = r.formula("exp", r.fresh(wide, self.meta.Sizes), apply("exp", arg(0)), shifted)
	return greatest, shifted, power, r.reduce(loop.Sum, power, reduced, wide, r.fresh(wide, rows))
}

// averaged weighs each place's loss and combines them as the reduction says. Operands 0 and 1 of the loss are the validity and the weight.
func (r *recipe) averaged(c classes, loss *graph.Expression, operands ...*tensor) bool {
	reduction := r.integer("reduction", 3, reductionMean)
	zero, one := number(0.0), number(1.0)
	weight, measured := one, c.valid
	if c.weight != nil {
		weight, measured = arg(1), c.weight
		loss = apply("mul", loss, arg(1))
	}
	operands = append([]*tensor{c.valid, measured}, operands...)
	chosen := func(value *graph.Expression) *graph.Expression {
		return apply("where", apply("ne", arg(0), zero), value, zero)
	}
	if reduction == reductionNone {
		result := r.formulaIn("nll_loss", c.wide, r.result(0), chosen(loss), operands...)
		return r.withTotal(result, func(output *tensor) *tensor { return r.formulaIn("total_weight", c.wide, output, zero) })
	}
	each := r.formula("nll_loss", r.fresh(c.wide, c.target.meta.Sizes), chosen(loss), operands...)
	every := make([]bool, len(c.target.meta.Sizes))
	for dimension := range every {
		every[dimension] = true
	}
	sum := r.sum(each, every, c.wide)
	weights := r.sum(r.formula("weight", r.fresh(c.wide, c.target.meta.Sizes), chosen(weight), c.valid, measured), every, c.wide)
	result := r.result(0)
	if reduction == reductionMean {
		r.formulaIn("mean", c.wide, result, apply("div", arg(0), arg(1)), sum, weights)
	} else {
		r.formulaIn("sum", c.wide, result, arg(0), sum)
	}
	return r.withTotal(result, func(output *tensor) *tensor { return r.formulaIn("total_weight", c.wide, output, arg(0), weights) })
}

// sum adds all elements up; a single one is its own sum.
func (r *recipe) sum(t *tensor, every []bool, wide graph.DType) *tensor {
	if len(significant(t.meta.Sizes)) == 0 {
		return r.reshaped(t, nil)
	}
	return r.reduce(loop.Sum, t, every, wide, r.fresh(wide, nil))
}

// withTotal commits the loss, and the weights' total where the operator returns that too, as it does for its gradient.
func (r *recipe) withTotal(loss *tensor, total func(output *tensor) *tensor) bool {
	if len(r.node.Outputs) == 1 {
		return r.commit(loss)
	}
	return r.commit(loss, total(r.result(1)))
}
