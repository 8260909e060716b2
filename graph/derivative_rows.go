package graph

// Formulas of gradients. Names are the operator's parameters, `grad` (the gradient of its first result), `grads` (those of all results, None
// where there is none), `result` (its first result) and `results`. Calls are aten operators or the helpers of package autograd. What a formula
// gives is summed over dimensions that were broadcast and cast to the type of the parameter. A choice between constants is made when the graph
// is differentiated. Where torch.autograd picks a value at a kink, at a tie or outside the domain, the formula picks the same.

func unaryDerivatives() []derivativeRow {
	rows := []derivativeRow{
		gradients("abs", "self: grad * sign(self)"),
		gradients("neg", "self: -grad"),
		gradients("frac", "self: grad"),
		gradients("square", "self: grad * (self * 2)"),
		gradients("reciprocal", "self: -grad * (result * result)"),
		gradients("sqrt", "self: grad / (result * 2)"),
		gradients("rsqrt", "self: grad * (result * result * result) * -0.5"),
		gradients("exp", "self: grad * result"),
		gradients("exp2", "self: grad * result * 0.6931471805599453"),
		gradients("expm1", "self: grad * (result + 1)"),
		gradients("log", "self: grad / self"),
		gradients("log2", "self: grad / (self * 0.6931471805599453)"),
		gradients("log10", "self: grad / (self * 2.302585092994046)"),
		gradients("log1p", "self: grad / (self + 1)"),
		gradients("sin", "self: grad * cos(self)"),
		gradients("cos", "self: -grad * sin(self)"),
		gradients("tan", "self: grad * (result * result + 1)"),
		gradients("asin", "self: grad * rsqrt(1 - self * self)"),
		gradients("acos", "self: -grad * rsqrt(1 - self * self)"),
		gradients("atan", "self: grad / (self * self + 1)"),
		gradients("sinh", "self: grad * cosh(self)"),
		gradients("cosh", "self: grad * sinh(self)"),
		gradients("tanh", "self: tanh_backward(grad, result)"),
		gradients("asinh", "self: grad * rsqrt(self * self + 1)"),
		gradients("acosh", "self: grad * rsqrt(self * self - 1)"),
		gradients("atanh", "self: grad / (1 - self * self)"),
		gradients("sigmoid", "self: sigmoid_backward(grad, result)"),
		gradients("erf", "self: grad * exp(-(self * self)) * 1.1283791670955126"),
		gradients("erfc", "self: grad * exp(-(self * self)) * -1.1283791670955126"),
		gradients("erfinv", "self: grad * exp(result * result) * 0.886226925452758"),
		gradients("lgamma", "self: grad * digamma(self)"),
		gradients("digamma", "self: grad * polygamma(1, self)"),
		gradients("i0", "self: grad * special_i1(self)"),
		gradients("special_i0e", "self: grad * (special_i1e(self) - sign(self) * result)"),
		gradients("special_entr", "self: grad * (-log(self) - 1)"),
		gradients("special_erfcx", "self: grad * (self * result * 2 - 1.1283791670955126)"),
		gradients("special_ndtri", "self: grad * exp(result * result / 2) * 2.5066282746310002"),
		gradients("deg2rad", "self: grad * 0.017453292519943295"),
		gradients("rad2deg", "self: grad * 57.29577951308232"),
		gradients("sinc", "self: grad * where(self == 0, 0, (cos(self * 3.141592653589793) * (self * 3.141592653589793) - sin(self * 3.141592653589793)) / (self * self * 3.141592653589793))"),
		gradients("logit", "self: logit_backward(grad, self, eps)"),
		gradients("nan_to_num", "self: grad * isfinite(self)"),
	}
	rows = append(rows,
		gradients("special_i1", "self: grad * where(self == 0, 0.5, i0(self) - result / self)"),
		gradients("special_i1e", "self: grad * where(self == 0, 0.5, special_i0e(self) - result * (sign(self) + reciprocal(self)))"),
		gradients("special_log_ndtr", "self: grad / special_erfcx(self * -0.7071067811865476) * 0.7978845608028654"),
		gradients("mvlgamma", "self: multivariate_digamma(grad, self, p)"))
	for _, stepwise := range []string{"sign", "sgn", "angle", "ceil", "floor", "trunc", "round", "round.decimals", "bernoulli"} {
		rows = append(rows, gradients(stepwise, "self: zero(self)"))
	}
	return rows
}

