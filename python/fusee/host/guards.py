"""Guard programs with live objects in place of ids, and what their accessors find.

docs/contracts.md, section 6, describes the trees.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import _shim
from . import names, slots
from .describe import ObjectTable

Tree = tuple[Any, ...]


class Unreachable(Exception):
    """An accessor found nothing."""


Path = tuple[tuple[Any, ...], ...]
Note = Callable[[Path, Tree], None]


def bind(trees: tuple[Tree, ...], table: ObjectTable, note: Note) -> tuple[Tree, ...]:
    """The guard trees as the shim takes them, the dispatch keys of tensors apart, which ``GuardProgram.settle`` adds.

    ``note`` gets each check on a number or a tensor with the accessors that lead to its value.
    """
    live, noted = _shim.bind_guards(trees, table.objects, _PREDICATES)
    for path, check in noted:
        note(path, check)
    return live


def reach(path: list[tuple[Any, ...]], function: Any, bound: tuple[Any, ...]) -> Any:
    """What accessors with live objects find, or ``slots.ABSENT``."""
    reader = _Reader(function, bound)
    value = None
    for accessor in path:
        value = reader.reach(accessor, value)
        if value is slots.ABSENT:
            break
    return value


class _Reader:
    """Finds what accessors lead to in one call."""

    def __init__(self, function: Any, bound: tuple[Any, ...]) -> None:
        self._function = function
        self._bound = bound
        self._dict_getters: dict[type, Callable[[object], dict[str, Any] | None]] = {}

    def reach(self, accessor: Tree, parent: Any) -> Any:
        """The value of one accessor, or ``slots.ABSENT``."""
        kind = accessor[0]
        try:
            if kind == "field":  # most of those that lead through a tree of modules
                return self.field(parent, accessor[1])
            root = _ROOTS.get(kind)
            return _STEPS[kind](parent, *accessor[1:]) if root is None else root(self, *accessor[1:])
        except (Unreachable, LookupError, AttributeError, TypeError, ValueError):
            return slots.ABSENT

    def argument(self, index: int) -> Any:
        """The value of a parameter."""
        return self._bound[index]

    def variable(self, name: str) -> Any:
        """A global, else a builtin."""
        namespace = self._function.__globals__
        return namespace[name] if name in namespace else slots.builtins_of(self._function)[name]

    def cell(self, index: int) -> Any:
        """Contents of a free variable."""
        return self._function.__closure__[index].cell_contents

    def called(self) -> Any:
        """The function object that was called."""
        return self._function

    def field(self, parent: Any, name: str) -> Any:
        """An instance attribute."""
        cls = type(parent)
        getter = self._dict_getters.get(cls)
        if getter is None:
            getter = self._dict_getters[cls] = slots.dict_getter(cls)
        namespace = getter(parent)
        if namespace is None or name not in namespace:
            raise Unreachable
        return namespace[name]


def _from_wrappers(name: str) -> Callable[..., Callable[[Any], bool]]:
    """The function of that name that makes guards of tensors around others."""

    def make(*operands: Any) -> Callable[[Any], bool]:
        from . import wrappers

        made: Callable[[Any], bool] = getattr(wrappers, name)(*operands)
        return made

    return make


def _gives(name: str, wanted: Any) -> Callable[[Any], bool]:
    """The guard that a function, by its canonical name, gives for the value what it gave."""
    function = names.resolve(name)

    def holds(value: Any) -> bool:
        found = function(value)
        return type(found) is type(wanted) and bool(found == wanted)

    return holds


# Checks that Python makes: of tensors around others by the functions of `wrappers` that give them.
_PREDICATES: dict[str, Callable[..., Callable[[Any], bool]]] = {
    "flattened": _from_wrappers("flattened"),
    "resolved": _from_wrappers("resolved"),
    "gives": _gives,
}

_ROOTS: dict[str, Callable[..., Any]] = {
    "arg": _Reader.argument,
    "function": _Reader.called,
    "handled": lambda _: sys.exc_info()[1],
    "global": _Reader.variable,
    "cell": _Reader.cell,
    "object": lambda reader, value: value,
}


def _item(parent: Any, index: int) -> Any:
    kind = next((kind for kind in (tuple, deque) if slots.is_a(parent, kind)), list)
    return kind.__getitem__(parent, index)


def _value_under(parent: dict[Any, Any], key: Any) -> Any:
    """The value of a dict, which ``__missing__`` of its class is not asked for."""
    value = dict.get(parent, key, _ROOTS)
    if value is _ROOTS:
        raise KeyError(key)
    return value


_STEPS: dict[str, Callable[..., Any]] = {
    "attr": getattr,
    "dict": slots.instance_dict,
    "key": _value_under,
    "item": _item,
    "items_at": lambda parent, index: list(dict.values(parent))[index],
    "type": type,
    "contents": lambda parent: parent.cell_contents,
    "viewed": slots.viewed,
    "progress": slots.progress,
    "subclasses": type.__subclasses__,
}
