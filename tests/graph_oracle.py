"""Ask eager PyTorch what calls return: the oracle for the inference in the Go package ``graph``.

``python tests/graph_oracle.py --output graph/testdata/oracle.json`` records, for many functions, argument types and layouts,
the element type, sizes, strides, offset, requires_grad, leaf and view flags of every result, and whether it is an argument
itself or shares an argument's memory. Calls that eager rejects are recorded as null. ``--full`` records many more
combinations than the checked-in file holds.

A tensor argument is ``"@k"``, the k-th of ``tensors``: [dtype, sizes, strides, offset, requires_grad]. Other arguments
are JSON values, or one-key objects: "d" element type, "m" memory format, "c" complex, "f" float without JSON form,
"u" tuple, "s" slice, "e" Ellipsis. A result tensor is [dtype, sizes, strides, offset, requires_grad, flags, relation], with
relation "n" for new memory, "s3" for argument 3 itself, "v3" for a view of it (tensor arguments counted in order).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import operator
import pathlib
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

Spec = tuple[str, tuple[int, ...], tuple[int, ...], int, bool]
Json = Any

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int8", "int16", "int32", "int64", "uint8"]
ALL = [*FLOATS, *INTS, "bool", "complex64"]
NAMESPACES: dict[str, Any] = {
    "torch": torch,
    "Tensor": torch.Tensor,
    "operator": operator,
    "torch._C._nn": torch._C._nn,
    "torch._C._special": torch._C._special,
    "torch._C._linalg": torch._C._linalg,
    "torch.nn.functional": torch.nn.functional,
    "torch.functional": torch.functional,
}


REJECTED_CASES = 15  # calls that eager rejects kept per function in the short recording


class T:
    """A tensor argument: element type, layout and whether it requires gradients."""

    def __init__(
        self,
        dtype: str,
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        offset: int = 0,
        grad: bool = False,
    ) -> None:
        self.spec: Spec = (
            dtype,
            tuple(sizes),
            tuple(strides if strides is not None else contiguous(sizes)),
            offset,
            grad,
        )

    def make(self, content: int) -> torch.Tensor:
        """Allocate the tensor, every element the same small number."""
        dtype, sizes, strides, offset, grad = self.spec
        last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        length = max(1, last + 1) if 0 not in sizes else offset + 1
        values = torch.full((length,), content).to(getattr(torch, dtype))
        tensor = values.as_strided(sizes, strides, offset).detach()
        return tensor.requires_grad_() if grad else tensor


def contiguous(sizes: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of a fresh tensor."""
    strides: list[int] = []
    step = 1
    for n in reversed(sizes):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def channels_last(dtype: str, sizes: Sequence[int], grad: bool = False) -> T:
    """A tensor of four dimensions whose second one is innermost."""
    n, c, h, w = sizes
    return T(dtype, sizes, (c * h * w, 1, w * c, c), 0, grad)


