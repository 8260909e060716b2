"""Programs that are captured whole: fullgraph=True raises nothing, and they do what they do uncompiled."""

from __future__ import annotations

import abc
import collections
import copy
import functools
import gc
import threading
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


@calls(lambda: (torch.ones(2),))
def byte_arrays(x: Any) -> Any:
    made = bytearray(b"xyz")
    match made:
        case [120, 121, 122]:
            matched = "a sequence"
        case 120:
            matched = "a number"
        case bytearray(same):
            matched = same is made
    first, *rest = made
    text: Any = b"xyz"
    equal = made == text, text == made, made == bytearray([120, 121, 122]), made == "xyz", made == [120, 121, 122]
    within = 121 in made, b"yz" in made, bool(bytearray()), len(made), sum(made)
    return x + first, matched, rest, equal, within, made, made[1], made[::-1], bytearray(2), bytearray(range(3))


@calls(lambda: (torch.ones(2),), lambda: (torch.ones(2, requires_grad=True) * 2,))
def made_parameter(x: Any) -> Any:
    made = torch.nn.Parameter(x.clone(), requires_grad=False)
    made.add_(1)
    kinds = isinstance(made, torch.nn.Parameter), type(made) is torch.nn.Parameter, type(made * 2) is torch.Tensor
    return x * made, made, kinds, made.requires_grad, made.is_leaf, [made, made * 2]


class DescribedProperty(property):
    """Its own text hides that of a property's getter, unless the instance has it."""


@calls(lambda: ())
def texts_of_properties() -> Any:
    class Holder:
        @DescribedProperty
        def described(self) -> int:
            """Of the getter."""
            return 1

    return Holder.described.__doc__, Holder().described


@calls(lambda: ())
def hash_from_an_address() -> Any:
    class Group(set):  # type: ignore[type-arg]
        def __hash__(self) -> int:  # type: ignore[override]
            return int(id(self) & 0x7FFFFFFF)

    group = Group()
    groups = {group}
    first = group in groups
    groups.remove(group)
    second = group in groups
    groups.add(group)
    return first, second, len(groups), {group: 3}[group]


class Text(str):
    """A text that tells more than its letters."""


@calls(lambda: (torch.ones(2), Text("a1b")), lambda: (torch.ones(2), Text("c")))
def text_of_a_class(x: Any, text: Any) -> Any:
    return x * len(text), list(text), text.upper(), {"a", "1"}.issubset(text), text[0], text.split("1")


class Base:
    pass


class First(Base):
    pass


class Second(Base):
    pass


@calls(lambda: (torch.ones(2),))
def subclasses_of_a_class(x: Any) -> Any:
    return x + 1, Base.__subclasses__(), [cls.__name__ for cls in Base.__subclasses__()], First.__subclasses__()


