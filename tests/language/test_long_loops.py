"""Code behind breaks is called when the code before them has returned, so no stack, frames or objects are kept."""

from __future__ import annotations

import sys
import traceback
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import fusee

X = torch.ones(2)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def depth() -> int:
    """How many Python frames there are."""
    count, frame = 0, sys._getframe()
    while frame is not None:
        count, frame = count + 1, frame.f_back  # type: ignore[assignment]
    return count


def test_a_long_loop_with_a_break_takes_no_stack() -> None:
    depths = []

    @fusee.disable
    def note() -> None:
        depths.append(depth())

    def add(x: Any, times: int) -> Any:
        while times:
            x = x + 1
            note()
            times -= 1
        return x

    torch.testing.assert_close(fusee.compile(add)(X, 3000), X + 3000, rtol=0, atol=0)
    assert len(depths) == 3000 and len(set(depths)) == 1


def test_breaks_below_the_loop_of_an_inlined_function_share_their_code() -> None:
    @fusee.disable
    def cut() -> None: ...

    def inner(x: Any, times: int) -> Any:
        while times:
            x = x + 1
            cut()
            times -= 1
        return x

    def outer(x: Any, times: int) -> Any:
        return inner(x, times) * 2

    counts = []
    for times in (10, 30):
        fusee.reset()
        torch.testing.assert_close(fusee.compile(outer)(X, times), (X + times) * 2, rtol=0, atol=0)
        counts.append(fusee.stats()["graphs"])
    assert counts[0] == counts[1] < 10


def test_tracebacks_show_each_frame_once() -> None:
    @fusee.disable
    def cut(x: Any) -> None:
        if float(x.sum()) > 7:
            raise ValueError

    def inner(x: Any) -> Any:
        for _ in range(5):
            x = x + 1
            cut(x)
        return x

    def outer(x: Any) -> Any:
        return inner(x) * 2

    def names(function: Any) -> list[str]:
        with pytest.raises(ValueError) as caught:
            function(X)
        return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1:]

    expected = names(outer)
    assert names(fusee.compile(outer)) == expected == ["outer", "inner", "disabled", "cut"]


def test_what_is_deleted_behind_a_break_is_gone() -> None:
    class Thing:
        pass

    alive: list[bool] = []

    @fusee.disable
    def look(reference: Any) -> None:
        alive.append(reference() is not None)

    def run(x: Any) -> Any:
        thing = Thing()
        reference = weakref.ref(thing)
        x = x + 1
        look(reference)
        del thing
        look(reference)
        return x

    torch.testing.assert_close(fusee.compile(run)(X), X + 1, rtol=0, atol=0)
    assert alive == [True, False]


def test_super_finds_class_methods_behind_the_class_that_overrides_them() -> None:
    class Base:
        def __init_subclass__(cls, **keywords: Any) -> None:
            super().__init_subclass__(**keywords)

    def define(x: Any) -> Any:
        Base.__init_subclass__()
        return x + 1

    torch.testing.assert_close(fusee.compile(define)(X), X + 1, rtol=0, atol=0)
