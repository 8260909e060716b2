"""Guard programs: every accessor and check, on both ways of reading tensors."""

from __future__ import annotations

import builtins
import math
import operator
from collections import OrderedDict, deque
from types import CellType, FunctionType, ModuleType
from typing import Any

import pytest
import torch
from helpers import metadata, node, tensor_check
from hypothesis import given
from hypothesis import strategies as st

from fusee import _shim


def plain() -> None:
    """A function whose globals are this module's."""


def holds(tree: Any, *bound: Any, function: Any = plain) -> bool:
    program = _shim.GuardProgram((tree,), 0)
    outcome = program.check(function, bound) is not None
    again = program.check(function, bound) is not None
    number, _ = program.explain(function, bound)
    assert outcome == again == (number == -1)
    return outcome


class Plain:
    """Keeps its attributes inline until something asks for the dict."""

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


class Slots:
    __slots__ = ("x",)

    def __init__(self, x: int) -> None:
        self.x = x


class Computed:
    count = 0

    @property
    def value(self) -> int:
        Computed.count += 1
        return 7

    @property
    def broken(self) -> int:
        raise ValueError("not for guards")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class DictSubclass(dict[str, int]):
    def __getitem__(self, key: str) -> int:
        raise AssertionError("guards read the dict itself")


class TestAccessors:
    def test_argument(self) -> None:
        assert holds(node(("arg", 1), ("is", None)), 0, None)
        assert not holds(node(("arg", 1), ("is", None)), None, 0)
        assert not holds(node(("arg", 2)), 0, 0)

    def test_function(self) -> None:
        assert holds(node(("function",), ("is", plain)))

    def test_global_then_builtins(self) -> None:
        assert holds(node(("global", "math"), ("is", math)))
        assert holds(node(("global", "len"), ("is", len)))
        assert not holds(node(("global", "no such name")))

    def test_global_follows_changes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        program = _shim.GuardProgram((node(("global", "len"), ("is", len)),), 0)
        space: dict[str, Any] = {"__builtins__": builtins}
        function = FunctionType(plain.__code__, space)
        assert program.check(function, ()) == ()
        space["len"] = max
        assert program.check(function, ()) is None
        del space["len"]
        assert program.check(function, ()) == ()
        monkeypatch.setattr(builtins, "len", max)
        assert program.check(function, ()) is None
        monkeypatch.undo()
        assert program.check(function, ()) == ()

    def test_global_of_another_function(self) -> None:
        program = _shim.GuardProgram((node(("global", "x"), ("equals", 1)),), 0)
        first, second = (FunctionType(plain.__code__, {"x": value}) for value in (1, 2))
        for _ in range(3):
            assert program.check(first, ()) == ()
            assert program.check(second, ()) is None

    def test_cell(self) -> None:
        value: Any = 3

        def inner() -> Any:
            return value

        assert inner.__closure__ is not None
        (cell,) = inner.__closure__
        assert holds(node(("cell", 0), ("equals", 3)), function=inner)
        cell.cell_contents = 4
        assert not holds(node(("cell", 0), ("equals", 3)), function=inner)
        del cell.cell_contents
        assert not holds(node(("cell", 0)), function=inner)
        assert not holds(node(("cell", 0)))
        assert not holds(node(("cell", 1)), function=inner)

    def test_contents(self) -> None:
        tree = node(("arg", 0), children=(node(("contents",), ("equals", 3)),))
        assert holds(tree, CellType(3))
        assert not holds(tree, CellType())
        assert not holds(tree, 3)

    def test_object(self) -> None:
        target = Plain(x=1)
        tree = node(("object", target), children=(node(("field", "x"), ("equals", 1)),))
        assert holds(tree)
        target.x = 2
        assert not holds(tree)

    def test_attribute(self) -> None:
        tree = node(("arg", 0), children=(node(("attr", "value"), ("equals", 7)),))
        before = Computed.count
        assert holds(tree, Computed())
        assert Computed.count == before + 3
        assert not holds(tree, Plain())

    def test_attribute_error_fails_the_guard(self) -> None:
        tree = node(("arg", 0), children=(node(("attr", "broken")),))
        assert not holds(tree, Computed())

    def test_attribute_of_a_module(self) -> None:
        module = ModuleType("m")
        tree = node(("arg", 0), children=(node(("attr", "x"), ("equals", 1)),))
        assert not holds(tree, module)
        module.x = 1  # type: ignore[attr-defined]
        assert holds(tree, module)
        module.x = 2  # type: ignore[attr-defined]
        assert not holds(tree, module)
        module.__getattr__ = lambda name: 1  # type: ignore[method-assign]
        del module.x
        assert holds(tree, module)

    def test_attribute_of_a_module_is_not_that_of_its_dict(self) -> None:
        program = _shim.GuardProgram((node(("arg", 0), children=(node(("attr", "pi")),)),), 0)
        assert program.check(plain, (math,)) == ()
        assert program.check(plain, (vars(math),)) is None

    def test_attribute_that_drops_its_own_container(self) -> None:
        class Hostile:
            def __init__(self, box: list[Any]) -> None:
                self.box = box

            def __getattr__(self, name: str) -> int:
                self.__dict__["box"].clear()
                return 1

        box: list[Any] = []
        box.append((Hostile(box), [1, 2, 3]))
        tree = node(
            ("arg", 0),
            children=(
                node(
                    ("item", 0),
                    children=(
                        node(("item", 0), children=(node(("attr", "gone"), ("equals", 1)),)),
                        node(("item", 1), ("len", 3)),
                    ),
                ),
            ),
        )
        assert _shim.GuardProgram((tree,), 0).check(plain, (box,)) == ()
        assert box == []

    def test_field_leaves_values_inline(self) -> None:
        target = Plain(a=1, b=2)
        tree = node(("arg", 0), children=(node(("field", "b"), ("equals", 2)),))
        assert holds(tree, target)
        assert not holds(tree, Plain(a=1))
        assert not holds(tree, Plain(b=3))
        assert target.__dict__ == {"a": 1, "b": 2}
        assert holds(tree, target)
        target.__dict__["b"] = 3
        assert not holds(tree, target)

    def test_field_ignores_descriptors_and_the_class(self) -> None:
        assert not holds(node(("arg", 0), children=(node(("field", "value")),)), Computed())
        assert not holds(node(("arg", 0), children=(node(("field", "x")),)), Slots(1))
        assert not holds(node(("arg", 0), children=(node(("field", "x")),)), 3)

    def test_field_of_types_functions_modules_and_variable_size_objects(self) -> None:
        class Wide(tuple[int, ...]):
            pass

        wide = Wide((1, 2, 3))
        wide.mark = 5  # type: ignore[attr-defined]
        assert holds(node(("arg", 0), children=(node(("field", "mark"), ("equals", 5)),)), wide)
        assert holds(node(("arg", 0), children=(node(("field", "count"), ("equals", Computed.count)),)), Computed)
        assert holds(node(("arg", 0), children=(node(("field", "pi"), ("equals", math.pi)),)), math)

        def function() -> None: ...

        function.mark = 5  # type: ignore[attr-defined]
        assert holds(node(("arg", 0), children=(node(("field", "mark"), ("equals", 5)),)), function)

    def test_many_instances_and_key_tables(self) -> None:
        program = _shim.GuardProgram((node(("arg", 0), children=(node(("field", "z"), ("equals", 9)),)),), 0)
        shapes = [Plain(z=9), Plain(a=1, z=9), Plain(z=9, b=2), Plain(a=1, b=2, c=3, z=9)]
        for _ in range(3):
            for shape in shapes:
                assert program.check(plain, (shape,)) == ()
            assert program.check(plain, (Plain(a=9),)) is None

    def test_dict_key_and_items(self) -> None:
        target = Plain(a=1, b="x")
        children = (node(("key", "a"), ("equals", 1)), node(("items_at", 1), ("equals", "x")))
        tree = node(("arg", 0), children=(node(("dict",), ("len", 2), ("keys", ["a", "b"]), children=children),))
        assert holds(tree, target)
        target.a = 2
        assert not holds(tree, target)
        target.a = 1
        assert holds(tree, target)
        target.c = 1
        assert not holds(tree, target)
        assert not holds(tree, Slots(1))
        assert not holds(tree, 5)

    def test_key_reads_subclasses_as_dicts(self) -> None:
        tree = node(("arg", 0), children=(node(("key", "a"), ("equals", 1)),))
        assert holds(tree, DictSubclass(a=1))
        assert holds(tree, OrderedDict(a=1))
        assert not holds(tree, [("a", 1)])
        assert not holds(tree, {"b": 1})
        assert holds(node(("arg", 0), children=(node(("key", (1, 2)), ("equals", 1)),)), {(1, 2): 1})

    def test_lookup_cache_follows_every_kind_of_change(self) -> None:
        program = _shim.GuardProgram((node(("arg", 0), children=(node(("key", "a"), ("equals", 1)),)),), 0)
        table = {"a": 1}
        assert program.check(plain, (table,)) == ()
        for change, expected in (
            (lambda: table.update(a=2), None),
            (lambda: table.update(a=1), ()),
            (lambda: table.pop("a"), None),
            (lambda: table.setdefault("a", 1), ()),
            (table.clear, None),
            (lambda: table.__ior__({"a": 1}), ()),
        ):
            change()
            assert program.check(plain, (table,)) == expected
            assert program.check(plain, (table,)) == expected

    def test_item(self) -> None:
        tree = node(("arg", 0), children=(node(("item", 1), ("equals", 2)),))
        assert holds(tree, (1, 2))
        assert holds(tree, [1, 2])
        assert holds(tree, torch.Size([1, 2]))
        assert not holds(tree, [1])
        assert not holds(tree, {0: 1, 1: 2})

    def test_type(self) -> None:
        tree = node(("arg", 0), children=(node(("type",), ("is", Plain)),))
        assert holds(tree, Plain())
        assert not holds(tree, Slots(1))


