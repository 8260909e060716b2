"""Warnings of which one is given for each cause."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from .errors import FuseeWarning

_PACKAGE = str(Path(__file__).parent)
_EVERYTHING = ""  # among the causes: nothing is said any more
_given: set[str] = set()


def once(cause: str, message: str) -> None:
    """Warn about a cause the first time it comes up, at the line of the program that led to it."""
    if not _given & {cause, _EVERYTHING}:
        _given.add(cause)
        warnings.warn(f"fusee: {message}", FuseeWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """How far up the first frame outside this package is, as ``warnings.warn`` in :func:`once` counts."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def forget() -> None:
    """Let every cause warn again."""
    _given.intersection_update({_EVERYTHING})


def silence() -> None:
    """Give no warning any more, as a program under test may look at its warnings."""
    _given.add(_EVERYTHING)
