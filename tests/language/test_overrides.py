"""Subclasses of torch.Tensor and other classes with ``__torch_function__``: captured whole, and as eager does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import fusee

LOG: list[Any] = []


class Plain(torch.Tensor):
    """Nothing of its own: results are of this class."""

    scale = 10

    def twice(self) -> Any:
        return self * 2

    @property
    def middle(self) -> Any:
        return self.shape[0] // 2


class Deeper(Plain):
    pass


class Swapping(torch.Tensor):
    """Computes exp where sigmoid is asked for, and notes what it sees."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append((func.__name__, [kind.__name__ for kind in types], len(args), sorted(kwargs or {})))
        if func in (torch.Tensor.sigmoid, torch.sigmoid):
            func = torch.exp
        return super().__torch_function__(func, types, args, kwargs or {})


class Unwrapping(torch.Tensor):
    """Gives plain tensors."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Wrapper:
    """No tensor at all."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*[arg.inner if isinstance(arg, Wrapper) else arg for arg in args], **(kwargs or {}))


class Shaped(torch.Tensor):
    """Hides what torch.Tensor defines."""

    @property
    def shape(self) -> Any:
        if not hasattr(self, "kept_shape"):
            self.kept_shape = self.size()
        return self.kept_shape

    def ndim(self) -> int:
        return 42


def made(cls: Any, gradient: bool = False) -> Any:
    return torch.arange(4.0).reshape(2, 2).requires_grad_(gradient).as_subclass(cls)


def operators(x: Any) -> Any:
    return (
        x + 1,
        2 * x,
        1 - x,
        x @ x,
        -x,
        x > 1,
        x[0],
        x.sum(),
        torch.add(x, x, alpha=2),
        x.T,
        torch.cat([x, x]),
        x.max(0),
    )


def methods(x: Any) -> Any:
    return (
        x.twice(),
        x.middle,
        x.scale,
        x.sigmoid(),
        torch.sigmoid(x),
        torch.relu(x),
        torch.nn.functional.softmax(x, dim=-1),
    )


def swapped(x: Any) -> Any:
    y = x.sigmoid() + 1
    return y, torch.sigmoid(x), x.size(), x.dtype, torch.stack([x, y])


def mixed(x: Any) -> Any:
    return x + torch.ones(2, 2), torch.ones(2, 2) + x, x.as_subclass(torch.Tensor) + 1 if type(x) is torch.Tensor else x


def wrapped(x: Any) -> Any:
    return torch.add(Wrapper(x), 1.0, alpha=2.0), torch.mul(x, Wrapper(x))


def in_place(x: Any) -> Any:
    y = x.clone()
    y.add_(1)
    y.note = "kept"
    return y, y.note, type(y).__name__


def disabled(x: Any) -> Any:
    with torch._C.DisableTorchFunctionSubclass():
        y = x + 1
    return y, x + 1


def hidden(x: Any) -> Any:
    shape = x.shape
    return x + x.ndim(), shape, x.kept_shape


CASES: list[tuple[Callable[..., Any], Any]] = [
    (operators, Plain), (operators, Deeper), (operators, Unwrapping), (methods, Plain), (methods, Deeper),
    (swapped, Swapping), (mixed, Plain), (mixed, Swapping), (wrapped, torch.Tensor), (in_place, Plain),
    (disabled, Plain), (disabled, Swapping), (hidden, Shaped),
]  # fmt: skip


def facts(value: Any) -> Any:
    """Types and contents."""
    if isinstance(value, torch.Tensor):
        plain = value.as_subclass(torch.Tensor)
        own = {name: facts(item) for name, item in vars(value).items()}
        return type(value).__qualname__, plain.tolist(), plain.requires_grad, own
    if isinstance(value, (tuple, list)):
        return type(value).__qualname__, [facts(item) for item in value]
    return value


@pytest.fixture(autouse=True)
def no_warnings(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    """A program that runs as plain Python shows nothing."""
    yield
    assert not [str(w.message) for w in recwarn if issubclass(w.category, fusee.FuseeWarning)]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("backend", ["fusee", "eager", lambda gm, _: gm.forward])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[1].__name__}")
def test_captured_as_eager(case: tuple[Callable[..., Any], Any], backend: Any, gradient: bool) -> None:
    function, cls = case
    compiled = fusee.compile(function, fullgraph=True, backend=backend)
    for _ in range(2):
        LOG.clear()
        given = made(cls, gradient)
        expected, seen = facts(function(given)), list(LOG)
        LOG.clear()
        taken = made(cls, gradient)
        assert facts(compiled(taken)) == expected
        assert seen == LOG
        assert facts(taken) == facts(given)


