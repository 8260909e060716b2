"""The setuptools build backend, asking for a Go toolchain where the machine has none that is new enough."""

from __future__ import annotations

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

from go_toolchain import go_requirement

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

Settings = Mapping[str, str | list[str] | None] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What a wheel build needs beyond pyproject.toml (PEP 517)."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *go_requirement()]


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """What an editable build needs beyond pyproject.toml (PEP 660)."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *go_requirement()]
