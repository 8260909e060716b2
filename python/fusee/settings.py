"""Every setting of fusee in one table: name, type, default, environment variable and meaning.

The environment is read once, when a setting is first asked for; ``options=`` of :func:`fusee.compile` wins over it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .errors import UnknownSetting

Value = bool | int | float | str


@dataclass(frozen=True)
class Setting:
    """One row of the table; ``kind`` converts and checks a value."""

    name: str
    kind: type
    default: Value
    variable: str
    doc: str
    choices: tuple[Value, ...] = ()  # all values it can have; empty: any of its type
    bounds: tuple[float, float] | None = None  # the least and the greatest value


TABLE: tuple[Setting, ...] = (
    Setting("disable", bool, False, "FUSEE_DISABLE", "Compile nothing: every function runs as plain Python."),
    Setting("compiler", str, "", "FUSEE_COMPILER", "Path of the compiler; empty: the one in the package, then PATH."),
    Setting("timeout", float, 60.0, "FUSEE_TIMEOUT", "Seconds one compile may take before it is given up."),
    Setting("cache", bool, True, "FUSEE_CACHE", "Keep compiled kernels on disk."),
    Setting(
        "cache_dir", str, "", "FUSEE_CACHE_DIR", "Folder of the disk cache; empty: fusee in the user's cache folder."
    ),
    Setting("cache_size", int, 1024, "FUSEE_CACHE_SIZE", "Limit of the disk cache in MiB."),
    Setting(
        "numerics",
        str,
        "fused",
        "FUSEE_NUMERICS",
        "Half-precision values inside fused kernels: `fused` keeps them in float32, `eager` rounds each as eager does.",
        ("fused", "eager"),
    ),
    Setting(
        "random",
        str,
        "eager",
        "FUSEE_RANDOM",
        "Random numbers: `eager` gives those of eager PyTorch for the same seed, drawn by kernels on a GPU and by "
        "calls of PyTorch on the CPU; `fused` draws others inside the kernels of both, from one seed for each call of "
        "a graph.",
        ("eager", "fused"),
    ),
    Setting(
        "memory_budget",
        float,
        1.0,
        "FUSEE_MEMORY_BUDGET",
        "How much of the bytes that a graph's forward keeps for its backward by default it may keep: below 1, what is "
        "dearest to compute again for its bytes; at 0, all but random draws is computed again from the inputs.",
        bounds=(0.0, 1.0),
    ),
    Setting(
        "background",
        bool,
        False,
        "FUSEE_BACKGROUND",
        "Calls run as plain Python while the compiler makes kernels; needs the disk cache.",
    ),
    Setting("record", str, "", "FUSEE_RECORD", "Folder that gets one trace file for each compile; empty: none."),
    Setting("logs", str, "", "FUSEE_LOGS", "What to log, in the grammar of TORCH_LOGS."),
    Setting(
        "entry_limit",
        int,
        8,
        "FUSEE_ENTRY_LIMIT",
        "Entries made for one code object; then, calls that fit none run as plain Python.",
    ),
    Setting(
        "compile_limit",
        int,
        256,
        "FUSEE_COMPILE_LIMIT",
        "Compiles of one function and all code that goes on behind its breaks; then, what fits no entry runs as plain "
        "Python.",
    ),
    Setting(
        "capture_all",
        bool,
        False,
        "FUSEE_CAPTURE_ALL",
        "Capture every Python function that is called, for tests; read when fusee is imported.",
    ),
    Setting("explain_out", str, "", "FUSEE_EXPLAIN_OUT", "File that gets one JSON line for each compile; empty: none."),
)

BY_NAME: Mapping[str, Setting] = {row.name: row for row in TABLE}

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off", "")


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


_PARSERS: Mapping[type, Callable[[str], Value]] = {bool: _boolean, int: int, float: float, str: str}


def parse(row: Setting, text: str) -> Value:
    """The value that ``text`` from the environment stands for; UnknownSetting when it is not of the setting's type."""
    try:
        value = _PARSERS[row.kind](text.strip())
    except ValueError:
        raise UnknownSetting(f"{row.variable}={text!r} is not of type {row.kind.__name__}: {row.doc}") from None
    return _chosen(row, value)


def _chosen(row: Setting, value: Value) -> Value:
    if row.choices and value not in row.choices:
        raise unknown(f"value of {row.name!r}", str(value), list(map(str, row.choices)))
    if row.bounds is not None and not row.bounds[0] <= float(value) <= row.bounds[1]:
        raise UnknownSetting(f"setting {row.name!r} is from {row.bounds[0]} to {row.bounds[1]}, not {value}: {row.doc}")
    return value


def unknown(what: str, name: str, valid: list[str]) -> UnknownSetting:
    """The one error for a name that does not exist: it lists all that do, and the closest first."""
    close = difflib.get_close_matches(name, valid, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return UnknownSetting(f"unknown {what} {name!r}{hint}; valid are: {', '.join(sorted(valid))}")


def check(options: Mapping[str, Any] | None) -> dict[str, Value]:
    """The options of one compile, checked against the table; UnknownSetting for a wrong name or type."""
    checked: dict[str, Value] = {}
    for name, value in (options or {}).items():
        row = BY_NAME.get(name)
        if row is None:
            raise unknown("setting", name, list(BY_NAME))
        checked[name] = _convert(row, value)
    return checked


def _convert(row: Setting, value: Any) -> Value:
    if row.kind is float and type(value) is int:
        return float(value)
    if type(value) is not row.kind:
        raise UnknownSetting(f"setting {row.name!r} takes {row.kind.__name__}, not {type(value).__name__}: {row.doc}")
    return _chosen(row, row.kind(value))


def in_environment(name: str) -> Value:
    """The value of a setting from the environment as it is now, or its default."""
    row = BY_NAME[name]
    return parse(row, os.environ[row.variable]) if row.variable in os.environ else row.default


@lru_cache(maxsize=1)
def environment() -> Mapping[str, Value]:
    """Each setting's value from the environment or its default."""
    return {row.name: in_environment(row.name) for row in TABLE}


def get(name: str, options: Mapping[str, Value] | None = None) -> Value:
    """The value of a setting: from ``options``, else the environment, else the default."""
    if options is not None and name in options:
        return options[name]
    return environment()[name]


def number(name: str, options: Mapping[str, Value] | None = None) -> float:
    """A numeric setting as a float."""
    return float(get(name, options))


def text(name: str, options: Mapping[str, Value] | None = None) -> str:
    """A setting of type str."""
    return str(get(name, options))
