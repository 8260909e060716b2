"""What node lists tell about aten operators (docs/contracts.md, section 5)."""

from __future__ import annotations

import functools

import torch


@functools.cache
def signature(operator: torch._ops.OpOverload) -> tuple[str, bool]:
    """The schema as PyTorch prints it, and whether the operator draws from a random generator."""
    return str(operator._schema), torch.Tag.nondeterministic_seeded in operator.tags


@functools.cache
def view_like(operator: torch._ops.OpOverload) -> torch._ops.OpOverload | None:
    """The operator that gives as a view what ``operator``, such as ``transpose_``, makes of its argument itself."""
    packet = getattr(torch.ops.aten, operator._schema.name.partition("::")[2].removesuffix("_"), None)
    kinds = [str(argument.type) for argument in operator._schema.arguments]
    for found in (getattr(packet, name) for name in (packet.overloads() if packet else ())):
        alias = found._schema.returns[0].alias_info
        if alias and not alias.is_write and [str(argument.type) for argument in found._schema.arguments] == kinds:
            return found  # type: ignore[no-any-return]
    return None
