"""Alike small kernels, as an optimizer's updates of its parameters are, run as parts of one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from .harness import Compiled, Planner

SHAPES: list[tuple[int, ...]] = [(64, 32), (64,), (7, 5), (), (1,), (0, 3), (33, 3, 3), (70_001,), (1000,)]


def adam(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """One step of Adam on a quarter each of parameters, gradients, and first and second moments."""
    count = len(tensors) // 4
    groups = [tensors[k * count : (k + 1) * count] for k in range(4)]
    for parameter, gradient, first, second in zip(*groups, strict=True):
        first.mul_(0.9).add_(gradient, alpha=0.1)
        second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        parameter.addcdiv_(first, second.sqrt().add_(1e-8), value=-0.01)
    return []


def drawn(shapes: Sequence[tuple[int, ...]], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """The arguments of :func:`adam`."""
    return [torch.rand(shape).to(dtype) for _ in range(4) for shape in shapes]


def launches(compiled: Compiled) -> int:
    """How many kernels a plan runs."""
    return sum(step.startswith("kernel") for step in compiled.steps)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16), ids=str)
def test_an_optimizer_step_is_few_launches(planner: Planner, dtype: torch.dtype) -> None:
    shapes = SHAPES * 4
    got, want = drawn(shapes, dtype), []
    want = [tensor.clone() for tensor in got]
    exact = [tensor.double() for tensor in got]
    compiled = planner.compile(adam, *got, disjoint=True, round=True)
    compiled(*got)
    adam(*want)
    adam(*exact)
    for a, b, c in zip(got, want, exact, strict=True):
        error = (b.double() - c).abs().max() if b.numel() else 0.0
        room = 2 * error + 4 * torch.finfo(dtype).eps
        assert not a.numel() or (a.double() - c).abs().max() <= room
    pointers = 4 * len(shapes)
    assert launches(compiled) <= 2 + pointers // 440 + 1


def test_results_of_their_own_are_parts_too(planner: Planner) -> None:
    given = [torch.randn(shape) for shape in SHAPES]
    compiled = planner.compile(lambda *x: [t.exp() * 2 for t in x], *given)
    for got, x in zip(compiled(*given), given, strict=True):
        assert torch.allclose(got, x.exp() * 2)
    assert launches(compiled) <= 2


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (0, 1, 0, 1), (0, 17), (1, 0, 17), (0, 0), (0, 2, 1000)], ids=str)
def test_parts_over_few_points_or_none(planner: Planner, sizes: tuple[int, ...]) -> None:
    given = [torch.randn(size, 3 if size == 0 else 1) for size in sizes]
    compiled = planner.compile(lambda *x: [t.exp() * 2 for t in x], *given)
    for got, x in zip(compiled(*given), given, strict=True):
        assert torch.allclose(got, x.exp() * 2)
    assert launches(compiled) <= 1


def test_what_reads_another_parts_result_follows_it(planner: Planner) -> None:
    def chained(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        first = x.exp() * 2
        other = y.exp() * 2
        second = first.t().exp() * 2  # alike, but of the first one's memory
        return [first, other, second, second[1:].exp() * 2]

    x, y = torch.randn(9, 7), torch.randn(5, 3)
    compiled = planner.compile(chained, x, y)
    for got, want in zip(compiled(x, y), chained(x, y), strict=True):
        assert torch.allclose(got, want)


def test_different_kernels_and_numbers_stay_apart(planner: Planner) -> None:
    x, y = torch.randn(50), torch.randn(60)
    compiled = planner.compile(lambda x, y: [x * 2, y * 3], x, y)
    got = compiled(x, y)
    assert torch.equal(got[0], x * 2) and torch.equal(got[1], y * 3)
    assert launches(compiled) == 2


def test_large_kernels_stay_apart(planner: Planner) -> None:
    x, y = torch.randn(1 << 21), torch.randn(1 << 20, 3)
    compiled = planner.compile(lambda x, y: [x * 2, y * 2], x, y)
    assert launches(compiled) == 2
