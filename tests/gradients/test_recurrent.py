"""Training of recurrent modules: plans, with the gradients of eager as float64 has them."""

# mypy: allow-untyped-calls
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fusee

TIME, BATCH, FEATURES, WIDTH = 5, 3, 8, 16

MODULES: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: nn.LSTM(FEATURES, WIDTH),
    "lstm, both ways": lambda: nn.LSTM(FEATURES, WIDTH, 2, bidirectional=True, batch_first=True),
    "lstm, projected": lambda: nn.LSTM(FEATURES, WIDTH, proj_size=4),
    "gru": lambda: nn.GRU(FEATURES, WIDTH),
    "gru, both ways": lambda: nn.GRU(FEATURES, WIDTH, 2, bidirectional=True, batch_first=True),
    "gru without biases": lambda: nn.GRU(FEATURES, WIDTH, bias=False),
    "rnn, both ways": lambda: nn.RNN(FEATURES, WIDTH, 2, bidirectional=True, batch_first=True),
    "rnn of relu": lambda: nn.RNN(FEATURES, WIDTH, nonlinearity="relu"),
}


def loss_of(module: nn.Module, x: Tensor) -> Tensor:
    output, state = module(x)
    last: Tensor = state[0] if isinstance(state, tuple) else state
    return (output * output.detach().cos()).mean() + last.square().mean()


def step(module: nn.Module, x: Tensor) -> Tensor:
    loss = loss_of(module, x)
    loss.backward()
    return loss.detach()


def outcome(run: Callable[[nn.Module, Tensor], Tensor], module: nn.Module, x: Tensor) -> list[Tensor]:
    """The loss, and the gradients of the parameters and of the input."""
    module.zero_grad()
    x = x.detach().requires_grad_()
    loss = run(module, x)
    if loss.requires_grad:
        loss.backward()
    return [loss.detach(), *(one.grad.clone() for one in (*module.parameters(), x) if one.grad is not None)]


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("run", [loss_of, step])
@pytest.mark.parametrize("name", MODULES)
def test_recurrent_modules_train_in_plans(name: str, run: Callable[..., Tensor]) -> None:
    torch.manual_seed(0)
    module = MODULES[name]()
    x = torch.randn(TIME, BATCH, FEATURES)
    exact = outcome(run, copy.deepcopy(module).double(), x.double())
    eager = outcome(run, module, x)
    compiled = fusee.compile(run)
    outcome(compiled, module, x)
    found = outcome(compiled, module, x)
    report: Any = fusee.explain(run)(module, x.detach().requires_grad_())
    assert not report.breaks
    assert [graph.get("why") for graph in report.graphs] == [None]
    for one, other, value in zip(eager, exact, found, strict=True):
        bound = 4 * (one - other).abs().max() + 4 * torch.finfo(torch.float32).eps * other.abs().max()
        assert (value - other).abs().max() <= bound


def test_dropout_between_layers_draws_what_eager_draws() -> None:
    module = nn.GRU(FEATURES, WIDTH, 2, dropout=0.5)
    x = torch.randn(TIME, BATCH, FEATURES)
    outcomes = []
    for run in (step, fusee.compile(step)):
        torch.manual_seed(1)
        outcomes.append(outcome(run, module, x))
    for one, other in zip(*outcomes, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
