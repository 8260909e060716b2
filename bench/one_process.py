"""Workloads one after another in one process, eager and compiled taking turns, with the memory that a call takes.

Only the first has a compiler and a GPU to start. A call of what is trained is forward, loss and backward.

usage: one_process.py [--device cpu] [WORKLOAD[/MODE] …]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import torch

import fusee
from measure import difference, seconds_of
from workloads import TRAINED, WORKLOADS, Workload

ROUNDS = 5
ROUND_SECONDS = 0.06
RECORDED = ["decode_step/reduce-overhead", "deep_narrow/reduce-overhead"]
MEBIBYTE = 2**20

Step = Callable[[], Any]


def step_of(workload: Workload, function: Callable[..., Any]) -> Step:
    """One call, with its gradients where something is trained."""

    def step() -> Any:
        if workload.trained is None:
            return function(*workload.arguments)
        workload.trained.zero_grad()
        loss = function(*workload.arguments)
        loss.backward()
        return loss.detach()

    return step


def peak_memory(step: Step, device: str) -> float:
    """The most that a call takes beyond what there was before it, in MiB; 0 where PyTorch does not count."""
    if device != "cuda":
        return 0.0
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    seconds_of(step, device)
    return (torch.cuda.max_memory_allocated() - before) / MEBIBYTE


def turns(steps: list[Step], device: str) -> list[float]:
    """Seconds of a call of each, the median of batches that take turns."""
    size = max(3, int(ROUND_SECONDS / max(seconds_of(steps[0], device), 1e-6)))

    def batch(step: Step) -> float:
        return seconds_of(lambda: [step() for _ in range(size)][:0], device) / size

    rounds = [[batch(step) for step in steps] for _ in range(ROUNDS)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def row(name: str, device: str) -> dict[str, float | str]:
    """The numbers of one workload: times in seconds, memory in MiB."""
    base, _, mode = name.partition("/")
    workload = (WORKLOADS | TRAINED)[base](device)
    function = fusee.compile(workload.function, mode=mode or None)
    eager, compiled = step_of(workload, workload.function), step_of(workload, function)
    expected = eager()
    first = seconds_of(compiled, device)
    error = difference(compiled(), expected)
    peak, eager_peak = peak_memory(compiled, device), peak_memory(eager, device)
    eager_call, call = turns([eager, compiled], device)
    return {
        "workload": name,
        "first": first,
        "call": call,
        "eager": eager_call,
        "peak": peak,
        "eager_peak": eager_peak,
        "error": error,
    }


def main() -> None:
    """Prints a line of JSON for each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("workloads", nargs="*")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    for name in chosen.workloads or [*WORKLOADS, *TRAINED, *RECORDED]:
        print(json.dumps(row(name, chosen.device)), flush=True)


if __name__ == "__main__":
    main()
