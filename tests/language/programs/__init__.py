"""Programs over the constructs of the language; ``calls`` gives the arguments they are called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def calls(*arguments: tuple[Any, ...], whole: bool = False, **options: Any) -> Callable[[F], F]:
    """Mark a function as a program; ``whole``: no variants with breaks are made of it; options of the compiler."""
    del arguments, whole, options
    return lambda function: function
