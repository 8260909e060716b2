"""torch.func's transforms, operators that take functions, checkpoints: as eager does, each break with its reason."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, vjp, vmap
from torch.utils.checkpoint import checkpoint

import fusee

LAYER = torch.nn.Linear(3, 3)
PROGRAMS: dict[str, tuple[str, Callable[[torch.Tensor], Any]]] = {
    "vmap": ("function-transform", lambda x: vmap(lambda row: row.sin() * 2)(x) + 1),
    "grad": ("function-transform", lambda x: grad(lambda y: (y.sin() * y).sum())(x) + 1),
    "grad and value": ("function-transform", lambda x: grad_and_value(lambda y: (y * y).sum())(x)),
    "vjp": ("function-transform", lambda x: vjp(torch.sin, x)[1](torch.ones_like(x))),
    "jvp": ("function-transform", lambda x: jvp(torch.sin, (x,), (torch.ones_like(x),))),
    "jacrev": ("function-transform", lambda x: jacrev(torch.sin)(x)),
    "hessian": ("function-transform", lambda x: hessian(lambda y: (y.sin() * y).sum())(x)),
    "vmap of grad": ("function-transform", lambda x: vmap(grad(lambda row: (row * row).sum()))(x)),
    "reentrant checkpoint": ("checkpoint", lambda x: checkpoint(lambda y: y.sin() * y, x, use_reentrant=True) + 1),
}
WHOLE: dict[str, Callable[[torch.Tensor], Any]] = {
    "checkpoint": lambda x: checkpoint(lambda y: y.sin() * y, x, use_reentrant=False) + 1,
    "checkpoint of a module": lambda x: checkpoint(LAYER, x, use_reentrant=False).relu(),
    "vmap of an operator": lambda x: vmap(torch.dot)(x, x) + 1,
    "vmap with dimensions": lambda x: vmap(torch.add, in_dims=(0, None))(x, x[0]) * vmap(torch.mul, (0, None))(x, 3.14),
    "vmap along other dimensions": lambda x: torch.vmap(torch.sum, in_dims=1, out_dims=0)(x),
    "vmap with keywords": lambda x: vmap(torch.add, out_dims=1)(x, other=x),
    "functional call": lambda x: functional_call(LAYER, {"weight": torch.ones(3, 3), "bias": torch.zeros(3)}, (x,)),
    "vmap of several results": lambda x: vmap(torch.max, (0, None))(x, 0),
}


def outcome(run: Callable[[torch.Tensor], Any], gradient: bool) -> list[Any]:
    torch.manual_seed(0)
    x = (torch.arange(9.0).reshape(3, 3) / 7 - 0.3).requires_grad_(gradient)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a reentrant checkpoint without gradients
        warnings.simplefilter("error", fusee.FuseeWarning)
        result = run(x)
    leaves = torch.utils._pytree.tree_leaves(result)
    if any(leaf.requires_grad for leaf in leaves):
        sum(leaf.sum() for leaf in leaves if leaf.requires_grad).backward()
    return [*leaves, x.grad]


def same(found: list[Any], expected: list[Any]) -> bool:
    """Equal tensors, None where the other has None."""
    pairs = list(zip(found, expected, strict=True))
    return all(
        a is None if b is None else torch.allclose(a, b) and a.requires_grad == b.requires_grad for a, b in pairs
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_does_as_eager_and_says_why_it_breaks(name: str) -> None:
    reason, program = PROGRAMS[name]
    fusee.reset()
    compiled = fusee.compile(program)
    for gradient in (False, True, False, True):
        assert same(outcome(compiled, gradient), outcome(program, gradient))
    fusee.reset()
    with pytest.raises(fusee.Unsupported, match=rf"\[{reason}\]"):
        fusee.compile(program, fullgraph=True)(torch.ones(3, 3))


@pytest.mark.parametrize("name", list(WHOLE))
def test_captured_whole(name: str) -> None:
    program = WHOLE[name]
    fusee.reset()
    compiled = fusee.compile(program, fullgraph=True)
    for gradient in (False, True, False, True):
        assert same(outcome(compiled, gradient), outcome(program, gradient))


def test_vmap_that_is_handed_on_or_called_wrongly() -> None:
    def made(x: torch.Tensor) -> Any:
        mapped = vmap(torch.mul, in_dims=(0, None))
        return mapped, mapped(x, 2)

    function, product = fusee.compile(made)(torch.ones(2))
    assert torch.equal(function(torch.ones(2), 3), torch.full((2,), 3.0)) and product.tolist() == [2.0, 2.0]
    for program in (
        lambda x: vmap(torch.add)(x, x[:1]),
        lambda x: vmap(torch.rand_like)(x),
        lambda x: vmap(torch.sin, 5)(x),
    ):
        with pytest.raises(Exception) as expected:
            program(torch.ones(3, 2))
        with pytest.raises(expected.type) as found:
            fusee.compile(program)(torch.ones(3, 2))
        assert str(found.value) == str(expected.value)
