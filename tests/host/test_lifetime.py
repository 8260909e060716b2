"""What a compile looked at dies as without fusee, and what is guarded by identity is never taken for a later object."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import fusee

Use = Callable[..., None]
pytestmark = pytest.mark.usefixtures("empty_cache")


def test_a_class_of_a_function_dies_with_what_it_closes_over() -> None:
    def run() -> list[weakref.ref[Any]]:
        layer = torch.nn.Linear(4, 4)

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = layer

            def forward(self, x: Any) -> Any:
                return self.scaled(x) * self.factor

            def scaled(self, x: Any) -> Any:
                return self.layer(x) * 2

            factor = 3

        model = Model()
        fusee.compile(model)(torch.ones(2, 4))
        assert fusee.stats()["graphs"] > 0
        return [weakref.ref(model), weakref.ref(layer), weakref.ref(Model)]

    references = run()
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]


def test_entries_of_classes_that_are_gone_do_not_count(caught: list[Any]) -> None:
    def scaled(item: Any, x: Any) -> Any:
        return x * item.factor

    fast = fusee.compile(scaled)
    for factor in range(20):
        kind = type("Item", (), {"factor": float(factor), "__slots__": ()})
        torch.testing.assert_close(fast(kind(), torch.ones(3)), torch.full((3,), float(factor)), rtol=0, atol=0)
        del kind
        gc.collect()
    assert len(caught) == 0
