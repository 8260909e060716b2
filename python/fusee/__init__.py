"""fusee compiles ordinary PyTorch functions: CPython bytecode in, fused kernels out.

@fusee.compile
def f(x, y):
    return torch.relu(x + y) * 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import settings
from .api import (
    compile,
    disable,
    explain,
    graph_break,
    is_compiling,
    list_backends,
    mark_dynamic,
    mark_static,
    reset,
    run,
    stats,
)
from .errors import FuseeError, FuseeWarning, UnknownSetting, Unsupported
from .explanation import Explanation
from .host.record import record
from .wrap import CompiledModule as OptimizedModule

if TYPE_CHECKING:
    __version__: str

__all__ = [
    "Explanation",
    "FuseeError",
    "FuseeWarning",
    "OptimizedModule",
    "UnknownSetting",
    "Unsupported",
    "compile",
    "disable",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "record",
    "reset",
    "run",
    "stats",
]


def __getattr__(name: str) -> Any:
    """The version, read from the installed package's metadata only when it is asked for."""
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("fusee")
        except metadata.PackageNotFoundError:
            return "0.0.0"
    raise AttributeError(f"module 'fusee' has no attribute {name!r}")


if settings.in_environment("capture_all"):
    from . import capture_all as capture_all
