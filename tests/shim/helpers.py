"""Building blocks shared by the tests: guard trees, metadata and code objects of entries."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

import torch

from fusee import _shim

Tree = tuple[Any, ...]


def node(accessor: Tree, *checks: Tree, capture: int = -1, children: tuple[Tree, ...] = ()) -> Tree:
    """One guard tree."""
    return (accessor, checks, capture, children)


def metadata(tensor: torch.Tensor, *, key_set: bool = True) -> Tree:
    """The metadata tuple of a tensor check, with the dispatch key set appended as the host does."""
    described = (
        str(tensor.dtype).removeprefix("torch."),
        str(tensor.device),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.storage_offset(),
        tensor.requires_grad,
        0,
    )
    return (*described, _shim.key_set(tensor)) if key_set else described


def tensor_check(tensor: torch.Tensor, **options: bool) -> Tree:
    """The check that accepts tensors like this one."""
    return ("tensor", type(tensor), metadata(tensor, **options))


def never(*_: object) -> None:
    """A miss handler for calls that must not miss."""
    raise AssertionError("the host was asked")


def code_of(source: str, **constants: object) -> CodeType:
    """Code of the one function in the source; string constants named in `constants` become those objects."""
    module = compile(source, "<entry>", "exec", dont_inherit=True)
    (code,) = (constant for constant in module.co_consts if isinstance(constant, CodeType))
    replaced = tuple(constants.get(value, value) if isinstance(value, str) else value for value in code.co_consts)
    return code.replace(co_consts=replaced)


def compiled(function: Any, entry: _shim.Entry | None = None, **options: Any) -> _shim.CompiledFunction:
    """A compiled function whose host always answers with this entry."""
    miss: Callable[..., _shim.Entry | None] = options.get("miss", lambda *_: entry)
    return _shim.CompiledFunction(function, options.get("record", _shim.CodeRecord()), miss)
