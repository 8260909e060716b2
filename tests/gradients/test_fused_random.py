"""Random numbers that kernels draw: of one seed for each call of a graph, and the same ones in backward."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import fusee
from fusee import _random
from fusee.host import miss

FUSED = {"random": "fused"}
CPU = torch.device("cpu")
COUNT = 1 << 18

# The program, and mean and standard deviation of what it draws.
DISTRIBUTIONS: dict[str, tuple[Callable[[], Tensor], float, float]] = {
    "rand": (lambda: torch.rand(COUNT), 0.5, 12**-0.5),
    "rand_double": (lambda: torch.rand(COUNT, dtype=torch.float64), 0.5, 12**-0.5),
    "rand_like": (lambda: torch.rand_like(torch.empty(512, 512).t()), 0.5, 12**-0.5),
    "randn": (lambda: torch.randn(COUNT), 0.0, 1.0),
    "randint": (lambda: torch.randint(3, 10, (COUNT,)), 6.0, 2.0),
    "uniform": (lambda: torch.empty(COUNT).uniform_(-2, 3), 0.5, 5 * 12**-0.5),
    "bernoulli": (lambda: torch.empty(COUNT).bernoulli_(0.3), 0.3, 0.21**0.5),
    "normal": (lambda: torch.empty(COUNT).normal_(2, 3), 2.0, 3.0),
    "exponential": (lambda: torch.empty(COUNT).exponential_(2.0), 0.5, 0.5),
    "dropout": (lambda: functional.dropout(torch.ones(COUNT), 0.25), 1.0, 3**-0.5),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_are_spread_as_eagers_are(name: str) -> None:
    program, mean, deviation = DISTRIBUTIONS[name]
    compiled = fusee.compile(program, fullgraph=True, options=FUSED)

    def seeded() -> Tensor:
        torch.manual_seed(3)
        return compiled()

    drawn = seeded()
    assert drawn.dtype == program().dtype
    assert not torch.equal(compiled(), drawn)
    assert torch.equal(seeded(), drawn)
    assert abs(drawn.double().mean() - mean) < 5 * deviation / math.sqrt(COUNT)
    assert abs(drawn.double().std() / deviation - 1) < 0.02


@pytest.mark.parametrize(
    "like",
    [
        torch.ones(()),
        torch.ones(4099, dtype=torch.float64),
        torch.ones(30, 41).t(),
        torch.ones(2, 8, 5, 6).to(memory_format=torch.channels_last),
    ],
    ids=["one", "double", "transposed", "channels"],
)
def test_kernels_draw_what_python_draws(like: Tensor) -> None:
    torch.manual_seed(3)
    drawn = fusee.compile(lambda x: torch.rand_like(x), options=FUSED)(like)
    torch.manual_seed(3)
    seed = torch.randint(0, 2**63 - 1, (1,))
    expected = _random.uniform(seed, 0, 0, like.shape, drawn.stride(), dtype=like.dtype, device=CPU)
    assert torch.equal(drawn, torch.where(expected == 1, 0, expected))


def layers(x: Tensor, weight: Tensor) -> Tensor:
    hidden = functional.dropout(torch.tanh(x @ weight), 0.4)
    return functional.dropout(hidden.sin(), 0.2) * hidden


def with_masks(x: Tensor, weight: Tensor) -> Tensor:
    """The same with the masks that kernels draw."""
    seed = torch.randint(0, 2**63 - 1, (1,))

    def kept(number: int, share: float) -> Tensor:
        size, stride = (64, 48), (48, 1)
        drawn = _random.uniform(seed, number, 0, size, stride, dtype=torch.float32, device=CPU)
        return (drawn < share) / share

    hidden = torch.tanh(x @ weight) * kept(0, 0.6)
    return hidden.sin() * kept(1, 0.8) * hidden


def in_place(x: Tensor, weight: Tensor) -> Tensor:
    hidden = torch.tanh(x @ weight) * 1
    functional.dropout(hidden, 0.4, inplace=True)
    return functional.dropout(hidden.sin(), 0.2, inplace=True) * hidden


def checkpointed(x: Tensor, weight: Tensor) -> Tensor:
    found: Tensor = checkpoint(layers, x, weight, use_reentrant=False)
    return found


def sliced(x: Tensor, weight: Tensor) -> Tensor:
    """A view of the result: backward gets one gradient for it."""
    return layers(x, weight)[3:]


PROGRAMS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "layers": (layers, with_masks),
    "in_place": (in_place, with_masks),
    "checkpoint": (checkpointed, with_masks),
    "sliced": (sliced, lambda x, weight: with_masks(x, weight)[3:]),
}


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_draws_the_mask_again(name: str, again: bool) -> None:
    program, reference = PROGRAMS[name]
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(64, 32, generator=generator, requires_grad=True)
    weight = torch.randn(32, 48, generator=generator, requires_grad=True)

    def gradients(run: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
        torch.manual_seed(5)
        result = run(x, weight)
        found = torch.autograd.grad(result.square().sum(), (x, weight), create_graph=again)
        if again:
            found = torch.autograd.grad(sum(gradient.square().sum() for gradient in found), (x, weight))
        return [result, *found]

    compiled = fusee.compile(program, fullgraph=True, options=FUSED)
    for mine, other in zip(gradients(compiled), gradients(reference), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-3 * float(other.detach().abs().max()))


def test_forward_keeps_the_seed_and_no_mask() -> None:
    def program(x: Tensor) -> Tensor:
        return functional.dropout(x.sin(), 0.4)

    explained = fusee.explain(program, options=FUSED)(torch.randn(64, 48, requires_grad=True))
    (graph,) = explained.graphs
    assert [kept["type"] for kept in graph["training"]["kept"] if not kept["input"]] == ["int64[1]"]
    assert [draw["from"] for draw in graph["random"]] == ["kernels, from one seed for each call"]
    assert "kernels, from one seed for each call" in str(explained)
    (graph,) = fusee.explain(program)(torch.randn(64, 48)).graphs
    assert [draw["from"] for draw in graph["random"]] == ["the library: torch.nn.functional.dropout"]


def test_changing_sizes() -> None:
    compiled = fusee.compile(lambda x: functional.dropout(x, 0.5), dynamic=True, options=FUSED)
    for size in (5, 64, 1001):
        found = compiled(torch.ones(size, 3))
        assert found.shape == (size, 3)
        assert set(found.unique().tolist()) <= {0.0, 2.0}


def test_whole_step() -> None:
    """Gradients that the program asks for itself see the mask of its forward."""

    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        dropped = functional.dropout(x * 1.0, 0.5)
        (gradient,) = torch.autograd.grad(dropped.sum(), x)
        return dropped.detach(), gradient

    dropped, gradient = fusee.compile(step, options=FUSED)(torch.ones(1000))
    assert torch.equal(dropped, gradient)
    assert 0.4 < float((gradient == 0).float().mean()) < 0.6


def test_eagers_numbers_are_pytorchs_where_kernels_draw_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_random, "reproduces", lambda device: device != 1)
    assert _random.reproduces_all([("generator", 1, 0, [], []), ("free", 1)])
    assert not _random.reproduces_all([("free", 1), ("generator", 1, 1, [], [])])


def test_the_next_compile_leaves_random_numbers_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, asked = [False, True], []
    request = miss._request

    def noted(*arguments: Any) -> dict[str, Any]:
        asked.append(request(*arguments))
        return asked[-1]

    monkeypatch.setattr(_random, "reproduces_all", lambda steps: answers.pop(0))
    monkeypatch.setattr(miss, "_request", noted)
    compiled = fusee.compile(lambda x: x * 2 + 1)
    with pytest.warns(UserWarning, match="are not those of kernels"):
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 3.0))
    assert ["library_draws" in each for each in asked] == [False, True]
    assert not answers


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_python_deals_numbers_as_eager_deals_them(lanes: int) -> None:
    """A walk through the threads of eager's kernels, which draw four numbers at once."""
    threads, elements = 32, 32 * 8 * 5
    state = torch.tensor([[0] * 4, [9, 7, threads, lanes.bit_length() - 1]])
    expected = torch.zeros(elements)
    for thread in range(threads):
        call = 7
        for start in range(thread * lanes, elements, threads * (4 if lanes == 1 else lanes)):
            for first in range(0, lanes, 4):
                words = _random._philox(9, torch.tensor(call), torch.tensor(thread))
                call += 1
                for place, word in enumerate(words if lanes == 1 else words[:lanes]):
                    at = start + place * threads if lanes == 1 else start + first + place
                    if at < elements:
                        expected[at] = word.float() * 2.0**-32 + 2.0**-33
    for given in (lanes, -1):
        found = _random.uniform(state, 1, given, (elements,), (1,), dtype=torch.float32, device=CPU)
        assert torch.equal(found, expected)


def test_nothing_is_captured_where_cuda_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver() -> bool:
        raise RuntimeError("CUDA driver version is insufficient for CUDA runtime version")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", no_driver)
    assert not _random.is_captured()
