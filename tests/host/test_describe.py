"""Descriptions of live objects: canonical names, kinds, payloads, and that no code of the user runs."""

from __future__ import annotations

import collections
import enum
import functools
import itertools
import math
import operator
from typing import Any

import pytest
import torch
from torch import nn

from fusee.host import names
from fusee.host.describe import ObjectTable
from fusee.host.tensors import DECORATED, HAS_GRAD_FN, INFERENCE, INTERCEPTED, LEAF, PARAMETER, UNUSUAL, VIEW

GLOBAL = 3


def describe(value: Any) -> tuple[str, Any, ObjectTable, dict[int, Any]]:
    table = ObjectTable()
    number = table.identify(value)
    found = {item[0]: item for item in table.describe([number])}
    return found[number][1], found[number][3], table, found


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (len, "builtins.len"),
        (math.sqrt, "math.sqrt"),
        (operator.add, "operator.add"),
        (functools.reduce, "functools.reduce"),
        (torch.relu, "torch.relu"),
        (torch.add, "torch.add"),
        (torch._C._nn.gelu, "torch._C._nn.gelu"),
        (torch._C._set_grad_enabled, "torch._C._set_grad_enabled"),
        (torch.ones(1).add_, "Tensor.add_"),
        ([].append, "list.append"),
        ({}.get, "dict.get"),
        (dict.fromkeys, "dict.fromkeys"),
        ("".join, "str.join"),
    ],
)
def test_builtin_names_resolve_back(value: Any, name: str) -> None:
    kind, payload, _, _ = describe(value)
    assert (kind, payload["name"]) == ("builtin", name)
    resolved = names.resolve(name)
    assert resolved == value or resolved.__name__ == value.__name__


@pytest.mark.parametrize(
    ("value", "name", "flavor"),
    [
        (str.join, "str.join", "method"),
        (torch.Tensor.add_, "Tensor.add_", "method"),
        (object.__init__, "object.__init__", "wrapper"),
        (int.__add__, "int.__add__", "wrapper"),
        (torch._C.TensorBase.shape, "Tensor.shape", "getset"),
        (int.__dict__["from_bytes"], "int.from_bytes", "classmethod"),
        (type.__dict__["__mro__"], "type.__mro__", "member"),
    ],
)
def test_descriptor_names(value: Any, name: str, flavor: str) -> None:
    kind, payload, _, _ = describe(value)
    assert (kind, payload) == ("descriptor", {"name": name, "flavor": flavor})


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (torch.nn.functional.layer_norm, "torch.nn.functional.layer_norm"),
        (torch.nn.functional.max_pool2d, "torch.nn.functional.max_pool2d"),
        (torch.einsum, "torch.einsum"),
        (torch.Tensor.split, "Tensor.split"),
        (torch.Tensor.__rsub__, "Tensor.__rsub__"),
    ],
)
def test_python_functions_of_torch_stay_one_call(value: Any, name: str) -> None:
    kind, payload, _, _ = describe(value)
    assert (kind, payload["treat"], payload["name"]) == ("function", "torch", name)
    assert names.resolve(name) is value


@pytest.mark.parametrize("name", ["broadcast_tensors", "split", "norm", "einsum", "meshgrid", "cdist"])
def test_functions_in_c_are_told_from_those_that_wrap_them(name: str) -> None:
    value = getattr(torch._VF, name)  # type: ignore[attr-defined]
    kind, payload, _, _ = describe(value)
    assert (kind, payload["name"]) == ("builtin", f"torch._VF.{name}")
    assert names.resolve(payload["name"]) == value != getattr(torch, name)


