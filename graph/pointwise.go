package graph

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// promotes says whether a Scalar parameter counts as an operand in type promotion; others (alpha, value, slopes) do not.
func promotes(name string) bool {
	switch name {
	case "self", "other", "exponent", "min", "max":
		return true
	}
	return false
}

// isCondition says whether a parameter is a bool tensor that stays out of promotion.
func isCondition(name string) bool { return name == "condition" || name == "mask" }

// promotion is the type a pointwise operator computes in and the type of its result.
type promotion struct {
	compute, result DType
}

func (c *inference) promotion() (promotion, error) {
	common, err := c.commonType()
	if err != nil {
		return promotion{}, err
	}
	if common == NoDType || !c.accepts(common) {
		return promotion{}, unknown(c.op.String() + " does not take " + common.String())
	}
	compute := common
	if c.dividesTruly() && !common.IsDifferentiable() {
		compute = c.state.defaultDType()
	}
	result := compute
	switch {
	case c.op.traits&boolResult != 0:
		result = Bool
	case c.op.traits&realResult != 0:
		result = compute.Real()
	}
	return promotion{compute, result}, nil
}

// dividesTruly says whether integers become floats first.
func (c *inference) dividesTruly() bool {
	return c.op.traits&intToFloat != 0 || strings.HasSuffix(c.op.Schema.Overload, "_mode") && c.value("rounding_mode") == nil
}

func (s State) defaultDType() DType {
	if s.DefaultDType == NoDType {
		return Float32
	}
	return s.DefaultDType
}

// commonType promotes the operands, or takes the first tensor's type where the operator says so.
func (c *inference) commonType() (DType, error) {
	var types resultType
	first := NoDType
	for i, p := range c.op.Schema.Parameters {
		m, isTensor := MetaOf(c.values[i])
		switch {
		case isTensor && isCondition(p.Name):
			if m.DType != Bool {
				return NoDType, unknown("condition is not bool")
			}
		case isTensor:
			if first == NoDType {
				first = m.DType
			}
			if c.op.traits&oneType != 0 && m.DType != first {
				return NoDType, unknown(c.op.String() + " of different types")
			}
			types.addTensor(m)
		case p.Kind == KindTensor || p.Kind == KindScalar && promotes(p.Name):
			if d, ok := numberType(c.values[i]); ok {
				types.addNumber(d, c.state.defaultDType())
			}
		}
	}
	if c.op.traits&selfType != 0 {
		return first, nil
	}
	return types.common(), nil
}

// inferPointwise broadcasts the tensors, promotes their types and propagates strides.
func inferPointwise(c *inference) error {
	types, err := c.promotion()
	if err != nil {
		return err
	}
	if err := c.checkScalars(types.compute); err != nil {
		return err
	}
	if err := c.checkOperator(types.compute); err != nil {
		return err
	}
	metas := c.operandMetas(types.compute)
	shapes := make([][]Size, len(metas))
	for i, m := range metas {
		shapes[i] = m.Sizes
	}
	shape, ok := c.shapes.broadcast(shapes...)
	if !ok || len(metas) == 0 {
		return unknown(c.op.String() + ": shapes do not broadcast")
	}
	if c.op.InPlace {
		return c.make(types.result, shape, c.self().Strides)
	}
	switch {
	case c.op.traits&contiguousOnly != 0:
		return c.makeContiguous(types.result, shape)
	case c.op.traits&likeSelf != 0:
		return c.make(types.result, shape, c.shapes.preservedStrides(c.self()))
	}
	return c.make(types.result, shape, c.shapes.iteratorStrides(shape, metas))
}

// operandMetas lists the operands' layouts as the iterator sees them: Python numbers in tensor parameters are 0-d tensors, and
// on the CPU an operand of another type is first converted, which closes gaps in its layout.
func (c *inference) operandMetas(compute DType) []*Meta {
	var metas []*Meta
	for i, p := range c.op.Schema.Parameters {
		m, isTensor := MetaOf(c.values[i])
		switch {
		case isTensor && m.DType != compute && !isCondition(p.Name) && m.Device.Type == "cpu" && !c.shapes.isDense(m):
			converted := *m
			converted.Strides = c.shapes.preservedStrides(m)
			metas = append(metas, &converted)
		case isTensor:
			metas = append(metas, m)
		case (p.Kind == KindTensor || p.Kind == KindScalar && isOperand(p.Name)) && c.values[i] != nil:
			metas = append(metas, &Meta{})
		}
	}
	if c.op.Schema.Name == "rsub" { // subtracts with the operands exchanged
		slices.Reverse(metas)
	}
	return metas
}

