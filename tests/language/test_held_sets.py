"""What a compiled function asks of existing sets that hold objects: `in`, `len` and truth, as members come and go."""

from __future__ import annotations

import enum
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import fusee

X = torch.arange(3.0)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


class Plain:
    pass


class Kind(enum.Enum):
    RED = 1
    BLUE = 2


class Named(int):
    """A constant with a name, as the compiler of regular expressions uses."""

    name: str

    def __new__(cls, value: int, name: str) -> Named:
        self = super().__new__(cls, value)
        self.name = name
        return self


class Keyed:
    """Equal to others by a key, and counts how often it is asked."""

    asked = 0

    def __init__(self, key: int) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        Keyed.asked += 1
        return isinstance(other, Keyed) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


ONE, OTHER, THIRD = Plain(), Plain(), Plain()
LITERAL, RANGE, BRANCH = Named(1, "literal"), Named(2, "range"), Named(3, "branch")
PARAMETER = torch.nn.Parameter(torch.ones(2))


def asks(x: Any, members: Any, item: Any) -> Any:
    return x + 1, item in members, item not in members, "text" in members, len(members), bool(members)


ITEMS = [
    pytest.param({ONE, OTHER}, [ONE, THIRD, OTHER, 3], id="objects"),
    pytest.param({Kind.RED}, [Kind.RED, Kind.BLUE], id="enum"),
    pytest.param(frozenset({LITERAL, RANGE}), [LITERAL, BRANCH, 2, 3, True], id="int subclass"),
    pytest.param({(1, ONE), (2, "x")}, [(2, "x"), (1, ONE), (1, OTHER), (2, "y")], id="tuples"),
    pytest.param({PARAMETER}, [PARAMETER, ONE, "text"], id="tensors"),
    pytest.param({Keyed(1), ONE}, [Keyed(1), Keyed(2), ONE, 1, "text"], id="compared by methods"),
    pytest.param({ONE, None, 1.5, b"a"}, [None, 1.5, b"a", float("nan")], id="mixed"),
    pytest.param({frozenset({1}), ONE}, [frozenset({1}), {1}, 1], id="frozen sets"),
    pytest.param({Plain, len, asks, ONE}, [Plain, len, asks, int, print], id="classes and functions"),
]


@pytest.mark.parametrize(("members", "items"), ITEMS)
def test_same_as_python(members: Any, items: list[Any]) -> None:
    compiled = fusee.compile(asks)
    for item in [*items, *items]:
        assert compiled(X, members, item)[1:] == asks(X, members, item)[1:]


def test_one_graph() -> None:
    def keep(x: Any, members: Any, item: Any, number: Any) -> Any:
        y = x * 2 if item in members else x * 3
        return y + 1 if members and number in KINDS else y - 1

    compiled = fusee.compile(keep, fullgraph=True)
    for members in ({ONE}, {OTHER, THIRD}):
        for item in (ONE, OTHER):
            for number in (LITERAL, BRANCH):
                assert torch.equal(compiled(X, members, item, number), keep(X, members, item, number))


KINDS = frozenset({LITERAL, RANGE})


def test_members_that_come_and_go_need_no_other_entry() -> None:
    def known(x: Any, members: Any, item: Any) -> Any:
        return x * 2 if item in members else x * 3

    compiled = fusee.compile(known)
    members = {ONE}
    assert torch.equal(compiled(X, members, ONE), X * 2)
    assert torch.equal(compiled(X, members, OTHER), X * 3)
    entries = fusee.stats()["recompiles"]
    for _ in range(20):
        members.add(Plain())
        assert torch.equal(compiled(X, members, OTHER), X * 3)
        assert torch.equal(compiled(X, members, Plain()), X * 3)
    members.add(OTHER)
    assert torch.equal(compiled(X, members, OTHER), X * 2)
    members.remove(ONE)
    assert torch.equal(compiled(X, members, ONE), X * 3)
    assert fusee.stats()["recompiles"] == entries


def test_unhashable_items_raise() -> None:
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        fusee.compile(asks)(X, {ONE}, [1])


def test_comparisons_by_the_program_are_as_many() -> None:
    def known(members: Any, item: Any) -> bool:
        return item in members

    members, item = {Keyed(1), ONE}, Keyed(1)
    compiled = fusee.compile(known)
    for _ in range(3):
        before = Keyed.asked
        assert compiled(members, item)
        assert Keyed.asked - before == 1


def test_keeps_no_member_alive() -> None:

    member = Plain()
    members = {member, ONE}
    assert fusee.compile(asks)(X, members, member)[1]
    watched = weakref.ref(member)
    members.discard(member)
    del member
    gc.collect()
    assert watched() is None
