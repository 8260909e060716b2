"""The operators of the CPU's tests and every row of the derivative table, compiled for a GPU."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import fusee

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gradients"))
from test_derivatives import CASES, call, gradients

from kernels import test_compiled_operators as compiled_operators
from kernels import test_cpu_kernels as operators

DEVICE = "cuda"
FLOATS, INTEGERS = operators.FLOATS, operators.INTEGERS
Functions = dict[str, Callable[..., Tensor]]


@pytest.fixture(autouse=True)
def clean_slate() -> None:
    """Nothing compiled before, and the same random numbers each time."""
    fusee.reset()
    torch.manual_seed(0)


def lying_on(device: str, tensor: Tensor) -> Tensor:
    """The tensor on a device, lying in its memory as before."""
    memory = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage()).to(device)
    return memory.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())


def check(functions: Functions, inputs: Sequence[Tensor], cancels: bool = False, terms: int = 2) -> None:
    """Compiles all functions as one graph, and compares each result with eager's on the GPU and with float64's.

    Where they are sums, so many ``terms`` may lose half a unit at each level of the tree that adds them.
    """
    given = [lying_on(DEVICE, tensor) for tensor in inputs]
    names = [name for name, function in functions.items() if operators.accepted(function, *given)]

    def together(*tensors: Tensor) -> list[Tensor]:
        return [functions[name](*tensors) for name in names]

    def on_cpu(function: Callable[..., list[Tensor]], tensors: Sequence[Tensor]) -> list[Tensor]:
        results = function(*tensors)
        assert all(result.device.type == DEVICE for result in results)
        return [lying_on("cpu", result) for result in results]

    widened = [tensor.double() if tensor.dtype.is_floating_point else tensor for tensor in given]
    got, want, exact = on_cpu(fusee.compile(together), given), on_cpu(together, given), on_cpu(together, widened)
    operators.check(names, got, want, exact, cancels, 0.51 * math.ceil(math.log2(terms)))


def along(functions: dict[str, Callable[..., Tensor]], dimension: int) -> Functions:
    """Functions of a tensor and a dimension, for one dimension."""
    return {name: (lambda t, f=f: f(t, dimension)) for name, f in functions.items()}


LAYOUTS = list(operators.arrangements(torch.float32))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cuda_unary(layout: str, dtype: torch.dtype) -> None:
    functions = dict(operators.UNARY)
    if dtype == torch.float16:
        del functions["pow0.5"]  # the formula takes the square root, which differs from eager's pow at -inf and -0
    if dtype == torch.float64:
        del functions["hardsigmoid"], functions["hardswish"]  # eager multiplies by a sixth of single precision
    check(functions, [operators.arrangements(dtype)[layout]])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cuda_binary(layout: str, dtype: torch.dtype) -> None:
    check(operators.BINARY, [operators.arrangements(dtype, seed)[layout] for seed in (0, 1)])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cuda_integers(layout: str, dtype: torch.dtype) -> None:
    check(operators.INTEGER, [operators.arrangements(dtype, seed)[layout] for seed in (0, 1)])


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(7, 13), (1, 1), (3, 5, 17), (2, 1, 131)], ids=str)
def test_cuda_reductions_and_norms(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=torch.float64).to(dtype)
    for dimension in range(len(shape)):
        check(along(operators.REDUCTIONS | operators.NORMS, dimension), [x], cancels=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", operators.LONG)
def test_cuda_long_reductions(name: str, dtype: torch.dtype) -> None:
    check({name: operators.LONG[name]}, [torch.rand(300007, dtype=torch.float64).to(dtype)], cancels=True)


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cuda_losses(reduction: str, dtype: torch.dtype) -> None:
    generator, terms = torch.Generator().manual_seed(5), 2 if reduction == "none" else 7 * 13
    x, y = (torch.randn(7, 13, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2))
    weight, target = torch.rand(13, generator=generator).to(dtype), torch.randint(0, 13, (7,), generator=generator)
    for left, right in ((x, y), (x[:0], y[:0]), (x.t().contiguous().t(), y), (x[1::2], y[::2][:3])):
        check(operators.element_losses(reduction), [left, right, weight], cancels=True, terms=terms)
    classified = {name: f for name, f in operators.losses((7, 13)).items() if name.endswith(reduction)}
    check(classified, [x, target, weight], cancels=True, terms=terms)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.bool], ids=str)
def test_cuda_indexing(dtype: torch.dtype) -> None:
    x = (torch.randn(5, 7, 3, dtype=torch.float64) * 3).to(dtype)
    check(operators.INDEXING, [x, torch.randint(0, 5, (4, 5)), torch.randint(0, 3, (5,))], cancels=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("kind", ["POOLS", "NORMS", "MOVED", "GATHERED"])
def test_cuda_windows_and_moves(kind: str, dtype: torch.dtype) -> None:
    """Pooling, norms of channels, elements that are elsewhere, and reductions of gathered rows."""
    functions: Functions = getattr(compiled_operators, kind)
    if kind == "GATHERED":
        check(functions, [torch.randn(37, 13).to(dtype), torch.randint(0, 37, (5, 17))], cancels=True, terms=17 * 13)
        return
    # One is made on the CPU; two lie as PyTorch's fake tensors say, which is as on the CPU.
    functions = {name: f for name, f in functions.items() if name not in ("mask", "unshuffled", "lines")}
    x = torch.randn(5, 6, 8, 12, dtype=torch.float64).to(dtype)
    more = {
        "POOLS": [],
        "NORMS": [torch.randn(6).to(dtype), torch.randn(6).to(dtype)],
        "MOVED": [torch.randn(7).to(dtype)],
    }
    for each in compiled_operators.layouts(x):
        check(functions, [each, *more[kind]], cancels=True)


@pytest.mark.parametrize(("target", "make"), CASES)
def test_cuda_gradients(target: str, make: Callable[[], dict[str, Any]]) -> None:
    """Of a row of the table, on the GPU: eager's in float64."""
    with torch.device(DEVICE):
        run, tensors = call(target, make())
        try:
            expected = gradients(run, tensors)
        except (RuntimeError, NotImplementedError) as error:
            pytest.skip(f"eager does not differentiate it on a GPU: {error}")
        found = gradients(fusee.compile(run, fullgraph=True), tensors)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-11, atol=1e-11)
