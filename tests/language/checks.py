"""Runs a program as it is and compiled, and finds the differences."""

from __future__ import annotations

from typing import Any

from outcome import is_subsequence, run
from variants import Program, compiled

import fusee


def check(program: Program, place: tuple[int, int, int, int] | None = None) -> None:
    """Every call of the program gives the same compiled as plain, and compiling it does not fail."""
    fusee.reset()
    plain, ours = program.namespace(place), program.namespace(place)
    function = compiled(ours, program)
    pairs = list(zip(program.arguments(plain), program.arguments(ours), strict=True))
    for number, (given, taken) in enumerate([*pairs, pairs[0]]):
        compare(
            run(plain[program.name], given, plain, program.filename),
            run(function, taken, ours, program.filename),
            f"call {number} of {program.name}"
            + (f" with a break at line {place[0]}, columns {place[1]} to {place[3]}" if place else ""),
        )


def compare(eager: Any, captured: Any, what: str) -> None:
    """Fail where a compiled run differs from the plain one."""
    # A loop whose breaks carry ever new values reaches the limit of entries, which the warning rightly says.
    unexpected = [text for text in captured[3] if " entries, the limit; " not in text]
    assert unexpected == [], f"{what}: {unexpected}"
    assert captured[0] == eager[0], f"{what}: {difference(eager[0], captured[0])}"
    assert captured[1] == eager[1], f"{what} printed something else"
    assert captured[2][-1:] == eager[2][-1:], f"{what} was raised at another line"
    assert is_subsequence(eager[2], captured[2]), f"{what}: {captured[2]} instead of {eager[2]}"


def difference(eager: Any, captured: Any) -> str:
    """The innermost place in which two descriptions differ."""
    if isinstance(eager, tuple) and isinstance(captured, tuple) and len(eager) == len(captured):
        for one, other in zip(eager, captured, strict=True):
            if one != other:
                return difference(one, other)
    return f"{captured!r} instead of {eager!r}"
