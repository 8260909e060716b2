"""Reading Python objects as C does: no property, ``__getattr__``, metaclass or ``__class__`` of the user runs."""

from __future__ import annotations

import gc
import operator
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

_get_mro = type.__dict__["__mro__"].__get__
_get_class_dict = type.__dict__["__dict__"].__get__
_get_qualname = type.__dict__["__qualname__"].__get__
_get_flags = type.__dict__["__flags__"].__get__
_get_module = type.__dict__["__module__"].__get__
_get_builtins = types.FunctionType.__dict__["__builtins__"].__get__
_get_dict_offset = type.__dict__["__dictoffset__"].__get__

ABSENT = object()
_DICT_WALKERS: tuple[type, ...] = (type(iter({})), type(iter({}.values())), type(iter({}.items())))
WALKERS: tuple[type, ...] = (*_DICT_WALKERS, type(iter([])), type(iter(())), enumerate, zip)
_HEAP_TYPE = 1 << 9


def mro(cls: type) -> tuple[type, ...]:
    """The class and its bases in lookup order."""
    return _get_mro(cls)  # type: ignore[no-any-return]


def viewed(value: Any) -> Any:
    """The dict below a view of it, or what a builtin iterator walks over; ABSENT once that has come to its end."""
    referents = gc.get_referents(value)
    return referents[0] if referents else ABSENT


def progress(iterator: Any) -> int:
    """The position in a list, tuple or dict (-1 in one that grew or shrank), what an enumerate gives next, a zip's
    strictness, a range's rest."""
    kind = type(iterator)
    reduced: Any = None if kind in _DICT_WALKERS or kind is type(iter(range(0))) else iterator.__reduce__()
    if kind is enumerate:
        return int(reduced[1][1])
    if kind is zip:
        return len(reduced) > 2
    if reduced is not None:
        return int(reduced[2])
    left = operator.length_hint(iterator)
    if kind not in _DICT_WALKERS:
        return left
    return len(viewed(iterator)) - left if left or not _is_stale(iterator) else -1


def _is_stale(iterator: Any) -> bool:
    """Whether an iterator over a dict raises at the next step; its length is 0 then too."""
    try:
        iterator.__reduce__()
    except RuntimeError:
        return True
    return False


def weakly(value: Any) -> Callable[[], Any]:
    """A function that returns the object, or None once it is gone; what has no weak references is kept."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value


def class_dict(cls: type) -> types.MappingProxyType[str, Any]:
    """A class's own namespace, whatever its metaclass says."""
    return _get_class_dict(cls)  # type: ignore[no-any-return]


def flags(cls: type) -> int:
    """CPython's tp_flags."""
    return _get_flags(cls)  # type: ignore[no-any-return]


def is_heap_type(cls: type) -> bool:
    """Whether a class was made by a ``class`` statement or the like, not written in C as a static type."""
    return bool(flags(cls) & _HEAP_TYPE)


def has_dict(cls: type) -> bool:
    """Whether instances carry an attribute dict."""
    return bool(_get_dict_offset(cls))


def qualname(cls: type) -> str:
    """A class's ``__qualname__``, whatever its metaclass says."""
    return _get_qualname(cls)  # type: ignore[no-any-return]


def module_name(cls: type) -> str:
    """The module a class says it is from; ``builtins`` when it does not say."""
    name = _get_module(cls)
    return name if type(name) is str else "builtins"


def lookup(cls: type, name: str) -> tuple[type, Any] | None:
    """``_PyType_Lookup``: the class along the MRO that holds ``name``, and the raw attribute."""
    for base in mro(cls):
        namespace = class_dict(base)
        if name in namespace:
            return base, namespace[name]
    return None


def is_a(value: object, cls: type) -> bool:
    """``isinstance`` by the real type alone."""
    return cls in mro(type(value))


def builtins_of(function: types.FunctionType) -> dict[str, Any]:
    """The dict of builtins that a function's code falls back to after its globals."""
    return _get_builtins(function)  # type: ignore[no-any-return]


def dict_getter(cls: type) -> Callable[[object], dict[str, Any] | None]:
    """A function that reads the attribute dict of the instances of a class through the C getter, None without one."""
    if has_dict(cls):
        for base in mro(cls):
            getter: Any = class_dict(base).get("__dict__")
            if type(getter) in (types.GetSetDescriptorType, types.MemberDescriptorType):
                return lambda value: found if type(found := getter.__get__(value)) is dict else None
    return no_dict


def no_dict(value: object) -> None:
    """What :func:`dict_getter` gives for a class whose instances have none."""


_function_dict = dict_getter(types.FunctionType)


def instance_dict(value: object) -> dict[str, Any] | None:
    """The attribute dict of an instance, read through the C getter; None when there is none."""
    cls = type(value)
    return _function_dict(value) if cls is types.FunctionType else dict_getter(cls)(value)


def members(cls: type) -> list[tuple[str, types.MemberDescriptorType]]:
    """The ``__slots__`` of a class and its bases, the bases' first."""
    return [
        (name, member)
        for base in reversed(mro(cls))
        if is_heap_type(base)
        for name, member in class_dict(base).items()
        if type(member) is types.MemberDescriptorType
    ]


def members_set(found: Iterable[tuple[str, types.MemberDescriptorType]], value: object) -> list[tuple[str, Any]]:
    """Names and values of those of the :func:`members` of its class that are set in an instance."""
    pairs = [(name, _member(member, value)) for name, member in found]
    return [(name, content) for name, content in pairs if content is not ABSENT]


def _member(member: types.MemberDescriptorType, value: object) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:
        return ABSENT