func binaryDerivatives() []derivativeRow {
	return []derivativeRow{
		gradients("add.Tensor", "self: grad", "other: grad * alpha"),
		gradients("sub.Tensor", "self: grad", "other: -grad * alpha"),
		gradients("add.Scalar", "self: grad"),
		gradients("sub.Scalar", "self: grad"),
		gradients("mul.Scalar", "self: grad * other"),
		gradients("div.Scalar", "self: grad / other"),
		gradients("div.Scalar_mode", "self: where(rounding_mode == None, grad / other, zero(self))"),
		gradients("rsub.Tensor", "self: -grad * alpha", "other: grad"),
		gradients("rsub.Scalar", "self: -grad * alpha"),
		gradients("mul.Tensor", "self: grad * other", "other: grad * self"),
		gradients("div.Tensor", "self: grad / other", "other: -grad * (self / other / other)"),
		gradients("div.Tensor_mode", "self: where(rounding_mode == None, grad / other, zero(self))", "other: where(rounding_mode == None, -grad * (self / other / other), zero(other))"),
		gradients("fmod.Tensor", "self: grad", "other: -grad * div(self, other, rounding_mode='trunc')"),
		gradients("fmod.Scalar", "self: grad"),
		gradients("remainder.Tensor", "self: grad", "other: -grad * div(self, other, rounding_mode='floor')"),
		gradients("remainder.Scalar", "self: grad"),
		gradients("igamma", "other: grad * exp((self - 1) * log(other) - other - lgamma(self))"),
		gradients("igammac", "other: -grad * exp((self - 1) * log(other) - other - lgamma(self))"),
		gradients("pow.Tensor_Scalar", "self: where(exponent == 0, zero(self), grad * (pow(self, exponent - 1) * exponent))"),
		gradients("pow.Tensor_Tensor", "self: grad * where(exponent == 0, 0, exponent * pow(self, exponent - 1))",
			"exponent: grad * where((self == 0) & (exponent >= 0), 0, result * log(self))"),
		gradients("pow.Scalar", "exponent: where(self == 0, grad * where(exponent >= 0, 0, result * log(self)), grad * (result * log(self)))"),
		gradients("atan2", "self: grad * other * where(self * self + other * other == 0, 0, reciprocal(self * self + other * other))",
			"other: -grad * self * where(self * self + other * other == 0, 0, reciprocal(self * self + other * other))"),
		gradients("hypot", "self: grad * (self / result)", "other: grad * (other / result)"),
		gradients("copysign.Tensor", "self: grad * where(self == 0, 0, result / self)", "other: zero(other)"),
		gradients("copysign.Scalar", "self: grad * where(self == 0, 0, result / self)"),
		gradients("maximum", "self: where(self == other, grad / 2, where(self < other, 0, grad))", "other: where(self == other, grad / 2, where(self > other, 0, grad))"),
		gradients("minimum", "self: where(self == other, grad / 2, where(self > other, 0, grad))", "other: where(self == other, grad / 2, where(self < other, 0, grad))"),
		gradients("fmax", "self: where((self >= other) | isnan(other), grad, 0)", "other: where((self >= other) | isnan(other), 0, grad)").leastNorm(
			"where(self == other, grad / 2, where((self >= other) | isnan(other), grad, 0))", "where(self == other, grad / 2, where((self >= other) | isnan(other), 0, grad))"),
		gradients("fmin", "self: where((self <= other) | isnan(other), grad, 0)", "other: where((self <= other) | isnan(other), 0, grad)").leastNorm(
			"where(self == other, grad / 2, where((self <= other) | isnan(other), grad, 0))", "where(self == other, grad / 2, where((self <= other) | isnan(other), 0, grad))"),
		gradients("logaddexp", "self: grad / (exp(other - self) + 1)", "other: grad / (exp(self - other) + 1)"),
		gradients("logaddexp2", "self: grad / (exp2(other - self) + 1)", "other: grad / (exp2(self - other) + 1)"),
		gradients("xlogy.Tensor", "self: grad * where((self == 0) & (other <= 0), 0, log(other))", "other: grad * self / other"),
		gradients("xlogy.Scalar_Other", "self: where(other <= 0, where(self == 0, 0, grad * log(other)), grad * log(other))"),
		gradients("xlogy.Scalar_Self", "other: grad * (self / other)"),
		gradients("special_xlog1py", "self: grad * where((self == 0) & (other <= -1), 0, log1p(other))", "other: grad * self / (other + 1)"),
		gradients("special_xlog1py.self_scalar", "other: grad * (self / (other + 1))"),
		gradients("special_xlog1py.other_scalar", "self: where(other <= -1, where(self == 0, 0, grad * log(other + 1)), grad * log(other + 1))"),
		gradients("special_zeta", "other: grad * -self * special_zeta(self + 1, other)"),
		gradients("polygamma", "self: grad * polygamma(n + 1, self)"),
	}
}

