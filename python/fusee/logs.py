"""FUSEE_LOGS: names and grammar of TORCH_LOGS where they mean the same.

``recompiles,graph_breaks`` turns artifacts on, ``+dynamo`` a component at debug level, ``-dynamo`` at error level.
Everything goes through the standard ``logging`` package under loggers named ``fusee.<name>``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache

from . import settings

COMPONENTS: tuple[str, ...] = ("all", "fusee", "dynamo")
ARTIFACTS: Mapping[str, str] = {
    "recompiles": "why a call fitted no entry, with the old and the new value",
    "graph_breaks": "each graph break with its source line, reason and hint",
    "guards": "the guard program of each entry",
    "graph_code": "the captured graph as Python code",
    "graph": "the captured graph as a table",
    "output_code": "the source of the generated kernels",
    "bytecode": "the rewritten code object",
    "cudagraphs": "what was recorded as a CUDA graph, and why something was not",
    "aliasing": "graphs that Python runs for a call, as tensors that they write share memory with others",
    "trace": "each question of the compiler and its answer",
}


def parse(text: str) -> dict[str, int]:
    """Level for each name in ``text``; UnknownSetting for a name that does not exist."""
    levels: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name = item.lstrip("+-")
        if name not in COMPONENTS and name not in ARTIFACTS:
            raise settings.unknown("log", name, [*COMPONENTS, *ARTIFACTS])
        levels[name] = {"+": logging.DEBUG, "-": logging.ERROR}.get(item[0], logging.INFO)
    return levels


@lru_cache(maxsize=1)
def _configure(text: str) -> Mapping[str, int]:
    levels = parse(text)
    root = logging.getLogger("fusee")
    if levels and not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
        root.addHandler(handler)
        root.propagate = False
    component = min((levels[name] for name in COMPONENTS if name in levels), default=logging.WARNING)
    root.setLevel(component)
    for name in ARTIFACTS:
        wanted = levels.get(name, logging.DEBUG if component == logging.DEBUG else logging.WARNING)
        logging.getLogger(f"fusee.{name}").setLevel(wanted)
    return levels


def enabled(name: str, options: Mapping[str, settings.Value] | None = None) -> bool:
    """Whether an artifact is logged."""
    _configure(settings.text("logs", options))
    return logging.getLogger(f"fusee.{name}").isEnabledFor(logging.INFO)


def log(name: str, message: str, options: Mapping[str, settings.Value] | None = None) -> None:
    """Log one message under an artifact's name, if it is on."""
    if enabled(name, options):
        logging.getLogger(f"fusee.{name}").info(message)
