"""Training with batches and sequences of changing sizes: one plan for forward and one for backward serve them all."""

# mypy: allow-untyped-calls
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from samples import Sample
from test_derivatives import CASES, call, gradients
from test_whole_step import Block, Convolutions, perceptron
from torch import Tensor, nn

import fusee

Graphs = list[dict[str, Any]]
Program = Callable[..., Tensor]

# Operators whose gradients depend on a size as a number, or that give as many results as a size says: each size has
# plans of its own.
OWN_PLANS = {
    "aten._adaptive_avg_pool2d_backward.default",
    "aten.avg_pool2d_backward.default",
    "aten.chunk.default",
    "aten.conv1d.padding",
    "aten.convolution_backward.default",
    "aten.cross_entropy_loss.default",
    "aten.embedding_dense_backward.default",
    "aten.gather.default",
    "aten.matmul.default",
    "aten.nll_loss2d_backward.default",
    "aten.nll_loss_backward.default",
    "aten.scaled_dot_product_attention.default",
    "aten.slice.Tensor",
    "aten.split.Tensor",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.tensor_split.indices",
    "aten.tensor_split.sections",
    "aten.unbind.int",
}


def grown(tensors: list[Tensor], size: int) -> list[Tensor]:
    """The tensors with one element more along each dimension of a size."""

    def longer(tensor: Tensor) -> Tensor:
        for dimension in range(tensor.dim()):
            if tensor.shape[dimension] == size:
                tensor = torch.cat([tensor, tensor.narrow(dimension, 0, 1)], dimension)
        return tensor

    return [longer(tensor.detach()).requires_grad_() for tensor in tensors]


@pytest.mark.parametrize(("target", "make"), CASES)
def test_rows(target: str, make: Callable[[], Sample], trained: Graphs) -> None:
    """Every row of the derivative table, with each of the sizes one greater where the operator takes that."""
    run, given = call(target, make())
    tensors = [tensor.detach().clone().requires_grad_() for tensor in given]
    compiled = fusee.compile(run, fullgraph=True, dynamic=True)
    sizes = {size for tensor in tensors for size in tensor.shape if size > 1}
    for one in [tensors, *(grown(tensors, size) for size in sizes)]:
        try:
            expected = gradients(run, one)
        except (RuntimeError, ValueError, IndexError):  # the other arguments are for the first sizes
            continue
        for gradient, other in zip(expected, gradients(compiled, one), strict=True):
            torch.testing.assert_close(other, gradient, rtol=1e-12, atol=1e-12)
    assert trained
    assert len(trained) == 1 or target in OWN_PLANS


def normalised(x: Tensor, scale: Tensor) -> Tensor:
    return (x - x.mean(0)) / (x.var(0) + 1e-3).sqrt() * scale


def padded(x: Tensor, scale: Tensor) -> Tensor:
    return F.pad(x, (1, x.shape[0]))[:, 1 : x.shape[0]] * scale[0]