def test_treatment_of_other_functions() -> None:
    import logging

    import fusee

    @torch.compiler.disable
    def by_torch() -> None: ...

    @fusee.disable
    def by_fusee() -> None: ...

    for function, treat in [
        (by_torch, "break"), (by_fusee, "break"), (fusee.graph_break, "break"), (torch.Tensor.backward, "break"),
        (logging.info, "opaque"), (describe, "inline"), (nn.Linear.forward, "inline"),
    ]:  # fmt: skip
        payload = describe(function)[1]
        assert payload["treat"] == treat, function
        assert bool(payload["reason"]) == (treat != "inline")


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (int, "int"), (ValueError, "ValueError"), (torch.Tensor, "torch.Tensor"),
        (nn.Linear, "torch.nn.modules.linear.Linear"), (collections.OrderedDict, "collections.OrderedDict"),
        (nn.Parameter, "torch.nn.parameter.Parameter"), (torch.Size, "torch.Size"), (type(None), "NoneType"),
    ],
)  # fmt: skip
def test_type_names(cls: type, name: str) -> None:
    kind, payload, table, _ = describe(cls)
    assert (kind, payload["name"]) == ("type", name)
    assert [table.object(number) for number in payload["mro"]] == list(cls.__mro__)
    assert payload["names"] == sorted(vars(cls))


def test_function_payload() -> None:
    free = 5

    def outer(x: int, y: int = 2, *, z: int = 3) -> Any:
        def inner() -> int:
            return free + GLOBAL

        return inner, len, missing_name  # type: ignore[name-defined]  # noqa: F821

    outer.mark = 1  # type: ignore[attr-defined]
    kind, payload, table, _ = describe(outer)
    assert kind == "function"
    assert payload["code"] is outer.__code__
    assert table.value(payload["defaults"]) == (2,) and table.value(payload["kwdefaults"]) == {"z": 3}
    assert [table.value(cell).cell_contents for cell in payload["closure"]] == [5]
    assert table.value(payload["dict"]) == {"mark": 1}
    assert payload["globals_read"] == {"GLOBAL": (3,), "len": table.reference(len)}
    assert payload["builtins_read"] == {"len"}


class Hostile:
    """Every hook that must not run."""

    __slots__ = ("__dict__", "slot")

    def __init__(self) -> None:
        object.__setattr__(self, "slot", 7)
        object.__getattribute__(self, "__dict__")["field"] = 8

    def fail(self, *args: Any) -> Any:
        raise AssertionError("code of the user ran")

    __getattribute__ = __eq__ = __hash__ = __repr__ = __bool__ = __len__ = __iter__ = fail  # type: ignore[assignment]
    __class__ = property(fail)  # type: ignore[assignment]


class HostileMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError("code of the user ran")

    def __instancecheck__(cls, instance: Any) -> bool:
        raise AssertionError("code of the user ran")


HostileClass = HostileMeta("HostileClass", (list,), {"__iter__": Hostile.fail, "__len__": Hostile.fail})


def test_no_code_of_the_user_runs() -> None:
    kind, payload, _, _ = describe(Hostile())
    assert (kind, payload) == ("object", {"dict": [("field", (8,))], "slots": [("slot", (7,))]})
    assert describe(HostileClass)[1]["name"] == f"{__name__}.HostileClass"
    assert describe(type.__call__(HostileClass, [1, 2]))[:2] == ("list", [(1,), (2,)])


def test_containers() -> None:
    ordered = collections.OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    assert describe(ordered)[:2] == ("dict", [(("b",), (2,)), (("a",), (1,))])
    assert describe({"k": 1.5, 2: None})[:2] == ("dict", [(("k",), (1.5,)), ((2,), (None,))])
    assert describe(list(range(20_000)))[:2] == ("list", None)
    assert describe(globals())[:2] == ("dict", None)
    assert describe(range(1, 9, 2))[:2] == ("range", ((1,), (9,), (2,)))
    assert describe(slice(None, 4))[:2] == ("slice", ((None,), (4,), (None,)))
    assert describe(collections.deque([1]))[:2] == ("deque", [(1,)])
    kind, payload, _, found = describe(([1], {"a": (2,)}))
    assert kind == "tuple"
    assert [found[number][1] for number in payload] == ["list", "dict"]


