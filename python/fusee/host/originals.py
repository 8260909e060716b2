"""The constants of the program's own code, found again by value.

Rewritten code comes from the compiler as bytes, which make new objects of its constants. Where the program's code holds
an equal one, that very object is used: guards on the code of a function then hold for whichever code made it, and a
frozen set keeps the order in which it is walked, which marshal does not.
"""

from __future__ import annotations

import marshal
import types
from collections.abc import Iterable
from typing import Any

_NO_REFERENCES = 2  # marshal versions below 3 write equal objects as equal bytes


class Originals:
    """Nested code objects and frozen sets of the functions among some objects, by value."""

    def __init__(self, objects: Iterable[Any]) -> None:
        self._codes = [value.__code__ for value in objects if type(value) is types.FunctionType]
        self._known: dict[bytes, Any] | None = None

    def of(self, constant: Any) -> Any:
        """The program's own object that is equal to a code object or frozen set; None if there is none."""
        if self._known is None:
            self._known = {}
            for code in self._codes:
                self._collect(code, self._known)
        return self._known.get(_key(constant))

    def _collect(self, code: types.CodeType, known: dict[bytes, Any]) -> None:
        for constant in code.co_consts:
            if type(constant) in (types.CodeType, frozenset):
                known.setdefault(_key(constant), constant)
            if type(constant) is types.CodeType:
                self._collect(constant, known)
        known.pop(b"", None)


def _key(constant: Any) -> bytes:
    """Equal bytes for equal constants of equal types; none for what holds live objects."""
    try:
        return marshal.dumps(constant, _NO_REFERENCES)
    except ValueError:
        return b""
