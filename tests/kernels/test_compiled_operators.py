"""Operators that loops compute in place of the library: compiled functions against eager and float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F

import fusee

Function = Callable[..., torch.Tensor]
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def layouts(x: torch.Tensor) -> list[torch.Tensor]:
    """A tensor row-major, with its channels together, as every other element of a larger one, and transposed."""
    twice = torch.repeat_interleave(x, 2, -1)[..., ::2]
    together = x.movedim(1, -1).contiguous().movedim(-1, 1)
    return [x, together, twice, x.transpose(0, -1).contiguous().transpose(0, -1)]


def compare(functions: dict[str, Function], inputs: Sequence[torch.Tensor], library: Sequence[str] = ()) -> None:
    """Compiles all functions as one; each result is like eager's, or nearer to float64's, but for half a unit."""

    def together(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return [function(*tensors) for function in functions.values()]

    got, want = fusee.compile(together)(*inputs), together(*inputs)
    exact = together(*(tensor.double() if tensor.dtype.is_floating_point else tensor for tensor in inputs))
    for name, ours, eager, reference in zip(functions, got, want, exact, strict=True):
        assert ours.dtype == eager.dtype and ours.shape == eager.shape and ours.stride() == eager.stride(), name
        finite = eager.isfinite()
        assert torch.equal(ours[~finite].double().nan_to_num(7), eager[~finite].double().nan_to_num(7)), name
        if not eager.dtype.is_floating_point:
            assert torch.equal(ours, eager), name
        elif eager.dtype == torch.float64:  # the reference is no more precise than the results
            assert torch.allclose(ours[finite], eager[finite], rtol=1e-11, atol=1e-13), name
        elif finite.any():
            gap, allowed = ((result.double() - reference)[finite].abs().max() for result in (ours, eager))
            slack = 0.6 * torch.finfo(eager.dtype).eps * reference[finite].abs().max()
            assert gap <= allowed + slack, f"{name}: {gap} off, eager {allowed}"
    called = [line for line in str(fusee.explain(together)(*inputs)).splitlines() if "(library" in line]
    assert all(any(name in line for name in library) for line in called), called


def special(*sizes: int) -> torch.Tensor:
    """Random numbers of float64, some of which are none."""
    x = torch.randn(sizes, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for index, value in enumerate((math.nan, math.inf, -math.inf, 0.0, -0.0)):
        x.view(-1)[index * 37 % x.numel()] = value
    return x


POOLS: dict[str, Function] = {
    "halves": lambda x: F.max_pool2d(x, 2),
    "overlapping": lambda x: F.max_pool2d(x, 3, 2, 1),
    "apart": lambda x: F.max_pool2d(x, (2, 3), 1, 1, 2),
    "up": lambda x: F.max_pool2d(x, (3, 2), 2, ceil_mode=True),
    "mean": lambda x: F.avg_pool2d(x.relu(), 2),
    "of borders": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "without borders": lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False),
    "mean up": lambda x: F.avg_pool2d(x, (3, 2), (2, 3), 1, ceil_mode=True),
    "mean up without borders": lambda x: F.avg_pool2d(x, 2, 3, 1, ceil_mode=True, count_include_pad=False),
    "by five": lambda x: F.avg_pool2d(x, 2, divisor_override=5) * 2,
    "no batch": lambda x: F.avg_pool2d(x[0], 2) + F.max_pool2d(x[1], 2),
}

RANKS: dict[str, Function] = {
    "lines": lambda x: F.max_pool1d(x.flatten(2), 3, 2, 1) + F.avg_pool1d(x.flatten(2), 3, 2, 1),
    "space": lambda x: F.max_pool3d(x[:, None], 2) + F.avg_pool3d(x[:, None], 2),
    "across channels": lambda x: F.local_response_norm(x, 3),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_windows(dtype: torch.dtype) -> None:
    for x in layouts(special(2, 3, 7, 11).to(dtype)):
        compare(POOLS, [x])
    if dtype.itemsize >= 4:  # eager has no more
        compare(RANKS, [torch.randn(2, 4, 5, 7).to(dtype)])


NORMS: dict[str, Function] = {
    "groups": lambda x, w, b: F.silu(F.group_norm(x, 3, w, b)),
    "one group": lambda x, w, b: F.group_norm(x, 1),
    "each channel": lambda x, w, b: F.group_norm(x + 1, 6, None, b, 1e-3),
    "rows": lambda x, w, b: F.group_norm(x[:, :, 0, 0], 2, w, b),
    "images": lambda x, w, b: F.instance_norm(x, weight=w, bias=b).relu(),
    "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    "vectors": lambda x, w, b: F.batch_norm(x[:, :, 1, 2], None, None, training=True, eps=1e-2) * 2,
}


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
def test_norms(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(2)
    wide = torch.randn(5, 6, 7, 11, generator=generator, dtype=torch.float64) * 2 + 3
    weight, bias = torch.randn(2, 6, generator=generator, dtype=torch.float64).to(dtype)
    for x in layouts(wide.to(dtype)):
        compare(NORMS, [x, weight, bias], ["aten.repeat"])
    compare({"nothing else": NORMS["groups"]}, [torch.full((1, 6, 2, 2), math.inf, dtype=dtype), weight, bias])


@pytest.mark.parametrize("shape", [(5, 6), (3, 6, 7), (2, 6, 5, 7)], ids=str)
def test_a_batch_norm_brings_its_statistics_up_to_date(shape: tuple[int, ...]) -> None:
    def step(x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        before = mean * 1
        normal = F.relu(F.batch_norm(x, mean, variance, training=True, momentum=0.3))
        return normal + (mean - before).sum() + F.batch_norm(x, mean, variance).mean()

    x, compiled = torch.randn(shape) * 3 + 5, fusee.compile(step)
    ours, eager, exact = ([torch.full((6,), 0.5), torch.full((6,), 2.0)] for _ in range(3))
    exact = [statistics.double() for statistics in exact]
    for _ in range(3):
        got, want, reference = compiled(x, *ours), step(x, *eager), step(x.double(), *exact)
        torch.testing.assert_close(got, want)
        for mine, theirs, wide in zip((got, *ours), (want, *eager), (reference, *exact), strict=True):
            slack = 0.6 * torch.finfo(torch.float32).eps * wide.abs().max()
            assert (mine - wide).abs().max() <= (theirs - wide).abs().max() + slack
    assert "(library" not in str(fusee.explain(step)(x, *ours))


MOVED: dict[str, Function] = {
    "gate": lambda x, y: F.glu(x, -1) + 1,
    "gate of channels": lambda x, y: F.glu(x, 1),
    "leaky": lambda x, y: F.prelu(x, y[:6]) * 2,
    "one slope": lambda x, y: F.prelu(x, y[:1]),
    "lower": lambda x, y: torch.tril(x, 1) - 1,
    "upper": lambda x, y: torch.triu(x, -2),
    "mask": lambda x, y: (x[0, 0] > 0).tril() | torch.ones(8, 12, dtype=torch.bool).triu(3),
    "unshuffled": lambda x, y: F.pixel_unshuffle(torch.cat((x, x), 3), 2) * 2,
    "shuffled": lambda x, y: F.pixel_shuffle(x[:, 1:5], 2) * 2,
    "smaller": lambda x, y: F.interpolate(x, scale_factor=0.5) * 2,
    "larger": lambda x, y: F.interpolate(x, scale_factor=(3, 2)) * 2,
    "wider": lambda x, y: F.interpolate(x, size=(8, 108), mode="nearest-exact"),
    "pooled": lambda x, y: F.adaptive_avg_pool2d(x, 1)[:, :, 0, 0],
    "pooled rows": lambda x, y: F.adaptive_avg_pool2d(x, (4, 3)) + 1,
    "third": lambda x, y: F.interpolate(x, size=(3, 5)),
    "exactly": lambda x, y: F.interpolate(x, size=(3, 7), mode="nearest-exact"),
    "lines": lambda x, y: F.interpolate(x[:, :, 0], scale_factor=0.4),
}

SEARCHED: dict[str, Function] = {
    "left": lambda x, y: torch.bucketize(x, y.sort()[0]) + 1,
    "right": lambda x, y: torch.bucketize(x, y.sort()[0], right=True, out_int32=True),
    "distances": lambda x, y: torch.cdist(x[0, 0], x[0, 1], p=1.0),
    "greatest distances": lambda x, y: torch.cdist(x[0], x[1], p=math.inf) * 2,
    "other distances": lambda x, y: torch.cdist(x[1, :, 2], x[1, :, 1], p=3.0),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_elements_elsewhere(dtype: torch.dtype) -> None:
    y = torch.randn(7, generator=torch.Generator().manual_seed(4)).to(dtype)
    for x in layouts(special(2, 6, 8, 12).to(dtype)):
        compare(MOVED, [x, y], ["aten.cat"])
    if dtype.itemsize >= 4:  # eager has no distances of others
        compare(SEARCHED, [torch.randn(2, 6, 8, 12).to(dtype), y], ["aten.sort"])
        compare({"left": SEARCHED["left"]}, [special(5, 7).to(dtype), y], ["aten.sort"])


GATHERED: dict[str, Function] = {
    "sum": lambda table, index: F.embedding(index, table).sum(1),
    "mean": lambda table, index: F.embedding(index, table * 2).mean(1),
    "greatest": lambda table, index: table[index].amax(1) + 1,
    "rows": lambda table, index: F.embedding(index, table).sum(-1),
    "all": lambda table, index: F.embedding(index[0], table).sum((0, 1)),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("width", (2, 13, 128))
def test_reductions_of_rows_elsewhere(width: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(6)
    table = torch.randn(37, width, generator=generator, dtype=torch.float64).to(dtype)
    compare(GATHERED, [table, torch.randint(0, 37, (5, 17), generator=generator)])


@pytest.mark.parametrize("mask", [(2, 7, 7), (1, 7, 7), (7, 7), (1, 2, 7, 7), (3, 1, 7, 7), (2, 1, 7)], ids=str)
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32], ids=str)
def test_attention_is_read_as_it_lies(mask: tuple[int, ...], dtype: torch.dtype) -> None:
    """With a mask of three dimensions torch lays its result out in another way."""
    drawn = torch.randn(mask)
    given = drawn > 0.5 if dtype == torch.bool else drawn

    def attend(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        query, key, value = x.view(3, 7, 2, 24).transpose(1, 2).split(8, dim=-1)
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return found.transpose(1, 2).reshape(3, 7, 16) * 2

    fusee.reset()
    x = torch.randn(3, 7, 48)
    torch.testing.assert_close(fusee.compile(attend)(x, given), attend(x, given), equal_nan=True)