constants = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.just(...),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


def same_constant(left: Any, right: Any) -> bool:
    """Same type and value, floats by their bits: the oracle of the "equals" check."""
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same_constant, left, right))
    if isinstance(left, float):
        return left.hex() == right.hex() and math.copysign(1, left) == math.copysign(1, right)
    if isinstance(left, complex):
        return same_constant(left.real, right.real) and same_constant(left.imag, right.imag)
    return bool(left == right)


class TestMembers:
    TREE = node(("arg", 0), ("members", (1, "a", (2, None), int)))

    @pytest.mark.parametrize("kind", [set, frozenset])
    def test_in_any_order(self, kind: Any) -> None:
        assert holds(self.TREE, kind([int, (2, None), "a", 1]))

    @pytest.mark.parametrize(
        "found",
        [
            {1, "a", (2, None)},
            {1, "a", (2, None), str},
            {True, "a", (2, None), int},
            {1, "a", (2.0, None), int},
            [1],
            None,
        ],
    )
    def test_others_differ(self, found: Any) -> None:
        assert not holds(self.TREE, found)

    def test_empty(self) -> None:
        assert holds(node(("arg", 0), ("members", ())), set())
        assert not holds(node(("arg", 0), ("members", ())), {1})

    def test_runs_no_code_of_members(self) -> None:
        class Loud:
            def __hash__(self) -> int:
                if Loud.ready:
                    raise AssertionError("guards run no code of the members")
                return 1

            ready = False

        found = {Loud(), "a", (2, None), int}
        Loud.ready = True
        assert not holds(self.TREE, found)


