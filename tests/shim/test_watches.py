"""The short form of a guard program that has held agrees with the whole program, whatever changes in between."""

from __future__ import annotations

import contextlib
import gc
import random
from collections import OrderedDict
from collections.abc import Callable
from types import CellType
from typing import Any

import pytest
import torch
from helpers import node, tensor_check

from fusee import _shim

Change = Callable[["World", random.Random], None]


class Part:
    """Keeps its fields inline until something asks for its dict."""

    def __init__(self, number: int) -> None:
        self.number = number


class Other:
    """Laid out like Part."""

    def __init__(self, number: int) -> None:
        self.number = number


class World:
    """Everything that a guard can hang on, in one object."""

    def __init__(self) -> None:
        self.number: Any = 1000
        self.ratio: Any = 0.5
        self.words: Any = ("a", 1)
        self.items: Any = [Part(1), Part(2)]
        self.pair: Any = (Part(3), Part(4))
        self.table: Any = {"key": Part(5), 7: "seven"}
        self.hooks: Any = OrderedDict()
        self.inline: Any = Part(6)
        self.dictionary: Any = Part(7)
        vars(self.dictionary)
        self.cell: Any = CellType(Part(8))
        self.weight: Any = torch.zeros(2, 3)
        self.step = 0
        vars(self)


GLOBAL: Any = Part(9)


def function() -> None:
    """A function whose globals are this module's."""


def part(accessor: tuple[Any, ...], number: int, *more: Any, capture: int = -1) -> tuple[Any, ...]:
    """The guards of one Part."""
    field = node(("field", "number"), ("equals", number))
    return node(accessor, ("type", Part), ("no_field", "missing"), *more, capture=capture, children=(field,))


def guards(world: World) -> tuple[Any, ...]:
    """A tree over the whole world, with every kind of check that can be watched."""
    fields = (
        node(("field", "number"), ("equals", 1000)),
        node(("field", "ratio"), ("equals", 0.5), capture=0),
        node(("field", "words"), ("equals", ("a", 1))),
        node(("field", "items"), ("type", list), ("len", 2), children=(part(("item", 0), 1), part(("item", 1), 2))),
        node(("field", "pair"), ("type", tuple), ("len", 2), children=(part(("item", 0), 3), part(("item", 1), 4))),
        node(
            ("field", "table"),
            ("type", dict),
            ("keys", ("key", 7)),
            ("absent", "gone"),
            children=(part(("key", "key"), 5, capture=1), node(("items_at", 1), ("equals", "seven"))),
        ),
        node(("field", "hooks"), ("type", OrderedDict), ("len", 0)),
        part(("field", "inline"), 6),
        part(("field", "dictionary"), 7),
        node(("field", "cell"), ("type", CellType), children=(part(("contents",), 8, ("distinct", 1)),)),
        node(("field", "weight"), tensor_check(world.weight), capture=2),
        node(("dict",), ("absent", "nothing"), children=(node(("key", "step"), ("range", 0, 1 << 40)),)),
    )
    return (
        node(("arg", 0), ("type", World), ("no_field", "forward"), children=fields),
        part(("global", "GLOBAL"), 9),
        node(("arg", 1), ("type", list), ("len", 1)),
    )


def set_to(name: str, *values: Callable[[], Any]) -> Change:
    """A field gets a new object, equal to the one before or not."""
    return lambda world, choice: setattr(world, name, choice.choice(values)())


def number_of(select: Callable[[World], Any]) -> Change:
    """A part somewhere below gets another number, or the same once more."""

    def change(world: World, choice: random.Random) -> None:
        found = select(world)
        found.number = choice.choice([found.number, int(str(found.number)), found.number + 1, found.number - 1])

    return change


def toggle(select: Callable[[World], Any], name: str) -> Change:
    """A field comes or goes."""

    def change(world: World, choice: random.Random) -> None:
        owner = select(world)
        if hasattr(owner, name):
            delattr(owner, name)
        else:
            setattr(owner, name, choice.random())

    return change


def toggle_key(select: Callable[[World], Any], key: Any) -> Change:
    """A key of a dict comes or goes."""

    def change(world: World, choice: random.Random) -> None:
        table = select(world)
        if table.pop(key, None) is None:
            table[key] = choice.random()

    return change


def change_class(world: World, choice: random.Random) -> None:
    world.inline.__class__ = choice.choice([Part, Part, Other])


def change_global(world: World, choice: random.Random) -> None:
    globals()["GLOBAL"] = choice.choice([Part(9), Part(9), Part(10), GLOBAL])


def replace_dict(world: World, choice: random.Random) -> None:
    world.dictionary.__dict__ = {"number": choice.choice([7, 7, 8])}


def change_tensor(world: World, choice: random.Random) -> None:
    world.weight.data = choice.choice([torch.ones(2, 3), torch.ones(2, 3), torch.ones(3, 2)])


def count(world: World, choice: random.Random) -> None:
    world.step += choice.choice([1, 1, -1])


