"""Tensors on the way of backward that keep their gradients (retain_grad) within whole steps, beside eager."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from test_leaves import arguments
from torch import Tensor, nn

import fusee

Program = Callable[..., Any]


def gradient_of_features(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    """A map of what a hidden layer contributes."""
    hidden = model.get_submodule("0")(x)
    hidden.retain_grad()
    F.mse_loss(model.get_submodule("2")(torch.tanh(hidden)), y).backward()
    return [(hidden * hidden.grad).detach(), hidden.grad * 1.0]


def twice(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    """The gradients of two backward passes are added, and one that nothing flows to stays None."""
    hidden = model(x)
    hidden.retain_grad()
    unused = hidden * 2
    unused.retain_grad()
    F.mse_loss(hidden, y).backward(retain_graph=True)
    (hidden**3).sum().backward()
    assert hidden.grad is not None and unused.grad is None
    return [hidden.grad * 1.0]


@pytest.mark.parametrize("program", [gradient_of_features, twice])
def test_within_a_whole_step(program: Program) -> None:
    def outcome(run: Program) -> list[Any]:
        model, x, y = arguments()
        return [*(run(model, x, y) for _ in range(2)), *(p.grad for p in model.parameters())]

    torch.testing.assert_close(outcome(fusee.compile(program)), outcome(program), rtol=1e-9, atol=1e-10)
    report = fusee.explain(program)(*arguments())
    assert not report.breaks
    assert [graph.get("why") for graph in report.graphs] == [None]


def given_out(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    hidden: Tensor = model(x)
    hidden.retain_grad()
    (hidden**2).sum().backward()
    return hidden


def given_out_before(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    hidden: Tensor = model(x)
    hidden.retain_grad()
    return hidden


@pytest.mark.parametrize("program", [given_out, given_out_before])
def test_that_others_see(program: Program) -> None:
    def outcome(run: Program) -> list[Any]:
        model, x, y = arguments()
        hidden = run(model, x, y)
        if program is given_out_before:
            (hidden**3).sum().backward()
        return [hidden.detach(), hidden.retains_grad, hidden.grad, *(p.grad for p in model.parameters())]

    found, expected = outcome(fusee.compile(program)), outcome(program)
    assert found.pop(1) == expected.pop(1)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10)
