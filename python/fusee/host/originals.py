"""The constants of the program's own code, found again by value.

Rewritten code comes from the compiler as bytes, which make new objects of its constants. Where the program's code holds
an equal one, that very object is used: guards on the code of a function then hold for whichever code made it, a
frozen set keeps the order in which it is walked, which marshal does not, and what ``is`` tells of a text or number
stays true.
"""

from __future__ import annotations

import marshal
import types
from collections.abc import Iterable
from typing import Any

_NO_REFERENCES = 2  # marshal versions below 3 write equal objects as equal bytes


class Originals:
    """The constants of the functions among some objects, by value."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self._codes = [value.__code__ for value in objects if type(value) is types.FunctionType]
        self._known: dict[Any, Any] | None = None

    def of(self, constant: Any) -> Any:
        """The program's own object that is equal to a constant and of its type; None if there is none."""
        if self._known is None:
            self._known = {}
            for code in self._codes:
                self._collect(code, self._known)
        return self._known.get(_key(constant))

    def _collect(self, code: types.CodeType, known: dict[Any, Any]) -> None:
        for constant in code.co_consts:
            known.setdefault(_key(constant), constant)
            if type(constant) is types.CodeType:
                self._collect(constant, known)
        known.pop(b"", None)


def _key(constant: Any) -> Any:
    """Equal keys for equal constants of equal types; empty bytes for what holds live objects."""
    if type(constant) in (str, int, bytes):
        return type(constant), constant
    try:
        return marshal.dumps(constant, _NO_REFERENCES)
    except ValueError:
        return b""