class TestLookups:
    class Keyed:
        def __eq__(self, other: object) -> bool:
            raise AssertionError("guards run no code of the members")

        def __hash__(self) -> int:
            return 7

    @pytest.mark.parametrize("item", [1, True, 1.0, "a", (1, "b"), None, b"x", 2.5, (1, "c"), int])
    def test_constants(self, item: Any) -> None:
        found: set[Any] = {1, "a", (1, "b"), None, Plain(), int}
        assert holds(node(("arg", 0), ("contains", item)), found) is (item in found)
        assert holds(node(("arg", 0), ("lacks", item)), frozenset(found)) is (item not in found)

    def test_no_set(self) -> None:
        for value in ([1], {1: 2}, None):
            assert not holds(node(("arg", 0), ("contains", 1)), value)
            assert not holds(node(("arg", 0), ("lacks", 1)), value)

    @pytest.mark.parametrize("turned", [False, True])
    def test_captured(self, turned: bool) -> None:
        first = node(("arg", int(turned)), capture=0)
        inside = _shim.GuardProgram((first, node(("arg", int(not turned)), ("member", 0))), 1)
        outside = _shim.GuardProgram((first, node(("arg", int(not turned)), ("no_member", 0))), 1)
        one, other = Plain(), Plain()
        for members, item, expected in [({one}, one, True), ({one}, other, False), (set(), one, False)]:
            bound = (members, item)
            assert (inside.check(plain, bound) is not None) is expected
            assert (outside.check(plain, bound) is not None) is not expected

    def test_runs_no_code_of_members(self) -> None:
        keyed = self.Keyed()
        assert holds(node(("arg", 0), ("lacks", 8)), {keyed})
        for kind in ("contains", "lacks"):
            assert not holds(node(("arg", 0), (kind, 7)), {keyed})
        assert _shim.lookup({keyed}, keyed) is True
        assert _shim.lookup({self.Keyed()}, keyed) is None
        assert _shim.lookup({Plain()}, keyed) is None
        assert _shim.lookup({Plain()}, set()) is None


