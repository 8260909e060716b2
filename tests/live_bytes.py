"""How much memory of tensors on the CPU is alive at once while something runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile


def peak(run: Callable[[], Any]) -> int:
    """The most bytes that were alive beyond those that were before, of what PyTorch's allocator gave."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = run()
    results = profiler.profiler.kineto_results
    changes = sorted(_allocations(results.experimental_event_tree()))
    del kept
    alive = most = 0
    for _, size in changes:
        alive += size
        most = max(most, alive)
    return most


def _allocations(events: Iterable[Any]) -> list[tuple[int, int]]:
    """The time and size of each allocation, negative where memory is freed."""
    found: list[tuple[int, int]] = []
    waiting = list(events)
    while waiting:
        event = waiting.pop()
        if event.tag == _EventType.Allocation:
            found.append((event.start_time_ns, event.extra_fields.alloc_size))
        waiting.extend(event.children)
    return found
