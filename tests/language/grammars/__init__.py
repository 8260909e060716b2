"""The grammars of random programs."""

from __future__ import annotations

from generate import Grammar

from . import language, modules, objects, tensors

GRAMMARS: dict[str, Grammar] = {
    "language": language.GRAMMAR,
    "objects": objects.GRAMMAR,
    "tensors": tensors.GRAMMAR,
    "modules": modules.GRAMMAR,
}

# Which grammar each program in a row is of: one of modules takes as long as ten others.
MIX = (*["language", "objects", "tensors"] * 6, "tensors", "modules")
