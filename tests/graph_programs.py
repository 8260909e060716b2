"""Short sequences of calls: which tensors require gradients after views, in-place operations and detach."""

from __future__ import annotations

import random
from typing import Any

import torch

from graph_recorder import Json, T, describe, resolve

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


UNARY = ("torch.exp", "torch.relu", "operator.neg", "Tensor.detach", "Tensor.contiguous", "torch.clone", "torch.ravel")
REDUCING = (
    "torch.sum",
    "torch.amax",
    "torch.unbind",
    "torch.softmax",
    "torch.squeeze",
    "torch.unsqueeze",
    "torch.chunk",
)
BINARY = (
    "operator.add",
    "operator.mul",
    "operator.lt",
    "torch.maximum",
    "operator.truediv",
    "operator.iadd",
    "operator.imul",
)
RANDOM_INPUTS = [
    T("float32", (2, 3, 4)),
    T("float32", (4, 3), (1, 4), grad=True),
    T("int64", (3, 1)),
    T("float64", (2, 1, 4), (4, 4, 1)),
    T("bool", (3, 4), (1, 3)),
    T("bfloat16", (2, 3, 4), (1, 8, 2)),
]


def random_programs(count: int) -> list[Json]:
    """Chains of calls picked at random; each step gives the description of its result, or null where it raises."""
    generator = random.Random(11)
    return [random_program(generator) for _ in range(count)]


def random_program(generator: random.Random) -> Json:
    """One chain of up to ten steps over all inputs; results that are no single tensor end it."""
    made: list[torch.Tensor] = [t.make(1, "cpu") for t in RANDOM_INPUTS]
    inputs = len(made)
    found: list[Json] = []
    for _ in range(10):
        target, args = random_step(generator, made, inputs)
        try:
            value = resolve(target)(*(made[int(a)] if isinstance(a, V) else a for a in args))
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        if isinstance(value, tuple):
            continue
        found.append([target, [f"${a}" if isinstance(a, V) else a for a in args], describe(value, made[:inputs])[:-1]])
        made.append(value)
    return {"inputs": [list(t.spec) for t in RANDOM_INPUTS], "steps": found}


def random_step(generator: random.Random, made: list[torch.Tensor], inputs: int) -> Step:
    """A call on values made so far, the latest ones more often."""

    def value() -> V:
        return V(generator.choice([generator.randrange(len(made)), len(made) - 1]))

    first = value()
    dimensions = made[int(first)].dim()
    dim = generator.randrange(-1, max(dimensions, 1))
    kind = generator.randrange(8)
    if kind == 0:
        return generator.choice(UNARY), [first]
    if kind == 1:
        return generator.choice(REDUCING), [first, dim]
    if kind == 2:
        return "torch.transpose", [first, dim, generator.randrange(-1, max(dimensions, 1))]
    if kind == 3:
        return "operator.getitem", [first, generator.randrange(-1, 2)]
    if kind == 4:
        return "torch.narrow", [first, dim, 0, 2]
    if kind == 5:
        return "Tensor.reshape", [first, *generator.choice([(-1,), (2, -1), (3, -1), (1, -1, 2)])]
    return generator.choice(BINARY), [first, generator.choice([value(), value(), 2])]
