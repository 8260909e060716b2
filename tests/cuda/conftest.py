"""Skips the tests of this folder where there is no GPU, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks every test of this folder as skipped unless torch sees a GPU."""
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="no GPU that torch can use")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(skip)
