"""Functions that a program makes at each call, and the constants of its code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import fusee


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def graphs_of(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> int:
    """How many graphs are compiled over the calls, which give what they give uncompiled."""
    graphs = 0

    def backend(module: Any, _: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return module

    compiled = fusee.compile(function, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fusee.FuseeWarning)
        for arguments in calls:
            torch.testing.assert_close(compiled(*arguments), function(*arguments))
    return graphs


def test_function_made_anew_at_each_call() -> None:
    def program(x: Any, n: int) -> Any:
        def shifted(y: Any, factor: int = 2, *, offset: float = 0.5) -> Any:
            return (x + y) * factor + offset

        fusee.graph_break()
        return shifted(torch.ones(2)) - n

    x = torch.arange(2.0)
    assert graphs_of(program, [(x, 1)] * 4) == 1


def test_other_code_globals_defaults_or_contents_are_noticed() -> None:
    def make(add: Any, default: Any, double: bool) -> Any:
        def plain(x: Any, by: Any = default) -> Any:
            return x + add + by

        def doubled(x: Any, by: Any = default) -> Any:
            return (x + add + by) * 2

        return doubled if double else plain

    def apply(function: Any, x: Any) -> Any:
        return function(x) + 1

    source = "def make(n):\n    def inner(x):\n        return x + n + G\n    return inner"
    exec(source, here := {"G": 1, "__name__": "here"})
    exec(source, elsewhere := {"G": 5, "__name__": "elsewhere"})
    x = torch.ones(2)
    functions = [make(1, 2, False), make(1, 2, False), make(3, 2, False), make(1, 7, False), make(1, 2, True)]
    functions += [here["make"](1), here["make"](1), elsewhere["make"](1)]
    graphs_of(apply, [(function, x) for function in functions * 2])


def test_disabled_after_it_was_captured() -> None:
    ran = []

    def make(mark: bool) -> Any:
        def inner(x: Any) -> Any:
            ran.append(torch.compiler.is_compiling())
            return x + 1

        return fusee.disable(inner) if mark else inner

    def apply(function: Any, x: Any) -> Any:
        return function(x) * 2

    compiled = fusee.compile(apply)
    x = torch.ones(2)
    for mark in (False, True, False):
        assert torch.equal(compiled(make(mark), x), (x + 1) * 2)
    assert len(ran) == 3


def test_function_as_key_keeps_its_identity() -> None:
    def make() -> Any:
        def inner(x: Any) -> Any:
            return x + 1

        return inner

    first, second = make(), make()
    table = {first: 1, second: 10}

    def look_up(function: Any, x: Any) -> Any:
        return function(x) * table[function], function is first

    compiled = fusee.compile(look_up)
    x = torch.ones(2)
    for function in (first, second, first):
        result, is_first = compiled(function, x)
        assert torch.equal(result, (x + 1) * table[function]) and is_first is (function is first)


def test_two_names_of_one_function() -> None:
    def make() -> Any:
        return lambda x: x + 1

    def program(f: Any, g: Any, x: Any) -> Any:
        return f(x) + g(x), f is g

    compiled = fusee.compile(program)
    x, f, g = torch.ones(2), make(), make()
    for pair in ((f, f), (f, g), (g, g), (g, f)):
        assert compiled(*pair, x)[1] is program(*pair, x)[1]


def test_names_of_functions_with_the_same_code() -> None:
    def make(name: str) -> Any:
        def inner(x: Any) -> Any:
            return x + 1

        inner.__name__ = name
        return inner

    def program(f: Any, x: Any) -> Any:
        return f(x), f.__name__

    compiled = fusee.compile(program)
    assert [compiled(make(name), torch.ones(2))[1] for name in ("a", "b", "a")] == ["a", "b", "a"]


def test_frozen_set_of_the_code_keeps_its_order() -> None:
    def program(x: Any) -> Any:
        order = []
        fusee.graph_break()
        for name in {"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"}:
            order.append(name)
        return x + 1, order

    expected = program(torch.ones(2))[1]
    compiled = fusee.compile(program)
    for _ in range(2):
        assert compiled(torch.ones(2))[1] == expected
