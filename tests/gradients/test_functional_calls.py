"""Whole steps that call modules with parameters made on the way, or write parameters through .data, beside eager."""

# mypy: allow-untyped-calls
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from test_leaves import arguments
from torch import Tensor, nn

import fusee

Program = Callable[..., Any]


class Tied(nn.Module):
    """A module whose two layers share their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Any:
        return self.second(torch.tanh(self.first(x[:, :4])))


def own_parameters(model: nn.Module, x: Tensor, y: Tensor) -> Any:
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    result = torch.func.functional_call(model, parameters, (x,))
    loss = F.mse_loss(result, y)
    loss.backward()
    return loss.detach()


def inner_step(model: nn.Module, x: Tensor, y: Tensor) -> Any:
    """Meta-learning: the loss after one step is differentiated through that step."""
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    loss = F.mse_loss(torch.func.functional_call(model, parameters, (x,)), y)
    gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
    adapted = {name: p - 0.1 * g for (name, p), g in zip(parameters.items(), gradients, strict=True)}
    outer = F.mse_loss(torch.func.functional_call(model, adapted, (x.flip(0),)), y)
    outer.backward()
    return outer.detach()


def written_through_data(model: nn.Module, x: Tensor, y: Tensor) -> Any:
    loss = F.mse_loss(model(x), y)
    loss.backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        parameter.grad.data.clamp_(-0.1, 0.1)
        parameter.data -= 0.1 * parameter.grad.data
        parameter.data.clamp_(-0.3, 0.3)
    return loss.detach()


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("program", [own_parameters, inner_step, written_through_data])
def test_whole_step(program: Program, tied: bool) -> None:
    model, x, y = arguments()
    if tied:
        model = Tied().double()

    def outcome(run: Program) -> list[Any]:
        trained = copy.deepcopy(model)
        results = [run(trained, x, y) for _ in range(2)]
        return [results, [p.detach() for p in trained.parameters()], [p.grad for p in trained.parameters()]]

    torch.testing.assert_close(outcome(fusee.compile(program)), outcome(program), rtol=1e-9, atol=1e-10)
    if not tied or program is written_through_data:
        report = fusee.explain(program)(copy.deepcopy(model), x, y)
        assert not report.breaks
        assert [graph.get("why") for graph in report.graphs] == [None]
