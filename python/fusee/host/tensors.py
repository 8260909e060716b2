"""Tensor metadata (docs/contracts.md, section 3)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import slots

if TYPE_CHECKING:
    import torch

PARAMETER, LEAF, HAS_GRAD_FN, INFERENCE, CONJUGATE, UNUSUAL, VIEW, DECORATED = 1, 2, 4, 8, 16, 32, 64, 128
INTERCEPTED, WRAPPER = 256, 512

Reader = Callable[[Any], Any]
_NOTHING = contextlib.nullcontext()

Metadata = tuple[str, str, tuple[int, ...], tuple[int, ...], int, bool, int]


def _intercepted(cls: type) -> bool:
    """Whether a class of tensors differs from a plain one in its ``__torch_function__`` at most."""
    import torch

    if cls in _readers().plain:
        return False
    dispatch = slots.lookup(cls, "__torch_dispatch__")
    return dispatch is not None and dispatch[0] in (torch.Tensor, torch._C.TensorBase)


def is_wrapper(cls: type) -> bool:
    """Whether a class of tensors wraps others, by torch's convention for classes that capture may look through."""
    if slots.lookup(cls, "__tensor_flatten__") is None or slots.lookup(cls, "__tensor_unflatten__") is None:
        return False
    return not _intercepted(cls)


@dataclass(frozen=True)
class _Readers:
    """Functions of torch that read a tensor, whatever its class says; a model has hundreds of tensors to read."""

    plain: frozenset[type]  # torch's own classes, which change nothing of what a tensor does
    parameter: type
    uninitialized: type
    strided: Any
    layout: Reader
    dtype: Reader
    device: Reader
    shape: Reader
    stride: Reader
    storage_offset: Reader
    storage: Reader
    version: Reader
    requires_grad: Reader
    is_leaf: Reader
    grad_fn: Reader
    hooks: Reader
    is_quantized: Reader
    is_nested: Reader
    is_inference: Reader
    is_conj: Reader
    is_neg: Reader
    is_view: Reader
    is_wrapped: Reader
    attributes: Reader


@functools.lru_cache(maxsize=1)
def _readers() -> _Readers:
    import torch

    base: Any = torch._C.TensorBase
    parameters: Any = torch.nn.parameter
    functorch: Any = getattr(torch._C, "_functorch")  # noqa: B009 -- absent from torch's type stubs
    return _Readers(
        plain=frozenset({torch.Tensor, torch.nn.Parameter}),
        parameter=torch.nn.Parameter,
        uninitialized=parameters.UninitializedTensorMixin,
        strided=torch.strided,
        layout=base.layout.__get__,
        dtype=base.dtype.__get__,
        device=base.device.__get__,
        shape=base.shape.__get__,
        stride=base.stride,
        storage_offset=base.storage_offset,
        storage=base.untyped_storage,
        version=base._version.__get__,
        requires_grad=base.requires_grad.__get__,
        is_leaf=base.is_leaf.__get__,
        grad_fn=base.grad_fn.__get__,
        hooks=base._backward_hooks.__get__,
        is_quantized=base.is_quantized.__get__,
        is_nested=base.is_nested.__get__,
        is_inference=base.is_inference,
        is_conj=base.is_conj,
        is_neg=base.is_neg,
        is_view=base._is_view,
        is_wrapped=functorch.is_functorch_wrapped_tensor,
        attributes=slots.dict_getter(torch.Tensor),
    )


def _without_overrides(cls: type) -> contextlib.AbstractContextManager[Any]:
    """In which no class intercepts the reading of its tensors."""
    if cls in _readers().plain:
        return _NOTHING
    import torch

    return torch._C.DisableTorchFunctionSubclass()


def _attributes(tensor: torch.Tensor) -> Mapping[str, Any]:
    read = _readers()
    return (read.attributes(tensor) if type(tensor) in read.plain else slots.instance_dict(tensor)) or {}


def _flags(tensor: torch.Tensor, strided: bool) -> int:
    read, cls = _readers(), type(tensor)
    plain = cls in read.plain
    intercepted = not plain and _intercepted(cls)
    # A dense strided tensor whose memory can be read: nothing wraps it, and no subclass intercepts its operators.
    dense = (plain or intercepted) and strided and not read.is_quantized(tensor) and not read.is_wrapped(tensor)
    flags = PARAMETER if cls is read.parameter or slots.is_a(tensor, read.parameter) else 0
    flags |= _history(tensor)
    flags |= INFERENCE if read.is_inference(tensor) else 0
    flags |= CONJUGATE if read.is_conj(tensor) or read.is_neg(tensor) else 0
    flags |= 0 if dense else UNUSUAL
    flags |= WRAPPER if not dense and strided and is_wrapper(cls) else 0
    flags |= VIEW if read.is_view(tensor) else 0
    flags |= INTERCEPTED if dense and intercepted else 0
    return flags | (DECORATED if _decorated(tensor) else 0)