func conditionalDerivatives() []derivativeRow {
	return []derivativeRow{
		gradients("clamp", "self: where(within(self, min, max), grad, 0)").leastNorm("where(inside(self, min, max), grad, 0)"),
		gradients("clamp.Tensor", "self: where(within(self, min, max), grad, 0)", "min: where(below(self, min, max), grad, 0)", "max: where(above(self, min, max), grad, 0)").leastNorm(
			"clamped(grad, self, min, max)", "of_lower_bound(grad, self, min, max)", "of_upper_bound(grad, self, min, max)"),
		gradients("clamp_min", "self: where(self >= min, grad, 0)").leastNorm("where(self > min, grad, 0)"),
		gradients("clamp_min.Tensor", "self: where(self >= min, grad, 0)", "min: where(self < min, grad, 0)").leastNorm(
			"where(self == min, grad / 2, where(self < min, 0, grad))", "where(self == min, grad / 2, where(self > min, 0, grad))"),
		gradients("clamp_max", "self: where(self <= max, grad, 0)").leastNorm("where(self < max, grad, 0)"),
		gradients("clamp_max.Tensor", "self: where(self <= max, grad, 0)", "max: where(self > max, grad, 0)").leastNorm(
			"where(self == max, grad / 2, where(self > max, 0, grad))", "where(self == max, grad / 2, where(self < max, 0, grad))"),
		gradients("where.self", "self: where(condition, grad, 0)", "other: where(condition, 0, grad)"),
		gradients("where.ScalarOther", "self: where(condition, grad, 0)"),
		gradients("where.ScalarSelf", "other: where(condition, 0, grad)"),
		gradients("lerp.Scalar", "self: grad * (1 - weight)", "end: grad * weight"),
		gradients("lerp.Tensor", "self: grad * (1 - weight)", "end: grad * weight", "weight: grad * (end - self)"),
		gradients("addcmul", "self: grad", "tensor1: grad * (tensor2 * value)", "tensor2: grad * (tensor1 * value)"),
		gradients("addcdiv", "self: grad", "tensor1: grad * (value / tensor2)", "tensor2: -grad * (tensor1 * value / (tensor2 * tensor2))"),
		gradients("masked_fill.Scalar", "self: where(mask, 0, grad)"),
		gradients("masked_fill.Tensor", "self: where(mask, 0, grad)", "value: where(mask, grad, 0)"),
	}
}

func activationDerivatives() []derivativeRow {
	return []derivativeRow{
		gradients("relu", "self: relu_gradient(grad, result)"),
		gradients("relu6", "self: hardtanh_backward(grad, self, 0, 6)"),
		gradients("hardtanh", "self: hardtanh_backward(grad, self, min_val, max_val)"),
		gradients("leaky_relu", "self: leaky_relu_backward(grad, self, negative_slope, False)"),
		gradients("elu", "self: elu_backward(grad, alpha, scale, input_scale, False, self)"),
		gradients("selu", "self: elu_backward(grad, 1.6732632423543772, 1.0507009873554805, 1, False, self)"),
		gradients("celu", "self: elu_backward(grad, alpha, 1, 1 / alpha, False, self)"),
		gradients("gelu", "self: gelu_backward(grad, self, approximate=approximate)"),
		gradients("silu", "self: silu_backward(grad, self)"),
		gradients("mish", "self: mish_backward(grad, self)"),
		gradients("softplus", "self: softplus_backward(grad, self, beta, threshold)"),
		gradients("log_sigmoid", "self: grad * sigmoid(-self)"),
		gradients("hardsigmoid", "self: hardsigmoid_backward(grad, self)"),
		gradients("hardswish", "self: hardswish_backward(grad, self)"),
		gradients("hardshrink", "self: hardshrink_backward(grad, self, lambd)"),
		gradients("softshrink", "self: softshrink_backward(grad, self, lambd)"),
		gradients("threshold", "self: threshold_backward(grad, self, threshold)"),
	}
}

