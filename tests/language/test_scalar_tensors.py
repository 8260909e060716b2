"""Tensors of one number: those made of a known one are read, and the largest of some is chosen without reading them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from outcome import Describer

import fusee


def known_numbers(x: Any, y: Any) -> Any:
    items = [x, y, x + 1, y + 1]
    assert torch.tensor(True)
    return items[torch.as_tensor(2)], items[torch.tensor(-1)], int(torch.tensor(3)), torch.tensor(0.5).item() + y


def largest_sum(x: Any, y: Any) -> Any:
    return max(v.sum() for v in (x, y)), min(x.mean(), y.mean(), (x * y).sum()) * 2


def written_behind(x: Any, y: Any) -> Any:
    first, second = x.sum(), y.sum()
    largest = max(first, second)
    largest.add_(1)
    return first, second


def compared_by_identity(x: Any, y: Any) -> Any:
    first, second = x.sum(), y.sum()
    least = min(first, second)
    return least is first, least is second


def returned_beside(x: Any, y: Any) -> Any:
    first, second = x.sum(), y.sum()
    return max(first, second), first, second


def written_number(x: Any, y: Any) -> Any:
    position = torch.tensor(1)
    position += 1
    return [x, y, x + 1][position]


def rounded_number(x: Any, y: Any) -> Any:
    return torch.tensor(0.1).item(), torch.tensor(3, dtype=torch.float64).item(), x + y


@pytest.mark.parametrize("function", [known_numbers, largest_sum])
def test_captured_whole(function: Callable[..., Any]) -> None:
    compiled = fusee.compile(function, fullgraph=True)
    for scale in (1.0, -1.0, float("nan")):
        x, y = torch.arange(3.0) * scale, torch.ones(3)
        assert Describer()(compiled(x, y)) == Describer()(function(x, y))
        assert Describer()(compiled(y, x)) == Describer()(function(y, x))


@pytest.mark.parametrize(
    "function", [written_behind, compared_by_identity, returned_beside, written_number, rounded_number]
)
def test_does_as_plain(function: Callable[..., Any]) -> None:
    compiled = fusee.compile(function)
    for x, y in ((torch.ones(2), torch.zeros(2)), (torch.zeros(2), torch.ones(2)), (torch.ones(2), torch.ones(2))):
        assert Describer()(compiled(x, y)) == Describer()(function(x, y))


def test_gradient_goes_to_the_largest() -> None:
    def loss(x: Any, y: Any) -> Any:
        return max(x.sum(), y.sum())

    for values in ((1.0, 2.0), (2.0, 1.0), (1.0, 1.0)):
        gradients = []
        for function in (loss, fusee.compile(loss, fullgraph=True)):
            x, y = (torch.full((2,), value, requires_grad=True) for value in values)
            function(x, y).backward()
            gradients.append([v.grad if v.grad is not None else torch.zeros(2) for v in (x, y)])
        torch.testing.assert_close(gradients[1], gradients[0])
