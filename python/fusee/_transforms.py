"""Transformed operators as single operations of a graph."""

from __future__ import annotations

from typing import Any

from .host import names


def vmap(operator: str, in_dims: Any, out_dims: Any, /, *arguments: Any, **named: Any) -> Any:
    """``torch.func.vmap`` of the operator with this name, called with the arguments; raises what that raises."""
    import torch

    return torch.func.vmap(names.resolve(operator), in_dims, out_dims)(*arguments, **named)
