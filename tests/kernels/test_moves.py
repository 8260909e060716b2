"""Concatenation, padding and other moves by position, in the loops that make their sources and read their results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from .harness import Planner
from .random_graphs import describe, far

Function = Callable[..., torch.Tensor]


def rotary(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The rotary embedding as models write it; ``y`` stands for the angles' cosine and sine."""
    half = x.shape[-1] // 2
    return x * y + torch.cat((-x[..., half : 2 * half], x[..., :half]), -1) * y[..., : 2 * half]


MOVES: dict[str, Function] = {
    "cat": lambda x, y: torch.cat([x * 2, y - 1], 2) + x.sum(),
    "cat_first": lambda x, y: torch.cat([x * 2, y, y + 1], 0) + 1,
    "cat_of_scaled": lambda x, y: torch.cat([x * y[:, :1], y * 3], 1).abs(),
    "cat_types": lambda x, y: torch.cat([x + 1, y.to(torch.float64) * 2], 2) * 2,
    "cat_empty": lambda x, y: torch.cat([x[:, :, :0], x * 2, y[:, :, 5:]], 2) + 1,
    "cat_read_twice": lambda x, y: torch.cat([(x * x) * (x * x), y], 2) - 1,
    "cat_transposed": lambda x, y: torch.cat([(x + 1).transpose(0, 1), (y * 2).transpose(0, 1)], 2) * 2,
    "rotary": lambda x, y: rotary(x[..., :64], y[..., :64]),
    "stack": lambda x, y: torch.stack([x + 1, y * 2, x], 1) * 2,
    "stack_last": lambda x, y: torch.stack([x + 1, y * 2, x], -1) * 2,
    "pairs": lambda x, y: torch.stack([x[..., 0:66:2] * 2, x[..., 1:66:2] - y[..., :33]], -1).flatten(-2),
    "colours_last": lambda x, y: (x.permute(1, 2, 0) * 2).contiguous(),
    "pad": lambda x, y: F.pad(x * 2, (3, 1), value=2) + 1,
    "pad_two": lambda x, y: F.pad((x + y) * 2, (1, 2, 2, 0)).abs(),
    "pad_cut": lambda x, y: F.pad(x * 2, (-2, 1, 0, -1)) + 1,
    "pad_reflect": lambda x, y: F.pad(x * 2, (3, 1), mode="reflect") + 1,
    "pad_reflect_two": lambda x, y: F.pad(x * 2, (3, 1, 1, 0), mode="reflect") + 1,
    "pad_replicate": lambda x, y: F.pad(x * 2, (3, 1, 0, 2), mode="replicate") + 1,
    "flip": lambda x, y: (x * 2).flip(-1) + y,
    "flip_two": lambda x, y: (x + y).flip(0, 2) * 2,
    "roll": lambda x, y: (x * 2).roll(5, 2) + y,
    "roll_two": lambda x, y: (x * 2).roll((-1, 70), (0, 2)) + y,
    "sum_of_cat": lambda x, y: torch.cat([x * 2, y], 2).sum(2),
    "column_sum_of_cat": lambda x, y: torch.cat([x * 2, y], 2).sum(0),
    "softmax_of_cat": lambda x, y: torch.softmax(torch.cat([x * 2, y], 2), 2),
    "largest_of_cat": lambda x, y: torch.cat([x * 2, y], 2).argmax(2),
    "pad_of_cat": lambda x, y: F.pad(torch.cat([x * 2, y], 2), (1, 1)) + 1,
    "cat_of_pads": lambda x, y: torch.cat([F.pad(x, (0, 0, 1, 1)), F.pad(y, (0, 0, 0, 2))], 2) + 1,
}
TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8)


