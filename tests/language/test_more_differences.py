"""More small programs that random ones were reduced to when they differed from plain Python."""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from outcome import run
from variants import opaque

import fusee


def merged(one: dict[Any, Any], other: dict[Any, Any]) -> Any:
    made = one | other
    return type(made), made, getattr(made, "default_factory", "none"), list(made)


def merged_in_place(one: dict[Any, Any], other: dict[Any, Any]) -> Any:
    one |= other
    return one


def merged_by_its_method(one: dict[Any, Any], other: dict[Any, Any]) -> Any:
    made = one.__or__(other)
    return type(made), made


class Table(defaultdict[Any, Any]):
    pass


class Plain(dict[Any, Any]):
    pass


DICTS = [
    {1: 2, 3: 4},
    defaultdict(int, {3: 5, 7: 8}),
    OrderedDict({3: 6, 9: 1}),
    Counter({3: 7, 11: 1}),
    Table(int, {3: 5, 6: 8}),
    Plain({3: 9, 0: 9}),
]


@pytest.mark.parametrize("function", [merged, merged_in_place, merged_by_its_method])
@pytest.mark.parametrize("left", DICTS, ids=lambda value: type(value).__name__)
def test_merged_dicts_are_of_the_class_whose_operator_python_prefers(
    function: Callable[..., Any], left: dict[Any, Any]
) -> None:
    fusee.reset()
    compiled = fusee.compile(function)
    for right in DICTS:
        assert run(compiled, (left, right), {}, __file__) == run(function, (left, right), {}, __file__)


class Slotted:
    __slots__ = ("__dict__", "a")


def deleting_what_is_not_there(target: Any, log: list[Any]) -> Any:
    for name in ("a", "b"):
        try:
            delattr(target, name)
        except AttributeError as error:
            log.append((error.args, error.name, error.obj))
    try:
        return target.a
    except AttributeError as error:
        return error.args, error.name


class SetOnly:
    def __set__(self, owner: Any, value: Any) -> None: ...


class DeletedOnly:
    def __delete__(self, owner: Any) -> None: ...


class Described:
    one, other = SetOnly(), DeletedOnly()


def with_half_a_descriptor(target: Any, log: list[Any]) -> Any:
    target.one = 1
    del target.other
    for change in (lambda: delattr(target, "one"), lambda: setattr(target, "other", 2)):
        try:
            change()
        except AttributeError as error:
            log.append(error.args)


def stored_under_an_equal_key(table: dict[Any, Any]) -> Any:
    table[2.0] = 7
    return str(table), list(table)


def stored_again_behind_the_others(table: dict[Any, Any]) -> Any:
    table[1] = 7
    for key in (2, 1):
        del table[key]
        table[float(key)] = 1
    return str(table), list(table)


class Remembering(dict[Any, Any]):
    def __missing__(self, key: Any) -> Any:
        self[key] = key
        return key


def a_key_that_only_python_reads(table: dict[Any, Any], key: Any) -> Any:
    return Remembering(table)[opaque(key)], table


def an_attribute_that_breaks_and_is_missing(value: int) -> Any:
    return Falling(value).halved, torch.ones(1).as_subclass(Sharper).halved


def is_set_to_itself(x: torch.Tensor) -> Any:
    return x.is_set_to(x), x.is_set_to(x[:1]), x.clone().is_set_to(x)


def a_huge_index(items: list[int], index: int) -> Any:
    try:
        with contextlib.suppress(TypeError):
            return items[index]
    except IndexError as error:
        return str(error)


class Holder:
    def __init__(self, value: int) -> None:
        self.value = value


class Falling(Holder):
    def __getattr__(self, name: str) -> Any:
        return name, "missing"

    @property
    def halved(self) -> int:
        if opaque(self.value) % 2:
            raise AttributeError("odd")
        return self.value // 2


class Sharper(torch.Tensor):
    def __getattr__(self, name: str) -> Any:
        return name, "missing"

    @property
    def halved(self) -> int:
        raise AttributeError(opaque("half"))


def deleted_set_and_deleted_again(holder: Holder) -> Holder:
    del holder.value
    holder.value = 3
    del holder.value
    return holder


def deleted_twice_and_set(holder: Holder) -> Holder:
    deleted_set_and_deleted_again(holder)
    holder.value = 5
    return holder


