"""Trace files: the messages of one compile, as ``fusee replay`` reads them (docs/contracts.md, section 1)."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from .. import settings

MAGIC = b"FUSEETR1"
_numbers = itertools.count(1)


class Tape:
    """The messages of one conversation in order, each preceded by its direction."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def add(self, direction: str, data: bytes) -> None:
        """Append one framed message; ``>`` is host to compiler, ``<`` compiler to host."""
        self.parts += (direction.encode(), data)

    def extend(self, other: Tape) -> None:
        """Append another tape's messages."""
        self.parts += other.parts

    def save(self, path: Path) -> None:
        """Write the trace file, readable by its owner only, as it holds the user's code and constants."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.fchmod(descriptor, 0o600)
        with open(descriptor, "wb") as file:
            file.write(MAGIC + b"".join(self.parts))


class Recorder:
    """Where ``fusee.record`` puts traces: one file if the path ends in ``.fusee``, else a folder of them."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.files: list[Path] = []

    def file(self, name: str) -> Path:
        """The next trace's path; the second and later traces of a single file get a number."""
        if self.path.suffix == ".fusee":
            count = len(self.files)
            target = self.path.with_name(f"{self.path.stem}-{count + 1}.fusee") if count else self.path
        else:
            safe = re.sub(r"\W+", "_", name).strip("_") or "function"
            target = self.path / f"{next(_numbers):04d}-{safe}-{os.getpid()}.fusee"
        self.files.append(target)
        return target


_active: list[Recorder] = []


def recorders(options: Mapping[str, settings.Value]) -> list[Recorder]:
    """Everyone who wants the trace of the next compile."""
    folder = settings.text("record", options)
    return [*_active, Recorder(folder)] if folder else list(_active)


@contextlib.contextmanager
def record(path: str | os.PathLike[str]) -> Iterator[Recorder]:
    """Write a trace of every compile inside the ``with`` block.

    ``path`` is a file ending in ``.fusee`` or a folder; the recorder's ``files`` lists what was written.
    """
    recorder = Recorder(path)
    _active.append(recorder)
    try:
        yield recorder
    finally:
        _active.remove(recorder)
