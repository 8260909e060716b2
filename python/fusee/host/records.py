"""The entries of each code object, and what the host keeps beside them."""

from __future__ import annotations

import functools
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

from .. import _shim
from ..options import Options
from . import slots
from .changes import Changes


class Family:
    """What a compiled function shares with its continuations: one callable for each distinct piece of code in use."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.functions: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
        self.compiles = 0
        self.library_draws = False  # kernels would not draw the random numbers that this PyTorch draws


class Target:
    """The host's side of a code record: how to compile it, and what happened so far."""

    def __init__(self, family: Family, code: types.CodeType) -> None:
        self.family = family
        self.name = code.co_qualname
        self.place = f"{code.co_filename}:{code.co_firstlineno}"
        self.recompile: dict[str, Any] | None = None
        self.last_missed = ""
        self.failures = 0
        self.plain_under_modes = False  # one graph was asked for, and could not be had under torch function modes
        self.made_behind = False  # a compile in the background has ended, and no call has made use of it yet
        self.changes = Changes()

    @property
    def options(self) -> Options:
        """Options of the compile this belongs to."""
        return self.family.options


class _Kept:
    """A record in the registry: kept as long as its function's code and the module whose namespace that runs in.

    Elsewhere, such as in a namespace made for ``exec``, only its compiled functions keep it, since it leads to the
    namespace, and through that to the code.
    """

    def __init__(self, record: Any, function: types.FunctionType, forget: Callable[[Any], None]) -> None:
        module = _module_of(function.__globals__)
        self._record = weakref.ref(record, forget)
        self._code = weakref.ref(function.__code__, forget)
        kept = [record] if module is not None else []
        self._module = weakref.ref(module, lambda _: kept.clear()) if module is not None else None

    @property
    def record(self) -> Any:
        """The record, None once it is gone."""
        return self._record()


def _module_of(namespace: dict[str, Any]) -> types.ModuleType | None:
    """The imported module whose namespace a dict is."""
    name = namespace.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return module if type(module) is types.ModuleType and slots.instance_dict(module) is namespace else None


class Records:
    """Code records by code object, globals and options. All functions made from one code object share entries."""

    def __init__(self) -> None:
        self._records: dict[Any, _Kept] = {}

    def of(self, function: types.FunctionType, options: Options) -> Any:
        """The record of a function's code, new or known."""
        key = (id(function.__code__), id(function.__globals__), *options.key())
        found = self._records.get(key)
        record = found.record if found is not None else None
        if record is None:
            record = new_record(Family(options), function.__code__)
            self._records[key] = _Kept(record, function, functools.partial(self._forget, key))
        return record

    def _forget(self, key: Any, _code: Any) -> None:
        self._records.pop(key, None)

    def reset(self) -> None:
        """Drop all entries; compiled functions start anew."""
        for record in [kept.record for kept in self._records.values()]:
            if record is None:
                continue
            record.clear()
            record.state = "active"
            record.data.family.functions.clear()
            record.data.family.compiles = 0
            record.data.failures = 0
            record.data.changes.clear()


def new_record(family: Family, code: types.CodeType) -> Any:
    """A record for a code object that belongs to a family."""
    return _shim.CodeRecord(Target(family, code))


RECORDS = Records()
