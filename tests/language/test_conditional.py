"""torch.cond: each way is captured when it is taken, as eager takes it; graph modules of torch.fx are looked into."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.fx

import fusee


class Chooser(torch.nn.Module):
    """One of two functions that read the module and a tensor made before."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, predicate: Any, x: torch.Tensor) -> torch.Tensor:
        doubled = x * 2

        def on_true(value: torch.Tensor) -> torch.Tensor:
            return value.sin() + self.linear(doubled)

        def on_false(value: torch.Tensor) -> torch.Tensor:
            return torch.cond(value.sum() > 0, lambda v: v.sqrt(), lambda v: v - 1, (value,))

        return torch.cond(predicate, on_true, on_false, (x,)) + 1


@pytest.mark.parametrize("fullgraph", [False, True])
def test_takes_the_way_of_the_tensor(fullgraph: bool) -> None:
    model, graphs = Chooser(), []

    def backend(module: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append(module)
        return module.forward

    compiled = fusee.compile(model, fullgraph=fullgraph, backend=backend)
    for sign in (1.0, -1.0, 1.0):
        for predicate in (torch.tensor(True), torch.tensor(False), True, False):
            x = torch.full((2, 3), sign)
            torch.testing.assert_close(compiled(predicate, x), model(predicate, x), rtol=0, atol=0)
    assert graphs


def test_gradients_come_from_the_way_taken() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda v: v.sqrt().sum(), lambda v: (v * v).sum(), (x,))

    compiled = fusee.compile(program, fullgraph=True)
    for values in ([4.0, 9.0], [0.0, 0.0]):
        gradients = []
        for function in (compiled, program):
            x = torch.tensor(values, requires_grad=True)
            function(x).backward()
            gradients.append(x.grad)
        torch.testing.assert_close(gradients[0], gradients[1])


def test_other_predicates_raise_as_in_eager() -> None:
    def program(x: torch.Tensor) -> Any:
        return torch.cond("yes", lambda v: v, lambda v: v + 1, (x,))

    with pytest.raises(RuntimeError, match="pred to be bool or tensor"):
        fusee.compile(program)(torch.ones(2))


def test_other_breaks_still_raise_under_fullgraph() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(fusee.Unsupported):
        fusee.compile(program, fullgraph=True)(torch.ones(2))


def test_graph_module() -> None:
    inner = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()))

    def program(x: torch.Tensor) -> torch.Tensor:
        return inner(x) + 1

    x = torch.rand(2, 3)
    torch.testing.assert_close(fusee.compile(program, fullgraph=True)(x), program(x))
