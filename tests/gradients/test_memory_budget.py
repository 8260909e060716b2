"""The memory budget: backward computes again what is not kept, to eager's gradients, and a smaller one keeps less."""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import fusee
from fusee.errors import UnknownSetting

BUDGETS = [0.0, 0.25, 0.5, 0.75, 1.0]

Program = Callable[..., Tensor]


def drawn(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def perceptron(x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (functional.gelu(x @ up) @ down).sigmoid().sum()


def attention(x: Tensor, mixed: Tensor, back: Tensor) -> Tensor:
    queries, keys, values = (x @ mixed).chunk(3, dim=-1)
    scores = (queries @ keys.transpose(-1, -2) / 4).softmax(-1)
    return functional.layer_norm((scores @ values) @ back.t() + x, (16,)).square().mean()


def with_dropout(x: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return (functional.dropout((x @ up).tanh(), 0.4, training=True) @ down).exp().mean()


def statistics(x: Tensor, up: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    normalised = functional.batch_norm(x @ up, mean, variance, training=True)
    return (normalised.tanh() @ up.t()).sin().sum()


def convolutions(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    hidden = functional.relu(functional.conv2d(x, first, padding=1))
    return functional.max_pool2d(functional.conv2d(hidden, second).tanh(), 2).square().sum()


PROGRAMS: dict[str, tuple[Program, Callable[[], list[Tensor]]]] = {
    "perceptron": (perceptron, lambda: [drawn(12, 8), drawn(8, 24), drawn(24, 4)]),
    "attention": (attention, lambda: [drawn(2, 6, 16), drawn(16, 48), drawn(16, 16)]),
    "with_dropout": (with_dropout, lambda: [drawn(12, 8), drawn(8, 24), drawn(24, 4)]),
    "statistics": (statistics, lambda: [drawn(12, 8), drawn(8, 8), drawn(8).detach(), drawn(8).detach().exp()]),
    "convolutions": (convolutions, lambda: [drawn(2, 3, 8, 8), drawn(4, 3, 3, 3), drawn(4, 4, 3, 3)]),
}


def gradients(program: Program, inputs: list[Tensor]) -> list[Tensor]:
    torch.manual_seed(3)
    copies = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs]
    loss = program(*copies)
    return [loss.detach(), *torch.autograd.grad(loss, [copy for copy in copies if copy.requires_grad])]


def kept(program: Program, inputs: list[Tensor], budget: float) -> list[dict[str, Any]]:
    copies = [tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in inputs]
    (graph,) = fusee.explain(program, fullgraph=True, options={"memory_budget": budget})(*copies).graphs
    found: list[dict[str, Any]] = graph["training"]["kept"]
    return found


def made_bytes(values: list[dict[str, Any]]) -> int:
    return sum(value["bytes"] for value in values if not value["input"])


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_eager(name: str, budget: float) -> None:
    program, make = PROGRAMS[name]
    torch.manual_seed(0)
    inputs = make()
    compiled = fusee.compile(program, fullgraph=True, options={"memory_budget": budget})
    for expected, found in zip(gradients(program, inputs), gradients(compiled, inputs), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_smaller_budget_keeps_fewer_bytes(name: str) -> None:
    program, make = PROGRAMS[name]
    inputs = make()
    bytes_kept = [made_bytes(kept(program, inputs, budget)) for budget in BUDGETS]
    assert bytes_kept == sorted(bytes_kept) and bytes_kept[0] < bytes_kept[-1]
    for budget, found in zip(BUDGETS, bytes_kept, strict=True):
        assert found <= max(budget * bytes_kept[-1], bytes_kept[0])


@pytest.mark.parametrize("name", ["perceptron", "attention", "convolutions"])
def test_nothing_but_inputs_is_kept_without_a_budget(name: str) -> None:
    program, make = PROGRAMS[name]
    assert all(value["input"] for value in kept(program, make(), 0.0))


def packed_bytes(program: Program, inputs: list[Tensor]) -> int:
    """The bytes of what autograd is handed to keep, inputs apart."""
    packed: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        packed.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        program(*inputs)
    given = [tensor.data_ptr() for tensor in inputs]
    return sum(tensor.nbytes for tensor in packed if tensor.data_ptr() not in given)


def test_forward_hands_autograd_no_more_than_the_budget() -> None:
    inputs = PROGRAMS["perceptron"][1]()
    none, most = (
        packed_bytes(fusee.compile(perceptron, options={"memory_budget": budget}), inputs) for budget in (0.0, 1.0)
    )
    assert none == 0 < most


def test_random_draws_are_kept_whatever_the_budget() -> None:
    reasons = [value["why"] for value in kept(with_dropout, PROGRAMS["with_dropout"][1](), 0.0) if not value["input"]]
    assert reasons and all(reason.endswith("recomputing it would draw other random numbers") for reason in reasons)


def test_reasons_name_what_reads_and_what_would_run() -> None:
    reasons = {value["name"]: value["why"] for value in kept(perceptron, PROGRAMS["perceptron"][1](), 1.0)}
    assert "needed by gelu_backward; recomputing it would run matmul" in reasons.values()
    assert any("it is an input" in reason for reason in reasons.values())
    page = str(fusee.explain(perceptron)(*PROGRAMS["perceptron"][1]()))
    assert "kept for backward" in page and "(needed by gelu_backward; recomputing it would run matmul)" in page


@pytest.mark.parametrize("budget", [-0.1, 1.5, "half"])
def test_budgets_outside_the_bounds_are_refused(budget: Any) -> None:
    with pytest.raises(UnknownSetting, match="memory_budget"):
        fusee.compile(perceptron, options={"memory_budget": budget})
