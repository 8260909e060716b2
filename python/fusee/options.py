"""The arguments of one ``fusee.compile``, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import backends, settings
from .settings import Value

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclass(frozen=True)
class Options:
    """What a compiled function and its continuations share; equal options share entries."""

    fullgraph: bool = False
    dynamic: bool | None = None
    backend: Any = "fusee"
    mode: str = "default"
    settings: tuple[tuple[str, Value], ...] = ()
    listener: Any = field(default=None)

    @property
    def changed(self) -> Mapping[str, Value]:
        """Settings given by ``options=``."""
        return dict(self.settings)

    def setting(self, name: str) -> Value:
        """A setting's value under these options."""
        return settings.get(name, self.changed)

    def key(self) -> tuple[Any, ...]:
        """Equal for options under which one function's entries may be shared."""
        backend = self.backend if isinstance(self.backend, str) else id(self.backend)
        return self.fullgraph, self.dynamic, backend, self.mode, self.settings, id(self.listener)


def check(
    fullgraph: bool, dynamic: bool | None, backend: Any, mode: str | None, options: Mapping[str, Any] | None
) -> Options:
    """Options from the arguments of ``fusee.compile``; UnknownSetting, TypeError or ValueError for wrong ones."""
    if mode is not None and options:
        raise ValueError("either mode or options can be given, not both")
    if mode is not None and mode not in MODES:
        raise settings.unknown("mode", str(mode), list(MODES))
    if dynamic not in (None, True, False):
        raise TypeError(f"dynamic is None, True or False, not {dynamic!r}")
    checked = tuple(sorted(settings.check(options).items()))
    return Options(bool(fullgraph), dynamic, backends.check(backend), mode or "default", checked)
