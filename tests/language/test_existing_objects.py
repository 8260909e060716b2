"""Objects whose class, order or number the program asks for, and keys that hash by a method."""

from __future__ import annotations

import dataclasses
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import pytest
import torch

import fusee


@runtime_checkable
class Going(Protocol):
    def go(self) -> int: ...


@runtime_checkable
class Sized(Protocol):
    size: int

    def go(self) -> int: ...


class Goer:
    def go(self) -> int:
        return 1


class SizedByInstance(Goer):
    def __init__(self) -> None:
        self.size = 3


class Blocked(SizedByInstance):
    go = None  # type: ignore[assignment]


class GoesByInstance:
    def __init__(self) -> None:
        self.go = lambda: 2


@Going.register
class Registered:
    pass


@pytest.mark.parametrize("protocol", [Going, Sized])
@pytest.mark.parametrize("make", [Goer, SizedByInstance, Blocked, GoesByInstance, Registered, int, list])
def test_isinstance_by_a_protocol_is_one_graph(protocol: Any, make: Callable[[], Any]) -> None:
    fusee.reset()
    thing = make()

    def program(x: Any) -> Any:
        return x + 1, isinstance(thing, protocol)

    assert fusee.compile(program, fullgraph=True)(torch.ones(2))[1] is isinstance(thing, protocol)


@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("kind", [torch.BoolStorage, torch.FloatStorage])
def test_isinstance_asks_the_metaclass_of_a_library(kind: Any) -> None:
    legacy: Any = torch.BoolStorage
    storage = legacy.from_buffer(bytearray(4), "big")

    def program(x: Any) -> Any:
        return x + 1, isinstance(storage, kind)

    assert fusee.compile(program)(torch.ones(2))[1] is isinstance(storage, kind)


def test_range_from_outside_is_one_graph() -> None:
    def program(x: Any, numbers: Iterator[int]) -> Any:
        return x + next(numbers)

    whole, compiled = fusee.compile(program, fullgraph=True), fusee.compile(program)
    for start, step in ((1, 2), (1, 2), (2, 2), (2, 3)):
        numbers = iter(range(start, 9, step))
        function = whole if start == 1 else compiled
        assert torch.equal(function(torch.zeros(1), numbers), torch.tensor([float(start)]))
        assert list(numbers) == list(range(start, 9, step))[1:]


def test_id_of_a_tensor_that_a_module_holds_is_guarded() -> None:
    class Chooser(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.full((2,), 2.0)

        def forward(self, x: Any, wanted: int) -> Any:
            return x * self.scale if wanted == id(self.scale) else x

    model = Chooser()
    compiled = fusee.compile(model, fullgraph=True)
    first = model.scale
    for scale in (first, torch.full((2,), 3.0), first):
        model.scale = scale
        for wanted in (id(first), id(model)):
            assert torch.equal(compiled(torch.ones(2), wanted), model(torch.ones(2), wanted))


def test_new_objects_have_no_weak_references_until_the_program_makes_one() -> None:
    def program(x: Any) -> Any:
        thing: Any = Goer()
        return x + 1 if thing.__weakref__ is None else x - 1

    def watched(x: Any) -> Any:
        thing: Any = Goer()
        reference = weakref.ref(thing)
        return x + 1 if thing.__weakref__ is reference else x - 1

    x = torch.ones(2)
    assert torch.equal(fusee.compile(program, fullgraph=True)(x), program(x))
    assert torch.equal(fusee.compile(watched)(x), watched(x))


@dataclasses.dataclass(frozen=True)
class Inner:
    x: float
    name: str = "inner"


@dataclasses.dataclass(frozen=True)
class Outer:
    inner: Inner
    count: int


def test_keys_that_hold_objects_with_a_hash_of_their_own() -> None:
    def program(x: Any) -> Any:
        table = {Outer(Inner(2.5), 1): 1, Outer(Inner(2.5), 2): 2, (Inner(1.0), 3): 3, (1, "a"): 4}
        seen: set[Any] = {(Inner(1.0), (Inner(2.0), -1)), (1, "a")}
        hashes = [hash(Outer(Inner(-0.5), -1)), hash((Inner(1.0), 2**70, "text", ())), hash((Inner(1.0),))]
        found = [table.get(key) for key in (Outer(Inner(2.5), 2), Outer(Inner(2.5), 3), (Inner(1.0), 3), (1, "a"))]
        return x + 1, found, hashes, (Inner(1.0), (Inner(2.0), -1)) in seen, (Inner(1.0), Inner(2.0)) in seen

    assert fusee.compile(program, fullgraph=True)(torch.ones(2))[1:] == program(torch.ones(2))[1:]


class Output(OrderedDict[str, Any]):
    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(self[key] for key in self)


def test_order_of_an_existing_ordered_dict_is_guarded() -> None:
    def program(output: Output) -> Any:
        return output.to_tuple()[0] + 1, list(output)

    def made(moved: str | None) -> Output:
        output = Output(a=torch.zeros(1), b=torch.ones(1), c=torch.ones(1) * 2)
        if moved:
            output.move_to_end(moved)
        return output

    whole, compiled = fusee.compile(program, fullgraph=True), fusee.compile(program)
    assert torch.equal(whole(made(None))[0], torch.ones(1))
    for moved in (None, "a", "c", "b"):
        found, expected = compiled(made(moved)), program(made(moved))
        assert torch.equal(found[0], expected[0])
        assert found[1] == expected[1]


Pair = namedtuple("Pair", "first second")


class OpenPair(Pair):
    kind = "open"


class DoublingPair(Pair):
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value * 2)


