"""What node lists tell about aten operators (docs/contracts.md, section 5)."""

from __future__ import annotations

import functools

import torch


@functools.cache
def signature(operator: torch._ops.OpOverload) -> tuple[str, bool]:
    """The schema as PyTorch prints it, and whether the operator draws from a random generator."""
    return str(operator._schema), torch.Tag.nondeterministic_seeded in operator.tags
