"""Fixtures of the tests of the C extension: a calibrated torch, both ways of reading tensors, compiled C."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from fusee import _shim


@pytest.fixture(scope="session", autouse=True)
def calibration() -> dict[str, object]:
    """What calibrate() found; every test runs on the direct path unless it asks otherwise."""
    return _shim.calibrate(torch)


@pytest.fixture(params=["direct", "portable"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test once on tensor handles and once on Python calls."""
    found = _shim.calibrate(torch, portable=request.param == "portable")
    if found["mode"] != request.param:
        pytest.skip(f"no {request.param} path here: {found['why']}")
    yield request.param
    _shim.calibrate(torch)


@pytest.fixture(scope="session")
def compile_object(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    """Returns a function that compiles C source to the bytes of a relocatable object."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def build(source: str, *options: str) -> bytes:
        folder: Path = tmp_path_factory.mktemp("object")
        (folder / "kernel.c").write_text(source)
        command = [compiler, "-O2", "-fPIC", "-c", "kernel.c", "-o", "kernel.o", *options]
        subprocess.run(command, cwd=folder, check=True)
        return (folder / "kernel.o").read_bytes()

    return build
