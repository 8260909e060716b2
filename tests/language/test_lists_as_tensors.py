"""Lists of numbers as indices and data of tensors; numbers that no element can hold raise as in eager."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import fusee


def _written(x: Tensor) -> Tensor:
    y = x * 1
    y[[0, 2]] = 1.0
    y[:, [1]] = x[:, [2]]
    y[..., [0, 1]] += 2
    return y


PROGRAMS: dict[str, Callable[[Tensor], Any]] = {
    "one": lambda x: x[..., [-2], :] * 2,
    "rows": lambda x: x[[2, 0, 1]] + 1,
    "behind a slice": lambda x: x[:, [0, 2]] * 2,
    "two lists": lambda x: x[[0, 1], [1, 2]],
    "beside an int": lambda x: x[1, [0, 1, 3]],
    "beside a tensor": lambda x: x[torch.tensor([0, 1]), :, 1:2],
    "of a transposed tensor": lambda x: x.transpose(0, 2)[:, [1, -1]],
    "written": _written,
    "data": lambda x: x * torch.tensor([1.0, 2.5, 3.0, -4.0, 0.5]),
    "data of ints": lambda x: x * torch.tensor([1, 2, 3, 4, 5]),
    "mixed data": lambda x: (x[0, 0, :2] + torch.tensor([1, 2.5]), torch.tensor([True, 2])),
    "truths": lambda x: torch.where(torch.tensor([True, False, True, True, False]), x, 0.0),
    "small ints": lambda x: x[0, 0, :3] + torch.tensor([1, -2, 3], dtype=torch.int8),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("trained", [False, True])
def test_lists_of_numbers_are_in_the_graph(name: str, trained: bool) -> None:
    program, x = PROGRAMS[name], torch.randn(3, 4, 5, requires_grad=trained)
    compiled = fusee.compile(program, fullgraph=True)
    for _ in range(2):
        found, expected = compiled(x), program(x)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        if isinstance(expected, Tensor):
            assert found.stride() == expected.stride()
            if trained:
                gradients = [torch.autograd.grad(y.double().square().sum(), x)[0] for y in (found, expected)]
                torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-6)


def test_special_numbers_keep_their_signs() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.tensor([-0.0, math.inf, math.nan, 0.0], dtype=torch.float64)

    found = fusee.compile(program)(torch.ones(1))
    torch.testing.assert_close(found, program(found), rtol=0, atol=0, equal_nan=True)
    assert torch.signbit(found).tolist() == [True, False, False, False]


BYTES = torch.ones(2, dtype=torch.uint8)
MASK = torch.tensor([True, False])
NUMBERS = (-1, -255, -256, 255, 256, 300, 1.5, -1.5, 299.7, math.nan, math.inf)


def _assigned(index: Any, number: float) -> Tensor:
    y = BYTES.clone()
    y[index] = number
    return y


USES: dict[str, Callable[[float], Tensor]] = {
    "full": lambda number: torch.full((2,), number, dtype=torch.uint8),
    "full_like": lambda number: torch.full_like(BYTES, number),
    "new_full": lambda number: BYTES.new_full((3,), number),
    "fill_": lambda number: BYTES.clone().fill_(number),
    "assigned": lambda number: _assigned(0, number),
    "assigned by a mask": lambda number: _assigned(MASK, number),
    "masked_fill": lambda number: BYTES.masked_fill(MASK, number),
    "where": lambda number: torch.where(MASK, BYTES, number),
    "tensor": lambda number: torch.tensor([1, number], dtype=torch.uint8),
    "add": lambda number: BYTES + number,
}


def _outcome(function: Callable[[float], Tensor], number: float) -> Any:
    try:
        found = function(number)
    except Exception as error:
        return type(error), str(error)
    return found.dtype, repr(found)


@pytest.mark.parametrize("name", USES)
def test_numbers_that_the_type_cannot_hold(name: str) -> None:
    use = USES[name]
    compiled = fusee.compile(lambda number: use(number))
    constant = [fusee.compile(lambda number, known=known: use(known)) for known in NUMBERS]
    for number, known in zip(NUMBERS, constant, strict=True):
        expected = _outcome(use, number)
        assert (_outcome(compiled, number), _outcome(known, number)) == (expected, expected)
