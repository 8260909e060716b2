"""``torch.autocast`` around, within and as decorator of compiled functions gives the types and values of plain runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import fusee

A = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))
B = torch.randn(8, 8, generator=torch.Generator().manual_seed(2))


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test, and autocast off afterwards as before."""
    fusee.reset()
    yield
    assert not torch.is_autocast_enabled("cpu")
    fusee.reset()


def state() -> tuple[Any, ...]:
    nesting = torch.autocast_increment_nesting() - 1
    torch.autocast_decrement_nesting()
    return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled(), nesting


def check(function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Two calls give the same compiled as plain, and leave the same state of autocast."""
    compiled = fusee.compile(function, **options)
    for _ in range(2):
        before = state()
        expected, found = function(*arguments), compiled(*arguments)
        assert state() == before
        for one, other in zip(expected, found, strict=True):
            assert type(one) is type(other)
            if isinstance(one, torch.Tensor):
                assert one.dtype == other.dtype and one.requires_grad == other.requires_grad
                assert torch.equal(one, other)
            else:
                assert one == other


def block(a: Any, b: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        c = torch.mm(a, b)
        d = c + a
        with torch.autocast("cpu", enabled=False):
            e = a @ b
        enabled = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        f = torch.nn.functional.linear(e, b)
    return c, d, e, f, a @ b, enabled, torch.is_autocast_enabled("cpu")


@torch.autocast("cpu", dtype=torch.float16)
def decorated(a: Any, b: Any) -> Any:
    return a @ b, torch.nn.functional.linear(a, b)


@pytest.mark.parametrize("backend", ["fusee", "eager"])
@pytest.mark.parametrize("function", [block, decorated])
def test_block_and_decorator(function: Any, backend: str) -> None:
    check(function, A, B, fullgraph=True, backend=backend)


def test_softmax_is_as_near_to_the_true_one_as_eager() -> None:
    @torch.autocast("cpu", dtype=torch.float16)
    def softmax(a: Any, b: Any) -> Any:
        return a @ b, torch.softmax(a @ b, 0)

    product, expected = softmax(A, B)
    same, found = fusee.compile(softmax, fullgraph=True)(A, B)
    assert torch.equal(same, product) and found.dtype == expected.dtype
    true = torch.softmax(product.double(), 0)
    assert (found.double() - true).abs().max() <= (expected.double() - true).abs().max()


def test_gradients_of_weights() -> None:
    layer = torch.nn.Linear(8, 8)

    def step(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(x)
        return (y.float().sum(),)

    check(step, A, fullgraph=True)
    compiled = fusee.compile(step)
    step(A)[0].backward()
    expected = layer.weight.grad.clone()
    layer.zero_grad()
    compiled(A)[0].backward()
    assert torch.equal(layer.weight.grad, expected)


def test_around_the_call_recompiles() -> None:
    graphs = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    compiled = fusee.compile(lambda a, b: (a @ b, torch.is_autocast_enabled("cpu")), fullgraph=True, backend=backend)
    for dtype in (None, torch.bfloat16, torch.float16, None, torch.bfloat16):
        around = torch.autocast("cpu", dtype=dtype) if dtype else contextlib.nullcontext()
        with around:
            product, enabled = compiled(A, B)
            assert torch.equal(product, A @ B)
        assert product.dtype == (dtype or torch.float32) and enabled == (dtype is not None)
    assert len(graphs) == 3


def test_break_inside_the_block() -> None:
    def program(a: Any, b: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            c = a @ b
            fusee.graph_break()
            d = a @ b
            found = state()[:3]
        return c, d, found, a @ b, torch.is_autocast_enabled("cpu")

    check(program, A, B)


def test_error_inside_the_block() -> None:
    def program(a: Any, index: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            c = a @ a
            return c, c[index]

    compiled = fusee.compile(program)
    for index in (torch.tensor([1]), torch.tensor([99])):
        for function in (program, compiled):
            try:
                assert function(A, index)[0].dtype == torch.bfloat16
            except IndexError:
                assert index.item() == 99
            assert state() == (False, torch.bfloat16, True, 0)


def trained(step: Callable[..., Any], layers: torch.nn.Module) -> list[Any]:
    """The loss and the gradients of one step."""
    layers.zero_grad()
    return [step(A).detach(), *(parameter.grad for parameter in layers.parameters())]


@pytest.mark.parametrize("whole", [False, True])
def test_training_runs_in_plans(whole: bool) -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))

    def loss(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = torch.nn.functional.mse_loss(layers(layers(x)), B)
        if whole:
            found.backward()
        return found

    def step(run: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(x: Any) -> Any:
            found = run(x)
            if not whole:
                found.backward()
            return found

        return stepped

    expected = trained(step(loss), layers)
    found = trained(step(fusee.compile(loss, fullgraph=True, options={"numerics": "eager"})), layers)
    for one, other in zip(expected, found, strict=True):
        assert one.dtype == other.dtype == torch.float32
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-7)
    layers.zero_grad()
    assert [graph.get("why") for graph in fusee.explain(loss)(A).graphs] == [None]


def test_plan_called_under_autocast_casts_nothing_itself() -> None:
    def product(a: Any, b: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return (a @ b,)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        compiled = fusee.compile(product, fullgraph=True)(A, B)[0]
        assert compiled.dtype == torch.float32 and torch.equal(compiled, product(A, B)[0])


def test_backward_within_the_region_is_part_of_the_plan() -> None:
    layers = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 8)
    )

    def step(a: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for scale in (1, 2):
                loss = torch.nn.functional.cross_entropy(layers(a * scale), torch.arange(8))
                loss.backward()
        return loss.detach()

    expected = gradients_of(layers, step)
    found = gradients_of(layers, fusee.compile(step, fullgraph=True, options={"numerics": "eager"}))
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=2e-2, atol=2e-3)  # the products are rounded to bfloat16
    assert [graph.get("why") for graph in fusee.explain(step)(A).graphs] == [None]


def test_backward_of_what_autocast_did_not_cast_breaks() -> None:
    layers = torch.nn.Linear(8, 8)

    def step(a: Any) -> Any:
        loss = layers(a).square().sum()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss.backward()  # computes the products in bfloat16
        return loss.detach()

    expected, found = gradients_of(layers, step), gradients_of(layers, fusee.compile(step))
    wide = torch.nn.Linear(8, 8).double()
    wide.load_state_dict(layers.state_dict())
    exact = gradients_of(wide, lambda a: step_of(wide, a.double()))
    for one, other, reference in zip(expected, found, exact, strict=True):
        assert (other - reference).norm() <= 2 * (one - reference).norm() + 1e-5 * reference.norm()
    assert "another type" in str([one["message"] for one in fusee.explain(step)(A).breaks])


def step_of(layers: torch.nn.Module, a: Any) -> Any:
    """The loss, and its gradients added to the layers'."""
    loss = layers(a).square().sum()
    loss.backward()
    return loss.detach()


def gradients_of(layers: torch.nn.Module, step: Callable[..., Any]) -> list[torch.Tensor]:
    """The result of two steps, and the sum of their gradients."""
    layers.zero_grad()
    results = [step(A), step(A)]
    gradients = [parameter.grad for parameter in layers.parameters()]
    return [*results, *(gradient for gradient in gradients if gradient is not None)]
