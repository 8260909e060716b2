"""What a program can find out about its frames, variables and exceptions is the same behind a break."""

from __future__ import annotations

import os
import traceback
from typing import Any

import pytest
import torch

import fusee


class Base:
    def go(self, n: int) -> tuple[str, int]:
        return type(self).__name__, n


class Direct(Base):
    @fusee.compile
    def go(self, n: int) -> Any:
        os.getpid()
        first = super().go(n)
        os.getpid()
        return first, super().go(n + 1)


class Closed(Base):
    def inner(self, n: int) -> Any:
        keep: Any = lambda: self  # noqa: E731  # so that self is a cell
        os.getpid()
        first = (os.getpid(), super().go(n))[1]
        os.getpid()
        names = {name: type(value).__name__ for name, value in locals().items()}
        return first, super().go(n + 1), keep() is self, names

    def outer(self, n: int) -> Any:
        first = self.inner(n)
        os.getpid()
        return first, os.getpid() and self.inner(n)


def test_super_without_arguments_behind_breaks() -> None:
    """It looks for the first variable where Python put it, whatever else rewritten code is given."""
    names = {"self": "Closed", "n": "int", "keep": "function", "first": "tuple", "__class__": "type"}
    for n in range(2):
        assert Direct().go(n) == (("Direct", n), ("Direct", n + 1))
        expected = ("Closed", n), ("Closed", n + 1), True, names
        assert fusee.compile(Closed.inner)(Closed(), n) == expected
        assert fusee.compile(Closed.outer)(Closed(), n) == (expected, expected)


def test_loops_with_breaks_that_evaluate_text_reach_the_same_code() -> None:
    """What rewritten code holds for itself does not pile up in code that may look at its variables by name."""

    def summed(n: int) -> int:
        total = 0
        for i in range(n):  # noqa: B007
            os.getpid()
            total += eval("i")
        return total

    fusee.reset()
    assert fusee.compile(summed)(50) == sum(range(50))
    assert fusee.stats()["breaks"] < 10


def test_breaks_that_lead_to_ever_new_code_come_to_an_end() -> None:
    """The limit is for a function together with all that goes on behind its breaks."""

    def counted() -> list[bool]:
        found = [os.getpid() > 0]
        found += [os.getpid() > 1]
        found += [os.getpid() > 2]
        found += [os.getpid() > 3]
        return found

    fusee.reset()
    compiled = fusee.compile(counted, options={"compile_limit": 3})
    with pytest.warns(fusee.FuseeWarning, match="compiled 3 times, the limit"):
        assert compiled() == counted()
    assert compiled() == counted()
    assert fusee.stats()["breaks"] == 3


def test_tracebacks_show_variables_that_nothing_reads_any_more() -> None:
    def inner(x: Any) -> Any:
        unread, pair = 5, (x, [1])  # noqa: F841
        doubled = x * 2  # noqa: F841
        return x + 1 / (len(pair) - 2)

    def outer(x: Any) -> Any:
        before = "text"  # noqa: F841
        return inner(x) * 2

    def variables(function: Any) -> list[dict[str, str]]:
        with pytest.raises(ZeroDivisionError) as caught:
            function(torch.ones(2))
        frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)][-2:]
        return [{k: repr(v) for k, v in sorted(frame.f_locals.items()) if k[0] != "."} for frame in frames]

    expected = variables(outer)
    assert variables(fusee.compile(outer)) == expected and "unread" in expected[1]
