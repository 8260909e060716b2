"""Descriptions of live objects for the compiler (docs/contracts.md, section 2).

One :class:`ObjectTable` lives for one compile: it gives ids, keeps the objects alive, and writes descriptions. What a
described object mentions is described along with it, a few levels deep, so that the compiler has little left to ask.
"""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import _helpers, _shim
from . import names, slots, treatment
from .tensors import TensorReader, has_metadata

Reference = Any  # an int id, or a 1-tuple holding a constant
Description = tuple[int, str, int, Any]

_CONSTANTS = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis)})
_LONGEST = 16384
_DEPTH = 4
_BUDGET = 4000


@dataclass(frozen=True)
class _Layout:
    """What a class says about its instances: the getter of their dict, their slots, and the plain type they extend."""

    dict_of: Callable[[object], dict[str, Any] | None]
    members: list[tuple[str, types.MemberDescriptorType]]
    base: type | None

    @property
    def plain(self) -> bool:
        """Whether instances are nothing but the attributes in their dict."""
        return self.dict_of is not slots.no_dict and not self.members and self.base is None


class ObjectTable(_shim.ObjectTable):
    """Ids and descriptions of the objects of one compile; plain containers and instances are described in C."""

    def __init__(self) -> None:
        self._postponed: dict[int, int] = {}  # depth by id of what earlier answers had no room for
        self._kinds = dict(kinds())
        self._layouts: dict[type, _Layout] = {}
        self.tensors = TensorReader()

    def object(self, number: int) -> Any:
        """The object of an id; LookupError for an id never given."""
        if type(number) is not int or not 0 < number < len(self.objects):
            raise LookupError(f"there is no object {number!r}")
        return self.objects[number]

    def value(self, reference: Reference) -> Any:
        """What a reference stands for."""
        if isinstance(reference, int):
            return self.object(reference)
        if len(reference) == 2:
            kind, text = reference
            return names.resolve("torch.device")(text) if kind == "device" else names.resolve(text)
        (constant,) = reference
        return constant

    def describe(self, references: Iterable[Reference], depth: int = _DEPTH) -> list[Description]:
        """Descriptions of these objects and, ``depth`` levels deep, of what they mention."""
        for reference in references:
            if type(reference) is int:
                self.enqueue(reference, depth)
        return self._write_queued()

    def redescribe(self, numbers: Iterable[int]) -> list[Description]:
        """Descriptions of these ids even if they were given before.

        Where one of them had no room in an earlier answer, the rest of that follows: so a large tree of modules takes
        an answer for each few thousand objects, not a question for each object behind the first few thousand.
        """
        wanted = list(numbers)
        for number in wanted:
            self.forget_description(number)
        for number in wanted:
            self.enqueue(number, _DEPTH)
        if not self._postponed.keys().isdisjoint(wanted):
            postponed, self._postponed = self._postponed, {}
            for number, depth in postponed.items():
                self.enqueue(number, depth)
        return self._write_queued()

    def _write_queued(self) -> list[Description]:
        found, postponed = self.write_queued(_BUDGET)
        self._postponed.update(postponed)
        return found

    def describe_one(self, number: int, depth: int) -> Description:
        """The description of an object that C does not write."""
        value = self.objects[number]
        cls = type(value)
        kind, writer, cost = self._kinds.get(cls) or self._kind_of(cls)
        if kind == "tensor" and not has_metadata(value):
            kind, writer, cost = _OPAQUE
        if kind in _PLAIN_KINDS and self.layout(cls).plain:
            self.plain[cls] = (kind, *_PLAIN_KINDS[kind])
        payload = writer(_Writing(self, depth - cost), value)
        return number, kind, self.mention(cls, depth - cost), payload

    def _kind_of(self, cls: type) -> Kind:
        """The kind of a class that no row names, kept for its other instances as long as the compile lasts."""
        found = next((self._kinds[base] for base in slots.mro(cls) if base in self._kinds), _OBJECT)
        return self._kinds.setdefault(cls, found)

    def layout(self, cls: type) -> _Layout:
        """The layout of a class's instances, read once in a compile."""
        known = self._layouts.get(cls)
        if known is None:
            base = next((base for base in slots.mro(cls) if base in _VALUES), None)
            known = self._layouts[cls] = _Layout(slots.dict_getter(cls), slots.members(cls), base)
        return known


