"""Warnings of which one is given for each cause."""

from __future__ import annotations

import warnings

from .errors import FuseeWarning

_given: set[str] = set()


def once(cause: str, message: str) -> None:
    """Warn about a cause the first time it comes up."""
    if cause not in _given:
        _given.add(cause)
        warnings.warn(f"fusee: {message}", FuseeWarning, stacklevel=3)


def forget() -> None:
    """Let every cause warn again."""
    _given.clear()
