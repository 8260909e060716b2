"""``torch.autograd.Function`` of a program, called within a compiled function, compared with the same uncompiled."""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import fusee


def leaf(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


class Twice(Function):
    """Gives exp, and twice its gradient, so that the written backward shows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return gradient * y * 2


class Reversed(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return -ctx.strength * gradient, None


class Needed(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return (
            gradient * y if ctx.needs_input_grad[0] else None,
            gradient * x * 3 if ctx.needs_input_grad[1] else None,
        )


class Split(Function):
    @staticmethod
    def forward(x: Tensor) -> Any:
        return x.sin(), x.cos(), x.argmax(-1), x.floor()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.mark_non_differentiable(output[2], output[3])

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor, *_: Any) -> Any:
        (x,) = ctx.saved_tensors
        return first * x - second


class Rounded(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.round(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return gradient.view(-1).view_as(gradient)  # gradients that come expanded have no such view


class Doubled(Function):
    """Works in place on its argument, and keeps it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        x.mul_(2).exp_()
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * x * 3


class Shifted(Function):
    """Works in place on one of two arguments, beside another result."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
        ctx.mark_dirty(x)
        ctx.save_for_backward(y)
        x.add_(1)
        return x, x * y

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return first + second * y, first * 5


class Passed(Function):
    """Returns an argument as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(y)
        return x, x * y

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> Any:
        (y,) = ctx.saved_tensors
        return first * 7 + second * y, second


class Missing(Function):
    """Tells gradients that are missing from those that are 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        places = x.argmax(-1)
        ctx.mark_non_differentiable(places)
        return x * 2, y * 3, places

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any, places: Any) -> Any:
        assert places is None
        if first is None:
            return second + 2, second * 3
        return first * 2, first + 1 if second is None else second * 3


class Sorted(Function):
    """Has its places be no part of the history, and writes in place in backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        values, places = x.sort(-1)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        return values, places

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> Any:
        (places,) = ctx.saved_tensors
        result = torch.zeros_like(gradient)
        result.scatter_(-1, places, gradient)
        result[result < 2] = 0
        return result


class Product(Function):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x @ y.t()

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return gradient @ y, gradient.t() @ x


class SingleProduct(Product):
    """Computes in single precision, whatever autocast has."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x @ y.t()


def written_behind_a_view(x: Tensor, y: Tensor) -> Any:
    z = x * y
    row = z.view(-1)
    first = Doubled.apply(z)
    return first + z, row[:4], z


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "saved": lambda x, y: Twice.apply(x * y),
    "reversed": lambda x, y: Reversed.apply(x, 0.5) * y,
    "view returned": lambda x, y: Reversed.apply(x * 2, 0.5),
    "both": lambda x, y: Needed.apply(x, y),
    "one": lambda x, y: Needed.apply(x, y.detach()),
    "several": lambda x, y: Split.apply(x * y),
    "first of several": lambda x, y: Split.apply(x)[1] * y,
    "straight through": lambda x, y: Rounded.apply(x * y * 3),
    "nested": lambda x, y: Twice.apply(Reversed.apply(Twice.apply(x), 2.0) * y),
    "written": lambda x, y: Doubled.apply(x * y) * y,
    "written behind a view": written_behind_a_view,
    "one written": lambda x, y: Shifted.apply(x * 2, y),
    "passed": lambda x, y: Passed.apply(x, y),
    "passed intermediate": lambda x, y: Passed.apply(x.sin(), y)[0] * y,
    "all there": lambda x, y: Missing.apply(x, y),
    "first there": lambda x, y: Missing.apply(x, y)[0] * x,
    "second there": lambda x, y: Missing.apply(x, y)[1] * x,
    "sorted": lambda x, y: Sorted.apply(x * y),
    "sorted and used": lambda x, y: (lambda values, places: values * y.gather(-1, places))(*Sorted.apply(x)),
    "product": lambda x, y: Product.apply(x, y).sin(),
    "none": lambda x, y: (Twice.apply(x.detach()), x * y),
}


def gradients_of(program: Callable[..., Any], x: Tensor, y: Tensor) -> list[Any]:
    results = program(x, y)
    results = list(results) if isinstance(results, tuple) else [results]
    total = sum((result * (k + 1)).sum() for k, result in enumerate(results) if result.requires_grad)
    flags = [(result.requires_grad, result.is_leaf) for result in results]
    return [*torch.autograd.grad(total, (x, y), allow_unused=True), *results, flags]


@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_outside(name: str) -> None:
    x, y = leaf(3, 4), leaf(3, 4)
    expected = gradients_of(PROGRAMS[name], x, y)
    found = gradients_of(fusee.compile(PROGRAMS[name], fullgraph=True), x, y)
    torch.testing.assert_close(found, expected)
    fusee.reset()
    [graph] = fusee.explain(PROGRAMS[name])(x, y).graphs
    assert "why" not in graph, graph["why"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_inside(name: str) -> None:
    def step(x: Tensor, y: Tensor) -> Any:
        results = PROGRAMS[name](x, y)
        results = list(results) if isinstance(results, tuple) else [results]
        loss = 0
        for k, result in enumerate(results):
            if result.requires_grad:
                loss = loss + (result * (k + 1)).sum()
        loss.backward()  # type: ignore[attr-defined]
        return loss.detach()  # type: ignore[attr-defined]

    found: list[Any] = []
    for run in (step, fusee.compile(step, fullgraph=True)):
        x, y = (tensor.detach().requires_grad_() for tensor in _arguments())
        found.append((run(x, y), x.grad, y.grad))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("function", [Product, SingleProduct, Reversed])
@pytest.mark.parametrize("inside", [True, False])
def test_functions_under_autocast(function: Any, inside: bool) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            arguments = (x @ y.t(), 0.5) if function is Reversed else (x, y)
            result: Tensor = (function.apply(*arguments) @ y).float()
        if inside:
            result.sum().backward()  # type: ignore[no-untyped-call]
            return result.detach()
        return result

    found: list[Any] = []
    for run in (program, fusee.compile(program, fullgraph=True)):
        x, y = (tensor.float()[:3, :3].clone().requires_grad_() for tensor in _arguments())
        result = run(x, y)
        if not inside:
            result.sum().backward()  # type: ignore[no-untyped-call]
        found.append((result, x.grad, y.grad))
    torch.testing.assert_close(found[1], found[0])


def test_arguments_returned_without_gradients() -> None:
    def program(x: Tensor, y: Tensor) -> Any:
        with torch.no_grad():
            return Passed.apply(x, y), Doubled.apply(y * 2), Passed.apply(x * 1, y)[0]

    x, y = leaf(3), leaf(3)
    found, expected = fusee.compile(program, fullgraph=True)(x, y), program(x, y)
    torch.testing.assert_close(found, expected)
    assert found[0][0] is not x and not found[0][0].requires_grad and found[0][0].data_ptr() == x.data_ptr()


def test_leaves_are_not_written() -> None:
    with pytest.raises(RuntimeError, match="leaf Variable"):
        fusee.compile(lambda x: Doubled.apply(x) + 1)(leaf(3))


def _arguments() -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(3, 4, generator=generator, dtype=torch.float64) for _ in range(2)]


def test_gradients_of_gradients() -> None:
    x, y = leaf(3), leaf(3)
    program = PROGRAMS["saved"]
    penalties = []
    for run in (program, fusee.compile(program, fullgraph=True)):
        first = torch.autograd.grad(run(x, y).sum(), x, create_graph=True)[0]
        penalties.append(torch.autograd.grad((first**2).sum(), (x, y)))
    torch.testing.assert_close(penalties[1], penalties[0])


def test_functions_without_gradients_are_part_of_the_graph() -> None:
    with torch.no_grad():
        x, y = leaf(3), leaf(3)
        found = fusee.compile(PROGRAMS["saved"], fullgraph=True)(x, y)
    assert not found.requires_grad
    torch.testing.assert_close(found, (x * y).exp().detach())


CALLS: list[str] = []


class Noted(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        CALLS.append("forward")
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        CALLS.append("backward")
        return gradient * 3


def test_functions_that_do_more_run_in_python() -> None:
    def program(x: Tensor) -> Tensor:
        result: Tensor = Noted.apply(x * 1) + 1
        return result

    compiled = fusee.compile(program)
    for count in (1, 2):
        x = leaf(3)
        result = compiled(x)
        torch.testing.assert_close(result, x * 2 + 1)
        result.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [3.0] * 3
        assert len(CALLS) == 2 * count


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_functions_in_the_graphs_of_other_backends(backend: str) -> None:
    x, y = leaf(3), leaf(3)
    expected = gradients_of(PROGRAMS["saved"], x, y)
    found = gradients_of(fusee.compile(PROGRAMS["saved"], fullgraph=True, backend=backend), x, y)
    torch.testing.assert_close(found, expected)


class Bumped(Function):
    """Works in place on what it made, of which one part more than once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x * 2
        y += x.abs()
        y[0] *= 3
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * (2 + x.sign())


@pytest.mark.parametrize(
    "program", [lambda x, y: Bumped.apply(x).tanh() * y, lambda x, y: (Bumped.apply(x * y) * x).sigmoid()]
)
def test_what_was_written_in_place_is_not_computed_again_without_it(program: Callable[[Tensor, Tensor], Any]) -> None:
    x, y = leaf(3, 4), leaf(3, 4)
    expected = gradients_of(program, x, y)
    torch.testing.assert_close(gradients_of(fusee.compile(program, fullgraph=True), x, y), expected)