class _Writing:
    """The description being written: references that it mentions are described up to the depth that is left."""

    __slots__ = ("depth", "table")

    def __init__(self, table: ObjectTable, depth: int) -> None:
        self.table = table
        self.depth = depth

    def mention(self, value: Any) -> Reference:
        return self.table.mention(value, self.depth)

    def stub(self, value: Any) -> Reference:
        return self.table.reference(value)

    def mention_all(self, values: Iterable[Any]) -> list[Reference]:
        return self.table.mention_all(values, self.depth)

    def mention_type(self, cls: type) -> int:
        """Types are described wherever they occur: they are few and every attribute lookup needs them."""
        number = self.table.identify(cls)
        self.table.enqueue(number, max(self.depth, 1))
        return number


Writer = Callable[[_Writing, Any], Any]
Kind = tuple[str, Writer, int]  # name, writer, and how many levels of depth an object of this kind uses up


def _items(iterate: Callable[[Any], Iterable[Any]], length: Callable[[Any], int]) -> Writer:
    def write(writing: _Writing, value: Any) -> Any:
        return None if length(value) > _LONGEST else writing.mention_all(iterate(value))

    return write


def _write_dict(writing: _Writing, value: dict[Any, Any]) -> Any:
    if dict.__len__(value) > _LONGEST or _is_namespace(value):
        return None
    return [(writing.mention(key), writing.mention(item)) for key, item in _dict_items(value)]


def _dict_items(value: dict[Any, Any]) -> Iterable[tuple[Any, Any]]:
    if not slots.is_a(value, collections.OrderedDict):
        return list(dict.items(value))
    ordered: Any = collections.OrderedDict
    return [(key, dict.__getitem__(value, key)) for key in ordered.keys(value)]


def _is_namespace(value: dict[Any, Any]) -> bool:
    return type(value) is dict and "__name__" in value and "__builtins__" in value


def _write_view(kind: str) -> Writer:
    return lambda writing, value: (kind, writing.mention(slots.viewed(value)))


def _write_iterator(writing: _Writing, value: Any) -> Any:
    """What is walked over and how far; None at the end."""
    walked = slots.viewed(value)
    return None if walked is slots.ABSENT else (type(value).__name__, writing.mention(walked), slots.progress(value))


def _write_range_iterator(writing: _Writing, value: Any) -> Any:
    rest = _helpers.rest_of_range(value)
    return type(value).__name__, writing.mention(rest), slots.progress(value)


def _write_range(writing: _Writing, value: Any) -> Any:
    return writing.mention(value.start), writing.mention(value.stop), writing.mention(value.step)


def _write_tensor(writing: _Writing, value: Any) -> Any:
    return writing.table.tensors.payload(value, writing.mention)


def _portable(code: types.CodeType, writing: _Writing) -> types.CodeType:
    """Code whose live constants (rewritten code holds some) are placeholders, so that marshal can write it."""
    constants = tuple(_portable_constant(constant, writing) for constant in code.co_consts)
    if all(new is old for new, old in zip(constants, code.co_consts, strict=True)):
        return code
    return code.replace(co_consts=constants)


def _portable_constant(constant: Any, writing: _Writing) -> Any:
    kind = type(constant)
    if kind in _CONSTANTS:
        return constant
    if kind is types.CodeType:
        return _portable(constant, writing)
    if kind in (tuple, frozenset):
        items = [_portable_constant(item, writing) for item in constant]
        same = all(new is old for new, old in zip(items, constant, strict=True))
        return constant if same else kind(items)
    return ("$fusee", "object", writing.mention(constant))


def _write_function(writing: _Writing, value: Any) -> dict[str, Any]:
    function = treatment.plain_function(value)
    treat, name, reason = treatment.of(value, function)
    globals_read, builtins_read = _globals_read(writing, function) if treat == "inline" else ({}, set())
    namespace = slots.instance_dict(function)
    return {
        "code": _portable(function.__code__, writing),
        "code_object": writing.stub(function.__code__),
        "globals": writing.stub(function.__globals__),
        "name": name,
        "qualname": function.__qualname__,
        "module": function.__module__ if type(function.__module__) is str else "",
        "defaults": writing.mention(function.__defaults__),
        "kwdefaults": writing.mention(function.__kwdefaults__),
        "closure": writing.mention_all(function.__closure__ or ()),
        "dict": writing.mention(namespace) if namespace else (None,),
        "treat": treat,
        "reason": reason,
        "globals_read": globals_read,
        "builtins_read": builtins_read,
    }


def _globals_read(writing: _Writing, function: types.FunctionType) -> tuple[dict[str, Reference], set[str]]:
    found: dict[str, Reference] = {}
    from_builtins: set[str] = set()
    namespace, fallback = function.__globals__, slots.builtins_of(function)
    for name in _code_names(function.__code__):
        if name in namespace:
            found[name] = writing.mention(namespace[name])
        elif name in fallback:
            found[name] = writing.mention(fallback[name])
            from_builtins.add(name)
    return found, from_builtins


