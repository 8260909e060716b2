"""Canonical names of library objects, and back (docs/contracts.md, section 2).

Names are how the compiler's tables are keyed, so that they hold for every torch version.
"""

from __future__ import annotations

import builtins
import collections
import enum
import functools
import importlib
import itertools
import operator
import sys
import types
import weakref
from functools import lru_cache
from typing import Any

from . import slots

# Types of builtins that no name in builtins reaches, such as NoneType and function.
_UNNAMED_TYPES = {
    cls.__qualname__: cls
    for cls in (
        *(value for value in vars(types).values() if isinstance(value, type) and value.__module__ == "builtins"),
        *map(type, (iter([]), iter(()), iter({}), iter(set()), iter(range(0)), {}.keys(), {}.values(), {}.items())),
        *map(type, (iter(""), iter(b""), type.__call__, str.join, "".__len__, reversed([]))),
    )
}

_MODULE_ALIASES = {"_operator": "operator", "builtins": "builtins", "_functools": "functools", "posix": "os"}
_TENSOR_OWNERS = ("torch._C.TensorBase", "torch._tensor.Tensor", "torch.Tensor")
_PUBLIC_CLASSES = {"torch._tensor.Tensor": "torch.Tensor", "torch._C.TensorBase": "torch._C.TensorBase"}

# Python functions of these namespaces are operators to the compiler: it keeps a call of them as one graph node.
_FUNCTION_NAMESPACES = (
    "torch.nn.functional",
    "torch",
    "torch.functional",
    "torch.special",
    "torch.linalg",
    "torch.fft",
    "torch.nn.init",
)


# Modules whose classes the compiler knows by their names, as they are when this one is imported.
_MODELLED = (builtins, collections, enum, functools, itertools, operator, types, weakref)


def _written_name(cls: type) -> str:
    module, name = slots.module_name(cls), slots.qualname(cls)
    return name if module == "builtins" else f"{module}.{name}"


_ORIGINALS = {_written_name(cls): cls for module in _MODELLED for cls in vars(module).values() if isinstance(cls, type)}
_ORIGINALS |= {_written_name(cls): cls for cls in _UNNAMED_TYPES.values()}


def type_name(cls: type) -> str:
    """``module.qualname``; builtin types bare. A class that only says so has ``?.`` before the name."""
    full = _written_name(cls)
    if _ORIGINALS.get(full, cls) is not cls:
        return f"?.{full}"
    return _PUBLIC_CLASSES.get(full, full)


def _owner_name(cls: type) -> str:
    name = type_name(cls)
    return "Tensor" if name in _TENSOR_OWNERS or name == "torch._C._TensorBase" else name


def numpy_name(function: Any) -> str:
    """``numpy.NAME`` of a function that NumPy's public namespaces hold under its own name; "" for others."""
    name = getattr(function, "__name__", "")
    for space in ("numpy", "numpy.linalg", "numpy.fft"):
        module = sys.modules.get(space)
        if module is not None and vars(module).get(name) is function:
            return f"{space}.{name}"
    return ""


def builtin_name(function: types.BuiltinFunctionType) -> str:
    """Name of a builtin function or bound builtin method: ``math.sqrt``, ``torch.relu``, ``list.append``."""
    name = function.__name__
    owner = function.__self__
    if type(owner) is types.ModuleType:
        module = owner.__name__
        if module.startswith("numpy.") and (public := numpy_name(function)):
            return public
        return f"{_MODULE_ALIASES.get(module, module)}.{name}"
    if owner is None or type(owner).__module__ == "pybind11_builtins" or type(owner).__name__ == "PyCapsule":
        if function.__module__ is None and _is_tensor_function(function):
            return f"Tensor.{name}"
        module = function.__module__ or "builtins"
        if module == "torch":
            return _generated_name(name)
        return f"{_MODULE_ALIASES.get(module, module)}.{name}"
    if slots.is_a(owner, type):
        return _class_builtin(owner, name)
    return f"{_owner_name(_defining_class(type(owner), name))}.{name}"


def _is_tensor_function(function: types.BuiltinFunctionType) -> bool:
    """Whether it is a static method of ``torch.Tensor``, such as ``_make_subclass``: these know no module."""
    found = slots.lookup(_tensor_class(), function.__name__)
    return found is not None and type(found[1]) is staticmethod and found[1].__func__ is function


def _class_builtin(owner: Any, name: str) -> str:
    full = type_name(owner)
    if full.startswith("torch._C._VariableFunctions"):
        return _generated_name(name)
    return f"{_owner_name(_defining_class(owner, name))}.{name}"


