"""What ``fusee.compile`` returns for modules, methods, classes and other callables."""

from __future__ import annotations

import copy
import functools
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import fusee

Use = Callable[..., None]


@pytest.fixture(autouse=True)
def same(scenario: Use) -> None:
    scenario("same")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.register_buffer("count", torch.zeros(()))
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.relu(self.linear(x))


class Registering:
    known: list[str] = []  # noqa: RUF012

    def __init_subclass__(cls, *, tag: str) -> None:
        Registering.known.append(tag)


class Fussy(Registering, nn.Module, tag="fussy"):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def test_state_is_shared() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    fast = fusee.compile(net)
    assert isinstance(fast, nn.Sequential) and len(fast) == 2 and fast[0] is net[0]
    assert list(fast.state_dict()) == list(net.state_dict())
    assert [name for name, _ in fast.named_parameters()] == [name for name, _ in net.named_parameters()]
    fast.eval()
    assert not net.training
    net.extra = 5
    assert fast.extra == 5
    fast.extra = 6
    assert net.extra == 6
    assert repr(fast) == repr(net)


def test_call_gives_the_modules_result_and_state() -> None:
    net = Net()
    fast = fusee.compile(net)
    x = torch.randn(4, 2)
    torch.testing.assert_close(fast(x), net(x))
    assert net.calls == fast.calls == 2


def test_compiled_once_for_all_calls() -> None:
    fast = fusee.compile(Net())
    fast(torch.ones(1, 2))
    entries = fast.forward.__func__.record.entries
    fast(torch.ones(1, 2))
    assert len(entries) == 1 and fast.forward.__func__.record.entries == entries


def test_hooks_run() -> None:
    fast, seen = fusee.compile(Net()), []
    fast.register_forward_hook(lambda module, args, output: seen.append(output))
    result = fast(torch.ones(1, 2))
    assert seen[0] is result


@pytest.mark.parametrize("clone", [copy.deepcopy, copy.copy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_work(clone: Callable[[Any], Any]) -> None:
    net = Net()
    fast = clone(fusee.compile(net))
    x = torch.randn(3, 2)
    torch.testing.assert_close(fast(x), net(x))
    assert isinstance(fast, Net)
    assert list(fast.state_dict()) == list(net.state_dict())


def test_deepcopy_is_independent() -> None:
    fast = fusee.compile(Net())
    other = copy.deepcopy(fast)
    with torch.no_grad():
        other.linear.weight.fill_(7)
    assert not torch.equal(fast.linear.weight, other.linear.weight)


def test_torch_save_and_load() -> None:
    fast, file = fusee.compile(Net()), io.BytesIO()
    torch.save(fast, file)
    file.seek(0)
    back = torch.load(file, weights_only=False)
    x = torch.randn(3, 2)
    torch.testing.assert_close(back(x), fast(x))


def test_init_subclass_of_the_user_does_not_see_the_stand_in() -> None:
    fast = fusee.compile(Fussy())
    torch.testing.assert_close(fast(torch.ones(2)), torch.full((2,), 2.0))
    assert Registering.known == ["fussy"]


def test_compiling_a_compiled_module_starts_from_the_original() -> None:
    net = Net()
    twice = fusee.compile(fusee.compile(net))
    assert type(twice).__mro__.count(Net) == 1
    torch.testing.assert_close(twice(torch.ones(1, 2)), net(torch.ones(1, 2)))


def test_replaced_forward_is_used() -> None:
    net = Net()
    fast = fusee.compile(net)
    net.forward = lambda x: x * 3  # type: ignore[method-assign]
    torch.testing.assert_close(fast(torch.ones(2)), torch.full((2,), 3.0))


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor

    @fusee.compile
    def decorated(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor

    @fusee.compile(dynamic=False)
    def with_arguments(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor

    @staticmethod
    @fusee.compile
    def static(x: torch.Tensor) -> torch.Tensor:
        return x * 5


def test_methods_and_callable_objects() -> None:
    scale, x, expected = Scale(2.0), torch.ones(2), torch.full((2,), 2.0)
    for call in (scale.decorated, scale.with_arguments, fusee.compile(scale), fusee.compile(scale.__call__)):
        torch.testing.assert_close(call(x), expected)
    torch.testing.assert_close(Scale.static(x), x * 5)
    torch.testing.assert_close(fusee.compile(functools.partial(torch.add, alpha=2))(x, x), x * 3)


def test_builtin_functions() -> None:
    torch.testing.assert_close(fusee.compile(torch.relu)(torch.tensor([-1.0, 1.0])), torch.tensor([0.0, 1.0]))


def test_classes() -> None:
    class Local(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 2

    assert fusee.compile(Local) is Local
    torch.testing.assert_close(Local()(torch.ones(1)), torch.tensor([3.0]))


def test_function_keeps_its_names() -> None:
    def named(x: int, *, y: int = 3) -> int:
        "Doc."
        return x + y

    fast = fusee.compile(named)
    assert (fast.__name__, fast.__doc__, fast.__qualname__, fast.__module__) == (
        "named",
        "Doc.",
        named.__qualname__,
        __name__,
    )
    assert fast.__wrapped__ is named
    assert fast(1) == 4 and fast(1, y=5) == 6


def test_disabled_functions_are_left_alone() -> None:
    @torch.compiler.disable
    def by_torch(x: Any) -> Any:
        return x

    @fusee.disable
    def by_fusee(x: Any) -> Any:
        return x

    assert fusee.compile(by_torch) is by_torch
    assert fusee.compile(by_fusee) is by_fusee

    def plain(x: Any) -> Any:
        return x

    assert fusee.compile(plain, disable=True) is plain


def test_disable_as_context_and_decorator() -> None:
    fast = fusee.compile(lambda x: x + 1)
    with fusee.disable():
        assert fast(1) == 2
    assert not fast.record.entries

    @fusee.disable()
    def calls() -> int:
        return fast(2)

    assert calls() == 3 and not fast.record.entries
    assert fast(3) == 4 and len(fast.record.entries) == 1


def test_generators_run_as_they_are() -> None:
    def numbers() -> Any:
        yield 1

    assert list(fusee.compile(numbers)()) == [1]


def test_not_callable() -> None:
    with pytest.raises(TypeError, match="takes a callable, not int"):
        fusee.compile(3)  # type: ignore[call-overload]


def test_markers() -> None:
    assert fusee.graph_break() is None
    assert fusee.is_compiling() is False
    tensor = torch.ones(3, 4)
    fusee.mark_dynamic(tensor, 0)
    assert tensor._dynamo_dynamic_indices == {0}
    fusee.mark_static(tensor, 1)
    assert tensor._dynamo_static_indices == {1}
