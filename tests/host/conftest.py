"""Fixtures: a compiler that follows a scenario, and a clean slate for each test."""

from __future__ import annotations

import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fusee
from fusee import settings
from fusee.host.connection import CONNECTION

FAKE = Path(__file__).with_name("fake_compiler.py")
Use = Callable[..., None]


def _clean() -> None:
    CONNECTION.stop()
    settings.environment.cache_clear()
    fusee.reset()


@pytest.fixture(autouse=True)
def clean_slate() -> Iterator[None]:
    """No compiler, count, entry or warning of another test."""
    _clean()
    yield
    _clean()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Use:
    """``environment(FUSEE_TIMEOUT="1")`` sets variables as if they had been there at the start."""

    def use(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        _clean()

    return use


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
def caught() -> Iterator[list[Any]]:
    """The warnings of fusee that a test causes."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found
