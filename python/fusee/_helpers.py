"""Functions that rewritten code may call (placeholder kind "helper" of docs/contracts.md, section 4)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any


def unbound_local(name: str) -> None:
    """Raise what CPython raises for a local variable that has no value."""
    raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")


def make_cell(*content: Any) -> Any:
    """A closure cell, empty without an argument."""
    import types

    return types.CellType(*content)


def set_field(target: Any, name: str, value: Any) -> None:
    """Write an instance attribute without descriptors, as a replayed side effect does."""
    object.__setattr__(target, name, value)


def delete_field(target: Any, name: str) -> None:
    """Delete an instance attribute without descriptors."""
    object.__delattr__(target, name)


def set_exception(error: BaseException | None) -> None:
    """Raise the exception again that the interrupted handler was handling."""
    if error is not None:
        raise error


def handled_exception() -> BaseException | None:
    """The exception being handled."""
    return sys.exc_info()[1]


def replace_list(target: list[Any], items: list[Any]) -> None:
    """Give a list its final contents."""
    list.__setitem__(target, slice(None), items)


def replace_dict(target: dict[Any, Any], items: dict[Any, Any]) -> None:
    """Give a dict its final contents and order."""
    dict.clear(target)
    dict.update(target, items)


def replace_set(target: set[Any], items: set[Any]) -> None:
    """Give a set its final contents."""
    set.clear(target)
    set.update(target, items)


TABLE: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        unbound_local,
        make_cell,
        set_field,
        delete_field,
        set_exception,
        handled_exception,
        replace_list,
        replace_dict,
        replace_set,
    )
}
