package graph

import (
	"math"

	"github.com/cockroachdb/errors"
)

// Computation is a pointwise node as a scalar formula. Operands are tensors, broadcast to the output, or numbers that are known
// only at run time; each is first converted to its entry of Types. The body's value is converted to Result. Conversions are
// C++'s: floats to integers truncate, anything to bool compares with zero.
type Computation struct {
	Operands []Value
	Types    []DType
	Compute  DType
	Result   DType
	Body     *Expression
}

// body is a formula over the parameters' names; choose overrides it where the formula depends on arguments or types.
type body struct {
	text   string
	choose func(*inference, DType) string
}

func formula(text string) body { return body{text: text} }

// formulaWhere is a formula that holds only for some arguments and types; the library computes the others.
func formulaWhere(text string, holds func(c *inference, compute DType) bool) body {
	return body{text: text, choose: func(c *inference, compute DType) string {
		if !holds(c, compute) {
			return ""
		}
		return text
	}}
}

func chosen(choose func(c *inference, compute DType) string) body { return body{choose: choose} }

func (b body) of(c *inference, compute DType) string {
	if b.choose != nil {
		return b.choose(c, compute)
	}
	return b.text
}

// Computation gives the formula of an aten-level node; false when the operator has none (it runs as a library call). Where the
// default type matters it is read off the output; only comparisons of integers with Python floats need it in the state.
func (n *Node) Computation(state State) (*Computation, bool) {
	op, ok := LookUp(n.Target)
	if !ok || !op.hasBody() {
		return nil, false
	}
	values, err := op.Bind(n.Args, n.Keywords)
	if err != nil || len(n.Outputs) == 0 {
		return nil, false
	}
	if d := n.Outputs[0].Meta.DType.Real(); state.DefaultDType == NoDType && d.IsFloat() {
		state.DefaultDType = d
	}
	c := &inference{op: op, values: values, state: state, graph: &Graph{}}
	computation, err := c.computation()
	if err != nil {
		return nil, false
	}
	if op.InPlace || op.Kind == KindCopy {
		computation.Result = n.Outputs[0].Meta.DType
	}
	return computation, true
}

func (c *inference) computation() (*Computation, error) {
	types, err := c.promotion()
	if err != nil {
		return nil, err
	}
	result := &Computation{Compute: types.compute, Result: types.result}
	text := c.op.body.of(c, types.compute)
	if text == "" {
		return nil, errors.Newf("%s has no formula for these arguments", c.op)
	}
	result.Body, err = parseExpression(text, func(name string) (*Expression, bool) { return result.leaf(c, name) })
	return result, err
}

// leaf resolves a name of a formula: a constant of mathematics or a parameter.
func (r *Computation) leaf(c *inference, name string) (*Expression, bool) {
	switch name {
	case "pi":
		return number(math.Pi), true
	case "inf":
		return number(math.Inf(1)), true
	case "nan":
		return number(math.NaN()), true
	}
	i := c.op.Schema.Position(name)
	if i < 0 {
		return nil, false
	}
	switch v := c.values[i].(type) {
	case bool, int64, float64, complex128:
		return number(v), true
	case nil:
		return nil, false
	}
	return r.operand(c.values[i], name), true
}

func (r *Computation) operand(v Value, name string) *Expression {
	d := r.Compute
	if isCondition(name) {
		d = Bool
	}
	for i, known := range r.Operands {
		if SameValue(known, v) && r.Types[i] == d {
			return &Expression{Op: "operand", Operand: i}
		}
	}
	r.Operands = append(r.Operands, v)
	r.Types = append(r.Types, d)
	return &Expression{Op: "operand", Operand: len(r.Operands) - 1}
}