class TestViews:
    def test_the_dict_below(self) -> None:
        table = {"a": 1}
        tree = node(("arg", 0), children=(node(("viewed",), ("is", table)),))
        for view in (table.keys(), table.values(), table.items()):
            assert holds(tree, view)
        assert not holds(tree, {"a": 1}.keys())
        assert not holds(tree, OrderedDict(a=1).keys())
        assert not holds(tree, table)


class TestDeques:
    def test_items_and_length(self) -> None:
        tree = node(("arg", 0), ("len", 2), children=(node(("item", 1), ("equals", 5)),))
        assert holds(tree, deque([4, 5]))
        assert not holds(tree, deque([5, 4]))
        assert not holds(tree, deque([4, 5, 6]))
        assert not holds(node(("arg", 0), children=(node(("item", 2)),)), deque([4, 5]))


class TestChecks:
    @given(constants, constants)
    def test_equals(self, expected: Any, found: Any) -> None:
        tree = node(("arg", 0), ("equals", expected))
        assert holds(tree, found) == same_constant(expected, found)
        assert holds(tree, expected)

    @pytest.mark.parametrize(
        ("expected", "found"), [(1, True), (1, 1.0), (0.0, -0.0), ((1,), (True,)), ((1,), [1]), ("a", b"a")]
    )
    def test_equals_tells_types_and_signs_apart(self, expected: Any, found: Any) -> None:
        assert not holds(node(("arg", 0), ("equals", expected)), found)

    def test_equals_runs_no_comparison_of_the_user(self) -> None:
        class Agreeable(int):
            def __eq__(self, other: object) -> bool:
                raise AssertionError

            __hash__ = int.__hash__

        assert not holds(node(("arg", 0), ("equals", 1)), Agreeable(1))
        assert not holds(node(("arg", 0), ("equals", (1, 2))), (Agreeable(1), 2))

    def test_type_and_identity(self) -> None:
        assert holds(node(("arg", 0), ("type", int)), 3)
        assert not holds(node(("arg", 0), ("type", int)), True)
        target = Plain()
        assert holds(node(("arg", 0), ("is", target)), target)
        assert not holds(node(("arg", 0), ("is", target)), Plain())

    @pytest.mark.parametrize("value", [[1, 2], (1, 2), {1: 1, 2: 2}, {1, 2}, frozenset((1, 2)), "ab", b"ab", range(2)])
    def test_length(self, value: Any) -> None:
        assert holds(node(("arg", 0), ("len", 2)), value)
        assert not holds(node(("arg", 0), ("len", 3)), value)

    def test_length_calls_no_user_code(self) -> None:
        class Sized:
            def __len__(self) -> int:
                raise AssertionError

        class SizedList(list[int]):
            def __len__(self) -> int:
                raise AssertionError

        assert not holds(node(("arg", 0), ("len", 2)), Sized())
        assert holds(node(("arg", 0), ("len", 2)), SizedList([1, 2]))
        assert not holds(node(("arg", 0), ("len", 2)), 5)

    def test_keys_in_order(self) -> None:
        tree = node(("arg", 0), ("keys", ["a", 1]))
        assert holds(tree, {"a": 0, 1: 0})
        assert not holds(tree, {1: 0, "a": 0})
        assert not holds(tree, {"a": 0, True: 0})
        assert not holds(tree, {"a": 0})
        assert not holds(tree, ["a", 1])

    def test_keys_follow_changes(self) -> None:
        program = _shim.GuardProgram((node(("arg", 0), ("keys", ["a"])),), 0)
        table: dict[str, int] = {"a": 1}
        assert program.check(plain, (table,)) == ()
        table["b"] = 1
        assert program.check(plain, (table,)) is None
        del table["b"]
        assert program.check(plain, (table,)) == ()

    def test_absences(self) -> None:
        assert holds(node(("arg", 0), ("absent", "a")), {"b": 1})
        assert not holds(node(("arg", 0), ("absent", "a")), {"a": 1})
        assert not holds(node(("arg", 0), ("absent", "a")), 5)
        assert holds(node(("arg", 0), ("no_field", "a")), Plain(b=1))
        assert not holds(node(("arg", 0), ("no_field", "a")), Plain(a=1))
        assert holds(node(("arg", 0), ("no_field", "value")), Computed())
        assert holds(node(("arg", 0), ("no_attr", "other")), Computed())
        assert not holds(node(("arg", 0), ("no_attr", "value")), Computed())
        assert not holds(node(("arg", 0), ("no_attr", "broken")), Computed())

    def test_absent_follows_changes(self) -> None:
        program = _shim.GuardProgram((node(("arg", 0), ("absent", "a")),), 0)
        table: dict[str, int] = {}
        assert program.check(plain, (table,)) == ()
        table["a"] = 1
        assert program.check(plain, (table,)) is None

    @pytest.mark.parametrize(
        ("low", "high", "value", "expected"),
        [
            (0, 5, 0, True),
            (0, 5, 5, True),
            (0, 5, 6, False),
            (None, 5, -(2**60), True),
            (0, None, 2**62, True),
            (None, None, 2**63, False),
            (0, 5, 1.0, False),
        ],
    )
    def test_range(self, low: int | None, high: int | None, value: Any, expected: bool) -> None:
        assert holds(node(("arg", 0), ("range", low, high)), value) is expected

    def test_same_and_distinct(self) -> None:
        first = node(("arg", 0), capture=0)
        same = _shim.GuardProgram((first, node(("arg", 1), ("same", 0))), 1)
        distinct = _shim.GuardProgram((first, node(("arg", 1), ("distinct", 0))), 1)
        one, other = Plain(), Plain()
        assert same.check(plain, (one, one)) == (one,)
        assert same.check(plain, (one, other)) is None
        assert distinct.check(plain, (one, other)) == (one,)
        assert distinct.check(plain, (one, one)) is None

    @pytest.mark.parametrize("count", [2, 5, 400])
    def test_apart(self, count: int) -> None:
        first = [node(("arg", k), capture=k) for k in range(count - 1)]
        program = _shim.GuardProgram((*first, node(("arg", count - 1), ("apart", tuple(range(count - 1))))), count - 1)
        objects = tuple(Plain() for _ in range(count))
        assert program.check(plain, objects) == objects[:-1]
        assert program.check(plain, (*objects[:-1], objects[0])) is None
        assert program.check(plain, (objects[-2], *objects[1:])) is None or count == 2
        with pytest.raises(ValueError, match="later"):
            _shim.GuardProgram((node(("arg", 0), ("apart", (0,)), capture=0),), 1)

    def test_version_is_only_a_hint(self) -> None:
        inner = {"t": 1}
        outer = {"inner": inner}
        leaf = node(("key", "t"), ("equals", 1))
        tree = node(("arg", 0), ("found",), children=(node(("key", "inner"), ("found",), children=(leaf,)),))
        program = _shim.GuardProgram((tree,), 0)
        assert program.check(plain, (outer,)) == ()
        inner["t"] = 2
        assert program.check(plain, (outer,)) is None