// secondDerivatives are those of the operators that carry gradients back.
func secondDerivatives() []derivativeRow {
	const beyond = "self * beta > threshold"
	return []derivativeRow{
		gradients("tanh_backward", "grad_output: tanh_backward(grad, output)", "output: grad * grad_output * output * -2"),
		gradients("sigmoid_backward", "grad_output: sigmoid_backward(grad, output)", "output: grad * grad_output * (1 - output * 2)"),
		gradients("threshold_backward", "grad_output: threshold_backward(grad, self, threshold)", "self: zero(self)"),
		gradients("leaky_relu_backward", "grad_output: leaky_relu_backward(grad, self, negative_slope, self_is_result)", "self: zero(self)"),
		gradients("hardtanh_backward", "grad_output: hardtanh_backward(grad, self, min_val, max_val)", "self: zero(self)"),
		gradients("hardsigmoid_backward", "grad_output: hardsigmoid_backward(grad, self)", "self: zero(self)"),
		gradients("hardshrink_backward", "grad_out: hardshrink_backward(grad, self, lambd)", "self: zero(self)"),
		gradients("softshrink_backward", "grad_output: softshrink_backward(grad, self, lambd)", "self: zero(self)"),
		gradients("elu_backward", "grad_output: elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)",
			"self_or_result: where(self_or_result <= 0, grad * grad_output * where(is_result, input_scale, exp(self_or_result * input_scale) * (alpha * scale * input_scale * input_scale)), 0)"),
		gradients("silu_backward", "grad_output: silu_backward(grad, self)",
			"self: sigmoid_backward(grad * grad_output, sigmoid(self)) * (2 + self * (1 - sigmoid(self) * 2))"),
		gradients("softplus_backward", "grad_output: softplus_backward(grad, self, beta, threshold)",
			"self: where("+beyond+", 0, sigmoid_backward(grad * grad_output * beta, sigmoid(self * beta)))"),
		gradients("gelu_backward", "grad_output: gelu_backward(grad, self, approximate=approximate)", "self: gelu_second(grad * grad_output, self, approximate)"),
		gradients("slice_backward", "grad_output: slice(grad, dim, start, end, step)"),
		gradients("select_backward", "grad_output: select(grad, dim, index)"),
		gradients("diagonal_backward", "grad_output: diagonal(grad, offset, dim1, dim2)"),
		gradients("unfold_backward", "grad_in: unfold(grad, dim, size, step)"),
	}
}

func viewDerivatives() []derivativeRow {
	rows := []derivativeRow{
		gradients("expand", "self: grad"),
		gradients("permute", "self: permute(grad, inverse(dims))"),
		gradients("transpose.int", "self: transpose(grad, dim0, dim1)"),
		gradients("t", "self: t(grad)"),
		gradients("numpy_T", "self: numpy_T(grad)"),
		gradients("mT", "self: transpose(grad, -2, -1)"),
		gradients("movedim.int", "self: movedim(grad, destination, source)"),
		gradients("movedim.intlist", "self: movedim(grad, destination, source)"),
		gradients("slice.Tensor", "self: slice_backward(grad, sizes(self), dim, start_of(self, dim, start), end_of(self, dim, end), step)").
			writtenBy("slice_scatter(self, value, dim, start, end, step)"),
		gradients("narrow", "self: slice_backward(grad, sizes(self), dim, start_of(self, dim, start), start_of(self, dim, start) + length, 1)").
			writtenBy("slice_scatter(self, value, dim, start_of(self, dim, start), start_of(self, dim, start) + length)"),
		gradients("select.int", "self: select_backward(grad, sizes(self), dim, index)").writtenBy("select_scatter(self, value, dim, index)"),
		gradients("diagonal", "self: diagonal_backward(grad, sizes(self), offset, dim1, dim2)").
			writtenBy("diagonal_scatter(self, value, offset, dim1, dim2)"),
		gradients("unfold", "self: unfold_backward(grad, sizes(self), dimension, size, step)"),
		gradients("unbind.int", "self: stack(filled(grads, results), dim)").writtenBy("select_scatter(self, value, dim, piece)"),
	}
	for _, reshaping := range []string{"view", "_unsafe_view", "alias", "squeeze", "squeeze.dim", "squeeze.dims", "unsqueeze", "unflatten.int"} {
		rows = append(rows, gradients(reshaping, "self: shaped(grad, self)"))
	}
	for _, splitting := range []string{"split.Tensor", "split_with_sizes", "chunk", "tensor_split.sections", "tensor_split.indices"} {
		rows = append(rows, gradients(splitting, "self: cat(filled(grads, results), dim)").
			writtenBy("slice_scatter(self, value, dim, before(pieces, piece), before(pieces, piece) + pieces[piece])"))
	}
	return rows
}

