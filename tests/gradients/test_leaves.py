"""Leaves that a compiled function makes itself, as adversarial examples are, compared with eager in float64."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from test_whole_step import perceptron
from torch import Tensor, nn

import fusee

Program = Callable[..., Any]


def arguments() -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    model = perceptron().double()
    return model, torch.randn(6, 8, dtype=torch.float64), torch.randn(6, 4, dtype=torch.float64)


def sign_of_gradient(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(F.mse_loss(model(x), y), x)
    return (x + 0.1 * slope.sign()).detach()


def assigned_flag(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    x = x.clone()
    x.requires_grad = True
    F.mse_loss(model(x), y).backward()
    assert x.grad is not None and x.is_leaf and x.grad_fn is None
    return (x + 0.1 * x.grad.sign()).detach()


def projected(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Projected gradient descent whose perturbation is one tensor that gets new data."""
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(3):
        F.mse_loss(model(x + delta), y).backward()
        assert delta.grad is not None
        delta.data = (delta + 0.1 * delta.grad.detach().sign()).clamp(-0.2, 0.2)
        delta.grad.zero_()
    return delta.detach()


def projected_in_place(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    delta = torch.full_like(x, 0.01).requires_grad_()
    for _ in range(3):
        F.mse_loss(model(x + delta), y).backward()
        with torch.no_grad():
            assert delta.grad is not None
            delta.add_(delta.grad.sign(), alpha=0.1).clamp_(-0.2, 0.2)
        delta.grad = None
    return delta.detach()


def projected_through_data(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    delta = torch.zeros_like(x).requires_grad_(True)
    for _ in range(2):
        (slope,) = torch.autograd.grad(F.mse_loss(model(x + delta), y), [delta])
        delta.data.add_(0.1 * slope.sign())
        delta.data -= 0.01
    return delta.detach()


def renewed(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Each round makes a leaf of the detached example of the round before."""
    example = x.clone().detach()
    for _ in range(3):
        example.requires_grad_()
        with torch.enable_grad():
            loss = F.mse_loss(model(example), y)
        (slope,) = torch.autograd.grad(loss, [example])
        example = example.detach() + 0.1 * slope.detach().sign()
        example = torch.min(torch.max(example, x - 0.2), x + 0.2)
    return example


def written_in_between(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """What was computed before a leaf was written still sends its gradient there."""
    delta = torch.ones_like(x).requires_grad_()
    total = (x * delta).sum()
    with torch.no_grad():
        delta.mul_(3.0)
    (total + (delta**2).sum()).backward()
    assert delta.grad is not None
    return delta.grad * 1.0


def frozen_again(model: nn.Module, x: Tensor, y: Tensor) -> list[Any]:
    a = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad((a**3).sum(), a)
    a.requires_grad_(False)
    b = a * model(a).sum().detach()
    return [slope, b, a, b.requires_grad]


def ascent_then_descent(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Adversarial training: the attack's gradients do not reach the parameters, the loss of its result does."""
    attacked = sign_of_gradient(model, x, y)
    loss = F.mse_loss(model(attacked), y)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.sub_(parameter.grad, alpha=0.1)
    return loss.detach()


def penalised_mix(model: nn.Module, x: Tensor, y: Tensor) -> Any:
    """A critic's loss with the gradient penalty at points between two batches."""
    share = torch.full((x.shape[0], 1), 0.3, dtype=x.dtype)
    mixed = (share * x + (1 - share) * x.flip(0)).requires_grad_(True)
    result = model(mixed)
    (slope,) = torch.autograd.grad(
        outputs=result, inputs=mixed, grad_outputs=torch.ones_like(result), create_graph=True, retain_graph=True
    )
    loss = model(x).mean() - model(x.flip(0)).mean() ** 2 + 10 * ((slope.norm(2, dim=1) - 1) ** 2).mean()
    loss.backward()
    return loss.detach()


def forces(model: nn.Module, x: Tensor, y: Tensor) -> Any:
    """An energy whose slope is trained along with it."""
    positions = x.detach().clone().requires_grad_()
    energy = model(positions).pow(2).sum()
    (slope,) = torch.autograd.grad(energy, positions, create_graph=True)
    loss = (slope + x).pow(2).mean() + energy
    loss.backward()
    return loss.detach()


WHOLE = (
    *(sign_of_gradient, assigned_flag, projected, projected_in_place, projected_through_data, renewed),
    *(written_in_between, frozen_again, ascent_then_descent, penalised_mix, forces),
)


def outcome(program: Program, compiled: bool) -> list[Any]:
    """What two calls give, and leave in the model."""
    model, x, y = arguments()
    run = fusee.compile(program) if compiled else program
    results = [run(model, x, y) for _ in range(2)]
    return [results, [p.detach() for p in model.parameters()], [p.grad for p in model.parameters()]]


@pytest.mark.parametrize("program", WHOLE)
def test_leaf_within_a_whole_step(program: Program) -> None:
    torch.testing.assert_close(outcome(program, True), outcome(program, False), rtol=1e-9, atol=1e-10)
    report = fusee.explain(program)(*arguments())
    assert not report.breaks
    assert [graph.get("why") for graph in report.graphs] == [None]


def given_out_with_history(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    a = x.clone().requires_grad_()
    return [a, (a**2 * model(a).sum()).sum()]


def given_out_after_backward(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    a = x.clone().requires_grad_()
    (a**2).sum().backward()
    return [a]


def of_an_argument(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    x.requires_grad_()
    (x**2 * model(x).sum()).sum().backward()
    return [x]


def written_before_backward(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    """Autograd does not notice writes through .data, and reads what stands there now."""
    a = x.clone().requires_grad_()
    total = (a**3).sum()
    a.data.add_(1.0)
    total.backward()
    assert a.grad is not None
    return [a.grad * 1.0]


def under_no_grad(model: nn.Module, x: Tensor, y: Tensor) -> list[Tensor]:
    with torch.no_grad():
        a = x.clone().requires_grad_()
        b = a * 2
    return [a, b, (a * x).sum()]


SEEN = (given_out_with_history, given_out_after_backward, of_an_argument, written_before_backward, under_no_grad)


@pytest.mark.parametrize("program", SEEN)
def test_leaf_that_others_see(program: Program) -> None:
    """Python makes such leaves, and results are differentiated by the caller as they are in eager."""

    def run(function: Program) -> list[Any]:
        model, x, y = arguments()
        found = function(model, x, y)
        kinds = [(t.requires_grad, t.is_leaf, t is x) for t in found]
        scalars = [t for t in found if t.requires_grad and not t.is_leaf and t.dim() == 0]
        for t in scalars:
            t.backward()
        gradients = [None if not t.is_leaf or t.grad is None else t.grad for t in found]
        return [[t.detach() for t in found], kinds, gradients, [p.grad for p in model.parameters()]]

    expected, (values, kinds, *gradients) = run(program), run(fusee.compile(program))
    assert kinds == expected[1]
    torch.testing.assert_close([values, *gradients], [expected[0], *expected[2:]], rtol=1e-9, atol=1e-10)


def frozen_at_the_end(x: Tensor, w: Tensor) -> Any:
    w.requires_grad_(False)
    loss = (x * w).sum() + (x * x).sum()
    loss.backward()
    return loss.detach()


def frozen_in_between(x: Tensor, w: Tensor) -> Any:
    w.requires_grad = False
    inner = (x * w).sin().sum()
    inner.backward()
    with torch.no_grad():
        w.mul_(2)
        w.sub_(x.grad if x.grad is not None else 0)
    w.requires_grad = True
    loss = (x.detach() * w * w).sum()
    loss.backward()
    return inner.detach(), loss.detach(), w.requires_grad, w.is_leaf


def frozen_around_a_break(x: Tensor, w: Tensor) -> Any:
    w.requires_grad_(False)
    fusee.graph_break()
    (x * w).sum().backward()
    fusee.graph_break()
    w.requires_grad_(True)
    (x * w).sum().backward()


def frozen_after_use(x: Tensor, w: Tensor) -> Any:
    loss = (x * w).sum()
    w.requires_grad_(False)
    loss.backward()
    return loss.detach()


def data_that_gets_gradients(x: Tensor, w: Tensor) -> Any:
    data = x.detach()
    data.requires_grad_()
    given = x.requires_grad_().requires_grad_(False).requires_grad_()
    loss = (given * w).sum() + (data * w).sum()
    loss.backward()
    return data.grad, given is x


def a_history_that_outlives_the_call(x: Tensor, w: Tensor) -> Any:
    x.requires_grad_(False)
    w.requires_grad_(False)
    x.requires_grad_()
    return (x * w).sum(), x


def a_leaf_that_is_written(x: Tensor, w: Tensor) -> Any:
    x.requires_grad_()
    x.add_(1)
    return (x * w).sum()


def no_leaf(x: Tensor, w: Tensor) -> Any:
    hidden = x * w
    hidden.requires_grad_(False)
    return hidden


@pytest.mark.parametrize(
    ("program", "breaks"),
    [
        (frozen_at_the_end, 0),
        (frozen_in_between, 0),
        (frozen_around_a_break, None),
        (frozen_after_use, None),
        (data_that_gets_gradients, 0),
        (a_history_that_outlives_the_call, None),
        (a_leaf_that_is_written, None),
        (no_leaf, None),
    ],
)
def test_flags_of_leaves_that_were_there_before(program: Any, breaks: int | None) -> None:
    def outcome(run: Any, flag: bool) -> list[Any]:
        x = torch.linspace(0.5, 1, 4, dtype=torch.float64).requires_grad_(flag)
        w = torch.linspace(1, 2, 4, dtype=torch.float64).requires_grad_()
        found: list[Any] = []
        for _ in range(3):
            try:
                result = run(x, w)
                if program is a_history_that_outlives_the_call:
                    result[0].backward()
            except RuntimeError as error:
                result = str(error).split(".")[0]
            result = result if isinstance(result, tuple) else (result,)
            found += [one.detach().clone() if isinstance(one, Tensor) else one for one in result]
            for tensor in (x, w):
                found += [
                    tensor.requires_grad,
                    None if tensor.grad is None else tensor.grad.clone(),
                    tensor.detach().clone(),
                ]
            w.requires_grad_(True)
        return found

    for flag in (True, False):
        fusee.reset()
        found, wanted = outcome(fusee.compile(program), flag), outcome(program, flag)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            if isinstance(other, Tensor):
                torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
            else:
                assert one == other
        assert breaks is None or not flag or fusee.stats()["breaks"] == breaks
