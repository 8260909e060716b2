"""Operators that loops compute in place of the library: compiled functions against eager and float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F

import fusee

Function = Callable[..., torch.Tensor]
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def layouts(x: torch.Tensor) -> list[torch.Tensor]:
    """A tensor row-major, with its channels together, as every other element of a larger one, and transposed."""
    twice = torch.repeat_interleave(x, 2, -1)[..., ::2]
    together = x.movedim(1, -1).contiguous().movedim(-1, 1)
    return [x, together, twice, x.transpose(0, -1).contiguous().transpose(0, -1)]


def compare(functions: dict[str, Function], inputs: Sequence[torch.Tensor], library: Sequence[str] = ()) -> None:
    """Compiles all functions as one; each result is like eager's, or nearer to float64's, but for half a unit."""

    def together(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return [function(*tensors) for function in functions.values()]

    got, want = fusee.compile(together)(*inputs), together(*inputs)
    exact = together(*(tensor.double() if tensor.dtype.is_floating_point else tensor for tensor in inputs))
    for name, ours, eager, reference in zip(functions, got, want, exact, strict=True):
        assert ours.dtype == eager.dtype and ours.shape == eager.shape and ours.stride() == eager.stride(), name
        finite = eager.isfinite()
        assert torch.equal(ours[~finite].double().nan_to_num(7), eager[~finite].double().nan_to_num(7)), name
        if not eager.dtype.is_floating_point:
            assert torch.equal(ours, eager), name
        elif eager.numel():
            gap, allowed = ((result.double() - reference)[finite].abs().max() for result in (ours, eager))
            slack = 0.6 * torch.finfo(eager.dtype).eps * reference[finite].abs().max()
            assert gap <= allowed + slack, f"{name}: {gap} off, eager {allowed}"
    called = [line for line in str(fusee.explain(together)(*inputs)).splitlines() if "(library" in line]
    assert all(any(name in line for name in library) for line in called), called


def special(*sizes: int) -> torch.Tensor:
    """Random numbers of float64, some of which are none."""
    x = torch.randn(sizes, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for index, value in enumerate((math.nan, math.inf, -math.inf, 0.0, -0.0)):
        x.view(-1)[index * 37 % x.numel()] = value
    return x


POOLS: dict[str, Function] = {
    "halves": lambda x: F.max_pool2d(x, 2),
    "overlapping": lambda x: F.max_pool2d(x, 3, 2, 1),
    "apart": lambda x: F.max_pool2d(x, (2, 3), 1, 1, 2),
    "up": lambda x: F.max_pool2d(x, (3, 2), 2, ceil_mode=True),
    "mean": lambda x: F.avg_pool2d(x.relu(), 2),
    "of borders": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "without borders": lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "mean up": lambda x: F.avg_pool2d(x, (3, 2), (2, 3), 1, ceil_mode=True),
    "mean up without borders": lambda x: F.avg_pool2d(x, 2, 3, 1, ceil_mode=True, count_include_pad=False),
    "by five": lambda x: F.avg_pool2d(x, 2, divisor_override=5) * 2,
    "no batch": lambda x: F.avg_pool2d(x[0], 2) + F.max_pool2d(x[1], 2),
}

RANKS: dict[str, Function] = {
    "lines": lambda x: F.max_pool1d(x.flatten(2), 3, 2, 1) + F.avg_pool1d(x.flatten(2), 3, 2, 1),
    "space": lambda x: F.max_pool3d(x[:, None], 2) + F.avg_pool3d(x[:, None], 2),
    "across channels": lambda x: F.local_response_norm(x, 3),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_windows(dtype: torch.dtype) -> None:
    for x in layouts(special(2, 3, 7, 11).to(dtype)):
        compare(POOLS, [x])
    if dtype.itemsize >= 4:  # eager has no more
        compare(RANKS, [torch.randn(2, 4, 5, 7).to(dtype)])
