"""Compiles and drops functions, modules and inputs over and over, and shows what stays behind.

Each round makes every kind of program anew, with a number in it that no program before had, so that each is compiled;
the disk cache is off. Between rounds nothing is reset: what is dropped has to go by itself. The columns are the objects
that Python's collector has got to know since the start and the resident memory of this process and of the compiler.

usage: recompilations.py [--compilations N] [--rows ROWS]
"""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Callable
from typing import Any

os.environ["FUSEE_CACHE"] = "0"

import torch

import fusee
from fusee.host.connection import CONNECTION

SOURCES = {
    "pointwise": "def f(x, y):\n    return torch.relu(x + y) * {number}\n",
    "broken": "def f(x, y):\n    x = x + y\n    if x.sum() > 0:\n        x = x - 1\n    return x * {number}\n",
    "closure": "def make(k):\n    def f(x, y):\n        return (x - y) * k * {number}\n    return f\nf = make(2.0)\n",
}


def called(name: str, number: int, **arguments: Any) -> torch.Tensor:
    """Defines a function in a namespace of its own, compiles it, and calls it."""
    namespace: dict[str, Any] = {"torch": torch}
    exec(compile(SOURCES[name].format(number=number), "<bench>", "exec"), namespace)
    result: torch.Tensor = fusee.compile(namespace["f"])(torch.ones(3, **arguments), torch.ones(3))
    return result


def trained(number: int) -> None:
    """A function with its gradient."""
    loss: Any = called("pointwise", number, requires_grad=True).sum()
    loss.backward()


def module(number: int) -> None:
    """A module of a class of its own."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)
            self.number = number

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scaled: torch.Tensor = self.layer(x) * self.number
            return scaled

    with torch.no_grad():
        fusee.compile(Model(), dynamic=False)(torch.ones(2, 3))


def scaled(x: torch.Tensor, number: float) -> torch.Tensor:
    """One function that lives as long as the process."""
    return x * number


FAST = fusee.compile(scaled, dynamic=False)


def recompiled(number: int) -> None:
    """The function above for another number; at the limit of entries it starts anew."""
    record: Any = FAST.record  # type: ignore[attr-defined]
    if len(record.entries) == 8:
        record.clear()
    FAST(torch.ones(3), number + 0.5)


KINDS: list[Callable[[int], Any]] = [
    lambda number: called("pointwise", number),
    lambda number: called("broken", number),
    lambda number: called("closure", number),
    trained,
    module,
    recompiled,
]


def resident(process: int | str) -> float:
    """MiB of memory that a process holds."""
    with open(f"/proc/{process}/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def show(number: int) -> None:
    """A row of the table."""
    for _ in range(3):
        gc.collect()
    child = CONNECTION._child
    compiler = resident(child._process.pid) if child is not None else 0.0
    graphs = fusee.stats()["graphs"]
    print(f"| {graphs} | {len(gc.get_objects())} | {resident('self'):.1f} | {compiler:.1f} |", flush=True)


def main() -> None:
    """Prints a row at the start and whenever a part of the compilations is done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--compilations", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=5)
    chosen = parser.parse_args()
    print("| compilations | objects | process, MiB | compiler, MiB |\n| ---: | ---: | ---: | ---: |")
    gc.freeze()  # what was imported is neither looked through nor counted
    number, shown = 0, 0
    while shown <= chosen.rows:
        for kind in KINDS:
            kind(number)
        gc.collect()  # the classes of modules go, which would use up the entries of their function
        number += 1
        if fusee.stats()["graphs"] >= (shown * chosen.compilations) // chosen.rows and number > 10:
            show(number)
            shown += 1


if __name__ == "__main__":
    main()