def _history(tensor: torch.Tensor) -> int:
    """Flags of what autograd recorded: a tensor is an unusual one where autograd refuses to say.

    Some views must not be changed through their base: after that, reading ``grad_fn`` raises RuntimeError.
    """
    read = _readers()
    try:
        flags = LEAF if read.is_leaf(tensor) else 0
        return flags | (HAS_GRAD_FN if read.grad_fn(tensor) is not None else 0)
    except RuntimeError:
        return UNUSUAL


def _decorated(tensor: torch.Tensor) -> bool:
    return bool(_readers().hooks(tensor)) or any(not _is_mark(name) for name in _attributes(tensor))


def _is_mark(name: Any) -> bool:
    """Marks of dimensions as dynamic or static, which capture reads by name."""
    return type(name) is str and name.startswith("_dynamo_")


class Uninitialized(Exception):
    """A lazy module's parameter has no shape yet: the call that gives it one runs as plain Python."""


@functools.lru_cache(maxsize=256)
def _name(value: torch.dtype | torch.device) -> str:
    return str(value).removeprefix("torch.")


DEVICES = frozenset({"cpu", "cuda"})  # as the shim knows them


def has_metadata(tensor: torch.Tensor) -> bool:
    """Whether metadata says what a tensor is: none of another layout (sparse, nested, mkldnn), of integers that stand
    for numbers (quantized), or on a device without memory (meta). Instances of subclasses are looked at as such."""
    read = _readers()
    return type(tensor) not in read.plain or (is_dense(tensor) and read.device(tensor).type in DEVICES)


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether a tensor has strides, and elements that are its values."""
    read = _readers()
    return read.layout(tensor) is read.strided and not read.is_quantized(tensor) and not read.is_nested(tensor)


def metadata(tensor: torch.Tensor) -> Metadata:
    """``(dtype, device, sizes, strides, storage_offset, requires_grad, flags)``; sizes and strides in elements."""
    read, cls = _readers(), type(tensor)
    if cls not in read.plain and slots.is_a(tensor, read.uninitialized):
        raise Uninitialized
    with _without_overrides(cls):
        strided = read.layout(tensor) is read.strided
        dtype, device = _name(read.dtype(tensor)), _name(read.device(tensor))
        sizes = tuple(map(int, read.shape(tensor)))
        strides = tuple(map(int, read.stride(tensor))) if strided else ()
        offset = int(read.storage_offset(tensor)) if strided else 0
        return dtype, device, sizes, strides, offset, read.requires_grad(tensor), _flags(tensor, strided)


def marks(attributes: Mapping[str, Any]) -> tuple[list[tuple[int, int | None, int | None]], list[int]] | None:
    """Dimensions that mark_dynamic and mark_static of torch or of this package named, the dynamic ones with bounds."""
    dynamic = {*attributes.get("_dynamo_dynamic_indices", ()), *attributes.get("_dynamo_weak_dynamic_indices", ())}
    static = set(attributes.get("_dynamo_static_indices", ()))
    if not dynamic and not static:
        return None
    bounds = {item.dim: (item.min, item.max) for item in attributes.get("_dynamo_dynamic_range", ())}
    return [(index, *bounds.get(index, (None, None))) for index in sorted(dynamic)], sorted(static)


class TensorReader:
    """Writes tensor payloads of one compile and knows which tensors share storage."""

    def __init__(self) -> None:
        self._storages: dict[int, int] = {}

    def payload(self, tensor: torch.Tensor, mention: Callable[[Any], Any]) -> tuple[Any, ...]:
        """Metadata, storage id, version counter and Python attributes; then marks, and what a wrapper wraps, if any."""
        data = metadata(tensor)
        attributes = _attributes(tensor)
        named = [(name, mention(value)) for name, value in attributes.items() if type(name) is str]
        more: list[Any] = [marks(attributes) if attributes else None]
        if data[6] & WRAPPER:
            more.append(_written_parts(tensor, mention))
        while more and more[-1] is None:
            more.pop()
        return (*data, self._storage(tensor, data), self._version(tensor, data), named, *more)

    def _storage(self, tensor: torch.Tensor, data: Metadata) -> int:
        """Numbers storages by order of mention, as an address would make the trace differ from run to run."""
        if data[6] & UNUSUAL:
            return 0
        with _without_overrides(type(tensor)):
            key = _readers().storage(tensor)._cdata
        return self._storages.setdefault(key, len(self._storages) + 1)

    def _version(self, tensor: torch.Tensor, data: Metadata) -> int:
        if data[6] & (UNUSUAL | INFERENCE):
            return 0
        with _without_overrides(type(tensor)):
            return int(_readers().version(tensor))


def _written_parts(tensor: torch.Tensor, mention: Callable[[Any], Any]) -> Any:
    from . import wrappers

    found = wrappers.parts(tensor)
    if found is None:
        return None
    inner, context = found
    return [(name, mention(part)) for name, part in inner.items()], mention(context)


def tensor_class() -> type:
    """``torch.Tensor``."""
    import torch

    return torch.Tensor
