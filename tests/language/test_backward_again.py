"""Backward through what a graph made before, in programs random ones were reduced to; plain runs are the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fusee

Program = Callable[[torch.Tensor, torch.Tensor], Any]


def gradient_of_an_argument_through_an_earlier_graph(x: torch.Tensor, w: torch.Tensor) -> Any:
    z = x + 1
    while z.sum() < 0:
        z = z + 1
    return torch.autograd.grad((z[1:].max() * x).sum(), x)


def gradient_of_two_results_of_an_earlier_graph(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = x * 3
    z = y * w
    if z.sum() < 0:
        z = z + 1
    return torch.autograd.grad((z * y).sum(), [y, z], retain_graph=True)


def into_a_view_of_what_backward_went_through(x: torch.Tensor, w: torch.Tensor) -> Any:
    z = x + 1
    z.sum().backward()
    return z.expand_as(z).add_(z.argmax().item()), z


def into_a_view_of_what_only_the_view_shows(x: torch.Tensor, w: torch.Tensor) -> Any:
    z = x + w.sum()
    z.sum().backward()
    z = z.t()[1:]
    if x.sum() > 0:
        z.mul_(2)
    return z


def through_a_sum_again(x: torch.Tensor, w: torch.Tensor) -> Any:
    for _ in range(3):
        x = x + 1
        ((x @ w) ** 2).sum().backward()
    return w.grad


def through_a_sum_behind_a_step(x: torch.Tensor, w: torch.Tensor) -> Any:
    optimizer = torch.optim.SGD([w], lr=0.5)
    for _ in range(2):
        x = x + 1
        (x @ w).sum().backward()
        optimizer.step()
    return w.detach().clone()


def through_a_product_again(x: torch.Tensor, w: torch.Tensor) -> Any:
    for _ in range(2):
        x = x * w[0]
        x.sum().backward()
    return x


def through_what_was_not_reached(x: torch.Tensor, w: torch.Tensor) -> Any:
    y, z = x.exp(), w.square()
    if y.sum() > 0:
        z.sum().backward()
    y.sum().backward()
    return y


def through_what_was_reached_in_part(x: torch.Tensor, w: torch.Tensor) -> Any:
    y, z = x.exp(), w.square()
    if y.sum() > 0:
        z.sum().backward()
    (y.sum() + z.sum()).backward()
    return y


def with_a_history_that_is_kept(x: torch.Tensor, w: torch.Tensor) -> Any:
    y = (x @ w).exp()
    if y.sum() > 0:
        y.sum().backward(retain_graph=True)
    if y.sum() > 1:
        y.sum().backward()
    y.sum().backward()
    return y


PROGRAMS = [
    gradient_of_an_argument_through_an_earlier_graph,
    gradient_of_two_results_of_an_earlier_graph,
    through_a_sum_again,
    through_a_sum_behind_a_step,
    through_a_product_again,
    through_what_was_not_reached,
    through_what_was_reached_in_part,
    with_a_history_that_is_kept,
    into_a_view_of_what_backward_went_through,
    into_a_view_of_what_only_the_view_shows,
]


def outcome(program: Program) -> list[Any]:
    """The result, or what autograd says, and the gradients of the arguments."""
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    w = torch.arange(-4.0, 5.0).view(3, 3).requires_grad_()
    try:
        result = program(x, w)
    except RuntimeError as error:
        result = str(error)
    made = list(result) if isinstance(result, tuple | list) else [result]
    return [one.tolist() if isinstance(one, torch.Tensor) else one for one in [*made, x.grad, w.grad]]


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")
@pytest.mark.parametrize("program", PROGRAMS)
def test_backward_goes_through_an_earlier_graph_as_eager_does(program: Program) -> None:
    fusee.reset()
    wanted = outcome(program)
    compiled = fusee.compile(program)
    for _ in range(2):
        assert outcome(compiled) == wanted
