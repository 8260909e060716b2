"""Long loops over plain Python values are given back to Python, and capture goes on behind them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import fusee

X = torch.arange(3.0)
LONG = 30_000


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def counted(x: Any, n: int) -> Any:
    total = 0
    for i in range(n):
        total += i % 7
    return x + total + i


def left_by_break(x: Any, n: int) -> Any:
    i = 0
    while True:
        i += 1
        if i % 100 == 99 and i > n:
            break
        if i > 10 * n:
            return None
    return x * 2 + i


def nested_with_handlers(n: int) -> Any:
    best = None
    for i in range(n):
        for j in range(3):
            try:
                if i == j:
                    raise ValueError
                if i > n:
                    return 7, 7, 7
            except ValueError:
                continue
            if i * j > 10 * n:
                break
            best = i - j
    return best, i, j


def in_a_called_function(x: Any, n: int) -> Any:
    best, i, j = nested_with_handlers(n)
    return (x + 1) * best + i + j


def returned_from(n: int) -> int:
    for i in range(n):
        with torch.no_grad():
            if i == n - 5:
                return i
    return -1


def left_by_return(x: Any, n: int) -> Any:
    return (x + 1) * returned_from(n) + 2


def raised_in(n: int) -> int:
    try:
        for i in range(n):
            if i == n - 5:
                raise KeyError(i)
    except KeyError as error:
        return int(error.args[0])
    return -1


def left_by_an_exception(x: Any, n: int) -> Any:
    return (x + 1) * raised_in(n) + 2


def conditionally_bound(x: Any, n: int) -> Any:
    for i in range(n):
        if i:
            last = i
    return x + last


def behind_an_iterator(x: Any, n: int) -> Any:
    numbers = iter(range(n))
    first = next(numbers)
    seen = []
    for i in numbers:
        if i % 1000 == 0:
            seen.append(i)
    return x * len(seen) + first + seen[-1]


def cells(x: Any, n: int) -> Any:
    total = 0

    def add(i: int) -> None:
        nonlocal total
        total += i

    for i in range(n):
        add(i)
    return x + total


LOOPS = (
    counted,
    left_by_break,
    in_a_called_function,
    left_by_return,
    left_by_an_exception,
    conditionally_bound,
    behind_an_iterator,
    cells,
)


@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_a_long_loop_is_left_to_python(function: Callable[..., Any]) -> None:
    report = fusee.explain(function)(X, LONG)
    assert {found["id"] for found in report.breaks} == {"length"}
    compiled = fusee.compile(function)
    for n in (LONG, LONG, LONG + 17, 1001):
        torch.testing.assert_close(compiled(X, n), function(X, n), rtol=0, atol=0)


def test_each_round_of_an_outer_loop_has_its_graph() -> None:
    def rounds(x: Any, n: int) -> Any:
        for _ in range(3):
            x = x + 1
            total = 0
            for i in range(n):
                total += i
            x = x * (total % 10)
        return x

    torch.testing.assert_close(fusee.compile(rounds)(X, LONG), rounds(X, LONG), rtol=0, atol=0)
    assert fusee.stats()["graphs"] > 1


def test_generators_and_recursion_are_left_to_python() -> None:
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def run(x: Any, n: int) -> Any:
        y = (x + 1) * sum(i % 3 for i in range(n))
        return (y + fibonacci(19)) * 2

    torch.testing.assert_close(fusee.compile(run)(X, LONG), run(X, LONG), rtol=0, atol=0)
    assert fusee.stats()["graphs"] == 3


def test_loops_that_work_with_tensors_stay_in_one_graph() -> None:
    def run(x: Any, n: int) -> Any:
        for i in range(n):
            for k in range(40):
                i += k
            x = x + i
        return x

    torch.testing.assert_close(fusee.compile(run)(X, 300), run(X, 300), rtol=0, atol=0)
    assert fusee.stats() == {"graphs": 1, "recompiles": 0, "breaks": 0}


def test_much_work_without_a_long_loop_stays_in_one_graph() -> None:
    settings = {f"part{number}": {"names": ["a", "b"], "sizes": (number, 2)} for number in range(24)}

    def run(x: Any) -> Any:
        for _ in range(3):
            x = x + len(copy.deepcopy(settings))
            for _ in range(4):
                copied = copy.deepcopy(settings)
        return x + copied["part3"]["sizes"][0]

    torch.testing.assert_close(fusee.compile(run)(X), run(X), rtol=0, atol=0)
    assert fusee.stats() == {"graphs": 1, "recompiles": 0, "breaks": 0}


def test_a_whole_graph_may_unroll_a_long_loop() -> None:
    torch.testing.assert_close(fusee.compile(counted, fullgraph=True)(X, LONG), counted(X, LONG), rtol=0, atol=0)


def test_changes_made_before_and_in_the_loop_happen_once() -> None:
    log: list[int] = []

    def run(x: Any, n: int) -> Any:
        log.append(-1)
        for i in range(n):
            if i % 10_000 == 0:
                log.append(i)
        log.append(-2)
        return x + len(log)

    plain = [run(X, LONG), run(X, LONG)]
    expected = log.copy()
    log.clear()
    compiled = fusee.compile(run)
    for want in plain:
        torch.testing.assert_close(compiled(X, LONG), want, rtol=0, atol=0)
    assert log == expected
