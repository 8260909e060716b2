"""Tracebacks of graphs that Python runs: they show the calls that the failing operation was captured in."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Call = tuple[str, str, int, int]  # function, file, line, and the place of the caller, -1 for none
_OUTERMOST = "<fusee>"  # in the globals of the outermost frame, for the shim, which drops what is further out
_RAISING = compile("raise Exception", "", "exec")
_NO_COLUMNS = 0x80 | 13 << 3  # entry of a location table (Objects/locations.md of CPython)


def showing_calls(
    run: types.FunctionType, calls: Sequence[Call], innermost: Mapping[int, int]
) -> Callable[..., tuple[Any, ...]]:
    """The function, whose exceptions pass ``calls`` instead of it; ``innermost`` gives the last one for each line."""

    def shown(*inputs: Any) -> tuple[Any, ...]:
        try:
            return run(*inputs)  # type: ignore[no-any-return]
        except BaseException as error:
            error.__traceback__ = _shown(error.__traceback__, run.__code__.co_filename, calls, innermost)
            raise

    return shown


def _shown(
    trace: types.TracebackType | None, filename: str, calls: Sequence[Call], innermost: Mapping[int, int]
) -> types.TracebackType | None:
    """The traceback with calls in the place of the graph's own frame; as it is where that stands at another line."""
    at = trace
    while at is not None:
        if at.tb_frame.f_code.co_filename == filename and at.tb_lineno in innermost:
            return _leading_to(at.tb_next, calls, innermost[at.tb_lineno])
        at = at.tb_next
    return trace


def _leading_to(inner: types.TracebackType | None, calls: Sequence[Call], place: int) -> types.TracebackType | None:
    while place >= 0:
        function, file, line, place = calls[place]
        frame = _frame(function, file, line, {_OUTERMOST: True} if place < 0 else {})
        inner = types.TracebackType(inner, frame, frame.f_lasti, line)
    return inner


def _frame(function: str, file: str, line: int, namespace: dict[str, Any]) -> types.FrameType:
    """A frame that looks like one of the function at the line."""
    units = len(_RAISING.co_code) // 2
    table = b"".join(bytes([_NO_COLUMNS | min(8, units - at) - 1, 0]) for at in range(0, units, 8))
    code = _RAISING.replace(
        co_name=function, co_qualname=function, co_filename=file, co_firstlineno=line, co_linetable=table
    )
    try:
        exec(code, namespace)
    except Exception as error:
        assert error.__traceback__ is not None and error.__traceback__.tb_next is not None
        return error.__traceback__.tb_next.tb_frame
    raise AssertionError("it raises")
