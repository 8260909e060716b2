"""What CPython's own tests of the language found under capture: one small program for each kind of fault."""

from __future__ import annotations

import enum
import gc
import importlib
import os
import re
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import fusee


@pytest.fixture(autouse=True)
def clean() -> Any:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def characters(text: str) -> tuple[int, list[str], str]:
    whole = "z\ud834\udd20é\U0001d120" + text
    return len(whole), list(whole), whole


def test_lone_surrogates_are_one_character_each() -> None:
    assert fusee.compile(characters)("\udd20") == characters("\udd20")


def directories(path: str) -> list[bool]:
    return [entry.is_dir(follow_symlinks=False) for entry in os.scandir(path)]


def test_methods_that_take_their_defining_class_are_bound(tmp_path: Path) -> None:
    """CPython 3.11 crashes where such a method's descriptor is bound without a type."""
    (tmp_path / "inner").mkdir()
    assert fusee.compile(directories)(str(tmp_path)) == [True]


class Meta(type):
    def __contains__(cls, item: Any) -> bool:
        return bool(item == 3)

    def __iter__(cls) -> Any:
        return iter([1, 2])

    def __len__(cls) -> int:
        return 0

    def __eq__(cls, other: Any) -> bool:
        return bool(other == 3)

    __hash__ = type.__hash__


class Class(metaclass=Meta):
    pass


class Answering(tuple[int, ...]):
    def __contains__(self, item: Any) -> bool:
        return bool(item == 3)

    def __len__(self) -> int:
        return 9

    def __bool__(self) -> bool:
        return False


class Permission(enum.IntFlag):
    READ = 1


class Colour(enum.IntFlag):
    RED = 1


def asked(values: Any) -> list[Any]:
    found = [3 in values, 1 in values, bool(values), not values, len(values), 1 if values else 2]
    return [*found, Class == 3, Class != 3, Class in [3], [3].count(Class), Class == Class, Class in {3}]


@pytest.mark.parametrize("values", [Class, Answering((1,))])
def test_classes_of_classes_and_of_tuples_are_asked(values: Any) -> None:
    assert fusee.compile(asked)(values) == asked(values)


def test_members_of_another_enum() -> None:
    def members() -> list[bool]:
        return [Colour.RED in Colour, Colour.RED in Permission]

    assert fusee.compile(members)() == members() == [True, False]


def test_attributes_of_immutable_classes_raise_where_they_are_set() -> None:
    def refused(cls: Any) -> str:
        try:
            cls.attribute = 1
        except TypeError as error:
            return str(error)
        return ""

    assert fusee.compile(refused)(re.Match) == refused(re.Match) != ""


class Referent:
    pass


def test_weak_references_to_what_a_variable_held_last() -> None:
    def alive() -> list[bool]:
        value = Referent()
        reference = weakref.ref(value)
        os.getpid()
        before = reference() is value
        del value
        return [before, reference() is None]

    def replaced() -> bool:
        value: Any = Referent()
        reference = weakref.ref(value)
        os.getpid()
        value = None
        return reference() is value

    assert fusee.compile(alive)() == alive() == [True, True]
    assert fusee.compile(replaced)() == replaced() is True


def imported() -> str:
    from package_of_a_test import submodule

    name: str = submodule.NAME
    return name


def test_modules_of_packages_are_imported_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package_of_a_test"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "submodule.py").write_text("NAME = __name__\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("package_of_a_test")
    assert fusee.compile(imported)() == "package_of_a_test.submodule"
    for name in [name for name in sys.modules if name.startswith("package_of_a_test")]:
        monkeypatch.delitem(sys.modules, name)


def traced(x: int) -> list[str]:
    seen: list[str] = []

    def tracer(frame: Any, event: str, argument: Any) -> Any:
        seen.append(f"{event} of {frame.f_code.co_name}")
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    x += 1
    characters("")
    sys.settrace(before)
    return seen


def around(x: int) -> tuple[int, list[str]]:
    return x + 1, traced(x)


def test_a_function_that_sets_a_trace_function_runs_in_python() -> None:
    explained = fusee.explain(traced)(1)
    assert [found["id"] for found in explained.breaks] == ["trace-function"]
    assert fusee.compile(traced)(1) == traced(1)
    assert fusee.compile(around)(1) == around(1)


def test_a_compile_leaves_no_cycles_behind() -> None:
    """A program that counts what the collector finds counts its own objects only."""
    fusee.compile(lambda x: x * 2)(3)
    compiled = fusee.compile(lambda x: x + 1)
    gc.collect()
    compiled(3)
    assert gc.collect() == 0
