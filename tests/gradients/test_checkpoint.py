"""``torch.utils.checkpoint`` in a compiled function: gradients of eager, and nothing kept of what is computed again."""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import fusee
from live_bytes import peak

torch.manual_seed(0)
LAYER = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 6)).double()
NORM = nn.BatchNorm1d(6).double()
STACK = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(4))).double()
kept = functools.partial(checkpoint, use_reentrant=False)
reentrant = functools.partial(checkpoint, use_reentrant=True)


class Without(nn.Module):
    """An operation that the compiler has no derivative of."""

    def forward(self, x: Tensor) -> Any:
        return torch.renorm(nn.functional.gelu(x), 2, 0, 1.0)


class Squared(Function):
    """x² with a gradient that is not its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * x * 5


@checkpoint(use_reentrant=False)
def decorated(x: Tensor, y: Tensor) -> Any:
    return (x.sin() * y).exp()


def products(x: Tensor, y: Tensor) -> Tensor:
    return torch.tanh(x @ y.t()) @ y


def nested(x: Tensor, y: Tensor) -> Any:
    inner = kept(products, x.sin(), y)
    return kept(products, inner * 2, y).cos()


def in_place(x: Tensor, y: Tensor) -> Tensor:
    z = x * 2
    z.add_(y).tanh_()
    z[0] = 1.5
    return z * y


def closure(x: Tensor, y: Tensor) -> Any:
    hidden = y.exp()
    return kept(lambda a: torch.tanh(a * hidden) @ hidden.t(), x)


@torch.no_grad()
def scaled(x: Tensor) -> Tensor:
    return x / x.abs().max()


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "products": lambda x, y: kept(products, x, y),
    "reentrant": lambda x, y: reentrant(products, x, y) + 1,
    "module": lambda x, y: kept(LAYER, x).relu() * y,
    "reentrant module": lambda x, y: reentrant(LAYER, x * y),
    "keywords": lambda x, y: kept(
        products, x, y=y, preserve_rng_state=True, determinism_check="none", early_stop=False
    ),
    "decorated": lambda x, y: decorated(x, y) + decorated(y, x),
    "nested": lambda x, y: kept(nested, x, y) + x,
    "one after another": lambda x, y: kept(products, kept(products, x, y), kept(products, y, x)),
    "sequential": lambda x, y: checkpoint_sequential(STACK, 2, x * y, use_reentrant=False),
    "reentrant sequential": lambda x, y: checkpoint_sequential(list(STACK), 3, x * y, use_reentrant=True),
    "in place": lambda x, y: kept(in_place, x, y).sin(),
    "closure": closure,
    "several results": lambda x, y: kept(lambda a, b: (products(a, b), a.exp().sum(-1), [b.sin()]), x, y),
    "view": lambda x, y: kept(lambda a: (a.sin() * 2).t(), x) @ y,
    "function": lambda x, y: kept(lambda a: Squared.apply(a.sin()).exp(), x) * y,
    "detached within": lambda x, y: kept(lambda a: a.sin().detach() * a.exp(), x) * y,
    "without gradients within": lambda x, y: kept(lambda a: scaled(a) * a.exp(), x) * y,
    "nothing recorded": lambda x, y: kept(products, x.detach(), y.detach()) * x,
    "saved outside": lambda x, y: kept(torch.exp, x).sigmoid() * kept(torch.sigmoid, y),
}
RANDOM: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "dropout": lambda x, y: kept(lambda a, b: nn.functional.dropout(a.exp() @ b.t(), 0.5).sin() @ b, x, y),
    "reentrant dropout": lambda x, y: reentrant(lambda a: nn.functional.dropout(a.exp(), 0.3).sin(), x) * y,
    "two dropouts": lambda x, y: kept(lambda a: nn.functional.dropout(nn.functional.dropout(a) * a, 0.1), x) * y,
    "noise": lambda x, y: kept(lambda a: (torch.rand_like(a) * a).sin(), x) * y,
    "dropout behind": lambda x, y: nn.functional.dropout(kept(products, x, y), 0.5) * y,
}
BROKEN: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "statistics": lambda x, y: kept(NORM, x) * y,
    "list": lambda x, y: (noted(x), x * y)[1],
    "contexts": lambda x, y: kept(products, x, y, context_fn=chosen),
    "drawn anew": lambda x, y: kept(torch.rand_like, x, preserve_rng_state=False) * y,
    "reentrant constants": lambda x, y: reentrant(lambda a: (a.sin(), a.detach().cos()), x)[0] + y,
}
SEEN: list[int] = []


def chosen() -> Any:
    """Contexts that keep the products."""
    return torch.utils.checkpoint.create_selective_checkpoint_contexts([torch.ops.aten.mm.default])


def noted(x: Tensor) -> Tensor:
    def note(a: Tensor) -> Tensor:
        SEEN.append(1)
        return a.sin()

    result: Tensor = kept(note, x)
    return result


def leaves() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    made = [torch.randn(4, 6, dtype=torch.float64, generator=generator).requires_grad_() for _ in range(2)]
    return made[0], made[1]


def outcome(program: Callable[[Tensor, Tensor], Any], within: Callable[..., Any] | None = None) -> list[Any]:
    """Results, gradients of arguments and parameters, and the random number that follows."""
    for module in (LAYER, STACK, NORM):
        module.zero_grad(set_to_none=True)
    torch.manual_seed(7)
    x, y = leaves()
    step = within or step_of(program)
    results = step(x, y)
    gradients = [leaf.grad for leaf in (x, y, *LAYER.parameters(), *STACK.parameters(), *NORM.parameters())]
    return [*results, *gradients, torch.rand(1), list(SEEN), *(buffer.clone() for buffer in NORM.buffers())]


def step_of(program: Callable[[Tensor, Tensor], Any]) -> Callable[[Tensor, Tensor], list[Tensor]]:
    """The program, and backward from all its results."""

    def step(x: Tensor, y: Tensor) -> list[Tensor]:
        found = torch.utils._pytree.tree_leaves(program(x, y))
        total = sum((result * (k + 1)).sum() for k, result in enumerate(found))
        total.backward()
        return [result.detach() for result in found]

    return step


def assert_same(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert type(one) is type(other)
        if isinstance(one, Tensor):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)
        else:
            assert one == other


@pytest.mark.parametrize("name", [*PROGRAMS, *RANDOM])
def test_backward_outside(name: str) -> None:
    program = {**PROGRAMS, **RANDOM}[name]
    compiled = fusee.compile(program, fullgraph=True)
    for _ in range(2):
        assert_same(outcome(compiled), outcome(program))


@pytest.mark.parametrize("name", [*PROGRAMS, *RANDOM])
def test_backward_inside(name: str) -> None:
    program = {**PROGRAMS, **RANDOM}[name]
    compiled = fusee.compile(step_of(program))
    for _ in range(2):
        assert_same(outcome(program, compiled), outcome(program))


@pytest.mark.parametrize("name", BROKEN)
def test_breaks(name: str) -> None:
    program = BROKEN[name]
    compiled = fusee.compile(program)
    for _ in range(2):
        SEEN.clear()
        state = {key: value.clone() for key, value in NORM.state_dict().items()}
        expected = outcome(program)
        SEEN.clear()
        NORM.load_state_dict(state)
        assert_same(outcome(compiled), expected)
    with pytest.raises(fusee.Unsupported, match=r"\[checkpoint\]"):
        fusee.compile(program, fullgraph=True)(*leaves())


def test_keeps_what_enters_alone(trained: list[dict[str, Any]]) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        z: Tensor = kept(products, kept(products, x, y), y)
        return z

    fusee.compile(program)(*leaves()).sum().backward()
    (graph,) = trained
    assert sorted(kind for kind, _ in graph["training"]["saved"]) == ["input", "input", "made"]
    assert graph["runs"] == "training"


def blocks(checkpointed: bool) -> Any:
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))

        def forward(self, x: Tensor) -> Any:
            return x + self.inner(x)

    class Blocks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.all = nn.ModuleList(Block() for _ in range(6))

        def forward(self, x: Tensor) -> Any:
            for block in self.all:
                x = kept(block, x) if checkpointed else block(x)
            return x.square().mean()

    return Blocks()


@pytest.mark.parametrize("inside", [False, True])
def test_memory(inside: bool) -> None:
    x = torch.randn(2048, 32)
    most = {}
    for checkpointed in (False, True):
        model = blocks(checkpointed)

        def step(x: Tensor, model: Any = model) -> Any:
            loss = model(x)
            loss.backward()
            return loss.detach()

        compiled = fusee.compile(step) if inside else fusee.compile(model)
        run = compiled if inside else functools.partial(step, model=compiled)
        for _ in range(2):
            run(x)
            model.zero_grad(set_to_none=True)
        most[checkpointed] = peak(functools.partial(run, x))
    assert most[True] < most[False] / 2, most


def test_python_keeps_nothing_either(trained: list[dict[str, Any]]) -> None:
    x, model = torch.randn(2048, 32), blocks(True)
    for block in model.all:
        block.inner[1] = Without()
    compiled = fusee.compile(model)
    torch.testing.assert_close(compiled(x), model(x))
    assert not trained
    held = [peak(functools.partial(lambda run: run(x).backward(), run)) for run in (compiled, model)]
    assert held[0] <= held[1] * 1.02, held
