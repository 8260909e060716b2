"""``torch.compile(…, backend="fusee")``: Dynamo's graphs, forward and backward, run as plans that agree with eager."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fusee
from fusee.backends import dynamo_backend

from .conftest import Command
from .record_traces import messages


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    """Shapes of one test must not look dynamic to the next."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fusee.FuseeWarning)
        yield


def compiled(function: Any) -> Any:
    return torch.compile(function, backend=dynamo_backend, fullgraph=True)


def check(folder: Path, function: Callable[..., Any], *inputs: torch.Tensor) -> None:
    """Results and gradients are those of eager, and every graph ran as a plan."""
    with fusee.record(folder) as recorder:
        wanted, found = function(*inputs), compiled(function)(*inputs)
        torch.testing.assert_close(found, wanted)
        leaves = [tensor for tensor in inputs if tensor.requires_grad]
        if leaves:
            seed = torch.rand_like(wanted)
            expected = torch.autograd.grad(wanted, leaves, seed)
            torch.testing.assert_close(torch.autograd.grad(found, leaves, seed), expected)
    assert len(recorder.files) == (2 if leaves else 1)
    for file in recorder.files:
        *_, (_, result) = messages(file.read_bytes())
        assert [graph["runs"] for graph in result[1]["graphs"]] == ["plan"], result


def leaf(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, requires_grad=True)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "pointwise": (lambda x, y: torch.tanh(x * y) / (1 + y * y), ((5, 7), (7,))),
    "softmax": (lambda x: torch.softmax(x * 2, dim=-1) * x, ((3, 9),)),
    "layer_norm": (lambda x, w, b: nn.functional.layer_norm(x, (6,), w, b), ((4, 6), (6,), (6,))),
    "gelu": (lambda x: nn.functional.gelu(x).sum(dim=0), ((4, 6),)),
    "views": (lambda x: x.t().reshape(2, -1)[:, 1:].contiguous() * 2, ((4, 6),)),
    "split": (lambda x: torch.cat([part * k for k, part in enumerate(x.split(2, dim=1))], dim=1), ((4, 6),)),
    "matmul": (lambda x, w: torch.relu(x @ w).mean(dim=1), ((4, 6), (6, 3))),
    "convolution": (lambda x, w: nn.functional.conv2d(x, w, padding=1).relu(), ((2, 3, 5, 5), (4, 3, 3, 3))),
    "pooling": (lambda x: nn.functional.max_pool2d(x.sin(), 2), ((2, 3, 6, 6),)),
    "attention": (lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v), ((2, 2, 4, 8),) * 3),
    "gather": (lambda x: x[torch.tensor([2, 0, 2])] + x[:3], ((4, 6),)),
    "unknown_operation": (lambda x: torch.special.i1e(x) * x, ((8,),)),
    "cumulative": (lambda x: x.cumsum(dim=0).exp(), ((4, 3),)),
    "loss": (lambda x: nn.functional.cross_entropy(x, torch.tensor([1, 0, 2, 2])), ((4, 3),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("differentiable", [False, True])
def test_agrees_with_eager(name: str, differentiable: bool, tmp_path: Path) -> None:
    function, shapes = FUNCTIONS[name]
    check(tmp_path, function, *(torch.randn(*sizes, requires_grad=differentiable) for sizes in shapes))


def test_gradient_of_some_inputs_only(tmp_path: Path) -> None:
    check(tmp_path, lambda x, y, z: (x * y + z).exp(), leaf(3), torch.randn(3), leaf(3))


def test_changed_inputs_are_written_back() -> None:
    x, y = torch.randn(4), torch.randn(4)
    wanted, other = x.clone(), y.clone()

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a.mul_(b).add_(1)
        return a.sin()

    torch.testing.assert_close(compiled(function)(x, y), function(wanted, other))
    torch.testing.assert_close(x, wanted)


def test_several_results_and_repeated_ones() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = x * 2
        return y, x, y

    x = torch.randn(3)
    found, wanted = compiled(function)(x), function(x)
    torch.testing.assert_close(found, wanted)


def test_random_numbers_are_drawn_as_in_eager() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x * 2, 0.5) + torch.rand_like(x)

    x = torch.randn(64)
    torch.manual_seed(7)
    wanted = function(x)
    torch.manual_seed(7)
    torch.testing.assert_close(compiled(function)(x), wanted)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), (5, 8)),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4)
        ),
        (5, 3, 8, 8),
    ),
    "transformer": (
        lambda: nn.Sequential(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Flatten(), nn.Linear(24, 4)
        ),
        (5, 3, 8),
    ),
}


def train(make: Callable[[], nn.Module], sizes: tuple[int, ...], compile: Callable[[Any], Any]) -> list[float]:
    """Losses of some steps, and the sums of the weights after them."""
    torch.manual_seed(1)
    model, inputs, classes = make(), torch.randn(*sizes), torch.randint(0, 4, sizes[:1])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    forward, losses = compile(model), []
    for _ in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(forward(inputs), classes)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses + [parameter.sum().item() for parameter in model.parameters()]


@pytest.mark.parametrize("name", MODELS)
def test_training_agrees_with_eager(name: str) -> None:
    wanted, found = train(*MODELS[name], compile=lambda model: model), train(*MODELS[name], compile=compiled)
    torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted), rtol=1e-4, atol=1e-5)


def test_graphs_run_as_plans(tmp_path: Path, replay: Command) -> None:
    """Forward and backward have kernels, and replay without Python."""
    with fusee.record(tmp_path) as recorder:
        check(tmp_path, FUNCTIONS["softmax"][0], leaf(3, 9))
    assert len(recorder.files) == 2
    for file in recorder.files:
        done = replay("--json", file)
        assert done.returncode == 0, done.stderr
        (compilation,) = json.loads(done.stdout)["compilations"]
        assert compilation["report"]["kernels"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.fft.fft(x).real,  # complex numbers
        lambda x: x.to_sparse().to_dense() * 2,
        lambda x: x[x > 0],  # a shape that depends on data
    ],
)
def test_what_cannot_be_lowered_runs_all_the_same(function: Callable[..., Any]) -> None:
    x = torch.randn(6)
    torch.testing.assert_close(torch.compile(function, backend=dynamo_backend)(x), function(x))


def test_dynamic_shapes_run_all_the_same() -> None:
    function = torch.compile(lambda x: torch.relu(x) + x.shape[0], backend=dynamo_backend, dynamic=True)
    for length in (3, 5, 8):
        x = torch.randn(length)
        torch.testing.assert_close(function(x), torch.relu(x) + length)
