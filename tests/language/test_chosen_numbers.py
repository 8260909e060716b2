"""min and max of tensors and ints: one graph where nothing tells which of them it is, Python where something does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from outcome import Describer

import fusee


def clamped(a: Any, b: Any) -> Any:
    c = a + b
    low, high = min(max(a.sum(), 0), 1), max(0, min(1, b.sum()))
    c = c - high
    return max(low, high) - min(low, high) + c, c * low, 2 - (low + 3) + c.double(), max([3, a.mean(), 2]) + c


def mutated(a: Any, b: Any) -> Any:
    total = a.sum()
    least = min(total, 0)
    total.add_(7)
    return b + least


TELLING: dict[str, Callable[[Any, Any], Any]] = {
    "returned": lambda v, x: (v, x),
    "negated": lambda v, x: -v + x,
    "product": lambda v, x: v * -1 + x,
    "quotient": lambda v, x: x / v,
    "dtype of ints": lambda v, x: x.long() + v,
    "double of no dimension": lambda v, x: x.double().sum() + v,
    "large": lambda v, x: v + 2**24 + x,
    "converted": lambda v, x: (float(v), int(v), bool(v), complex(v)),
    "compared": lambda v, x: (v == 0, v < 1, v in (0, 1), v is x),
    "asked": lambda v, x: (isinstance(v, int), type(v), v is None, hasattr(v, "dtype"), callable(v)),
    "called": lambda v, x: v(),
    "iterated": lambda v, x: list(v),
    "subscripted": lambda v, x: v[0],
    "formatted": lambda v, x: (f"{v}", str(v), repr(v)),
    "hashed": lambda v, x: len({0: 1, v: 2}),
    "index": lambda v, x: [1, 2, 3][v],
    "kept": lambda v, x: {"a": [v], "b": x + v},
    "given to torch": lambda v, x: (torch.add(x, v), torch.maximum(x, torch.as_tensor(v)), x.clamp(max=v)),
    "summed": lambda v, x: sum([v, v]) + x,
    "power": lambda v, x: v**2 + x,
    "rounded": lambda v, x: (round(v), abs(v)),
    "in a branch": lambda v, x: x + 1 if v else x - 1,
    "with a number": lambda v, x: (v + 0.1, v + True, x + v),
    "chosen with a float": lambda v, x: max(v, 0.5) + x,
    "crossing a break": lambda v, x: (fusee.graph_break(), x + v),
}


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return Describer()(function(*arguments))
    except (TypeError, IndexError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("scale", [-1.0, 0.05, 3.0, float("nan")])
def test_one_graph(scale: float) -> None:
    a, b = torch.arange(6.0).reshape(2, 3) * scale, torch.ones(2, 3) * -scale
    compiled = fusee.compile(clamped, fullgraph=True)
    assert Describer()(compiled(a, b)) == Describer()(clamped(a, b))


@pytest.mark.parametrize("name", TELLING)
def test_what_tells_them_apart(name: str) -> None:
    def program(x: Any) -> Any:
        return TELLING[name](max(x.sum(), 0), x)

    compiled = fusee.compile(program)
    for x in (torch.full((3,), 0.25), -torch.ones(3)):
        assert outcome(compiled, x) == outcome(program, x)


@pytest.mark.parametrize("scale", [-1.0, 1.0])
def test_memory_and_gradients(scale: float) -> None:
    """A tensor that is written to after the choice is the one that was chosen; one without a gradient may be no int."""
    a, b = torch.ones(3) * scale, torch.ones(3)
    assert Describer()(fusee.compile(mutated)(a, b)) == Describer()(mutated(a, b))

    def trained(x: Any) -> Any:
        return b + max(x.sum(), 0)

    x = (torch.ones(3) * scale).requires_grad_()
    assert fusee.compile(trained)(x).requires_grad == trained(x).requires_grad


def test_what_is_not_chosen_has_no_gradient() -> None:
    def chosen(x: Any, y: Any) -> None:
        max([x.sum(), y.sum()]).backward()

    for function in (chosen, fusee.compile(chosen)):
        x, y = torch.ones(2, requires_grad=True), torch.zeros(3, requires_grad=True)
        function(x, y)
        assert x.grad is not None and x.grad.tolist() == [1, 1] and y.grad is None