func reductionDerivatives() []derivativeRow {
	rows := []derivativeRow{
		gradients("sum", "self: spread(grad, self, None, False)"),
		gradients("sum.dim_IntList", "self: spread(grad, self, dim, keepdim)"),
		gradients("nansum", "self: where(isnan(self), 0, spread(grad, self, dim, keepdim))"),
		gradients("mean", "self: spread(grad / count(self, None), self, None, False)"),
		gradients("mean.dim", "self: spread(grad / count(self, dim), self, dim, keepdim)"),
		gradients("var", "self: spread(grad, self, None, False) * (self - mean(self)) * variance_factor(self, None, unbiased)"),
		gradients("std", "self: spread(where(result == 0, 0, grad / (result * 2)), self, None, False) * (self - mean(self)) * variance_factor(self, None, unbiased)"),
		gradients("var_mean", "self: spread(filled(grads, results)[0], self, None, False) * (self - mean(self)) * variance_factor(self, None, unbiased)"+
			" + spread(filled(grads, results)[1] / count(self, None), self, None, False)"),
		gradients("std_mean", "self: spread(where(result == 0, 0, filled(grads, results)[0] / (result * 2)), self, None, False) * (self - mean(self)) * variance_factor(self, None, unbiased)"+
			" + spread(filled(grads, results)[1] / count(self, None), self, None, False)"),
		gradients("prod", "self: spread(grad, self, None, False) * products_of_others(self, None)"),
		gradients("prod.dim_int", "self: spread(grad, self, dim, keepdim) * products_of_others(self, dim)"),
		gradients("cumprod", "self: cumprod_gradient(grad, self, result, dim)"),
		gradients("logcumsumexp", "self: exp(flip(logcumsumexp(flip(log(clamp_min(grad, 0)) - result, [dim]), dim), [dim]) + self)"+
			" - exp(flip(logcumsumexp(flip(log(clamp_min(-grad, 0)) - result, [dim]), dim), [dim]) + self)").notAgain(), // log(0) on one side
		gradients("cummax", "self: scatter_add(zero(self), dim, results[1], grad)"),
		gradients("cummin", "self: scatter_add(zero(self), dim, results[1], grad)"),
		gradients("median", "self: shared(grad, self, result, None, False)"),
		gradients("nanmedian", "self: shared(grad, self, result, None, False)"),
		gradients("aminmax", "self: shared(filled(grads, results)[0], self, result, dim, keepdim) + shared(filled(grads, results)[1], self, results[1], dim, keepdim)"),
		gradients("logsumexp", "self: spread(grad, self, dim, keepdim) * exp(self - spread(result, self, dim, keepdim))"),
		gradients("cumsum", "self: flip(cumsum(flip(grad, [dim]), dim), [dim])"),
		gradients("linalg_vector_norm", "self: norm_gradient(grad, self, result, ord, dim, keepdim)"),
		gradients("norm.ScalarOpt_dim", "self: norm_gradient(grad, self, result, p, dim, keepdim)"),
	}
	for _, overload := range []string{".dim", ".correction"} {
		correction := map[string]string{".dim": "unbiased", ".correction": "correction"}[overload]
		centred := "(self - mean(self, dim, True)) * variance_factor(self, dim, " + correction + ")"
		rows = append(rows,
			gradients("var"+overload, "self: spread(grad, self, dim, keepdim) * "+centred),
			gradients("std"+overload, "self: spread(where(result == 0, 0, grad / (result * 2)), self, dim, keepdim) * "+centred),
			gradients("var_mean"+overload, "self: spread(filled(grads, results)[0], self, dim, keepdim) * "+centred+" + spread(filled(grads, results)[1] / count(self, dim), self, dim, keepdim)"),
			gradients("std_mean"+overload, "self: spread(where(result == 0, 0, filled(grads, results)[0] / (result * 2)), self, dim, keepdim) * "+centred+" + spread(filled(grads, results)[1] / count(self, dim), self, dim, keepdim)"))
	}
	for _, extremum := range []string{"amax", "amin"} {
		rows = append(rows, gradients(extremum, "self: shared(grad, self, result, dim, keepdim)"))
	}
	for _, extremum := range []string{"max", "min"} {
		rows = append(rows, gradients(extremum, "self: shared(grad, self, result, None, False)"))
	}
	for _, selection := range []string{"max.dim", "min.dim", "median.dim", "mode"} {
		rows = append(rows, gradients(selection, "self: placed(grad, self, dim, results[1], keepdim)"))
	}
	return rows
}

