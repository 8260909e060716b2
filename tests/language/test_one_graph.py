"""Programs that are captured whole: fullgraph=True raises nothing, and they do what they do uncompiled."""

from __future__ import annotations

import abc
import collections
import functools
import typing
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from outcome import Describer

import fusee

Make = Callable[[], tuple[Any, ...]]
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Make, ...]]] = {}
KEY = typing.TypeVar("KEY")
Pair = collections.namedtuple("Pair", "left right")


def calls(*arguments: Make) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program with functions that make its arguments afresh, one for each call."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = (function, arguments)
        return function

    return register


class Typed(typing.NamedTuple):
    """Its own subscript must not hide the fields."""

    left: torch.Tensor
    right: torch.Tensor

    def __getitem__(self, index: Any) -> Any:
        return Typed(self.left[index], self.right[index])


@calls(lambda: (Pair(torch.ones(2), torch.zeros(2)),), lambda: (Typed(torch.ones(2), torch.zeros(2)),))
def named_fields(pair: Any) -> Any:
    return pair.left + pair.right, type(pair)(pair.right, pair.left)


@calls(lambda: (torch.ones(2),))
def named_class_by_instance(x: Any) -> Any:
    pair = Pair(x, x + 1)
    return pair.__class__(*(item * 2 for item in pair))


class Adder:
    def __new__(cls, *_: Any) -> Any:
        return object.__new__(cls)

    def __init__(self) -> None:
        self.amount = 5


@calls(lambda: (torch.ones(2),))
def own_new(x: Any) -> Any:
    return x + Adder().amount


class Doubling:
    """A data descriptor that can only be written through."""

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__["field"] += value * 2


class Owner:
    field = Doubling()

    def __init__(self) -> None:
        self.__dict__["field"] = 0


@calls(lambda: (torch.ones(2), Owner()))
def write_only_descriptor(x: Any, owner: Any) -> Any:
    owner.field = 10
    return x + owner.field, owner.__dict__["field"]


class Renaming:
    def __init__(self) -> None:
        self.value = 3

    def __getattribute__(self, name: str) -> Any:
        if name == "missing":
            raise AttributeError(name)
        return super().__getattribute__("value" if name == "alias" else name)

    def __getattr__(self, name: str) -> Any:
        return 7


@calls(lambda: (torch.ones(2), Renaming()))
def both_attribute_hooks(x: Any, renaming: Any) -> Any:
    return x * renaming.alias + renaming.missing


