"""Backward hooks of tensors and modules where the function goes backward itself: values and order are eager's."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

import fusee

Events = list[Any]
Case = Callable[[nn.Module, Tensor, Events], Any]


class Network(nn.Module):
    """A convolution, a norm and two linear layers, the first result of which is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
        self.hidden, self.head = nn.Linear(12, 5), nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.hidden(F.relu(self.norm(self.conv(x))).flatten(1)))
        result: Tensor = self.head(x) + x[:, :2]
        return result


def check_same(found: Any, wanted: Any) -> None:
    """Tensors up to rounding, all else exactly."""
    if isinstance(wanted, Tensor):
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-12)
    elif isinstance(wanted, (list, tuple, dict)):
        assert len(found) == len(wanted)
        keys = wanted if isinstance(wanted, dict) else range(len(wanted))
        for key in keys:
            check_same(found[key], wanted[key])
    else:
        assert found == wanted


def note(events: Events, name: str) -> Callable[[Tensor], None]:
    """A hook that notes its gradient."""
    return lambda gradient: events.append((name, gradient.detach().clone()))


def hidden_of(model: Any, x: Tensor) -> Tensor:
    hidden: Tensor = torch.tanh(model.hidden(model.norm(model.conv(x)).flatten(1)))
    return hidden


def loss_of(model: Any, hidden: Tensor) -> Tensor:
    loss: Tensor = (model.head(hidden) + hidden[:, :2]).square().mean()
    return loss


def changed_gradient(model: Any, x: Tensor, events: Events) -> Any:
    hidden = hidden_of(model, x)
    hidden.register_hook(lambda gradient: gradient * 3)
    hidden.register_hook(note(events, "hidden"))
    loss_of(model, hidden).backward()


def changed_in_place(model: Any, x: Tensor, events: Events) -> Any:
    hidden = hidden_of(model, x)
    hidden.register_hook(lambda gradient: gradient.clamp_(-0.01, 0.01))
    hidden.retain_grad()
    loss_of(model, hidden).backward()
    return hidden.grad


def several(model: Any, x: Tensor, events: Events) -> Any:
    first = model.conv(x)
    first.register_hook(note(events, "first"))
    second = model.norm(first)
    handle = second.register_hook(note(events, "never"))
    second.register_hook(lambda gradient: gradient / 2)
    handle.remove()
    loss = loss_of(model, torch.tanh(model.hidden(second.flatten(1))))
    loss.register_hook(lambda gradient: gradient * 4)
    loss.backward()
    return loss.detach()


def twice(model: Any, x: Tensor, events: Events) -> Any:
    hidden = hidden_of(model, x)
    hidden.register_hook(note(events, "hidden"))
    loss = loss_of(model, hidden)
    loss.backward(retain_graph=True)
    (loss * 2).backward()


def of_no_use(model: Any, x: Tensor, events: Events) -> Any:
    hidden = hidden_of(model, x)
    hidden.register_hook(note(events, "hidden"))
    return loss_of(model, hidden).detach()


def of_leaves_for_one_step(model: Any, x: Tensor, events: Events) -> Any:
    handles = []
    for name, parameter in model.named_parameters():
        handles.append(parameter.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01)))
        handles.append(parameter.register_hook(note(events, name)))
        handles.append(parameter.register_post_accumulate_grad_hook(lambda leaf: events.append(leaf.grad.sum())))
    handles.pop(3).remove()
    loss_of(model, hidden_of(model, x)).backward()
    for handle in handles:
        handle.remove()


CASES: list[Case] = [changed_gradient, changed_in_place, several, twice, of_no_use, of_leaves_for_one_step]


def step(model: nn.Module, x: Tensor, events: Events) -> Any:
    loss = model(x).square().mean()
    loss.backward()
    return loss.detach()


def of_modules(model: Any, events: Events) -> None:
    for name, module in model.named_children():
        module.register_full_backward_hook(
            lambda module, inputs, outputs, name=name: events.append((name, inputs, outputs[0].sum()))
        )
    model.head.register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 2,))
    model.norm.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 3,))


def of_the_whole(model: Any, events: Events) -> None:
    model.register_full_backward_hook(lambda module, inputs, outputs: events.append((len(inputs), outputs[0].sum())))


def of_leaves(model: Any, events: Events) -> None:
    for name, parameter in model.named_parameters():
        parameter.register_hook(lambda gradient, name=name: events.append((name, gradient.sum())))
        parameter.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))


def updates_behind_accumulation(model: Any, events: Events) -> None:
    optimizers = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in model.parameters()}

    def update(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()
        events.append(tuple(parameter.shape))

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)


HUNG: list[Callable[[Any, Events], None]] = [of_modules, of_leaves, updates_behind_accumulation]