class Config(dict[str, Any]):
    """Items as attributes, and attributes of its own."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __missing__(self, key: str) -> str:
        return key + "!"

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.__dict__["stores"] = self.__dict__.get("stores", 0) + 1


class PlainConfig(dict[str, Any]):
    pass


@calls(
    lambda: (torch.ones(2), Config(offset=5), PlainConfig(a=1, b=2)),
    lambda: (torch.ones(2), Config(offset=6), PlainConfig(b=2, a=1)),
)
def dicts_of_classes(x: Any, config: Any, plain: Any) -> Any:
    y = x + config.offset
    config["new"] = y
    config["offset"] = 7
    plain["q"] = 3
    plain.extra = 4
    del plain["a"]
    found = config["gone"], config.get("gone"), "new" in config, isinstance(config, dict), config.stores
    return y, found, list(config), len(plain), {**plain}, sorted(plain.items()), plain.extra, dict(config)


@calls(lambda: (torch.ones(2, 3, 4),))
def element_that_was_given(x: Any) -> Any:
    one, half = torch.tensor(1), torch.tensor(0.1)
    return x.reshape(-1, x.shape[one]), half.item(), int(one), float(half), bool(one), one.tolist(), x + one


class Marked(torch.nn.Module):
    def forward(self, x: Any, expected: int) -> Any:
        return x * 2 if id(self) == expected else x * 3


MARKED = Marked()


@calls(lambda: (torch.ones(2), MARKED, id(MARKED)), lambda: (torch.ones(2), MARKED, 5))
def number_of_an_object(x: Any, module: Any, expected: int) -> Any:
    return module(x, expected), id(Marked) % 1000, id(module) - id(module)


@calls(lambda: (torch.ones(2),))
def recorded_warnings(x: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        y = x.sin()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return y + x.cos(), caught, len(warnings.filters) > 0


@calls(lambda: (torch.ones(2, requires_grad=True),))
def grad_mode_set_again(x: Any) -> Any:
    torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    y = x * 2
    torch.set_grad_enabled(False)
    z = x * 3
    torch.set_grad_enabled(True)
    return y, z, torch.is_grad_enabled()


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


def test_attributes_of_a_thread() -> None:
    local = threading.local()
    local.factor = 2

    def write(x: Any, place: Any) -> Any:
        place.kept = x * place.factor
        return place.kept + 1, hasattr(place, "absent")

    compiled, x = fusee.compile(write, fullgraph=True), torch.ones(2)
    assert Describer()(compiled(x, local)) == Describer()((x * 2 + 1, False))
    assert torch.equal(local.kept, x * 2)

    def elsewhere() -> None:
        local.factor, local.absent = 3, None
        found.append(compiled(x, local))

    found: list[Any] = []
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert Describer()(found) == Describer()([(x * 3 + 1, True)])
    assert torch.equal(local.kept, x * 2)


def test_warnings_are_given_behind_the_graph() -> None:
    def inner(x: Any, level: int) -> Any:
        warnings.warn("inner", DeprecationWarning, stacklevel=level)
        return x * 2

    def outer(x: Any) -> Any:
        warnings.warn("outer", stacklevel=1)
        return inner(x, 1) + inner(x, 2) + inner(x, 3)

    def seen(function: Any) -> list[Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = function(torch.ones(2))
        return [result.tolist(), *((w.category, str(w.message), w.filename, w.lineno) for w in caught)]

    compiled = fusee.compile(outer, fullgraph=True)
    assert [seen(compiled), seen(compiled)] == [seen(outer), seen(outer)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        with pytest.raises(DeprecationWarning, match="inner"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fusee.compile(outer)(torch.ones(2))


def test_a_check_that_fails_raises_its_own_error() -> None:
    def checked(x: Any) -> Any:
        torch._check(x.shape[0] > 3, lambda: f"{x.shape[0]} is too few")
        return x + 1

    compiled = fusee.compile(checked, fullgraph=True)
    assert torch.equal(compiled(torch.ones(4)), torch.ones(4) + 1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"^2 is too few$"):
            compiled(torch.ones(2))


def test_deterministic_algorithms() -> None:
    def change(x: Any) -> Any:
        before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(not before[0], warn_only=True)
        return x + 1, before, torch.are_deterministic_algorithms_enabled()

    compiled = fusee.compile(change, fullgraph=True)
    try:
        for mode, warn_only in ((True, True), (True, False), (False, True), (False, False), (True, True)):
            torch.use_deterministic_algorithms(mode, warn_only=warn_only)
            result = compiled(torch.ones(2))
            assert result[1:] == ((mode, warn_only), not mode)
            assert torch.are_deterministic_algorithms_enabled() is not mode
            assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_weak_reference_to_a_result() -> None:
    def both(x: Any) -> Any:
        y = x * 2
        return weakref.ref(y), y

    reference, y = fusee.compile(both, fullgraph=True)(torch.ones(2))
    assert reference() is y


def test_a_new_subclass_is_noticed() -> None:
    class Root:
        pass

    def names(x: Any) -> Any:
        return x + 1, [cls.__name__ for cls in Root.__subclasses__()], Root.__subclasses__()

    compiled = fusee.compile(names, fullgraph=True)
    assert compiled(torch.ones(2))[1:] == ([], [])
    kept = [type("One", (Root,), {})]
    assert compiled(torch.ones(2))[1:] == (["One"], kept)
    kept[0] = type("Other", (Root,), {})
    gc.collect()
    assert compiled(torch.ones(2))[1:] == (["Other"], kept)


def test_backends_get_a_graph_of_what_is_handed_through() -> None:
    """What only returns a tensor that it was given has a graph without operations; what returns none has none."""
    graphs: list[list[str]] = []

    def backend(module: torch.fx.GraphModule, _inputs: list[Any]) -> Callable[..., Any]:
        graphs.append([node.op for node in module.graph.nodes])
        return module.forward

    x = torch.ones(2)
    first = fusee.compile(lambda a, _b: functools.reduce(torch.add, [a]), backend=backend, fullgraph=True)
    assert first(x, 3) is x and graphs == [["placeholder", "output"]]
    assert fusee.compile(lambda a, b: (a, b)[1], backend=backend, fullgraph=True)(x, 3) == 3
    assert fusee.compile(lambda a: a, backend=backend)(x) is x
    assert len(graphs) == 1


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 2)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor, options: dict[str, torch.Tensor]) -> dict[str, Any]:
        assert isinstance(self.calls, torch.Tensor)
        self.calls.add_(1)
        return {"scaled": self.inner(x) * options["by"], "others": (x.sum(), self.calls + 1)}


def test_exported_programs_are_one_graph() -> None:
    """They flatten what they are given, and check it within options of Dynamo's own."""
    fusee.reset()
    arguments = (torch.randn(4, 3), {"by": torch.tensor(2.0)})
    exported = torch.export.export(Scaled(), arguments)
    plain = exported.module()
    compiled = fusee.compile(copy.deepcopy(plain), fullgraph=True)
    for _ in range(2):
        expected, found = plain(*arguments), compiled(*arguments)
        torch.testing.assert_close(found, expected)
    assert fusee.stats()["graphs"] == 1
