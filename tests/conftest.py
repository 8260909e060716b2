"""Fixtures of several folders: a clean slate for a test, and variables as if they had been there at the start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import fusee
from fusee import settings
from fusee.host.connection import CONNECTION


def _clean() -> None:
    CONNECTION.stop()
    settings.environment.cache_clear()
    fusee.reset()


@pytest.fixture
def clean_slate() -> Iterator[None]:
    """No compiler, count, entry or warning of another test."""
    _clean()
    yield
    _clean()


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``environment(FUSEE_TIMEOUT="1")`` sets variables as if they had been there at the start."""

    def use(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        _clean()

    return use
