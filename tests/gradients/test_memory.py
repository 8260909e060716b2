"""Memory of a training step: backward lets go of what it has read, as eager does."""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators
from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fusee
from live_bytes import peak

SMALL = 4096  # bytes of scalars that one has and the other has not


def stack(activation: type[nn.Module], normalised: bool) -> Any:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for _ in range(6):
        layers += [nn.Linear(64, 64), activation()]
        layers += [nn.LayerNorm(64)] if normalised else []
    return nn.Sequential(*layers)


def most_alive(program: Any, model: Any, x: Tensor) -> list[int]:
    """The peak of a step, of eager and then compiled."""
    peaks = []
    for run in (program, fusee.compile(program)):
        for _ in range(2):
            run(x).square().mean().backward()
            model.zero_grad(set_to_none=True)
        peaks.append(peak(lambda run=run: run(x).square().mean().backward()))
        model.zero_grad(set_to_none=True)
    return peaks


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("activation", [nn.GELU, nn.ReLU, nn.Tanh])
def test_peak_is_at_most_that_of_eager(activation: type[nn.Module], normalised: bool) -> None:
    model, x = stack(activation, normalised), torch.randn(2048, 64)
    eager, compiled = most_alive(lambda x: model(x).square().mean(), model, x)
    assert compiled <= eager + SMALL


def test_autograd_holds_the_gradient_that_comes_in() -> None:
    model, x = stack(nn.Tanh, False), torch.randn(2048, 64)
    eager, compiled = most_alive(model, model, x)
    assert compiled <= eager + x.nbytes + SMALL


def test_history_that_is_kept_can_be_used_again() -> None:
    def program(x: Tensor) -> Tensor:
        return (x.exp() @ x.t()).sin()

    x = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    result = fusee.compile(program)(x)
    (expected,) = torch.autograd.grad(program(x).sum(), x)
    for _ in range(2):
        (found,) = torch.autograd.grad(result.sum(), x, retain_graph=True)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    total = result.sum()
    torch.testing.assert_close(torch.autograd.grad(total, x)[0], expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(RuntimeError, match="second time"):
        result.sum().backward()


def test_gradients_that_come_in_outlive_backward() -> None:
    x = torch.randn(4, 4, requires_grad=True)
    given = torch.ones(4, 4)
    result = fusee.compile(lambda x: x.exp() * 2)(x)
    result.backward(given)
    assert given.equal(torch.ones(4, 4)) and x.grad is not None
    torch.testing.assert_close(x.grad, x.detach().exp() * 2)


def test_saved_tensors_end_with_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(64, 64, requires_grad=True)
    kept: list[weakref.ref[Any]] = []

    def packed(tensor: Tensor) -> Tensor:
        copied = tensor.detach().clone()
        kept.append(weakref.ref(copied))
        return copied

    with torch.autograd.graph.saved_tensors_hooks(packed, lambda tensor: tensor):
        result = fusee.compile(lambda x: (x.exp() @ x).sin())(x)
    assert kept and all(one() is not None for one in kept)
    result.sum().backward()
    gc.collect()
    assert all(one() is None for one in kept)
