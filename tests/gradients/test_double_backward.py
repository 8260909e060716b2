"""Gradients of gradients, within a compiled function and of one, compared with eager and with finite differences."""

# mypy: allow-untyped-calls
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from samples import Sample
from test_derivatives import CASES, call
from test_whole_step import perceptron
from torch import Tensor, nn

import fusee

Program = Callable[..., Any]
Outcome = list[Any]

# Operators whose gradients Python differentiates again: those of library kernels, and those that follow nothing.
IN_PYTHON = (
    *("scaled_dot", "avg_pool2d_backward", "adaptive_avg_pool2d_backward", "nll_loss_backward", "nll_loss2d_backward"),
    *("logit", "hardswish", "mish", "logcumsumexp", "copysign"),
    *("threshold_backward", "leaky_relu_backward", "hardtanh_backward", "hardsigmoid_backward"),
    *("hardshrink_backward", "softshrink_backward"),
)


def twice(run: Program, *tensors: Tensor) -> list[Tensor]:
    """The gradients of a sum that is not linear, and the gradients of one of those."""
    total = sum(((result * result.sin()).sum() for result in run(*tensors)), torch.zeros((), dtype=torch.float64))
    once = torch.autograd.grad(total, tensors, create_graph=True)
    again = torch.autograd.grad(sum((one * one.cos()).sum() for one in once), tensors)
    return [*(one.detach() for one in once), *again]


@pytest.mark.parametrize(("target", "make"), CASES)
def test_rows_within_a_function(target: str, make: Callable[[], Sample]) -> None:
    """Every row of the derivative table, all of it in one graph unless Python differentiates the gradient."""
    torch.manual_seed(0)
    run, tensors = call(target, make())

    def program(*inputs: Tensor) -> list[Tensor]:
        return twice(run, *inputs)

    try:
        expected = program(*tensors)
    except RuntimeError:  # PyTorch has no second derivative, or the gradient follows nothing
        return
    found = fusee.compile(program)(*tensors)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-10, equal_nan=True)
    if not target.removeprefix("aten.").lstrip("_").removeprefix("native_").startswith(IN_PYTHON):
        assert not fusee.explain(program)(*tensors).breaks


SAMPLED = [case for case in CASES[::6] if "kink" not in case.values[1]() and not case.values[1]().get("training")]


@pytest.mark.parametrize(("target", "make"), SAMPLED)
def test_rows_of_a_function(target: str, make: Callable[[], Sample]) -> None:
    """Gradients of the gradients of a compiled function, against differences of its gradients."""
    torch.manual_seed(0)
    run, tensors = call(target, make())

    def check(function: Program) -> None:
        torch.autograd.gradgradcheck(lambda *inputs: tuple(function(*inputs)), tensors, fast_mode=True)

    try:
        check(run)
    except RuntimeError:  # neither has PyTorch
        return
    check(fusee.compile(run))


def penalised(model: nn.Module, x: Tensor, y: Tensor) -> Outcome:
    """A loss with a penalty on the gradient with respect to the input."""
    result = model(x)
    (slope,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    loss = F.mse_loss(result, y) + ((slope.norm(2, dim=1) - 1) ** 2).mean()
    loss.backward()
    return [loss.detach(), slope.detach()]


def penalty_alone(model: nn.Module, x: Tensor, y: Tensor) -> Outcome:
    """A loss of gradients alone: the last bias gets no gradient, not even zeros."""
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    (slope**2).mean().backward()
    return [slope.detach()]


def curvature(model: nn.Module, x: Tensor, y: Tensor) -> Outcome:
    """The Laplacian of the model, as physics-informed losses use it: third derivatives in all."""
    result = model(x)
    (slope,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    second = torch.zeros_like(slope[:, 0])
    for k in range(2):
        (row,) = torch.autograd.grad(slope[:, k].sum(), x, create_graph=True)
        second = second + row[:, k]
    loss = (second**2).mean() + F.mse_loss(result, y)
    loss.backward()
    return [loss.detach()]


def hessian_times_vector(model: nn.Module, x: Tensor, y: Tensor) -> Outcome:
    parameters = list(model.parameters())
    once = torch.autograd.grad(F.mse_loss(model(x), y), parameters, create_graph=True)
    product = sum(((one * one.detach()).sum() for one in once), x.new_zeros(()))
    return [*(one.detach() for one in once), *torch.autograd.grad(product, parameters)]


def written_between(model: nn.Module, x: Tensor, y: Tensor) -> Outcome:
    """A buffer that the first gradient reads is written before the second one: both refuse, or neither."""
    scale = torch.ones_like(x)
    (slope,) = torch.autograd.grad((model(x) ** 2).sum() + (x**3 * scale).sum(), x, create_graph=True)
    y.mul_(2.0)
    (slope**2).mean().backward()
    return [slope.detach(), y.clone()]


def returned(model: nn.Module, x: Tensor, y: Tensor) -> Outcome:
    """The caller differentiates what it is given."""
    (slope,) = torch.autograd.grad((model(x) ** 2).sum(), x, create_graph=True)
    return [slope]


def smooth() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 4), nn.GELU())


