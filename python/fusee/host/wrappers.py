"""Tensors of classes that wrap other tensors by torch's convention of ``__tensor_flatten__``.

Every operation on such a tensor runs its class's ``__torch_dispatch__``. A class that defines ``__tensor_flatten__``
and ``__tensor_unflatten__`` says that this may happen on fake tensors too (torch.utils._python_dispatch,
``is_traceable_wrapper_subclass``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import tensors
from .tensors import Metadata

Parts = tuple[dict[str, torch.Tensor], Any]


def parts(tensor: torch.Tensor) -> Parts | None:
    """The inner tensors by attribute and the context, or None where the class does not keep to the convention."""
    try:
        names, context = _flatten(tensor)
        found = {name: getattr(tensor, name) for name in names}
        if all(isinstance(inner, torch.Tensor) for inner in found.values()) and _comparable(tensor, context):
            return found, context
    except Exception:  # the user's own code; the compiler leaves the tensor alone
        pass
    return None


def _flatten(tensor: Any) -> tuple[list[str], Any]:
    names, context = tensor.__tensor_flatten__()
    return list(names), context


def _comparable(tensor: torch.Tensor, context: Any) -> bool:
    """Whether two contexts can be told apart: tensors in them compare element by element, unless the class says how."""
    guarded = hasattr(type(tensor), "__metadata_guard__")
    return (guarded or not _holds_tensor(context)) and _same_context(type(tensor), context, context)


def _holds_tensor(value: Any) -> bool:
    if type(value) in (tuple, list, set, frozenset):
        return any(map(_holds_tensor, value))
    if type(value) is dict:
        return any(map(_holds_tensor, value.values()))
    return isinstance(value, torch.Tensor)


def _same_context(cls: Any, expected: Any, found: Any) -> bool:
    guard = getattr(cls, "__metadata_guard__", None)
    return bool(guard(expected, found) if guard is not None else expected == found)


def _snapshot(value: Any) -> Any:
    """A context that later changes of its containers leave alone."""
    if type(value) in (tuple, list):
        return type(value)(map(_snapshot, value))
    if type(value) is dict:
        return {key: _snapshot(item) for key, item in value.items()}
    return value.copy() if type(value) is set else value


def flattened(cls: type, names: list[str], context: Any) -> Callable[[Any], bool]:
    """The guard that a tensor of this class has these inner tensors and an equal context."""
    kept = _snapshot(context)

    def holds(tensor: Any) -> bool:
        if type(tensor) is not cls:
            return False
        found, current = _flatten(tensor)
        return found == names and _same_context(cls, kept, current)

    return holds


def resolved(cls: type, name: str, metadata: Metadata) -> Callable[[Any], bool]:
    """The guard on a tensor that stands for the one in it, ``name``: itself or a plain one, both like ``metadata``."""
    wanted = _shape_and_kind(metadata)

    def holds(tensor: Any) -> bool:
        found: Any = tensor  # mypy makes an object of what is compared with a type
        if type(tensor) is not cls:
            return _is_plain(tensor, wanted)
        return _is_plain(getattr(found, name), wanted) and _shape_and_kind(tensors.metadata(found)) == wanted

    return holds


def _shape_and_kind(metadata: Metadata) -> tuple[Any, ...]:
    dtype, device, sizes, strides, _, requires_grad, _ = metadata
    return dtype, device, tuple(sizes), tuple(strides), requires_grad


def _is_plain(tensor: Any, wanted: tuple[Any, ...]) -> bool:
    if type(tensor) is not torch.Tensor:
        return False
    found = tensors.metadata(tensor)
    return not found[6] & (tensors.UNUSUAL | tensors.CONJUGATE) and _shape_and_kind(found) == wanted


Make = Callable[[Metadata, Callable[[], torch.Tensor] | None], torch.Tensor]


def stand_in(tensor: torch.Tensor, make: Make) -> torch.Tensor:
    """A tensor of the same class around fake ones; ``make`` makes one of some metadata, from a function where given."""
    data = tensors.metadata(tensor)
    if not data[6] & tensors.WRAPPER:
        return make(data, None)
    names, context = _flatten(tensor)
    cls: Any = type(tensor)

    def build() -> torch.Tensor:
        fakes = {name: stand_in(getattr(tensor, name), make) for name in names}
        built = cls.__tensor_unflatten__(fakes, context, torch.Size(data[2]), data[3])
        return built  # type: ignore[no-any-return]

    return make(data, build)


def leaves(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The plain tensors inside, at any depth; the tensor itself where it wraps nothing."""
    if not tensors.is_wrapper(type(tensor)):
        yield tensor
        return
    names, _ = _flatten(tensor)
    for name in names:
        yield from leaves(getattr(tensor, name))


def storages(tensor: torch.Tensor) -> set[int]:
    """The memory that a tensor is on."""
    return {leaf.untyped_storage()._cdata for leaf in leaves(tensor)}


def state(tensor: torch.Tensor) -> list[tuple[int, Metadata]]:
    """What an operation in place on the elements alone leaves as it is."""
    return [(id(leaf), tensors.metadata(leaf)) for leaf in leaves(tensor)]