def _code_names(code: types.CodeType) -> tuple[str, ...]:
    """``co_names`` of a code object and of the code nested in it, in order of first mention.

    Nothing is remembered: a cache would keep the code of functions that are gone.
    """
    ordered = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            ordered.update(dict.fromkeys(_code_names(constant)))
    return tuple(ordered)


def _write_cell(writing: _Writing, value: types.CellType) -> list[Reference]:
    try:
        return [writing.mention(value.cell_contents)]
    except ValueError:
        return []


def _write_method(writing: _Writing, value: types.MethodType) -> Any:
    return writing.mention(value.__self__), writing.mention(value.__func__)


def _write_builtin(writing: _Writing, value: Any) -> dict[str, Any]:
    owner = value.__self__
    keep = None if type(owner) is types.ModuleType else owner
    return {"name": names.builtin_name(value), "self": writing.mention(keep)}


def _write_method_wrapper(writing: _Writing, value: Any) -> dict[str, Any]:
    name = f"{names.type_name(value.__objclass__)}.{value.__name__}"
    return {"name": name, "self": writing.mention(value.__self__)}


def _descriptor(flavor: str) -> Writer:
    return lambda writing, value: {"name": names.descriptor_name(value), "flavor": flavor}


def _write_property(writing: _Writing, value: property) -> Any:
    get = property.__getattribute__
    return tuple(writing.mention(get(value, field)) for field in ("fget", "fset", "fdel"))


def _write_wrapped(writing: _Writing, value: Any) -> Reference:
    return writing.mention(value.__func__)


def _write_partial(writing: _Writing, value: functools.partial[Any]) -> Any:
    read = functools.partial.__getattribute__
    return tuple(writing.mention(read(value, field)) for field in ("func", "args", "keywords"))


def _write_module(writing: _Writing, value: types.ModuleType) -> str:
    name = (slots.instance_dict(value) or {}).get("__name__")
    return name if type(name) is str else ""


def _write_type(writing: _Writing, cls: type) -> dict[str, Any]:
    order = slots.mro(cls)
    return {
        "name": names.type_name(cls),
        "mro": [writing.mention_type(base) for base in order],
        "base_names": [names.type_name(base) for base in order],
        "flags": slots.flags(cls),
        "dict_offset": slots.has_dict(cls),
        "names": sorted(name for name in slots.class_dict(cls) if type(name) is str),
    }


_VALUES = (int, float, str, bytes, complex)


