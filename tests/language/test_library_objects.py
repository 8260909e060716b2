"""Programs over less common objects of Python and torch are captured whole, and do what they do uncompiled."""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import itertools
import threading
import types
import typing
import warnings
from collections import ChainMap, Counter, OrderedDict, UserList, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch
from outcome import Describer
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.wrap import wrap

import fusee


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def check(function: Callable[..., Any], *makers: Callable[[], tuple[Any, ...]], **options: Any) -> None:
    """Each call gives the same compiled as plain, changes of its arguments included, and nothing breaks."""
    compiled = fusee.compile(function, fullgraph=True, **options)
    for make in [*makers, makers[0]]:
        given, taken = make(), make()
        with warnings.catch_warnings():
            warnings.simplefilter("error", fusee.FuseeWarning)
            expected, result = function(*given), compiled(*taken)
        assert Describer()((result, taken)) == Describer()((expected, given))


def ones() -> tuple[Any, ...]:
    return (torch.ones(2),)


def test_deque_index_within_bounds() -> None:
    def program(x: Any) -> Any:
        items = deque([1, 2, 3, 2])
        places = [items.index(2), items.index(2, 2), items.index(2, -2, 9), items.index(1, 0, 1)]
        try:
            items.index(2, 2, 3)
        except ValueError as error:
            places.append(str(error))
        return x + 1, places

    check(program, ones)


class Pixels(typing.TypedDict):
    kind: str
    data: torch.Tensor


def test_typed_dict() -> None:
    def program(x: Any) -> Any:
        pixels = Pixels(kind="raw", data=x * 2)
        pixels["data"] = pixels["data"] + 1
        return pixels

    check(program, ones)


class Labelled(property):
    def __init__(self, getter: Any, label: str) -> None:
        super().__init__(getter)
        self.label = label


def test_subclass_of_property() -> None:
    def program(x: Any) -> Any:
        made = Labelled(lambda self: self + 1, "one more")
        return made.__get__(x), made.label, isinstance(made, property)

    check(program, ones)


def test_wrapped_call() -> None:
    def program(x: Any, factor: float) -> Any:
        return wrap(lambda y, by: y * by, x, factor)

    check(program, lambda: (torch.ones(2), 2.0), lambda: (torch.ones(2), 3.0))


def test_exception_of_the_program_under_fullgraph() -> None:
    """An exception that leaves the function is no break: Python raises it, at the program's own line."""

    def program(x: Any, count: int) -> Any:
        y = x + 1
        if count > 1:
            raise KeyError(count)
        return y @ torch.ones(3, 1)

    compiled = fusee.compile(program, fullgraph=True)
    with pytest.raises(KeyError, match="5"):
        compiled(torch.ones(2), 5)
    with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied|size"):
        compiled(torch.ones(2), 1)
    assert torch.equal(compiled(torch.ones(3), 1), program(torch.ones(3), 1))


def test_changes_of_grad_mode_alone_make_no_graph() -> None:
    graphs = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    def program(x: Any) -> Any:
        with torch.no_grad():
            fusee.graph_break()
            return x + 1, torch.is_grad_enabled()

    x = torch.ones(2, requires_grad=True)
    result, enabled = fusee.compile(program, backend=backend)(x)
    assert len(graphs) == 1 and not result.requires_grad and not enabled and torch.is_grad_enabled()


class Stack(list[Any]):
    limit = 9

    def __init__(self, items: Any, label: str = "stack") -> None:
        super().__init__(items)
        self.label = label

    def twice(self, item: Any) -> None:
        self.extend([item, item])

    def clear(self) -> None:
        self.label = "cleared"


class Shifted(list[Any]):
    def __len__(self) -> int:
        return super().__len__() + 10

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index) + 1


class Slotted(list[Any]):
    __slots__ = ("mark",)


