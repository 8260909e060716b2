"""What training code does besides calling its model: modes of autograd, optimizers, gradients."""

from __future__ import annotations

from typing import Any

import torch

import fusee


def test_modes_of_autograd_are_in_one_graph() -> None:
    def function(x: Any) -> Any:
        with torch.no_grad():
            y = x * 2
        with torch.set_grad_enabled(True):
            z = x * y
        return y, z

    x = torch.randn(3, requires_grad=True)
    found, expected = fusee.compile(function, fullgraph=True)(x), function(x)
    assert all(torch.equal(a, b) and a.requires_grad == b.requires_grad for a, b in zip(found, expected, strict=True))


class _Base:
    def __init__(self, factor: float) -> None:
        self.factor = factor


class _Derived(_Base):
    pass


def test_objects_of_a_class_that_inherits_its_layout_are_in_one_graph() -> None:
    def function(x: Any) -> Any:
        return x * _Derived(2.5).factor

    x = torch.randn(3)
    assert torch.equal(fusee.compile(function, fullgraph=True)(x), function(x))
