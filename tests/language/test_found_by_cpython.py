"""Small programs that CPython's own tests of the language were reduced to when they differed under capture."""

from __future__ import annotations

import functools
import gc
import itertools
import os
import types
import weakref
from collections import ChainMap, Counter, namedtuple
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from outcome import run

import fusee


def a_tee_that_its_own_items_enter_again() -> Any:
    class Entering:
        first = True

        def __iter__(self) -> Entering:
            return self

        def __next__(self) -> Any:
            first, self.first = self.first, False
            return next(other) if first else None

    one, other = itertools.tee(Entering())
    with pytest.raises(RuntimeError, match="tee"):
        next(one)
    return next(one)


class Captured:
    def given(self, *arguments: Any, **named: Any) -> Any:
        return type(self).__name__, arguments, named

    unbound = functools.partialmethod(given, 1)
    of_a_partial = functools.partialmethod(functools.partial(given, c=6), 7)


def partial_methods_of_a_class() -> Any:
    held = Captured()
    return Captured.unbound(held, 5), Captured.of_a_partial(held, 5, d=8), held.of_a_partial(5)


def getting_a_function() -> Any:
    def function(value: Any) -> Any:
        return value

    found = [function.__get__(None, int) is function, types.FunctionType.__get__(function, None, int) is function]
    try:
        function.__get__(None, None)
    except TypeError as error:
        return found, str(error), function.__get__(1)(), function.__get__(2, int)()


class Meta(type):
    pass


class WithSlots:
    __slots__ = ("held",)


def members_of_a_metaclass() -> Any:
    kept = tuple(cls for cls in Meta.__mro__ if cls not in (type, object))
    return kept, Meta.__base__, Meta.__flags__, Meta.__dictoffset__, type(WithSlots.held).__name__


def documentation_that_is_handed_on() -> Any:
    def wrapped(value: int) -> int:
        """A text that CPython keeps once."""
        return value

    @functools.wraps(wrapped)
    def wrapper(other: str) -> str:
        return other

    return [getattr(wrapper, name) is getattr(wrapped, name) for name in functools.WRAPPER_ASSIGNMENTS]


def strict_zips_of_unlike_lengths() -> Any:
    found: list[Any] = []
    for lists in ([[1, 2], [1]], [[1], [1, 2]], [[1], [1], [1, 2]], [[1, 2], [1, 2], [1]], [[1], [1]]):
        walkers = [iter(items) for items in lists]
        try:
            found.extend(zip(*walkers, strict=True))
        except ValueError as error:
            found.append(str(error))
        found.append([list(walker) for walker in walkers])
    return found


def a_strict_zip_that_raises_behind_a_break() -> Any:
    zipped = zip([1, 2, 3], [4, 5], strict=True)
    first = next(zipped)
    os.getpid()
    try:
        return first, list(zipped)
    except ValueError as error:
        return first, str(error)


def counters_compared() -> Any:
    one, other = Counter(a=3, b=2, c=0), Counter("ababa")
    plain = {"a": 3, "b": 2}
    return one == other, one < other, one > other, one != other, one <= other, other == plain, plain == other


def counters_made_behind_a_break() -> Any:
    made = []
    for text in ("aab", "b", ""):
        os.getpid()
        made.append(Counter(text))
        made[-1].__init__(text)  # type: ignore[misc]
    return made


def operators_of_a_subclass_that_defines_none() -> Any:
    class Subclass(ChainMap[Any, Any]):
        pass

    return type(ChainMap() | Subclass()) is ChainMap, type(Subclass() | ChainMap()) is Subclass


def a_generic_named_tuple() -> Any:
    made: Any = namedtuple("made", "key group")
    generic = made[int, list[int]]
    return generic.__origin__ is made, type(generic(1, [2])) is made


class Held:
    pass


def kept_under(mapping: dict[Any, Any], key: Any, value: Any) -> int:
    mapping[weakref.ref(key, None)] = value
    return len(mapping)


def keys_that_only_a_frame_holds() -> Any:
    return kept_under({}, Held(), 2), kept_under(cast(Any, weakref.WeakKeyDictionary()).data, Held(), 3)


def entries_of(mapping: Any, first: Any, second: Any) -> int:
    mapping[first] = 1
    mapping[second] = 2
    return len(mapping)


def a_mapping_with_weak_keys() -> Any:
    return entries_of(weakref.WeakKeyDictionary(), Held(), Held())


def a_weak_reference_across_a_break() -> Any:
    held = Held()
    reference = weakref.ref(held)
    os.getpid()
    return reference() is None


class Counting:
    def __init__(self) -> None:
        self.hashed = self.compared = 0

    def __hash__(self) -> int:
        self.hashed += 1
        return 42

    def __eq__(self, other: object) -> bool:
        self.compared += 1
        return self is other


