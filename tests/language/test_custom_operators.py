"""Operators that programs define with ``torch.library``: in plans, called once a call, and never by the capture."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import fusee

CALLS: list[str] = []


@torch.library.custom_op("fusee_tests::pair", mutates_args=())
def pair(x: Tensor, *, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    """Two results, an argument by keyword, and an error of its own."""
    CALLS.append("pair")
    if scale < 0:
        raise ValueError("scale is negative")
    return x * scale, x.sum()


@pair.register_fake
def _(x: Tensor, *, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty(())


@torch.library.custom_op("fusee_tests::joined", mutates_args=())
def joined(tensors: list[Tensor], dimension: int | None = None, name: str = "joined") -> Tensor:
    """A list of tensors, and arguments that may be missing."""
    CALLS.append(name)
    return torch.cat(tensors, dimension or 0)


@joined.register_fake
def _(tensors: list[Tensor], dimension: int | None = None, name: str = "joined") -> Tensor:
    return torch.cat(tensors, dimension or 0)


@torch.library.custom_op("fusee_tests::raised", mutates_args={"x"})
def raised(x: Tensor, by: Tensor | None = None) -> Tensor:
    """Writes its argument."""
    CALLS.append("raised")
    x.add_(1 if by is None else by)
    return x.clone()


@raised.register_fake
def _(x: Tensor, by: Tensor | None = None) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("fusee_tests::scaled", mutates_args=())
def scaled(x: Tensor, by: float) -> Tensor:
    """Has a derivative."""
    CALLS.append("scaled")
    return x * by


@scaled.register_fake
def _(x: Tensor, by: float) -> Tensor:
    return torch.empty_like(x)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.by = inputs[1]


scaled.register_autograd(lambda ctx, gradient: (gradient * ctx.by, None), setup_context=_keep)


def _pair(x: Tensor) -> Tensor:
    doubled, total = pair(torch.relu(x) + 1, scale=3.0)
    return doubled.sin() + total


def _write(x: Tensor) -> tuple[Tensor, Tensor]:
    raised(x)
    doubled = x * 2
    return raised(doubled, by=x), doubled * 3


PROGRAMS = {
    "results": _pair,
    "lists": lambda x: joined([x.sin(), x * 2], 0, name="of a program") * 2,
    "writes": _write,
    "overload": lambda x: torch.ops.fusee_tests.pair.default(x * 2, scale=1.5)[0] * 2,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators_of_programs_are_in_the_graph_and_called_as_often_as_without(name: str) -> None:
    program, compiled = PROGRAMS[name], fusee.compile(PROGRAMS[name], fullgraph=True)
    for _ in range(3):
        x = torch.randn(4, 5)
        y = x.clone()
        CALLS.clear()
        found, called = compiled(x), list(CALLS)
        CALLS.clear()
        torch.testing.assert_close((found, x), (program(y), y), rtol=1e-6, atol=1e-6)
        assert called == CALLS


def test_derivative_of_a_programs_operator() -> None:
    def program(x: Tensor) -> Tensor:
        return scaled(torch.relu(x) * 3, 2.0).sin() * 2

    compiled = fusee.compile(program, fullgraph=True)
    for _ in range(2):
        x = torch.randn(4, 5, requires_grad=True)
        torch.testing.assert_close(
            torch.autograd.grad(compiled(x).sum(), x), torch.autograd.grad(program(x).sum(), x), rtol=1e-6, atol=1e-6
        )


def test_error_of_a_programs_operator_leaves_what_was_written_before_it_written_once() -> None:
    def program(x: Tensor) -> Tensor:
        raised(x)
        return pair(x, scale=-1.0)[0]

    compiled = fusee.compile(program, fullgraph=True)
    for _ in range(2):
        x = torch.zeros(3)
        CALLS.clear()
        with pytest.raises(ValueError, match="scale is negative"):
            compiled(x)
        assert x.tolist() == [1.0, 1.0, 1.0]
        assert CALLS == ["raised", "pair"]


def test_error_of_a_programs_operator_is_caught_where_the_program_does() -> None:
    def program(x: Tensor) -> Tensor:
        y = x * 2
        try:
            return pair(y, scale=-1.0)[0]
        except ValueError:
            CALLS.append("caught")
        return y + 1

    compiled = fusee.compile(program)
    for _ in range(2):
        CALLS.clear()
        assert compiled(torch.ones(3)).tolist() == [3.0, 3.0, 3.0]
        assert CALLS == ["pair", "caught"]


def test_programs_operators_stay_in_the_graph_inside_of_finally() -> None:
    states = []

    def program(x: Tensor) -> Tensor:
        states.append("set")
        try:
            return pair(x * 2, scale=3.0)[0] + 1
        finally:
            states.append("reset")

    fusee.reset()
    compiled = fusee.compile(program)
    for _ in range(2):
        states.clear()
        assert torch.equal(compiled(torch.ones(3)), program(torch.ones(3)))
        assert states == ["set", "reset"] * 2
    assert fusee.stats()["breaks"] == 0