// isOperand reports whether a number is an operand of the iterator; exponents and the bounds of clamp are settings of unary kernels.
func isOperand(name string) bool { return name == "self" || name == "other" }

// checkScalars rejects scalars that eager rejects: bool alpha for non-bool results, float alpha for integers, complex for reals.
func (c *inference) checkScalars(compute DType) error {
	for i, p := range c.op.Schema.Parameters {
		if p.Kind != KindScalar || promotes(p.Name) || c.values[i] == nil {
			continue
		}
		d, ok := numberType(c.values[i])
		given := !p.HasDefault || FormatValue(c.values[i]) != FormatValue(p.Default)
		if !ok || given && (d.Category() > max(compute.Category(), CategoryInt) || d == Bool && compute != Bool) {
			return unknown(c.op.String() + ": scalar " + p.Name + " of a type the operands do not allow")
		}
	}
	return nil
}

// checkOperator rejects what single operators reject beyond their element types.
func (c *inference) checkOperator(compute DType) error {
	switch strings.TrimSuffix(c.op.Schema.Name, "_") {
	case "sub", "rsub":
		if slices.ContainsFunc(c.values[:2], isBoolOperand) {
			return unknown("subtraction of bool")
		}
	case "pow":
		if n, ok := c.values[1].(int64); ok && n < 0 && !compute.IsDifferentiable() {
			return unknown("negative power of integers")
		}
	case "log_sigmoid":
		if m := c.self(); m.Device.Type != "cpu" && !c.shapes.isContiguous(m) {
			return unknown("log_sigmoid layout")
		}
	case "abs":
		if c.op.InPlace && compute.IsComplex() {
			return unknown("abs_ of complex numbers")
		}
	case "hardtanh", "clamp_min", "clamp_max":
		return c.checkBounds(compute)
	case "nan_to_num":
		if _, symbolic := c.value("nan").(*Input); symbolic {
			return unknown("nan_to_num by a number that is not known")
		}
	case "clamp":
		if c.value("min") == nil && c.value("max") == nil {
			return unknown("clamp without bounds")
		}
		return c.checkBounds(compute)
	}
	return nil
}

// checkBounds rejects bounds that an integer type has no room for, which torch versions take differently or refuse.
func (c *inference) checkBounds(compute DType) error {
	if !c.boundsFit(compute) {
		return unknown(c.op.String() + ": a bound that may lie outside the type of the elements")
	}
	return nil
}

// boundsFit reports whether the numbers that bound the elements are sure to be of the type that is computed in.
func (c *inference) boundsFit(compute DType) bool {
	if !compute.IsIntegral() {
		return true
	}
	for _, name := range []string{"min", "max", "min_val", "max_val"} {
		if c.op.Schema.Position(name) < 0 || c.value(name) == nil {
			continue
		}
		if _, isTensor := MetaOf(c.value(name)); isTensor {
			continue
		}
		bound, known := c.value(name).(int64)
		if !known && compute != Int64 || known && !compute.holds(bound) {
			return false
		}
	}
	return true
}

// bounded is the formula text of operators with bounds, none where the bounds do not fit.
func bounded(text string) body {
	return formulaWhere(text, (*inference).boundsFit)
}

// taking is the formula text of operators that make elements of numbers as they are; the library refuses those that the elements cannot hold.
func taking(text string, numbers ...string) body {
	return formulaWhere(text, func(c *inference, compute DType) bool {
		return !slices.ContainsFunc(numbers, func(name string) bool { return !compute.takes(c.value(name)) })
	})
}

func isBoolOperand(v Value) bool {
	if m, ok := MetaOf(v); ok {
		return m.DType == Bool
	}
	_, ok := v.(bool)
	return ok
}

func sgnFormula(_ *inference, compute DType) string {
	if compute.IsComplex() {
		return ""
	}
	return "where(self > 0, 1, where(self < 0, -1, 0))"
}

func angleFormula(_ *inference, compute DType) string {
	if compute.IsComplex() {
		return ""
	}
	return "where(isnan(self), self, where(self < 0, pi, 0))"
}

