"""Random programs of tensor operations, compiled for a GPU, against eager there and against float64."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

import fusee

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kernels.random_graphs import check_compiled, on_device, program_of


@pytest.mark.parametrize("seed", range(200, 260))
def test_cuda_random_programs(seed: int) -> None:
    """Each call by itself, and smooth programs as a whole."""
    warnings.simplefilter("ignore")
    fusee.reset()
    program = program_of(seed)
    try:
        moved = on_device(program, "cuda")
    except (RuntimeError, NotImplementedError):
        pytest.skip("eager does not take a type on a GPU")
    assert not check_compiled(moved, fusee.compile), f"seed {seed}\n{program}"
