"""The entries of each code object, and what the host keeps beside them."""

from __future__ import annotations

import types
import weakref
from typing import Any

from .. import _shim
from ..options import Options
from .changes import Changes


class Family:
    """What a compiled function shares with its continuations: one callable for each distinct piece of code."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.functions: dict[Any, Any] = {}


class Target:
    """The host's side of a code record: how to compile it, and what happened so far."""

    def __init__(self, family: Family, code: types.CodeType) -> None:
        self.family = family
        self.name = code.co_qualname
        self.place = f"{code.co_filename}:{code.co_firstlineno}"
        self.reports: list[dict[str, Any]] = []
        self.recompile: dict[str, Any] | None = None
        self.last_missed = ""
        self.failures = 0
        self.plain_under_modes = False  # one graph was asked for, and could not be had under torch function modes
        self.changes = Changes()

    @property
    def options(self) -> Options:
        """Options of the compile this belongs to."""
        return self.family.options


class Records:
    """Code records by code object, globals and options. All functions made from one code object share entries."""

    def __init__(self) -> None:
        self._records: dict[Any, tuple[Any, Any]] = {}

    def of(self, function: types.FunctionType, options: Options) -> Any:
        """The record of a function's code, new or known."""
        key = (id(function.__code__), id(function.__globals__), *options.key())
        found = self._records.get(key)
        if found is None:
            record = new_record(Family(options), function.__code__)
            alive = weakref.ref(function.__code__, lambda _: self._records.pop(key, None))
            found = self._records[key] = (record, alive)
        return found[0]

    def reset(self) -> None:
        """Drop all entries; compiled functions start anew."""
        for record, _ in list(self._records.values()):
            record.clear()
            record.state = "active"
            record.data.family.functions.clear()
            record.data.reports.clear()
            record.data.failures = 0
            record.data.changes.clear()


def new_record(family: Family, code: types.CodeType) -> Any:
    """A record for a code object that belongs to a family."""
    return _shim.CodeRecord(Target(family, code))


RECORDS = Records()
