"""Fixtures of the gradient tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import fusee
from fusee import training


@pytest.fixture(autouse=True)
def start_afresh() -> Iterator[None]:
    """No test meets what another one compiled."""
    torch.manual_seed(0)
    fusee.reset()
    yield
    fusee.reset()


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The graphs that were compiled for training during a test."""
    graphs: list[dict[str, Any]] = []
    make = training.TrainedGraph.__init__

    def noted(self: training.TrainedGraph, graph: dict[str, Any], value: Any) -> None:
        graphs.append(graph)
        make(self, graph, value)

    monkeypatch.setattr(training.TrainedGraph, "__init__", noted)
    return graphs