def _generated_name(name: str) -> str:
    """Name of a function in C of ``torch``; one in Python may wrap it, under the same name but for other arguments."""
    wrapped = type(vars(sys.modules["torch"]).get(name)) is types.FunctionType
    return f"torch._VF.{name}" if wrapped else f"torch.{name}"


def _defining_class(cls: type, name: str) -> type:
    found = slots.lookup(cls, name)
    return found[0] if found else cls


def descriptor_name(descriptor: Any) -> str:
    """Name of a method, wrapper, getset or member descriptor: ``str.join``, ``Tensor.shape``."""
    return f"{_owner_name(descriptor.__objclass__)}.{descriptor.__name__}"


@lru_cache(maxsize=1)
def torch_functions() -> dict[int, str]:
    """Name by id of the Python functions of torch that stay one graph node; they live as long as torch."""
    import torch

    names: dict[int, str] = {}
    for namespace in reversed(_FUNCTION_NAMESPACES):
        module = sys.modules.get(namespace)
        for name, value in list(vars(module).items()) if module is not None else ():
            if _is_operator(value, name):
                names[id(value)] = f"{namespace}.{name}"
    for name, value in slots.class_dict(torch.Tensor).items():
        if type(value) is types.FunctionType:
            names[id(value)] = f"Tensor.{name}"
    return names


# Modules of this package that hold targets of graphs; they are imported when the first graph names one.
_MODULES_OF_TARGETS = frozenset({"_arrays", "_gradients", "_random", "_transforms"})

_NOT_OPERATORS = frozenset(
    {
        "compile",
        "set_default_dtype",
        "set_default_device",
        "manual_seed",
        "seed",
        "save",
        "load",
        "is_tensor",
        "typename",
    }
    | {"set_grad_enabled", "is_storage", "set_printoptions", "use_deterministic_algorithms", "cond", "while_loop"}
    | {"handle_torch_function", "has_torch_function", "boolean_dispatch", "assert_int_or_pair", "vmap", "get_device"}
)


def _is_operator(value: Any, name: str) -> bool:
    if type(value) is not types.FunctionType or name in _NOT_OPERATORS:
        return False
    module = value.__module__ or ""
    return module in (
        "torch.nn.functional",
        "torch.functional",
        "torch._jit_internal",
        "torch._torch_docs",
        "torch._lobpcg",
    )


@lru_cache(maxsize=4096)
def resolve(name: str) -> Any:
    """The object a canonical name stands for; LookupError when there is none."""
    if name in _ORIGINALS:
        return _ORIGINALS[name]
    if name.startswith("aten."):
        return _resolve_operator(name)
    if name.startswith("Tensor."):
        return _resolve_path(_tensor_class(), name.split(".")[1:], name)
    bare = name.removeprefix("builtins.")
    head, _, tail = (name if hasattr(builtins, bare.partition(".")[0]) else bare).partition(".")
    path = tail.split(".") if tail else []
    if bare != name and head in _UNNAMED_TYPES:
        return _resolve_path(_UNNAMED_TYPES[head], path, name)
    if head in sys.modules:
        return _resolve_module(name)
    if hasattr(builtins, head):
        return _resolve_path(getattr(builtins, head), path, name)
    if head in _UNNAMED_TYPES:
        return _resolve_path(_UNNAMED_TYPES[head], path, name)
    return _resolve_module(name)


def _tensor_class() -> Any:
    import torch

    return torch.Tensor


def _resolve_operator(name: str) -> Any:
    import torch

    parts = name.split(".")
    packet = _resolve_path(torch.ops.aten, parts[1:2], name)
    return _resolve_path(packet, parts[2:], name)


def _resolve_module(name: str) -> Any:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        module = sys.modules.get(".".join(parts[:count])) or _import(parts[:count])
        if module is not None:
            return _resolve_path(module, parts[count:], name)
    raise LookupError(name)


def _import(parts: list[str]) -> types.ModuleType | None:
    if len(parts) > 1 and (parts[0] != "fusee" or parts[1] not in _MODULES_OF_TARGETS):
        return None  # submodules are only looked up, as importing them would run code the user did not ask for
    try:
        return importlib.import_module(".".join(parts))
    except ImportError:
        return None


def _resolve_path(start: Any, path: list[str], name: str) -> Any:
    value = start
    for part in path:
        try:
            value = getattr(value, part)
        except AttributeError:
            raise LookupError(name) from None
    return value
