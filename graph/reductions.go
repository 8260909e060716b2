package graph

import (
	"cmp"
	"slices"
)

func reduction(schema, accepts string, traits trait, r rule) row {
	return row{schema: schema, kind: KindReduction, accepts: accepts, traits: traits, rule: r}
}

func scan(schema, accepts string, r rule) row {
	return row{schema: schema, kind: KindScan, accepts: accepts, rule: r}
}

// Rows of reductions. Where Python has several signatures, they stand in the order torch's parser tries them.
func reductionRows() []row {
	return []row{
		reduction("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", "", 0, inferSum),
		reduction("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", "", 0, inferSum),
		reduction("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", "bihf", 0, inferSum),
		reduction("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor", "", 0, inferSum),
		reduction("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", "", 0, inferSum),
		reduction("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor", "hfc", 0, inferMean),
		reduction("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", "hfc", 0, inferMean),
		reduction("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", "bihf", 0, inferExtremum),
		reduction("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", "bihf", 0, inferExtremum),
		reduction("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", "bihf", 0, inferAminmax),
		reduction("max(Tensor self) -> Tensor", "bihf", 0, inferExtremum),
		reduction("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", "bihf", 0, inferExtremumIndex),
		reduction("min(Tensor self) -> Tensor", "bihf", 0, inferExtremum),
		reduction("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", "bihf", 0, inferExtremumIndex),
		reduction("median(Tensor self) -> Tensor", "ihf", 0, inferExtremum),
		reduction("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", "ihf", 0, inferExtremumIndex),
		reduction("nanmedian(Tensor self) -> Tensor", "ihf", 0, inferExtremum),
		reduction("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", "bihf", 0, inferExtremumIndex),
		reduction("any(Tensor self) -> Tensor", "", noGradient, inferTruth),
		reduction("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", "", noGradient, inferTruth),
		reduction("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", "", noGradient, inferTruth),
		reduction("all(Tensor self) -> Tensor", "", noGradient, inferTruth),
		reduction("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor", "", noGradient, inferTruth),
		reduction("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", "", noGradient, inferTruth),
		reduction("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "ihf", noGradient, inferArgument),
		reduction("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "ihf", noGradient, inferArgument),
		reduction("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", "hfc", 0, inferVariance),
		reduction("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", "hfc", 0, inferVariance),
		reduction("var(Tensor self, bool unbiased=True) -> Tensor", "hfc", 0, inferVariance),
		reduction("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", "hfc", 0, inferVariance),
		reduction("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", "hfc", 0, inferVariance),
		reduction("std(Tensor self, bool unbiased=True) -> Tensor", "hfc", 0, inferVariance),
		reduction("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", "hfc", 0, inferVarianceMean),
		reduction("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", "hfc", 0, inferVarianceMean),
		reduction("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", "hfc", 0, inferVarianceMean),
		reduction("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)", "hfc", 0, inferVarianceMean),
		reduction("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)", "hfc", 0, inferVarianceMean),
		reduction("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)", "hfc", 0, inferVarianceMean),
		reduction("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", "bihf", intToFloat, inferLogSumExp),
		reduction("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", "hfc", 0, inferNorm),
		reduction("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", "hfc", 0, inferNorm),
		reduction("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", "", noGradient, inferCount),
		reduction("count_nonzero(Tensor self, int? dim=None) -> Tensor", "", noGradient, inferCount),
		scan("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", "", inferCumulative),
		scan("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", "", inferCumulative),
		scan("logcumsumexp(Tensor self, int dim) -> Tensor", "hf", inferSameShape),
		scan("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", "bif", inferCumulativeExtremum),
		scan("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", "bif", inferCumulativeExtremum),
	}
}

// reducedDims reads a dim argument that may be absent, a number or a list; absent or empty means all dimensions.
func (c *inference) reducedDims() ([]bool, error) {
	m := c.self()
	reduced := make([]bool, m.Dim())
	v := c.value("dim")
	list, isList := v.(List)
	if v == nil || isList && len(list.Items) == 0 {
		all := v == nil || c.op.Schema.Overload != "dims" // any and all over an empty list reduce nothing
		return slices.Repeat([]bool{all}, m.Dim()), nil
	}
	dims, err := c.listedDims(v)
	if err != nil {
		return nil, err
	}
	for _, d := range dims {
		if m.Dim() > 0 {
			reduced[d] = true
		}
	}
	return reduced, nil
}

func (c *inference) listedDims(v Value) ([]int, error) {
	if _, isList := v.(List); !isList {
		d, err := c.dim("dim")
		return []int{d}, err
	}
	dims, ok := c.wrappedDims("dim", c.self().Dim())
	if !ok {
		return nil, unknown("dimensions that are out of range or given twice")
	}
	return dims, nil
}

// reducedSizes drops the reduced dimensions, or keeps them as 1.
func (c *inference) reducedSizes(reduced []bool) []Size {
	var sizes []Size
	keep := c.boolean("keepdim")
	for d, s := range c.self().Sizes {
		switch {
		case !reduced[d]:
			sizes = append(sizes, s)
		case keep:
			sizes = append(sizes, Static(1))
		}
	}
	return sizes
}

// reduce adds a row-major output over the remaining dimensions.
func (c *inference) reduce(d DType) error {
	reduced, err := c.reducedDims()
	if err != nil {
		return err
	}
	return c.makeContiguous(d, c.reducedSizes(reduced))
}

// ErrReducesNothing is the answer for reductions without identity over no elements, where eager raises and fake tensors may not. It is an
// ErrUnknown too.
const ErrReducesNothing = unknown("reduction of nothing without identity")

// requireElements rejects reductions without identity over nothing.
func (c *inference) requireElements() error {
	reduced, err := c.reducedDims()
	if err != nil {
		return err
	}
	for d, s := range c.self().Sizes {
		if reduced[d] && c.shapes.IsZero(s) {
			return ErrReducesNothing
		}
	}
	return nil
}

func (c *inference) requireAccepted(d DType) error {
	if !c.accepts(d) {
		return unknown(c.op.String() + " does not take " + d.String())
	}
	return nil
}

func inferSum(c *inference) error {
	d, result := c.self().DType, c.sumType()
	if err := c.requireAccepted(d); err != nil {
		return err
	}
	if c.op.Schema.Name == "nansum" && d.IsFloat() && !result.IsFloat() {
		return unknown("nansum of floats as integers")
	}
	if d.IsComplex() && !result.IsComplex() || !c.accepts(result) {
		return unknown("sum of complex numbers as reals")
	}
	return c.reduce(result)
}

// sumType is the type of sums and products: int64 of integers and bools, unless the call names one.
func (c *inference) sumType() DType {
	d := c.self().DType
	if c.value("dtype") == nil && !d.IsDifferentiable() {
		return Int64
	}
	return c.dtype("dtype", d)
}

func inferMean(c *inference) error {
	m := c.self()
	result := c.dtype("dtype", m.DType)
	if err := c.requireAccepted(result); err != nil || m.DType.IsComplex() && !result.IsComplex() {
		return cmp.Or[error](err, unknown("mean of complex numbers as reals"))
	}
	return c.reduce(result)
}

func inferExtremum(c *inference) error {
	if err := c.requireAccepted(c.self().DType); err != nil {
		return err
	}
	if err := c.requireElements(); err != nil {
		return err
	}
	return c.reduce(c.self().DType)
}

func inferAminmax(c *inference) error {
	if c.value("dim") == nil && c.boolean("keepdim") {
		return unknown("aminmax of everything that keeps dimensions") // devices disagree
	}
	if err := inferExtremum(c); err != nil {
		return err
	}
	return c.reduce(c.self().DType)
}

func inferExtremumIndex(c *inference) error {
	if err := inferExtremum(c); err != nil {
		return err
	}
	return c.reduce(Int64)
}

// inferTruth keeps uint8 for old code's sake, as torch does.
func inferTruth(c *inference) error {
	if c.self().DType.unpromotable() {
		return unknown("any or all of an unusual type")
	}
	if c.self().DType == Uint8 {
		return c.reduce(Uint8)
	}
	return c.reduce(Bool)
}

func inferArgument(c *inference) error {
	if err := c.requireAccepted(c.self().DType); err != nil {
		return err
	}
	if err := c.requireElements(); err != nil {
		return err
	}
	return c.reduce(Int64)
}

func inferVariance(c *inference) error {
	m := c.self()
	if err := c.requireAccepted(m.DType); err != nil {
		return err
	}
	return c.reduce(m.DType.Real())
}

func inferVarianceMean(c *inference) error {
	if err := inferVariance(c); err != nil {
		return err
	}
	return c.reduce(c.self().DType)
}

func inferLogSumExp(c *inference) error {
	d := c.self().DType
	if err := c.requireAccepted(d); err != nil {
		return err
	}
	if list, _ := c.value("dim").(List); len(list.Items) == 0 {
		return unknown("logsumexp over no dimension")
	}
	if !d.IsDifferentiable() {
		d = c.state.defaultDType()
	}
	return c.reduce(d)
}

func inferNorm(c *inference) error {
	m := c.self()
	d := c.dtype("dtype", m.DType)
	if err := c.requireAccepted(m.DType); err != nil {
		return err
	}
	if !c.accepts(d) || m.DType.IsComplex() != d.IsComplex() || d.Bytes() < m.DType.Bytes() {
		return unknown("norm in a narrower type")
	}
	if err := c.normOrder(); err != nil {
		return err
	}
	return c.reduce(d.Real())
}

// normOrder rejects orders that are undefined over nothing.
func (c *inference) normOrder() error {
	name := "ord"
	if c.op.Schema.Position(name) < 0 {
		name = "p"
	}
	switch order := c.value(name).(type) {
	case int64:
		if order >= 0 {
			return nil
		}
	case float64:
		if order >= 0 && order < 1e300 {
			return nil
		}
	case nil:
		return nil
	}
	return c.requireElements()
}

func inferCount(c *inference) error { return c.reduce(Int64) }

func inferCumulative(c *inference) error {
	result := c.sumType()
	if c.self().DType.IsComplex() && !result.IsComplex() || result == Bool {
		return unknown("cumulative result type")
	}
	return c.scanned(result)
}

// scanned adds a row-major output of the first argument's shape, for an operator along one dimension.
func (c *inference) scanned(result DType) error {
	if _, err := c.dim("dim"); err != nil {
		return err
	}
	return c.makeContiguous(result, c.self().Sizes)
}

// inferSameShape gives a row-major result of the first argument's type and shape.
func inferSameShape(c *inference) error {
	d := c.self().DType
	if err := c.requireAccepted(d); err != nil {
		return err
	}
	return c.scanned(d)
}

func inferCumulativeExtremum(c *inference) error {
	if err := inferSameShape(c); err != nil {
		return err
	}
	return c.makeContiguous(Int64, c.self().Sizes)
}
