"""The host's time of the smallest trained function, forward and backward, over the time of the launches alone.

Gradients are set to None before each step, as a training loop does. For comparison: the same in eager, and a step
through a ``torch.autograd.Function`` that does nothing, which is what PyTorch itself takes for a function with its own
gradient.

usage: training_overhead.py [cpu|cuda]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

import fusee
from fusee import _shim
from launch_parts import compiled_with_plans, microseconds


def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The smallest trained function: a kernel forward, and one backward."""
    return torch.tanh(x * w).sum()


class Nothing(torch.autograd.Function):
    """One of its inputs, and its gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """The second input."""
        return w

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradient as it is, for the second input."""
        return None, gradients[0]


def launches(plan: dict[str, Any], device: str) -> Callable[[], object]:
    """The kernels of a plan alone, on memory that is there already; no tensor of the function is larger than x."""
    kernels = [step for step in plan["steps"] if step[0] == "kernel"]
    alone = _shim.LaunchPlan(
        {"inputs": plan["slots"], "slots": plan["slots"], "outputs": [], "kernels": plan["kernels"], "steps": kernels}
    )
    memory = [torch.empty(4, device=device) for _ in range(plan["slots"])]
    return lambda: alone(*memory)


def step(function: Callable[..., torch.Tensor], x: torch.Tensor, w: torch.Tensor) -> Callable[[], object]:
    """Forward and backward of a function."""

    def run() -> None:
        w.grad = None
        torch.autograd.backward(function(x, w))

    return run


def whole_step(x: torch.Tensor, w: torch.Tensor) -> None:
    """Forward and backward in one function, which compiles to one plan that PyTorch's autograd has no part in."""
    w.grad = None
    torch.autograd.backward(f(x, w))


def main() -> None:
    """Prints one line for each part."""
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    x, w = torch.ones(4, device=device), torch.ones(4, device=device, requires_grad=True)
    scalar = torch.ones((), device=device, requires_grad=True)
    compiled, plans = compiled_with_plans(f, lambda run: step(run, x, w)())
    alone = [launches(plan, device) for plan in plans]
    whole = microseconds(step(compiled, x, w))
    kernels = sum(microseconds(launch) for launch in alone)
    one_plan = fusee.compile(whole_step)
    print(f"{'eager':34} {microseconds(step(f, x, w)):7.3f} us")
    print(f"{'compiled':34} {whole:7.3f} us")
    print(f"{'its launches':34} {kernels:7.3f} us")
    print(f"{'compiled, over its launches':34} {whole - kernels:7.3f} us")
    print(f"{'backward compiled with it':34} {microseconds(lambda: one_plan(x, w)):7.3f} us")
    print(f"{'a function that does nothing':34} {microseconds(step(Nothing.apply, x, scalar)):7.3f} us")


if __name__ == "__main__":
    main()
