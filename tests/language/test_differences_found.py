"""Small programs that random ones were reduced to when they differed from plain Python."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from outcome import run

import fusee


def a_key_that_is_there(x: int, table: dict[int, int]) -> Any:
    if x not in table:
        raise ValueError(x)
    return x


class Answering(type):
    def __getattr__(cls, name: str) -> str:
        return name


class Counting(metaclass=Answering):
    total = 0

    @classmethod
    def counted(cls) -> int:
        cls.total += 1
        return cls.total


def a_subclass_gets_an_attribute_of_its_own() -> int:
    class Sub(Counting):
        pass

    return Sub.counted() + Sub.counted()


class Inheriting(Counting):
    pass


def counted_in_the_subclass() -> int:
    return Inheriting.counted()


@dataclasses.dataclass(frozen=True)
class Fixed:
    n: int
    m: int = 2


def the_hash_that_a_method_returns(n: int) -> int:
    return hash(Fixed(n))


def a_key_leaves_an_ordered_dict(table: OrderedDict[str, int]) -> None:
    table["b"] = 2
    table["c"] = 3
    del table["b"]


def assigned_to_all_of_itself(x: torch.Tensor) -> torch.Tensor:
    x[...] = x.squeeze()
    return x


def a_type_that_cannot_hold_the_result(x: torch.Tensor) -> None:
    x.mul_(2)


def unused_beyond_its_memory(x: torch.Tensor) -> int:
    return x.as_strided((2,), (1,)).stride(0)


def detached(x: torch.Tensor) -> Any:
    return x.detach(), x.data[0]


def caught_in_place_on_a_view_of_a_leaf(x: torch.Tensor) -> Any:
    try:
        x[1] *= 3
    except RuntimeError as error:
        return str(error)


def in_place_on_one_of_several_views(x: torch.Tensor) -> None:
    for row in x:
        row.add_(1)


def a_deleted_parameter(x: int) -> int:
    del x
    return x  # noqa: F821 - that it raises is what is tested


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Stack(list[Any]):
    def push(self, item: Any) -> Stack:
        self.append(item)
        return self


def kept_as_they_are(stack: Stack, table: OrderedDict[Any, Any]) -> Any:
    table.setdefault(Level.LOW, Level.HIGH)
    stack.insert(0, Level.LOW)
    return stack.push(Level.HIGH), Stack([1]).push(Level.HIGH)


class Sized(type):
    def __len__(cls) -> int:
        return 4


class Measured(metaclass=Sized):
    pass


def the_length_of_classes(x: int) -> Any:
    try:
        return len(Measured), len(Counting)  # type: ignore[arg-type]
    except TypeError as error:
        return x, len(Measured), str(error)


def a_generator_ends_with_the_loop(x: int, log: list[int]) -> None:
    def walk() -> Any:
        try:
            yield x
        finally:
            log.append(x)

    for item in walk():
        log.append(item + missing)  # type: ignore[has-type] # noqa: F821 - that it raises is what is tested
    missing = x  # noqa: F841


class Record:
    def __init__(self) -> None:
        self.a, self.b = 1, 2


def deleted_and_set_again(record: Record) -> Record:
    del record.a
    record.c = 3  # type: ignore[attr-defined]
    record.a = 4
    return record


def made_deleted_and_set_again() -> Record:
    return deleted_and_set_again(Record())


def sizes_that_do_not_fit(x: torch.Tensor, log: list[str]) -> Any:
    try:
        return x.index_add_(0, torch.tensor(1), torch.ones(4))
    except RuntimeError as error:
        log.append(str(error))


def caught_in_place_of_a_type_that_it_refuses(x: torch.Tensor, log: list[str]) -> Any:
    try:
        return x.relu_()
    except NotImplementedError as error:
        log.append(str(error))


def on_elements_that_overlap(x: torch.Tensor, log: list[str]) -> Any:
    try:
        return x.add_(1)
    except RuntimeError as error:
        log.append(str(error))


@fusee.disable
def halves(x: torch.Tensor) -> Any:
    return x.unbind()


def in_place_on_views_made_elsewhere(x: torch.Tensor, log: list[str]) -> None:
    for row in halves(x):
        try:
            row.add_(1)
        except RuntimeError as error:
            log.append(str(error))


def a_set_spread_into_a_list(x: list[int]) -> Any:
    x.extend({item % 5 for item in x})
    return [*set(x)], x


def a_product_of_types_that_do_not_fit(x: torch.Tensor, log: list[str]) -> Any:
    try:
        return 3 + (x @ torch.ones(3, 3))
    except RuntimeError as error:
        log.append(str(error))


def less_a_large_int(x: float) -> Any:
    return torch.ones(2) * 2 if x - 2**62 != 0 else x


def leaf() -> torch.Tensor:
    return torch.ones(2, 3).requires_grad_()


class Parent:
    def name(self) -> tuple[str, ...]:
        return ("parent",)


class Child(Parent):
    def name(self) -> tuple[str, ...]:
        return "child", *super().name()


def a_method_of_an_object_that_is_no_instance(value: Any) -> Any:
    return Child.name(value)


def super_of_an_object_that_is_no_instance(value: Any) -> Any:
    return super(Child, value).name()


class Counted(type):
    made = 0

    def __call__(cls, *arguments: Any) -> Any:
        Counted.made += 1
        return super().__call__(*arguments), Counted.made


class Item(metaclass=Counted):
    def __init__(self, n: int) -> None:
        self.n = n


def instances_that_a_metaclass_makes(n: int) -> Any:
    (first, _), (second, _) = Item(n), Item(n + 1)
    return first.n, second.n, type(second) is Item


CALLS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (a_key_that_is_there, [(0, {}), (0, {0: 1}), (0, {}), (1, {0: 1}), (1, {1: 1})]),
    (a_subclass_gets_an_attribute_of_its_own, [()]),
    (the_hash_that_a_method_returns, [(0,), (1,), (-1,)]),
    (a_key_leaves_an_ordered_dict, [(OrderedDict(a=1),)]),
    (assigned_to_all_of_itself, [(torch.arange(3.0).view(1, 3),)]),
    (a_type_that_cannot_hold_the_result, [(torch.tensor([True, False]),), (torch.arange(2),)]),
    (unused_beyond_its_memory, [(torch.tensor(1),), (torch.arange(2),)]),
    (detached, [(leaf(),)]),
    (caught_in_place_on_a_view_of_a_leaf, [(leaf(),), (torch.ones(2, 3),)]),
    (in_place_on_one_of_several_views, [(leaf(),), (torch.ones(2, 3),)]),
    (a_deleted_parameter, [(1,)]),
    (kept_as_they_are, [(Stack(), OrderedDict())]),
    (the_length_of_classes, [(1,)]),
    (a_generator_ends_with_the_loop, [(1, [])]),
    (deleted_and_set_again, [(Record(),)]),
    (a_set_spread_into_a_list, [([4, 2, 1, 0],)]),
    (made_deleted_and_set_again, [()]),
    (sizes_that_do_not_fit, [(torch.ones(2), [])]),
    (caught_in_place_of_a_type_that_it_refuses, [(torch.tensor(True), []), (torch.ones(2), [])]),
    (on_elements_that_overlap, [(torch.ones(1, 3).expand(2, 3), [])]),
    (in_place_on_views_made_elsewhere, [(leaf(), []), (torch.ones(2, 3), [])]),
    (a_product_of_types_that_do_not_fit, [(torch.ones(3, dtype=torch.int64), [])]),
    (a_method_of_an_object_that_is_no_instance, [(1,), (Child(),), (Parent(),)]),
    (super_of_an_object_that_is_no_instance, [(1,), (Child(),), (Parent(),)]),
    (instances_that_a_metaclass_makes, [(1,), (2,)]),
    (less_a_large_int, [(1.5,), (2.5,), (2.0**62,), (3,)]),
]


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")  # what runs as plain Python is the same anyway
@pytest.mark.parametrize(("function", "calls"), CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_same_as_plain(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    fusee.reset()
    compiled = fusee.compile(function)
    for arguments in calls:
        assert run(compiled, arguments, {}, __file__) == run(function, arguments, {}, __file__)


def test_an_attribute_set_on_a_subclass_behind_a_metaclass_is_read_from_it() -> None:
    compiled = fusee.compile(counted_in_the_subclass)
    assert [compiled() for _ in range(4)] == [1, 2, 3, 4]


def test_a_dataclass_made_in_a_function_breaks_once() -> None:
    def made(n: int) -> Any:
        @dataclasses.dataclass
        class Made:
            n: int

        return Made(n).n

    fusee.reset()
    before = fusee.stats()["breaks"]
    assert fusee.compile(made)(3) == 3
    assert fusee.stats()["breaks"] - before < 12  # one for each capture; following it took a dozen for the first alone


def test_seeding_is_left_to_python() -> None:
    """Without a GPU it writes down a traceback for each kind of device that may be set up later."""

    def draw(n: int) -> torch.Tensor:
        torch.manual_seed(n)
        return torch.rand(3) + 1

    function, before = fusee.compile(draw), fusee.stats()["breaks"]
    for n in (1, 2, 1):
        assert torch.equal(function(n), draw(n))
    assert fusee.stats()["breaks"] - before < 12  # one for each capture; following it took a dozen for the first alone


def test_a_context_manager_made_outside_is_left_and_capture_goes_on() -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def manager(swallow: bool) -> Iterator[int]:
        try:
            yield len(log)
        except ValueError:
            if not swallow:
                raise
        finally:
            log.append("left")

    def leave(x: torch.Tensor, context: Any) -> torch.Tensor:
        context.__exit__(None, None, None)
        return x.sin() + len(log)

    def within(x: torch.Tensor, context: Any, fail: bool) -> torch.Tensor:
        with context as entered:
            x = x.cos() + entered
            if fail:
                raise ValueError("wanted")
        return x.sin() + len(log)

    graphs = []

    def backend(module: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(module)
        return module.forward

    def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
        log.clear()
        try:
            return function(*arguments).tolist(), list(log)
        except ValueError as error:
            return str(error), list(log)

    x = torch.ones(2)
    entered = [manager(True), manager(True)]
    for context in entered:
        context.__enter__()
    assert outcome(fusee.compile(leave, backend=backend), x, entered[0]) == outcome(leave, x, entered[1])
    assert len(graphs) == 1
    compiled = fusee.compile(within, backend=backend)
    for swallow, fail in ((True, False), (True, True), (False, True), (False, False)):
        assert outcome(compiled, x, manager(swallow), fail) == outcome(within, x, manager(swallow), fail)


def test_hooks_registered_in_a_capture_have_handles_of_their_own() -> None:
    """A class of torch counts them in a number of its own."""

    def registered(layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        for scale in (2, 3):
            layer.register_forward_pre_hook(lambda _, arguments, scale=scale: (arguments[0] * scale,))
        return layer(x)

    compiled, plain = torch.nn.Identity(), torch.nn.Identity()
    function = fusee.compile(registered)
    for _ in range(3):
        assert torch.equal(function(compiled, torch.ones(2)), registered(plain, torch.ones(2)))
    assert len(compiled._forward_pre_hooks) == 6


class _Finished:
    def __init__(self) -> None:
        self.finished = True


class _AskedInPlain(_Finished):
    def __init__(self, x: torch.Tensor, names: dict[str, int]) -> None:
        self.found: list[Any] = []
        for name in names.items():
            if _all_positive(x):
                self.found.append(name)
        super().__init__()


class _AskedInClosure(_Finished):
    def __init__(self, x: torch.Tensor, names: dict[str, int]) -> None:
        self.found: list[Any] = []
        self.kept = lambda: self.found
        for name in names.items():
            if _all_positive(x):
                self.kept().append(name)
        super().__init__()


def _all_positive(x: torch.Tensor) -> bool:
    return bool((x > 0).all())


@pytest.mark.parametrize("kind", [_AskedInPlain, _AskedInClosure])
def test_super_behind_breaks_of_deeper_frames(kind: Any) -> None:
    """It looks for self in the first variable, which continuations have others ahead of; a closure may share self."""

    def made(x: torch.Tensor) -> Any:
        one = kind(x, {"a": 1, "b": 2})
        return one.finished, one.found, (x + 1).tolist()

    assert fusee.compile(made)(torch.ones(2)) == made(torch.ones(2))


def reshaped(a: torch.Tensor) -> list[torch.Tensor]:
    copied = (a * 2).t().reshape(-1)
    viewed = copied.view(2, 3)
    copied += 1
    return [copied, viewed, (a + 1).t().flatten(), a.reshape(-1), a.t().reshape(-1)]


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_reshaped_copies_are_no_views(gradients: bool, dynamic: bool) -> None:
    """What reshape makes of a copy has no base, unlike what it makes of memory that it can view."""
    compiled = fusee.compile(reshaped, dynamic=dynamic)
    for given in (torch.arange(6.0).view(2, 3), torch.arange(6.0).view(3, 2).t()):
        ours, plain = given.clone().requires_grad_(gradients), given.clone().requires_grad_(gradients)
        results, expected = compiled(ours), reshaped(plain)
        assert [result._base is None for result in results] == [result._base is None for result in expected]
        assert [result.stride() for result in results] == [result.stride() for result in expected]
        assert all(map(torch.equal, results, expected))
        if gradients:
            (results[0] * results[2]).sum().backward()
            (expected[0] * expected[2]).sum().backward()
            assert ours.grad is not None and plain.grad is not None and torch.equal(ours.grad, plain.grad)
