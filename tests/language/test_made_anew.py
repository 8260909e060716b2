"""Functions made anew for each call: code, defaults and cells are guarded, so that one capture serves them all."""

from __future__ import annotations

import collections
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import fusee

X = torch.arange(4.0)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


class Graphs:
    """A backend that runs graphs as they are and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, module: Any, inputs: Any) -> Any:
        self.count += 1
        return module.forward


def adder(number: Any, factor: int = 1) -> Callable[..., Any]:
    def add(x: Any, by: int = factor, *, twice: int = factor) -> Any:
        return x * by * twice + number

    return add


def counter() -> tuple[Callable[[], int], Callable[[], int]]:
    count = 0

    def increase() -> int:
        nonlocal count
        count += 1
        return count

    def read() -> int:
        return count

    return increase, read


def test_one_capture_serves_all_functions_of_a_code() -> None:
    graphs = Graphs()
    apply = fusee.compile(lambda x, function: function(x), backend=graphs)
    for _ in range(5):
        assert torch.equal(apply(X, adder(3)), X + 3)
    assert graphs.count == 1


def test_cells_defaults_and_tensors_in_them_are_those_of_the_function_given() -> None:
    graphs = Graphs()
    apply = fusee.compile(lambda x, function: function(x), backend=graphs)
    for number, factor in ((1, 1), (2, 1), (2, 3), (torch.ones(4), 3), (torch.zeros(4), 3)):
        made = adder(number, factor)
        assert torch.equal(apply(X, made), made(X))
    assert graphs.count == 4


def test_defaults_given_later_are_seen() -> None:
    apply = fusee.compile(lambda x, function: function(x))
    made = adder(1)
    assert torch.equal(apply(X, made), made(X))
    made.__defaults__ = (7,)
    made.__kwdefaults__ = {"twice": 2}
    assert torch.equal(apply(X, made), X * 14 + 1)


def test_a_shared_cell_and_a_cell_of_another_function_are_told_apart() -> None:
    def program(x: Any, increase: Any, read: Any) -> Any:
        return x + increase(), read()

    run = fusee.compile(program)
    for _ in range(2):
        (increase, read), (_, other) = counter(), counter()
        assert run(X, increase, other)[1] == 0
        assert run(X, increase, read)[1] == 2
        assert (increase(), read(), other()) == (3, 3, 0)


def test_identity_and_names_are_guarded_where_they_are_asked_for() -> None:
    def program(x: Any, left: Any, right: Any, table: dict[Any, int]) -> Any:
        return x, left is right, left == right, left.__name__, left in table

    run = fusee.compile(program)
    one, other = adder(1), adder(1)
    other.__name__ = "renamed"
    pairs = ((one, other, one), (one, one, one), (other, one, one), (one, other, other))
    for left, right, key in pairs:
        table = {key: 1}
        assert run(X, left, right, table)[1:] == program(X, left, right, table)[1:]


def test_the_function_itself_is_handed_on() -> None:
    keep = fusee.compile(lambda x, function: [x + 1, function])
    for _ in range(3):
        made = adder(3)
        assert keep(X, made)[1] is made


def test_a_closure_that_crosses_a_break_compiles_once() -> None:
    graphs = Graphs()

    def program(x: Any) -> Any:
        def scale(y: Any) -> Any:
            return y * x

        fusee.graph_break()
        return scale(x) + 1

    run = fusee.compile(program, backend=graphs)
    for step in range(5):
        assert torch.equal(run(X + step), program(X + step))
    assert graphs.count == 1


def test_named_tuple_classes_of_the_program_need_no_recompiling() -> None:
    def program(x: Any, y: Any) -> Any:
        pair = collections.namedtuple("pair", ["first", "second", "third"], defaults=(None, 1))
        made = pair(x, third=y)
        return pair(made.first, made[1], made.third + y)

    compiled = fusee.compile(program, fullgraph=True)
    for _ in range(3):
        assert tuple(compiled(X, X)[1:2]) == tuple(program(X, X)[1:2])
        gc.collect()  # drops the class that the capture looked at, unless the entry keeps it
    assert fusee.stats()["recompiles"] == 0
