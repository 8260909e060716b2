"""``tensor_call`` of attention on a GPU: asks torch which of its kernels it would run, and says what that one returns.

Fake tensors would say it too, but the first of them imports sympy, which takes longer than compiling a whole model.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from . import fake, tensors
from .operators import signature
from .tensors import Metadata

if TYPE_CHECKING:
    from .answer import Reply

TARGET = "torch._C._nn.scaled_dot_product_attention"
# torch's SDPBackend: these write a result that lies in memory as the query does.
_FLASH, _EFFICIENT, _CUDNN = 1, 2, 3
_NEVER = (0.0,)


class _Shaped(torch.Tensor):
    """Has a shape and a device, and no memory."""

    def __torch_dispatch__(self, *arguments: Any, **keywords: Any) -> Any:
        """Torch wants it to be there. Dispatch to Python stays off, as for a subclass that too imports much."""
        raise fake.Unfakeable("an operation ran on a tensor without memory")


class AttentionCall(fake.TensorCall):
    """One call of ``scaled_dot_product_attention``."""

    def outcome(self, arguments: list[Any], keywords: list[Any]) -> Reply | None:
        """What the call returns, or None where only fake tensors can tell it."""
        given = [argument[2] for argument in arguments[:3] if type(argument) is tuple and argument[0] == "T"]
        if len(given) < 3 or not all(map(_is_usual, given)) or _drops(arguments, keywords):
            return None
        with torch._C._DisableTorchDispatch():
            positional = [self._build(argument) for argument in arguments]
            named = {name: self._build(value) for name, value in keywords}
            choice = vars(torch)["_fused_sdp_choice"](*positional, **named)
        if choice not in (_FLASH, _EFFICIENT, _CUDNN):
            return None
        return self._written(_result(choice, *given), positional, named), []

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        """Nothing runs."""
        return contextlib.nullcontext()

    def make_tensor(self, metadata: Metadata) -> torch.Tensor:
        """An argument without memory."""
        dtype, device, sizes, strides, offset, requires_grad, _ = metadata
        kind = {"dtype": getattr(torch, dtype), "device": torch.device(device)}
        shaped = torch.Tensor._make_wrapper_subclass(_Shaped, sizes, strides=strides, storage_offset=offset, **kind)
        return shaped.requires_grad_(requires_grad)

    def _written(self, result: Metadata, positional: list[Any], named: dict[str, Any]) -> tuple[Any, ...]:
        writer = self.recorder(list(self._inputs.values()))
        arguments = [writer.write(value) for value in positional]
        keywords = {name: writer.write(value) for name, value in named.items()}
        function = torch.ops.aten.scaled_dot_product_attention.default
        node = ("scaled_dot_product_attention_0", str(function), arguments, keywords, [result], signature(function))
        expansion = {"inputs": list(self._inputs), "nodes": [node], "output": ("n", 0)}
        return "value", ("T", result, "new"), expansion


def _drops(arguments: list[Any], keywords: list[Any]) -> bool:
    probability = arguments[4] if len(arguments) > 4 else dict(keywords).get("dropout_p", _NEVER)
    return probability not in (_NEVER, (0,))


def _is_usual(metadata: Metadata) -> bool:
    """Of a plain tensor on a GPU whose heads no kernel has to pad."""
    _, device, sizes, strides, _, _, flags = metadata
    plain = device.startswith("cuda") and not flags & fake.NOT_FAKED
    return plain and len(sizes) == 4 and 0 not in sizes and sizes[3] % 8 == 0 and strides[3] == 1


def _result(choice: int, *arguments: Metadata) -> Metadata:
    """Batch, heads, queries, and the size of a value's head, in the order in which the query has them in memory."""
    dtype, device, sizes, strides, _, _, flags = arguments[0]
    sizes = (*sizes[:3], arguments[2][2][3])
    order = [0, 2, 1, 3] if choice == _EFFICIENT else sorted(range(4), key=lambda dimension: -strides[dimension])
    found, length = [0] * 4, 1
    for dimension in reversed(order):
        found[dimension] = length
        length *= sizes[dimension]
    gradient = any(metadata[5] for metadata in arguments)
    made = tensors.HAS_GRAD_FN if gradient else tensors.LEAF
    return dtype, device, sizes, tuple(found), 0, gradient, made | flags & tensors.INFERENCE
