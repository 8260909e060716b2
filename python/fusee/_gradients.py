"""What a graph that Python runs does with gradients, each as one operation of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def of(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
    retain_graph: bool,
    create_graph: bool = False,
    replaced: Sequence[Tensor] = (),
    replacements: Sequence[Tensor] = (),
) -> tuple[Tensor, ...]:
    """The gradients of the outputs' sum, weighted by ``gradients`` (None: 1), with respect to the inputs.

    It is ``GradientsTarget`` of the compiler. With ``create_graph`` the gradients can be differentiated again. What
    flows to the tensors ``replaced`` is replaced, as hooks have it.

    Each has memory of its own, laid out as autograd lays out the gradient of a leaf: like the input where that is dense
    without overlap, else row by row.
    """
    import torch

    pairs = zip(replaced, replacements, strict=True)
    handles: list[Any] = []
    for tensor, gradient in pairs:
        handles.append(tensor.register_hook(functools.partial(_instead, gradient)))  # type: ignore[no-untyped-call]
    try:
        found = torch.autograd.grad(
            list(outputs),
            list(inputs),
            list(gradients),
            retain_graph=retain_graph,
            create_graph=create_graph,
            materialize_grads=True,
        )
    finally:
        for handle in handles:
            handle.remove()
    return tuple(_place(leaf).copy_(gradient) for leaf, gradient in zip(inputs, found, strict=True))


def _instead(replacement: Tensor, _: Tensor) -> Tensor:
    """The replacement of a gradient."""
    return replacement


def leaf(tensor: Tensor) -> Tensor:
    """The tensor, which requires gradients from here on (``LeafTarget`` of the compiler)."""
    return tensor.requires_grad_()


def apply(function: Any, *arguments: Any) -> Any:
    """What the ``torch.autograd.Function`` gives (``FunctionTarget`` of the compiler)."""
    return function.apply(*arguments)


def checkpointed(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
    """The function's results; backward calls it again for what it needs, with the random numbers of this call."""
    import torch.utils.checkpoint

    results = torch.utils.checkpoint.checkpoint(function, *arguments, use_reentrant=False)
    return results


def applying(function: Any) -> Callable[..., Any]:
    """A plain function that calls the ``torch.autograd.Function``."""

    def call(*arguments: Any) -> Any:
        return function.apply(*arguments)

    call.__name__ = call.__qualname__ = f"apply_{function.__name__}"
    return call


def _place(leaf: Tensor) -> Tensor:
    """Memory for the gradient of a tensor."""
    import torch

    like = torch.empty_like(leaf, requires_grad=False)
    return like if like.stride() == leaf.stride() else torch.empty(leaf.shape, dtype=leaf.dtype, device=leaf.device)


def recorded_layer(*arguments: Any) -> Any:
    """oneDNN's layer of LSTM, which gives what its backward reads only in grad mode; the shim calls it so in plans."""
    import torch

    with torch.enable_grad(), torch._C._AutoDispatchBelowAutograd():
        return torch.ops.aten.mkldnn_rnn_layer.default(*arguments)