def test_values_inside_subclasses_of_builtins() -> None:
    class Color(enum.IntEnum):
        RED = 3

    class Text(str):
        pass

    class Ratio(float):
        pass

    class Point(complex):
        pass

    assert describe(Color.RED)[1]["value"] == (3,)
    assert describe(Text("abc"))[1]["value"] == ("abc",) and type(describe(Text("abc"))[1]["value"][0]) is str
    assert type(describe(Ratio(2.5))[1]["value"][0]) is float
    assert str(describe(Point(-0.0, -0.0))[1]["value"][0]) == "(-0-0j)"


def test_small_kinds() -> None:
    assert describe(torch.float16)[:2] == ("dtype", "float16")
    assert describe(torch.device("cpu"))[:2] == ("device", "cpu")
    assert describe(torch.strided)[:2] == ("layout", "strided")
    assert describe(torch.channels_last)[:2] == ("memory_format", "channels_last")
    assert describe(torch.Size([2, 3]))[:2] == ("size", [2, 3])
    assert describe(math)[:2] == ("module", "math")
    assert describe(itertools.count())[0] == "object"


def test_methods_and_wrappers() -> None:
    kind, (owner, function), table, _ = describe(nn.ReLU().forward)
    assert kind == "method" and type(table.value(owner)) is nn.ReLU and table.value(function) is nn.ReLU.forward
    kind, parts, table, _ = describe(functools.partial(pow, 2, exp=3))
    assert kind == "partial" and [table.value(part) for part in parts] == [pow, (2,), {"exp": 3}]
    getter = property(lambda self: 1)
    kind, parts, table, _ = describe(getter)
    assert kind == "property" and [table.value(part) for part in parts] == [getter.fget, None, None]


def flags(tensor: torch.Tensor) -> int:
    kind, payload, _, _ = describe(tensor)
    assert kind == "tensor"
    return int(payload[6])


def test_tensor_metadata() -> None:
    base = torch.randn(4, 6)
    tensor = base.t()[1:, ::2]
    payload = describe(tensor)[1]
    assert payload[:6] == ("float32", "cpu", (5, 2), (1, 12), 1, False)
    assert flags(base) == LEAF
    assert flags(tensor) == LEAF | VIEW
    assert flags(nn.Parameter(base)) == LEAF | PARAMETER
    assert flags(torch.ones(1, requires_grad=True) * 2) == HAS_GRAD_FN
    with torch.inference_mode():
        assert flags(torch.ones(1)) & INFERENCE
    assert describe(base.to_sparse())[0] == describe(base.to("meta"))[0] == "opaque"
    marked = torch.ones(1)
    marked.note = "x"  # type: ignore[attr-defined]
    assert flags(marked) & DECORATED
    assert describe(marked)[1][9] == [("note", ("x",))]
    hooked = torch.ones(1, requires_grad=True)
    hooked.register_hook(lambda gradient: None)
    assert flags(hooked) & DECORATED


def test_storages_are_shared() -> None:
    base = torch.zeros(4)
    _, payload, _, found = describe([base, base[1:], torch.zeros(4)])
    storages = [found[number][3][7] for number in payload]
    assert storages[0] == storages[1] != storages[2]
    base.add_(1)
    assert describe(base)[1][8] == base._version


def test_tensor_subclass_is_marked_and_not_dispatched() -> None:
    class Wrapped(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("code of the user ran")

    class Dispatched(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("code of the user ran")

    assert flags(torch.ones(2).as_subclass(Wrapped)) & (UNUSUAL | INTERCEPTED) == INTERCEPTED
    assert flags(torch.ones(2).as_subclass(Dispatched)) & (UNUSUAL | INTERCEPTED) == UNUSUAL


def test_a_module_comes_with_its_whole_tree() -> None:
    layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 12)
    _, _, table, found = describe(layers)
    kinds = collections.Counter(item[1] for item in found.values())
    assert kinds["module_tree"] == len(list(layers.modules()))
    described = {id(table.object(number)) for number, item in found.items() if item[1] == "tensor"}
    assert {id(parameter) for parameter in layers.parameters()} <= described


def test_a_wrapper_that_copied_a_modules_attributes_does_not_cut_its_tree() -> None:
    layers = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.ReLU())
    _, _, _, found = describe(torch.no_grad()(layers))
    kinds = collections.Counter(item[1] for item in found.values())
    assert kinds["module_tree"] == len(list(layers.modules()))


