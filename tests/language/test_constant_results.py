"""Functions whose results the program declares constant, with ``torch.compiler.assume_constant_result``."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import fusee

CALLS: list[str] = []


@torch.compiler.assume_constant_result
def _setting(name: str, *, factor: int = 1) -> int:
    CALLS.append(name)
    return {"a": 2, "b": 3}[name] * factor


@functools.lru_cache
@torch.compiler.assume_constant_result
def _has_version(text: str) -> bool:
    CALLS.append("version")
    return text == "2"


class _Rated(torch.nn.Module):
    def __init__(self, rate: float) -> None:
        super().__init__()
        self.settings = {"rate": rate}

    @torch.compiler.assume_constant_result
    def rate(self) -> float:
        """Read once a compilation."""
        CALLS.append("rate")
        return self.settings["rate"]

    def forward(self, x: Tensor) -> Tensor:
        if _has_version("2"):
            x = x + 1
        return x * self.rate() * _setting("a", factor=4)


def test_is_called_once_a_compilation_and_is_no_break() -> None:
    module, x = _Rated(2.5), torch.randn(3)
    compiled = fusee.compile(module, fullgraph=True)
    expected = module(x)
    CALLS.clear()
    for _ in range(3):
        torch.testing.assert_close(compiled(x), expected, rtol=0, atol=0)
    assert CALLS == ["rate", "a"]


def test_each_object_has_results_of_its_own() -> None:
    def program(module: _Rated, x: Tensor) -> Tensor:
        return x * module.rate()

    compiled, x = fusee.compile(program), torch.randn(3)
    for rate in (2.0, 3.0):
        module = _Rated(rate)
        torch.testing.assert_close(compiled(module, x), program(module, x), rtol=0, atol=0)


def test_its_errors_reach_the_program() -> None:
    def program(x: Tensor) -> Tensor | str:
        try:
            return x * _setting("c")
        except KeyError as error:
            return str(error)

    assert fusee.compile(program)(torch.randn(3)) == "'c'"


def test_a_function_without_the_mark_is_told_from_one_with_it() -> None:
    def make(factor: int, marked: bool) -> Callable[[int], int]:
        def scaled(number: int) -> int:
            return number * factor

        return torch.compiler.assume_constant_result(scaled) if marked else scaled

    def program(x: Tensor, function: Callable[[int], int]) -> Tensor:
        return x + function(3)

    compiled, x = fusee.compile(program), torch.zeros(2)
    for factor, marked in [(1, False), (2, True), (3, False), (4, True)]:
        assert compiled(x, make(factor, marked)).tolist() == [3.0 * factor] * 2


@pytest.mark.parametrize("made", [torch.zeros, torch.ones])
def test_tensors_are_no_constants(made: Callable[[int], Tensor]) -> None:
    @torch.compiler.assume_constant_result
    def total(x: Tensor) -> float:
        return float(x.sum())

    def program(x: Tensor) -> Tensor:
        return x * total(made(2) + x)

    compiled = fusee.compile(program)
    for value in (1.0, 2.0):
        x = torch.full((2,), value)
        torch.testing.assert_close(compiled(x), program(x), rtol=0, atol=0)


class _Owner:
    """Something that texts are kept for."""


@functools.lru_cache(None)
def _kept(owner: object, text: str) -> None:
    CALLS.append(text)


def test_what_a_cache_keeps_is_computed_when_it_is_asked_for() -> None:
    owner = _Owner()

    def program(x: Tensor, text: str) -> Tensor:
        CALLS.append("before")
        for _ in range(2):
            _kept(owner, text)
        CALLS.append("after")
        return x * 2

    x, found = torch.ones(2), []
    for call in (program, fusee.compile(program)):
        CALLS.clear()
        _kept.cache_clear()
        for text in ("once", "once", "again", "once"):
            torch.testing.assert_close(call(x, text), x * 2, rtol=0, atol=0)
        _kept.cache_clear()
        call(x, "once")
        found.append(list(CALLS))
    assert found[0] == found[1]
    assert found[0][:6] == ["before", "once", "after", "before", "after", "before"]