CHANGES: list[Change] = [
    set_to("number", lambda: 1000, lambda: int("1000"), lambda: int("1001")),
    set_to("ratio", lambda: float("0.5"), lambda: float("0.25")),
    set_to("words", lambda: tuple(sorted({"a": 1}.items())[0]), lambda: ("a", True)),
    set_to("items", lambda: [Part(1), Part(2)], lambda: [Part(1)], lambda: [Part(1), Other(2)]),
    set_to("pair", lambda: (Part(3), Part(4)), lambda: (Part(3), Part(4), 1), lambda: (Part(4), Part(4))),
    set_to("table", lambda: {"key": Part(5), 7: "seven"}, lambda: {7: "seven", "key": Part(5)}),
    set_to("hooks", OrderedDict, OrderedDict, dict),
    set_to("inline", lambda: Part(6), lambda: Part(6), lambda: Other(6)),
    set_to("cell", lambda: CellType(Part(8)), lambda: CellType(), lambda: [Part(8)]),
    set_to("weight", lambda: torch.zeros(2, 3), lambda: torch.zeros(2, 3, dtype=torch.float64)),
    number_of(lambda world: world.items[0]),
    number_of(lambda world: world.pair[0]),
    number_of(lambda world: world.inline),
    number_of(lambda world: world.dictionary),
    toggle(lambda world: world.inline, "missing"),
    toggle(lambda world: world.dictionary, "missing"),
    toggle(lambda world: world, "forward"),
    toggle_key(lambda world: world.hooks, 1),
    toggle_key(lambda world: world.table, "gone"),
    toggle_key(vars, "nothing"),
    lambda world, choice: world.items.__setitem__(0, Part(choice.choice([1, 1, 2]))),
    change_class,
    change_global,
    replace_dict,
    change_tensor,
    count,
    lambda world, choice: vars(world.inline) and None,
    lambda world, choice: gc.collect() and None,
]


def agree(program: _shim.GuardProgram, bound: tuple[Any, ...]) -> bool:
    """The verdict, which the short form and the whole program share."""
    captured = program.check(function, bound)
    number, _ = program.explain(function, bound)
    assert (captured is not None) == (number == -1), number
    world = bound[0]
    assert captured is None or captured == (world.ratio, world.table["key"], world.weight)
    return captured is not None


@pytest.mark.parametrize("seed", range(8))
def test_short_form_agrees_with_the_whole_program(seed: int) -> None:
    choice = random.Random(seed)
    globals()["GLOBAL"] = Part(9)
    world = World()
    program = _shim.GuardProgram(guards(world), 3)
    assert agree(program, (world, [1]))
    verdicts = []
    for step in range(200):
        if not agree(program, (world, [step])) and choice.random() < 0.5:
            world = World()  # so that most steps start from a world that holds
            globals()["GLOBAL"] = Part(9)
            agree(program, (world, [step]))
        for _ in range(choice.choice([0, 1, 1, 2])):
            # the part that it changes may be of another kind by now
            with contextlib.suppress(AttributeError, IndexError, ValueError, TypeError):
                choice.choice(CHANGES)(world, choice)
        verdicts.append(agree(program, (world, [step])))
    assert 20 < sum(verdicts) < 180


def test_arguments_of_any_length_are_told_apart() -> None:
    world = World()
    program = _shim.GuardProgram(guards(world), 3)
    assert agree(program, (world, [1]))
    assert not agree(program, (world, [1, 2]))
    assert program.check(function, (world,)) is None
    assert agree(program, (world, [3]))


def test_an_object_that_lives_at_the_address_of_a_dead_one() -> None:
    world = World()
    program = _shim.GuardProgram(guards(world), 3)
    for number in [6, 6, 6, 7, 6, 8] * 50:
        world.inline = None
        world.inline = Part(number)
        assert agree(program, (world, [1])) == (number == 6)


def test_an_item_that_is_replaced_while_it_lives_on() -> None:
    world = World()
    program = _shim.GuardProgram(guards(world), 3)
    kept = [world.items[0]]
    for number in [1, 1, 2, 1]:
        world.items[0] = Part(number)
        kept.append(world.items[0])
        assert agree(program, (world, [1])) == (number == 1)


def test_a_number_that_lives_at_the_address_of_a_dead_one() -> None:
    world = World()
    program = _shim.GuardProgram(guards(world), 3)
    for number in ["1000", "1000", "1001", "1000", "1002"] * 50:
        world.number = None
        world.number = int(number)
        assert agree(program, (world, [1])) == (number == "1000")


def test_a_key_with_its_own_comparison_is_compared_by_the_whole_program() -> None:
    compared = []

    class Key:
        def __hash__(self) -> int:
            return hash("gone")

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            world.inline = Part(6)
            return False

    world = World()
    program = _shim.GuardProgram(guards(world), 3)
    assert agree(program, (world, [1]))
    world.table = {"key": Part(5), 7: "seven"}
    world.table[Key()] = 1
    assert not agree(program, (world, [1]))
    world.table.popitem()
    assert agree(program, (world, [1]))


def test_the_short_form_keeps_nothing_alive() -> None:
    world = World()
    program = _shim.GuardProgram(guards(world), 3)
    for _ in range(3):
        assert agree(program, (world, [1]))
    references = gc.get_referrers(world.inline)
    assert references in ([], [vars(world)])
    assert program.check(function, (None, [1])) is None


def test_a_lookup_that_failed_in_the_short_form_is_looked_at_again() -> None:
    def plain() -> None:
        """A function with globals."""

    key = node(("key", "k"), ("equals", 5))
    others = tuple(node(("object", object()), capture=index) for index in range(6))
    program = _shim.GuardProgram((*others, node(("arg", 0), ("type", dict), children=(key,))), 6)
    for value in (5, 5, 5, "s", 7, 5, "s"):
        assert (program.check(plain, ({"k": value},)) is not None) is (value == 5)