def inputs(dtype: torch.dtype) -> list[torch.Tensor]:
    """Two tensors, the second with its dimensions in another order in memory."""
    x, y = torch.randn(3, 4, 67, dtype=torch.float64) * 3, torch.randn(67, 4, 3, dtype=torch.float64) * 3
    return [x.abs().to(dtype), y.abs().to(dtype).permute(2, 1, 0)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", list(MOVES))
def test_moves(planner: Planner, name: str, dtype: torch.dtype) -> None:
    function, given = MOVES[name], inputs(dtype)
    try:
        want = function(*given)
    except (RuntimeError, NotImplementedError):
        pytest.skip("eager does not take this type")
    wide = [t.double() if t.is_floating_point() else t for t in given]
    for options in ({}, {"unfused": True}, {"disjoint": True, "round": True}):
        compiled = planner.compile(function, *given, **options)
        (got,) = compiled(*given)
        assert far(got, want, function(*wide), 24) == "", describe(got)
        on_wasm = planner.run_on_wasm(function, *given, **options)
        assert on_wasm is not None and far(on_wasm[0], want, function(*wide), 24) == ""


ONE_KERNEL = [name for name in MOVES if name not in ("cat", "pad_of_cat", "cat_of_pads", "cat_types")]


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_moves_are_one_kernel(planner: Planner, name: str) -> None:
    compiled = planner.compile(MOVES[name], *inputs(torch.float32))
    assert not compiled.library_calls and len(compiled.kernels) == 1


def test_what_loops_would_not_speed_up_stays_a_call(planner: Planner) -> None:
    x, y = torch.randn(4, 64), torch.randn(4, 64)
    assert planner.compile(lambda x, y: torch.cat([x, y], 1), x, y).library_calls == ["aten.cat.default"]
    many = [torch.randn(4, 64) for _ in range(20)]
    assert planner.compile(lambda *x: torch.cat(x, 1) + 1, *many).library_calls == ["aten.cat.default"]
    assert planner.compile(lambda x, y: torch.stack([x, y] * 3, -1) + 1, x, y).library_calls == ["aten.stack.default"]
    small = planner.compile(lambda x, y: torch.stack([x, y] * 3, -1) + 1, x[0, :40], y[0, :40])
    assert not small.library_calls
    assert torch.equal(small(x[0, :40], y[0, :40])[0], torch.stack([x[0, :40], y[0, :40]] * 3, -1) + 1)


def test_a_source_that_is_stored_anyway_is_computed_once(planner: Planner) -> None:
    x = torch.randn(5, 64)
    compiled = planner.compile(lambda x: ((e := x.exp()), torch.cat([e, x], 1) + 1), x)
    got, want = compiled(x), (x.exp(), torch.cat([x.exp(), x], 1) + 1)
    assert all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))
    assert sum("exp" in name for _, names, _, _ in compiled.kernels for name in names) == 1


def test_a_formula_read_at_indices_is_written_once_for_each_value(planner: Planner) -> None:
    def powers(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = x * x + x
        return x[index]

    x, index = torch.full((7, 3), -0.5), torch.tensor([1, 5])
    compiled = planner.compile(powers, x, index)
    assert torch.equal(compiled(x, index)[0], powers(x, index))


@pytest.mark.parametrize("size", [0, 1, 31, 257])
def test_sizes(planner: Planner, size: int) -> None:
    x, y = torch.randn(3, size), torch.randn(3, 40)
    functions: list[Function] = [
        lambda x, y: torch.cat([x * 2, y], 1) + 1,
        lambda x, y: F.pad(x * 2, (33, 34)) + 1,
        lambda x, y: torch.cat([y + 1, x, y], 1).sum(1),
        lambda x, y: torch.cat([y + 1, x * 3, y], 1).amax(1),
        lambda x, y: (x * 2).flip(1) + 1,
    ]
    for function in functions:
        compiled = planner.compile(function, x, y)
        assert torch.allclose(compiled(x, y)[0], function(x, y), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("copies", [0, 1, 3])
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.int64), ids=str)
def test_what_is_returned_is_stored_where_no_point_reads_it(planner: Planner, dtype: torch.dtype, copies: int) -> None:
    x = torch.arange(21).reshape(1, 3, 7).to(dtype)

    def spread(x: torch.Tensor) -> list[torch.Tensor]:
        z, row = x + 1, x[:, :1] * 2
        return [z, z.expand(copies, -1, -1).sum(), row, row.expand(-1, copies, -1).amax(2)]

    want = spread(x)
    for got in (planner.compile(spread, x)(x), planner.run_on_wasm(spread, x)):
        assert got is not None and all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
