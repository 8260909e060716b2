"""Whatever the compiler does, the call returns eager's result and one warning says what was wrong."""

from __future__ import annotations

import _thread
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import fusee
from fusee.host import connection
from fusee.host.connection import CONNECTION

Use = Callable[..., None]
Caught = list[Any]


def f(x: Any, y: Any) -> Any:
    return torch.relu(x + y) * 2


def arguments() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 0.5, 0.5])


def check(compiled: Callable[..., Any]) -> None:
    torch.testing.assert_close(compiled(*arguments()), f(*arguments()), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("crash", "panic: something is wrong"),
        ("crash_after_question", "the compiler"),
        ("crash_in_message", "ended in the middle"),
        ("dead", "the compiler"),
        ("garbage", "not a message"),
        ("huge", "announced a message of 4294967295 bytes"),
        ("wrong_message", "'surprise' instead of a question"),
        ("other_protocol", "does not speak protocol"),
        ("failed", "it cannot be done (do something else)"),
        ("nonsense_question", "could not answer"),
        ("bad_code", "instead of code"),
        ("bad_graph", "cannot be used"),
        ("bad_guard", "a guard fails right after its compile: guard on parameter 0"),
    ],
)
def test_failure_runs_plainly_with_one_warning(scenario: Use, caught: Caught, name: str, text: str) -> None:
    scenario(name)
    fast = fusee.compile(f)
    for _ in range(3):
        check(fast)
    assert [item.category for item in caught] == [fusee.FuseeWarning], [str(item.message) for item in caught]
    assert text in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", ["hang", "dumb"])
def test_timeout_kills_the_compiler(scenario: Use, caught: Caught, name: str) -> None:
    scenario(name, FUSEE_TIMEOUT="0.6")
    started = time.monotonic()
    check(fusee.compile(f))
    assert time.monotonic() - started < 5
    assert len(caught) == 1 and "did not answer in time" in str(caught[0].message)
    assert CONNECTION._child is None


def test_missing_compiler_warns_once(environment: Use, caught: Caught) -> None:
    environment(FUSEE_COMPILER="/nonexistent/fusee")
    fast = fusee.compile(f)
    check(fast)
    check(fast)
    assert len(caught) == 1 and "could not be started" in str(caught[0].message)


def test_killed_between_calls_is_respawned(scenario: Use, caught: Caught) -> None:
    scenario("same")
    check(fusee.compile(f))
    child = CONNECTION._child
    assert child is not None
    os.kill(child._process.pid, signal.SIGKILL)
    child._process.wait()
    other = fusee.compile(lambda x, y: f(x, y))
    check(other)
    assert len(other.record.entries) == 1
    assert not caught


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Interrupts raise, also where the tests run in a shell's background, which ignores them."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_leaves_the_connection_fit(scenario: Use) -> None:
    scenario("slow")
    fast = fusee.compile(f)
    timer = threading.Timer(0.25, _thread.interrupt_main)
    check_started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        fast(*arguments())
        time.sleep(2)
    assert time.monotonic() - check_started < 5
    check(fast)
    assert len(fast.record.entries) == 1


def test_fork_compiles_in_both_processes(scenario: Use) -> None:
    scenario("same")
    fast = fusee.compile(f)
    check(fast)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            other = fusee.compile(lambda x, y: f(x, y))
            check(fast)
            check(other)
            status = 0 if len(other.record.entries) == 1 else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    another = fusee.compile(lambda x, y: f(x, y) * 1)
    check(another)
    assert len(another.record.entries) == 1


def test_unwritable_record_folder_warns_once(scenario: Use, caught: Caught, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    scenario("same", FUSEE_RECORD=str(blocked / "folder"))
    check(fusee.compile(f))
    check(fusee.compile(lambda x, y: f(x, y)))
    assert len(caught) == 1 and "trace could not be written" in str(caught[0].message)


def test_warnings_of_the_compiler_are_given_once(scenario: Use, caught: Caught) -> None:
    scenario("warned")
    fast = fusee.compile(f)
    check(fast)
    fast(torch.ones(9), torch.ones(9))
    assert len(fast.record.entries) == 2
    assert [str(item.message) for item in caught] == ["fusee: the cache folder cannot be written"]


def test_compiling_while_answering_runs_plainly(scenario: Use) -> None:
    """A compiled function called by the host's own work must not start a compile within a compile."""
    from fusee.host import miss

    scenario("same")
    fast = fusee.compile(f)
    with miss.paused():
        check(fast)
    assert not fast.record.entries


def test_a_compiler_ends_with_the_process_that_started_it() -> None:
    """Its socket alone would not tell one that is busy, so here it stays open."""
    ours, theirs = socket.socketpair()
    script = f'"{connection.binary({})}" serve --fd {theirs.fileno()} & echo $!; wait'
    with ours, theirs, subprocess.Popen(
        ["sh", "-c", script], pass_fds=(theirs.fileno(),), stdout=subprocess.PIPE, text=True
    ) as shell:
        assert shell.stdout is not None
        compiler = Path("/proc") / shell.stdout.readline().strip()
        time.sleep(1)  # until it has seen who started it
        assert compiler.exists()
        shell.kill()
        deadline = time.monotonic() + 30
        while compiler.exists() and "zombie" not in (compiler / "status").read_text(encoding="utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