def outcome(case: Case, hang: Callable[[Any, Events], None], compiled: bool, grad: bool = False) -> Any:
    torch.manual_seed(0)
    fusee.reset()
    model, events = Network().double(), list[Any]()
    hang(model, events)
    run = fusee.compile(case, fullgraph=True) if compiled else case
    results = []
    for _ in range(3):
        results.append(run(model, torch.randn(4, 2, 4, 4, dtype=torch.float64, requires_grad=grad), events))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=0.1)
    return results, events, model.state_dict(), [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("case", CASES)
def test_hooks_that_the_function_registers(case: Case) -> None:
    nothing: Any = lambda model, events: None  # noqa: E731
    check_same(outcome(case, nothing, True), outcome(case, nothing, False))


@pytest.mark.parametrize("hang", HUNG)
def test_hooks_that_were_there_before(hang: Any) -> None:
    check_same(outcome(step, hang, True), outcome(step, hang, False))


def test_a_hook_of_the_module_that_is_given_the_data() -> None:
    wanted = outcome(step, of_the_whole, False, grad=True)
    check_same(outcome(step, of_the_whole, True, grad=True), wanted)


def hooked(x: Tensor, events: Events, hook: Any = None, between: Any = None, op: Any = torch.tanh) -> Any:
    hidden = op(x)
    hidden.register_hook(hook or note(events, "hidden"))
    if between is not None:
        between(hidden)
    loss = (hidden * x).sum()
    loss.backward()
    return loss.detach()


def leaf_hook_stays(x: Tensor, events: Events) -> Any:
    x.register_hook(note(events, "leaf"))
    (x * x).sum().backward()


def leaf_hook_at_a_break(x: Tensor, events: Events) -> Any:
    handle = x.register_hook(lambda gradient: gradient * 2)
    print("a break", len(events))
    (x * x).sum().backward()
    handle.remove()
    return handle.id in (x._backward_hooks or {})


def leaf_hook_that_another_removes(x: Tensor, events: Events) -> Any:
    events.append(x.register_hook(lambda gradient: gradient * 2))
    (x * x).sum().backward()
    events.pop().remove()
    return len(x._backward_hooks or {})


@pytest.mark.parametrize("program", [leaf_hook_stays, leaf_hook_at_a_break, leaf_hook_that_another_removes])
def test_hooks_of_leaves_that_outlive_what_is_captured(program: Callable[[Tensor, Events], Any]) -> None:
    fusee.reset()
    outcomes = []
    for run in (program, fusee.compile(program)):
        x, events = torch.linspace(0.1, 1, 3, dtype=torch.float64).requires_grad_(), list[Any]()
        results = [run(x, events) for _ in range(3)]
        (x * 3).sum().backward()
        outcomes.append((results, x.grad, events))
    check_same(outcomes[1], outcomes[0])


def fails(gradient: Tensor) -> Tensor:
    raise ValueError("a hook fails")


@pytest.mark.parametrize(
    "options",
    [
        {"op": torch.special.i0e},
        {"hook": fails},
        {"hook": lambda gradient: gradient.sum()},
        {"hook": lambda gradient: print("a hook prints") or gradient * 2},
        {"hook": lambda gradient: gradient * gradient.sum().item()},
        {"op": torch.sin, "between": lambda hidden: hidden.mul_(2)},
        {"op": torch.sin, "between": lambda hidden: hidden[1:].mul_(2)},
    ],
)
def test_hooks_that_python_calls(options: dict[str, Any]) -> None:
    """No derivative in the table, an exception, a wrong shape, a break within, and memory that is written later."""

    def found(run: Any) -> Any:
        x, events = torch.linspace(0.1, 1, 3, dtype=torch.float64).requires_grad_(), list[Any]()
        try:
            return run(x, events, **options), x.grad, events
        except (ValueError, RuntimeError) as error:
            return type(error), str(error), events, x.grad

    fusee.reset()
    check_same(found(fusee.compile(hooked)), found(hooked))


def test_results_that_can_still_reach_their_hooks() -> None:
    def program(x: Tensor, events: Events) -> Tensor:
        hidden = x.tanh()
        hidden.register_hook(note(events, "hidden"))
        return (hidden * x).sum()

    fusee.reset()
    outcomes = []
    for run in (program, fusee.compile(program)):
        x, events = torch.linspace(0.1, 1, 3, dtype=torch.float64).requires_grad_(), list[Any]()
        run(x, events).backward()
        outcomes.append((x.grad, events))
    check_same(outcomes[1], outcomes[0])


def test_hooks_that_a_call_registers_have_their_numbers() -> None:
    class Doubling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Identity()])
            self.handles: list[RemovableHandle] = []

        def forward(self, x: Tensor) -> Tensor:
            if not self.handles:
                for layer in self.layers:
                    self.handles.append(layer.register_forward_hook(lambda module, given, result: result * 2))
            return self.layers[1](self.layers[0](x))

    x = torch.ones(2)
    for _ in range(3):
        model = Doubling()
        compiled = fusee.compile(model, fullgraph=True)
        first = RemovableHandle.next_id
        assert [compiled(x).tolist(), compiled(x).tolist()] == [[4.0, 4.0]] * 2
        assert RemovableHandle.next_id == first + 2
        assert [list(layer._forward_hooks) for layer in model.layers] == [[first], [first + 1]]
        model.handles[0].remove()
        assert compiled(x).tolist() == [2.0, 2.0]