def keys_that_count_what_is_asked_of_them() -> Any:
    one, other, third = Counting(), Counting(), Counting()
    table: dict[Any, Any] = {one: 5}
    table.setdefault(other, [])
    popped = table.pop(third, None), table.pop(one)
    return popped, len(table), [(key.hashed, key.compared) for key in (one, other, third)]


def a_dict_that_shrinks_while_it_is_read() -> Any:
    class Clearing:
        def __hash__(self) -> int:
            return 0

        def __eq__(self, other: object) -> bool:
            read.clear()
            return False

    read: dict[Any, Any] = {1: 1, 2: 2, Clearing(): 0}
    target: dict[Any, Any] = {Clearing(): 0, 1: 1}
    try:
        target.update(read)
    except RuntimeError as error:
        return str(error), len(target), len(read)


def names_of_a_class_set_anew() -> Any:
    class Named:
        pass

    Named.__name__ = "Other"
    found = Named.__name__, Named.__qualname__.rpartition(".")[2]
    Named.__name__ = "Other.inner"
    Named.__qualname__ = "qualified"
    return found, Named.__name__, Named.__qualname__, repr(Named)


def an_error(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return type(function(*arguments)).__name__
    except TypeError as error:
        return str(error)


def arguments_for_new_of_object() -> Any:
    class WithInit:
        def __init__(self, given: Any) -> None:
            self.given = given

    class WithNew:
        def __new__(cls, given: Any) -> Any:
            return object.__new__(cls)

    class Derived(WithNew):
        pass

    class Restored(WithNew):
        __new__ = object.__new__

        def __init__(self, given: Any) -> None:
            self.given = given

    classes = [WithInit, WithNew, Derived, Restored, object]
    return [an_error(object.__new__, cls, 5) for cls in classes], [an_error(cls, 5) for cls in classes]


def operators_of_another_builtin_type() -> Any:
    class Number(int):
        __eq__ = object.__eq__
        __add__ = str.__add__  # type: ignore[assignment]
        __lt__ = str.__lt__  # type: ignore[assignment]
        __xor__ = int.__xor__

    number = Number(1)
    added = an_error(lambda: number + 2), an_error(lambda: number < number), an_error(str.__add__, number, "")  # type: ignore[operator]
    return number == 1, number ^ 3, added


def names_of_variables() -> Any:
    held = 1

    def function() -> int:
        return 2

    first = function() + held, dir()  # the names are asked for
    os.getpid()
    return dir(), sorted(locals()), sorted(vars())


def state_of_named_slots() -> Any:
    class Answering:
        __slotnames__ = ["".join(["ha", "m"])]  # noqa: RUF012

        def __getattr__(self, name: str) -> int:
            if name == "ham":
                return 42
            raise AttributeError(name)

    return cast(Any, Answering().__reduce_ex__(2))[2]


def a_variable_deleted_behind_a_long_loop() -> Any:
    held: Any = None
    for i in range(30000):
        held = (i, i)
    del held
    try:
        return held  # noqa: F821
    except UnboundLocalError as error:
        return str(error)


def types_that_except_cannot_catch() -> Any:
    found: list[Any] = []
    for kind in (42, (ValueError, 42), (KeyError, 42), int, (ValueError, int), ()):
        try:
            try:
                raise ValueError
            except cast(Any, kind):
                found.append("caught")
        except (TypeError, ValueError) as error:
            found.append((type(error).__name__, str(error), type(error.__context__).__name__))
    return found


def mappings_of_views() -> Any:
    table: dict[str, Any] = {}
    mappings = [table.keys().mapping, table.values().mapping, table.items().mapping]
    table["a"] = 1
    return [(dict(mapping), mapping["a"], len(mapping), mapping == table) for mapping in mappings]


def a_class_method_of_a_number() -> Any:
    method = classmethod(cast(Any, 1)).__get__(1)
    os.getpid()
    return an_error(method), cast(Any, method).__func__


def a_class_that_says_it_is_a_partial() -> Any:
    another = type("partial", (), {"__module__": "functools", "__call__": lambda self: "another"})
    held = another()
    os.getpid()
    held.func = 1
    return held.func, held(), another()(), repr(type(held)), another.__name__


def a_class_method_of_a_renamed_function() -> Any:
    def given(cls: type, argument: int) -> str:
        """Documented."""
        return str(argument)

    @classmethod  # type: ignore[misc]
    @functools.wraps(given)
    def wrapper(*arguments: Any) -> Any:
        return given(*arguments)

    held: Any = wrapper
    os.getpid()
    return held.__name__, held.__doc__, held.__qualname__, held.__wrapped__.__name__


class Refusing:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError() if name == "plain" else AttributeError("said", name="own", obj=3)

    @property
    def computed(self) -> Any:
        return self.plain


def what_attribute_errors_were_asked_for() -> Any:
    held, told = Refusing(), []
    for name in ("plain", "other", "computed"):
        try:
            getattr(held, name)
        except AttributeError as error:
            told.append((error.name, error.obj is held, error.args))
    return told


PROGRAMS: list[Callable[[], Any]] = [
    a_tee_that_its_own_items_enter_again,
    partial_methods_of_a_class,
    getting_a_function,
    members_of_a_metaclass,
    documentation_that_is_handed_on,
    strict_zips_of_unlike_lengths,
    a_strict_zip_that_raises_behind_a_break,
    counters_compared,
    counters_made_behind_a_break,
    operators_of_a_subclass_that_defines_none,
    a_generic_named_tuple,
    keys_that_only_a_frame_holds,
    a_mapping_with_weak_keys,
    a_weak_reference_across_a_break,
    keys_that_count_what_is_asked_of_them,
    a_dict_that_shrinks_while_it_is_read,
    names_of_a_class_set_anew,
    arguments_for_new_of_object,
    operators_of_another_builtin_type,
    names_of_variables,
    state_of_named_slots,
    a_variable_deleted_behind_a_long_loop,
    types_that_except_cannot_catch,
    mappings_of_views,
    a_class_method_of_a_number,
    a_class_that_says_it_is_a_partial,
    a_class_method_of_a_renamed_function,
    what_attribute_errors_were_asked_for,
]


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")  # what runs as plain Python is the same anyway
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_same_as_plain(function: Callable[[], Any]) -> None:
    fusee.reset()
    compiled = fusee.compile(function)
    for _ in range(2):
        assert run(compiled, (), {}, __file__) == run(function, (), {}, __file__)


WALKERS: list[Callable[[], Any]] = [
    lambda: itertools.combinations("abcde", 3),
    lambda: itertools.combinations_with_replacement("abcde", 3),
    lambda: itertools.permutations("abcde", 3),
    lambda: itertools.product("abc", "def"),
    lambda: itertools.zip_longest("abc", "def"),
    lambda: zip("abc", "def", strict=True),
    lambda: zip("abc", "def"),  # noqa: B905
    lambda: enumerate("abc"),
]


@pytest.mark.parametrize("walk", WALKERS, ids=lambda walk: type(walk()).__name__)
def test_tuples_that_iterators_use_again(walk: Callable[[], Any]) -> None:
    def identities() -> Any:
        return len(set(map(id, walk()))), len(set(map(id, list(walk()))))

    fusee.reset()
    compiled = fusee.compile(identities)
    assert [compiled(), compiled()] == [identities(), identities()]


class WithValue:
    def __init__(self, value: Any) -> None:
        self.value = value


def changes_of_a_list(one: Any, other: Any) -> Any:
    one.append(1)
    return len(other)


def changes_of_a_dict(one: Any, other: Any) -> Any:
    one["a"] = 2
    return other.get("a")


def changes_of_an_instance(one: Any, other: Any) -> Any:
    one.value = 2
    return other.value


def steps_of_an_iterator(one: Any, other: Any) -> Any:
    return next(one), next(other)


def gradients_taken_away(one: Any, other: Any) -> Any:
    one.grad = None
    return other.grad is None


def a_leaf() -> torch.Tensor:
    leaf = torch.ones(2, requires_grad=True)
    leaf.grad = torch.ones(2)
    return leaf


CHANGED: list[tuple[Callable[[Any, Any], Any], Callable[[], Any]]] = [
    (changes_of_a_list, list),
    (changes_of_a_dict, dict),
    (changes_of_an_instance, lambda: WithValue(1)),
    (steps_of_an_iterator, lambda: iter([1, 2, 3])),
    (gradients_taken_away, a_leaf),
]


@pytest.mark.parametrize(("function", "make"), CHANGED, ids=lambda given: getattr(given, "__name__", ""))
def test_two_objects_that_are_one_at_a_later_call(function: Callable[[Any, Any], Any], make: Callable[[], Any]) -> None:
    fusee.reset()
    compiled = fusee.compile(function)
    for _ in range(2):
        assert compiled(make(), make()) == function(make(), make())
        one, other = make(), make()
        assert compiled(one, one) == function(other, other)


def test_a_static_method_dies_with_its_class() -> None:
    def run() -> list[weakref.ref[Any]]:
        class Owner:
            @staticmethod
            @functools.lru_cache
            def held(x: Any) -> Any:
                return x

        return [weakref.ref(Owner), weakref.ref(Owner.held)]

    fusee.reset()
    references = fusee.compile(run)()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_ranges_of_very_large_integers() -> None:
    outside = range(1 - 2**63, 2**63 - 1, 3)

    def program(x: Any) -> Any:
        inside = range(1 - 2**63, 2**63 - 1)
        found = 1 - 2**63 in inside, 5 in inside, outside[2], 1 - 2**63 in outside, 2**70 in inside
        return x + 1, found, len(range(2**62, 2**62 + 5)), list(range(2**62, 2**62 + 9, 4)), range(3, -(2**63), -1)[4]

    x = torch.ones(1)
    assert fusee.compile(program)(x) == program(x)
