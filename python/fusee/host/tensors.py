"""Tensor metadata (docs/contracts.md, section 3)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import slots

if TYPE_CHECKING:
    import torch

PARAMETER, LEAF, HAS_GRAD_FN, INFERENCE, CONJUGATE, UNUSUAL, VIEW, DECORATED = 1, 2, 4, 8, 16, 32, 64, 128
INTERCEPTED, WRAPPER = 256, 512

Metadata = tuple[str, str, tuple[int, ...], tuple[int, ...], int, bool, int]


def _intercepted(cls: type) -> bool:
    """Whether a class of tensors differs from a plain one in its ``__torch_function__`` at most."""
    import torch

    if cls is torch.Tensor or cls is torch.nn.Parameter:
        return False
    dispatch = slots.lookup(cls, "__torch_dispatch__")
    return dispatch is not None and dispatch[0] in (torch.Tensor, torch._C.TensorBase)


def is_wrapper(cls: type) -> bool:
    """Whether a class of tensors wraps others, by torch's convention for classes that capture may look through."""
    if slots.lookup(cls, "__tensor_flatten__") is None or slots.lookup(cls, "__tensor_unflatten__") is None:
        return False
    return not _intercepted(cls)


def _dense(tensor: torch.Tensor, strided: bool, intercepted: bool) -> bool:
    """A dense strided tensor whose memory can be read: nothing wraps it, and no subclass intercepts its operators."""
    import torch

    plain_type = type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter or intercepted
    base: Any = torch._C.TensorBase
    if not plain_type or not strided or base.is_quantized.__get__(tensor):
        return False
    functorch: Any = getattr(torch._C, "_functorch")  # noqa: B009 -- absent from torch's type stubs
    return not functorch.is_functorch_wrapped_tensor(tensor)


def _flags(tensor: torch.Tensor, strided: bool) -> int:
    import torch

    base: Any = torch._C.TensorBase  # a subclass may hide what these say
    intercepted = _intercepted(type(tensor))
    dense = _dense(tensor, strided, intercepted)
    flags = PARAMETER if slots.is_a(tensor, torch.nn.Parameter) else 0
    flags |= _history(tensor)
    flags |= INFERENCE if base.is_inference(tensor) else 0
    flags |= CONJUGATE if base.is_conj(tensor) or base.is_neg(tensor) else 0
    flags |= 0 if dense else UNUSUAL
    flags |= WRAPPER if not dense and strided and is_wrapper(type(tensor)) else 0
    flags |= VIEW if base._is_view(tensor) else 0
    flags |= INTERCEPTED if dense and intercepted else 0
    return flags | (DECORATED if _decorated(tensor) else 0)


def _history(tensor: torch.Tensor) -> int:
    """Flags of what autograd recorded: a tensor is an unusual one where autograd refuses to say.

    Some views must not be changed through their base: after that, reading ``grad_fn`` raises RuntimeError.
    """
    import torch

    base: Any = torch._C.TensorBase
    try:
        flags = LEAF if base.is_leaf.__get__(tensor) else 0
        return flags | (HAS_GRAD_FN if base.grad_fn.__get__(tensor) is not None else 0)
    except RuntimeError:
        return UNUSUAL


def _decorated(tensor: torch.Tensor) -> bool:
    import torch

    base: Any = torch._C.TensorBase
    hooks = base._backward_hooks.__get__(tensor)
    return bool(hooks) or any(not _is_mark(name) for name in slots.instance_dict(tensor) or ())


def _is_mark(name: Any) -> bool:
    """Marks of dimensions as dynamic or static, which capture reads by name."""
    return type(name) is str and name.startswith("_dynamo_")


class Uninitialized(Exception):
    """A lazy module's parameter has no shape yet: the call that gives it one runs as plain Python."""


@functools.lru_cache(maxsize=256)
def _name(value: torch.dtype | torch.device) -> str:
    return str(value).removeprefix("torch.")


def metadata(tensor: torch.Tensor) -> Metadata:
    """``(dtype, device, sizes, strides, storage_offset, requires_grad, flags)``; sizes and strides in elements."""
    import torch

    parameters: Any = torch.nn.parameter
    if slots.is_a(tensor, parameters.UninitializedTensorMixin):
        raise Uninitialized
    base: Any = torch._C.TensorBase  # a subclass may hide what these say
    with torch._C.DisableTorchFunctionSubclass():
        strided = base.layout.__get__(tensor) is torch.strided
        dtype, device = _name(base.dtype.__get__(tensor)), _name(base.device.__get__(tensor))
        sizes = tuple(map(int, base.shape.__get__(tensor)))
        strides = tuple(map(int, base.stride(tensor))) if strided else ()
        offset = int(base.storage_offset(tensor)) if strided else 0
        gradient = base.requires_grad.__get__(tensor)
        return dtype, device, sizes, strides, offset, gradient, _flags(tensor, strided)


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
        attributes = slots.instance_dict(tensor) or {}
        named = [(name, mention(value)) for name, value in attributes.items() if type(name) is str]
        more: list[Any] = [marks(attributes)]
        if data[6] & WRAPPER:
            more.append(_written_parts(tensor, mention))
        while more and more[-1] is None:
            more.pop()
        return (*data, self._storage(tensor, data), self._version(tensor, data), named, *more)

    def _storage(self, tensor: torch.Tensor, data: Metadata) -> int:
        """Numbers storages by order of mention, as an address would make the trace differ from run to run."""
        if data[6] & UNUSUAL:
            return 0
        import torch

        with torch._C.DisableTorchFunctionSubclass():
            key = torch._C.TensorBase.untyped_storage(tensor)._cdata
        return self._storages.setdefault(key, len(self._storages) + 1)

    def _version(self, tensor: torch.Tensor, data: Metadata) -> int:
        import torch

        base: Any = torch._C.TensorBase
        with torch._C.DisableTorchFunctionSubclass():
            return 0 if data[6] & (UNUSUAL | INFERENCE) else int(base._version.__get__(tensor))


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
