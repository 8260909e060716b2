"""Names of the pointwise functions that the oracle covers."""

UNARY = (
    "abs neg sign sgn ceil floor trunc round frac square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 "
    "log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc lgamma deg2rad rad2deg "
    "angle sinc logit nan_to_num bitwise_not logical_not signbit isnan isinf isfinite isneginf isposinf relu "
    "selu celu digamma erfinv i0 positive absolute negative arccos"
).split()
UNARY_NN = ("relu6 elu gelu silu mish softplus log_sigmoid hardsigmoid hardswish hardtanh leaky_relu").split()
SPECIAL = (
    "special_entr special_erfcx special_i0e special_i1 special_i1e special_ndtri special_log_ndtr "
    "special_bessel_j0 special_bessel_j1 special_modified_bessel_i0 special_expit special_erf special_psi "
    "special_gammaln special_exp2"
).split()
BINARY = (
    "add sub mul div floor_divide fmod remainder pow atan2 hypot copysign nextafter gcd maximum minimum fmax "
    "fmin logaddexp logaddexp2 ldexp xlogy heaviside bitwise_and bitwise_or bitwise_xor bitwise_left_shift "
    "bitwise_right_shift logical_and logical_or logical_xor eq ne lt le gt ge rsub igamma lcm true_divide "
    "multiply subtract greater not_equal max min"
).split()
OPERATORS = (
    "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift eq ne lt le gt ge iadd isub imul itruediv "
    "ifloordiv imod ipow iand ior ixor"
).split()
