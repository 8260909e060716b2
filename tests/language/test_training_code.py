"""What training code does besides calling its model: modes of autograd, optimizers, gradients."""

from __future__ import annotations

from typing import Any

import pytest
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


def _parameters() -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    return [torch.nn.Parameter(torch.randn(4, 3, generator=generator)) for _ in range(2)]


def _trained(make: Any, compiled: bool) -> tuple[Any, dict[str, Any], list[int]]:
    """Eight steps with a schedule of learning rates: parameters, the optimizer's state, graphs after each step."""
    parameters = _parameters()
    optimizer = make(parameters)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

    def step() -> None:
        optimizer.step()

    run = fusee.compile(step, fullgraph=True) if compiled else step
    counts = []
    for i in range(8):
        for k, parameter in enumerate(parameters):
            parameter.grad = torch.sin(parameter.detach() * (i + k + 1))
        run()
        scheduler.step()
        counts.append(fusee.stats()["graphs"])
    return parameters, optimizer.state_dict(), counts


@pytest.mark.parametrize(
    "make",
    [
        lambda parameters: torch.optim.SGD(parameters, lr=0.1),
        lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda parameters: torch.optim.Adam(parameters, lr=0.01),
        lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True),
    ],
    ids=["sgd", "momentum", "adam", "adamw"],
)
def test_steps_of_optimizers_are_one_graph_and_settle(make: Any) -> None:
    found, state, counts = _trained(make, True)
    expected, state_of_eager, _ = _trained(make, False)
    torch.testing.assert_close(found, expected)
    assert state["param_groups"] == state_of_eager["param_groups"]
    torch.testing.assert_close(state["state"], state_of_eager["state"])
    assert counts[2:] == counts[2:3] * 6, "an optimizer compiles anew after its third step"


def test_labels_of_the_profiler_are_noted_while_one_runs() -> None:
    def function(x: Any) -> Any:
        with torch.profiler.record_function("doubled"):
            return x * 2

    x = torch.randn(3)
    assert torch.equal(fusee.compile(function, fullgraph=True)(x), x * 2)
    compiled = fusee.compile(function)
    compiled(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        assert torch.equal(compiled(x), x * 2)
    assert "doubled" in {event.key for event in profile.key_averages()}
    assert torch.equal(compiled(x), x * 2)


def test_breaks_within_a_label() -> None:
    def function(x: Any) -> Any:
        with torch.profiler.record_function("two graphs") as label:
            y = x + 1
            fusee.graph_break()
            z = y * 2
        return z, type(label)

    x = torch.randn(3)
    found, expected = fusee.compile(function)(x), function(x)
    assert torch.equal(found[0], expected[0]) and found[1] is expected[1]


@pytest.mark.parametrize("name", ["addcdiv", "addcmul"])
def test_scale_that_is_a_tensor(name: str) -> None:
    def function(x: Any, y: Any, z: Any, scale: Any) -> Any:
        written = x.clone()
        getattr(written, name + "_")(y, z, value=scale)
        return written, getattr(torch, name)(x, y, z, value=-scale)

    x, y, z = (torch.rand(5) + 0.5 for _ in range(3))
    compiled = fusee.compile(function, fullgraph=True)
    for scale in (torch.tensor(0.25), torch.tensor(3.0)):
        torch.testing.assert_close(compiled(x, y, z, scale), function(x, y, z, scale))