def joined(x: Tensor, scale: Tensor) -> Tensor:
    return torch.cat([x, x[1:] * 2, x.roll(x.shape[0] // 2, 0)]) * scale / x.shape[0]


def a_view(x: Tensor, scale: Tensor) -> Tensor:
    return (x * scale).reshape(-1)[x.shape[0] :]


def in_place(x: Tensor, scale: Tensor) -> Tensor:
    y = x * scale
    y[1:].mul_(3.0)
    return y.t()


def dropped(x: Tensor, scale: Tensor) -> Tensor:
    return F.dropout(x * scale, 0.3).cumprod(0)


PROGRAMS: list[Program] = [normalised, padded, joined, a_view, in_place, dropped]
LENGTHS = (4, 6, 3, 7, 9, 5)


def of_program(program: Program, length: int) -> list[Tensor]:
    """The result, and the gradients of its square's sum, for as many rows."""
    torch.manual_seed(length)
    x = torch.randn(length, 5, dtype=torch.float64, requires_grad=True)
    scale = torch.rand(5, dtype=torch.float64, requires_grad=True)
    result = program(x, scale)
    return [result.detach(), *torch.autograd.grad((result**2).sum(), (x, scale))]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program: Program, dynamic: bool | None, trained: Graphs) -> None:
    compiled = fusee.compile(program, fullgraph=True, dynamic=dynamic)
    for length in LENGTHS:
        torch.testing.assert_close(of_program(compiled, length), of_program(program, length), rtol=1e-10, atol=1e-10)
    assert len(trained) == (1 if dynamic else 2)


def images(n: int) -> Tensor:
    return torch.randn(n, 3, 8, 8, dtype=torch.float64)


def rows(n: int) -> Tensor:
    return torch.randn(n, 8, dtype=torch.float64)


def numbers(n: int) -> Tensor:
    return torch.randint(0, 20, (n, 2 * n))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor]]] = {
    "perceptron": (perceptron, rows),
    "convolutions": (Convolutions, images),
    "transformer": (Block, numbers),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, dynamic: bool | None, trained: Graphs) -> None:
    """Gradients, results and buffers of a model whose batches change, and of a transformer whose sequences do too."""
    make, data = MODELS[name]
    model = make().double()
    other = copy.deepcopy(model)
    compiled = fusee.compile(model, fullgraph=True, dynamic=dynamic)
    for length in LENGTHS:
        for one, run in ((model, compiled), (other, other)):
            torch.manual_seed(length)
            one.zero_grad()
            (run(data(length)) ** 2).mean().backward()
        for parameter, expected in zip(model.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(parameter.grad, expected.grad, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(dict(model.named_buffers()), dict(other.named_buffers()))
    assert len(trained) == (1 if dynamic else 2)


@pytest.mark.parametrize("dynamic", [None, True])
def test_whole_steps(dynamic: bool | None) -> None:
    """Means over batches of changing sizes, whose gradients are divided by the size of the batch."""
    outcomes = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = perceptron().double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x: Tensor, model: nn.Module = model, optimizer: torch.optim.Optimizer = optimizer) -> Tensor:
            optimizer.zero_grad()
            result = model(x)
            loss = (result**2).mean() + result.var(0).mean()
            loss.backward()
            optimizer.step()
            detached: Tensor = loss.detach()
            return detached

        run = fusee.compile(step, fullgraph=True, dynamic=dynamic) if compiled else step
        outcomes.append([run(rows(length)) for length in LENGTHS] + list(model.parameters()))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-10, atol=1e-10)


def test_numbers_that_change(trained: Graphs) -> None:
    """Backward is given the floats and ints of the call."""

    def program(x: Tensor, factor: float, first: int) -> Tensor:
        return (x[first:] * factor).exp().sum() * factor + x.sum() * first

    compiled = fusee.compile(program, fullgraph=True)
    for factor, first in ((0.5, 2), (0.25, 3), (0.75, 4), (1.5, 2), (-1.0, 5)):
        x = torch.linspace(0.0, 1.0, 8, dtype=torch.float64, requires_grad=True)
        expected = torch.autograd.grad(program(x, factor, first), x)
        torch.testing.assert_close(torch.autograd.grad(compiled(x, factor, first), x), expected)
    assert len(trained) == 2


def test_gradients_of_gradients_and_missing_ones(trained: Graphs) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.tanh().mean(0), (x**3).sum(1)

    compiled = fusee.compile(program, fullgraph=True, dynamic=True)
    for length in LENGTHS:
        torch.manual_seed(length)
        x = torch.randn(length, 5, dtype=torch.float64, requires_grad=True)
        for place in (0, 1):
            expected = torch.autograd.grad(program(x)[place].sum(), x, create_graph=True)[0]
            found = torch.autograd.grad(compiled(x)[place].sum(), x, create_graph=True)[0]
            torch.testing.assert_close(found, expected)
            again = torch.autograd.grad(found.square().sum(), x)
            torch.testing.assert_close(again, torch.autograd.grad(expected.square().sum(), x))
            alone = torch.autograd.grad(compiled(x)[place].sum(), x)[0]  # backward's plan gets zeros for the other
            torch.testing.assert_close(alone, expected.detach())
    assert len(trained) == 1