func matrixDerivatives() []derivativeRow {
	const convolution = "convolution_backward(grad, plain(input), plain(weight), bias_sizes(bias), stride, padding, dilation, transposed, output_padding, groups, wanted(input, weight, bias))"
	rows := []derivativeRow{
		gradients("mm", "self: mm(grad, t(mat2))", "mat2: mm(t(self), grad)"),
		gradients("bmm", "self: bmm(grad, transpose(mat2, 1, 2))", "mat2: bmm(transpose(self, 1, 2), grad)"),
		gradients("addmm", "self: grad * beta", "mat1: mm(grad, t(mat2)) * alpha", "mat2: mm(t(mat1), grad) * alpha"),
		gradients("baddbmm", "self: grad * beta", "batch1: bmm(grad, transpose(batch2, 1, 2)) * alpha", "batch2: bmm(transpose(batch1, 1, 2), grad) * alpha"),
		gradients("addmv", "self: grad * beta", "mat: outer(grad, vec) * alpha", "vec: mv(t(mat), grad) * alpha"),
		gradients("mv", "self: outer(grad, vec)", "vec: mv(t(self), grad)"),
		gradients("dot", "self: grad * tensor", "tensor: grad * self"),
		gradients("vdot", "self: grad * other", "other: grad * self"),
		gradients("addr", "self: grad * beta", "vec1: mv(grad, vec2) * alpha", "vec2: mv(t(grad), vec1) * alpha"),
		gradients("addbmm", "self: grad * beta", "batch1: matmul(grad, transpose(batch2, 1, 2)) * alpha", "batch2: matmul(transpose(batch1, 1, 2), grad) * alpha"),
		instead("inner", "inner_product(self, other)"),
		gradients("outer", "self: mv(grad, vec2)", "vec2: mv(t(grad), self)"),
		gradients("matmul", "self: matmul_left(grad, self, other)", "other: matmul_right(grad, self, other)"),
		gradients("linear", "input: shaped(mm(rows(grad), weight), input)", "weight: mm(t(rows(grad)), rows(input))", "bias: bias_rows(grad, input)"),
		gradients("convolution", "input, weight, bias: "+convolution),
		gradients("convolution_backward", "grad_output, input, weight: convolution_second(grads, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups)"),
		instead("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal, attn_mask=added_mask(attn_mask, query), scale=scale)"),
		gradients("_scaled_dot_product_flash_attention_for_cpu",
			"query, key, value: _scaled_dot_product_flash_attention_for_cpu_backward(grad, query, key, value, result, results[1], dropout_p, is_causal, attn_mask=attn_mask, scale=scale)"),
		gradients("_scaled_dot_product_flash_attention",
			"query, key, value: _scaled_dot_product_flash_attention_backward(grad, query, key, value, result, results[1], None, None, size(query, 2), size(key, 2), dropout_p, is_causal, results[6], results[7], scale=scale)"),
		gradients("_scaled_dot_product_cudnn_attention",
			"query, key, value: _scaled_dot_product_cudnn_attention_backward(grad, query, key, value, result, results[1], results[6], results[7], attn_bias, None, None, size(query, 2), size(key, 2), dropout_p, is_causal, scale=scale)"),
		gradients("_scaled_dot_product_efficient_attention",
			"query, key, value: _scaled_dot_product_efficient_attention_backward(grad, query, key, value, attn_bias, result, results[1], results[2], results[3], dropout_p, [True, True, True, False], is_causal, scale=scale)"),
		gradients("mkldnn_rnn_layer", "input, weight0, weight1, weight2, weight3, hx_, cx_: recurrent_gradients(grads, results, input, weight0, weight1, weight2, weight3, hx_, cx_, "+
			"reverse, mode, hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first)"),
	}
	for _, name := range []string{"conv1d", "conv2d", "conv3d"} {
		rows = append(rows, instead(name, "convolution(input, weight, bias, stride, padding, dilation, False, zeros_of(padding), groups)"),
			instead(name+".padding", "convolution(input, weight, bias, stride, padding_of(weight, padding, dilation), dilation, False, zeros_of(stride), groups)"))
	}
	for _, name := range []string{"conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"} {
		rows = append(rows, instead(name, "convolution(input, weight, bias, stride, padding, dilation, True, output_padding, groups)"))
	}
	return rows
}