class TestTensors:
    @pytest.mark.parametrize(
        "other",
        [
            lambda t: t.double(),
            lambda t: t.reshape(3, 2),
            lambda t: t.t().contiguous().t(),
            lambda t: torch.empty(3, 3),
            lambda t: torch.empty(2, 3, 1),
            lambda t: torch.empty(2, 3, requires_grad=True),
            lambda t: torch.nn.Parameter(t.clone()),
            lambda t: t.to(torch.complex64).conj(),
            lambda t: t.to_sparse(),
            lambda t: t.to("meta"),
            lambda t: 1.0,
            lambda t: None,
        ],
    )
    def test_differences_fail(self, mode: str, other: Any) -> None:
        tensor = torch.ones(2, 3)
        tree = node(("arg", 0), tensor_check(tensor))
        assert holds(tree, torch.empty(2, 3))
        assert not holds(tree, other(tensor))

    def test_storage_offset_is_not_compared(self, mode: str) -> None:
        tensor = torch.ones(2, 3)
        assert holds(node(("arg", 0), tensor_check(tensor)), torch.ones(3, 3)[1:])

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.bool, torch.uint8])
    @pytest.mark.parametrize("shape", [(), (0,), (3, 4), (1, 2, 3, 4, 5), (1, 2, 1, 2, 1, 2, 3)])
    def test_dtypes_and_dimensions(self, mode: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
        tree = node(("arg", 0), tensor_check(torch.zeros(shape, dtype=dtype)))
        assert holds(tree, torch.ones(shape, dtype=dtype))
        assert not holds(tree, torch.ones((*shape, 1), dtype=dtype))
        assert not holds(tree, torch.ones(shape, dtype=torch.float64))
        if shape and shape[-1]:
            assert not holds(tree, torch.ones((*shape[:-1], shape[-1] + 1), dtype=dtype))

    def test_requires_grad_both_ways(self, mode: str) -> None:
        leaf = torch.ones(2, requires_grad=True)
        tree = node(("arg", 0), tensor_check(leaf))
        assert holds(tree, torch.ones(2, requires_grad=True))
        assert holds(tree, leaf * 2)
        assert not holds(tree, torch.ones(2))

    def test_open_sizes_and_strides(self, mode: str) -> None:
        described = list(metadata(torch.ones(2, 3)))
        described[2], described[3] = (None, 3), (None, 1)
        tree = node(("arg", 0), ("tensor", torch.Tensor, tuple(described)))
        assert holds(tree, torch.ones(7, 3))
        assert holds(tree, torch.ones(14, 3)[::2])
        assert not holds(tree, torch.ones(7, 4))
        assert not holds(tree, torch.ones(3))

    def test_settling_takes_the_key_set_of_the_tensor_that_is_found(self, mode: str) -> None:
        value = torch.ones(2, dtype=torch.complex64)
        program = _shim.GuardProgram((node(("arg", 0), tensor_check(value, key_set=False)),), 0)
        assert program.settle(plain, (value,)) == (-1, None)
        assert program.check(plain, (value + 1,)) == ()
        assert program.check(plain, (value.conj(),)) is None  # differs in its dispatch keys alone
        assert program.settle(plain, (value.conj(),))[0] == 0  # what was taken stays

    def test_settling_fails_where_the_guards_do(self, mode: str) -> None:
        program = _shim.GuardProgram((node(("arg", 0), tensor_check(torch.ones(2), key_set=False)),), 0)
        assert program.settle(plain, (5,)) == (0, 5)
        assert program.settle(plain, (torch.ones(3),))[0] == 0

    def test_without_a_key_set_the_device_is_compared(self, mode: str) -> None:
        tree = node(("arg", 0), tensor_check(torch.ones(2), key_set=False))
        assert holds(tree, torch.ones(2))
        assert not holds(tree, torch.ones(2, device="meta"))

    def test_functorch_and_inference_tensors(self, mode: str) -> None:
        program = _shim.GuardProgram((node(("arg", 0), tensor_check(torch.ones(3))),), 0)
        seen = []
        torch.vmap(lambda row: seen.append(program.check(plain, (row,))) or row)(torch.ones(2, 3))
        assert seen == [None]
        with torch.inference_mode():
            inside = torch.ones(3)
        assert program.check(plain, (inside,)) is None

    def test_bad_metadata(self, mode: str) -> None:
        good = metadata(torch.ones(2))
        for bad in (good[:3], ("float33", *good[1:]), (good[0], "tpu", *good[2:]), (*good[:2], (2, 3), *good[3:])):
            with pytest.raises((ValueError, TypeError)):
                _shim.GuardProgram((node(("arg", 0), ("tensor", torch.Tensor, bad)),), 0)
        with pytest.raises(TypeError):
            _shim.GuardProgram((node(("arg", 0), ("tensor", int, good)),), 0)


class TestPrograms:
    def test_captures_and_their_order(self) -> None:
        target = Plain(a="first", b="second")
        children = (node(("field", "b"), capture=0), node(("field", "a"), capture=1))
        program = _shim.GuardProgram((node(("arg", 0), children=children, capture=2),), 3)
        assert program.check(plain, (target,)) == ("second", "first", target)
        assert program.captures == 3

    def test_explain_numbers_checks_depth_first(self) -> None:
        tree = (
            node(("arg", 0), ("type", list), ("len", 2), children=(node(("item", 0), ("equals", 1)),)),
            node(("arg", 1), ("is", None)),
        )
        program = _shim.GuardProgram(tree, 0)
        assert program.checks == 4
        assert program.explain(plain, ([1, 2], None)) == (-1, None)
        assert program.explain(plain, ((1, 2), None)) == (0, (1, 2))
        assert program.explain(plain, ([1], None)) == (1, [1])
        assert program.explain(plain, ([5, 2], None)) == (2, 5)
        assert program.explain(plain, ([1, 2], 9)) == (3, 9)

    def test_explain_after_a_cached_success(self) -> None:
        tree = node(("arg", 0), children=(node(("key", "a"), ("type", int), ("equals", 1)),))
        program = _shim.GuardProgram((tree,), 0)
        table: dict[str, Any] = {"a": 1}
        assert program.check(plain, (table,)) == ()
        table["a"] = 2
        assert program.explain(plain, (table,)) == (1, 2)
        table["a"] = "s"
        assert program.explain(plain, (table,))[1] == "s"

    def test_explain_names_the_next_check_when_a_value_is_missing(self) -> None:
        tree = node(("arg", 0), ("type", dict), children=(node(("key", "a"), ("equals", 1)),))
        assert _shim.GuardProgram((tree,), 0).explain(plain, ({},)) == (1, ...)

    @pytest.mark.parametrize(
        "tree",
        [
            5,
            (5,),
            ((("arg", 0), (), -1),),
            ((("nothing",), (), -1, ()),),
            ((("arg",), (), -1, ()),),
            ((("arg", -1), (), -1, ()),),
            ((("arg", "x"), (), -1, ()),),
            ((("field", "x"), (), -1, ()),),
            ((("global", 5), (), -1, ()),),
            ((("arg", 0), (("nothing",),), -1, ()),),
            ((("arg", 0), (("len", -2),), -1, ()),),
            ((("arg", 0), (("len",),), -1, ()),),
            ((("arg", 0), (), 0, ()),),
            ((("arg", 0), (("same", 0),), -1, ()),),
            ((("arg", 0), 5, -1, ()),),
            ((("arg", 0), (), -1, 5),),
            ((("arg", 0), (), -1, ((("key", []), (), -1, ()),)),),
        ],
    )
    def test_malformed_trees_are_refused(self, tree: Any) -> None:
        with pytest.raises((TypeError, ValueError)):
            _shim.GuardProgram(tree, 0)

    def test_captures_must_be_given_once(self) -> None:
        with pytest.raises(ValueError, match="no guard gives capture 0"):
            _shim.GuardProgram((node(("arg", 0)),), 1)
        with pytest.raises(ValueError, match="twice"):
            _shim.GuardProgram((node(("arg", 0), capture=0), node(("arg", 1), capture=0)), 1)

    def test_deep_trees_are_refused(self) -> None:
        tree: Any = ()
        for _ in range(1000):
            tree = (node(("item", 0), children=tree),)
        with pytest.raises(ValueError, match="deep"):
            _shim.GuardProgram((node(("arg", 0), children=tree),), 0)

    def test_large_programs(self) -> None:
        values = list(range(500))
        children = tuple(node(("item", i), ("equals", i)) for i in values)
        program = _shim.GuardProgram((node(("arg", 0), children=children),), 0)
        assert program.check(plain, (values,)) == ()
        values[499] = 0
        assert program.explain(plain, (values,)) == (499, 0)

    def test_what_cannot_be_watched_runs_below_what_is(self) -> None:
        """From its second run on a program compares pointers; nodes that only a lookup can settle run as they are."""

        class Layer:
            def forward(self) -> int:
                return 1

        inner = Plain(size=3, kind=Layer, bound=Layer().forward)
        model = Plain(inner=inner, width=5)
        forward, original = Layer.forward, Layer()
        inner.bound = original.forward
        below = (
            node(("field", "size"), ("equals", 3)),
            node(("field", "kind"), children=(node(("attr", "forward"), ("is", forward), capture=0),)),
            node(("field", "bound"), children=(node(("attr", "__self__"), ("is", original), capture=1),)),
        )
        above = (node(("field", "inner"), ("type", Plain), children=below), node(("field", "width"), ("equals", 5)))
        tree = node(("arg", 0), ("type", Plain), children=above)
        program = _shim.GuardProgram((tree,), 2)
        held = (forward, original)

        def now() -> object:
            return [program.check(plain, (model,)) for _ in range(6)][-1]

        assert now() == held
        for target, name, other in ((inner, "size", 4), (model, "width", 6), (inner, "bound", Layer().forward)):
            before = getattr(target, name)
            setattr(target, name, other)
            assert now() is None, name
            setattr(target, name, before)
            assert now() == held
        Layer.forward = lambda self: 2  # type: ignore[method-assign]
        assert now() is None
        Layer.forward = forward  # type: ignore[method-assign]
        assert now() == held
        model.inner = Plain(size=3, kind=Layer, bound=original.forward)
        assert now() == held

    def test_attributes_that_run_code_are_looked_up_each_time(self) -> None:
        class Descriptor:
            answers = 0

            def __get__(self, instance: object, owner: object) -> int:
                Descriptor.answers += 1
                return Descriptor.answers

        class Owner:
            value = Descriptor()

        model = Plain(owner=Owner, a=1, b=2, c=3)
        children = (
            node(("field", "owner"), children=(node(("attr", "value"), ("type", int), capture=0),)),
            *(node(("field", name), ("type", int)) for name in "abc"),
        )
        program = _shim.GuardProgram((node(("arg", 0), ("type", Plain), children=children),), 1)
        assert [program.check(plain, (model,)) for _ in range(5)] == [(number,) for number in range(1, 6)]

    def test_version_of_user_keys_that_compare_by_code(self) -> None:
        class Key:
            def __hash__(self) -> int:
                return hash("a")

            def __eq__(self, other: object) -> bool:
                table.clear()
                return False

        table: dict[Any, Any] = {Key(): 1}
        assert not holds(node(("arg", 0), children=(node(("key", "a")),)), table)


@pytest.mark.parametrize(
    ("value", "expected"), [(1.5, True), (math.nan, True), (1, False), (True, False), ("1", False)]
)
def test_float(value: Any, expected: bool) -> None:
    assert holds(node(("arg", 0), ("float",)), value) is expected


_SIGNS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": max,
    "min": min,
}
_RELATIONS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le}


