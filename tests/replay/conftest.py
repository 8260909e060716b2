"""A clean slate for each test, and the compiler's binary."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fusee.errors import HostFailure
from fusee.host.connection import binary

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def always_clean(clean_slate: None) -> None:
    """Every test here starts a compiler or looks at one."""


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