func normalisationDerivatives() []derivativeRow {
	return []derivativeRow{
		gradients("softmax.int", "self: softmax_gradient(grad, result, dim)"),
		gradients("_softmax", "self: softmax_gradient(grad, result, dim)"),
		gradients("_safe_softmax", "self: softmax_gradient(grad, result, dim)"),
		gradients("log_softmax.int", "self: log_softmax_gradient(grad, result, dim)"),
		gradients("_log_softmax", "self: log_softmax_gradient(grad, result, dim)"),
		instead("layer_norm", "native_layer_norm(input, normalized_shape, weight, bias, eps)"),
		gradients("native_layer_norm", "input, weight, bias: native_layer_norm_backward(grad, input, normalized_shape, results[1], results[2], weight, bias, wanted(input, weight, bias))").
			differentiableBy("input, weight, bias: layer_norm_again(grad, input, weight, normalized_shape, eps)"),
		instead("group_norm", "native_group_norm(contiguous(input), weight, bias, size(input, 0), size(input, 1), area(input), num_groups, eps)"),
		gradients("native_group_norm", "input, weight, bias: native_group_norm_backward(contiguous(grad), input, results[1], results[2], weight, N, C, HxW, group, wanted(input, weight, bias))").
			differentiableBy("input, weight, bias: group_norm_again(grad, input, weight, N, group, eps)"),
		instead("batch_norm", "batch_statistics(input, weight, bias, running_mean, running_var, training, momentum, eps)"),
		gradients("native_batch_norm", "input, weight, bias: native_batch_norm_backward(grad, input, weight, where(training, None, running_mean), where(training, None, running_var), results[1], results[2], training, eps, wanted(input, weight, bias))").
			differentiableBy("input, weight, bias: batch_norm_again(grad, input, weight, running_mean, running_var, training, eps)"),
		gradients("rms_norm", "input: rms_norm_gradient(grad, input, normalized_shape, weight, eps)", "weight: rms_norm_weight_gradient(grad, input, normalized_shape, weight, eps)"),
	}
}

func indexDerivatives() []derivativeRow {
	rows := []derivativeRow{
		gradients("embedding_dense_backward", "grad_output: where(unsqueeze(indices == padding_idx, -1), 0, embedding(grad, indices))"),
		gradients("embedding", "weight: embedding_dense_backward(grad, indices, size(weight, 0), padding_idx, scale_grad_by_freq)"),
		gradients("gather", "self: ungathered(grad, self, dim, index)"),
		gradients("index_select", "self: index_add(zero(self), dim, index, grad)"),
		gradients("index.Tensor", "self: index_put(zero(self), indices, grad, True)"),
		gradients("index_put", "self: where(accumulate, grad, index_put(grad, indices, zero(values), False))", "values: index(grad, indices)"),
		gradients("scatter.src", "self: scatter(grad, dim, index, 0)", "src: gather(grad, dim, index)"),
		gradients("scatter.value", "self: scatter(grad, dim, index, 0)"),
		gradients("scatter_add", "self: grad", "src: gather(grad, dim, index)"),
		gradients("scatter_reduce.two", "self, src: scatter_reduce_gradients(grad, self, dim, index, src, reduce, include_self, result)"),
		gradients("index_add", "self: grad", "source: index_select(grad, dim, index) * alpha"),
		gradients("index_copy", "self: index_fill(grad, dim, index, 0)", "source: index_select(grad, dim, index)"),
		gradients("index_fill.int_Scalar", "self: index_fill(grad, dim, index, 0)"),
	}
	return rows
}

