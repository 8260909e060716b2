"""Where the host's time of a later call of the smallest example goes: the whole call, and its plan's parts alone.

usage: launch_parts.py [cpu|cuda]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import fusee
from fusee import _shim

BATCHES, CALLS = 15, 2000


def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The smallest example."""
    z = x + y
    return torch.relu(z) * 2


def compiled_with_plans(
    function: Callable[..., Any], call: Callable[[Callable[..., Any]], object]
) -> tuple[Callable[..., Any], list[dict[str, Any]]]:
    """The compiled function, and the launch plans (docs/contracts.md, section 7) made while ``call`` calls it."""
    plans: list[dict[str, Any]] = []
    made = _shim.LaunchPlan

    def keep(plan: dict[str, Any], *options: Any) -> Any:
        plans.append(plan)
        return made(plan, *options)

    _shim.LaunchPlan = keep  # type: ignore[assignment,misc]
    try:
        compiled = fusee.compile(function)
        call(compiled)
    finally:
        _shim.LaunchPlan = made  # type: ignore[misc]
    return compiled, plans


def allocation_alone(plan: dict[str, Any]) -> Any:
    """The plan without its kernel."""
    return _shim.LaunchPlan({**plan, "steps": [step for step in plan["steps"] if step[0] != "kernel"]})


def kernel_alone(plan: dict[str, Any]) -> Any:
    """The plan's kernel into a tensor that is there already."""
    (kernel,) = (step for step in plan["steps"] if step[0] == "kernel")
    return _shim.LaunchPlan({**plan, "inputs": plan["slots"], "outputs": [], "steps": [kernel]})


def microseconds(call: Callable[[], object]) -> float:
    """The time of a call by the fastest of some batches, between which the device catches up."""
    best = float("inf")
    for _ in range(BATCHES):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, (time.perf_counter() - start) / CALLS)
    return best * 1e6


def main() -> None:
    """Prints one line for each part."""
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    x, y = torch.ones(4, device=device), torch.ones(4, device=device)
    compiled, (plan, *_) = compiled_with_plans(f, lambda run: run(x, y))
    result = torch.empty_like(x)
    whole, allocation, kernel = _shim.LaunchPlan(plan), allocation_alone(plan), kernel_alone(plan)
    parts: dict[str, Callable[[], object]] = {
        "eager": lambda: f(x, y),
        "compiled": lambda: compiled(x, y),
        "its launch plan, without guards": lambda: whole(x, y),
        "allocation alone": lambda: allocation(x, y),
        "kernel alone": lambda: kernel(x, y, result),
        "torch.empty_like": lambda: torch.empty_like(x),
        "nothing": lambda: None,
    }
    for name, call in parts.items():
        print(f"{name:34} {microseconds(call):7.3f} us")
    # Where every other block is free, the allocator of a GPU neither splits one for a tensor nor merges it afterwards.
    beside = [torch.empty_like(x) for _ in range(256)][::2]
    print(
        f"{'allocation alone, among holes':34} {microseconds(parts['allocation alone']):7.3f} us ({len(beside)} holes)"
    )


if __name__ == "__main__":
    main()
