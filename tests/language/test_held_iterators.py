"""Iterators that were there before the call, or that a loop with a break in it goes on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from outcome import run

import fusee

LOOPS: dict[str, Callable[[list[int], dict[str, int], tuple[int, ...]], Iterator[Any]]] = {
    "list": lambda items, table, row: iter(items),
    "tuple": lambda items, table, row: iter(row),
    "keys": lambda items, table, row: iter(table),
    "values": lambda items, table, row: iter(table.values()),
    "items": lambda items, table, row: iter(table.items()),
    "range": lambda items, table, row: iter(range(1, 9, 2)),
    "enumerate": lambda items, table, row: enumerate(items, 5),
    "zip": lambda items, table, row: zip(row, table.values(), strict=False),
    "strict zip": lambda items, table, row: zip(row, table.values(), strict=True),
    "enumerate of zip": lambda items, table, row: enumerate(zip(items, table, strict=False)),
    "reversed": lambda items, table, row: reversed(items),
    "generator": lambda items, table, row: (item * 2 for item in items),
}


def things() -> tuple[list[int], dict[str, int], tuple[int, ...]]:
    return [1, 2, 3, 4], {"a": 1, "b": 2, "c": 3, "d": 4}, (5, 6, 7, 8)


@pytest.mark.parametrize("make", LOOPS.values(), ids=LOOPS.keys())
@pytest.mark.parametrize("taken", [0, 1, 3, 4])
def test_iterator_from_outside_is_left_where_the_program_leaves_it(make: Any, taken: int) -> None:
    def program(iterator: Iterator[Any], x: Any) -> Any:
        seen = [next(iterator, None)]
        for item in iterator:
            seen.append(item)
            if len(seen) > 2:
                break
        return x + len(seen), seen

    compiled = fusee.compile(program)
    outcomes = []
    for function in (program, compiled, compiled):
        iterator = make(*things())
        for _ in range(taken):
            next(iterator)
        outcomes.append((function(iterator, torch.ones(2))[1], list(iterator)))
    assert outcomes[1:] == outcomes[:1] * 2


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("at", [0, 2, 3])
def test_what_follows_a_break_in_a_loop_is_one_graph(loop: str, at: int) -> None:
    make = LOOPS[loop]

    def program(iterator: Iterator[Any], x: Any) -> Any:
        seen = []
        for item in iterator:
            seen.append(item)
            x = x * 2
            if len(seen) == at + 1:
                fusee.graph_break()
            x = x + 1
        return x, seen

    fusee.reset()
    compiled = fusee.compile(program)
    expected = program(make(*things()), torch.ones(2))
    explained = fusee.explain(program)(make(*things()), torch.ones(2))
    assert loop in ("reversed", "generator") or explained.graph_count == 2
    for _ in range(2):
        found = compiled(make(*things()), torch.ones(2))
        assert found[1] == expected[1]
        assert torch.equal(found[0], expected[0])


def test_layers_behind_a_break_in_one_are_one_graph() -> None:
    class Asking(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            x = x + 1
            fusee.graph_break()
            return x * 2

    model = torch.nn.Sequential(torch.nn.ReLU(), Asking(), torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Tanh())
    compiled = fusee.compile(model)
    before = fusee.stats()
    for size in (2, 3, 4):
        torch.testing.assert_close(compiled(torch.ones(size)), model(torch.ones(size)))
    after = fusee.stats()
    assert after["breaks"] - before["breaks"] <= 2
    assert after["graphs"] - before["graphs"] <= 4  # two, and two more for sizes that change


def test_break_in_each_round_of_a_loop_ends_recompiling() -> None:
    class Asking(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            x = x + 1
            fusee.graph_break()
            return x * 2

    model = torch.nn.Sequential(*(Asking() for _ in range(40)))
    compiled = fusee.compile(model)
    before = fusee.stats()
    torch.testing.assert_close(compiled(torch.zeros(2)), model(torch.zeros(2)))
    after = fusee.stats()
    assert after["recompiles"] - before["recompiles"] <= 3


@pytest.mark.parametrize("size", [0, 1, 3])
def test_list_that_grows_while_it_is_walked(size: int) -> None:
    def program(iterator: Iterator[int], items: list[int], x: Any) -> Any:
        total = 0
        for item in iterator:
            total += item
            if item > 1:
                items.append(item // 2)
        return x + total, list(items), next(iterator, "end")

    compiled = fusee.compile(program)
    outcomes = []
    for function in (program, compiled, compiled):
        items = list(range(size, 0, -1))
        iterator = iter(items)
        next(iterator, None)
        outcomes.append((function(iterator, items, torch.ones(2))[1:], items))
        items.append(1)
        outcomes[-1] = (*outcomes[-1], list(iterator))
    assert outcomes[1:] == outcomes[:1] * 2


def test_dict_that_grows_while_it_is_walked() -> None:
    def program(iterator: Iterator[str], table: dict[str, int], x: Any) -> Any:
        try:
            for name in iterator:
                table[name + "'"] = 1
        except RuntimeError as error:
            return x + 1, str(error), list(table)
        return x, "", list(table)

    compiled = fusee.compile(program)
    outcomes = []
    for function in (program, compiled, compiled):
        table = {"a": 1, "b": 2}
        outcomes.append((function(iter(table), table, torch.ones(2))[1:], list(table)))
    assert outcomes[1:] == outcomes[:1] * 2


@fusee.disable
def seen_by_python(value: Any) -> Any:
    return value


def grown_in_a_loop_with_a_break(table: dict[int, int]) -> Any:
    for value in table.values():
        table[len(table)] = 1
        seen_by_python(value)
    return table


def shrunk_and_grown(table: dict[int, int]) -> Any:
    walk = iter(table)
    found: list[Any] = [next(walk)]
    table[7] = 7
    seen_by_python(found)
    for key in range(3):
        try:
            found.append(next(walk, "end"))
        except RuntimeError as error:
            found.append(str(error))
        del table[7 + key]
        table[8 + key] = 1
    return found


def grown_behind_the_end(table: dict[int, int]) -> Any:
    walk = iter(table)
    found: list[Any] = [*walk]
    table[7] = 7
    found.append(next(walk, "end"))
    seen_by_python(found)
    return [*found, next(walk, "end")]


@pytest.mark.parametrize("function", [grown_in_a_loop_with_a_break, shrunk_and_grown, grown_behind_the_end])
def test_dicts_that_change_size_while_they_are_walked(function: Callable[..., Any]) -> None:
    fusee.reset()
    compiled = fusee.compile(function)
    for table in ({0: 1, 1: 2}, {0: 1}, {0: 1, 1: 2}):
        assert run(compiled, (table,), {}, __file__) == run(function, (table,), {}, __file__)


@pytest.mark.parametrize("kind", ["keys", "values", "items"])
def test_iterators_over_dicts_that_have_ended(kind: str) -> None:
    def next_of(walker: Any) -> Any:
        return next(walker, None)

    compiled = fusee.compile(next_of)
    plain, ours = (iter(getattr({1: 2}, kind)()) for _ in range(2))
    assert [next_of(plain) for _ in range(4)] == [compiled(ours) for _ in range(4)]