def test_a_break_inside_the_guard_enters_it_in_python() -> None:
    def broken(x: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            y = x + 1
            fusee.graph_break()
            z = y * 2
        return x, z, x * 3

    x = made(Plain)
    assert facts(fusee.compile(broken)(x)) == facts(broken(x))


def test_super_of_a_tensor_behind_a_break() -> None:
    class Kept(torch.Tensor):
        @staticmethod
        def __new__(cls: Any, data: Any, note: str) -> Any:
            return data.as_subclass(cls)

        def __init__(self, data: Any, note: str) -> None:
            super().__init__()
            self.note = note

    kept = Kept.__new__(Kept, torch.ones(2), "x")
    fusee.compile(Kept.__init__)(kept, torch.ones(2), "x")
    assert kept.note == "x"


def test_attributes_of_plain_tensors() -> None:
    def write(x: Any, y: Any) -> Any:
        x.other = y
        z = x * 2
        z.origin = x
        return z, x.other + 1

    x, y = torch.ones(2), torch.zeros(2)
    z, after = fusee.compile(write, fullgraph=True)(x, y)
    assert x.other is y and z.origin is x and after.tolist() == [1, 1]


def test_lazy_modules_are_captured_once_they_have_shapes() -> None:
    model = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.ReLU(), torch.nn.LazyLinear(1))
    fusee.reset()
    compiled = fusee.compile(lambda x: model(x) + 1, fullgraph=True)
    x = torch.randn(3, 5)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), model(x) + 1)
    assert fusee.stats()["graphs"] == 1


class _Passing(torch.overrides.BaseTorchFunctionMode):
    """Only calls the functions that it is asked about."""


class _Doubling(torch.overrides.BaseTorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {})) * 2


def test_modes_that_only_call_the_function() -> None:
    graphs = []

    def backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(module)
        return module.forward

    def add(x: torch.Tensor) -> torch.Tensor:
        return torch.add(x, 1) + torch._C._len_torch_function_stack()

    compiled = fusee.compile(add, backend=backend)
    x = torch.ones(3)
    for made, modes in (
        (1, []),
        (2, [_Passing()]),
        (3, [_Passing(), _Passing()]),
        (3, [_Passing()]),
        (3, [_Doubling()]),
    ):
        with contextlib.ExitStack() as stack:
            for mode in modes:
                stack.enter_context(mode)
            expected, found = add(x), compiled(x)
        assert torch.equal(found, expected)
        assert len(graphs) == made
    with _Doubling(), torch._C.DisableTorchFunction():
        assert torch.equal(compiled(x), add(x))
    assert len(graphs) == 4


def test_a_mode_whose_method_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = fusee.compile(lambda x: torch.add(x, 1))
    x = torch.ones(3)
    with _Passing():
        assert torch.equal(compiled(x), x + 1)
        monkeypatch.setattr(_Passing, "__torch_function__", lambda mode, func, types, args=(), kwargs=None: "asked")
        assert compiled(x) == "asked"


def test_what_only_modes_see_is_no_constant_under_them() -> None:
    def asked(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
        return x + 1, torch.overrides.has_torch_function((x,))

    compiled = fusee.compile(asked)
    with _Passing():
        assert compiled(torch.ones(2))[1] is True
    assert compiled(torch.ones(2))[1] is False


def test_without_one_graph_under_modes_python_runs() -> None:
    def pop(x: torch.Tensor) -> torch.Tensor:
        mode = torch._C._pop_torch_function_stack()
        torch._C._push_on_torch_function_stack(mode)
        return x + 1

    compiled = fusee.compile(pop, fullgraph=True)
    with _Passing():
        for _ in range(2):
            assert torch.equal(compiled(torch.ones(2)), torch.ones(2) + 1)


def test_default_device_that_stays_the_cpu() -> None:
    def change(x: torch.Tensor, device: str | None) -> tuple[torch.Tensor, torch.Tensor]:
        torch.set_default_device(None)
        torch.set_default_device("cpu")
        y = torch.ones(2)
        torch.set_default_device(device)
        return x + 1, y

    compiled = fusee.compile(change, fullgraph=True)
    try:
        for device, modes in (("cpu", 1), (None, 0)):
            torch.set_default_device(None)
            assert torch.equal(compiled(torch.ones(2), device)[0], torch.ones(2) + 1)
            assert torch._C._len_torch_function_stack() == modes
            assert torch.get_default_device() == torch.device("cpu")
    finally:
        torch.set_default_device(None)