@given(
    st.integers(-(2**70), 2**70),
    st.integers(-9, 9),
    st.sampled_from(sorted(_SIGNS)),
    st.sampled_from(sorted(_RELATIONS)),
    st.integers(-20, 20),
)
def test_comparison_of_ints_is_pythons(value: int, other: int, sign: str, relation: str, limit: int) -> None:
    check = ("holds", relation, (sign, ("value", -1), other), limit)
    try:
        computed = _SIGNS[sign](value, other)
        fits = -(2**63) <= value < 2**63 and -(2**63) <= computed < 2**63
    except ZeroDivisionError:
        fits = False
    assert holds(node(("arg", 0), check), value) is (fits and _RELATIONS[relation](computed, limit))


@given(
    st.floats(),
    st.floats(allow_nan=False),
    st.sampled_from(["+", "-", "*", "/"]),
    st.sampled_from(sorted(_RELATIONS)),
    st.floats(),
)
def test_comparison_of_floats_is_pythons(value: float, other: float, sign: str, relation: str, limit: float) -> None:
    check = ("holds", relation, (sign, ("value", -1), other), limit)
    try:
        expected = _RELATIONS[relation](
            operator.truediv(value, other) if sign == "/" else _SIGNS[sign](value, other), limit
        )
    except ZeroDivisionError:
        expected = False
    assert holds(node(("arg", 0), check), value) is expected