def steps(program: Program, make: Callable[[], nn.Module], compiled: bool) -> Outcome:
    """What the program gives in six steps of training, with the gradients of each and the parameters at the end."""
    torch.manual_seed(0)
    model = make().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    run = fusee.compile(program) if compiled else program
    outcome: Outcome = []
    for _ in range(6):
        x, y = torch.randn(5, 8, dtype=torch.float64, requires_grad=True), torch.randn(5, 4, dtype=torch.float64)
        results = run(model, x, y)
        for result in results:
            if result.requires_grad:
                (result**2).sum().backward()
        outcome += [*results, *(copy.copy(parameter.grad) for parameter in model.parameters()), x.grad]
        optimizer.step()
        optimizer.zero_grad()
    return [*outcome, *model.parameters()]


PROGRAMS = [penalised, penalty_alone, curvature, hessian_times_vector, written_between, returned]


@pytest.mark.parametrize("make", [smooth, perceptron], ids=["smooth", "perceptron"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program: Program, make: Callable[[], nn.Module]) -> None:
    expected, found = steps(program, make, False), steps(program, make, True)
    assert [one is None for one in found] == [one is None for one in expected]
    kept = [one is not None for one in expected]
    for one, other, is_there in zip(found, expected, kept, strict=True):
        if is_there:
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("program", [penalised, curvature, hessian_times_vector], ids=lambda program: program.__name__)
def test_programs_are_one_graph(program: Program) -> None:
    model = smooth().double()
    x, y = torch.randn(5, 8, dtype=torch.float64, requires_grad=True), torch.randn(5, 4, dtype=torch.float64)
    report = fusee.explain(program)(model, x, y)
    assert len(report.graphs) == 1
    assert not report.breaks
    assert "why" not in report.graphs[0]


class Embedded(nn.Module):
    """Tokens weighted by what is given, through attention of one head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(7, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.tokens(torch.arange(6).view(2, 3) % 5) * x
        hidden = torch.softmax(hidden @ hidden.mT / 2, -1) @ hidden.tanh()
        return F.cross_entropy(self.head(hidden).flatten(0, 1), torch.arange(6) % 3, label_smoothing=0.1)


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 2)), (3, 6)),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.Softplus(), nn.Conv2d(4, 2, 3, 2)),
        (2, 2, 6, 6),
    ),
    "transposed": (lambda: nn.Sequential(nn.ConvTranspose2d(2, 3, 2, stride=2), nn.Sigmoid()), (2, 2, 3, 3)),
    "pooling": (
        lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.MaxPool2d(2), nn.AvgPool2d(2, 1)),
        (2, 1, 8, 8),
    ),
    "adaptive pooling": (lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh(), nn.AdaptiveAvgPool2d(2)), (2, 1, 7, 7)),
    "attention": (Embedded, (2, 3, 4)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_with_a_history_that_are_returned(name: str) -> None:
    """As forces are, which are part of the loss: one graph, whose backward differentiates the gradients again."""
    make, sizes = NETWORKS[name]
    fusee.reset()
    torch.manual_seed(0)
    network = make().double()

    def energy_and_forces(x: Tensor) -> tuple[Tensor, Tensor]:
        energy = network(x).square().sum()
        [slope] = torch.autograd.grad(energy, x, create_graph=True)
        return energy, -slope

    def outcome(run: Any) -> list[Any]:
        torch.manual_seed(1)
        found: list[Any] = []
        for _ in range(2):
            x = torch.randn(*sizes, dtype=torch.float64, requires_grad=True)
            energy, forces = run(x)
            network.zero_grad()
            (energy + (forces - 1).square().sum()).backward()
            found += [energy.detach(), forces.detach(), x.grad, *(p.grad for p in network.parameters())]
        return found

    wanted = outcome(energy_and_forces)
    torch.testing.assert_close(outcome(fusee.compile(energy_and_forces, fullgraph=True)), wanted, rtol=1e-9, atol=1e-10)
    x = torch.randn(*sizes, dtype=torch.float64, requires_grad=True)
    assert not [graph for graph in fusee.explain(energy_and_forces)(x).graphs if "why" in graph]


@pytest.mark.parametrize("returned", [False, True])
def test_gradients_of_leaves_that_are_differentiated_again(returned: bool) -> None:
    def step(network: nn.Module, x: Tensor) -> Tensor:
        loss = network(x).square().mean()
        loss.backward(create_graph=True)
        penalty = sum(p.grad.square().sum() for p in network.parameters() if p.grad is not None)
        assert isinstance(penalty, Tensor)
        if returned:
            return penalty
        for p in network.parameters():
            p.grad = None
        penalty.backward()
        return penalty.detach()

    outcomes = []
    for run in (step, fusee.compile(step, fullgraph=True)):
        torch.manual_seed(0)
        network = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()
        found: list[Any] = []
        for _ in range(3):
            network.zero_grad()
            penalty = run(network, torch.randn(3, 4, dtype=torch.float64))
            found.append(penalty.detach())
            if returned:
                found += torch.autograd.grad(penalty, list(network.parameters()))
                found += [p.grad.detach().clone() for p in network.parameters() if p.grad is not None]
        outcomes.append(found)
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-10, atol=1e-11)
