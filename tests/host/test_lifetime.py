"""What a compile looked at dies as without fusee, and what is guarded by identity is never taken for a later object."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import fusee
from fusee.host.connection import CONNECTION

Use = Callable[..., None]
pytestmark = pytest.mark.usefixtures("empty_cache")


def test_a_class_of_a_function_dies_with_what_it_closes_over() -> None:
    def run() -> list[weakref.ref[Any]]:
        layer = torch.nn.Linear(4, 4)

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = layer

            def forward(self, x: Any) -> Any:
                return self.scaled(x) * self.factor

            def scaled(self, x: Any) -> Any:
                return self.layer(x) * 2

            factor = 3

        model = Model()
        fusee.compile(model)(torch.ones(2, 4))
        assert fusee.stats()["graphs"] > 0
        return [weakref.ref(model), weakref.ref(layer), weakref.ref(Model)]

    references = run()
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]


def test_entries_of_classes_that_are_gone_do_not_count(caught: list[Any]) -> None:
    def scaled(item: Any, x: Any) -> Any:
        return x * item.factor

    fast = fusee.compile(scaled)
    for factor in range(20):
        kind = type("Item", (), {"factor": float(factor), "__slots__": ()})
        torch.testing.assert_close(fast(kind(), torch.ones(3)), torch.full((3,), float(factor)), rtol=0, atol=0)
        del kind
        gc.collect()
    assert len(caught) == 0


PROGRAMS = {
    "pointwise": """
def f(x, y):
    return torch.relu(x + y) * {number}
""",
    "break": """
def f(x, y):
    x = x + y
    if x.sum() > 0:
        x = x - 1
    return x * {number}
""",
    "closure": """
def outer(k):
    def f(x, y):
        return inner(x - y) * k * {number}
    return f

def inner(x):
    return x.neg() + KEPT.weight

KEPT = torch.nn.Linear(3, 3)
f = outer(2.0)
""",
    "break below with live objects": """
class Scale:
    factor = {number}

    def __call__(self, x):
        print(end="")
        return (x * self.factor).sum().item() * x

scale = Scale()

def f(x, y):
    seen.append(x)
    return scale(x + y) * scale(y)

seen = []
""",
    "generator": """
def numbers(x):
    for i in range(3):
        torch._dynamo.graph_break()
        yield x * i

def f(x, y):
    return sum(numbers(x)) + y + {number}
""",
    "nested function made behind a break": """
def f(x, y):
    def g(z):
        return z * {number} + y
    torch._dynamo.graph_break()
    return g(x)
""",
    "exception": """
class Mine(Exception):
    pass

def f(x, y):
    try:
        raise Mine(x * {number})
    except Mine as error:
        return error.args[0] + y
""",
    "left to Python": """
def f(x, y):
    values = x.tolist()
    return torch.tensor(values) * {number} + x
""",
    "library call": """
def f(x, y):
    return torch.outer(x, y).cumsum(0) * {number}
""",
}


def called(source: str, number: int, backend: str, gradient: bool) -> list[weakref.ref[Any]]:
    """Runs a program in a namespace of its own; references to the function, its compiled form, input and result."""
    namespace: dict[str, Any] = {"torch": torch}
    exec(compile(source.format(number=number), "<lifetime>", "exec"), namespace)
    fast, x = fusee.compile(namespace["f"], backend=backend), torch.rand(3, requires_grad=gradient)
    result = fast(x, torch.rand(3))
    if gradient:
        result.sum().backward()
    return [weakref.ref(value) for value in (namespace["f"], fast, x, result)]


def collector_counts(run: Callable[[int], list[weakref.ref[Any]]], rounds: int) -> tuple[int, int]:
    """Objects that the collector knows before and after so many runs, behind a few that fill caches; all must die."""
    for number in range(3):
        run(number)
    counts = []
    for numbers in (range(3, 5), range(5, 5 + rounds)):
        references = []
        for number in numbers:
            references += run(number)
            gc.collect()  # a class dies by it alone, and at the next miss what was compared with it goes
        assert [reference() for reference in references if reference() is not None] == []
        del references
        counts.append(len(gc.get_objects()))
    return counts[0], counts[1]


def assert_nothing_stays(run: Callable[[int], list[weakref.ref[Any]]]) -> None:
    rounds = 8
    before, after = collector_counts(run, rounds)
    assert after - before < rounds // 2  # not one object for every other compile


@pytest.mark.parametrize("gradient", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_of_a_function_stays(name: str, gradient: bool) -> None:
    assert_nothing_stays(lambda number: called(PROGRAMS[name], number, "fusee", gradient))
    assert fusee.stats()["graphs"] >= 13


def test_nothing_of_a_graph_in_python_stays() -> None:
    assert_nothing_stays(lambda number: called(PROGRAMS["break"], number, "eager", False))


def made_module(number: int) -> list[weakref.ref[Any]]:
    """A compiled module of a class of its own, trained for a step."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)
            self.number = number

        def forward(self, x: Any) -> Any:
            return self.layer(x).relu() * self.number

    model, x = Model(), torch.rand(2, 3)
    fast = fusee.compile(model)
    result = fast(x)
    result.sum().backward()
    return [weakref.ref(value) for value in (Model, model, model.layer.weight, fast, x, result)]


def test_nothing_of_a_module_stays() -> None:
    assert_nothing_stays(made_module)


def test_nothing_of_an_entry_stays_that_another_replaced(caught: list[Any]) -> None:
    def scaled(x: Any, number: float) -> Any:
        return x * number

    fast = fusee.compile(scaled, dynamic=False)

    def recompiled(number: int) -> list[weakref.ref[Any]]:
        fusee.reset()
        x = torch.rand(3)
        fast(x, float(number))
        return [weakref.ref(x)]

    assert_nothing_stays(recompiled)
    assert not caught


def test_entries_outlive_a_function_of_a_module_that_is_made_again() -> None:
    def scaled_by(factor: float) -> Callable[[Any], Any]:
        def scaled(x: Any) -> Any:
            return x * factor

        return fusee.compile(scaled)

    for _ in range(3):
        scaled_by(2.0)(torch.ones(3))
        gc.collect()
    assert fusee.stats()["graphs"] == 1


def resident(process: int) -> int:
    """Bytes of memory that a process holds."""
    with open(f"/proc/{process}/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_compiler_keeps_nothing_of_a_compile() -> None:
    lines = "".join(f"    x = torch.sin(x) + y * {i}\n" for i in range(200))
    source = "def f(x, y):\n" + lines + "    return x * {number}\n"

    def compile_one(number: int) -> int:
        called(source, number, "eager", False)
        child = CONNECTION._child
        assert child is not None
        return resident(child._process.pid)

    sizes = [compile_one(number) for number in range(48)]
    before, after = min(sizes[8:24]), min(sizes[32:])  # Go collects when it likes: the least of some
    assert after - before < 24 * 400 * 512  # half a kilobyte for each operation; what a capture makes of one is several
