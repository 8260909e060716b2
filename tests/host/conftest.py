"""Fixtures: a compiler that follows a scenario, and the warnings of a test."""

from __future__ import annotations

import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fusee
from fusee.host import connection

FAKE = Path(__file__).with_name("fake_compiler.py")
Use = Callable[..., None]


@pytest.fixture(autouse=True)
def always_clean(clean_slate: None) -> None:
    """Every test here starts a compiler or looks at one."""


@pytest.fixture
def scenario(environment: Use, tmp_path: Path) -> Use:
    """``scenario("crash")`` puts the fake compiler in the compiler's place."""

    def use(name: str, **variables: str) -> None:
        script = tmp_path / f"fusee-{name}"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{FAKE}" {name} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        environment(FUSEE_COMPILER=str(script), **variables)

    return use


@pytest.fixture
def empty_cache(environment: Use, tmp_path: Path) -> None:
    """An empty cache for each test of the real compiler; skipped where the package has none."""
    try:
        connection.binary({})
    except fusee.errors.HostFailure:
        pytest.skip("the compiler is not built")
    environment(FUSEE_CACHE_DIR=str(tmp_path / "cache"))


@pytest.fixture
def caught() -> Iterator[list[Any]]:
    """The warnings of fusee that a test causes."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found
