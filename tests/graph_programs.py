"""Short sequences of calls: which tensors require gradients after views, in-place operations and detach."""

from __future__ import annotations

from typing import Any

import torch

from graph_recorder import Json, T, resolve

FREE, LEAF = T("float32", (4, 3)), T("float32", (4, 3), grad=True)
ROW = T("float32", (3,), grad=True)


class V(str):
    """The n-th value of a program: its inputs, then the results of its steps."""


Step = tuple[str, list[Any]]

PROGRAMS: list[tuple[list[T], list[Step]]] = [
    ([FREE, ROW], [("operator.setitem", [V(0), 0, V(1)]), ("operator.mul", [V(0), 2]), ("Tensor.sum", [V(0)])]),
    ([FREE, LEAF], [("operator.getitem", [V(0), 1]), ("Tensor.add_", [V(2), V(1)]), ("operator.add", [V(0), 1])]),
    ([FREE, ROW], [("operator.getitem", [V(0), 1]), ("Tensor.add_", [V(2), V(1)]), ("operator.add", [V(0), 1])]),
    ([FREE, ROW], [("Tensor.detach", [V(0)]), ("Tensor.add_", [V(2), V(1)]), ("operator.add", [V(0), 1])]),
    ([FREE, ROW], [("Tensor.t", [V(0)]), ("Tensor.copy_", [V(0), V(1)]), ("operator.add", [V(2), 1])]),
    ([FREE, ROW], [("Tensor.view", [V(0), -1]), ("operator.iadd", [V(0), V(1)]), ("torch.exp", [V(2)])]),
    ([FREE, ROW], [("torch.unbind", [V(0)]), ("operator.iadd", [V(0), V(1)]), ("torch.exp", [V(0)])]),
    ([LEAF, ROW], [("Tensor.add_", [V(0), V(1)]), ("torch.exp", [V(0)])]),
    ([LEAF, ROW], [("Tensor.view", [V(0), -1]), ("Tensor.zero_", [V(2)])]),
    ([LEAF, ROW], [("Tensor.detach", [V(0)]), ("Tensor.zero_", [V(2)]), ("operator.mul", [V(2), 2])]),
    ([LEAF, ROW], [("torch.exp", [V(0)]), ("Tensor.mul_", [V(2), V(1)]), ("operator.getitem", [V(2), 0])]),
    ([LEAF, FREE], [("torch.exp", [V(0)]), ("Tensor.detach", [V(2)]), ("operator.add", [V(3), V(1)])]),
    ([LEAF, FREE], [("operator.gt", [V(0), V(1)]), ("Tensor.float", [V(2)]), ("operator.mul", [V(3), V(0)])]),
    ([LEAF, FREE], [("Tensor.long", [V(0)]), ("Tensor.float", [V(2)]), ("torch.zeros_like", [V(0)])]),
    ([FREE, LEAF], [("torch.zeros_like", [V(0)]), ("Tensor.copy_", [V(2), V(1)]), ("Tensor.sum", [V(2)])]),
    ([FREE, ROW], [("torch.relu_", [V(0)]), ("operator.iadd", [V(2), V(1)]), ("Tensor.sum", [V(0)])]),
    ([FREE, ROW], [("Tensor.contiguous", [V(0)]), ("operator.iadd", [V(2), V(1)]), ("Tensor.sum", [V(0)])]),
    ([FREE, ROW], [("Tensor.expand", [V(1), 4, 3]), ("Tensor.mul_", [V(0), V(2)]), ("Tensor.sum", [V(0)])]),
]


def programs() -> list[Json]:
    """Run every program; each step gives the requires_grad of all values so far, or null where it raises."""
    return [record(inputs, steps) for inputs, steps in PROGRAMS]


def record(inputs: list[T], steps: list[Step]) -> Json:
    """Run one program, up to the step that raises."""
    made: list[Any] = [t.make(1, "cpu") for t in inputs]
    found: list[Json] = []
    for target, args in steps:
        outcome = None
        try:
            made.append(resolve(target)(*(made[int(a)] if isinstance(a, V) else a for a in args)))
            outcome = [bool(v.requires_grad) if isinstance(v, torch.Tensor) else None for v in made]
        except RuntimeError:
            pass
        found.append([target, [f"${a}" if isinstance(a, V) else a for a in args], outcome])
        if outcome is None:
            break
    return {"inputs": [list(t.spec) for t in inputs], "steps": found}
