"""Random programs do the same compiled as plain; ``random_programs.py`` runs as many as you like.

``FUSEE_TEST_PROGRAMS`` sets how many are made (20 without it), ``FUSEE_TEST_SEED`` which ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest
import torch
from generated import Doubled, Rounded, only_rounding, read
from grammars import MIX
from outcome import comparable
from random_programs import by_memory, deeper, failure, smaller, text_of

COUNT = int(os.environ.get("FUSEE_TEST_PROGRAMS", "20"))
SEED = int(os.environ.get("FUSEE_TEST_SEED", "0"))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("number", range(COUNT))
def test_random_program(number: int) -> None:
    text = text_of(SEED, number, MIX)
    found = failure(text)
    assert found in (None, "skipped"), f"{found} in\n{smaller(text, found)}"


def test_only_the_frames_of_an_error_are_left_out() -> None:
    error = "no dimension\nException raised from f at g.cpp:12 (most recent call first):"
    stack = (
        error + "\nframe #0: c10::Error + 0x98 (0x7f0011223344 in libc10.so)\n<omitting python frames>\nframe #1: main"
    )
    assert comparable(stack) == error
    assert comparable(stack + "\nbehind") == error + "\nbehind"
    assert comparable(repr(repr(stack + "\nbehind"))) == repr(repr(error + "\nbehind"))
    assert comparable("frame #0: of a picture") == "frame #0: of a picture"


def test_only_the_name_of_a_node_of_autograd_is_left_out() -> None:
    x = torch.ones(2, requires_grad=True)
    assert comparable(repr(x * 2)) == comparable(repr(x + 1))
    assert comparable(repr(x * 2)) != comparable(repr((x * 2).detach()))
    assert comparable("<AddBackward0>") == "<AddBackward0>"


def test_numbers_of_float64_are_those_of_float32() -> None:
    def drawn() -> list[torch.Tensor]:
        torch.manual_seed(1)
        x = torch.randn(3)
        kept = torch.nn.functional.dropout(torch.randn_like(x), 0.5)
        order = torch.randperm(4).float()
        return [x, kept, torch.rand(4, 5), torch.empty(3).uniform_(), order, torch.bernoulli(x.abs() / 4)]

    expected = drawn()
    torch.set_default_dtype(torch.float64)
    try:
        with Doubled():
            found = drawn()
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(one.double(), other.double()) for one, other in zip(expected, found, strict=True))
    assert all(tensor.dtype is torch.float64 for tensor in found)


def test_rounded_takes_either_float_beside_what_float32_does_not_hold() -> None:
    def computed() -> list[float]:
        x = torch.tensor([1.0, 3.0], dtype=torch.float64)
        y = x / 3
        y += x * 4
        return (y - x * 4).tolist()

    found = []
    for seed in range(8):
        with Rounded(seed):
            found.append(computed())
    third = {run[0] for run in found}
    assert len(third) > 1 and all(0 < abs(value - 1 / 3) <= 2**-21 for value in third)
    assert all(run[1] == 1 for run in found)


ROUNDED_SUM = """
@calls((torch.tensor([1e8, 1.0, 3.0, -1e8]), torch.tensor(1.0)))
def generated(x, y):
    return x.sum() + y / 3
"""


@pytest.mark.parametrize("error, rounding", [(8.0, True), (64.0, False)])
def test_what_rounding_may_give_is_told_from_what_differs(error: float, rounding: bool) -> None:
    program = read("import torch" + ROUNDED_SUM)

    def off(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda *args: function(*args) + error

    assert only_rounding(program, program.plain(), program.outcomes(off)) == rounding


def test_deeper_adds_frames() -> None:
    def depth() -> list[int]:
        frame, count = sys._getframe(), 0
        while frame := frame.f_back:  # type: ignore[assignment]
            count += 1
        return [count]

    assert deeper(depth, 3)[0] == deeper(depth, 0)[0] + 3


HELD_IN_A_CYCLE = """
LOG = []

def waiting():
    try:
        yield 1
    finally:
        LOG.append("ended")

@calls((1,), (2,))
def generated(a):
    waits = waiting()
    next(waits)
    try:
        raise ValueError
    except ValueError as error:
        caught = error
    LOG.append(a)
"""


def test_what_garbage_decides_is_told_from_what_differs() -> None:
    program = read(HELD_IN_A_CYCLE)
    collected = program.plain("collected")
    assert by_memory(program, program.plain(), collected, "collected")
    assert not by_memory(program, collected, collected, "collected")
