"""Errors of graphs that Python runs have the tracebacks that they have uncompiled."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import torch

import fusee


def weighted(x: Any, weight: Any) -> Any:
    return (x * weight).sum()


def spoiled(x: Any, weight: Any) -> Any:
    total = weighted(x, weight)
    weight.add_(1)

    total.backward()
    return x.grad


def written_ahead(weight: Any, x: Any) -> Any:
    return spoiled(
        x,
        weight,
    )


def behind_a_break(weight: Any, x: Any) -> Any:
    torch.manual_seed(3)
    return written_ahead(weight, x)


def frames(function: Callable[..., Any]) -> list[tuple[str, int | None, str]]:
    """Function, line and text of each frame of this file that the error passed, this function's own apart."""
    weight, x = torch.zeros(3), torch.ones(3, requires_grad=True)
    try:
        function(weight, x)
    except RuntimeError as error:
        assert weight.tolist() == [1, 1, 1]
        found = traceback.extract_tb(error.__traceback__)
        assert not any("<fusee" in frame.filename for frame in found)
        return [(frame.name, frame.lineno, frame.line or "") for frame in found if frame.filename == __file__][1:]
    raise AssertionError("it does not raise")


def test_an_error_behind_a_write_shows_the_calls_it_came_from() -> None:
    for function in (written_ahead, behind_a_break):
        compiled = fusee.compile(function)
        wanted = frames(function)
        assert [name for name, *_ in wanted][-2:] == ["written_ahead", "spoiled"]
        assert frames(compiled) == wanted
        assert frames(compiled) == wanted
