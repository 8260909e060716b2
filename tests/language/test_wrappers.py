"""Tensors that wrap others by ``__tensor_flatten__``: captured, and as eager does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import fusee

SEEN: list[str] = []


class Scaled(torch.Tensor):
    """A tensor, a scale beside it, and a name."""

    def __new__(cls, data: torch.Tensor, scale: Any, name: str = "x") -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls,
            data.size(),
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            dtype=data.dtype,
            requires_grad=data.requires_grad,
            device=data.device,
        )

    def __init__(self, data: torch.Tensor, scale: Any, name: str = "x") -> None:
        self.data_part = data
        self.scale_part = scale
        self.name_part = name

    @property
    def doubled(self) -> Any:
        return self.data_part * 2

    def __tensor_flatten__(self) -> Any:
        names = ["data_part"] if self.scale_part is None else ["data_part", "scale_part"]
        return names, {"name": self.name_part}

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Scaled(inner["data_part"], inner.get("scale_part"), context["name"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))
        first = next(item for item in pytree.tree_leaves((args, kwargs)) if isinstance(item, Scaled))
        args, kwargs = pytree.tree_map_only(Scaled, lambda item: item.data_part, (args, kwargs or {}))
        result = func(*args, **kwargs)
        if func is torch.ops.aten.mul.Tensor and first.scale_part is not None:
            result = result * first.scale_part.mean()
        if func._schema.is_mutable:
            return first
        wrap = lambda item: Scaled(item, first.scale_part, first.name_part)  # noqa: E731
        return pytree.tree_map_only(torch.Tensor, wrap, result)


class Silent(Scaled):
    """One of which capture may not look into the dispatch."""

    __tensor_flatten__ = None  # type: ignore[assignment]


class Replacing(Scaled):
    """Puts another tensor into itself."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args[0].data_part = args[0].data_part + 1
        return func(args[0].data_part, *args[1:], **(kwargs or {}))

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Replacing(inner["data_part"], inner.get("scale_part"), context["name"])


def made(*size: int, scale: Any = 3, gradient: bool = False, name: str = "x", cls: Any = Scaled) -> Any:
    data = torch.arange(float(torch.Size(size).numel())).reshape(size)
    return cls(data, None if scale is None else torch.arange(1.0, 1 + scale), name).requires_grad_(gradient)


def flat(value: Any) -> Any:
    """What a result consists of, wrappers taken apart."""
    if isinstance(value, Scaled):
        inside = {key: flat(item) for key, item in vars(value).items()}
        return type(value), tuple(value.shape), value.requires_grad, inside
    if isinstance(value, torch.Tensor):
        return type(value), value.requires_grad, value.tolist()
    if isinstance(value, (tuple, list)):
        return [flat(item) for item in value]
    return value


def compiled(function: Callable[..., Any], **options: Any) -> tuple[Callable[..., Any], list[Any]]:
    fusee.reset()
    graphs: list[Any] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module

    return fusee.compile(function, backend=backend, fullgraph=True, **options), graphs


def elementwise(x: Any) -> Any:
    return (x.sin() + 1) * 2, torch.cat([x, x]), x.shape[0] * 2


def reads_parts(x: Any) -> Any:
    y = x + 1
    return y.scale_part * x.scale_part, y.name_part + x.name_part, y.data_part, x.doubled, type(y) is Scaled


def writes(x: Any) -> Any:
    y = x.view(-1)
    y.add_(1)
    x.mul_(3)
    return x, y.sum()


def plain_and_wrapped(x: Any) -> Any:
    return torch.ones(2) + 1, x * torch.full((2,), 2.0), torch.relu(torch.arange(-1, 2))


@pytest.mark.parametrize("function", [elementwise, reads_parts, writes, plain_and_wrapped])
@pytest.mark.parametrize("gradient", [False, True])
def test_captured_whole(function: Callable[..., Any], gradient: bool) -> None:
    if gradient and function is writes:
        return  # a leaf that requires grad refuses it
    run, graphs = compiled(function)
    for _ in range(2):
        given, taken = made(2, 2, gradient=gradient), made(2, 2, gradient=gradient)
        assert flat(run(taken)) == flat(function(given))
        assert flat(taken) == flat(given)
    assert len(graphs) == 1


def test_gradients() -> None:
    def loss(x: Any, w: torch.Tensor) -> Any:
        return ((x * w).sin() * x).sum()

    run, _ = compiled(loss)
    results = []
    for function in (loss, run):
        x, w = made(3, gradient=True), torch.full((3,), 2.0, requires_grad=True)
        value = function(x, w)
        value.backward()
        results.append((flat(value), flat(x.grad), flat(w.grad)))
    assert results[0] == results[1]


