"""A line on the terminal while a compile takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

SECONDS = 0.25  # between two looks at the clock
PATIENCE = 1.0  # seconds after which something is said
_CLEAR = "\r\x1b[K"

Waits = Callable[[], None]


def nobody() -> None:
    """Nobody is told that something takes long."""


class Line:
    """Says how long something takes once that is more than a second, where standard error is a terminal.

    The line is gone when the ``with`` block has ended. Call the object again and again meanwhile.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = time.monotonic()
        self._shown = False

    def __call__(self) -> None:
        """Show the seconds that have passed."""
        passed = time.monotonic() - self._started
        if passed >= PATIENCE and (terminal := _terminal()) is not None:
            _write(terminal, f"{_CLEAR}fusee: {self._what}, {passed:.1f} s")
            self._shown = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and (terminal := _terminal()) is not None:
            _write(terminal, _CLEAR)


def _terminal() -> TextIO | None:
    """Standard error as the process got it, if it is a terminal: what the program redirects is the program's."""
    stream = sys.__stderr__
    try:
        return stream if stream is not None and stream.isatty() else None
    except ValueError:  # it was closed
        return None


def _write(terminal: TextIO, text: str) -> None:
    try:
        terminal.write(text)
        terminal.flush()
    except (OSError, ValueError):
        return  # nothing is lost