def test_comparison_of_sizes_and_captures() -> None:
    x, y = torch.ones(3, 4), torch.ones(4, 3).t()
    first = node(("arg", 0), capture=0)
    second = node(
        ("arg", 1),
        ("holds", "==", ("size", 0, 0), ("size", -1, 0)),
        ("holds", "<", ("stride", -1, 0), ("stride", 0, 0)),
    )
    program = _shim.GuardProgram((first, second), 1)
    assert program.check(plain, (x, y)) == (x,)
    assert program.check(plain, (x, x)) is None
    assert program.check(plain, (x, torch.ones(2, 4))) is None
    assert program.check(plain, (x, 5)) is None


@pytest.mark.parametrize(
    "check",
    [
        ("holds", ">", 1, 2),
        ("holds", "<", ("value", 3), 2),
        ("holds", "<", ("value", -2), 2),
        ("holds", "<", ("size", -1, -1), 2),
        ("holds", "<", ("**", 1, 2), 2),
        ("holds", "<", 2**64, 2),
        ("holds", "<", "1", 2),
    ],
)
def test_malformed_comparisons_are_refused(check: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        _shim.GuardProgram((node(("arg", 0), check),), 0)


class TestPredicates:
    def test_asks_a_callable(self) -> None:
        tree = node(("arg", 0), ("predicate", lambda value: value > 3))
        assert holds(tree, 4) and not holds(tree, 3)

    def test_what_raises_does_not_hold(self) -> None:
        assert not holds(node(("arg", 0), ("predicate", operator.neg)), "text")

        class Undecided:
            def __bool__(self) -> bool:
                raise ValueError("neither")

        assert not holds(node(("arg", 0), ("predicate", lambda value: Undecided())), 1)

    def test_value_may_go_while_it_is_asked(self) -> None:
        """The predicate drops the only reference that the program reached the value by."""
        box = Plain(x=["kept"])

        def ask(value: Any) -> bool:
            box.x = None  # type: ignore[attr-defined]
            return bool(value == ["kept"])

        tree = node(("arg", 0), children=(node(("field", "x"), ("predicate", ask), ("len", 1)),))
        assert _shim.GuardProgram((tree,), 0).check(plain, (box,)) == ()