def _write_object(writing: _Writing, value: Any, stubs: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Attributes and plain value; what the attributes in ``stubs`` hold is mentioned only."""
    layout = writing.table.layout(type(value))
    namespace = layout.dict_of(value)
    payload: dict[str, Any] = {
        "dict": None if namespace is None else _named(writing, namespace.items(), stubs),
        "slots": _named(writing, slots.members_set(layout.members, value)),
    }
    if namespace is not None and (named := writing.table.own(namespace, value)) is not None:
        payload["fields"] = named
    if layout.base is not None:
        payload["value"] = (_plain(layout.base, value),)
    return payload


_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__,
    float: float.__float__,
    str: lambda value: str.__str__(value) if type(value) is str else str.__add__(value, ""),
    bytes: lambda value: bytes.__add__(value, b""),
    complex: lambda value: complex.__complex__(value),
}


def _plain(base: type, value: Any) -> Any:
    return _PLAIN[base](value)


def _named(
    writing: _Writing, pairs: Iterable[tuple[str, Any]], stubs: frozenset[str] = frozenset()
) -> list[tuple[str, Reference]]:
    mention, depth = writing.table.mention, writing.depth
    return [
        (name, mention(content, 0 if name in stubs else depth)) for name, content in list(pairs) if type(name) is str
    ]


# What modules hold for saving and loading, of which their calls make no use.
_FOR_STATE_DICTS = frozenset(
    {"_non_persistent_buffers_set", "_state_dict_hooks", "_state_dict_pre_hooks"}
    | {"_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"}
)


def _write_module_tree(writing: _Writing, value: Any) -> dict[str, Any]:
    """A module with its whole subtree: submodules do not use up depth."""
    deeper = _Writing(writing.table, max(writing.depth, _DEPTH - 1))
    return _write_object(deeper, value, _FOR_STATE_DICTS)


def _write_text(writing: _Writing, value: Any) -> str:
    return str(value).removeprefix("torch.")


def _write_size(writing: _Writing, value: Any) -> list[int]:
    return [int(item) for item in tuple.__iter__(value)]


def _write_opaque(writing: _Writing, value: Any) -> str:
    return type.__repr__(type(value))


_OPAQUE: Kind = ("opaque", _write_opaque, 1)


def _write_array(writing: _Writing, value: Any) -> Any:
    """Metadata of a tensor on the array's memory, strides in bytes, and dtype; None where torch has no such tensor."""
    import torch

    from .tensors import metadata

    if type(value).__name__ != "ndarray" or not value.dtype.isnative or any(stride < 0 for stride in value.strides):
        return None
    try:
        tensor = torch.from_numpy(value if value.flags.writeable else value.copy())
    except (TypeError, ValueError):
        return None
    return metadata(tensor), value.strides, writing.mention(value.dtype)


def _write_numpy_function(writing: _Writing, value: Any) -> dict[str, Any]:
    return {"name": names.numpy_name(value) or f"numpy function {value.__name__}", "self": (None,)}


def _numpy_kinds() -> dict[type, Kind]:
    """Kinds of NumPy's objects, once a program has imported it."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return {}
    function: Kind = ("builtin", _write_numpy_function, 1)
    return {numpy.ndarray: ("array", _write_array, 1), numpy.ufunc: function, type(numpy.sum): function}


_OBJECT: Kind = ("object", _write_object, 1)
# What C does for kinds whose instances are plain: the least depth of their attributes, the levels that an instance uses
# up, and the attributes whose values are mentioned only.
_PLAIN_KINDS: Mapping[str, tuple[int, int, frozenset[str]]] = {
    "object": (0, 1, frozenset()),
    "module_tree": (_DEPTH - 1, 0, _FOR_STATE_DICTS),
}
_method_wrapper = type("".__len__)

_PYTHON_KINDS: dict[type, Kind] = {
    tuple: ("tuple", _items(tuple.__iter__, tuple.__len__), 1),
    list: ("list", _items(list.__iter__, list.__len__), 1),
    set: ("set", _items(set.__iter__, set.__len__), 1),
    frozenset: ("frozenset", _items(frozenset.__iter__, frozenset.__len__), 1),
    deque: ("deque", _items(deque.__iter__, deque.__len__), 1),
    dict: ("dict", _write_dict, 1),
    type({}.keys()): ("dict_view", _write_view("keys"), 0),
    type({}.values()): ("dict_view", _write_view("values"), 0),
    type({}.items()): ("dict_view", _write_view("items"), 0),
    **dict.fromkeys(slots.WALKERS, ("iterator", _write_iterator, 0)),
    type(iter(range(0))): ("iterator", _write_range_iterator, 0),
    range: ("range", _write_range, 1),
    slice: ("slice", _write_range, 1),
    types.FunctionType: ("function", _write_function, 2),
    types.CellType: ("cell", _write_cell, 0),
    types.MethodType: ("method", _write_method, 0),
    types.BuiltinFunctionType: ("builtin", _write_builtin, 1),
    _method_wrapper: ("builtin", _write_method_wrapper, 1),
    types.MethodDescriptorType: ("descriptor", _descriptor("method"), 1),
    types.WrapperDescriptorType: ("descriptor", _descriptor("wrapper"), 1),
    types.GetSetDescriptorType: ("descriptor", _descriptor("getset"), 1),
    types.MemberDescriptorType: ("descriptor", _descriptor("member"), 1),
    types.ClassMethodDescriptorType: ("descriptor", _descriptor("classmethod"), 1),
    property: ("property", _write_property, 1),
    staticmethod: ("staticmethod", _write_wrapped, 0),
    classmethod: ("classmethod", _write_wrapped, 0),
    functools.partial: ("partial", _write_partial, 0),
    types.ModuleType: ("module", _write_module, 1),
    type: ("type", _write_type, 1),
    types.CodeType: _OPAQUE,
    types.FrameType: _OPAQUE,
    types.GeneratorType: _OPAQUE,
    types.CoroutineType: _OPAQUE,
}


@functools.lru_cache(maxsize=1)
def kinds() -> dict[type, Kind]:
    """Kind by type; the first class along an object's MRO that is in here decides."""
    import torch

    text: Kind = ("dtype", _write_text, 1)
    return {
        **_PYTHON_KINDS,
        **_numpy_kinds(),
        _shim.CompiledFunction: _PYTHON_KINDS[types.FunctionType],
        torch.Tensor: ("tensor", _write_tensor, 1),
        torch._C.TensorBase: ("tensor", _write_tensor, 1),
        torch.nn.Module: ("module_tree", _write_module_tree, 0),
        torch.dtype: text,
        torch.device: ("device", _write_text, 1),
        torch.layout: ("layout", _write_text, 1),
        torch.memory_format: ("memory_format", _write_text, 1),
        torch.Size: ("size", _write_size, 1),
        torch.Generator: ("generator", _write_text, 1),
    }
