"""One workload under one compiler in this process; prints one line of JSON. Started by ``compare.py``.

usage: measure.py WORKLOAD COMPILER DEVICE
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from workloads import WORKLOADS, Workload

BATCHES = 9
BATCH_SECONDS = 0.03

Call = Callable[..., Any]


def compiled_by(compiler: str, function: Call) -> Call:
    """The function under a compiler; what importing the compiler costs is part of its first call."""
    name, _, mode = compiler.partition("/")
    if name == "fusee":
        import fusee

        return fusee.compile(function, mode=mode or None)
    if name == "torch.compile":
        return torch.compile(function, mode=mode or None)
    raise SystemExit(f"unknown compiler {compiler!r}")


def synchronize(device: str) -> None:
    """Waits for the device to finish."""
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(call: Callable[[], object], device: str) -> float:
    """The time of one call, device work included."""
    synchronize(device)
    start = time.perf_counter()
    call()
    synchronize(device)
    return time.perf_counter() - start


def batch_size(call: Call, arguments: tuple[Any, ...], device: str) -> int:
    """How many calls take about BATCH_SECONDS."""
    once = min(seconds_of(lambda: call(*arguments), device) for _ in range(3))
    return max(1, min(20_000, int(BATCH_SECONDS / max(once, 1e-7))))


def batch(call: Call, arguments: tuple[Any, ...], size: int, device: str) -> float:
    """Seconds of one call, on average over a batch."""

    def loop() -> None:
        for _ in range(size):
            call(*arguments)

    return seconds_of(loop, device) / size


def side_by_side(calls: list[Call], arguments: tuple[Any, ...], device: str) -> list[float]:
    """Seconds of each call by its fastest batch, since other load only adds; batches of the calls take turns."""
    sizes = [batch_size(call, arguments, device) for call in calls]
    times: list[list[float]] = [[] for _ in calls]
    gc.disable()
    for _ in range(BATCHES):
        for call, size, taken in zip(calls, sizes, times, strict=True):
            taken.append(batch(call, arguments, size, device))
    gc.enable()
    return [min(taken) for taken in times]


def host_seconds(call: Call, arguments: tuple[Any, ...], device: str) -> float:
    """Median time until a call returns, whatever the device still does."""
    times = []
    for _ in range(200):
        synchronize(device)
        start = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def difference(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Relative error against eager, in the norm."""
    scale = float(expected.double().norm()) or 1.0
    return float((result.double() - expected.double()).norm()) / scale


def measure(workload: Workload, compiler: str, device: str) -> dict[str, float]:
    """Everything about one workload under one compiler, times in seconds."""
    eager, arguments = workload.function, workload.arguments
    expected = eager(*arguments)
    if workload.others:
        eager(*workload.others)
    holder: list[Call] = []

    def first() -> None:
        holder.append(compiled_by(compiler, eager))
        holder[0](*arguments)

    numbers = {"first": seconds_of(first, device)}
    compiled = holder[0]
    numbers["error"] = difference(compiled(*arguments), expected)
    numbers["eager"], numbers["steady"] = side_by_side([eager, compiled], arguments, device)
    if device == "cuda":
        numbers["eager_host"] = host_seconds(eager, arguments, device)
        numbers["host"] = host_seconds(compiled, arguments, device)
    if workload.others:
        numbers["recompile"] = seconds_of(lambda: compiled(*workload.others), device)
    return numbers


def main() -> None:
    """Builds the workload of the command line and prints its numbers."""
    name, compiler, device = sys.argv[1:4]
    torch.manual_seed(0)
    print(json.dumps(measure(WORKLOADS[name](device), compiler, device)))


if __name__ == "__main__":
    main()
