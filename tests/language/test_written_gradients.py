"""Tensors that require gradients because one that does was written into them; plain runs are the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fusee

Program = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def one_item(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    z = a + 1
    z[1] = b
    return z


def all_items(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    z = a + 1
    z[:] = b
    return z


def items_under_a_mask(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    z = a + 1
    z[a > 3] = b
    return z


def items_of_a_view(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    z = torch.zeros(6)
    z.view(2, 3)[0] = b
    return z


def a_row_that_was_read(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    z = a + 1
    z[1].mul_(b)
    return z


def gradients_asked_for_within(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    z = a + 1
    z[1] = b
    (z * a).sum().backward()
    return z.detach() + b


PROGRAMS = [one_item, all_items, items_under_a_mask, items_of_a_view, a_row_that_was_read, gradients_asked_for_within]


def gradient_of(program: Program) -> tuple[list[float], list[float]]:
    """The result and the gradient of the value that is written."""
    b = torch.tensor(2.0, requires_grad=True)
    result = program(torch.arange(6.0), b)
    (result * torch.arange(1.0, 7.0)).sum().backward()
    assert b.grad is not None
    return result.tolist(), b.grad.tolist()


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_flow_to_what_is_assigned(program: Program) -> None:
    fusee.reset()
    compiled = fusee.compile(program)
    assert gradient_of(compiled) == gradient_of(program)


def test_flags_say_that_a_written_tensor_requires_gradients() -> None:
    def flags(a: torch.Tensor, b: torch.Tensor) -> list[Any]:
        z = a + 1
        y, w, apart = z.view(2, 3), z[:2], z.detach()
        before = [z.requires_grad, z.is_leaf]
        y.mul_(b)
        a[1].mul_(b)
        made = [one.requires_grad for one in (z, y, w, apart, a)]
        return before + made + [one.is_leaf for one in (z, y, w, apart, a)]

    fusee.reset()
    compiled = fusee.compile(flags)
    b = torch.tensor(2.0, requires_grad=True)
    found = compiled(torch.arange(6.0), b)
    assert found == flags(torch.arange(6.0), b)
    assert found[:7] == [False, True, True, True, True, False, True]


def a_view_made_ahead_of_a_break(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    z = a + 1
    z[1:2].copy_(b[b > 0])
    return z


@pytest.mark.filterwarnings("ignore::fusee.FuseeWarning")
def test_views_from_a_graph_beside_leaves_may_be_written() -> None:
    def gradient(program: Program) -> list[Any]:
        b = torch.tensor([2.0, -1.0], requires_grad=True)
        result = program(torch.arange(6.0), b)
        (result * torch.arange(1.0, 7.0)).sum().backward()
        assert b.grad is not None
        return [result.tolist(), b.grad.tolist()]

    fusee.reset()
    compiled = fusee.compile(a_view_made_ahead_of_a_break)
    wanted = gradient(a_view_made_ahead_of_a_break)
    assert [gradient(compiled) for _ in range(2)] == [wanted] * 2


def test_an_operator_in_place_says_so_of_a_tuple() -> None:
    def refused(n: int, x: torch.Tensor) -> tuple[str, torch.Tensor]:
        y: Any = (n, 2)
        try:
            y -= n
        except TypeError as error:
            return str(error), x + 1
        return "", x

    fusee.reset()
    compiled = fusee.compile(refused)
    assert compiled(2, torch.ones(2))[0] == refused(2, torch.ones(2))[0]
