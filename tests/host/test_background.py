"""Compiles in the background: calls run as plain Python meanwhile, and the line that says a compile takes long."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import fusee
from fusee.errors import FuseeWarning
from fusee.host import progress
from fusee.host.connection import CONNECTION

OPTIONS = {"background": True}


@pytest.fixture(autouse=True)
def nothing_on_disk(empty_cache: None) -> None:
    """Every compile needs the compiler."""

def rest() -> None:
    """Wait until nothing is compiled in the background any more."""
    deadline = time.monotonic() + 60
    while CONNECTION.in_background:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_calls_run_in_python_until_the_kernels_are_there() -> None:
    ran = []

    def function(x: torch.Tensor) -> torch.Tensor:
        ran.append(len(ran))
        return torch.sin(x) * 2 + x

    compiled, x = fusee.compile(function, options=OPTIONS), torch.randn(5)
    for call in range(3):
        torch.testing.assert_close(compiled(x), torch.sin(x) * 2 + x)
        assert ran == list(range(call + 1))  # guards look at it: what was compiled for one call fits no other
        assert fusee.stats()["graphs"] == min(call, 1)
        rest()


def test_first_call_leaves_the_compile_behind() -> None:
    compiled, x = fusee.compile(lambda x: torch.sin(x) * 2, options=OPTIONS), torch.randn(5)
    assert torch.equal(compiled(x), torch.sin(x) * 2)
    assert fusee.stats()["graphs"] == 0
    rest()
    torch.testing.assert_close(compiled(x), torch.sin(x) * 2)
    assert fusee.stats()["graphs"] == 1


def test_other_functions_wait_for_their_turn() -> None:
    x = torch.randn(5)
    behind = fusee.compile(lambda x: torch.cos(x) * 2, options=OPTIONS)
    behind(x)
    torch.testing.assert_close(fusee.compile(lambda x: torch.exp(x) + 1)(x), torch.exp(x) + 1)
    assert fusee.stats()["graphs"] == 1
    behind(x)
    assert fusee.stats()["graphs"] == 2


def test_code_behind_a_break_is_compiled_later() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + 1 if x.sum() > 0 else x - 1

    compiled, x = fusee.compile(function, options=OPTIONS), torch.ones(5)
    for _ in range(4):
        assert torch.equal(compiled(x), torch.full((5,), 3.0))
        rest()
    assert fusee.stats()["graphs"] == 2


def test_dead_compiler_is_noticed_by_a_later_call(recwarn: pytest.WarningsRecorder) -> None:
    compiled, x = fusee.compile(lambda x: torch.sinh(x) * 2, options=OPTIONS), torch.randn(5)
    compiled(x)
    child = CONNECTION._child
    if child is not None and CONNECTION.in_background:
        os.kill(child._process.pid, signal.SIGKILL)
    rest()
    for _ in range(2):
        torch.testing.assert_close(compiled(x), torch.sinh(x) * 2)
        rest()
    assert fusee.stats()["graphs"] == 1
    assert not [warning for warning in recwarn if issubclass(warning.category, FuseeWarning)]


def test_without_a_disk_cache_the_first_call_waits(environment: Callable[..., None]) -> None:
    environment(FUSEE_CACHE="0")
    compiled, x = fusee.compile(lambda x: torch.tanh(x) * 2, options=OPTIONS), torch.randn(5)
    torch.testing.assert_close(compiled(x), torch.tanh(x) * 2)
    assert fusee.stats()["graphs"] == 1


class Terminal(io.StringIO):
    """Something that a person sees."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize(("patience", "terminal"), [(0.0, Terminal()), (60.0, Terminal()), (0.0, io.StringIO())])
def test_long_compile_is_said_on_a_terminal(monkeypatch: pytest.MonkeyPatch, patience: float, terminal: Any) -> None:
    monkeypatch.setattr(sys, "__stderr__", terminal)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    with progress.Line("compiling step") as line:
        line()
    shown = patience == 0.0 and terminal.isatty()
    assert terminal.getvalue() == ("\r\x1b[Kfusee: compiling step, 0.0 s\r\x1b[K" if shown else "")
