"""Guard programs with live objects in place of ids, and dispatch keys added to tensor checks.

docs/contracts.md, section 6, describes the trees.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from .. import _shim
from ..errors import HostFailure
from . import names, slots, tensors
from .describe import ObjectTable

Tree = tuple[Any, ...]


class Unreachable(Exception):
    """An accessor found nothing."""


Path = tuple[tuple[Any, ...], ...]
Note = Callable[[Path, Tree], None]


def bind(
    trees: tuple[Tree, ...], table: ObjectTable, function: Any, bound: tuple[Any, ...], note: Note
) -> tuple[Tree, ...]:
    """The guard trees as the shim takes them; ``bound`` are the values of the parameters that were compiled for.

    ``note`` gets each check with the accessors that lead to its value.
    """
    binder = _Binder(table, function, bound, note)
    return tuple(binder.node(tree, None, ()) for tree in trees)


def reach(path: list[tuple[Any, ...]], function: Any, bound: tuple[Any, ...]) -> Any:
    """What accessors with live objects find, or ``slots.ABSENT``."""
    reader = _Reader(function, bound)
    value = None
    for accessor in path:
        value = reader.reach(accessor, value)
        if value is slots.ABSENT:
            break
    return value


def _is_object(value: Any) -> bool:
    return type(value) is tuple and len(value) == 2 and value[0] == "object"


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


class _Binder(_Reader):
    """Walks a guard tree along with the values its accessors reach."""

    def __init__(self, table: ObjectTable, function: Any, bound: tuple[Any, ...], note: Note) -> None:
        super().__init__(function, bound)
        self._table = table
        self._note = note

    def node(self, tree: Tree, parent: Any, above: Path) -> Tree:
        """One node and its children."""
        accessor, checks, capture, children = tree
        live = ("object", self._table.object(accessor[1])) if accessor[0] == "object" else self._parts(accessor)
        value = self.reach(live, parent)
        path = (*above, live)
        bound_checks = tuple([self._check(check, value) for check in checks])
        for check in bound_checks:
            self._note(path, check)
        return live, bound_checks, capture, tuple([self.node(child, value, path) for child in children])

    def _parts(self, parts: Tree) -> Tree:
        """The parts of an accessor or check with live objects."""
        for part in parts:
            if type(part) is tuple or type(part) is list:
                return tuple(map(self._part, parts))
        return tuple(parts)

    def _check(self, check: Tree, value: Any) -> Tree:
        if check[0] == "members":
            return "members", tuple(self._table.object(part[1]) if _is_object(part) else part[0] for part in check[1])
        if check[0] in _OF_CONSTANT:
            return check[0], check[1][0]
        found = self._parts(check)
        if found[0] in _PREDICATES:
            return "predicate", _predicate(found)
        if found[0] != "tensor":
            return found
        if not slots.is_a(value, tensors.tensor_class()):
            raise HostFailure("guards", "a tensor check is on a value that is no tensor")
        name, cls, metadata = found
        return name, cls, (*metadata, _shim.key_set(value))

    def _part(self, part: Any) -> Any:
        """An operand of a check; keys of a dict may be live objects too."""
        if type(part) is str:
            return part
        if type(part) is list:
            return [self._part(item) for item in part]
        return self._table.object(part[1]) if _is_object(part) else part


# Checks of a set for one constant, which comes in a tuple of its own.
_OF_CONSTANT = ("contains", "lacks")

# Checks that Python makes: of tensors around others by the functions of `wrappers` that give them.
_PREDICATES = ("flattened", "resolved", "gives")


def _predicate(check: Tree) -> Callable[[Any], bool]:
    from . import wrappers

    name, *operands = check
    make: Callable[..., Callable[[Any], bool]] = _gives if name == "gives" else getattr(wrappers, name)
    return make(*operands)


def _gives(name: str, wanted: Any) -> Callable[[Any], bool]:
    """The guard that a function, by its canonical name, gives for the value what it gave."""
    function = names.resolve(name)

    def holds(value: Any) -> bool:
        found = function(value)
        return type(found) is type(wanted) and bool(found == wanted)

    return holds


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


_STEPS: dict[str, Callable[..., Any]] = {
    "attr": getattr,
    "dict": slots.instance_dict,
    "key": dict.__getitem__,
    "item": _item,
    "items_at": lambda parent, index: list(dict.values(parent))[index],
    "type": type,
    "contents": lambda parent: parent.cell_contents,
    "viewed": slots.viewed,
    "progress": slots.progress,
    "subclasses": type.__subclasses__,
}
