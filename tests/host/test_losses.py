"""Classification losses of whole functions, which reach the compiler as one operator each."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

import fusee


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(7, 13), (2, 6, 3), (6,)], ids=str)
def test_cross_entropy(shape: tuple[int, ...], weighted: bool, smoothing: float, reduction: str) -> None:
    classes = shape[min(1, len(shape) - 1)]
    scores = torch.randn(shape) * 3
    target = torch.randint(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if target.dim():
        target.view(-1)[1] = -100
    weight = torch.rand(classes) if weighted else None

    def loss(scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        return functional.cross_entropy(scores, target, weight, reduction=reduction, label_smoothing=smoothing)

    got = fusee.compile(loss)(scores, target, weight)
    want = loss(scores.double(), target, None if weight is None else weight.double())
    assert got.dtype == scores.dtype and got.shape == want.shape
    assert torch.allclose(got.double(), want, rtol=2e-6, atol=1e-6)


def test_target_out_of_range_raises_what_eager_raises() -> None:
    compiled = fusee.compile(lambda scores, target: functional.cross_entropy(scores, target))
    scores = torch.randn(4, 6)
    compiled(scores, torch.tensor([0, 1, 5, 2]))
    with pytest.raises(IndexError, match="Target 6 is out of bounds"):
        compiled(scores, torch.tensor([0, 1, 6, 2]))


def test_probabilities_as_targets() -> None:
    scores, target = torch.randn(4, 6), torch.rand(4, 6)
    got = fusee.compile(lambda scores, target: functional.cross_entropy(scores, target))(scores, target)
    torch.testing.assert_close(got, functional.cross_entropy(scores, target))
