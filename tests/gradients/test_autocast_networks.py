"""Whole training steps of small networks under autocast to bfloat16, against eager and float64."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import fusee


class Block(nn.Module):
    """A layer of a transformer, for activations of shape (batch, length, 16)."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.inner = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: Tensor) -> Tensor:
        normed = self.first(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.inner(self.second(x))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.SiLU(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 4)), (5, 8)),
    "convolutional": (convolutional, (4, 3, 8, 8)),
    "transformer": (lambda: nn.Sequential(Block(), Block(), nn.Linear(16, 4)), (3, 6, 16)),
}


def gradients_after_steps(network: nn.Module, x: Tensor, compiled: bool, cast: bool) -> Tensor:
    """All gradients and parameters after two steps, as one vector of float64."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)

    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=cast):
            loss: Tensor = network(x).to(x.dtype).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    run = fusee.compile(step) if compiled else step
    losses = [run(x).double().reshape(1) for _ in range(2)]
    parameters = list(network.parameters())
    found = [p.grad.double().flatten() for p in parameters if p.grad is not None]
    assert len(found) == len(parameters)
    return torch.cat([*losses, *found, *[p.detach().double().flatten() for p in parameters]])


@pytest.mark.parametrize("name", NETWORKS)
def test_steps_are_as_near_to_float64_as_those_of_eager(name: str) -> None:
    make, sizes = NETWORKS[name]
    network, x = make(), torch.randn(sizes)
    exact = gradients_after_steps(copy.deepcopy(network).double(), x.double(), False, False)
    eager = gradients_after_steps(copy.deepcopy(network), x, False, True)
    found = gradients_after_steps(copy.deepcopy(network), x, True, True)
    # Both round to bfloat16, at other places: each is within the bound that eager's own error gives.
    assert (found - exact).norm() <= 1.5 * (eager - exact).norm()