def attempt(pair: Any, name: str, value: Any) -> str:
    try:
        setattr(pair, name, value)
    except AttributeError as error:
        return str(error)
    return "written"


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("cls", [OpenPair, DoublingPair, Pair])
@pytest.mark.parametrize("name", ["first", "kind", "extra"])
def test_attributes_of_tuples_are_written_as_their_class_says(cls: Any, name: str, existing: bool) -> None:
    def program(x: Any, pair: Any) -> Any:
        pair = pair or cls(1, 2)
        outcome = attempt(pair, name, 3)
        return x + 1, outcome, getattr(pair, name, None), pair

    fusee.reset()
    expected = program(torch.ones(2), cls(1, 2))[1:]
    compiled = fusee.compile(program)
    for _ in range(2):
        given = cls(1, 2) if existing else None
        found = compiled(torch.ones(2), given)[1:]
        assert found == expected
        assert getattr(found[2], "__dict__", None) == getattr(expected[2], "__dict__", None)
        assert found[2] is given or not existing


def test_an_attribute_of_an_existing_tuple_is_one_graph_and_guarded() -> None:
    def program(x: Any, pair: Any) -> Any:
        pair.extra = x * getattr(pair, "scale", 1)
        return pair

    compiled = fusee.compile(program, fullgraph=True)
    for scale in (None, 2, 3, None):
        pair = OpenPair(1, 2)
        if scale is not None:
            pair.scale = scale  # type: ignore[attr-defined]
        assert compiled(torch.ones(2), pair) is pair
        assert torch.equal(pair.extra, torch.full((2,), float(scale or 1)))


class Marked(torch.Tensor):
    pass


class Keeping(torch.Tensor):
    def __init__(self, x: Any) -> None:
        self.kept = 5


def wrapped(x: Any) -> Any:
    return torch.abs(Marked(x))


def wrapped_and_changed(x: Any) -> Any:
    made = Keeping(x)
    made.mul_(2)
    return made, made.kept, x + 1


def given_gradient(x: Any) -> Any:
    made = x + 10
    made.grad = x
    made.note = 42
    return made, made.grad


def changed_gradient(x: Any) -> Any:
    made = x + 10
    made.grad = x * 2
    made.mul_(2)
    made.grad.add_(1)
    return made


def gradient_taken_away(x: Any) -> Any:
    made = x + 10
    made.grad = x
    made.grad = None
    return made, made.grad is None


def told(result: Any) -> list[Any]:
    results = result if isinstance(result, tuple) else (result,)
    return [
        (type(item), str(item), str(getattr(item, "grad", None)), str(getattr(item, "__dict__", 0))) for item in results
    ]


@pytest.mark.parametrize(
    "program",
    [wrapped, wrapped_and_changed, given_gradient, changed_gradient, gradient_taken_away],
    ids=lambda f: f.__name__,
)
def test_new_tensors_with_a_class_or_a_gradient_are_one_graph(program: Callable[[Any], Any]) -> None:
    compiled = fusee.compile(program, fullgraph=True)
    for _ in range(2):
        x, again = torch.arange(-2.0, 3.0), torch.arange(-2.0, 3.0)
        assert told(compiled(x)) == told(program(again))
        assert torch.equal(x, again)


def test_a_gradient_of_another_shape_is_refused() -> None:
    def program(x: Any) -> Any:
        made = x + 10
        try:
            made.grad = x[:1]
        except RuntimeError:
            return made, "refused"
        return made, "taken"

    assert fusee.compile(program)(torch.ones(4))[1] == "refused"
