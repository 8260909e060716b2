"""Optimizer steps and others that write their inputs: few kernels, and eager's results whatever memory is shared."""

# mypy: allow-untyped-calls
from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import fusee

Program = Callable[..., Any]
SIZES = ((16, 8), (16,), (4, 16), (4,))

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "foreach": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, foreach=True),
}


def optimizer_of(name: str) -> tuple[torch.optim.Optimizer, list[Tensor]]:
    generator = torch.Generator().manual_seed(0)
    parameters = []
    for sizes in SIZES:
        parameter = torch.randn(*sizes, dtype=torch.float64, generator=generator).requires_grad_()
        parameter.grad = torch.randn(*sizes, dtype=torch.float64, generator=generator)
        parameters.append(parameter)
    return OPTIMIZERS[name](parameters), parameters


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_is_few_kernels(name: str) -> None:
    fusee.reset()
    outcomes = []
    for compiled in (False, True):
        optimizer, parameters = optimizer_of(name)
        step = fusee.compile(optimizer.step) if compiled else optimizer.step
        for _ in range(6):
            step()
        outcomes.append((parameters, optimizer.state_dict()["state"]))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-12, atol=1e-13)
    optimizer, _ = optimizer_of(name)
    optimizer.step()
    assert len(fusee.explain(optimizer.step)().kernels) <= (6 if name == "foreach" else 3)


def update(x: Tensor, y: Tensor) -> Tensor:
    """Reads the old value after the write has made a new one, and the other tensor between two writes."""
    old = x * 3
    x.add_(y)
    middle = x * y
    x.mul_(2).sub_(old)
    y.add_(middle)
    return x - old + y


def returned(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    head = x[:2]
    x.add_(1)
    y.copy_(x * 2)
    before = head.clone()
    x.mul_(y)
    return x, head, before, x.t() if x.dim() == 2 else x, y


def through_a_view(x: Tensor, y: Tensor) -> Tensor:
    x.mul_(2)
    x[1:3].add_(y[1:3])
    x.add_(y)
    y[0].zero_()
    return x.sum() + y.sum()


def turned(x: Tensor, y: Tensor) -> Tensor:
    before = x.flip(0)
    x.add_(y)
    after = x.flip(0) + before
    y.sub_(after)
    return x.cumsum(0) + y


def reduced(x: Tensor, y: Tensor) -> Tensor:
    norm = (x * x).sum().sqrt()
    x.div_(norm + 1)
    y.sub_(x.mean())
    return (x - x.mean()) / norm + y


def fresh(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    first = x + 1
    kept = first * 2
    first.mul_(y).add_(kept)
    view = first[1:]
    first.exp_()
    x.copy_(first)
    first.zero_()
    return view + kept[1:], first


def apart() -> tuple[Tensor, Tensor]:
    return torch.linspace(-1, 1, 8, dtype=torch.float64), torch.linspace(2, 3, 8, dtype=torch.float64)


def same() -> tuple[Tensor, Tensor]:
    x, _ = apart()
    return x, x


def alias() -> tuple[Tensor, Tensor]:
    x, _ = apart()
    return x, x.detach()


def shifted() -> tuple[Tensor, Tensor]:
    base = torch.linspace(-1, 1, 12, dtype=torch.float64)
    return base[:8], base[4:]


def neighbours() -> tuple[Tensor, Tensor]:
    base = torch.linspace(-1, 1, 16, dtype=torch.float64)
    return base[:8], base[8:]


def interleaved() -> tuple[Tensor, Tensor]:
    base = torch.linspace(-1, 1, 16, dtype=torch.float64)
    return base[::2], base[1::2]


def backwards() -> tuple[Tensor, Tensor]:
    x, y = shifted()
    return y, x


def empty() -> tuple[Tensor, Tensor]:
    x, _ = apart()
    return x[:0], x[:0]


PROGRAMS = (update, returned, turned, reduced, fresh, through_a_view)
PLACEMENTS = (apart, same, alias, shifted, neighbours, interleaved, backwards)


def outcome(program: Program, inputs: tuple[Tensor, Tensor]) -> Any:
    try:
        results = program(*inputs)
    except RuntimeError as error:  # PyTorch refuses to write to memory that overlaps what it reads only in part
        return (), inputs, "refer to a single memory location" in str(error)
    listed = results if isinstance(results, tuple) else (results,)
    identities = [[result is given for given in inputs] for result in listed]
    memory = [[result.data_ptr() == given.data_ptr() for given in inputs] for result in listed]
    return listed, inputs, identities, memory, [given._version > 0 for given in inputs]


@pytest.mark.parametrize("captured", PLACEMENTS, ids=lambda f: str(f.__name__))
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: str(f.__name__))
def test_memory_that_inputs_share(program: Program, captured: Any) -> None:
    """Captured with inputs of one kind and called with those of every kind."""
    fusee.reset()
    compiled = fusee.compile(program)
    for placement in (captured, *PLACEMENTS, captured):
        expected, found = outcome(program, placement()), outcome(compiled, placement())
        torch.testing.assert_close(found[:2], expected[:2], rtol=1e-12, atol=1e-13, msg=placement.__name__)
        assert found[2:] == expected[2:], placement.__name__


def test_empty_inputs_do_not_overlap() -> None:
    fusee.reset()
    assert fusee.compile(update)(*empty()).shape == (0,)


def test_the_log_says_once_that_inputs_overlap(caplog: pytest.LogCaptureFixture) -> None:
    fusee.reset()
    compiled = fusee.compile(update)
    with caplog.at_level(logging.INFO, "fusee.aliasing"):
        compiled(*apart())
        assert not caplog.records
        for _ in range(3):
            compiled(*interleaved())
    assert [record.getMessage() for record in caplog.records] == [
        "Python runs graph for a call: tensors that it writes share memory with others that it is given"
    ]


def test_a_whole_step_on_parameters_that_overlap() -> None:
    """The loss, the gradients and the update by a plan for parameters that are apart, and by Python for others."""

    def step(first: Tensor, second: Tensor) -> Tensor:
        loss = (first * second).tanh().sum()
        loss.backward()
        with torch.no_grad():
            assert first.grad is not None and second.grad is not None
            first.sub_(first.grad * 0.5)
            second.sub_(second.grad * 0.5)
        return loss

    fusee.reset()
    compiled = fusee.compile(step)
    for placement in (apart, shifted, neighbours, apart):
        found = []
        for run in (step, compiled):
            leaves = [given.detach().requires_grad_() for given in placement()]
            loss = run(*leaves)
            found.append((loss.detach(), leaves, [leaf.grad for leaf in leaves]))
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()
        torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-13)