class Hashing:
    def __init__(self, value: int, log: list[str]) -> None:
        self.value, self.log = value, log

    def __hash__(self) -> int:
        self.log.append("hash")
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashing) and self.value == other.value


def keys_are_asked_for_their_hash_once(log: list[str], table: dict[Any, int]) -> Any:
    one = Hashing(1, log)
    made = {one: 2, "b": 3}
    table[one] = 1
    return made, defaultdict(int, made), {one: 1, 5: 2} | {}, list({one, 4}), frozenset([one])


def a_key_leaves(log: list[str], table: dict[Any, int]) -> None:
    one = Hashing(1, log)
    table[one] = 1
    del table[one]
    table[Hashing(2, log)] = 1


def expanded_to_a_negative_size(x: torch.Tensor) -> Any:
    return x.sum().expand(0, -1, -1).shape


def copied_onto_part_of_itself(x: torch.Tensor, log: list[int]) -> None:
    x.add_(1)
    x[:1].copy_(x[0, 1])
    log.append(1)
    x.copy_(x[0])


def an_index_into_nothing(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    y.add_(1)
    return x.scatter(0, torch.zeros(1, 3, dtype=torch.long), 2)


@fusee.disable
def cleared(x: torch.Tensor) -> None:
    x.zero_()


def one_of_several_views_of_what_changed(x: torch.Tensor) -> Any:
    z = x * 2
    for row in z.T:
        cleared(z)
        with contextlib.suppress(RuntimeError):
            return row + 1
    return z


def one_of_several_views_behind_a_change(x: torch.Tensor) -> Any:
    z = x * 2
    for row in z:
        z = z + row
    last, z = row, x * 3
    first, second = z.unbind(0)
    z.mul_(3)
    try:
        return last[0], first.shape, second[0]
    except RuntimeError as error:
        return str(error)


def in_grad_mode_behind_a_break_without(x: torch.Tensor, weight: torch.Tensor) -> Any:
    with torch.no_grad():
        opaque(x)
    y = x @ weight
    z = opaque(y).sum()
    z.backward()
    return y, y.is_leaf, weight.grad


def in_grad_mode_within_a_call_without(x: torch.Tensor, weight: torch.Tensor) -> Any:
    with torch.enable_grad():
        y = x @ weight
    return y, y.is_leaf, x * 2


def what_sizes_and_tensors_are(x: torch.Tensor) -> Any:
    kinds = (torch.Tensor, tuple, torch.Size, list, torch.nn.Parameter, object)
    values = (x.shape, x.shape[:1], x + 1, x, torch.Size([1]))
    return [isinstance(value, kind) for value in values for kind in kinds], issubclass(torch.Size, torch.Tensor)


class Further(Holder):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.other = value


def names_in_another_order(owner: Any) -> Any:
    del owner.value
    owner.__dict__.update(value=5)
    owner.__dict__.update(value=6)
    return owner, list(vars(owner)), len(vars(owner))


def computed_twice(number: int) -> Any:
    words = "a" + str(number), "a" + str(number)
    return (
        words[0] is words[1],
        bytes([number]).hex() is bytes([number]).hex(),
        float(str(number)) is float(str(number)),
    )


def gradients_that_nobody_reads(x: torch.Tensor) -> int:
    (x // 2).sum().backward()
    x.grad = None
    return 1


def written_behind_inference_mode(x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        doubled = x.double()
        doubled += 1
    with contextlib.suppress(RuntimeError):
        doubled += 10
    return doubled


CALLS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (deleting_what_is_not_there, [(Slotted(), []), (Holder(1), [])]),
    (with_half_a_descriptor, [(Described(), [])]),
    (what_sizes_and_tensors_are, [(torch.ones(2, 3),)]),
    (stored_under_an_equal_key, [({1: 2, 2: 3, 3: 4},), ({True: 2},)]),
    (stored_again_behind_the_others, [({1: 2, 2: 3, 3: 4},)]),
    (a_key_that_only_python_reads, [({1: 1}, 1), ({3: 1}, True)]),
    (an_attribute_that_breaks_and_is_missing, [(3,), (4,), (5,)]),
    (is_set_to_itself, [(torch.ones(2),)]),
    (computed_twice, [(20,)]),
    (gradients_that_nobody_reads, [(torch.ones(2).requires_grad_(),)]),
    (written_behind_inference_mode, [(torch.ones(2),)]),
    (a_huge_index, [([1, 2], 2**64), ([1, 2], -(2**64)), ([1, 2], 1)]),
    (deleted_set_and_deleted_again, [(Holder(1),)]),
    (deleted_twice_and_set, [(Holder(1),)]),
    (names_in_another_order, [(Further(1),), (Further(2),)]),
    (keys_are_asked_for_their_hash_once, [([], {}), ([], {1: 2})]),
    (a_key_leaves, [([], {})]),
    (expanded_to_a_negative_size, [(torch.ones(2),)]),
    (copied_onto_part_of_itself, [(torch.ones(2, 3), []), (torch.ones(2, 1), [])]),
    (an_index_into_nothing, [(torch.zeros(0, 3), torch.ones(2)), (torch.zeros(1, 3), torch.ones(2))]),
    (one_of_several_views_of_what_changed, [(torch.ones(2, 2, requires_grad=True),)]),
    (one_of_several_views_behind_a_change, [(torch.ones(2, 2, requires_grad=True),), (torch.ones(2, 2),)]),
    (in_grad_mode_behind_a_break_without, [(torch.ones(2, 2), torch.ones(2, 2, requires_grad=True))]),
]


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")  # what runs as plain Python is the same anyway
@pytest.mark.parametrize(("function", "calls"), CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_same_as_plain(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> None:
    fusee.reset()
    compiled = fusee.compile(function)
    for arguments in calls:
        assert run(compiled, arguments, {}, __file__) == run(function, arguments, {}, __file__)


def test_a_checkpoint_in_inference_mode_does_what_eager_does() -> None:
    """Some versions of PyTorch refuse it."""

    def program(linear: torch.nn.Linear, x: torch.Tensor) -> Any:
        with torch.inference_mode(), torch.enable_grad():
            return torch.utils.checkpoint.checkpoint(linear, x, use_reentrant=False)

    fusee.reset()
    given = (torch.nn.Linear(3, 2), torch.ones(2, 3))
    compiled = fusee.compile(program)
    assert run(compiled, given, {}, __file__)[0] == run(program, given, {}, __file__)[0]


def test_backward_goes_again_through_what_kept_nothing() -> None:
    def program(linear: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
        hidden = x + 1
        linear(hidden).sum().backward()
        return hidden

    fusee.reset()
    found: list[torch.Tensor] = []
    for function in (program, fusee.compile(program)):
        torch.manual_seed(0)
        linear, x = torch.nn.Linear(3, 2), torch.ones(2, 3, requires_grad=True)
        found += torch.autograd.grad(function(linear, x).sum(), x)
    assert torch.equal(*found)


def test_a_block_that_turns_gradients_on_is_recorded() -> None:
    fusee.reset()
    compiled = fusee.compile(in_grad_mode_within_a_call_without)
    with torch.no_grad():
        for _ in range(2):
            weight = torch.ones(2, 2, requires_grad=True)
            y, is_leaf, other = compiled(torch.ones(2, 2), weight)
            assert not is_leaf and y.requires_grad and y.grad_fn is not None and not other.requires_grad
            assert torch.equal(torch.autograd.grad(y, weight, torch.ones(2, 2))[0], torch.full((2, 2), 2.0))


def drawn_where_errors_are_caught(weight: torch.Tensor) -> Any:
    try:
        with torch.no_grad():
            weight.uniform_(-1, 1)
        made = torch.nn.Linear(2, 2)
        return weight, made.weight.detach(), made.nothing
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("at_first", [True, False])
def test_what_only_the_host_knows_runs_with_gradients_as_the_program_switched_them(at_first: bool) -> None:
    """Drawing into a leaf is refused with gradients on alone, and a result has a history then alone."""

    def with_gradients(x: torch.Tensor, weight: torch.Tensor) -> Any:
        with torch.set_grad_enabled(not at_first):
            return torch.special.i1e(x * weight), weight.requires_grad

    with torch.set_grad_enabled(at_first):
        outcomes = []
        for compiler in (lambda function: function, fusee.compile):
            weight = torch.nn.Parameter(torch.ones(3))
            torch.manual_seed(0)
            outcomes.append(run(compiler(drawn_where_errors_are_caught), (weight,), {}, __file__))
            result, _ = compiler(with_gradients)(torch.ones(3), weight)
            assert result.requires_grad == (not at_first)
        assert outcomes[0] == outcomes[1]
