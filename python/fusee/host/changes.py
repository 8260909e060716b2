"""Which numbers and tensor sizes changed since they were guarded: the next capture treats these as symbolic."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import slots

if TYPE_CHECKING:
    from .describe import ObjectTable

Path = tuple[Any, ...]  # accessors of docs/contracts.md, section 6, from the root on
Bound = tuple[Any, ...]
_NUMBERS = (int, float)


class Changes:
    """What the captures of one code object were specialised to, and what of it was other at a later call."""

    def __init__(self) -> None:
        self._numbers: dict[Path, int | float] = {}
        self._shapes: dict[Path, tuple[Any, Any]] = {}
        self._changed_numbers: dict[Path, None] = {}
        self._changed_shapes: dict[Path, tuple[set[int], set[int]]] = {}
        self._objects: dict[int, Callable[[], Any]] = {}  # that paths start at, by their identity; None once gone

    def clear(self) -> None:
        """Forget everything."""
        for table in (self._numbers, self._shapes, self._changed_numbers, self._changed_shapes, self._objects):
            table.clear()

    def note(self, path: Path, check: tuple[Any, ...]) -> None:
        """One check of a new entry, with live objects in place of ids."""
        if check[0] == "equals" and type(check[1]) in _NUMBERS:
            self._numbers[self._key(path)] = check[1]
        elif check[0] == "tensor" and check[2][2] is not None:
            self._shapes[self._key(path)] = (check[2][2], check[2][3])

    def compare(self, function: Any, bound: Bound) -> None:
        """Look at what a call that fits no entry finds in the places that earlier captures read."""
        self._forget_gone()
        for path, old in self._numbers.items():
            new = self._found(path, function, bound)
            if type(new) is type(old) and new != old:
                self._changed_numbers[path] = None
        for path, shape in self._shapes.items():
            new = self._found(path, function, bound)
            if slots.is_a(new, _tensor_class()):
                self._compare_shape(path, shape, new)

    def _forget_gone(self) -> None:
        """Drop the paths that start at objects that are no more."""
        gone = {number for number, live in self._objects.items() if live() is None}
        for number in gone:
            del self._objects[number]
        tables: tuple[dict[Path, Any], ...]
        tables = (self._numbers, self._shapes, self._changed_numbers, self._changed_shapes) if gone else ()
        for table in tables:
            for path in [path for path in table if any(step[0] == "object" and step[1] in gone for step in path)]:
                del table[path]

    def _compare_shape(self, path: Path, shape: tuple[Any, Any], tensor: Any) -> None:
        from .tensors import metadata

        found = metadata(tensor)[2:4]
        if len(found[0]) != len(shape[0]) or len(found[1]) != len(shape[0]):
            return
        for which, (old, new) in enumerate(zip(shape, found, strict=True)):
            for dimension, size in enumerate(old or ()):
                if size is not None and size != new[dimension]:
                    self._changed_shapes.setdefault(path, (set(), set()))[which].add(dimension)

    def wire(self, table: ObjectTable) -> list[tuple[Any, Any]]:
        """The changes as the ``changed`` of a compile request."""
        changed: list[tuple[Path, Any]] = [(path, "number") for path in self._changed_numbers]
        changed += [(path, (sorted(dims), sorted(steps))) for path, (dims, steps) in self._changed_shapes.items()]
        return [(self._wire_path(path, table), what) for path, what in changed if self._is_there(path)]

    def _is_there(self, path: Path) -> bool:
        """Whether the object that a path may start at lives."""
        return all(step[0] != "object" or self._objects[step[1]]() is not None for step in path)

    def _key(self, path: Path) -> Path:
        """The path with an object's identity in its place, so that it can be looked up without comparing objects."""
        return tuple(self._named(accessor) for accessor in path)

    def _named(self, accessor: tuple[Any, ...]) -> tuple[Any, ...]:
        if accessor[0] != "object":
            return accessor
        self._objects[id(accessor[1])] = slots.weakly(accessor[1])
        return "object", id(accessor[1])

    def _found(self, path: Path, function: Any, bound: Bound) -> Any:
        from .guards import reach

        return reach([self._live(accessor) for accessor in path], function, bound)

    def _live(self, accessor: tuple[Any, ...]) -> tuple[Any, ...]:
        return ("object", self._objects[accessor[1]]()) if accessor[0] == "object" else accessor

    def _wire_path(self, path: Path, table: ObjectTable) -> tuple[Any, ...]:
        live = map(self._live, path)
        return tuple(("object", table.identify(step[1])) if step[0] == "object" else step for step in live)


def _tensor_class() -> type:
    from .tensors import tensor_class

    return tensor_class()