class Everything(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return instance != 3


class Any1(metaclass=Everything):
    pass


@calls(lambda: (torch.ones(2),))
def instance_check_of_a_metaclass(x: Any) -> Any:
    return (
        x,
        isinstance(3, Any1),
        isinstance(4, Any1),
        isinstance(Any1(), Any1),
        isinstance(4, int | str),
        isinstance([], int | str),
    )


@calls(lambda: (torch.ones(2), {KEY: torch.ones(2), int: 3, Pair: 4, torch.add: 5}))
def keys_that_are_objects(x: Any, table: Any) -> Any:
    return (
        x + table[KEY],
        table[int],
        table.get(Pair),
        torch.add in table,
        str in table,
        len(table),
        list(table.values())[1:],
    )


@calls(lambda: (torch.ones(2),))
def functions_in_a_set(x: Any) -> Any:
    chosen = frozenset({torch.add, torch.Tensor.sigmoid, len})
    return x, torch.add in chosen, torch.mul in chosen, torch.Tensor.sigmoid in chosen, len in chosen


@calls(lambda: (torch.ones(2),))
def type_hints(x: Any) -> Any:
    hints = [
        list[torch.Tensor],
        torch.Tensor | list[int],
        typing.Annotated[int, 3],
        typing.Literal["a"],
        dict[str, KEY],
    ]
    return x, hints, isinstance(x, torch.Tensor | list)


@calls(lambda: (torch.ones(2, 3), functools.partial(max, 2)))
def attributes_of_builtin_objects(x: Any, bound: Any) -> Any:
    made = functools.partial(min, 1)
    names = [cls.__name__ for cls in type(x).__mro__]
    return (
        x,
        names,
        hasattr(bound, "__name__"),
        hasattr(made, "__name__"),
        bound.func is max,
        torch.Size([3, 4]).numel(),
        x.shape.numel(),
    )


@calls(lambda: (torch.ones(2), torch.ones(2).int(), torch.ones(2) + 0j))
def questions_as_functions(x: Any, i: Any, c: Any) -> Any:
    return x + torch.numel(x), torch.is_floating_point(i), torch.is_floating_point(x), torch.is_complex(c)


@calls(
    lambda: (
        torch.arange(4.0).reshape(2, 2) - 1.5,
        torch.zeros(2, 2),
        torch.zeros(2, 2),
        (torch.zeros(2), torch.zeros(2)),
    )
)
def results_written_to_arguments(x: Any, a: Any, b: Any, rows: Any) -> Any:
    torch.positive(x)
    torch.unbind_copy(x, out=rows)
    return torch.abs(x, out=a), torch.add(x, 1, out=b.T)


class Instances(collections.OrderedDict[str, Any]):
    """Makes an object of what it holds."""

    def __getitem__(self, key: str) -> Any:
        kind, arguments = super().__getitem__(key)
        return kind(**arguments)

    def __missing__(self, key: str) -> Any:
        return (dict, {"missing": key})

    def __contains__(self, key: Any) -> bool:
        return key != "never"


@calls(lambda: (torch.ones(2), Instances(relu=(torch.nn.ReLU, {"inplace": False}))))
def methods_of_a_dict_subclass(x: Any, table: Any) -> Any:
    return table["relu"](x), table["other"], "never" in table, "any" in table, len(table)


@calls(lambda: (torch.ones(2), [1, 2, 3, 1]))
def searches_within_bounds(x: Any, items: Any) -> Any:
    return x, items.index(1, 1), items.index(3, -3, 4), (1, 2, 1).index(1, 1), tuple(items).count(1)


@calls(lambda: (torch.ones(2),))
def wrapped_with_annotations(x: Any) -> Any:
    def scaled(y: torch.Tensor, by: int = 3) -> torch.Tensor:
        """Times by."""
        return y * by

    @functools.wraps(scaled)
    def outer(*args: Any) -> Any:
        return scaled(*args)

    return outer(x), outer.__annotations__, outer.__name__, outer


@calls(lambda: (torch.ones(2, 3) - 2,))
def operator_objects(x: Any) -> Any:
    return torch.ops.aten.absolute(x), torch.ops.aten.unsqueeze.default(x, 1), torch.ops.aten.add.Tensor(x, x, alpha=2)


@calls(lambda: (torch.ones(2),))
def imports_of_loaded_modules(x: Any) -> Any:
    import outcome
    from outcome import ITEMS

    return x + ITEMS, outcome.ITEMS


class Mapping:
    def __init__(self, **items: Any) -> None:
        self.items = items

    def keys(self) -> Any:
        return self.items.keys()

    def __getitem__(self, key: str) -> Any:
        return self.items[key] + 1


@calls(lambda: (torch.ones(2), Mapping(a=1, b=2)))
def mappings_spread(x: Any, mapping: Any) -> Any:
    return x, dict(**mapping), {**mapping, "b": 5}, Mapping(**mapping).items, len.__class__.__name__


@calls(lambda: (torch.ones(2), frozenset([torch.add, len])))
def struct_sequences_and_functions_in_sets(x: Any, functions: Any) -> Any:
    made = torch.return_types.linalg_qr((2 * x, x - 1))
    return tuple(made), made, torch.add in functions, torch.mul in functions


@calls(lambda: (torch.ones(2), torch.zeros(2)))
def weak_references(x: Any, y: Any) -> Any:
    reference = weakref.ref(x)
    return reference() + y, reference() is x, reference() is None


class Shape(abc.ABC):  # noqa: B024 - isinstance asks it, nobody implements it
    pass


@Shape.register
class Registered:
    pass


class Counting(type):
    """Accepts whatever it is asked about, and notes it."""

    asked: typing.ClassVar[list[Any]] = []

    def __subclasscheck__(cls, other: Any) -> Any:
        Counting.asked.append(other)
        return "yes"


class Counted(metaclass=Counting):
    pass


@calls(lambda: (Adder, torch.ones(2)), lambda: (int, torch.ones(2)))
def subclass_checks(cls: Any, x: torch.Tensor) -> Any:
    Counting.asked.clear()
    found = [issubclass(cls, int | str), issubclass(cls, Adder | float), issubclass(cls, (str, (bytes, Adder)))]
    found += [
        issubclass(Registered, Shape),
        issubclass(cls, Shape),
        issubclass(cls, torch.Tensor),
        issubclass(bool, cls),
    ]
    found += [issubclass(cls, Counted), issubclass(Counted, Counted), len(Counting.asked)]
    for wrong in ((1, int), (int, 1), (int, (str, 1))):
        try:
            issubclass(*wrong)
        except TypeError as error:
            found.append(str(error))
    return x + 1, found


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_one_graph_does_as_plain(name: str) -> None:
    function, makers = PROGRAMS[name]
    fusee.reset()
    compiled = fusee.compile(function, fullgraph=True)
    for make in [*makers, makers[0]]:
        given, taken = make(), make()
        with warnings.catch_warnings():
            warnings.simplefilter("error", fusee.FuseeWarning)
            expected, result = function(*given), compiled(*taken)
        assert Describer()((result, taken)) == Describer()((expected, given))


def test_objects_that_become_one() -> None:
    """A set or dict of objects compared by identity notices at the next call that two of them are one."""
    shared = torch.ones(2)

    def count(a: Any, b: Any) -> Any:
        return a + len({shared, a, b}), len({a: 1, b: 2})

    compiled = fusee.compile(count, fullgraph=True)
    x, y = torch.zeros(2), torch.zeros(2)
    for pair in ((x, y), (x, x), (shared, x), (y, x), (shared, shared)):
        assert Describer()(compiled(*pair)) == Describer()(count(*pair))


def test_errors_of_wrong_calls() -> None:
    class Odd:
        def __bool__(self) -> Any:
            return 1.5

    def keyword(x: Any) -> Any:
        return isinstance(x, torch.Tensor, invalid=True)  # type: ignore[call-arg]

    def truth(x: Any) -> Any:
        return x if Odd() else -x

    for function in (keyword, truth):
        with pytest.raises(TypeError) as expected:
            function(torch.ones(2))
        with pytest.raises(TypeError) as raised:
            fusee.compile(function)(torch.ones(2))
        assert str(raised.value) == str(expected.value)


def test_own_attributes_written_in_c_are_left_to_python() -> None:
    import threading

    local = threading.local()

    def write(x: Any, place: Any) -> Any:
        place.kept = x
        return x + 1

    x = torch.ones(2)
    assert torch.equal(fusee.compile(write)(x, local), x + 1)
    assert local.kept is x


def test_weak_reference_to_a_result() -> None:
    def both(x: Any) -> Any:
        y = x * 2
        return weakref.ref(y), y

    reference, y = fusee.compile(both, fullgraph=True)(torch.ones(2))
    assert reference() is y
