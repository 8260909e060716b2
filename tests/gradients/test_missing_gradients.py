"""Results that nothing uses have no gradients, and inputs that only they lead back to get None, as in eager."""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators
from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import fusee
from fusee import training

Program = Callable[..., tuple[Tensor, ...]]


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets an item for each backward pass that runs operation by operation."""
    counted: list[int] = []
    plain = training.TrainedGraph.recomputed

    def recomputed(self: Any, *arguments: Any) -> Any:
        counted.append(1)
        return plain(self, *arguments)

    monkeypatch.setattr(training.TrainedGraph, "recomputed", recomputed)
    return counted


def leaf(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def encoder(x: Tensor, up: Tensor, down: Tensor, head: Tensor) -> tuple[Tensor, ...]:
    hidden = torch.tanh(x @ up)
    states = functional.layer_norm(hidden @ down + x, (6,))
    return states @ head, states, hidden


def constant_derivative(x: Tensor, y: Tensor, z: Tensor, unread: Tensor) -> tuple[Tensor, ...]:
    return torch.floor(x) + y, (x * y).sin(), z.exp().t() + unread


def with_dropout(x: Tensor, y: Tensor, z: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    kept = functional.dropout(x * y, 0.5)
    return kept @ z, kept.exp(), w.sin()


PROGRAMS: dict[str, tuple[Program, Callable[[], list[Tensor]]]] = {
    "encoder": (encoder, lambda: [leaf(5, 6), leaf(6, 8), leaf(8, 6), leaf(6, 3)]),
    "constant_derivative": (constant_derivative, lambda: [leaf(4, 4) for _ in range(4)]),
    "with_dropout": (with_dropout, lambda: [leaf(4, 4) for _ in range(4)]),
}
SUBSETS = [chosen for count in (1, 2, 3) for chosen in itertools.combinations(range(3), count)]


def gradients(program: Program, inputs: list[Tensor], used: tuple[int, ...]) -> tuple[Tensor | None, ...]:
    torch.manual_seed(5)
    results = program(*inputs)
    total = torch.stack([results[k].square().sum() for k in used]).sum()
    return torch.autograd.grad(total, inputs, allow_unused=True)


def same(expected: tuple[Tensor | None, ...], found: tuple[Tensor | None, ...]) -> None:
    for one, other in zip(expected, found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-11, atol=1e-11, equal_nan=True)


@pytest.mark.parametrize("used", SUBSETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_subsets_of_results(name: str, used: tuple[int, ...], replays: list[int]) -> None:
    program, make = PROGRAMS[name]
    torch.manual_seed(0)
    inputs = make()
    compiled = fusee.compile(program, fullgraph=True)
    same(gradients(program, inputs, used), gradients(compiled, inputs, used))
    assert not replays


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_a_result_that_nothing_uses_may_have_an_infinite_derivative(used: tuple[int, ...], replays: list[int]) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        return x * 3, x.sqrt()

    x = torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64, requires_grad=True)
    compiled = fusee.compile(program, fullgraph=True)
    same(gradients(program, [x], used), gradients(compiled, [x], used))
    assert bool(replays) == (len(used) == 1)  # what is not finite is computed again without the zeros


class Biased(torch.autograd.Function):
    """Its gradient is not 0 where that of its result is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * 2 + 1


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_functions_of_the_program_are_not_handed_zeros(used: tuple[int, ...]) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        return x.sin(), Biased.apply(x)

    x = leaf(4)
    same(gradients(program, [x], used), gradients(fusee.compile(program, fullgraph=True), [x], used))


def test_history_that_is_kept_serves_other_results_later(replays: list[int]) -> None:
    inputs = PROGRAMS["encoder"][1]()
    results, expected = fusee.compile(encoder, fullgraph=True)(*inputs), encoder(*inputs)
    for k in (1, 0, 2):
        found = torch.autograd.grad(results[k].exp().sum(), inputs, retain_graph=True, allow_unused=True)
        same(torch.autograd.grad(expected[k].exp().sum(), inputs, retain_graph=True, allow_unused=True), found)
    assert not replays


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_half_precision_and_gradients_in_another_layout(dtype: torch.dtype, replays: list[int]) -> None:
    x = torch.randn(6, 4, dtype=torch.float64).to(dtype).requires_grad_()

    def program(x: Tensor) -> tuple[Tensor, ...]:
        return (x * 2).t().contiguous(), x.exp(), x + 1

    given = torch.randn(6, 4, dtype=torch.float64).to(dtype).t()
    (found,) = torch.autograd.grad(fusee.compile(program, fullgraph=True)(x)[0], x, given)
    assert found.dtype is dtype and found.equal((given * 2).t()) and not replays
