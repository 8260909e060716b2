"""Measures what the guards of one call cost as the parameters of a model grow.

A model of linear layers is compiled for inference and called once; then only its guard program runs, in short batches
of which the fastest counts, in processor time, so that other load on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch

import fusee
from fusee import _shim


class Tower(torch.nn.Module):
    """Layers one after the other, two parameters each."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Every layer in turn; x is of shape (n, 4), and so is the result."""
        for layer in self.layers:
            x = layer(x)
        return x


def guard_program(parameters: int) -> tuple[_shim.GuardProgram, _shim.CompiledFunction, tuple[object, ...]]:
    """The guards of a model of so many parameters, with the function and the arguments to check them for."""
    model, x = Tower(parameters // 2), torch.randn(2, 4)
    fusee.reset()
    forward: Any = fusee.compile(Tower.forward)
    with torch.no_grad():
        forward(model, x)
    (entry,) = forward.record.entries
    return entry.guards, forward, (model, x)


def nanoseconds(parameters: int, rounds: int, count: int) -> tuple[int, float]:
    """Number of checks, and the fastest batch's time per run of the guard program."""
    guards, function, bound = guard_program(parameters)
    if guards.check(function, bound) is None:
        raise SystemExit("the guards do not hold for the very call they were made for")
    best = float("inf")
    for _ in range(rounds):
        started = time.thread_time_ns()
        for _ in range(count):
            guards.check(function, bound)
        best = min(best, (time.thread_time_ns() - started) / count)
    return guards.checks, best


def main() -> None:
    """Prints a row per number of parameters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, nargs="+", default=[10, 30, 100, 300, 1000, 3000, 10000])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--calls", type=int, default=10, help="calls in a batch")
    arguments = parser.parse_args()
    print(f"{'parameters':>10} {'checks':>8} {'microseconds':>13}")
    for parameters in arguments.parameters:
        checks, time_per_call = nanoseconds(parameters, arguments.rounds, arguments.calls)
        print(f"{parameters:>10} {checks:>8} {time_per_call / 1000:>13.2f}", flush=True)


if __name__ == "__main__":
    main()
