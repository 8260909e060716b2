"""What crosses a graph break: methods, generators, keys with hashes of their own, the dicts of objects."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from outcome import run
from variants import opaque

import fusee

LOG: list[Any] = []


def echo(value: Any) -> Iterator[Any]:
    try:
        while True:
            value = yield value
    finally:
        LOG.append("ended")


class Logged:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        LOG.append("hash")
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        LOG.append("eq")
        return isinstance(other, Logged) and self.value == other.value

    def step(self) -> Any:
        self.value += 1
        return self.value

    @property
    def half(self) -> Any:
        return self.value / 2

    @half.deleter
    def half(self) -> None:
        del self.value


def a_generator_lives_as_long_as_its_variable(n: int) -> None:
    waiting = echo(n)
    LOG.append(next(waiting))
    LOG.append(waiting.send(opaque(3)))
    LOG.append("behind")


def a_generator_ends_where_its_variable_is_used_again(n: int) -> int:
    waiting: Any = echo(n)
    LOG.append(next(waiting))
    opaque(waiting)
    LOG.append("ahead")
    waiting = 3
    LOG.append("behind")
    return waiting


def new_tables_ask_keys_once(n: int) -> Any:
    one, other = Logged(n), Logged(-n)
    table = {one: 1, other: 2, 3: 4}
    return table, {one, other}, dict(table), frozenset((one, 5)), {(one, 1): other}


def an_existing_table_asks_keys_once(n: int) -> Any:
    table: dict[Any, Any] = {Logged(1): n}
    opaque(table)
    table[Logged(n)] = 2
    table[Logged(1)] = 3
    return list(table.values())


def an_object_is_changed_through_its_dict(n: int) -> Any:
    held = Logged(n)
    opaque(held)
    held.__dict__.update(value=opaque(5) + n)
    return held.step(), held.value


def an_attribute_is_deleted_twice(n: int) -> Any:
    held = Logged(n)
    opaque(held)
    del held.value
    held.__dict__.update(value=n)
    del held.half
    return vars(held)


PROGRAMS: list[Callable[[int], Any]] = [
    a_generator_lives_as_long_as_its_variable,
    a_generator_ends_where_its_variable_is_used_again,
    new_tables_ask_keys_once,
    an_existing_table_asks_keys_once,
    an_object_is_changed_through_its_dict,
    an_attribute_is_deleted_twice,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_state_across_breaks(program: Callable[[int], Any]) -> None:
    fusee.reset()
    function = fusee.compile(program)
    for n in (1, 2, 2):
        outcomes = []
        for called in (program, function):
            LOG.clear()
            described = run(called, (n,), {}, __file__)
            outcomes.append((described, copy.copy(LOG)))
        assert outcomes[1] == outcomes[0]


def test_bound_builtin_methods_are_known_by_their_parts() -> None:
    fusee.reset()

    def program(method: Callable[[Any], Any], n: int) -> Any:
        return method([str(n)])

    function = fusee.compile(program)
    first: list[Any] = []
    second: list[Any] = []
    assert function(first.extend, 3) is None
    assert function(second.extend, 3) is None
    assert (first, second) == (["3"], ["3"])
    assert fusee.stats()["recompiles"] == 0
    assert function(":".join, 3) == "3"
    assert function([1].__add__, 3) == [1, "3"]
