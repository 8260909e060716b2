"""Class methods of builtin types and vars(), where the program itself catches what they raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from outcome import run

import fusee


class Number(int):
    pass


class Flag:
    pass


def of_the_class(value: Any) -> Any:
    try:
        return int.from_bytes(b"ab", "big"), bytes.fromhex("6162"), bytearray.fromhex("61"), float.fromhex("0x1p3")
    except Exception as error:
        return repr(error)


def of_an_instance(value: Any) -> Any:
    try:
        return (5).from_bytes(b"a", "big"), (1.5).fromhex("0x1p3"), b"".fromhex("61")
    except Exception as error:
        return repr(error)


def of_a_class_that_derives(value: Any) -> Any:
    try:
        made = bool.from_bytes(b"\1", "big"), Number.from_bytes(b"ab", "big")
        return made, [type(one).__name__ for one in made]
    except Exception as error:
        return repr(error)


def with_keywords_and_mapped(value: Any) -> Any:
    try:
        return int.from_bytes(b"a", byteorder="little", signed=True), list(map(bytes.fromhex, ["61", "62"]))
    except Exception as error:
        return repr(error)


def with_arguments_that_do_not_fit(value: Any) -> Any:
    try:
        return int.from_bytes(b"ab", "neither")
    except ValueError as error:
        return repr(error)


def variables_in_a_generator(value: Any) -> Any:
    def changing() -> Any:
        yield 1
        vars(value)["v"] = 1

    try:
        return list(changing()), vars(value)
    except TypeError as error:
        return error.args


FUNCTIONS = [
    of_the_class,
    of_an_instance,
    of_a_class_that_derives,
    with_keywords_and_mapped,
    with_arguments_that_do_not_fit,
    variables_in_a_generator,
]


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_same_as_plain(function: Callable[..., Any]) -> None:
    fusee.reset()
    compiled = fusee.compile(function)
    for make in (lambda: "text", lambda: 3, Flag, lambda: None):
        assert run(compiled, (make(),), {}, __file__) == run(function, (make(),), {}, __file__)
