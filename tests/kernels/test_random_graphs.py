"""A few of the random programs of :mod:`kernels.random_graphs`; its command line checks many more."""

from __future__ import annotations

import warnings

import pytest
import torch

import fusee

from .harness import Planner, clone_with_layout
from .random_graphs import check, check_compiled, on_device, program_of


@pytest.mark.parametrize("first", range(0, 24, 6))
def test_random_programs(planner: Planner, first: int) -> None:
    warnings.simplefilter("ignore")
    for seed in range(first, first + 6):
        program = program_of(seed)
        assert not check(planner, program), f"seed {seed}\n{program}"


@pytest.mark.parametrize("seed", (3, 6, 10))
def test_random_programs_of_the_compiled_function(seed: int) -> None:
    """What tests/cuda does on a GPU, on the CPU."""
    fusee.reset()
    program = on_device(program_of(seed), "cpu")
    assert not check_compiled(program, fusee.compile), f"seed {seed}\n{program}"
    assert fusee.stats()["graphs"] > 0


@pytest.mark.parametrize("dtype", (torch.uint8, torch.int8, torch.int32), ids=str)
def test_bounds_that_the_type_has_no_room_for(planner: Planner, dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 5, 100], dtype=dtype)
    below, above = torch.iinfo(dtype).min - 1, torch.iinfo(dtype).max + 1
    for low, high in ((below, 2), (0, above), (below, above)):
        compiled = planner.compile(lambda x, low=low, high=high: torch.clamp(x, low, high) + 1, x)
        assert torch.equal(compiled(x)[0], torch.clamp(x, low, high) + 1)
        assert torch.equal(planner.compile(lambda x, low=low: x.clamp_min(low), x)(x)[0], x.clamp_min(low))


def test_checks_notice_a_difference(planner: Planner) -> None:
    """The checks fail where a step gives something else than it gave when the program was made."""
    program = next(program for program in map(program_of, range(1, 100)) if program.steps and program.steps[-1].after)
    step = program.steps[-1]
    step.after = [wrong(clone_with_layout(tensor)) for tensor in step.after]
    assert not step.after[0].numel() or check(planner, program)


def wrong(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with elements that no operation gave."""
    return tensor.fill_(77) if tensor.dtype != torch.bool else tensor.logical_not_()
