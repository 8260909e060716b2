"""Runs one case file through the compiler, call by call: ``run_case.py CASES NAME``.

A case defines ``build()`` and ``calls()`` (``[(args, kwargs)…]``), or ``check(compile)``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import fusee


class Compile:
    """What ``check`` is given: compiles, and counts."""

    stats = staticmethod(fusee.stats)

    def __call__(self, function: Any = None, **options: Any) -> Any:
        return functools.partial(self, **options) if function is None else fusee.compile(function, **options)


def load(path: Path) -> ModuleType:
    """The case's module."""
    specification = importlib.util.spec_from_file_location("case", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["case"] = module
    specification.loader.exec_module(module)
    return module


def run(case: ModuleType) -> None:
    """Every call of the case; an exception is the case's own and ends only its call."""
    torch.manual_seed(0)
    random.seed(0)
    if hasattr(case, "check"):
        case.check(Compile())
        return
    function = case.build()
    compiled = fusee.compile(function, fullgraph=getattr(case, "EXPECT", {}).get("fullgraph", False))
    for index, (args, kwargs) in enumerate(case.calls()):
        if hasattr(case, "before"):
            case.before(index, function)
        with contextlib.suppress(Exception):
            compiled(*args, **kwargs)


if __name__ == "__main__":
    (found,) = Path(sys.argv[1]).glob(sys.argv[2] + "*.py")
    run(load(found))
