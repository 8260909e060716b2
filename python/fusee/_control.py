"""torch's control-flow operators as the plain Python that they stand for, which capture looks into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """``torch.cond``: one of two functions of the operands. ``pred`` is a bool, or a tensor of one element."""
    if pred:
        return true_fn(*operands)
    return false_fn(*operands)
