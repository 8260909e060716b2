"""Graphs that are trained on a GPU: gradients against eager's in float64, no farther from them than eager's own."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fusee
from fusee import _random

pytestmark = pytest.mark.filterwarnings("error::fusee.FuseeWarning")


@pytest.fixture(autouse=True)
def _single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    fusee.reset()
    torch.manual_seed(0)


class Attention(nn.Module):
    """A block of a transformer, with an embedding before and a loss over classes behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 64)
        self.before = nn.LayerNorm(64)
        self.together = nn.Linear(64, 192)
        self.out = nn.Linear(64, 50)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """The loss."""
        x = self.table(tokens)
        parts = self.together(self.before(x)).split(64, dim=2)
        query, key, value = (part.view(*tokens.shape, 4, 16).transpose(1, 2) for part in parts)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + functional.gelu(found.transpose(1, 2).flatten(2))
        return functional.cross_entropy(self.out(x).flatten(0, 1), targets.flatten(), ignore_index=3)


class Images(nn.Module):
    """Convolutions with norms by the statistics of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.first = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16))
        self.out = nn.Linear(16, 10)

    def forward(self, images: Tensor, targets: Tensor) -> Tensor:
        """The loss."""
        x = self.stem(images)
        x = functional.relu(self.second(self.first(x)) + x)
        return functional.cross_entropy(self.out(x.mean((2, 3))), targets)


def tokens_of(device: str) -> tuple[Tensor, Tensor]:
    """Tokens and the classes of them."""
    return torch.randint(0, 50, (4, 32), device=device), torch.randint(0, 50, (4, 32), device=device)


def images_of(device: str) -> tuple[Tensor, Tensor]:
    """Images and their classes."""
    return torch.randn(16, 3, 32, 32, device=device), torch.randint(0, 10, (16,), device=device)


def trained(module: nn.Module, run: Callable[..., Tensor], arguments: tuple[Tensor, ...]) -> list[Tensor]:
    """The gradients, and the buffers after a step, in float64."""
    run(*arguments).backward()
    found = [parameter.grad for parameter in module.parameters()] + list(module.buffers())
    return [tensor.double() for tensor in found if tensor is not None]


@pytest.mark.parametrize(("kind", "make"), [(Attention, tokens_of), (Images, images_of)])
def test_training_is_as_near_to_float64_as_eager(
    kind: type[nn.Module], make: Callable[[str], tuple[Tensor, Tensor]]
) -> None:
    model, arguments = kind().cuda(), make("cuda")
    exact = copy.deepcopy(model).double()
    wide = tuple(argument.double() if argument.is_floating_point() else argument for argument in arguments)
    reference = trained(exact, exact, wide)
    eager = copy.deepcopy(model)
    theirs = trained(eager, eager, arguments)
    compiled = fusee.compile(model)
    explained = fusee.explain(copy.deepcopy(model))(*arguments)
    assert [graph.get("why") for graph in explained.graphs] == [None]
    ours = trained(model, compiled, arguments)
    assert len(ours) == len(reference)
    for mine, other, exactly in zip(ours, theirs, reference, strict=True):
        scale = exactly.norm() + 1e-6
        assert (mine - exactly).norm() / scale <= 4 * (other - exactly).norm() / scale + 1e-5


class Dropout:
    """Programs that draw random numbers on a GPU, of a matrix and of keys of attention."""

    @staticmethod
    def rows(x: Tensor, keys: Tensor) -> Tensor:
        return functional.dropout(x.exp(), 0.3) * x

    @staticmethod
    def columns(x: Tensor, keys: Tensor) -> Tensor:
        return functional.dropout(x.t() * 2, 0.1).sin()

    @staticmethod
    def noise(x: Tensor, keys: Tensor) -> Tensor:
        return x * torch.randn_like(x) + x * torch.empty(64, device="cuda").uniform_(1, 2) * torch.rand_like(x.t()).t()

    @staticmethod
    def channels(x: Tensor, keys: Tensor) -> Tensor:
        return functional.dropout2d(x.view(4, 8, 4, 32) * 1.5, 0.4)

    @staticmethod
    def attention(x: Tensor, keys: Tensor) -> Tensor:
        found = functional.scaled_dot_product_attention(keys, keys * 2, keys, dropout_p=0.2, is_causal=True)
        return found.float().sum() * x


@pytest.mark.parametrize("name", [name for name in vars(Dropout) if not name.startswith("_")])
def test_dropout_on_a_gpu_draws_what_eager_draws(name: str) -> None:
    program = getattr(Dropout, name)
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    keys = torch.randn(2, 4, 64, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    compiled = fusee.compile(program)

    def seeded(run: Callable[..., Tensor], create_graph: bool) -> list[Tensor]:
        torch.manual_seed(5)
        result = run(x, keys)
        found = torch.autograd.grad((result * x.view(result.shape)).sum(), x, create_graph=create_graph)
        if create_graph:
            found = torch.autograd.grad(found[0].square().sum(), x)
        return [result.detach(), *found, torch.cuda.get_rng_state()]

    torch.manual_seed(5)
    explained = fusee.explain(program)(x, keys)
    if name in ("rows", "columns", "channels"):  # others may be left to Python, by the kernel that PyTorch chooses
        assert [graph.get("why") for graph in explained.graphs] == [None]
    for create_graph in (False, name != "attention"):
        for mine, other in zip(seeded(compiled, create_graph), seeded(program, create_graph), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


DRAWN: dict[str, Callable[[Tensor], Tensor]] = {
    "dropout": lambda x: functional.dropout(x, 0.1),
    "dropout_half": lambda x: functional.dropout(x * 1.0, 0.5),
    "dropout_none": lambda x: functional.dropout(x * 1.0, 0.0),
    "dropout_all": lambda x: functional.dropout(x * 1.0, 1.0),
    "dropout_in_place": lambda x: functional.dropout(x * 1.0, 0.3, inplace=True),
    "rand_like": torch.rand_like,
    "rand": lambda x: torch.rand(x.shape, dtype=x.dtype, device=x.device),
    "bernoulli": lambda x: torch.empty_like(x).bernoulli_(0.3),
    "uniform": lambda x: torch.empty_like(x).uniform_(0, 3),
    "alpha_dropout": lambda x: functional.alpha_dropout(x, 0.3),
    "several": lambda x: functional.dropout(functional.dropout(x, 0.1).sin() * torch.rand_like(x), 0.2),
    "around_the_library": lambda x: functional.dropout(x, 0.1) + torch.randn_like(x) + torch.rand_like(x),
}
LAYOUTS: dict[str, Callable[[torch.dtype], Tensor]] = {
    "one": lambda dtype: torch.ones(1, dtype=dtype, device="cuda"),
    "seven": lambda dtype: torch.ones(7, dtype=dtype, device="cuda"),
    "odd": lambda dtype: torch.ones(4095, dtype=dtype, device="cuda"),
    "even": lambda dtype: torch.ones(4098, dtype=dtype, device="cuda"),
    "large": lambda dtype: torch.ones((1 << 20) + 3, dtype=dtype, device="cuda"),
    "many_turns": lambda dtype: torch.ones(3, 1 << 20, dtype=dtype, device="cuda"),
    "transposed": lambda dtype: torch.ones(60, 44, dtype=dtype, device="cuda").t(),
    "channels_last": lambda dtype: torch.ones(2, 8, 6, 6, dtype=dtype, device="cuda").to(
        memory_format=torch.channels_last
    ),
    "gaps": lambda dtype: torch.ones(64, 66, dtype=dtype, device="cuda")[:, ::2],
    "offset": lambda dtype: torch.ones(4097, dtype=dtype, device="cuda")[1:],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", DRAWN)
def test_kernels_on_a_gpu_draw_eagers_numbers(name: str, dtype: torch.dtype) -> None:
    """Bit for bit, and the generator goes on from where eager leaves it."""
    program, different = DRAWN[name], []
    for layout, make in LAYOUTS.items():
        fusee.reset()  # there are more layouts than entries of one function
        x, compiled = make(dtype), fusee.compile(lambda x: program(x), dynamic=False)
        for seed in (3, -5):
            torch.manual_seed(seed)
            expected = [program(x), program(x), torch.cuda.get_rng_state()]
            torch.manual_seed(seed)
            found = [compiled(x), compiled(x), torch.cuda.get_rng_state()]
            exact = name not in ("dropout_in_place", "several", "alpha_dropout", "around_the_library")
            tolerance = {} if exact else {"rtol": 2e-2 if dtype.itemsize == 2 else 1e-5, "atol": 1e-5}
            same = all(
                torch.equal(mine, other)
                if exact or other.dtype == torch.uint8
                else torch.allclose(mine, other, **tolerance)
                for mine, other in zip(found, expected, strict=True)
            )
            different += [] if same else [(layout, seed)]
    assert not different


def test_samples_of_eagers_numbers() -> None:
    """Those by which it is decided, before the first plan draws, whether kernels may."""
    torch.manual_seed(11)
    before = torch.cuda.get_rng_state()
    assert _random.reproduces(0)
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_a_captured_graph_draws_by_library_calls() -> None:
    x = torch.ones(1000, device="cuda")
    compiled = fusee.compile(lambda x: functional.dropout(x, 0.5))
    compiled(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compiled(x)
    drawn = []
    for _ in range(2):
        graph.replay()
        drawn.append(result.clone())
    assert not torch.equal(*drawn)


def test_a_recorded_plan_draws_eagers_numbers() -> None:
    x = torch.randn(64, 64, device="cuda")
    compiled = fusee.compile(lambda x: functional.dropout(x, 0.5), mode="reduce-overhead")
    for run in (compiled, lambda x: functional.dropout(x, 0.5)):
        run(x)
    for _ in range(4):
        torch.manual_seed(7)
        expected = [functional.dropout(x, 0.5) for _ in range(2)]
        torch.manual_seed(7)
        assert all(torch.equal(compiled(x), other) for other in expected)


def test_numbers_of_one_seed_on_a_gpu() -> None:
    """They are those that the same formulas give on the CPU from the same seed, and backward draws them again."""
    x = torch.ones(300, 77, device="cuda", requires_grad=True)
    compiled = fusee.compile(lambda x: functional.dropout(x.exp(), 0.3), options={"random": "fused"})
    torch.manual_seed(2)
    result = compiled(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert torch.equal(result, gradient)
    assert 0.27 < float((result == 0).float().mean()) < 0.33
    torch.manual_seed(2)
    assert torch.equal(compiled(x), result)
    assert not torch.equal(compiled(x), result)


# With how far results may be from eager's: the count of steps of what can be recorded is a tensor of float32.
OPTIMIZERS: dict[str, tuple[Callable[..., torch.optim.Optimizer], float]] = {
    "sgd": (functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9), 1e-9),
    "adamw": (functools.partial(torch.optim.AdamW, lr=0.01), 1e-9),
    "adamw, capturable": (functools.partial(torch.optim.AdamW, lr=0.01, capturable=True), 1e-6),
}


def steps(optimizer: Callable[..., torch.optim.Optimizer], sizes: list[int], wrap: Callable[..., Any]) -> list[Tensor]:
    """The losses of whole steps in double precision, and the parameters after them."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).cuda().double()
    updates = optimizer(module.parameters())

    def step(x: Tensor, targets: Tensor) -> Tensor:
        updates.zero_grad()
        loss = functional.cross_entropy(module(x), targets)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        updates.step()
        return loss.detach()

    run = wrap(step)
    batches = [(torch.randn(n, 16).cuda().double(), torch.randint(0, 4, (n,)).cuda()) for n in sizes]
    losses = [run(*batch).clone() for batch in batches]
    return [*losses, *(parameter.detach() for parameter in module.parameters())]


@pytest.mark.parametrize("sizes", [[8] * 12, [8, 8, 5, 12, 5, 8]])
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_whole_steps_on_a_gpu(name: str, mode: str, sizes: list[int]) -> None:
    optimizer, near = OPTIMIZERS[name]
    compiled = steps(optimizer, sizes, functools.partial(fusee.compile, mode=mode))
    for found, wanted in zip(compiled, steps(optimizer, sizes, lambda step: step), strict=True):
        torch.testing.assert_close(found, wanted, rtol=near, atol=near / 100)  # an update is at most 0.01
