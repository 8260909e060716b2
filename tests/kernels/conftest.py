"""Fixtures of the tests that compile graphs with the backend alone."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fusee import _shim

from .harness import Planner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Each test draws the same inputs, whichever tests ran before it."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def planner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planner]:
    """A running planner with the LLVM library of llvmlite."""
    llvmlite = pytest.importorskip("llvmlite")
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go compiler")
    _shim.calibrate(torch)
    program = tmp_path_factory.mktemp("planner") / "planner"
    subprocess.run([go, "build", "-o", str(program), "./backend/internal/planner"], cwd=ROOT, check=True)
    library = Path(llvmlite.__file__).parent / "binding" / "libllvmlite.so"
    running = Planner(str(program), str(library))
    yield running
    running.close()