def stacks(count: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (Stack([torch.ones(2) * k for k in range(count)]), Shifted([1, 2]))


def test_instance_of_a_subclass_of_list() -> None:
    def program(stack: Any, shifted: Any) -> Any:
        stack.twice(stack[0] + 1)
        stack.append(shifted[0])
        stack[0] = stack[1] * 2
        stack.note = len(stack)
        del stack[1]
        stack.clear()
        found = [type(item).__name__ for item in stack]
        return stack, sum(stack[:2]), found, stack.label, stack.limit, len(shifted), list(shifted), shifted == [1, 2]

    check(program, stacks(2), stacks(3))


def test_subclass_of_list_seen_twice() -> None:
    def program(stack: Any, same: Any) -> Any:
        stack.append(torch.zeros(2))
        return len(same), same is stack, same[-1] + 1, isinstance(same, list), not same, repr(Shifted([3]))

    def one() -> tuple[Any, ...]:
        stack = Stack([torch.ones(2)])
        return stack, stack

    check(program, one, lambda: (Stack([torch.ones(2)]), Stack([torch.ones(2)] * 2)))


def test_list_with_slots_is_left_to_python() -> None:
    def program(items: Any) -> Any:
        items.mark = items[0] + 1
        return items.mark, len(items)

    compiled = fusee.compile(program)
    items = Slotted([torch.ones(2)])
    assert torch.equal(compiled(items)[0], torch.full((2,), 2.0)) and torch.equal(items.mark, torch.full((2,), 2.0))


def scaled(x: Any, by: float = 2.0, *rest: Any, **options: Any) -> Any:
    return x * by


def test_signature_of_a_function() -> None:
    def program(x: Any, **options: Any) -> Any:
        signature = inspect.signature(scaled)
        known = set(signature.parameters)
        kinds = [parameter.kind.name for parameter in signature.parameters.values()]
        unknown = [name for name in options if name not in known]
        return x * signature.parameters["by"].default, kinds, unknown, len(signature.parameters)

    compiled = fusee.compile(program, fullgraph=True)
    for options in ({"by": 1.0}, {"other": 2.0}):
        expected, result = program(torch.ones(2), **options), compiled(torch.ones(2), **options)
        assert Describer()(result) == Describer()(expected)


@torch.jit.script
def scripted(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    total = x
    for _ in range(int(x.size(0))):
        total = total * by
    return total


def test_function_of_torchscript_is_one_operation() -> None:
    traced = torch.jit.trace(lambda a, b: a * b + a.size(0), (torch.ones(2), torch.ones(2)))

    def program(x: Any) -> Any:
        return scripted(x) + 1, scripted(x, by=3.0), traced(x, x)

    for backend in ("fusee", "eager"):
        check(program, ones, lambda: (torch.ones(3),), backend=backend)
    check(program, lambda: (torch.ones(2, requires_grad=True),))


LOCAL = threading.local()


def test_dict_of_a_threading_local() -> None:
    def function(x: Any) -> Any:
        namespace = LOCAL.__dict__
        assert "old" in namespace and "new" not in namespace and namespace.get("other") is None
        namespace["new"] = x + namespace["old"]
        del namespace["old"]
        assert not hasattr(LOCAL, "old")
        return LOCAL.new * 3

    results = []
    for called in (function, fusee.compile(function, fullgraph=True)):
        LOCAL.__dict__.clear()
        LOCAL.old = torch.ones(2)
        results.append((called(torch.arange(2.0)), dict(LOCAL.__dict__)))
    assert Describer()(results[0]) == Describer()(results[1])


def test_limits_of_a_type_of_numpy() -> None:
    def function(x: Any) -> Any:
        return x + numpy.iinfo(numpy.int16).max

    check(function, ones)
    graphs = fusee.stats()["graphs"]
    gc.collect()  # what capture asked for the limits is gone, and its entry serves all the same
    compiled = fusee.compile(function)
    for _ in range(3):
        compiled(torch.ones(2))
    assert fusee.stats()["graphs"] == graphs + 1


def _doubled(x: Any, factor: int = 2) -> Any:
    return x * factor


def test_compiled_within() -> None:
    check(lambda x: fusee.compile(_doubled, backend="eager")(x, factor=3) + fusee.compile(_doubled)(x), ones)


def test_compiled_within_and_handed_out() -> None:
    def function(x: Any) -> Any:
        made = fusee.compile(_doubled)
        return made, made(x)

    made, result = fusee.compile(function)(torch.ones(2))
    assert type(made) is type(fusee.compile(_doubled))
    assert torch.equal(result, torch.full((2,), 2.0)) and torch.equal(made(result), torch.full((2,), 4.0))


def test_flags_of_backends_are_read_and_guarded() -> None:
    def program(x: Any) -> Any:
        return torch.einsum("ij,jk->ik", x, x) + (1 if torch.backends.cudnn.enabled else 2)

    compiled = fusee.compile(program, fullgraph=True)
    for enabled in (True, False, True):
        with torch.backends.cudnn.flags(enabled=enabled):
            torch.testing.assert_close(compiled(torch.ones(2, 2)), program(torch.ones(2, 2)))


def test_modules_with_a_getattr_of_their_own() -> None:
    lengths = types.ModuleType("lengths")
    exec(
        "def __getattr__(name):\n    if name == 'missing': raise AttributeError(name)\n    return len(name)",
        vars(lengths),
    )

    def program(x: Any) -> Any:
        try:
            found = lengths.missing
        except AttributeError:
            found = -1
        return x + lengths.abc, found, hasattr(lengths, "missing"), hasattr(lengths, "four")

    compiled = fusee.compile(program, fullgraph=True)
    assert compiled(torch.ones(2))[1:] == program(torch.ones(2))[1:]
    torch.testing.assert_close(compiled(torch.ones(2))[0], program(torch.ones(2))[0])


def test_instances_of_classes_below_others_in_python_are_captured() -> None:
    @contextlib.contextmanager
    def scaled(factor: int) -> Iterator[int]:
        yield factor

    class Parent:
        def __init__(self, factor: int) -> None:
            self.factor = factor

    class Child(Parent):
        pass

    def program(x: Any) -> Any:
        with scaled(3) as factor:
            return x * factor + Child(2).factor

    compiled = fusee.compile(program, fullgraph=True)
    torch.testing.assert_close(compiled(torch.ones(2)), program(torch.ones(2)))


def test_each_call_makes_devices_of_its_own() -> None:
    def devices(x: torch.Tensor, given: torch.device) -> list[torch.device]:
        made = torch.device("cpu")
        return [x.device, x.device, given, made, made]

    def identities(function: Any) -> list[list[int]]:
        found = [device for _ in range(3) for device in function(torch.ones(2), torch.device("cpu"))]
        return [[index for index, other in enumerate(found) if one is other] for one in found]

    fusee.reset()
    assert identities(fusee.compile(devices)) == identities(devices)


def test_iterators_that_their_own_items_ask_for_more() -> None:
    def program(x: Any) -> Any:
        class Numbers:
            count = 0

            def __iter__(self) -> Any:
                return self

            def __next__(self) -> Any:
                self.count += 1
                return next(pairs) if self.count == 2 else self.count

        pairs = itertools.pairwise(Numbers())
        return x + 1, next(pairs), next(pairs)

    assert fusee.compile(program)(torch.ones(2))[1:] == program(torch.ones(2))[1:]


def test_a_text_kept_in_a_table_is_one_object() -> None:
    def program(x: Any, text: str) -> Any:
        known: dict[str, str] = {}
        left, right = text.split(",")
        return x + 1, known.setdefault(left, left), known.setdefault(right, right), 10**6 + len(text)

    _, left, right, _ = fusee.compile(program)(torch.ones(2), "b \xe9,b \xe9")
    assert left is right


@pytest.mark.parametrize("made", [lambda: Counter("aab"), lambda: OrderedDict(a=1), lambda: defaultdict(int, a=1)])
def test_methods_of_a_base_stay_those_across_a_break(made: Callable[[], Any]) -> None:
    def program(held: Any) -> Any:
        behind = super(type(held), held)
        start, size = behind.__init__, behind.__len__
        fusee.graph_break()
        return size(), start.__qualname__, size.__self__ is held

    assert fusee.compile(program)(made()) == program(made())


def test_a_counter_that_is_started_again_counts_further() -> None:
    def program(counter: Any) -> Any:
        counter.__init__("abc")
        return counter

    assert fusee.compile(program)(Counter("aab")) == Counter(a=3, b=2, c=1)


class Answering(defaultdict[str, int]):
    """A dict whose == says more than whether."""

    def __eq__(self, other: object) -> Any:
        return "asked"


@pytest.mark.parametrize(
    "made",
    [
        lambda: (Counter(a=1, b=0), Counter(a=1)),
        lambda: (Counter(a=1), {"a": 1}),
        lambda: ({"a": 1, "b": 0}, Counter(a=1)),
        lambda: (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        lambda: (OrderedDict(a=1, b=2), {"b": 2, "a": 1}),
        lambda: ({}, Answering(int)),
        lambda: (Answering(int), {}),
        lambda: ([Counter(a=1, b=0)], [Counter(a=1)]),
    ],
)
def test_dicts_of_the_library_compare_by_their_own_rules(made: Callable[[], Any]) -> None:
    def existing(left: Any, right: Any) -> Any:
        return left == right, left != right, left in [right]

    def new() -> Any:
        return existing(*made())

    assert fusee.compile(existing)(*made()) == existing(*made())
    assert fusee.compile(new)() == new()


def test_an_inherited_reflected_method_does_not_go_first() -> None:
    class Inherits(ChainMap[str, int]):
        pass

    class Defines(ChainMap[str, int]):
        def __ror__(self, other: Any) -> Any:
            return super().__ror__(other)

    def program() -> Any:
        left: ChainMap[str, int] = ChainMap()
        return [type(left | Inherits()), type(left | Defines()), type(Inherits() | left)]

    assert fusee.compile(program)() == program()


def test_a_reflected_method_goes_before_a_list_that_grows_in_place() -> None:
    def program(items: list[int], more: Any) -> Any:
        grown = items
        grown += more
        return grown, type(grown), items

    assert fusee.compile(program)([1], UserList([2])) == program([1], UserList([2]))
    assert fusee.compile(program)([1], deque([2])) == program([1], deque([2]))


def test_a_relative_import_counts_from_the_package_of_the_module() -> None:
    source = """
def program():
    from .. import mime
    from ..charset import QP
    from .base import MIMEBase
    return QP, MIMEBase, mime
"""
    module: dict[str, Any] = {"__name__": "email.mime.ours", "__package__": "email.mime"}
    importlib.import_module("email.mime.base")
    exec(source, module)
    assert fusee.compile(module["program"], fullgraph=True)() == module["program"]()
    module["__package__"] = "email"
    with pytest.raises(ImportError, match="beyond top-level package"):
        fusee.compile(module["program"])()


def test_a_scan_by_a_function_of_points_is_captured() -> None:
    def combine(*given: torch.Tensor) -> list[torch.Tensor]:
        return [given[0] * given[2], given[2] * given[1] + given[3]]

    def program(decay: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return associative_scan_op(combine, [decay, value], ())[1] * 2

    given = torch.rand(2, 7, 3, dtype=torch.float64, requires_grad=True)
    state, states = torch.zeros(3, dtype=torch.float64), []
    for decay, value in zip(*given, strict=True):
        state = decay * state + value
        states.append(state * 2)
    wanted = torch.stack(states)
    result = fusee.compile(program, fullgraph=True)(*given)
    torch.testing.assert_close(result, wanted)
    gradients = [torch.autograd.grad(values.square().sum(), given)[0] for values in (result, wanted)]
    torch.testing.assert_close(*gradients)


def test_lists_of_modules_are_walked_backwards() -> None:
    layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])

    def program(x: torch.Tensor, stops: bool) -> Any:
        for number, layer in enumerate(reversed(layers)):
            x = layer(x) + number
            if stops:
                fusee.graph_break()
        return x, list(reversed(layers)), list(reversed(torch.nn.ModuleList()))

    x = torch.rand(2)
    for stops in (False, True):
        given, walked, none = fusee.compile(program, fullgraph=not stops)(x, stops)
        torch.testing.assert_close(given, program(x, stops)[0], rtol=0, atol=0)
        assert (walked, none) == (list(layers)[::-1], [])
