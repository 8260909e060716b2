"""State that no description tells, read through calls that the guards make again."""

from __future__ import annotations

from typing import Any

import torch

import fusee


def _backward_of_all(x: Any) -> Any:
    return x + 1 if torch.autograd._is_checkpoint_valid() else x - 1


def test_flag_of_the_autograd_engine() -> None:
    compiled = fusee.compile(_backward_of_all, fullgraph=True)
    results = []

    def hook(gradient: Any) -> None:
        results.append((compiled(gradient), _backward_of_all(gradient)))

    x = torch.ones(2, requires_grad=True)
    for _ in range(2):
        y = x * 2
        y.register_hook(hook)
        torch.autograd.grad(y.sum(), x)
        hook(torch.ones(2))
    assert [result.tolist() for result, _ in results] == [[0.0, 0.0], [2.0, 2.0]] * 2
    assert all(torch.equal(result, expected) for result, expected in results)


def test_bytes_of_a_storage() -> None:
    def function(x: Any) -> Any:
        storage = x.untyped_storage()
        return x * (storage.nbytes() // x.element_size()) + storage.size()

    compiled = fusee.compile(function, fullgraph=True)
    graphs = fusee.stats()["graphs"]
    for x in (torch.ones(2), torch.ones(4)[:2], torch.ones(2), torch.ones(4)[2:]):
        assert torch.equal(compiled(x), function(x))
    assert fusee.stats()["graphs"] == graphs + 2


def test_storage_of_an_intermediate_breaks() -> None:
    def function(x: Any) -> Any:
        return (x + 1).untyped_storage().nbytes() + x

    assert torch.equal(fusee.compile(function)(torch.ones(3)), function(torch.ones(3)))
