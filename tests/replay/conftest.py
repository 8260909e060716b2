"""A clean slate for each test, and the compiler's binary."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fusee
from fusee import settings
from fusee.errors import HostFailure
from fusee.host.connection import CONNECTION, binary

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def _clean() -> None:
    CONNECTION.stop()
    settings.environment.cache_clear()
    fusee.reset()


@pytest.fixture(autouse=True)
def clean_slate() -> Iterator[None]:
    """No compiler and no entries of another test."""
    _clean()
    yield
    _clean()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``environment(FUSEE_RECORD="traces")`` sets variables as if they had been there at the start."""

    def use(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        _clean()

    return use


@pytest.fixture
def replay() -> Command:
    """``replay("--json", path)`` runs the command with nothing of Python's environment."""
    try:
        path = binary({})
    except HostFailure as failure:
        pytest.skip(str(failure))

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [path, "replay", *map(str, arguments)]
        return subprocess.run(command, env={"PATH": ""}, capture_output=True, text=True, timeout=120)

    return run
