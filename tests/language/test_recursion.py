"""Recursions that break, or that end in RecursionError, are left to Python as a whole, and are captured quickly."""

from __future__ import annotations

import functools
from typing import Any

import torch

import fusee

LEVELS = 60


class Swallow:
    """A block in which nothing fails."""

    def __enter__(self) -> None:
        """Enter."""

    def __exit__(self, *error: object) -> bool:
        """Take every exception for handled."""
        return True


class Endless:
    """Looks up every attribute in itself, until Python has no frames left."""

    def __getattr__(self, name: str) -> Any:
        """Raise AttributeError, at the latest when RecursionError ends the search."""
        with Swallow():
            getattr(self, name + "_")
        raise AttributeError("nothing")


@functools.cache
def doubled(n: int) -> int:
    """A call that breaks."""
    return 2 * n


def total(n: int) -> int:
    """A sum with a break at each level."""
    return doubled(n) + total(n - 1) if n else 0


def lookup(x: torch.Tensor, value: Any) -> torch.Tensor:
    """Look an attribute up between two operations."""
    y = x + 1
    try:
        y = y * value.any
    except AttributeError as error:
        y = y * len(error.args)
    return y - 1


def summed(x: torch.Tensor, n: int) -> torch.Tensor:
    """A recursion between two operations."""
    return (x + total(n)) * 2


def test_attributes_without_end() -> None:
    fusee.reset()
    compiled = fusee.compile(lookup)
    x = torch.arange(3.0)
    for _ in range(2):
        assert torch.equal(compiled(x, Endless()), lookup(x, Endless()))
    reports = fusee.explain(lookup)(x, Endless())
    assert "nested too deeply" in str(reports)


def test_a_break_at_each_level() -> None:
    fusee.reset()
    compiled = fusee.compile(summed)
    x = torch.arange(3.0)
    for n in (LEVELS, LEVELS, 3):
        assert torch.equal(compiled(x, n), summed(x, n))
    assert fusee.stats()["breaks"] < LEVELS
