"""Sample numbers for pointwise functions, and what eager PyTorch makes of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch

from graph_names import BINARY, SPECIAL, UNARY, UNARY_NN
from graph_recorder import NAMESPACES, Json, resolve

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
        ("clamp", (-1, 1.5)),
        ("clamp", (None, 0.5)),
        ("clamp_min", (0.5,)),
        ("clamp_max", (0.5,)),
        ("logit", (0.25,)),
        ("nan_to_num", (1.5, 2.5, -2.5)),
        ("threshold", (0.5, 7.0)),
        ("hardshrink", (0.5,)),
        ("celu", (2.0,)),
        ("xlogy", (2.5,)),
        ("_C._nn.softshrink", (0.75,)),
        ("_C._nn.leaky_relu", (0.1,)),
        ("_C._nn.hardtanh", (-1.5, 2)),
        ("_C._nn.softplus", (2, 5)),
        ("_C._nn.elu", (2.0, 3, 0.5)),
        ("copysign", (-1.5,)),
        ("remainder", (1.5,)),
        ("fmod", (1.5,)),
        ("rsub", (1.5, 2)),
        ("eq", (0.5,)),
        ("ne", (0.5,)),
        ("lt", (0.5,)),
        ("le", (0.5,)),
        ("gt", (0.5,)),
        ("ge", (0.5,)),
    ):
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
        ("sigmoid_backward", ()),
        ("tanh_backward", ()),
        ("silu_backward", ()),
        ("mish_backward", ()),
        ("gelu_backward", ()),
        ("hardsigmoid_backward", ()),
        ("hardswish_backward", ()),
        ("threshold_backward", (0.5,)),
        ("leaky_relu_backward", (0.1, False)),
        ("hardtanh_backward", (-1, 2)),
        ("softplus_backward", (2, 5)),
        ("hardshrink_backward", (0.5,)),
        ("softshrink_backward", (0.5,)),
    ):
        s.sample(f"aten.{name}.default", finite, *args)
    grads, inputs = zip(*SAMPLES[finite], strict=True)
    for is_result in (False, True):
        options = [2.0, 3, 0.5, is_result]
        s.found.append(["aten.elu_backward.default", finite, options, {}, elu_backward(grads, inputs, options)])


def elu_backward(grads: Sequence[float], inputs: Sequence[float], args: Sequence[Any]) -> list[str]:
    """The derivative of elu; its schema puts the tensor last."""
    grad, x = (torch.tensor(column, dtype=torch.float64) for column in (grads, inputs))
    result = torch.ops.aten.elu_backward.default(grad, args[0], args[1], args[2], args[3], x)
    return [str(v) for v in result.tolist()]
