package backend

import (
	"math"

	"fusee/backend/loop"
	"fusee/graph"
)

// vectorNorm is the norm of an order that is a number: 2 and 1, the extrema, the count of what is not 0, and all others by powers.
func (r *recipe) vectorNorm(order string) bool {
	self, output := r.tensor("self", 0), r.result(0)
	reduced := r.reductionDimensions(self)
	wide := r.wide(output.meta.DType)
	n := vectorNorm{r, r.number(order, 1, 2), wide}
	if r.failed || !self.meta.DType.IsFloat() {
		return false
	}
	each := r.formula("norm", r.fresh(wide, self.meta.Sizes), n.term(), self)
	total := r.reduce(n.combination(), each, reduced, wide, r.fresh(wide, output.meta.Sizes))
	return r.commit(r.formulaIn("norm", wide, output, n.root(), total))
}

// vectorNorm is a norm of one order.
type vectorNorm struct {
	*recipe
	order float64
	wide  graph.DType
}

// term is what is combined of each element.
func (n *vectorNorm) term() *graph.Expression {
	magnitude := apply("abs", arg(0))
	switch n.order {
	case 0:
		return apply("where", apply("ne", arg(0), number(0.0)), number(1.0), number(0.0))
	case 1, math.Inf(1), math.Inf(-1):
		return magnitude
	case 2:
		return squared(arg(0))
	}
	return apply("pow", magnitude, number(n.order))
}

func (n *vectorNorm) combination() loop.Reduction {
	switch n.order {
	case math.Inf(1):
		return loop.Maximum
	case math.Inf(-1):
		return loop.Minimum
	}
	return loop.Sum
}

// root turns the combined terms into the norm.
func (n *vectorNorm) root() *graph.Expression {
	switch n.order {
	case 0, 1, math.Inf(1), math.Inf(-1):
		return arg(0)
	case 2:
		return apply("sqrt", arg(0))
	}
	return apply("pow", arg(0), number(1/n.order))
}
