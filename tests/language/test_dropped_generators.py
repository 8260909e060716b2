"""Generators that end where their last reference goes, as what stands behind them may tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from outcome import run

import fusee


def counting(log: list[Any]) -> Iterator[int]:
    try:
        yield 1
        yield 2
    finally:
        log.append("ended")


def loop_that_is_left(log: list[Any]) -> Any:
    for _ in range(2):
        for item in counting(log):
            log.append(item)
            break
        log.append("behind")
    return log


def loop_that_returns(log: list[Any]) -> Any:
    for item in counting(log):
        return log.append(item)


def calls_what_returns(log: list[Any]) -> Any:
    loop_that_returns(log)
    log.append("behind")
    return log


def deleted_variable(log: list[Any]) -> Any:
    items = counting(log)
    next(items)
    del items
    log.append("behind")
    return log


def deleted_variable_that_is_read(log: list[Any]) -> Any:
    items = counting(log)
    next(items)
    del items
    log.append("behind")
    try:
        return items  # noqa: F821
    except UnboundLocalError as error:
        return str(error), log


def variable_that_is_set(log: list[Any]) -> Any:
    items: Any = counting(log)
    next(items)
    items = 1
    log.append("behind")
    return log, items


def loop_that_raises(log: list[Any]) -> Any:
    try:
        for item in counting(log):
            log.append([][item])
    except IndexError as error:
        log.append(str(error))
    return log


def raises_in_a_loop(log: list[Any]) -> None:
    for item in counting(log):
        raise KeyError(item)


def calls_what_raises(log: list[Any]) -> Any:
    try:
        raises_in_a_loop(log)
    except KeyError as error:
        log.append(str(error))
    return log


def given_generator(log: list[Any], items: Iterator[int]) -> Any:
    for item in items:
        log.append(item)
        break
    log.append("behind")
    return log


FUNCTIONS = [
    loop_that_is_left,
    loop_that_returns,
    calls_what_returns,
    loop_that_raises,
    calls_what_raises,
    deleted_variable,
    deleted_variable_that_is_read,
    variable_that_is_set,
]


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")  # what runs as plain Python is the same anyway
@pytest.mark.parametrize("function", FUNCTIONS)
def test_generators_end_where_nothing_holds_them(function: Callable[..., Any]) -> None:
    fusee.reset()
    compiled = fusee.compile(function)
    for _ in range(2):
        assert run(compiled, ([],), {}, __file__) == run(function, ([],), {}, __file__)


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")
def test_a_generator_that_the_caller_holds_goes_on() -> None:
    fusee.reset()
    compiled = fusee.compile(given_generator)
    for _ in range(2):
        log: list[Any] = []
        items = counting(log)
        assert compiled(log, items) == [1, "behind"]
        assert list(items) == [2] and log == [1, "behind", "ended"]