def test_every_description_can_be_marshalled_and_mentions_known_ids() -> None:
    import marshal

    table = ObjectTable()
    values = [globals(), nn.Sequential(nn.Conv2d(1, 2, 3)), describe, torch, torch.ones(2), Hostile(), type, object]
    for description in table.describe([table.identify(value) for value in values]):
        marshal.dumps(description, 4)
        assert 0 < description[0] < len(table.objects) and 0 < description[2] < len(table.objects)


def test_descriptions_do_not_depend_on_addresses() -> None:
    def once() -> list[Any]:
        table = ObjectTable()
        net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        with torch.no_grad():
            return table.describe([table.identify(net), table.identify(torch.ones(2))])

    assert once() == once()


def test_a_large_tree_of_modules_takes_few_answers() -> None:
    model = nn.Sequential(*(nn.ReLU() for _ in range(1000)))
    table = ObjectTable()
    described = {item[0]: item for item in table.describe([table.identify(model)])}
    answers = 1
    for layer in model:
        number = table.identify(layer)
        if number not in described:
            described.update({item[0]: item for item in table.redescribe([number])})
            answers += 1
    kinds = collections.Counter(kind for _, kind, _, _ in described.values())
    assert kinds["module_tree"] == 1001
    assert answers < 10


class _Plain:
    """Nothing but attributes."""

    def __init__(self) -> None:
        self.number = 3
        self.items = [1, (2.0, None)]
        self.names: dict[str, Any] = {"a": True}
        self.ordered: collections.OrderedDict[str, int] = collections.OrderedDict()


@pytest.mark.parametrize("make", [_Plain, lambda: nn.Linear(2, 3), lambda: nn.Sequential(nn.ReLU())])
def test_later_instances_are_described_in_c_as_the_first_one_is_in_python(make: Any) -> None:
    table = ObjectTable()
    objects = [make() for _ in range(3)]
    numbers = [table.identify(value) for value in objects]
    descriptions = {item[0]: item for item in table.describe(numbers)}

    def spelled(part: Any) -> Any:
        """A payload with what its numbers stand for in their place; of a tensor its metadata."""
        if type(part) is int:
            _, kind, type_id, payload = descriptions.get(part, (part, "", 0, ()))
            nested = kind in ("dict", "list", "tuple", "object", "module_tree")
            plain = str(payload[:7]) if kind == "tensor" else type(table.objects[part]).__name__
            return kind, type_id, spelled(payload) if nested else plain
        if type(part) in (list, tuple):
            return part if len(part) == 1 and type(part) is tuple else [spelled(item) for item in part]
        return {name: spelled(value) for name, value in part.items()} if type(part) is dict else part

    assert {descriptions[number][1] for number in numbers} <= {"object", "module_tree"}
    first, *later = (spelled(descriptions[number][3]["dict"]) for number in numbers)
    assert all(other == first for other in later)


def test_what_has_no_room_in_an_answer_is_described_in_the_next() -> None:
    table = ObjectTable()
    value = [[index] for index in range(5000)]
    first = table.describe([table.identify(value)])
    known = {item[0] for item in first}
    missing = [number for number in range(1, len(table.objects)) if number not in known]
    assert missing
    second = table.redescribe(missing[:1])
    assert known.isdisjoint({item[0] for item in second} - set(missing[:1]))
    assert {item[0] for item in second} >= set(missing)
