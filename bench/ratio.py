"""How much processor time compiled functions take as a part of eager's, on one thread of a CPU.

Batches of the two take turns, and the median of their ratios counts: it stays the same however busy the machine is,
which wall-clock time does not. With ``--torch-compile`` torch.compile takes its turn too. Exits with an error where a
compiled function is slower than eager.

usage: ratio.py [--torch-compile] [WORKLOAD…]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import fusee
from workloads import WORKLOADS

BATCHES = 9
BATCH_SECONDS = 0.01

Call = Callable[..., Any]


def seconds(call: Call, arguments: tuple[Any, ...], count: int) -> float:
    """Processor seconds of one call, on average."""
    start = time.process_time()
    for _ in range(count):
        call(*arguments)
    return (time.process_time() - start) / count


def share(ours: tuple[float, ...], theirs: tuple[float, ...]) -> float:
    """The median part that one call takes of another."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def ratio(name: str, beside: bool) -> float:
    """Prints a row, beside torch.compile if asked to, and returns the compiled function's share of eager's time."""
    workload = WORKLOADS[name]("cpu")
    eager, arguments = workload.function, workload.arguments
    calls: list[Call] = [eager, fusee.compile(eager)]
    if beside:
        calls.append(torch.compile(eager))
    for call in (*calls, *calls):
        call(*arguments)
    count = max(1, int(BATCH_SECONDS / max(seconds(eager, arguments, 1), 1e-6)))
    rounds = [[seconds(call, arguments, count) for call in calls] for _ in range(BATCHES)]
    theirs, ours, *others = zip(*rounds, strict=True)
    cells = [f"{share(ours, theirs):.2f}", f"{min(ours) * 1e6:.1f} us", f"{min(theirs) * 1e6:.1f} us"]
    for other in others:
        cells += [f"{share(ours, other):.2f}", f"{min(other) * 1e6:.1f} us"]
    print(f"| {' | '.join([name, *cells])} |", flush=True)
    return share(ours, theirs)


def main() -> int:
    """Measures the workloads named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workloads", nargs="*", help="names of workloads (default: all)")
    parser.add_argument("--torch-compile", action="store_true", help="measure torch.compile beside the two")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    columns = ["workload", "ratio", "a call", "eager"]
    if chosen.torch_compile:
        columns += ["part of torch.compile's", "torch.compile"]
    print(f"| {' | '.join(columns)} |\n| --- |{' ---: |' * (len(columns) - 1)}")
    shares = [ratio(name, chosen.torch_compile) for name in chosen.workloads or WORKLOADS]
    return int(max(shares) > 1)


if __name__ == "__main__":
    sys.exit(main())
