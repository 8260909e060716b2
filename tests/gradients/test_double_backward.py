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
    *("conv", "embedding", "nll_loss", "cross_entropy", "avg_pool", "adaptive_avg_pool", "max_pool", "scaled_dot"),
    *("batch_norm", "layer_norm", "group_norm", "logit", "hardswish", "mish", "logcumsumexp", "copysign"),
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
