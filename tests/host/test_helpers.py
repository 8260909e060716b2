"""What rewritten code makes with helpers equals what Python makes, without running code of the user."""

from __future__ import annotations

import collections
import dataclasses
import functools
from typing import Any

import pytest
import torch

from fusee import _helpers


class Loud:
    __slots__ = ("__dict__", "slot")

    def __init__(self) -> None:
        raise AssertionError("code of the user ran")

    __new__ = __setattr__ = __delattr__ = __init__  # type: ignore[assignment]
    guarded = property(__init__, __init__)


def test_objects_and_fields() -> None:
    made = _helpers.new_object(Loud)
    for name in ("field", "slot", "guarded"):
        _helpers.set_field(made, name, name)
    assert made.__dict__ == {"field": "field", "guarded": "guarded"} and made.slot == "slot"
    _helpers.delete_field(made, "field")
    assert made.__dict__ == {"guarded": "guarded"}


def test_frozen_dataclass() -> None:
    @dataclasses.dataclass(frozen=True)
    class Point:
        x: int
        y: int

    made = _helpers.new_object(Point)
    _helpers.set_field(made, "x", 1)
    _helpers.set_field(made, "y", 2)
    assert made == Point(1, 2)


def test_subclass_of_a_builtin() -> None:
    class Table(dict[str, int]):
        pass

    assert type(_helpers.new_object(Table)) is Table


def test_tuples() -> None:
    Pair = collections.namedtuple("Pair", "a b")
    assert _helpers.new_tuple(Pair, (1, 2)) == Pair(1, 2)
    real = torch.max(torch.ones(2, 3), 1)
    made = _helpers.new_tuple(type(real), tuple(real))
    assert type(made) is type(real) and made.values is real.values


def test_containers() -> None:
    items, table = [1, 2], {"a": 1, "b": 2}
    _helpers.extend_list(items, (3,))
    assert items == [1, 2, 3]
    _helpers.replace_list(items, (9,))
    assert items == [9]
    _helpers.delete_item(table, "a")
    assert table == {"b": 2}


def test_exceptions() -> None:
    class Mine(ValueError):
        def __init__(self, text: str) -> None:
            raise AssertionError("code of the user ran")

    cause = KeyError("k")
    error = _helpers.make_exception(Mine, ("text", 3), cause, True)
    assert type(error) is Mine and error.args == ("text", 3)
    assert error.__cause__ is cause and error.__suppress_context__
    missing: Any = _helpers.make_exception(FileNotFoundError, (2, "no such file", "name"), None, False)
    assert (missing.errno, missing.strerror, missing.filename) == (2, "no such file", "name")


def test_functions() -> None:
    factor = 3

    def scale(x: int, y: int = 2, *, z: int = 5) -> int:
        return (x + y + z) * factor

    annotations = ("x", int)
    parts = (scale.__code__, globals(), "outer.scale", scale.__defaults__, scale.__kwdefaults__, scale.__closure__)
    made = _helpers.make_function(*parts, annotations)
    assert made(1) == scale(1) and made(1, z=0) == scale(1, z=0)
    assert made.__qualname__ == "outer.scale"
    assert made.__annotations__ == {"x": int}
    partial = _helpers.make_partial(scale, (1,), {"z": 0})
    assert isinstance(partial, functools.partial) and partial() == scale(1, z=0)


@pytest.mark.parametrize("items", [[1, 2, 3], (1, 2, 3)])
@pytest.mark.parametrize("position", [0, 1, 3])
def test_iterators(items: Any, position: int) -> None:
    iterator = _helpers.make_iterator(items, position)
    assert type(iterator) is type(iter(items))
    assert list(iterator) == list(items[position:])
