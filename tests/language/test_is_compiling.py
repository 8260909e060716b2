"""What programs do for a compiler alone: is_compiling() is True in a capture, and False in plain Python."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import fusee

collector: contextvars.ContextVar[Any] = contextvars.ContextVar("collector", default=None)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def masked(x: Any, mask: Any = None) -> Any:
    """Makes its mask in plain Python alone."""
    if mask is None and not torch.compiler.is_compiling():
        mask = torch.ones(3)
    return x * mask[None, :]


def collected(x: Any) -> Any:
    """Leaves by an exception through a call that breaks, where nothing makes the mask."""
    token = collector.set([])
    try:
        return masked(x)
    finally:
        collector.reset(token)


def chosen_first(x: Any) -> Any:
    """Takes a way for a compiler that raises, and asks once more on it."""
    scale = 2
    if torch.compiler.is_compiling():
        scale = None if torch.compiler.is_compiling() else 1
    return x * scale


def refused(x: Any) -> Any:
    """Raises for a compiler alone."""
    if torch.compiler.is_compiling():
        raise RuntimeError("not to be compiled")
    return x + 1


@pytest.mark.parametrize("function", [masked, collected, refused])
def test_what_raises_for_a_compiler_alone_is_run_as_in_plain_python(function: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(fusee.compile(function)(x), function(x))


def test_the_last_answer_is_taken_back_first() -> None:
    x = torch.ones(2, 3)
    assert torch.equal(fusee.compile(chosen_first)(x), x)
    assert fusee.stats()["graphs"] == 1


def test_an_error_of_the_program_stays_its_own() -> None:
    def function(x: Any) -> Any:
        if torch.compiler.is_compiling():
            x = x + 1
        raise ValueError("the program's")

    with pytest.raises(ValueError, match="the program's"):
        fusee.compile(function)(torch.ones(2))


def test_is_compiling_is_true_elsewhere() -> None:
    def function(x: Any) -> Any:
        return x + 1 if torch.compiler.is_compiling() else x

    assert torch.equal(fusee.compile(function)(torch.ones(2)), torch.full((2,), 2.0))
