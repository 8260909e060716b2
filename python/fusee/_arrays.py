"""NumPy in graphs: each call is a function of tensors, computed by ``torch._numpy``, torch's own NumPy interface.

The canonical name of a call is ``fusee._arrays.KIND.NAME``: KIND is ``function``, ``method`` or ``operator``, NAME a
path such as ``linalg.norm``. Tensors stand for arrays that share their memory.
"""

from __future__ import annotations

import functools
import operator as python_operators
import types
from collections.abc import Callable
from typing import Any

import numpy
import torch


def tensor_of_array(array: numpy.ndarray[Any, Any]) -> torch.Tensor:
    """A tensor on the memory of an array, or on a copy where it may not be written; the compiler only reads it."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_mapped(item, leaf) for item in value)
    return leaf(value)


def _array_class() -> Any:
    import torch._numpy as arrays

    return arrays.ndarray  # type: ignore[attr-defined]


def _as_array(value: Any) -> Any:
    return _array_class()(value) if isinstance(value, torch.Tensor) else value


def _as_tensor(value: Any) -> Any:
    return value.tensor if isinstance(value, _array_class()) else value


def _path(start: Any, name: str) -> Any:
    for part in name.split("."):
        start = getattr(start, part)
    return start


def _target(kind: str, name: str, library: types.ModuleType) -> Callable[..., Any]:
    if kind == "operator":
        return getattr(python_operators, name)  # type: ignore[no-any-return]
    if kind == "method":
        return lambda array, *args, **kwargs: getattr(array, name)(*args, **kwargs)
    return _path(library, name)  # type: ignore[no-any-return]


class _Calls:
    """``function``, ``method`` or ``operator``: attributes are functions of tensors, or further names below them."""

    def __init__(self, kind: str, prefix: str = "") -> None:
        self._kind = kind
        self._prefix = prefix

    @functools.cache  # noqa: B019 -- there are four of these objects, and they live as long as the process
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        import torch._numpy

        path = self._prefix + name
        if self._kind == "function" and isinstance(_path(torch._numpy, path), types.ModuleType):
            return _Calls(self._kind, path + ".")
        target = _target(self._kind, path, torch._numpy)

        def call(*args: Any, **kwargs: Any) -> Any:
            named = {key: _mapped(value, _as_array) for key, value in kwargs.items()}
            return _mapped(target(*_mapped(args, _as_array), **named), _as_tensor)

        call.__name__, call.__qualname__, call.__module__ = name, path, __name__
        return call


function, method, operator = _Calls("function"), _Calls("method"), _Calls("operator")

# Arrays with more elements together are not tried out with NumPy while compiling.
MOST_ELEMENTS = 1 << 22


class Differs(Exception):
    """NumPy does something else than ``torch._numpy``, or the two cannot be compared."""


def check(target: str, args: list[Any], kwargs: dict[str, Any], found: list[tuple[str, tuple[int, ...], str]]) -> None:
    """Raise Differs unless NumPy, run on arrays of ones, gives arrays like those found with ``torch._numpy``.

    ``args`` hold an array of ones for each tensor. ``found`` has, for each array of the result in order, its dtype, its
    shape, and whether it shares memory with an argument ("view"), is one ("same"), a scalar of NumPy ("scalar") or none
    of these ("new").
    """
    _, _, kind, name = target.split(".", 3)
    with numpy.errstate(all="ignore"):
        try:
            result = _target(kind, name, numpy)(*args, **kwargs)
        except Exception as error:
            raise Differs(f"NumPy raises {type(error).__name__}") from error
    arrays = list(result) if type(result) in (tuple, list) else [result]
    given: list[numpy.ndarray[Any, Any]] = []
    _mapped([*args, *kwargs.values()], lambda value: given.append(value) if isinstance(value, numpy.ndarray) else None)
    seen = []
    for array in arrays:
        if isinstance(array, numpy.generic):
            seen.append((array.dtype.name, array.shape, "scalar"))
            continue
        if type(array) is not numpy.ndarray:
            raise Differs(f"NumPy gives a {type(array).__name__}")
        relation = "view" if any(numpy.shares_memory(array, other) for other in given) else "new"
        relation = "same" if any(array is other for other in given) else relation
        seen.append((array.dtype.name, array.shape, relation))
    if seen != found:
        raise Differs("the results are of other types, shapes or memory than NumPy's")
