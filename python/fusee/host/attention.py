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
        training = torch.is_grad_enabled() and any(metadata[5] for metadata in given)
        if training and (_bound(positional, named)[3] is not None or given[0][2][1] != given[1][2][1]):
            return None  # masks are made to fit before the kernel is called
        return self._written(choice if training else None, _result(choice, *given), positional, named), []

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        """Nothing runs."""
        return contextlib.nullcontext()

    def make_tensor(self, metadata: Metadata) -> torch.Tensor:
        """An argument without memory."""
        dtype, device, sizes, strides, offset, requires_grad, _ = metadata
        kind = {"dtype": getattr(torch, dtype), "device": torch.device(device)}
        shaped = torch.Tensor._make_wrapper_subclass(_Shaped, sizes, strides=strides, storage_offset=offset, **kind)
        return shaped.requires_grad_(requires_grad)

    def _written(
        self, kernel: int | None, result: Metadata, positional: list[Any], named: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The outcome; with a kernel as the call of it that also gives what its derivative reads."""
        writer = self.recorder(list(self._inputs.values()))
        if kernel is None:
            function = torch.ops.aten.scaled_dot_product_attention.default
            return self._outcome_of(result, (writer, function, positional, named, [result]), ("n", 0))
        function, arguments, found = _kernel_call(kernel, result, _bound(positional, named))
        scale = {name: value for name, value in named.items() if name == "scale"}
        return self._outcome_of(result, (writer, function, arguments, scale, found), ("n", 0, 0))

    def _outcome_of(self, result: Metadata, call: tuple[Any, ...], output: Any) -> tuple[Any, ...]:
        writer, function, positional, named, found = call
        arguments = [writer.write(value) for value in positional]
        keywords = {name: writer.write(value) for name, value in named.items()}
        name = f"{function._overloadpacket.__name__.strip('_')}_0"
        node = (name, str(function), arguments, keywords, found, signature(function))
        expansion = {"inputs": list(self._inputs), "nodes": [node], "output": output}
        return "value", ("T", result, "new"), expansion


def _bound(positional: list[Any], named: dict[str, Any]) -> list[Any]:
    """Query, key, value, mask and whether it is causal, of a call that drops nothing."""
    mask = positional[3] if len(positional) > 3 else named.get("attn_mask")
    causal = positional[5] if len(positional) > 5 else named.get("is_causal", False)
    return [*positional[:3], mask, causal]


def _kernel_call(kernel: int, result: Metadata, given: list[Any]) -> tuple[Any, list[Any], list[Metadata | None]]:
    """The operator behind a kernel, its arguments, and its results: None for those that are no tensors or not made.

    The logarithms of the sums are float32, one a query: [batch, heads, queries] of flash attention, with a dimension
    of 1 more of cuDNN, padded to multiples of 32 queries of the memory-efficient kernel, as their meta kernels say.
    """
    query, key, value, mask, causal = given
    batch, heads, queries, _ = result[2]
    sums = {_FLASH: (queries,), _CUDNN: (queries, 1), _EFFICIENT: (-(-queries // 32) * 32,)}[kernel]
    statistics = _row_major("float32", result[1], (batch, heads, *sums))
    if kernel == _FLASH:
        state = [_row_major("uint64", result[1], (2,)), _row_major("uint64", result[1], ())]
        operator = torch.ops.aten._scaled_dot_product_flash_attention.default
        return operator, [query, key, value, 0.0, causal], [result, statistics, None, None, None, None, *state, None]
    state = [_row_major("int64", result[1], ())] * 2
    arguments = [query, key, value, mask, True, 0.0, causal]
    if kernel == _CUDNN:
        operator = torch.ops.aten._scaled_dot_product_cudnn_attention.default
        return operator, arguments, [result, statistics, None, None, None, None, *state, None]
    operator = torch.ops.aten._scaled_dot_product_efficient_attention.default
    return operator, arguments, [result, statistics, *state]


def _row_major(dtype: str, device: str, sizes: tuple[int, ...]) -> Metadata:
    strides, length = [], 1
    for size in reversed(sizes):
        strides.append(length)
        length *= max(size, 1)
    return dtype, device, sizes, tuple(reversed(strides)), 0, False, tensors.LEAF


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
