"""Tensors that metadata cannot tell: sparse, nested, quantized, without memory. They break graphs, never a capture."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import fusee
from fusee.errors import FuseeWarning

Make = Callable[[torch.Tensor], torch.Tensor]

MAKERS: dict[str, Make] = {
    "sparse": lambda x: x.to_sparse(),
    "compressed": lambda x: x.to_sparse_csr(),
    "library": lambda x: x.to_mkldnn(),
    "quantized": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "nested": lambda x: torch.nested.nested_tensor([x[:2], x[1:]]),
    "meta": lambda x: x.to("meta"),
}
READERS: dict[str, Make] = {
    "compressed": lambda y: y.values(),
    "quantized": lambda y: y.dequantize(),
    "nested": lambda y: y.to_padded_tensor(0.0),
    "meta": lambda y: torch.ones(y.shape),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("origin", ["argument", "global", "made"])
def test_unusual_tensors_break_graphs_only(kind: str, origin: str) -> None:
    fusee.reset()
    make, read = MAKERS[kind], READERS.get(kind, lambda y: y.to_dense())
    x = torch.arange(12.0).view(3, 4) - 2
    unusual = make(x * 2)

    def function(x: torch.Tensor, given: Any) -> torch.Tensor:
        doubled = x * 2 + 1
        y = {"argument": lambda: given, "global": lambda: unusual, "made": lambda: make(doubled - 1)}[origin]()
        return doubled.sum() + read(y) * 2

    with warnings.catch_warnings():
        warnings.simplefilter("error", FuseeWarning)
        compiled = fusee.compile(function)
        for _ in range(2):
            assert torch.equal(compiled(x, unusual), function(x, unusual))
    assert fusee.stats()["graphs"] >= 1


def test_tensors_without_memory_are_made_within_graphs() -> None:
    """No plan reaches their device, so Python runs the graph."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Size]:
        total = x.sum(1)
        total += torch.zeros(3, device="meta")
        return total, (x + 1).to("meta").shape

    fusee.reset()
    x = torch.randn(3, 4)
    found, expected = fusee.compile(function, fullgraph=True)(x), function(x)
    assert torch.equal(found[0], expected[0]) and found[1] == expected[1]
