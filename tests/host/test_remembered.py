"""Conversations on disk: the same conversation needs no compiler, any other does; and the compiler's early start."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fusee
from fusee.errors import HostFailure
from fusee.host import connection, remembered
from fusee.host.connection import CONNECTION

Use = Callable[..., None]
QUESTION = ("describe", [1])
DONE = ("done", {"code": b"", "report": {"times": {"capture": 7}, "format": 1}})


def talk(folder: Path, answer: Any, result: Any = DONE, question: Any = QUESTION) -> bool:
    """One conversation of one question; whether it was remembered."""
    told = remembered.Conversation(folder, ("compile", {}), lambda _: answer)
    if told.recall() is not None:
        return True
    assert told(question) == answer
    told.keep(result)
    return False


def test_same_conversation_is_remembered(tmp_path: Path) -> None:
    assert not talk(tmp_path, ("answer", 1))
    assert talk(tmp_path, ("answer", 1))
    recalled = remembered.Conversation(tmp_path, ("compile", {}), lambda _: ("answer", 1)).recall()
    assert recalled == ("done", {"code": b"", "report": {"format": 1}})
    assert remembered.Conversation(tmp_path, ("compile", {"mode": 1}), lambda _: ("answer", 1)).recall() is None


@pytest.mark.parametrize(("first", "second"), [(("answer", 1), ("answer", 2)), (("answer", 1), ("answer", True))])
def test_other_answer_is_another_conversation(tmp_path: Path, first: Any, second: Any) -> None:
    assert not talk(tmp_path, first)
    assert not talk(tmp_path, second)
    assert talk(tmp_path, second)


def test_question_is_answered_once(tmp_path: Path) -> None:
    """What recall asked is not asked again, since an answer describes an object the first time only."""
    talk(tmp_path, ("answer", 1))
    answers = iter([("answer", 2)])
    told = remembered.Conversation(tmp_path, ("compile", {}), lambda _: next(answers))
    assert told.recall() is None
    assert told(QUESTION) == ("answer", 2)


def test_other_question_drops_the_entry(tmp_path: Path) -> None:
    talk(tmp_path, ("answer", 1))
    with pytest.raises(HostFailure, match="disk cache"):
        talk(tmp_path, ("answer", 2), question=("describe", [2]))
    assert not talk(tmp_path, ("answer", 1))


def test_failures_and_warnings_are_not_kept(tmp_path: Path) -> None:
    for result in (("failed", {}), ("done", {"warnings": ["no LLVM"], "report": {}})):
        assert not talk(tmp_path, ("answer", 1), result)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:60] + b"!" + data[61:]]
)
def test_damaged_entry_is_dropped(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    talk(tmp_path, ("answer", 1))
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file.stat().st_mode & 0o077 == 0
    file.write_bytes(damage(file.read_bytes()))
    assert not talk(tmp_path, ("answer", 1))
    assert talk(tmp_path, ("answer", 1))


def f(x: Any, y: Any) -> Any:
    return torch.relu(x + y) * 2


@pytest.fixture
def cache(environment: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a connection that never started a compiler; skipped where the package has none."""
    try:
        connection.binary({})
    except HostFailure:
        pytest.skip("the compiler is not built")
    monkeypatch.setattr(CONNECTION, "_anticipated", False)
    environment(FUSEE_CACHE_DIR=str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(size: int) -> Any:
    """Compile for tensors of a size, and compare; the compiled function."""
    fast = fusee.compile(f)
    x, y = torch.linspace(-2, 2, size), torch.ones(size)
    torch.testing.assert_close(fast(x, y), f(x, y), rtol=0, atol=0)
    assert len(fast.record.entries) == 1
    return fast


def test_second_process_needs_no_compiler(cache: Path) -> None:
    run(5)
    assert CONNECTION._child is not None
    CONNECTION.stop()
    fusee.reset()
    fast = run(5)
    assert CONNECTION._child is None
    assert set(fast.record.entries[0].report["times"]) == {"total"}
    fusee.reset()
    run(6)
    assert CONNECTION._child is not None


def test_folder_that_others_can_write_is_not_trusted(cache: Path) -> None:
    run(5)
    (cache / "entries-1").chmod(0o777)
    CONNECTION.stop()
    fusee.reset()
    run(5)
    assert CONNECTION._child is not None


def test_nothing_is_written_without_a_cache(
    cache: Path, environment: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    environment(FUSEE_CACHE="0")
    run(5)
    assert CONNECTION._child is not None
    assert not cache.exists() and not list((tmp_path / "here").iterdir())


def test_compiler_starts_ahead_of_the_first_call(cache: Path) -> None:
    fast = fusee.compile(f)
    child = CONNECTION._child
    assert child is not None and child.alive()
    fast(torch.ones(3), torch.ones(3))
    assert CONNECTION._child is child


def test_nothing_starts_where_the_cache_may_answer(cache: Path) -> None:
    run(5)
    CONNECTION.stop()
    CONNECTION._anticipated = False
    fusee.compile(lambda x: x + 1)
    assert CONNECTION._child is None


DECORATES = """
import os, signal, sys, fusee
from fusee.host.connection import CONNECTION
fusee.compile(lambda x: x + 1)
print(CONNECTION._child._process.pid, flush=True)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def runs(process: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_no_compiler_outlives_a_program_that_only_decorates(cache: Path, end: str) -> None:
    done = subprocess.run([sys.executable, "-c", DECORATES, end], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while runs(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(int(done.stdout))


def test_workers_start_no_compiler_ahead(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing, "parent_process", multiprocessing.current_process)
    fusee.compile(f)
    assert CONNECTION._child is None


def test_compiler_that_cannot_start_is_no_matter_of_the_decoration(environment: Use, caught: list[Any]) -> None:
    environment(FUSEE_COMPILER="/nonexistent/fusee")
    fusee.compile(f)
    assert not caught
