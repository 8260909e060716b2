"""With FUSEE_CAPTURE_ALL=1 every Python function called is captured, and programs do what they do without it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, traceback
import torch
import fusee

def doubled(x, *more, scale=2, **named):
    return shifted(x) * scale + len(more) + len(named)

def shifted(x):
    return x + 1

def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

def fails(x):
    return x / 0

def handled():
    try:
        fails(1)
    except ZeroDivisionError:
        return reported(), sys.exc_info()[0]

def reported():
    return traceback.format_exc().splitlines()[-1], [frame.name for frame in traceback.extract_tb(sys.exc_info()[2])]

def counted(n):
    for i in range(n):
        yield i * 2

def traced():
    seen = []
    def tracer(frame, event, argument):
        if frame.f_code.co_name == "shifted":
            seen.append(event)
        return tracer
    before = sys.gettrace()
    sys.settrace(tracer)
    shifted(1)
    sys.settrace(before)
    return seen

def no_exception():
    return sys.exc_info(), reported_none()

def current():
    return sys.exc_info()[0]

def reported_none():
    try:
        raise
    except RuntimeError as error:
        return str(error)

for _ in range(2):
    print(doubled(torch.ones(2), 3, scale=4, a=1), fibonacci(12), handled(), list(counted(3)))
    print(traced(), no_exception(), sys.exc_info())
    try:
        raise KeyError
    except KeyError:
        print(current())
"""


def run(arguments: list[str], everything: bool) -> subprocess.CompletedProcess[str]:
    """A Python process, with or without the mode."""
    environment = {**os.environ, "FUSEE_CAPTURE_ALL": "1" if everything else "0"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=300, check=False
    )


def test_programs_do_the_same(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM + "\nprint(fusee.stats()['graphs'] > 0, file=sys.stderr)\n")
    plain, captured = run([str(script)], everything=False), run([str(script)], everything=True)
    assert captured.stdout == plain.stdout != ""
    assert (plain.stderr, captured.stderr) == ("False\n", "True\n")


@pytest.mark.parametrize("module", ["test_named_expressions", "test_dictcomps", "test_augassign"])
def test_tests_of_the_language(module: str) -> None:
    """A few small ones of the tests that come with the interpreter."""
    if importlib.util.find_spec(f"test.{module}") is None:
        pytest.skip("this interpreter comes without its tests")
    command = f"import fusee, unittest; unittest.main('test.{module}', argv=['x'])"
    captured = run(["-c", command], everything=True)
    assert captured.returncode == 0, captured.stderr
