"""The order of sets: a captured program sees the order that CPython's table gives after the same operations."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import fusee

METHODS = (
    "add",
    "discard",
    "update",
    "difference_update",
    "intersection_update",
    "symmetric_difference_update",
    "union",
    "difference",
    "intersection",
    "symmetric_difference",
    "pop",
    "clear",
    "copy",
)


def random_steps(seed: int) -> list[tuple[str, str, list[Any]]]:
    """Operations on one set: a method, the kind of its argument, and the numbers in that."""
    draw = random.Random(seed)
    steps: list[tuple[str, str, list[Any]]] = []
    for _ in range(draw.randrange(3, 14)):
        method = draw.choice(METHODS[:10] if draw.random() < 0.85 else METHODS)
        numbers: list[Any] = [
            draw.choice((1, 8, 64, 2**61)) * draw.randrange(-20, 90) for _ in range(draw.choice((1, 5, 30)))
        ]
        if draw.random() < 0.3:
            numbers.append(draw.random())
            numbers.append((draw.randrange(5), draw.randrange(5)))
        steps.append((method, draw.choice(("set", "list", "dict", "frozenset")), numbers))
    return steps


def walk(steps: list[tuple[str, str, list[Any]]], start: list[Any]) -> list[list[Any]]:
    """The order after each of the operations."""
    kinds: dict[str, Callable[[list[Any]], Any]] = {
        "set": set,
        "list": list,
        "dict": dict.fromkeys,
        "frozenset": frozenset,
    }
    values = set(start)
    orders = [list(values)]
    for method, kind, numbers in steps:
        if method in ("add", "discard"):
            for number in numbers:
                getattr(values, method)(number)
        elif method in ("clear", "copy"):
            result = getattr(values, method)()
            values = result if method == "copy" else values
        elif method == "pop":
            orders.append([values.pop() for _ in range(min(2, len(values)))])
        else:
            result = getattr(values, method)(kinds[kind](numbers))
            values = values if result is None else result
        orders.append(list(values))
    return orders


@pytest.mark.parametrize("seed", range(12))
def test_order_after_mixed_operations(seed: int) -> None:
    steps = random_steps(seed)
    start = [number * 3 for number in range(seed)]

    def program() -> list[list[Any]]:
        return walk(steps, start)

    fusee.reset()
    assert fusee.compile(program, fullgraph=True)() == program()


def test_operators() -> None:
    def program() -> list[list[int]]:
        left, right = set(range(0, 300, 7)), set(range(0, 300, 5))
        orders = [list(left | right), list(left & right), list(left - right), list(left ^ right), list({*left, *right})]
        left |= right
        orders.append(list(left))
        left -= set(range(0, 300, 2))
        orders.append(list(left))
        left ^= right
        orders.append(list(left))
        left &= set(range(100))
        return [*orders, list(left)]

    assert fusee.compile(program, fullgraph=True)() == program()


def test_iterator_goes_on_in_the_table_of_now() -> None:
    def program() -> list[int]:
        values = set(range(100))
        walker = iter(values)
        first = next(walker)
        values.clear()
        values.update(range(50, 150))
        return [first, *walker]

    assert fusee.compile(program, fullgraph=True)() == program()


def test_changed_size_raises() -> None:
    def program() -> str:
        values = {3, 1, 2}
        try:
            for value in values:
                values.add(value + 10)
        except RuntimeError as error:
            return str(error)
        return "none"

    assert fusee.compile(program, fullgraph=True)() == program()


class Counted(int):
    """An int that counts how often it is asked for its hash."""

    hashes = 0

    def __hash__(self) -> int:
        self.hashes += 1
        return int(self) * 5


def test_hashes_of_the_program() -> None:
    def program() -> tuple[list[int], list[int]]:
        items = dict.fromkeys(map(Counted, range(20)))
        values = set(items)
        values.difference_update(set(list(items)[::2]))
        return list(dict.fromkeys(values)), [item.hashes for item in items]

    assert fusee.compile(program, fullgraph=True)() == program()


def test_returned_set_keeps_the_order_that_was_seen() -> None:
    def program() -> tuple[list[int], set[int]]:
        values = set(range(0, 4000, 64))
        values.discard(128)
        values.add(16384)
        return list(values), values

    order, values = fusee.compile(program)()
    assert order == list(values)


def test_new_objects_in_any_order() -> None:
    """Nobody knows where new objects lie in memory: any order is right, as long as nobody can tell it from another."""

    class Item:
        pass

    def inside() -> int:
        items = {Item() for _ in range(10)}
        for number, item in enumerate(items):
            item.number = number
        return sum(item.number for item in items)

    def outside() -> tuple[list[Any], set[Any]]:
        items = {Item() for _ in range(10)}
        return list(items), items

    assert fusee.compile(inside, fullgraph=True)() == 45
    order, items = fusee.compile(outside)()
    assert order == list(items)


def test_sets_of_text() -> None:
    def program(names: list[str]) -> Any:
        grown = set()
        for name in names:
            grown.add(name + "s")
        return list(set(names)), list(frozenset(names)), dict.fromkeys({*names, "other"}), list(grown)

    names = [f"layer{number % 7}" for number in range(20)]
    assert fusee.compile(program, fullgraph=True)(names) == program(names)
    assert list(program(names)[2]) == list(fusee.compile(program, fullgraph=True)(names)[2])