def test_guards_on_what_is_wrapped() -> None:
    def read(x: Any) -> Any:
        return (x + 1).data_part * 2, x.name_part

    run, graphs = compiled(read, dynamic=False)
    others = [made(2), made(2, name="y"), made(2, scale=None), made(2, scale=4), made(3)]
    for count, x in enumerate(others, 1):
        for _ in range(2):
            assert flat(run(x)) == flat(read(x))
        assert len(graphs) == count
    run(made(2))
    assert len(graphs) == len(others)


def test_sizes_that_nothing_reads_stay_free() -> None:
    run, graphs = compiled(lambda x: x.sin() + 1, dynamic=True)
    for size in (2, 3, 5):
        assert flat(run(made(size, 4, scale=size + 1))) == flat(made(size, 4, scale=size + 1).sin() + 1)
    assert len(graphs) == 1


def test_sizes_that_are_read_are_guarded() -> None:
    def read(x: Any) -> Any:
        y = torch.cat([x, x])
        return y.shape[0] * 2, y.data_part.sum()

    run, _ = compiled(read, dynamic=True)
    for size in (2, 3, 5, 3):
        assert flat(run(made(size, 4))) == flat(read(made(size, 4)))


def test_marked_dimensions() -> None:
    run, graphs = compiled(lambda x: x.sin(), dynamic=False)
    first = made(2, 4, scale=6)
    fusee.mark_dynamic(first, 0)
    fusee.mark_dynamic(first, 1)
    for x in (first, made(3, 5, scale=6)):
        assert flat(run(x)) == flat(x.sin())
    assert len(graphs) == 1
    run(made(3, 5, scale=7))
    assert len(graphs) == 2


def test_writes_of_the_program_come_before_the_dispatch() -> None:
    """What a dispatch reads of the program's state is what eager would show it."""
    state = {"factor": 1}

    class Reading(Scaled):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(args[0].data_part, *args[1:], **(kwargs or {})) * state["factor"]

        @staticmethod
        def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
            return Reading(inner["data_part"], inner.get("scale_part"), context["name"])

    def program(x: Any, factor: int) -> Any:
        state["factor"] = factor
        return x + 1

    run = fusee.compile(program)
    for factor in (2, 3):
        assert run(made(2, cls=Reading), factor).tolist() == program(made(2, cls=Reading), factor).tolist()


@pytest.mark.parametrize("cls", [Silent, Replacing])
def test_left_to_python(cls: Any) -> None:
    def program(x: Any) -> Any:
        y = torch.ones(2) * 2
        return x + 1, y, x.data_part

    with warnings.catch_warnings():
        warnings.simplefilter("error", fusee.FuseeWarning)
        run = fusee.compile(program)
        for _ in range(2):
            assert flat(run(made(2, cls=cls))) == flat(program(made(2, cls=cls)))


def test_errors_are_those_of_eager() -> None:
    class Refusing(Scaled):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise ValueError(f"no {func}")

        @staticmethod
        def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
            return Refusing(inner["data_part"], inner.get("scale_part"), context["name"])

    with pytest.raises(ValueError, match=r"no aten.sin.default"):
        fusee.compile(lambda x: x.sin())(made(2, cls=Refusing))


def test_capture_runs_no_dispatch_but_on_fake_tensors() -> None:
    run = fusee.compile(lambda x: x + 1, backend="eager")
    x = made(2)
    run(x)
    SEEN.clear()
    run(x)
    assert SEEN == ["aten.add.Tensor"]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without torch.distributed")
def test_tensors_that_stand_for_others() -> None:
    from torch.distributed._functional_collectives import AsyncCollectiveTensor

    def product(x: Any, w: Any) -> Any:
        return (x @ w).sum()

    def asks(x: Any, w: Any) -> Any:
        return (x @ w).sum(), isinstance(w, AsyncCollectiveTensor), isinstance(w, torch.Tensor)

    def views(x: Any, w: Any) -> Any:
        return x @ w.view(4)

    x, base = torch.ones(2, 4), torch.arange(4.0)
    for function, count in ((product, 1), (asks, 2), (views, 2)):
        run, graphs = compiled(function)
        for _ in range(2):
            for w in (AsyncCollectiveTensor(base), base):
                assert flat(run(x, w)) == flat(function(x, w))
        assert len(graphs) == count
