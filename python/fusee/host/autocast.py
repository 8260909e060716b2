"""The state of ``torch.autocast``: told to the compiler, and set for one operation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

Devices = tuple[tuple[str, bool, str], ...]  # type of device, whether autocast is on, and the name of the dtype
_TYPES = ("cpu", "cuda")
# Targets of nodes that change torch's state for those behind them.
STATE_CALLS = frozenset(
    {"torch._C._set_grad_enabled", "torch.set_autocast_enabled", "torch.set_autocast_dtype"}
    | {"torch.set_autocast_cache_enabled", "torch.clear_autocast_cache"}
)


def devices() -> Devices:
    """The state for each type of device."""
    import torch

    def name(device: str) -> str:
        return str(torch.get_autocast_dtype(device)).removeprefix("torch.")

    return tuple((device, torch.is_autocast_enabled(device), name(device)) for device in _TYPES)


def state() -> dict[str, Any]:
    """What a request says of autocast."""
    import torch

    found = devices()
    torch.autocast_increment_nesting()
    return {
        "autocast": any(enabled for _, enabled, _ in found),
        "autocast_devices": found,
        "autocast_cache": torch.is_autocast_cache_enabled(),
        "autocast_nesting": torch.autocast_decrement_nesting(),
    }


def _set(wanted: Devices) -> None:
    import torch

    for device, enabled, dtype in wanted:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, getattr(torch, dtype))


@contextlib.contextmanager
def under(wanted: Devices) -> Iterator[None]:
    """Autocast as given, without its cache, which must not hold tensors that stand for others."""
    import torch

    before, cached = devices(), torch.is_autocast_cache_enabled()
    try:
        _set(wanted)
        torch.set_autocast_cache_enabled(False)
        yield
    finally:
        _set(before)
        torch.set_autocast_cache_enabled(cached)


def restoring(run: Callable[..., Any]) -> Callable[..., Any]:
    """A graph that leaves torch's state as it was when it raises: its function runs again then, from the start."""
    import torch

    def restored(*inputs: Any) -> Any:
        before, cached, grad = devices(), torch.is_autocast_cache_enabled(), torch.is_grad_enabled()
        try:
            return run(*inputs)
        except BaseException:
            _set(before)
            torch.set_autocast_cache_enabled(cached)
            torch.set_grad_enabled(grad)
            raise

    return restored
