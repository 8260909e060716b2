"""How much processor time compiled functions take as a part of eager's, on one thread of a CPU.

Batches of the two take turns, and the median of their ratios counts: it stays the same however busy the machine is,
which wall-clock time does not. Exits with an error where a compiled function is slower than eager.

usage: ratio.py [WORKLOAD…]
"""

from __future__ import annotations

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


def seconds(call: Callable[..., Any], arguments: tuple[Any, ...], count: int) -> float:
    """Processor seconds of one call, on average."""
    start = time.process_time()
    for _ in range(count):
        call(*arguments)
    return (time.process_time() - start) / count


def ratio(name: str) -> float:
    """Prints and returns the compiled function's share."""
    workload = WORKLOADS[name]("cpu")
    eager, arguments = workload.function, workload.arguments
    compiled = fusee.compile(eager)
    for call in (eager, compiled, compiled):
        call(*arguments)
    count = max(1, int(BATCH_SECONDS / max(seconds(eager, arguments, 1), 1e-6)))
    pairs = [(seconds(eager, arguments, count), seconds(compiled, arguments, count)) for _ in range(BATCHES)]
    share = statistics.median(ours / theirs for theirs, ours in pairs)
    theirs, ours = (min(times) * 1e6 for times in zip(*pairs, strict=True))
    print(f"| {name} | {share:.2f} | {ours:.1f} us | {theirs:.1f} us |", flush=True)
    return share


def main() -> int:
    """Measures the workloads named, or all."""
    torch.set_num_threads(1)
    print("| workload | ratio | a call | eager |\n| --- | ---: | ---: | ---: |")
    shares = [ratio(name) for name in sys.argv[1:] or WORKLOADS]
    return int(max(shares) > 1)


if __name__ == "__main__":
    sys.exit(main())