func shapeDerivatives() []derivativeRow {
	return []derivativeRow{
		instead("dropout", "dropped(input, p)"),
		gradients("native_dropout", "input: grad * results[1] * (1 / (1 - p))"),
		instead("rrelu", "rrelu_with_noise_functional(self, empty_like(self), lower, upper, training)"),
		gradients("rrelu_with_noise_functional", "self: where(training & (upper - lower > 1e-6), grad * results[1], leaky_relu_backward(grad, self, (lower + upper) / 2, False))"),
		gradients("cat", "tensors: pieces(grad, tensors, dim)"),
		gradients("stack", "tensors: unbind(grad, dim)"),
		gradients("constant_pad_nd", "self: constant_pad_nd(grad, negated(pad), 0)"),
		gradients("repeat_interleave.self_int", "self: interleaved_summed(grad, self, repeats, dim)"),
		gradients("repeat", "self: repeats_summed(grad, self, repeats)"),
		gradients("flip", "self: flip(grad, dims)"),
		gradients("roll", "self: roll(grad, negated(shifts), dims)"),
		gradients("tril", "self: tril(grad, diagonal)"),
		gradients("triu", "self: triu(grad, diagonal)"),
		gradients("sort", "self: placed(grad, self, dim, results[1], True)"),
		gradients("sort.stable", "self: placed(grad, self, dim, results[1], True)"),
		gradients("topk", "self: placed(grad, self, dim, results[1], True)"),
		gradients("diag_embed", "self: diagonal(grad, offset, dim1, dim2)"),
		gradients("glu", "self: glu_gradient(grad, self, dim)"),
		gradients("slice_scatter", "self: slice_scatter(grad, zero(src), dim, start, end, step)", "src: slice(grad, dim, start, end, step)"),
		gradients("select_scatter", "self: select_scatter(grad, zero(src), dim, index)", "src: select(grad, dim, index)"),
		gradients("diagonal_scatter", "self: diagonal_scatter(grad, zero(src), offset, dim1, dim2)", "src: diagonal(grad, offset, dim1, dim2)"),
		gradients("_to_copy", "self: grad"),
		gradients("clone", "self: grad"),
	}
}

func lossDerivatives() []derivativeRow {
	return []derivativeRow{
		instead("cross_entropy_loss", "cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing)"),
		instead("nll_loss_nd", "class_loss(self, target, weight, reduction, ignore_index)"),
		gradients("nll_loss_forward", "self: nll_loss_backward(grad, self, target, weight, reduction, ignore_index, results[1])"),
		gradients("nll_loss2d_forward", "self: nll_loss2d_backward(grad, self, target, weight, reduction, ignore_index, results[1])"),
		gradients("nll_loss_backward", "grad_output: nll_loss_forward(grad, target, weight, reduction, ignore_index)[0]", "self: zero(self)"),
		gradients("nll_loss2d_backward", "grad_output: nll_loss2d_forward(grad, target, weight, reduction, ignore_index)[0]", "self: zero(self)"),
		gradients("mse_loss", "self: averaged(grad, self, reduction) * (self - target) * 2", "target: averaged(grad, self, reduction) * (target - self) * 2"),
		gradients("l1_loss", "self: averaged(grad, self, reduction) * sign(self - target)", "target: averaged(grad, self, reduction) * sign(target - self)"),
		gradients("smooth_l1_loss", "self: averaged(grad, self, reduction) * where(abs(self - target) >= beta, sign(self - target), (self - target) / beta)",
			"target: averaged(grad, self, reduction) * where(abs(self - target) >= beta, sign(target - self), (target - self) / beta)"),
		gradients("huber_loss", "self: averaged(grad, self, reduction) * clamp(self - target, -delta, delta)", "target: averaged(grad, self, reduction) * clamp(target - self, -delta, delta)"),
		gradients("soft_margin_loss", "self: averaged(grad, self, reduction) * -target * sigmoid(-target * self)"),
		gradients("binary_cross_entropy", "self: averaged(grad, self, reduction) * (self - target) / clamp_min((1 - self) * self, 1e-12)",
			"target: averaged(grad, self, reduction) * (log1p(-self) - log(self))"),
		gradients("binary_cross_entropy_with_logits", "self: averaged(grad, self, reduction) * (sigmoid(self) - target)", "target: averaged(grad, self, reduction) * -self"),
		gradients("kl_div", "self: averaged(grad, self, reduction) * where(log_target, -exp(target), -target)"),
	}
}

func poolingDerivatives() []derivativeRow {
	return []derivativeRow{
		instead("max_pool2d", "max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)"),
		gradients("max_pool2d_with_indices", "self: max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, results[1])"),
		gradients("avg_pool2d", "self: avg_pool2d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)"),
		gradients("adaptive_avg_pool2d", "self: _adaptive_avg_pool2d_backward(grad, self)"),
		gradients("max_pool2d_with_indices_backward", "grad_output: picked(grad, indices)", "self: zero(self)"),
		gradients("avg_pool2d_backward", "grad_output: avg_pool2d(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)", "self: zero(self)"),
		gradients("_adaptive_avg_pool2d_backward", "grad_output: adaptive_avg_pool2d(grad, image(grad_output))", "self: zero(self)"),
	}
}
