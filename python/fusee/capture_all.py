"""Importing this module captures every Python function that is called from then on, in all threads: a mode for tests.

``FUSEE_CAPTURE_ALL=1`` imports it together with fusee. Functions of fusee, torch and numpy stay as they are, as do
generators, class bodies and whatever runs while a trace function is set.
"""

from __future__ import annotations

import inspect
import os
import types
from typing import Any

import numpy
import torch

from . import _shim, warn
from .host import slots
from .host.miss import on_miss
from .host.records import RECORDS
from .options import Options
from .wrap import calibrate

_MOST_COMPILES = 24  # of one function, so that one whose breaks lead to ever new code does not hold a program up
_OPTIONS = Options(settings=(("compile_limit", _MOST_COMPILES),))
_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_LEFT_ALONE = ("<frozen", *(os.path.dirname(path) + os.sep for path in (__file__, torch.__file__, numpy.__file__)))


def _record(function: types.FunctionType) -> Any:
    """The record under which calls of a function are captured; None for one that stays as it is."""
    code = function.__code__
    marks = slots.instance_dict(function) or {}
    if code.co_filename.startswith(_LEFT_ALONE) or code.co_flags & _RUNS_LATER:
        return None
    if marks.get("_fusee_disable") or marks.get("_torchdynamo_disable"):
        return None
    return RECORDS.of(function, _OPTIONS)


calibrate()
warn.silence()
_shim.capture_all(_record, on_miss)
