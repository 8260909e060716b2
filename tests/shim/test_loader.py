"""The object loader: what compilers emit runs, what is damaged is refused, and no page is writable and executable."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fusee import _shim

LONG, DOUBLE, FLOAT = 4, 7, 6

SOURCE = """
#include <math.h>
#include <stdint.h>
#include <string.h>
static const double table[4] = {1.5, 2.5, 3.5, 4.5};
static int64_t counter = 100;
static int64_t zeroed[3];
extern double cbrt(double);
static double twice(double x) { return 2 * x; }
static double thrice(double x) { return 3 * x; }
static double (*const functions[2])(double) = {twice, thrice};
int64_t mixed(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
    double *out = p[0];
    for (int64_t i = begin; i < end; i++) out[i] = table[i & 3] + functions[i & 1](cbrt((double)i)) + sin((double)i);
    return 0;
}
int64_t state(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
    int64_t *out = p[0];
    counter++;
    zeroed[1] += 2;
    out[0] = counter;
    out[1] = zeroed[1];
    char copy[64];
    memset(copy, (int)s[0], sizeof copy);
    out[2] = copy[63];
    return 0;
}
"""


def run(data: bytes, symbol: str, dtype: int, count: int, scalars: tuple[int, ...] = ()) -> list[Any]:
    steps = [
        ("alloc", 0, dtype, 0, -1, [count], [1]),
        ("kernel", 0, [0], list(scalars), count),
    ]
    plan = {"inputs": 0, "slots": 1, "outputs": [0], "steps": steps, "kernels": [("cpu", symbol, data)]}
    return _shim.LaunchPlan(plan)()[0].tolist()


OPTIONS = [
    (),
    ("-O0",),
    ("-O3", "-mavx2"),
    ("-fno-pic", "-mcmodel=large"),
    ("-fno-plt",),
    ("-ffunction-sections", "-fdata-sections"),
    ("-g",),
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "default")
def test_what_compilers_emit(compile_object: Callable[..., bytes], options: tuple[str, ...]) -> None:
    data = compile_object(SOURCE, *options)
    index = torch.arange(8, dtype=torch.float64)
    table = torch.tensor([1.5, 2.5, 3.5, 4.5] * 2, dtype=torch.float64)
    factor = torch.tensor([2.0, 3.0] * 4, dtype=torch.float64)
    expected = table + factor * index ** (1 / 3) + index.sin()
    torch.testing.assert_close(torch.tensor(run(data, "mixed", DOUBLE, 8), dtype=torch.float64), expected)
    assert run(data, "state", LONG, 3, (7,)) == [101, 2, 7]


def test_vector_mathematics(compile_object: Callable[..., bytes]) -> None:
    source = """
    #include <immintrin.h>
    #include <stdint.h>
    __m256 _ZGVdN8v_expf(__m256);
    int64_t k(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
        float *out = p[0];
        for (int64_t i = begin; i + 8 <= end; i += 8)
            _mm256_storeu_ps(out + i, _ZGVdN8v_expf(_mm256_set1_ps((float)i)));
        return 0;
    }
    """
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("no AVX2")
    result = torch.tensor(run(compile_object(source, "-mavx2"), "k", FLOAT, 16))
    torch.testing.assert_close(result, torch.tensor([0.0, 8.0]).repeat_interleave(8).exp())


def test_missing_symbols(compile_object: Callable[..., bytes]) -> None:
    missing = "void absent(void); long k(void *const *p, const long *s, long b, long e) { absent(); return 0; }"
    with pytest.raises(ValueError, match="undefined symbol absent"):
        run(compile_object(missing), "k", LONG, 1)
    with pytest.raises(ValueError, match="does not define the function other"):
        run(compile_object(SOURCE), "other", LONG, 1)
    with pytest.raises(ValueError, match="does not define the function counter"):
        run(compile_object(SOURCE), "counter", LONG, 1)


def test_unsupported_objects(compile_object: Callable[..., bytes]) -> None:
    thread = "_Thread_local int x; long k(void *const *p, const long *s, long b, long e) { x++; return 0; }"
    with pytest.raises(ValueError, match="thread-local"):
        run(compile_object(thread), "k", LONG, 1)
    common = "int x; long k(void *const *p, const long *s, long b, long e) { x++; return 0; }"
    with pytest.raises(ValueError, match="common"):
        run(compile_object(common, "-fcommon"), "k", LONG, 1)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\0" * 64, b"\x7fELF" + b"\0" * 200])
def test_not_an_object(data: bytes) -> None:
    with pytest.raises(ValueError, match="malformed"):
        run(data, "k", LONG, 1)


def test_no_page_is_writable_and_executable(compile_object: Callable[..., bytes]) -> None:
    plan = {"inputs": 0, "slots": 0, "outputs": [], "steps": [], "kernels": [("cpu", "state", compile_object(SOURCE))]}
    before, writable = anonymous_mappings("r-xp"), anonymous_mappings("rwxp")
    kept = _shim.LaunchPlan(plan)
    assert anonymous_mappings("rwxp") == writable  # libraries of the process may have some of their own
    assert anonymous_mappings("r-xp") == before + 1
    del kept
    assert anonymous_mappings("r-xp") == before


def anonymous_mappings(permissions: str) -> int:
    with open("/proc/self/maps") as maps:
        return sum(line.split()[1] == permissions and len(line.split()) == 5 for line in maps)


def try_load(data: bytes) -> str:
    plan = {"inputs": 0, "slots": 0, "outputs": [], "steps": [], "kernels": [("cpu", "mixed", data)]}
    try:
        _shim.LaunchPlan(plan)
    except (ValueError, OSError, MemoryError) as error:
        return type(error).__name__
    return "loaded"


def interesting_places(data: bytes) -> list[int]:
    """Offsets of the file header, the section headers, and the symbol and relocation tables."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    places = list(range(64)) + list(range(table, min(len(data), table + size * count)))
    for index in range(count):
        kind, _, _, offset, length = struct.unpack_from("<IQQQQ", data, table + index * size + 4)
        if kind in (2, 3, 4):
            places += range(offset, offset + length)
    return places


def test_damaged_objects_never_crash(compile_object: Callable[..., bytes]) -> None:
    """FUSEE_FUZZ_ROUNDS makes the run longer; the sanitizer run does."""
    data = compile_object(SOURCE, "-g")
    places = interesting_places(data)
    chance = random.Random(20)
    seen: dict[str, int] = {}
    for _ in range(int(os.environ.get("FUSEE_FUZZ_ROUNDS", "3000"))):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 2, 8))):
            place = chance.choice(places) if chance.random() < 0.9 else chance.randrange(len(data))
            if chance.random() < 0.3 and place + 8 <= len(damaged):
                value = chance.choice((0, 1, 2**63 - 1, 2**64 - 1, 2**32, 0x7FFFFFFFFFFFF000, len(data)))
                damaged[place : place + 8] = struct.pack("<Q", value)
            else:
                damaged[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        if chance.random() < 0.1:
            del damaged[chance.randrange(len(damaged)) :]
        outcome = try_load(bytes(damaged))
        seen[outcome] = seen.get(outcome, 0) + 1
    assert seen.get("ValueError", 0) > 100
    assert seen.get("loaded", 0) > 10


def test_truncated_objects_never_crash(compile_object: Callable[..., bytes]) -> None:
    data = compile_object(SOURCE)
    for length in range(0, len(data), 7):
        assert try_load(data[:length]) == "ValueError"
