"""What training code does besides calling its model: modes of autograd, optimizers, gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.eval_frame import TorchPatcher
from torch._dynamo.mutation_guard import install_generation_tagging_init

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


@pytest.mark.parametrize("patched", [False, True], ids=["", "after torch.compile"])
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
def test_steps_of_optimizers_are_one_graph_and_settle(make: Any, patched: bool) -> None:
    fusee.reset()
    if patched:  # torch.compile disables parts of the optimizers when it is first used
        TorchPatcher.patch()
    found, state, counts = _trained(make, True)
    expected, state_of_eager, _ = _trained(make, False)
    torch.testing.assert_close(found, expected)
    assert state["param_groups"] == state_of_eager["param_groups"]
    torch.testing.assert_close(state["state"], state_of_eager["state"])
    assert counts[2:] == counts[2:3] * 6, "an optimizer compiles anew after its third step"


class _Scaled(torch.nn.Module):
    def __init__(self, factor: float, between: Any = None) -> None:
        super().__init__()
        if between is not None:
            between()
        self.factor = factor

    def forward(self, x: Any) -> Any:
        return torch.nn.ReLU()(x) * self.factor


def _restored(x: Any) -> Any:
    module: Any = _Scaled(2.0)
    module.__setstate__({"factor": 3.0})
    return module(x), module.factor


@pytest.mark.parametrize("function", [lambda x: _Scaled(2.0)(x), _restored])
def test_modules_are_made_in_one_graph_after_dynamo_ran(function: Any) -> None:
    install_generation_tagging_init()  # torch.compile notes when modules are made from its first use on
    assert (
        torch.nn.Module.__init__.__module__ == torch.nn.Module.__setstate__.__module__ == "torch._dynamo.mutation_guard"
    )
    x = torch.randn(3)
    compiled = fusee.compile(function, fullgraph=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)


def test_breaks_while_modules_are_made_after_dynamo_ran() -> None:
    install_generation_tagging_init()

    def function(x: Any) -> Any:
        module = _Scaled(2.0, fusee.graph_break)
        return module(x), module.training, list(module.__dict__)

    x = torch.randn(3)
    found, expected = fusee.compile(function)(x), function(x)
    assert torch.equal(found[0], expected[0]) and found[1:] == expected[1:]


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


def test_gradients_set_to_none_in_one_graph() -> None:
    def function(optimizer: Any, x: Any) -> Any:
        optimizer.zero_grad()
        return x + 1, [parameter.grad for parameter in optimizer.param_groups[0]["params"]]

    parameters = _parameters()
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    compiled = fusee.compile(function, fullgraph=True)
    for _ in range(3):
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        _, gradients = compiled(optimizer, torch.zeros(2))
        assert gradients == [None, None] and [parameter.grad for parameter in parameters] == [None, None]


def test_gradients_set_to_zero_keep_their_identity() -> None:
    def function(optimizer: Any) -> None:
        optimizer.zero_grad(set_to_none=False)

    parameters = _parameters()
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    gradients = [torch.ones_like(parameter) for parameter in parameters]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    fusee.compile(function, fullgraph=True)(optimizer)
    assert all(parameter.grad is gradient for parameter, gradient in zip(parameters, gradients, strict=True))
    assert not any(gradient.any() for gradient in gradients)


def test_gradients_that_are_exchanged_and_read_again() -> None:
    def function(x: Any, y: Any) -> Any:
        before = x.grad
        x.grad = y * 2
        after = x.grad
        x.grad = before
        y.grad = after
        return before, after, x.grad is before

    def outcome(run: Any) -> list[Any]:
        x, y = torch.ones(3, requires_grad=True), torch.arange(3.0)
        x.grad = torch.full((3,), 7.0)
        old = x.grad
        before, after, same = run(x, y)
        return [before is old, x.grad is old, y.grad is after, same, after.tolist()]

    assert outcome(fusee.compile(function, fullgraph=True)) == outcome(function)


def test_backward_between_changes_of_gradients() -> None:
    def function(x: Any) -> Any:
        x.grad = None
        (x * 3).sum().backward()
        first = x.grad
        x.grad = None
        (x * x).sum().backward()
        return first, x.grad

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.ones(2)
    compiled = fusee.compile(function)
    for _ in range(3):
        first, second = compiled(x)
        assert first.tolist() == [3.0, 3.0] and second is x.grad and second.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("value", [torch.ones(2), torch.ones(3, dtype=torch.float64), 5])
def test_gradients_that_do_not_fit_raise_as_in_eager(value: Any) -> None:
    def function(x: Any) -> None:
        x.grad = value

    messages = []
    for run in (fusee.compile(function), function):
        with pytest.raises((RuntimeError, TypeError)) as raised:
            run(torch.ones(3, requires_grad=True))
        messages.append((type(raised.value), str(raised.value)))
    assert messages[0] == messages[1]


def test_clipping_by_norm_settles() -> None:
    def function(parameters: Any) -> Any:
        return torch.nn.utils.clip_grad_norm_(parameters, 1.0)

    compiled = fusee.compile(function)
    counts = []
    ours, theirs = _parameters(), _parameters()
    for i in range(4):
        for parameters in (ours, theirs):
            for parameter in parameters:
                parameter.grad = torch.sin(parameter.detach() + i) * 2
        torch.testing.assert_close(compiled(ours), function(theirs))
        torch.testing.assert_close([p.grad for p in ours], [p.grad for p in theirs])
        counts.append(fusee.stats()["graphs"])
    assert counts[1:] == counts[1:2] * 3


def test_numbers_drawn_for_nobody_are_drawn_where_gradients_flow() -> None:
    def program(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        torch.bernoulli(torch.full((3,), 0.5))
        drawn = torch.bernoulli(torch.full((3,), 0.5))
        return drawn, (weight * drawn).sum()

    weight = torch.ones(3, requires_grad=True)
    function = fusee.compile(program, fullgraph=True)
    for seed in range(4):
        torch.manual_seed(seed)
        expected = program(weight)
        torch.manual_seed(seed)
        assert [torch.equal(*pair) for pair in zip(expected, function(weight), strict=True)] == [True, True]


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 3)])
@pytest.mark.parametrize("gaps", [False, True], ids=["contiguous", "with gaps"])
def test_the_gradient_of_a_bias_has_the_signs_of_zero_that_eager_gives(shape: tuple[int, ...], gaps: bool) -> None:
    def function(x: Any, weight: Any, bias: Any, gradient: Any) -> Any:
        torch.nn.functional.linear(x, weight, bias).backward(gradient)
        return bias.grad

    def arguments() -> tuple[Any, ...]:
        x = torch.zeros(*shape, 2)[..., 0] if gaps else torch.zeros(shape)
        gradient = torch.tensor([0.0, -0.0, -0.0]).expand(shape).clone()
        return x, torch.ones(3, 3, requires_grad=True), torch.ones(3, requires_grad=True), gradient

    compiled = fusee.compile(function, fullgraph=True, dynamic=False)
    found, expected = compiled(*arguments()), function(*arguments())
    assert torch.equal(torch.signbit(found), torch.signbit(expected)) and torch.equal(found, expected)


def _steps_with_gradients_off(x: Any, weight: Any) -> Any:
    with torch.no_grad(), torch.enable_grad():
        y = (x * weight).exp()
        y.sum().backward()
    return y


def _writes_what_requires_gradients(x: Any, weight: Any) -> Any:
    (x * weight).sum().backward()
    x += x * weight
    return x


def _overwrites_an_intermediate(x: Any, weight: Any) -> Any:
    y = x * weight
    z = y * 2
    y.zero_()
    return y, z, y + 1


@pytest.mark.parametrize(
    "function", [_steps_with_gradients_off, _writes_what_requires_gradients, _overwrites_an_intermediate]
)
def test_results_require_gradients_where_those_of_eager_do(function: Any) -> None:
    def outcome(run: Any) -> list[tuple[bool, bool, list[float]]]:
        results = run(torch.arange(3.0), torch.ones(3, requires_grad=True))
        tensors = results if isinstance(results, tuple) else (results,)
        return [(one.requires_grad, one.is_leaf, one.tolist()) for one in tensors]

    assert outcome(fusee.compile(function)) == outcome(function)