class Recorder:
    """Runs calls and keeps what they returned."""

    def __init__(self, full: bool) -> None:
        self.full = full
        self.rejected: dict[str, int] = {}
        self.tensors: dict[Spec, int] = {}
        self.cases: list[Json] = []
        self.seen: set[str] = set()

    def call(self, target: str, *args: Any, grad_mode: bool = True, **keywords: Any) -> None:
        """Record one call; repeated ones are dropped."""
        encoded = [target, self.encode(list(args)), {k: self.encode(v) for k, v in keywords.items()}, int(grad_mode)]
        key = json.dumps(encoded)
        if key in self.seen:
            return
        self.seen.add(key)
        outcome = run(resolve(target), args, keywords, grad_mode)
        self.rejected[target] = self.rejected.get(target, 0) + (outcome is None)
        if outcome is not None or self.full or self.rejected[target] <= REJECTED_CASES:
            self.cases.append([*encoded, outcome])

    def encode(self, value: Any) -> Json:
        """Turn an argument into its JSON form."""
        if isinstance(value, T):
            return f"@{self.tensors.setdefault(value.spec, len(self.tensors))}"
        if isinstance(value, torch.dtype):
            return {"d": str(value).removeprefix("torch.")}
        if isinstance(value, torch.memory_format):
            return {"m": str(value).removeprefix("torch.")}
        if isinstance(value, complex):
            return {"c": [value.real, value.imag]}
        if isinstance(value, float) and not math.isfinite(value):
            return {"f": str(value)}
        if isinstance(value, slice):
            return {"s": [self.encode(v) for v in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"e": 1}
        if isinstance(value, tuple):
            return {"u": [self.encode(v) for v in value]}
        if isinstance(value, list):
            return [self.encode(v) for v in value]
        return value

    def result(self) -> Json:
        """Everything recorded, as one JSON value."""
        tensors = [list(spec) for spec in self.tensors]
        return {
            "torch": torch.__version__,
            "tensors": tensors,
            "schemas": schemas(),
            "samples": {k: [[str(v) for v in column] for column in zip(*v, strict=True)] for k, v in SAMPLES.items()},
            "values": values(),
            "cases": self.cases,
        }


INTERNAL_WORDS = (
    "quantize mkldnn miopen cudnn sparse fbgemm fft_ linalg_ polynomial rnn lstm gru pool1d pool3d upsample grid_sample histogram "
    "pad1d pad2d pad3d unpool stft scatter_list window coalesce names rename slice_scatter diagonal_scatter dim_order sym_ chebyshev"
).split()


def schemas() -> list[str]:
    """All functional and in-place aten schemas, for checking the operator table's own."""
    found = []
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        internal = any(word in name for word in INTERNAL_WORDS) or name.startswith("_")
        kept = not internal or name in ("_softmax", "_log_softmax", "_to_copy", "linalg_vector_norm")
        if (
            name != schema.name
            and kept
            and (not name.endswith("_copy") or name in ("index_copy", "_to_copy"))
            and not any(a.is_out for a in schema.arguments)
            and "Tensor" in str(schema)
        ):
            found.append(str(schema).removeprefix("aten::"))
    return sorted(set(found))


FLOAT_NUMBERS = [
    -math.inf,
    -30.0,
    -2.5,
    -1.0,
    -0.75,
    -0.5,
    -0.0,
    0.0,
    0.25,
    0.5,
    1.0,
    1.5,
    3.0,
    25.0,
    math.inf,
    math.nan,
]
FEW_FLOATS = [-math.inf, -2.5, 0.0, 0.25, 1.5, math.inf, math.nan]
SAMPLES: dict[str, list[tuple[float, ...]]] = {
    "float64": [(v,) for v in FLOAT_NUMBERS],
    "float64 pairs": list(itertools.product(FEW_FLOATS, repeat=2)),
    "float64 triples": list(itertools.product(FEW_FLOATS, [-1.5, 0.5, math.nan], [-1.5, 0.25, 0.75])),
    "float64 finite pairs": list(itertools.product([-1.5, 2.0], [-30.0, -3.5, -1.0, -0.5, 0.25, 0.75, 2.0, 4.0])),
    "int64": [(v,) for v in (-7, -3, -1, 0, 1, 2, 5, 64)],
    "int64 pairs": [(a, b) for a, b in itertools.product((-7, -3, -1, 0, 1, 2, 5, 8), repeat=2) if b != 0],
}


class Sampler:
    """Results of pointwise functions on sample numbers: [target, sample, more arguments, keywords, results]."""

    def __init__(self) -> None:
        self.found: list[Json] = []

    def sample(self, target: str, key: str, *more: Any, **keywords: Any) -> None:
        """Run a function on columns of numbers and record what comes out, unless it rejects them."""
        dtype = getattr(torch, key.split()[0])
        columns = [torch.tensor(column, dtype=dtype) for column in zip(*SAMPLES[key], strict=True)]
        try:
            result = resolve(target)(*columns, *more, **keywords)
        except (RuntimeError, TypeError, NotImplementedError):
            return
        if isinstance(result, torch.Tensor) and not result.is_complex():
            results = [str(float(v)) for v in result.tolist()]
            self.found.append([target, key, list(more), keywords, results])


def values() -> list[Json]:
    """Sample all pointwise functions."""
    s = Sampler()
    for name in UNARY + SPECIAL + UNARY_NN:
        namespace = "torch._C._special" if name in SPECIAL else "torch._C._nn" if name in UNARY_NN else "torch"
        if hasattr(NAMESPACES[namespace], name):
            s.sample(f"{namespace}.{name}", "float64")
            s.sample(f"{namespace}.{name}", "int64")
    for name in BINARY:
        s.sample(f"torch.{name}", "float64 pairs")
        s.sample(f"torch.{name}", "int64 pairs")
    for name in ("lerp", "addcmul", "addcdiv", "clamp"):
        s.sample(f"torch.{name}", "float64 triples")
    sample_options(s)
    sample_operators(s)
    return s.found


def sample_options(s: Sampler) -> None:
    """Sample functions with more arguments than tensors."""
    for mode, key in itertools.product(("floor", "trunc"), ("float64 pairs", "int64 pairs")):
        s.sample("torch.div", key, rounding_mode=mode)
    for exponent in (0, 0.5, -0.5, 1, 2, 3, -1, -2, 2.5):
        s.sample("torch.pow", "float64", exponent)
    for name in ("add", "sub", "rsub"):
        s.sample(f"torch.{name}", "float64 pairs", alpha=2.5)
    for name, args in (
        ("clamp", (-1, 1.5)), ("clamp", (None, 0.5)), ("clamp_min", (0.5,)), ("clamp_max", (0.5,)), ("logit", (0.25,)),
        ("nan_to_num", (1.5, 2.5, -2.5)), ("threshold", (0.5, 7.0)), ("hardshrink", (0.5,)), ("celu", (2.0,)), ("xlogy", (2.5,)),
        ("_C._nn.softshrink", (0.75,)), ("_C._nn.leaky_relu", (0.1,)), ("_C._nn.hardtanh", (-1.5, 2)),
        ("_C._nn.softplus", (2, 5)), ("_C._nn.elu", (2.0, 3, 0.5)), ("copysign", (-1.5,)), ("remainder", (1.5,)), ("fmod", (1.5,)),
        ("rsub", (1.5, 2)), ("eq", (0.5,)), ("ne", (0.5,)), ("lt", (0.5,)), ("le", (0.5,)), ("gt", (0.5,)), ("ge", (0.5,)),
    ):  # fmt: skip
        s.sample(f"torch.{name}", "float64", *args)
    s.sample("torch.clamp", "int64", 0, 3)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
        s.sample(f"torch.{name}", "int64", 3)
    for decimals in (1, -1):
        s.sample("torch.round", "float64", decimals=decimals)
    s.sample("torch.lerp", "float64 pairs", 0.75)
    s.sample("torch._C._nn.gelu", "float64", approximate="tanh")
    s.sample("torch._C._special.special_xlog1py", "float64 pairs")


def sample_operators(s: Sampler) -> None:
    """Sample derivatives, which exist as aten operators only."""
    finite = "float64 finite pairs"
    for name, args in (
        ("sigmoid_backward", ()), ("tanh_backward", ()), ("silu_backward", ()), ("mish_backward", ()), ("gelu_backward", ()),
        ("hardsigmoid_backward", ()), ("hardswish_backward", ()), ("threshold_backward", (0.5,)), ("leaky_relu_backward", (0.1, False)),
        ("elu_backward", (2.0, 3, 0.5, False)), ("elu_backward", (2.0, 3, 0.5, True)), ("hardtanh_backward", (-1, 2)),
        ("softplus_backward", (2, 5)), ("hardshrink_backward", (0.5,)), ("softshrink_backward", (0.5,)),
    ):  # fmt: skip
        target = f"aten.{name}.default"
        grads, inputs = zip(*SAMPLES[finite], strict=True)
        if name == "elu_backward":
            s.found.append([target, finite, list(args[:3]) + [args[3]], {}, elu_backward(grads, inputs, args)])
        else:
            s.sample(target, finite, *args)


def elu_backward(grads: Sequence[float], inputs: Sequence[float], args: Sequence[Any]) -> list[str]:
    """The derivative of elu; its schema puts the tensor last."""
    grad, x = (torch.tensor(column, dtype=torch.float64) for column in (grads, inputs))
    result = torch.ops.aten.elu_backward.default(grad, args[0], args[1], args[2], args[3], x)
    return [str(v) for v in result.tolist()]


def resolve(target: str) -> Callable[..., Any]:
    """Find the function behind a canonical name; getsets become functions of the tensor."""
    namespace, _, name = target.rpartition(".")
    if namespace.startswith("aten."):
        return getattr(getattr(torch.ops.aten, namespace.removeprefix("aten.")), name)
    found = getattr(NAMESPACES[namespace], name)
    return found if callable(found) else found.__get__


def build(value: Any, made: list[torch.Tensor], content: int) -> Any:
    """Replace tensor descriptions by tensors."""
    if isinstance(value, T):
        made.append(value.make(content))
        return made[-1]
    if isinstance(value, list | tuple):
        return type(value)(build(v, made, content) for v in value)
    return value


def run(function: Callable[..., Any], args: Iterable[Any], keywords: dict[str, Any], grad_mode: bool) -> Json:
    """Call the function and describe the result; None when it raises whatever the tensors hold.

    Ones divide integers, zeros are valid indices everywhere.
    """
    return attempt(function, args, keywords, grad_mode, 1) or attempt(function, args, keywords, grad_mode, 0)


def attempt(
    function: Callable[..., Any], args: Iterable[Any], keywords: dict[str, Any], grad_mode: bool, content: int
) -> Json:
    """Call the function on tensors full of one number."""
    made: list[torch.Tensor] = []
    positional = [build(a, made, content) for a in args]
    named = {k: build(v, made, content) for k, v in keywords.items()}
    try:
        with torch.set_grad_enabled(grad_mode):
            return {"r": describe(function(*positional, **named), made)}
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None


def describe(value: Any, made: list[torch.Tensor]) -> Json:
    """Describe a result: tensors as lists starting with a string, tuples and lists as lists of descriptions."""
    if isinstance(value, list | tuple):
        return [describe(v, made) for v in value]
    if not isinstance(value, torch.Tensor):
        return repr(type(value))
    relation = "n"
    for i, tensor in enumerate(made):
        if value is tensor:
            relation = f"s{i}"
            break
        if value.untyped_storage()._cdata == tensor.untyped_storage()._cdata:
            relation = f"v{i}"
            break
    shares_argument = relation != "n"
    flags = 2 * value.is_leaf + 4 * (value.grad_fn is not None) + 64 * (shares_argument and value._is_view())
    dtype = str(value.dtype).removeprefix("torch.")
    return [
        dtype,
        list(value.shape),
        list(value.stride()),
        value.storage_offset(),
        value.requires_grad,
        flags,
        relation,
    ]


def layouts(dtype: str, grad: bool = False) -> list[T]:
    """Tensors of many layouts."""
    return [
        T(dtype, (), grad=grad),
        T(dtype, (3,), grad=grad),
        T(dtype, (3,), (2,), 1, grad),
        T(dtype, (2, 3), grad=grad),
        T(dtype, (3, 2), (1, 3), 0, grad),
        T(dtype, (3, 2), (4, 2), 1, grad),
        T(dtype, (3, 4), (0, 1), 0, grad),
        T(dtype, (3, 4), (1, 0), 0, grad),
        T(dtype, (0,), grad=grad),
        T(dtype, (2, 0, 3), grad=grad),
        T(dtype, (3, 0, 2), (1, 6, 3), 0, grad),
        T(dtype, (1, 3), grad=grad),
        T(dtype, (1, 3), (1, 1), 0, grad),
        T(dtype, (2, 3, 4), grad=grad),
        T(dtype, (4, 2, 3), (1, 12, 4), 0, grad),
        T(dtype, (3, 4, 2), (4, 1, 12), 0, grad),
        T(dtype, (2, 1, 4), (8, 4, 1), 0, grad),
        T(dtype, (4, 2, 3), (2, 24, 8), 0, grad),
        T(dtype, (2, 3, 4, 5), grad=grad),
        channels_last(dtype, (2, 3, 4, 5), grad),
        channels_last(dtype, (2, 1, 4, 5), grad),
        T(dtype, (2, 3, 4, 5), (120, 1, 30, 6), 0, grad),
        T(dtype, (5, 4, 3, 2), (1, 5, 20, 60), 0, grad),
        T(dtype, (2, 3, 1, 1), (3, 1, 3, 3), 0, grad),
        T(dtype, (2, 2, 3, 4, 5), (120, 1, 40, 10, 2), 0, grad),
    ]


def pairs(dtype: str) -> Iterator[tuple[T, T]]:
    """Pairs of tensors that broadcast, of many layouts."""
    square = [
        T(dtype, (3, 4)),
        T(dtype, (3, 4), (1, 3)),
        T(dtype, (3, 4), (0, 1)),
        T(dtype, (3, 4), (1, 0)),
        T(dtype, (3, 4), (8, 2)),
    ]
    yield from itertools.product([*square, T(dtype, (4,)), T(dtype, (3, 1)), T(dtype, ()), T(dtype, (1, 1))], square)
    four = [
        T(dtype, (2, 3, 4, 5)),
        channels_last(dtype, (2, 3, 4, 5)),
        T(dtype, (2, 3, 4, 5), (1, 2, 6, 24)),
        T(dtype, (3, 1, 1)),
        T(dtype, (1, 3, 1, 1), (3, 1, 3, 3)),
        T(dtype, (2, 3, 4, 5), (60, 0, 5, 1)),
        T(dtype, (5,)),
        T(dtype, ()),
    ]
    yield from itertools.product(four, four)
    yield T(dtype, (0, 3)), T(dtype, (1, 3))
    yield T(dtype, (3, 0), (1, 3)), T(dtype, (3, 0), (1, 3))
    yield T(dtype, (2, 3)), T(dtype, (3, 2))
    yield T(dtype, (2, 1, 3), (3, 3, 1)), T(dtype, (1, 4, 1))


UNARY = (
    "abs neg sign sgn ceil floor trunc round frac square reciprocal sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh sigmoid erf erfc lgamma deg2rad rad2deg angle sinc logit nan_to_num bitwise_not logical_not "
    "signbit isnan isinf isfinite isneginf isposinf relu selu celu digamma erfinv i0 positive absolute negative arccos"
).split()
UNARY_NN = "relu6 elu gelu silu mish softplus log_sigmoid hardsigmoid hardswish hardtanh leaky_relu".split()
SPECIAL = (
    "special_entr special_erfcx special_i0e special_i1 special_i1e special_ndtri special_log_ndtr special_bessel_j0 special_bessel_j1 "
    "special_modified_bessel_i0 special_expit special_erf special_psi special_gammaln special_exp2"
).split()
BINARY = (
    "add sub mul div floor_divide fmod remainder pow atan2 hypot copysign nextafter gcd maximum minimum fmax fmin logaddexp logaddexp2 "
    "ldexp xlogy heaviside bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor "
    "eq ne lt le gt ge rsub igamma lcm true_divide multiply subtract greater not_equal max min"
).split()
OPERATORS = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift eq ne lt le gt ge iadd isub imul itruediv ifloordiv imod ipow iand ior ixor".split()
SCALARS: list[Any] = [2, 1.5, True, 1 + 2j]


def record_unary(r: Recorder, full: bool) -> None:
    """Pointwise functions of one tensor, and their in-place forms."""
    targets = (
        [f"torch.{n}" for n in UNARY]
        + [f"torch._C._nn.{n}" for n in UNARY_NN]
        + [f"torch._C._special.{n}" for n in SPECIAL]
    )
    for target in targets:
        if not hasattr(NAMESPACES[target.rpartition(".")[0]], target.rpartition(".")[2]):
            continue
        for dtype in ALL:
            r.call(target, T(dtype, (2, 3)))
        for tensor in (
            layouts("float32")
            if full or target in ("torch.exp", "torch.relu", "torch._C._nn.gelu")
            else layouts("float32")[:5]
        ):
            r.call(target, tensor)
        r.call(target, T("float32", (3,), grad=True))
        r.call(target, T("float32", (3,), grad=True), grad_mode=False)
        r.call(target, T("int64", (3, 2), (4, 2), 1))
    for name in [*UNARY, "hardswish", "relu"]:
        method = f"Tensor.{name}_"
        if hasattr(torch.Tensor, name + "_"):
            for dtype in ALL if full else ["float32", "int64", "bool", "complex64"]:
                r.call(method, T(dtype, (2, 3)))
            r.call(method, T("float32", (3, 4), (0, 1)))
            r.call(method, T("float32", (3,), grad=True))
            r.call(method, T("float32", (3,), grad=True), grad_mode=False)


def record_binary(r: Recorder, full: bool) -> None:
    """Pointwise functions of two tensors or a tensor and a number."""
    for name in BINARY:
        target = f"torch.{name}"
        promoting = full or name in ("add", "div", "eq", "maximum", "pow")
        for a, b in itertools.product(ALL, ALL) if promoting else zip(ALL, [*ALL[1:], ALL[0]], strict=True):
            r.call(target, T(a, (2, 3)), T(b, (3,)))
            if promoting:
                r.call(target, T(a, (2, 3)), T(b, ()))
        for a in ALL:
            r.call(target, T(a, (2, 3)), T(a, (2, 3)))
            for scalar in SCALARS:
                r.call(target, T(a, (3,)), scalar)
                r.call(target, scalar, T(a, (3,)))
                if hasattr(torch.Tensor, name + "_"):
                    r.call(f"Tensor.{name}_", T(a, (3,)), scalar)
        for a, b in pairs("float32") if full or name == "add" else list(pairs("float32"))[:8]:
            r.call(target, a, b)
        r.call(target, T("float32", (3, 4), (1, 0)), T("int64", (3, 4), (0, 1)))
        r.call(target, T("float32", (3,), grad=True), T("float32", (2, 3)))
        r.call(target, T("float32", (3,)), T("float32", (2, 3), grad=True), grad_mode=False)
        if hasattr(torch.Tensor, name + "_"):
            for a, b in itertools.product(ALL, ALL) if promoting else zip(ALL, [*ALL[1:], ALL[0]], strict=True):
                r.call(f"Tensor.{name}_", T(a, (2, 3)), T(b, (3,)))
            r.call(f"Tensor.{name}_", T("float32", (3,)), T("float32", (2, 3)))
            r.call(f"Tensor.{name}_", T("float32", (2, 3)), T("float32", (3,), grad=True))
            r.call(f"Tensor.{name}_", T("float32", (2, 3), grad=True), T("float32", (3,)))
    for name, dtype in itertools.product(OPERATORS, ["float32", "int32", "bool", "uint8", "bfloat16"]):
        for other in [2, 2.5, True, T(dtype, (3,)), T("int64", ())]:
            r.call(f"operator.{name}", T(dtype, (3,)), other)
            r.call(f"operator.{name}", other, T(dtype, (3,)))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift"):
        for dtype, other in itertools.product(["float32", "int32", "bool"], [2, 2.5, True, T("int32", (3,))]):
            r.call(f"Tensor.__r{name}__", T(dtype, (3,)), other)
    for name, dtype in itertools.product(["neg", "pos", "invert", "abs"], ALL):
        r.call(f"operator.{name}", T(dtype, (2, 3), (1, 2)))


def record_mixed(r: Recorder, full: bool) -> None:
    """Pointwise functions with more arguments, keywords and defaults."""
    for dtype in ALL:
        x, y = T(dtype, (2, 3)), T(dtype, (3,))
        for alpha in (2, 1.5, True):
            for name in ("add", "sub", "rsub"):
                r.call(f"torch.{name}", x, y, alpha=alpha)
            r.call("torch.addcmul", x, y, y, value=alpha)
            r.call("torch.addcdiv", x, y, y, value=alpha)
            r.call("Tensor.masked_fill", x, T("bool", (3,)), alpha)
            r.call("Tensor.masked_fill_", x, T("bool", (3,)), alpha)
            r.call("torch.clamp", x, alpha)
            r.call("torch.clamp", x, min=alpha, max=3)
            r.call("torch.clamp", x, max=alpha)
            r.call("torch.clamp_min", x, alpha)
            r.call("torch.clamp_max", x, alpha)
            r.call("Tensor.clamp_", x, alpha)
            r.call("torch.where", T("bool", (2, 1)), x, alpha)
            r.call("torch.where", T("bool", (2, 1)), alpha, x)
            r.call("torch.lerp", x, y, alpha)
            r.call("torch.threshold", x, alpha, 2)
            r.call("torch._C._nn.leaky_relu", x, alpha)
            r.call("torch._C._nn.elu", x, alpha)
            r.call("torch._C._nn.hardtanh", x, -1, alpha)
            r.call("torch._C._nn.softplus", x, alpha, 20)
            r.call("torch.celu", x, alpha)
            r.call("torch.hardshrink", x, alpha)
            r.call("torch._C._nn.softshrink", x, alpha)
            r.call("torch.xlogy", x, alpha)
            r.call("torch.float_power", x, alpha)
        r.call("torch.addcmul", x, y, y)
        r.call("torch.addcdiv", x, y, y)
        r.call("torch.lerp", x, y, y)
        r.call("torch.clamp", x, y, y)
        r.call("torch.clamp", x, min=y)
        r.call("torch.clamp", x)
        r.call("torch.where", T("bool", (2, 1)), x, y)
        r.call("torch.where", T("uint8", (2, 1)), x, y)
        r.call("torch.where", T("bool", (2, 1)), x, T("float32", ()))
        r.call("torch.where", T("bool", (2, 1)), x, T("int64", (3,)))
        r.call("Tensor.where", x, T("bool", (2, 1)), y)
        r.call("torch.logit", x, 0.25)
        r.call("torch.nan_to_num", x, 1.0)
        r.call("torch.nan_to_num", x, nan=1.0, posinf=2.0)
        r.call("torch.round", x, decimals=2)
        r.call("torch._C._nn.gelu", x, approximate="tanh")
        for mode in (None, "floor", "trunc"):
            r.call("torch.div", x, y, rounding_mode=mode)
            r.call("torch.div", x, 2, rounding_mode=mode)
            r.call("Tensor.div_", x, y, rounding_mode=mode)
        for exponent in (0, 1, 2, -1, 0.5, -0.5, 3.0, True):
            r.call("torch.pow", x, exponent)
            r.call("torch.pow", exponent, x)
        r.call("Tensor.masked_fill", x, T("bool", (2, 3)), T(dtype, ()))
        r.call("Tensor.masked_fill", x, T("bool", (2, 3)), T("float32", ()))
        r.call("torch.sigmoid", x)
    float32 = T("float32", (3, 4), (1, 3))
    r.call("torch.where", T("bool", (3, 4)), float32, float32)
    r.call("torch.where", T("bool", (3, 4), (1, 3)), T("float32", (3, 4)), T("float32", ()))
    r.call("torch.add", input=float32, other=float32)
    r.call("torch.add", float32, other=2)
    r.call("Tensor.add", float32, other=float32, alpha=2)
    r.call("Tensor.addcmul_", T("float32", (3, 4)), float32, float32)
    r.call("Tensor.lerp_", T("float32", (3, 4)), float32, 0.5)
    r.call("torch.addcmul", float32, T("float32", (4,)), T("float64", (3, 1)))
    r.call("torch.add", float32, float32, out=None)
    for args in itertools.product(
        [float32, channels_last("float32", (1, 3, 4, 1))], [T("bool", (4,)), T("bool", (3, 4), (1, 3))]
    ):
        r.call("Tensor.masked_fill", *args, 1.0) if len(args[0].spec[1]) == 2 else None


def view_calls(x: T) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Calls of view functions that suit, or nearly suit, the tensor."""
    n = len(x.spec[1])
    elements = math.prod(x.spec[1])
    for shape in [
        (elements,),
        (-1,),
        (1, -1),
        (*x.spec[1], 1),
        (2, -1),
        (-1, 2),
        (elements // 2, 2),
        tuple(reversed(x.spec[1])),
        x.spec[1],
        (),
    ]:
        yield "Tensor.view", (shape,)
        yield "torch.reshape", (shape,)
        yield "Tensor.reshape", shape
    for sizes in [x.spec[1], (2, *x.spec[1]), (-1,) * n, (5,) * n, (4, 3, 4)]:
        yield "Tensor.expand", sizes
        yield "torch.broadcast_to", (sizes,)
    for dims in itertools.permutations(range(n)) if n <= 3 else [(3, 1, 0, 2), (0, 2, 3, 1), (-1, 0, 1, 2)]:
        yield "Tensor.permute", dims
        yield "torch.permute", (dims,)
    for a, b in itertools.product((0, 1, -1, -2), (0, 1, -1)):
        yield "torch.transpose", (a, b)
        yield "torch.movedim", (a, b)
        yield "Tensor.flatten", (a, b)
        yield "torch.flatten", (a, b)
        yield "torch.diagonal", (1, a, b)
        yield "torch.diagonal", (-1, a, b)
        yield "torch.narrow", (a, b, 1)
        yield "torch.select", (a, b)
        yield "Tensor.unfold", (a, 2, 1)
    for dim in (0, 1, -1, -2, 2):
        yield "torch.squeeze", (dim,)
        yield "torch.unsqueeze", (dim,)
        yield "torch.unbind", (dim,)
        for count in (2, 7):
            yield "torch.chunk", (count, dim)
            yield "Tensor.split", (count, dim)
            yield "torch.functional.split", (count, dim)
            yield "torch.tensor_split", (count, dim)
        yield "Tensor.split", ([1, 2], dim)
        yield "torch.tensor_split", ((1, 2), dim)
        yield "Tensor.unflatten", (dim, (2, -1))
    for name in (
        "squeeze",
        "t",
        "detach",
        "flatten",
        "ravel",
        "contiguous",
        "clone",
        "T",
        "mT",
        "H",
        "mH",
        "numel_",
        "conj",
        "resolve_conj",
        "diagonal",
        "real",
        "imag",
    ):
        if hasattr(torch.Tensor, name):
            yield f"Tensor.{name}", ()
    yield "torch.squeeze", ((0, 1),)
    yield "torch.movedim", ((0, 1), (1, 0))
    yield "torch.view_as_real", ()
    yield "torch.view_as_complex", ()
    yield "torch.as_strided", ((2,), (1,))
    yield "torch.as_strided", ((2, 2), (1, 1), 0)
    yield "Tensor.view_as", (T("float32", (6,)),)
    yield "Tensor.expand_as", (T("float32", (3, 4)),)
    yield "Tensor.reshape_as", (T("float32", (6,)),)
    yield "Tensor.view", (torch.int32,)
    yield "Tensor.contiguous", ()
    for format_ in (torch.contiguous_format, torch.channels_last, torch.preserve_format):
        yield "Tensor.clone", ()
        for name in ("clone", "contiguous"):
            yield f"Tensor.{name}", (("memory_format", format_),)


def record_views(r: Recorder, full: bool) -> None:
    """Views and what copies when it cannot be a view."""
    tensors = layouts("float32") if full else [layouts("float32")[i] for i in (0, 2, 3, 4, 6, 9, 11, 13, 15, 19, 23)]
    for x in tensors:
        for target, args in view_calls(x):
            keywords = dict(a for a in args if isinstance(a, tuple) and a and a[0] == "memory_format")
            r.call(
                target,
                x,
                *(a for a in args if not (isinstance(a, tuple) and a and a[0] == "memory_format")),
                **keywords,
            )
    for dtype in ("complex64", "float16", "bfloat16", "float64", "int64"):
        for name in ("view_as_real", "view_as_complex", "real", "imag", "conj", "t"):
            r.call(f"torch.{name}", T(dtype, (3, 2)))
    for target, args in view_calls(T("float32", (2, 3), grad=True)):
        if not any(isinstance(a, tuple) and a and a[0] == "memory_format" for a in args):
            r.call(target, T("float32", (2, 3), grad=True), *args)
            r.call(target, T("float32", (2, 3), grad=True), *args, grad_mode=False)
    indices: list[Any] = [
        0,
        -1,
        5,
        slice(None),
        slice(1, None),
        slice(None, -1),
        slice(None, None, 2),
        slice(5, 2),
        slice(None, None, -1),
        None,
        Ellipsis,
        (0, 1),
        (slice(None), 0),
        (Ellipsis, 0),
        (None, 0),
        (0, Ellipsis, None),
        (slice(1, 3), slice(None, None, 2)),
        (0, 0, 0),
        (Ellipsis, slice(0, 1)),
        (slice(None), None, slice(1, None)),
        (Ellipsis, Ellipsis),
        (),
        True,
        [0, 1],
        1.5,
        (slice(None),) * 2,
    ]
    long, wide = T("int64", (2,)), T("int64", (2, 1))
    indices += [
        long,
        wide,
        T("int32", (2,)),
        T("bool", (3,)),
        T("int64", ()),
        (slice(None), long),
        (long, long),
        (long, slice(None), long),
    ]
    indices += [
        (0, long),
        (None, long),
        (long, None),
        (Ellipsis, long),
        (long, wide),
        (slice(1, 3), long),
        (wide, 0),
        (slice(None), long, wide),
    ]
    for x, item in itertools.product([layouts("float32")[i] for i in (0, 2, 3, 4, 13, 14, 15, 18, 19)], indices):
        r.call("operator.getitem", x, item)
        if x.spec[1] == (3,):
            r.call("Tensor.__getitem__", x, item)
    for item, value in itertools.product(
        indices, [1, 2.5, True, T("float32", ()), T("float32", (1, 1, 1)), T("int64", (3,)), None, 1j]
    ):
        r.call("operator.setitem", T("float32", (3, 3)), item, value)
    r.call("operator.setitem", T("float32", (3, 3), grad=True), 0, 1.0)


def record_casts(r: Recorder, full: bool) -> None:
    """Conversions and copies."""
    dtypes = [getattr(torch, d) for d in ALL]
    for a, b in itertools.product(ALL, dtypes):
        r.call("Tensor.to", T(a, (2, 3)), b)
        r.call("Tensor.copy_", T(a, (2, 3)), T(str(b).removeprefix("torch."), (3,)))
    for name in ("float", "double", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool", "cfloat"):
        for dtype in ALL:
            r.call(f"Tensor.{name}", T(dtype, (2,)))
    for x in layouts("float32"):
        r.call("Tensor.to", x, torch.float64)
        r.call("Tensor.to", x, torch.float32)
        r.call("Tensor.to", x, torch.float32, copy=True)
        r.call("Tensor.to", x, "cpu")
        r.call("Tensor.to", x, dtype=torch.int64)
        r.call("Tensor.to", x, T("float64", ()))
        r.call("Tensor.to", x, torch.float64, memory_format=torch.contiguous_format)
        r.call("Tensor.to", x, memory_format=torch.channels_last)
        r.call("Tensor.to", x, memory_format=torch.contiguous_format)
        r.call("Tensor.type_as", x, T("float64", ()))
        r.call("Tensor.double", x)
        for name in ("zeros_like", "ones_like", "empty_like"):
            r.call(f"torch.{name}", x)
        r.call("torch.zeros_like", x, dtype=torch.int32)
        r.call("torch.full_like", x, 2)
        r.call("torch.empty_like", x, memory_format=torch.contiguous_format)
        r.call("torch.empty_like", x, memory_format=torch.channels_last)
        r.call("torch.rand_like", x)
        r.call("Tensor.new_zeros", x, (2, 3))
        r.call("Tensor.new_zeros", x, 2, 3)
        r.call("Tensor.new_full", x, (2,), 1)
        r.call("Tensor.fill_", x, 1.5)
        r.call("Tensor.zero_", x)
    x = T("float32", (3,), grad=True)
    for mode in (True, False):
        for dtype in (torch.float64, torch.int64, torch.float32):
            r.call("Tensor.to", x, dtype, grad_mode=mode)
        r.call("torch.zeros_like", x, grad_mode=mode)
        r.call("torch.clone", x, grad_mode=mode)
        r.call("Tensor.copy_", T("float32", (3,)), x, grad_mode=mode)
        r.call("Tensor.copy_", x, T("float32", (3,)), grad_mode=mode)
        r.call("Tensor.fill_", T("float32", (3,)), T("float32", (), grad=True), grad_mode=mode)
        r.call("Tensor.requires_grad_", x, True, grad_mode=mode)
        r.call("torch.positive", x, grad_mode=mode)
    for value in (1, 1.5, True, 1j):
        r.call("Tensor.fill_", T("int64", (3,)), value)
        r.call("torch.tensor", value)
        r.call("torch.tensor", value, dtype=torch.float64)
        r.call("torch.full", (2, 3), value)
        r.call("torch.scalar_tensor", value)


def record_factories(r: Recorder, full: bool) -> None:
    """Tensors out of numbers."""
    for name in ("zeros", "ones", "empty", "rand", "randn"):
        r.call(f"torch.{name}", 2, 3)
        r.call(f"torch.{name}", (2, 3))
        r.call(f"torch.{name}", [2, 3], dtype=torch.float64)
        r.call(f"torch.{name}", ())
        r.call(f"torch.{name}", 0)
        r.call(f"torch.{name}", size=(2,))
        r.call(f"torch.{name}", (2, -1))
        r.call(f"torch.{name}", 2, 3, requires_grad=False, device="cpu", layout=None)
        r.call(f"torch.{name}", 2, dtype=torch.int32)
    r.call("torch.empty", (2, 3, 4, 5), memory_format=torch.channels_last)
    r.call("torch.empty_strided", (2, 3), (1, 2))
    for args in [
        (5,),
        (1, 5),
        (1, 5, 2),
        (5, 1, -2),
        (5.0,),
        (0, 1, 0.25),
        (1, 5.5),
        (3, 3),
        (5, 1),
        (0,),
        (1, 10, 3),
        (10, 0, -3),
        (2.5, 7.25, 0.7),
    ]:
        r.call("torch.arange", *args)
        r.call("torch.arange", *args, dtype=torch.float32)
        r.call("torch.arange", *args, dtype=torch.int32)
    r.call("torch.arange", start=1, end=4)
    r.call("torch.linspace", 0, 1, 5)
    r.call("torch.linspace", 0, 1, steps=5, dtype=torch.float64)
    r.call("torch.eye", 3)
    r.call("torch.eye", 3, 4, dtype=torch.int64)
    r.call("torch.full", (2,), 1, dtype=torch.float32)
    r.call("torch.full", size=(2,), fill_value=1.0)
    r.call("torch.randint", 0, 5, (2, 3))
    for dtype in ("float32", "int64"):
        r.call("Tensor.normal_", T(dtype, (3,)))
        r.call("Tensor.uniform_", T(dtype, (3,)), 0, 1)
        r.call("Tensor.bernoulli_", T(dtype, (3,)))
    r.call("torch.bernoulli", T("float32", (3, 2), (1, 3)))
    for train, p in itertools.product((True, False), (0.0, 0.5, 1.0)):
        for x in (
            T("float32", (3, 2)),
            T("float32", (3, 2), (1, 3)),
            T("float32", (3,), grad=True),
            T("float32", (0,)),
            T("int64", (3,)),
        ):
            r.call("torch.dropout", x, p, train)
            r.call("torch.nn.functional.dropout", x, p, train)


def record_reductions(r: Recorder, full: bool) -> None:
    """Reductions over all and over some dimensions."""
    names = "sum mean prod amax amin max min any all argmax argmin var std var_mean std_mean logsumexp median nansum count_nonzero aminmax".split()
    for name, dtype in itertools.product(names, ALL):
        r.call(f"torch.{name}", T(dtype, (2, 3)))
    dims: list[Any] = [0, 1, -1, (0,), (0, 1), (), [1], 2, None]
    for name, dim, keep in itertools.product(names, dims, (False, True)):
        if name == "aminmax":
            r.call(f"torch.{name}", T("float32", (2, 3)), dim=dim, keepdim=keep)
            continue
        r.call(f"torch.{name}", T("float32", (2, 3)), dim, keepdim=keep)
        r.call(f"torch.{name}", T("float32", (2, 3), (1, 2)), dim=dim)
        r.call(f"torch.{name}", T("float32", (2, 3, 4), (1, 8, 2)), axis=dim)
        r.call(f"torch.{name}", T("float32", ()), dim)
        r.call(f"torch.{name}", T("float32", (2, 0)), dim)
    for name in names:
        for dtype in ALL:
            r.call(f"torch.{name}", T(dtype, (2, 3)), 0) if name != "aminmax" else None
        r.call(f"torch.{name}", T("float32", (0,)))
        r.call(f"torch.{name}", T("float32", (2, 3), grad=True))
        r.call(f"torch.{name}", T("float32", (2, 3), grad=True), grad_mode=False)
        r.call(f"torch.{name}", channels_last("float32", (2, 3, 4, 5)), (2, 3), True) if name not in (
            "aminmax",
            "count_nonzero",
        ) else None
    for name, dtype in itertools.product(("sum", "mean", "prod", "nansum", "cumsum", "cumprod"), [*ALL, None]):
        out = getattr(torch, dtype) if dtype else None
        args: tuple[Any, ...] = (0,) if name.startswith("cum") else ()
        r.call(f"torch.{name}", T("float32", (2, 3)), *args, dtype=out)
        r.call(f"torch.{name}", T("int32", (2, 3)), *args, dtype=out)
    for name in ("var", "std", "var_mean"):
        r.call(f"torch.{name}", T("float32", (2, 3)), unbiased=False)
        r.call(f"torch.{name}", T("float32", (2, 3)), 1, False, True)
        r.call(f"torch.{name}", T("float32", (2, 3)), dim=1, correction=0, keepdim=True)
        r.call(f"torch.{name}", T("float32", (2, 3)), False)
    for ord_, dim in itertools.product((2, 1, 0, math.inf, -1, 0.5), (None, 0, (0, 1))):
        r.call("torch._C._linalg.linalg_vector_norm", T("float32", (2, 3)), ord_, dim)
        r.call("torch._C._linalg.linalg_vector_norm", T("complex64", (2, 0)), ord_, dim, True)
    for dtype in ALL:
        r.call("torch._C._linalg.linalg_vector_norm", T("float32", (2, 3)), dtype=getattr(torch, dtype))
        for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
            r.call(f"torch.{name}", T(dtype, (2, 3), (1, 2)), 1)
    for name, x in itertools.product(("cumsum", "cummax", "logcumsumexp"), layouts("float32")):
        r.call(f"torch.{name}", x, -1)
    for name in ("any", "all"):
        r.call(f"torch.{name}", T("bool", (2, 3)), dim=(0, 1))


def record_matrices(r: Recorder, full: bool) -> None:
    """Matrix products, convolutions and attention."""
    vectors, matrices = [T("float32", (3,)), T("float32", (4,)), T("float32", ())], []
    for strides in (None, (1, 3), (8, 2), (0, 1)):
        matrices.append(T("float32", (3, 4), strides))
    matrices += [
        T("float32", (4, 3)),
        T("float32", (4, 3), (1, 4)),
        T("float32", (0, 4)),
        T("float32", (4, 0)),
        T("float32", (4, 1)),
    ]
    batches = [
        T("float32", (2, 3, 4)),
        T("float32", (2, 4, 3)),
        T("float32", (2, 4, 3), (12, 1, 4)),
        T("float32", (1, 4, 3)),
        T("float32", (4, 3, 2), (1, 4, 12)),
    ]
    batches += [
        T("float32", (5, 2, 3, 4)),
        T("float32", (5, 1, 4, 3)),
        T("float32", (2, 3, 4), (0, 4, 1)),
        T("float32", (0, 3, 4)),
        T("float32", (1, 3, 4)),
        T("float32", (2, 1, 4)),
    ]
    operands = [*vectors, *matrices, *batches]
    for a, b in itertools.product(operands, operands):
        for name in ("matmul", "mm", "bmm", "mv", "dot", "outer", "inner"):
            r.call(f"torch.{name}", a, b)
        r.call("torch._C._nn.linear", a, b)
    r.call("operator.matmul", matrices[0], matrices[4])
    for dtype in ALL:
        r.call("torch.mm", T(dtype, (3, 4)), T(dtype, (4, 2)))
        r.call("torch.matmul", T(dtype, (2, 3, 4)), T(dtype, (4, 2)))
        r.call("torch.mm", T(dtype, (3, 4)), T("float32", (4, 2)))
        r.call("torch._C._nn.linear", T(dtype, (2, 3, 4)), T(dtype, (2, 4)), T(dtype, (2,)))
        r.call("torch.addmm", T(dtype, (2,)), T(dtype, (3, 4)), T(dtype, (4, 2)))
        r.call("torch.addmm", T(dtype, (2,)), T(dtype, (3, 4)), T(dtype, (4, 2)), beta=0.5, alpha=2)
        r.call("torch.dot", T(dtype, (4,)), T(dtype, (4,)))
        r.call("torch.conv2d", T(dtype, (2, 3, 8, 8)), T(dtype, (4, 3, 3, 3)), T(dtype, (4,)))
    for bias in (
        T("float32", (2,)),
        T("float32", (3, 1)),
        T("float32", ()),
        T("float32", (3, 2), (1, 3)),
        T("float32", (4,)),
        T("float32", (2,), grad=True),
    ):
        r.call("torch.addmm", bias, matrices[0], T("float32", (4, 2)))
        r.call("torch._C._nn.linear", matrices[0], T("float32", (2, 4)), bias)
        r.call("torch.baddbmm", bias, T("float32", (5, 3, 4)), T("float32", (5, 4, 2)))
        r.call("torch.addbmm", bias, T("float32", (5, 3, 4)), T("float32", (5, 4, 2)))
        r.call("torch.addmv", bias, T("float32", (2, 4)), T("float32", (4,)))
        r.call("torch.addr", bias, T("float32", (3,)), T("float32", (2,)))
    weight = T("float32", (4, 3, 3, 3))
    for x in (
        T("float32", (2, 3, 8, 9)),
        channels_last("float32", (2, 3, 8, 9)),
        T("float32", (3, 8, 9)),
        T("float32", (2, 3, 8, 9), (1, 144, 18, 2)),
        T("float32", (1, 3, 8, 9), grad=True),
        T("float32", (2, 5, 8, 9)),
    ):
        for w in (
            weight,
            channels_last("float32", (4, 3, 3, 3)),
            T("float32", (4, 3, 1, 1)),
            T("float32", (6, 1, 3, 3)),
        ):
            groups = 3 if w.spec[1][1] == 1 else 1
            for keywords in (
                {},
                {"stride": 2},
                {"padding": 1},
                {"padding": (1, 0), "dilation": 2},
                {"padding": "same"},
                {"padding": "valid", "stride": (2, 1)},
            ):
                r.call("torch.conv2d", x, w, None, groups=groups, **keywords)
    r.call("torch.conv2d", T("float32", (2, 3, 8, 9)), weight, T("float32", (4,)), 1, 0, 1, 1)
    r.call("torch.conv2d", T("float32", (2, 3, 2, 2)), weight)
    for x, w in (
        (T("float32", (2, 3, 9)), T("float32", (4, 3, 3))),
        (T("float32", (2, 9, 3), (27, 1, 9)), T("float32", (4, 9, 3))),
        (T("float32", (2, 3, 9), (27, 1, 3)), T("float32", (4, 3, 1))),
    ):
        r.call("torch.conv1d", x, w)
        r.call("torch.conv1d", x, w, padding="same")
        r.call("torch.conv1d", x, w, T("float32", (4,)), stride=2, padding=1)
    r.call("torch.conv3d", T("float32", (2, 3, 4, 5, 6)), T("float32", (4, 3, 2, 2, 2)), stride=(1, 2, 1))
    r.call("torch.conv3d", T("float32", (2, 3, 4, 5, 6), (360, 1, 90, 18, 3)), T("float32", (4, 3, 2, 2, 2)))
    for x in (T("float32", (2, 4, 5, 6)), channels_last("float32", (2, 4, 5, 6))):
        for keywords in ({}, {"stride": 2, "output_padding": 1}, {"padding": 1, "dilation": 2}, {"groups": 2}):
            r.call(
                "torch.conv_transpose2d",
                x,
                T("float32", (4, 3, 3, 3)),
                T("float32", (3 * keywords.get("groups", 1),)),
                **keywords,
            )
    r.call("torch.conv_transpose1d", T("float32", (2, 4, 5)), T("float32", (4, 3, 3)), stride=2)
    for dtype in ("float32", "float64", "bfloat16"):
        q = T(dtype, (2, 3, 4, 8))
        for k, keywords in itertools.product(
            (q, T(dtype, (2, 3, 5, 8)), T(dtype, (2, 3, 4, 8), (96, 8, 24, 1))),
            (
                {},
                {"is_causal": True},
                {"scale": 0.5},
                {"attn_mask": T("bool", (4, 4))},
                {"attn_mask": T(dtype, (1, 1, 4, 5))},
            ),
        ):
            r.call("torch._C._nn.scaled_dot_product_attention", q, k, k, **keywords)
            r.call(
                "torch._C._nn.scaled_dot_product_attention", T(dtype, (2, 3, 4, 8), (96, 8, 24, 1)), k, k, **keywords
            )
            r.call("torch._C._nn.scaled_dot_product_attention", T(dtype, (2, 3, 4, 8), grad=True), k, k, **keywords)


def record_networks(r: Recorder, full: bool) -> None:
    """Normalisation, embeddings, losses and pooling."""
    for dtype in ALL:
        x = T(dtype, (2, 6))
        r.call("torch.softmax", x, -1)
        r.call("torch.log_softmax", x, 1)
        r.call("torch.softmax", x, 0, dtype=torch.float64)
        r.call("torch.layer_norm", x, (6,), T(dtype, (6,)), T(dtype, (6,)))
        r.call("torch.rms_norm", x, (6,), T(dtype, (6,)))
        r.call("torch.group_norm", x, 2, T(dtype, (6,)), T(dtype, (6,)))
        r.call(
            "torch.batch_norm",
            x,
            T(dtype, (6,)),
            T(dtype, (6,)),
            T(dtype, (6,)),
            T(dtype, (6,)),
            False,
            0.1,
            1e-5,
            True,
        )
        r.call("torch.embedding", T(dtype, (5, 3)), T("int64", (2, 2)))
        r.call("torch._C._nn.cross_entropy_loss", x, T("int64", (2,)), None, 1, -100, 0.0)
        r.call("torch._C._nn.mse_loss", x, x, 1)
    for x in layouts("float32"):
        for name in ("softmax", "log_softmax"):
            r.call(f"torch.{name}", x, -1)
            r.call(f"torch.{name}", x, 0)
        shape = x.spec[1][-1:]
        if shape:
            r.call("torch.layer_norm", x, shape)
            r.call("torch.layer_norm", x, shape, T("float32", shape, grad=True), None)
            r.call("torch.rms_norm", x, shape)
        if len(x.spec[1]) > 1:
            c = T("float32", x.spec[1][1:2])
            r.call("torch.group_norm", x, 1, c, c)
            r.call("torch.group_norm", x, 1)
            for training in (True, False):
                r.call("torch.batch_norm", x, c, c, c, c, training, 0.1, 1e-5, True)
            r.call("torch.batch_norm", x, None, None, None, None, True, 0.1, 1e-5, True)
        for name in ("max_pool2d", "avg_pool2d"):
            where = "torch" if name == "max_pool2d" else "torch._C._nn"
            r.call(f"{where}.{name}", x, 2)
            r.call(f"{where}.{name}", x, (2, 3), 1, 1)
        r.call("torch._C._nn.adaptive_avg_pool2d", x, (1, 1))
        r.call("torch._C._nn.adaptive_avg_pool2d", x, (2, 3))
        r.call("torch._C._nn.glu", x, -1)
    r.call("torch.layer_norm", T("float32", (2, 6), grad=True), (6,))
    r.call("torch.softmax", T("float32", (2, 6), grad=True), -1, grad_mode=False)
    for indices in (T("int64", ()), T("int64", (2,)), T("int32", (2, 3), (1, 2)), T("float32", (2,)), T("int64", (0,))):
        r.call("torch.embedding", T("float32", (5, 3), grad=True), indices)
        r.call("torch.embedding", T("float32", (5, 3), (1, 5)), indices, 0)
        r.call("torch.nn.functional.embedding", indices, T("float32", (5, 3)))
        r.call("torch.nn.functional.embedding", indices, T("float32", (5, 3)), padding_idx=-1)
    for reduction, smoothing in itertools.product((0, 1, 2), (0.0, 0.1)):
        for x, target in (
            (T("float32", (4, 3)), T("int64", (4,))),
            (T("float32", (4, 3, 2)), T("int64", (4, 2))),
            (T("float32", (3,)), T("int64", ())),
            (T("float32", (4, 3)), T("float32", (4, 3))),
        ):
            r.call("torch._C._nn.cross_entropy_loss", x, target, None, reduction, -100, smoothing)
            r.call("torch._C._nn.cross_entropy_loss", x, target, T("float32", (3,)), reduction, -100, smoothing)
            r.call("torch._C._nn.nll_loss_nd", x, target, None, reduction, -100)
    for name, reduction in itertools.product(
        ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"), (0, 1, 2)
    ):
        r.call(f"torch._C._nn.{name}", T("float32", (2, 3)), T("float32", (2, 3)), reduction)
        r.call(f"torch._C._nn.{name}", T("float32", (2, 3), grad=True), T("float32", (2, 3), (1, 2)), reduction)
    for word in ("none", "mean", "sum"):
        r.call("torch.nn.functional.cross_entropy", T("float32", (4, 3)), T("int64", (4,)), reduction=word)
        r.call("torch.nn.functional.mse_loss", T("float32", (4, 3)), T("float32", (4, 3)), reduction=word)
    r.call("torch.binary_cross_entropy_with_logits", T("float32", (4,)), T("float32", (4,)), None, None, 1)
    r.call("torch.kl_div", T("float32", (4,)), T("float32", (4,)), 2, log_target=True)
    for name in ("relu", "silu", "hardswish", "elu", "leaky_relu", "hardtanh", "relu6", "selu"):
        r.call(f"torch.nn.functional.{name}", T("float32", (2, 3)))
        r.call(f"torch.nn.functional.{name}", T("float32", (2, 3)), inplace=True)
    r.call("torch.nn.functional.softmax", T("float32", (2, 3)), dim=-1)
    r.call("torch.nn.functional.layer_norm", T("float32", (2, 3)), (3,))


def record_shapes(r: Recorder, full: bool) -> None:
    """Functions that move elements by position or index."""
    tensors = layouts("float32")
    for x in tensors:
        r.call("torch.cat", [x, x])
        r.call("torch.cat", [x, x], -1)
        r.call("torch.cat", [x, T("float32", x.spec[1])], dim=0)
        r.call("torch.cat", (x, T("float32", (0,))), 0)
        r.call("torch.stack", [x, x])
        r.call("torch.stack", [x, x], -1)
        for pads in ([1, 1], [1, 0, 0, 2], [-1, 1], [0, 0], [-1, -1], [1]):
            r.call("torch._C._nn.pad", x, pads)
            r.call("torch.constant_pad_nd", x, pads, 1.5)
        for repeats in ((2,), (2, 3), (1, 2, 1), (0, 1)):
            r.call("Tensor.repeat", x, *repeats)
        for name, args in (
            ("flip", ((0,),)),
            ("flip", (-1,)),
            ("roll", (1,)),
            ("roll", (1, 0)),
            ("tril", ()),
            ("triu", (1,)),
            ("sort", ()),
            ("sort", (0, True)),
            ("argsort", ()),
            ("topk", (1,)),
            ("topk", (2, 0)),
            ("repeat_interleave", (2,)),
            ("repeat_interleave", (2, 0)),
            ("diag_embed", ()),
        ):
            r.call(f"torch.{name}", x, *args)
        r.call("torch.sort", x, stable=True, dim=-1)
        r.call("Tensor.tril_", x)
        for index in (T("int64", (2,)), T("int32", (2,)), T("int64", (1, 2)), T("int64", ())):
            r.call("torch.index_select", x, 0, index)
            r.call("torch.gather", x, -1, index)
            r.call("torch.index_fill", x, 0, index, 1.0)
        index = T("int64", tuple(min(n, 1) for n in x.spec[1]))
        for name in ("scatter", "scatter_add"):
            r.call(f"torch.{name}", x, 0, index, T("float32", x.spec[1]))
            r.call(f"Tensor.{name}_", x, 0, index, T("float32", x.spec[1]))
        r.call("torch.scatter", x, 0, index, 1.5)
        r.call("torch.scatter_reduce", x, 0, index, T("float32", x.spec[1]), "sum")
        if x.spec[1]:
            source = T("float32", (1, *x.spec[1][1:]))
            r.call("torch.index_add", x, 0, T("int64", (1,)), source)
            r.call("torch.index_copy", x, 0, T("int64", (1,)), source)
            r.call("Tensor.index_add_", x, 0, T("int64", (1,)), source)
        r.call("torch.gather", x, 0, index)
        r.call("Tensor.index_put_", x, (T("int64", (1,)),), T("float32", ()))
        r.call("torch.index_put", x, (T("int64", (1,)),), T("float32", ()))
        r.call("torch.broadcast_tensors", x, T("float32", ())) if full else None
    for a, b in itertools.product(ALL, ALL):
        r.call("torch.cat", [T(a, (2,)), T(b, (3,))])
        r.call("torch.stack", [T(a, (2,)), T(b, (2,))])
    for dtype in ALL:
        x = T(dtype, (3, 4))
        for name, args in (
            ("flip", (0,)),
            ("roll", (1, 0)),
            ("tril", ()),
            ("sort", ()),
            ("topk", (1,)),
            ("argsort", ()),
            ("gather", (0, T("int64", (2, 2)))),
            ("index_select", (0, T("int64", (2,)))),
            ("scatter_add", (0, T("int64", (1, 1)), x)),
        ):
            r.call(f"torch.{name}", x, *args)
        r.call("torch._C._nn.pad", x, [1, 1])
        r.call("torch._C._nn.pad", x, [1, 1], "constant", 1.5)
        r.call("torch.scatter_reduce", x, 0, T("int64", (1, 1)), x, "amax")
        r.call("Tensor.repeat", x, (2, 1))
        r.call("torch.index_add", x, 0, T("int64", (1,)), T(dtype, (1, 4)), alpha=2)
    r.call("torch.cat", [T("float32", (2, 3)), T("float32", (2, 3), grad=True)])
    r.call("torch.cat", [channels_last("float32", (2, 3, 4, 5)), channels_last("float32", (2, 3, 4, 5))], 1)
    r.call("torch.cat", [channels_last("float32", (2, 3, 4, 5)), T("float32", (2, 3, 4, 5))], 1)
    r.call("torch.cat", [])
    r.call("torch.stack", [channels_last("float32", (2, 3, 4, 5))])
    r.call("torch.gather", T("float32", (3, 4), grad=True), 0, T("int64", (2, 2)))


def record_random_views(r: Recorder, full: bool) -> None:
    """Chains of layouts no list thinks of: random strides through pointwise functions, reshape and index."""
    generator = random.Random(7)
    for _ in range(4000 if full else 250):
        n = generator.randint(1, 4)
        sizes = [generator.choice([1, 2, 3, 4]) for _ in range(n)]
        tensors = [random_tensor(generator, sizes) for _ in range(generator.randint(1, 2))]
        r.call("torch.add" if len(tensors) == 2 else "torch.exp", *tensors)
        r.call("torch.clone", tensors[0])
        r.call("torch.empty_like", tensors[0])
        r.call("Tensor.to", tensors[0], torch.float64)
        r.call("torch.reshape", tensors[0], (2, -1))
        r.call("torch.reshape", tensors[0], generator.sample(sizes, n))
        r.call("torch.where", random_tensor(generator, sizes, "bool"), tensors[0], tensors[-1])
        r.call("torch.add", random_tensor(generator, sizes, "int64"), tensors[0])
        dims = generator.sample(range(n), generator.randint(1, n))
        item = tuple(T("int64", (2,)) if d in dims else slice(None) for d in range(n))
        r.call("operator.getitem", tensors[0], item)


def random_tensor(generator: random.Random, sizes: list[int], dtype: str = "float32") -> T:
    """A tensor whose dimensions are permuted, stretched or expanded, some of them broadcast."""
    own = [n if generator.random() < 0.8 else 1 for n in sizes]
    order = generator.sample(range(len(own)), len(own))
    strides = [0] * len(own)
    step = generator.choice([1, 1, 2])
    for d in order:
        strides[d] = step
        step *= own[d] * generator.choice([1, 1, 1, 2])
    return T(dtype, own, [0 if generator.random() < 0.1 else s for s in strides])


def main() -> None:
    """Record and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--full", action="store_true", help="record many more combinations")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    recorder = Recorder(options.full)
    for record in (
        record_unary,
        record_binary,
        record_mixed,
        record_views,
        record_casts,
        record_factories,
        record_reductions,
        record_matrices,
        record_networks,
        record_shapes,
        record_random_views,
    ):
        record(recorder, options.full)
    options.output.write_text(json.dumps(recorder.result(), separators=(",", ":")) + "\n")
    print(f"{len(recorder.cases)} calls, {sum(c[4] is not None for c in recorder.cases)} of them valid")


if __name__ == "__main__":
    main()