// roundFormula scales by a power of ten as ATen does: by multiplication first for positive decimals, by division for negative.
func roundFormula(c *inference, _ DType) string {
	decimals, _ := c.integer("decimals")
	scale := strconv.FormatFloat(math.Pow(10, math.Abs(float64(decimals))), 'f', 1, 64)
	switch {
	case decimals > 0:
		return "round(self * " + scale + ") / " + scale
	case decimals < 0:
		return "round(self / " + scale + ") * " + scale
	}
	return "round(self)"
}

func logitFormula(c *inference, _ DType) string {
	if c.value("eps") == nil {
		return "log(self / (1 - self))"
	}
	clamped := "where(self < eps, eps, where(self > 1 - eps, 1 - eps, self))"
	return "log(" + clamped + " / (1 - " + clamped + "))"
}

// largestFinite is the largest number of a floating-point type.
func largestFinite(d DType) (float64, bool) {
	largest := [numDTypes]float64{Float16: 65504, BFloat16: 3.3895313892515355e38, Float32: math.MaxFloat32, Float64: math.MaxFloat64}[d]
	return largest, largest != 0
}

func nanToNumFormula(c *inference, compute DType) string {
	largest, ok := largestFinite(compute)
	if !ok {
		if compute.IsComplex() {
			return ""
		}
		return "self"
	}
	replacement := func(name string, otherwise float64) string {
		if c.value(name) != nil {
			return name
		}
		return strconv.FormatFloat(otherwise, 'f', 1, 64)
	}
	lowest := replacement("neginf", largest)
	if c.value("neginf") == nil {
		lowest = "-" + lowest
	}
	nan := "0"
	if _, isFloat := c.value("nan").(float64); isFloat {
		nan = strconv.FormatFloat(c.value("nan").(float64), 'f', -1, 64)
	}
	return "where(isnan(self), " + nan + ", where(self == inf, " + replacement("posinf", largest) + ", where(self == -inf, " + lowest + ", self)))"
}

func divModeFormula(c *inference, compute DType) string {
	mode := c.text("rounding_mode")
	if mode == "trunc" && compute.IsFloat() {
		return "trunc(self / other)"
	}
	return cmp.Or(map[string]string{"floor": "floordiv(self, other)", "trunc": "truncdiv(self, other)"}[mode], "self / other")
}

// powFormula uses the same special cases for constant exponents of floats as ATen's pow_tensor_scalar kernel.
func powFormula(c *inference, compute DType) string {
	exponent, isFloat := c.value("exponent").(float64)
	if n, ok := c.value("exponent").(int64); ok {
		exponent, isFloat = float64(n), true
	}
	if !isFloat || !compute.IsFloat() {
		return "pow(self, exponent)"
	}
	special := map[float64]string{0: "1", 0.5: "sqrt(self)", 1: "self", 2: "self * self", 3: "self * self * self",
		-0.5: "rsqrt(self)", -1: "1 / self", -2: "1 / (self * self)"}
	if text, ok := special[exponent]; ok {
		return text
	}
	return "pow(self, exponent)"
}

func clampFormula(c *inference, compute DType) string {
	if !c.boundsFit(compute) {
		return ""
	}
	text := "self"
	if c.value("min") != nil {
		text = "maximum(" + text + ", min)"
	}
	if c.value("max") != nil {
		text = "minimum(" + text + ", max)"
	}
	return text
}

func geluFormula(c *inference, _ DType) string {
	if c.text("approximate") == "tanh" {
		return "0.5 * self * (1 + tanh(0.7978845608028654 * (self + 0.044715 * (self * self * self))))"
	}
	return "self * 0.5 * (1 + erf(self * 0.7071067811865476))"
}

func geluBackwardFormula(c *inference, _ DType) string {
	if c.text("approximate") == "tanh" {
		return ""
	}
	return "grad_output * (0.5 * (1 + erf(self * 0.7071067811865476)) + self * (exp(self * self * -0.5) * 0.3989422804014327))"
}

func eluBackwardFormula(c *inference, _ DType) string {
	if c.boolean("is_result") {
		return "where(self_or_result <= 0, grad_output * input_scale * (self_or_result + alpha * scale), grad_output * scale)"
	}
	return "where(self_or_result <= 0, grad_output * input_scale * (alpha * scale) * exp(self_or_result * input_scale), grad_output * scale)"
}
