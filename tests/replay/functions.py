"""Functions whose compilations are recorded: each shows another way through the compiler."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

Arguments = Callable[[], tuple[Any, ...]]
SCALE = 0.5


def pointwise(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """One fused kernel."""
    return torch.relu(x * y + SCALE) - x


def branch(x: torch.Tensor, flag: bool) -> torch.Tensor:
    """A branch on a constant."""
    if flag:
        return x.sin() + x.cos()
    return x.exp()


def data_branch(x: torch.Tensor) -> torch.Tensor:
    """A branch on data: a break with two continuations."""
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


def prints(x: torch.Tensor) -> torch.Tensor:
    """A call that runs as it is, between two graphs."""
    y = x + 1
    print(end="")
    return y * 2


def _inner(x: torch.Tensor) -> torch.Tensor:
    y = x.tanh()
    print(end="")
    return y + x


def inlined_break(x: torch.Tensor) -> torch.Tensor:
    """A break in a function that was inlined."""
    return _inner(x * 3) * 2


class Block(torch.nn.Module):
    """A module with parameters and a submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.scale = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Linear, then a pointwise kernel."""
        return torch.sigmoid(self.linear(x)) * self.scale


def module(block: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A module whose weights are frozen."""
    return block(x)  # type: ignore[no-any-return]


def _powers(x: torch.Tensor, count: int) -> Iterator[torch.Tensor]:
    power = x
    for _ in range(count):
        yield power
        power = power * x


def generator(x: torch.Tensor) -> torch.Tensor:
    """A generator that is consumed while it is captured."""
    total = torch.zeros_like(x)
    for power in _powers(x, 3):
        total = total + power
    return total


def closure(x: torch.Tensor) -> torch.Tensor:
    """A function that is made and called, with a variable of its surroundings."""
    factor = 3.0

    def scaled(t: torch.Tensor) -> torch.Tensor:
        return t * factor

    return scaled(x) + scaled(x + 1)


def exception(x: torch.Tensor) -> torch.Tensor:
    """An exception that is raised and caught."""
    try:
        if x.shape[0] == 3:
            raise ValueError("three rows")
        return x
    except ValueError as error:
        return x * len(str(error))


def reduction(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Reductions over the last dimension."""
    return torch.softmax(x, dim=-1), x.mean(dim=-1, keepdim=True)


def containers(x: torch.Tensor) -> dict[str, list[torch.Tensor]]:
    """Lists, dicts and comprehensions."""
    parts = [x * k for k in range(1, 4)]
    return {"all": parts, "last": [part + 1 for part in parts[-1:]]}


def constants(x: torch.Tensor, text: str) -> tuple[torch.Tensor, str, float]:
    """Results that are no tensors."""
    return x.reshape(-1), f"{text}!", math.sqrt(16)


def mutation(x: torch.Tensor, found: list[Any]) -> None:
    """Changes its arguments."""
    found.append(x + 1)
    x.mul_(2)


def unknown_operation(x: torch.Tensor) -> torch.Tensor:
    """An operation that only the host's fake tensors know."""
    return torch.special.i1e(x) * 2


def trained(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """A graph that autograd records: two plans."""
    return (torch.tanh(x * weight) + weight).sum(dim=0)


def no_tensors(a: int, b: int) -> int:
    """Nothing for a graph."""
    return a * b + 1


def symbolic_numbers(x: torch.Tensor, n: int, rate: float) -> Any:
    """Sizes, an int and a float that may differ from call to call, and a branch on one of them."""
    y = x.view(x.size(0), -1) * rate + n
    if n > 2:
        y = y[: n * 2]
    return y, n // 2, [rate * 0.5, min(1.0, n / 5)], torch.arange(n)


def _tensor(*sizes: int) -> torch.Tensor:
    count = math.prod(sizes)
    return (torch.arange(count, dtype=torch.float32) / count - 0.4).reshape(sizes)


CASES: dict[Callable[..., Any], Arguments] = {
    pointwise: lambda: (_tensor(3, 5), _tensor(3, 5)),
    branch: lambda: (_tensor(7), True),
    data_branch: lambda: (_tensor(4),),
    prints: lambda: (_tensor(2, 2),),
    inlined_break: lambda: (_tensor(6),),
    module: lambda: (Block().requires_grad_(False), _tensor(2, 4)),
    generator: lambda: (_tensor(5),),
    closure: lambda: (_tensor(5),),
    exception: lambda: (_tensor(3, 2),),
    reduction: lambda: (_tensor(3, 8),),
    containers: lambda: (_tensor(3),),
    constants: lambda: (_tensor(2, 3), "text"),
    mutation: lambda: (_tensor(4), []),
    unknown_operation: lambda: (_tensor(4),),
    trained: lambda: (_tensor(4, 3), _tensor(3).requires_grad_()),
    no_tensors: lambda: (6, 7),
}

# Captured with everything symbolic.
DYNAMIC: dict[Callable[..., Any], Arguments] = {symbolic_numbers: lambda: (_tensor(7, 3), 3, 0.5)}
