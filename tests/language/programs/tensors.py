"""Python around tensors: the graph and the rest of the program keep their order."""

from typing import Any

import torch

from programs import calls

LOG: list[Any] = []


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __add__(self, other: Any) -> Any:
        return Box(self.value + other)


def scaled(x: Any, *, by: Any = 2) -> Any:
    return x * by


def pieces(x: Any) -> Any:
    for row in x:
        yield row + 1


@calls((torch.ones(3), 2), (torch.arange(3.0), 5))
def arithmetic(x, n):
    y = x * n + 1
    z = [y, y - x]
    for i in range(n):
        z.append(z[-1] + i)
    return z, scaled(y), scaled(x, by=n)


@calls((torch.ones(3),), (torch.arange(3.0),))
def in_place(x):
    y = x
    y += 1
    view = x[1:]
    view.mul_(2)
    x[0] = 7
    return x, y, view, x is y


@calls((torch.ones(2, 3),))
def containers_of_tensors(x):
    d = {"a": x, "b": [x + 1, x.sum()]}
    d["c"] = d["b"][0] * 2
    LOG.append(d["c"])
    return d, x.shape, x.size(0), x.ndim, tuple(x.shape), len(x), x.dtype


@calls((torch.tensor([1.0, -2.0]),), (torch.tensor([3.0, 4.0]),))
def branch_on_data(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y + 1


@calls((torch.tensor([1.0, -2.0]),), (torch.tensor([3.0, 4.0]),))
def branch_in_inlined_call(x):
    def clip(v):
        out = v * 2
        if v.min() < 0:
            return out.abs()
        return out

    a = clip(x)
    b = clip(-x)
    return a + b


@calls((torch.arange(6.0).reshape(2, 3),))
def generator_of_tensors(x):
    out = []
    for row in pieces(x):
        out.append(row * 2)
    return torch.stack(out), sum(pieces(x))


@calls((torch.ones(2),))
def boxes(x):
    b = Box(x)
    c = b + 1
    c.value = c.value * 3
    b.other = c
    return b, c.value - x


@calls((torch.ones(2), 1), (torch.ones(2), 0))
def errors_between_operations(x, n):
    y = x + 1
    try:
        y.add_(1)
        LOG.append(1 / n)
    except ZeroDivisionError:
        y.mul_(3)
    finally:
        y = y - x
    return y


@calls((torch.ones(2),))
def shape_error(x):
    return x + 1, x @ torch.ones(3)


@calls((torch.tensor(3.0),), (torch.tensor(0.5),))
def python_numbers(x):
    v = x.item()
    return x * v, float(x), int(x), v > 1, f"{v:.1f}", [v] * 2


@calls(
    (torch.ones(3), 4),
)
def comprehension_of_tensors(x, n):
    rows = [x * i for i in range(n)]
    return torch.stack(rows), {i: r for i, r in enumerate(rows)}, sum(rows), max(range(n), key=lambda i: i % 3)


@calls((torch.ones(3),))
def while_loop_over_tensor(x):
    steps = 0
    while x.sum() < 20:
        x = x * 2
        steps += 1
    return x, steps


@calls((torch.ones(3),))
def no_grad_block(x):
    with torch.no_grad():
        y = x * 2
        print("inside")
    return y + 1, torch.is_grad_enabled()
