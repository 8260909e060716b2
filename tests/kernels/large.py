"""Operations on a tensor of more elements than 31 bits count, whose positions need 64."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

LENGTH = (1 << 31) + 19
NEEDED = 7 * LENGTH  # bytes: the tensor, two results, what eager makes on the way, and room

OPERATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "pointwise": lambda x: (x + 3) * 2,
    "flip": lambda x: (x * 2).flip(0) + 1,
    "roll": lambda x: (x * 2).roll(5, 0) + 1,
    "cat": lambda x: torch.cat([x[7:] * 2, x[:9] + 1]) - 1,
    "strided": lambda x: x[1::2] * 3,
    "sum": lambda x: (x & 1).sum(),
    "any": lambda x: (x == 126).any(),
    "rows": lambda x: x[: 1 << 31].view(1 << 16, -1).amax(1),
    "columns": lambda x: x[: 1 << 31].view(1 << 16, -1).sum(0),
    "gather": lambda x: x[torch.tensor([0, 1 << 31, (1 << 31) + 18, -1], device=x.device)] * 2,
}


def numbers(device: str) -> Tensor:
    """Small numbers, and one at the very end that stands nowhere else."""
    period = torch.arange(251, dtype=torch.int8, device=device).sub_(125)
    x = period.repeat(LENGTH // 251 + 1)[:LENGTH]
    x[-1] = 126
    return x
