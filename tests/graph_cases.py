"""Calls of pointwise functions, views, conversions and factories to record."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import torch

from graph_names import BINARY, OPERATORS, SPECIAL, UNARY, UNARY_NN
from graph_recorder import ALL, INFERENCE, NAMESPACES, Recorder, T, channels_last

SCALARS: list[Any] = [2, 1.5, True, 1 + 2j]


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
        for x, y in pairs("float32") if full or name == "add" else list(pairs("float32"))[:8]:
            r.call(target, x, y)
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
            keywords: dict[str, Any] = dict(a for a in args if isinstance(a, tuple) and a and a[0] == "memory_format")
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
        for other in (torch.float64, torch.int64, torch.float32):
            r.call("Tensor.to", x, other, grad_mode=mode)
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


def record_inference(r: Recorder, full: bool) -> None:
    """Inference mode over tensors made outside it."""
    for x in (T("float32", (2, 3)), T("float32", (2, 3), grad=True), T("float32", (3, 2), (1, 3))):
        for target, args in (
            ("torch.exp", ()),
            ("operator.add", (2,)),
            ("Tensor.t", ()),
            ("Tensor.view", (-1,)),
            ("torch.reshape", (6,)),
            ("Tensor.add_", (1,)),
            ("Tensor.detach", ()),
            ("torch.sum", (0,)),
            ("torch.chunk", (2,)),
            ("Tensor.contiguous", ()),
            ("Tensor.to", (torch.float32,)),
            ("Tensor.to", (torch.float64,)),
            ("operator.getitem", (0,)),
            ("operator.setitem", (0, 1.0)),
            ("torch.zeros_like", ()),
            ("torch.max", (0,)),
            ("operator.gt", (0,)),
            ("torch.softmax", (-1,)),
        ):
            r.call(target, x, *args, grad_mode=INFERENCE)
    r.call("torch.zeros", 3, grad_mode=INFERENCE)


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
