"""Launch plans against eager: kernels, allocations, views, expressions, and every kind of operator argument."""

from __future__ import annotations

import gc
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fusee import _shim

FLOAT, LONG, DOUBLE = 6, 4, 7
CPU = (0, -1)

SOURCE = """
#include <stdint.h>
int64_t add_relu(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
    const float *x = p[0], *y = p[1];
    float *out = p[2];
    for (int64_t i = begin; i < end; i++) { float z = x[i] + y[i]; out[i] = (z > 0 ? z : 0) * 2; }
    return 0;
}
int64_t scale(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
    const float *x = p[0];
    float *out = p[1];
    double factor = *(const double *)&s[0];
    for (int64_t i = begin; i < end; i++) out[i] = (float)(x[i] * factor + (double)s[1]);
    return 0;
}
int64_t mark(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
    int64_t *out = p[0];
    for (int64_t i = begin; i < end; i++) out[i] += 1;
    return 0;
}
int64_t many(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
    int64_t *out = p[39];
    for (int i = 0; i < 39; i++) out[i] = *(const int64_t *)p[i] + s[i];
    return 0;
}
"""


@pytest.fixture(scope="module")
def kernels(compile_object: Callable[..., bytes]) -> bytes:
    return compile_object(SOURCE)


def plan(inputs: int, slots: int, outputs: list[int], steps: list[Any], **options: Any) -> _shim.LaunchPlan:
    described = {"inputs": inputs, "slots": slots, "outputs": outputs, "steps": steps, "kernels": []}
    return _shim.LaunchPlan({**described, **options})


def alloc(slot: int, sizes: Any, strides: Any, dtype: int = FLOAT) -> tuple[Any, ...]:
    return ("alloc", slot, dtype, *CPU, sizes, strides)


def one(name: str, overload: str, arguments: list[Any], inputs: int = 1) -> _shim.LaunchPlan:
    """A plan of one operator with one output."""
    return plan(inputs, inputs + 1, [inputs], [("aten", name, overload, arguments, [inputs])])


# ---- kernels and tensors ----


def seed_plan(kernels: bytes, count: Any) -> _shim.LaunchPlan:
    steps = [alloc(2, [count], [1]), ("kernel", 0, [0, 1, 2], [], count)]
    return plan(2, 3, [2], steps, kernels=[("cpu", "add_relu", kernels)])


def test_the_seed_example(mode: str, kernels: bytes) -> None:
    x, y = torch.tensor([1.0, -2.0, 3.0, -4.0]), torch.full((4,), 0.5)
    run = seed_plan(kernels, 4)
    for _ in range(3):
        (result,) = run(x, y)
        assert torch.equal(result, torch.relu(x + y) * 2)
        assert type(result) is torch.Tensor
        assert (result._version, result.requires_grad, result.is_leaf) == (0, False, True)
    assert run.describe() == [("alloc", 2), ("kernel", 0)]


@pytest.mark.parametrize("count", [0, 1, 1000, 1 << 17, (1 << 20) + 3])
def test_large_work_is_split_over_threads(mode: str, kernels: bytes, count: int) -> None:
    run = seed_plan(kernels, ("size", 0, 0))
    x, y = torch.randn(count), torch.randn(count)
    for threads in (1, 3):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            assert torch.equal(run(x, y)[0], torch.relu(x + y) * 2)
        finally:
            torch.set_num_threads(before)


def test_every_iteration_runs_once(kernels: bytes) -> None:
    steps = [("kernel", 0, [0], [], ("size", 0, 0))]
    run = plan(1, 1, [0], steps, kernels=[("cpu", "mark", kernels)])
    counts = torch.zeros(300_001, dtype=torch.int64)
    for _ in range(5):
        assert run(counts)[0] is counts
    assert torch.equal(counts, torch.full_like(counts, 5))


def test_scalars(mode: str, kernels: bytes) -> None:
    size = ("size", 0, 0)
    steps = [alloc(3, [size], [1]), ("kernel", 0, [0, 3], [("slot", 1), ("+", ("slot", 2), 1)], size)]
    run = plan(3, 4, [3], steps, kernels=[("cpu", "scale", kernels)])
    x = torch.randn(5)
    assert torch.equal(run(x, 0.5, 7)[0], x * 0.5 + 8)
    assert torch.equal(run(x, -0.0, -1)[0], x * -0.0)
    with pytest.raises(TypeError, match="number"):
        run(x, "a", 7)
    with pytest.raises(OverflowError):
        run(x, 0.5, 2**63)
    with pytest.raises(TypeError, match="tensor"):
        run(5, 0.5, 7)


def test_more_pointers_than_fit_the_stack(mode: str, kernels: bytes) -> None:
    steps = [alloc(39, [39], [1], LONG), ("kernel", 0, list(range(40)), list(range(39)), 1)]
    run = plan(39, 40, [39], steps, kernels=[("cpu", "many", kernels)])
    inputs = [torch.tensor(i * i) for i in range(39)]
    assert run(*inputs)[0].tolist() == [i * i + i for i in range(39)]


def test_outputs_are_distinct_and_inputs_are_themselves(mode: str) -> None:
    run = plan(2, 4, [2, 0, 3, 1, 2], [alloc(2, [3], [1]), alloc(3, [3], [1])])
    tensor, anything = torch.ones(3), object()
    first, same, second, other, again = run(tensor, anything)
    assert same is tensor
    assert other is anything
    assert again is first
    assert first.data_ptr() != second.data_ptr()
    assert run(tensor, anything)[0].data_ptr() != first.data_ptr()


def test_strides_and_dtypes_of_allocations(mode: str) -> None:
    (result,) = plan(0, 1, [0], [alloc(0, [2, 3], [1, 2], DOUBLE)])()
    assert (result.dtype, result.shape, result.stride()) == (torch.float64, (2, 3), (1, 2))
    (scalar,) = plan(0, 1, [0], [alloc(0, [], [])])()
    assert scalar.shape == ()


def test_inner_views(mode: str, kernels: bytes) -> None:
    (two,) = torch.tensor([2.0], dtype=torch.float64).view(torch.int64).tolist()
    steps = [
        ("view", 1, 0, [3], [1], 2),
        alloc(2, [4], [1]),
        ("view", 3, 2, [3], [1], 1),
        ("kernel", 0, [1, 3], [two, 0], 3),
    ]
    run = plan(1, 4, [2], steps, kernels=[("cpu", "scale", kernels)])
    assert run(torch.arange(6.0))[0][1:].tolist() == [4.0, 6.0, 8.0]


def test_views_that_escape_are_views_of_their_base(mode: str) -> None:
    run = plan(1, 3, [2], [("view", 1, 0, [2, 3], [3, 1], 0), ("view", 2, 1, [2], [3], 1)])
    x = torch.arange(6.0)
    (result,) = run(x)
    assert torch.equal(result, x.view(2, 3)[:, 1])
    before = x._version
    result.add_(1)
    assert x._version == before + 1
    assert x[1] == 2


def test_views_out_of_bounds_raise(mode: str) -> None:
    run = plan(1, 2, [1], [("view", 1, 0, [100], [1], 0)])
    with pytest.raises(RuntimeError):
        run(torch.ones(3))


def test_free_and_reuse(mode: str) -> None:
    steps = [alloc(1, [4], [1]), ("free", 1), ("free", 0), alloc(1, [2], [1])]
    assert plan(1, 2, [1, 0], steps)(torch.ones(1))[0].shape == (2,)


def test_written_inputs_get_a_new_version(mode: str) -> None:
    tensor = torch.ones(1)
    plan(1, 1, [0], [("written", 0)])(tensor)
    assert tensor._version == 1


def test_memory_errors_are_torchs_own(mode: str) -> None:
    run = plan(0, 1, [0], [alloc(0, [1 << 58], [1])])
    with pytest.raises(RuntimeError) as mine:
        run()
    with pytest.raises(RuntimeError) as eager:
        torch.empty_strided([1 << 58], [1])
    assert str(mine.value).split("\n")[0] == str(eager.value).split("\n")[0]


# ---- integers ----

integers = st.integers(-(2**40), 2**40)
expressions = st.recursive(
    integers
    | st.tuples(st.just("slot"), st.integers(0, 1))
    | st.tuples(st.just("size"), st.just(2), st.integers(0, 1)),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "//"]), inner, inner),
    max_leaves=8,
)


def evaluate(expression: Any, a: int, b: int, tensor: torch.Tensor) -> int:
    match expression:
        case ("slot", index):
            return (a, b)[index]
        case ("size", _, dimension):
            return tensor.shape[dimension]
        case (operation, left, right):
            first, second = evaluate(left, a, b, tensor), evaluate(right, a, b, tensor)
            value = {
                "+": lambda: first + second,
                "-": lambda: first - second,
                "*": lambda: first * second,
                "//": lambda: first // second,
            }[operation]()
            if not -(2**63) <= value < 2**63:
                raise OverflowError
            return value
        case _:
            return expression


@settings(max_examples=300, deadline=None)
@given(expressions, integers, integers)
def test_expressions(expression: Any, a: int, b: int) -> None:
    fill = ("aten", "full", "", [("ints", []), ("scalar", expression), ("dtype", LONG), *[("none",)] * 3], [3])
    run = plan(3, 4, [3], [("view", 3, 2, [], [], 0), ("free", 3), fill])
    tensor = torch.empty(3, 5)
    try:
        expected: Any = evaluate(expression, a, b, tensor)
    except (OverflowError, ZeroDivisionError) as error:
        with pytest.raises(type(error)):
            run(a, b, tensor)
    else:
        assert run(a, b, tensor)[0].item() == expected


def test_sizes_are_bounds_checked(mode: str) -> None:
    for dimension in (2, -3, 2**62):
        run = plan(1, 2, [1], [alloc(1, [("size", 0, dimension)], [1])])
        with pytest.raises((IndexError, OverflowError)):
            run(torch.ones(3))


# ---- operators ----

X = torch.randn(2, 3, 8, 8)
W = torch.randn(4, 3, 3, 3)
INDEX = torch.tensor([1, 0])

none = ("none",)

CASES: dict[str, tuple[str, str, list[Any], list[Any], Callable[..., Any]]] = {
    "tensor": ("relu", "", [("t", 0)], [X], torch.relu),
    "scalar": ("add", "Tensor", [("t", 0), ("t", 0), ("scalar", 2)], [X], lambda x: x + 2 * x),
    "float scalar": ("add", "Scalar", [("t", 0), ("scalar", 0.5), ("scalar", 1)], [X], lambda x: x + 0.5),
    "bool scalar": ("eq", "Scalar", [("t", 0), ("scalar", True)], [X > 0], lambda x: x == True),  # noqa: E712
    "int": ("softmax", "int", [("t", 0), ("int", -1), none], [X], lambda x: x.softmax(-1)),
    "dtype": ("softmax", "int", [("t", 0), ("int", 1), ("dtype", DOUBLE)], [X], lambda x: x.softmax(1, torch.float64)),
    "ints": (
        "sum",
        "dim_IntList",
        [("t", 0), ("ints", [0, 2]), ("bool", True), none],
        [X],
        lambda x: x.sum((0, 2), True),
    ),
    "no ints": ("sum", "dim_IntList", [("t", 0), none, ("bool", False), none], [X], torch.sum),
    "float": (
        "layer_norm",
        "",
        [("t", 0), ("ints", [8]), none, none, ("float", 1e-3), ("bool", False)],
        [X],
        lambda x: torch.nn.functional.layer_norm(x, [8], eps=1e-3),
    ),
    "int for a float": (
        "dropout",
        "",
        [("t", 0), ("int", 0), ("bool", True)],
        [X],
        lambda x: torch.dropout(x, 0, True),
    ),
    "str": ("gelu", "", [("t", 0), ("str", "tanh")], [X], lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
    "convolution": (
        "convolution",
        "",
        [("t", 0), ("t", 1), none]
        + [("ints", [1, 1]), ("ints", [1, 1]), ("ints", [1, 1]), ("bool", False), ("ints", [0, 0]), ("int", 1)],
        [X, W],
        lambda x, w: torch.conv2d(x, w, padding=1),
    ),
    "tensors": ("cat", "", [("tensors", [0, 1, 0]), ("int", 0)], [X, X + 1], lambda x, y: torch.cat([x, y, x])),
    "no tensors": ("einsum", "", [("str", "ab->ba"), ("tensors", [0]), none], [X[0, 0]], lambda x: x.t()),
    "optional tensors": (
        "index",
        "Tensor",
        [("t", 0), ("optional_tensors", [-1, 1])],
        [X, INDEX],
        lambda x, i: x[:, i],
    ),
    "device and layout": (
        "zeros",
        "",
        [("ints", [2, ("size", 0, 1)]), ("dtype", LONG), ("layout", 0), ("device", 0, -1), ("bool", False)],
        [X],
        lambda x: torch.zeros(2, 3, dtype=torch.int64),
    ),
    "memory format": (
        "clone",
        "",
        [("t", 0), ("memory_format", 2)],
        [X],
        lambda x: x.clone(memory_format=torch.channels_last),
    ),
    "optional floats": (
        "upsample_nearest2d",
        "vec",
        [("t", 0), none, ("floats", [2.0, 2.0])],
        [X],
        lambda x: torch.nn.functional.interpolate(x, scale_factor=2.0),
    ),
    "view": ("view", "", [("t", 0), ("ints", [6, -1])], [X], lambda x: x.view(6, -1)),
    "fewer arguments": ("sum", "dim_IntList", [("t", 0), ("ints", [1])], [X], lambda x: x.sum(1)),
    "matrix product": (
        "addmm",
        "",
        [("t", 1), ("t", 0), ("t", 0), ("scalar", 1), ("scalar", 1)],
        [X[0, 0], X[0, 1]],
        lambda a, b: torch.addmm(b, a, a),
    ),
    "number bounds": ("clamp", "", [("t", 0), ("scalar", -0.5), none], [X], lambda x: x.clamp(min=-0.5)),
    "power": ("pow", "Tensor_Scalar", [("t", 0), ("scalar", 3)], [X], lambda x: x**3),
}


@pytest.mark.parametrize("name", list(CASES))
def test_operators_match_eager(mode: str, name: str) -> None:
    operator, overload, arguments, inputs, eager = CASES[name]
    run = one(operator, overload, arguments, len(inputs))
    expected = eager(*inputs)
    for _ in range(2):
        (result,) = run(*inputs)
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
        assert result.stride() == expected.stride()
    ((kind, full_name, way),) = run.describe()
    assert (kind, full_name.split(".")[1]) == ("aten", operator)
    assert way in ("dispatcher", "binding", "overload")


def test_the_dispatcher_carries_all_but_numbers() -> None:
    found = {name: one(case[0], case[1], case[2], len(case[3])).describe()[0][2] for name, case in CASES.items()}
    with_numbers = {"scalar", "float scalar", "bool scalar", "matrix product", "number bounds", "power"}
    incomplete = {"fewer arguments"}
    assert {name for name, way in found.items() if way != "dispatcher"} == with_numbers | incomplete


def test_several_outputs(mode: str) -> None:
    steps = [("aten", "max", "dim", [("t", 0), ("int", 1), ("bool", False)], [1, 2])]
    values, indices = plan(1, 3, [1, 2], steps)(X)
    expected = X.max(1)
    assert torch.equal(values, expected.values)
    assert torch.equal(indices, expected.indices)
    dropped = [("aten", "max", "dim", [("t", 0), ("int", 1), ("bool", False)], [-1, 1])]
    assert torch.equal(plan(1, 2, [1], dropped)(X)[0], expected.indices)


def test_lists_of_outputs(mode: str) -> None:
    steps = [("aten", "split", "Tensor", [("t", 0), ("int", 1), ("int", 1)], [1, 2, 3])]
    parts = plan(1, 4, [1, 2, 3], steps)(X)
    for part, expected in zip(parts, X.split(1, 1), strict=True):
        assert torch.equal(part, expected)
        assert part.data_ptr() == expected.data_ptr()
    with pytest.raises(RuntimeError, match="expects"):
        plan(1, 4, [1, 2, 3], steps)(X[:, :2])


def test_operators_on_results_of_operators(mode: str, kernels: bytes) -> None:
    steps = [
        ("aten", "relu", "", [("t", 0)], [1]),
        ("aten", "t", "", [("t", 1)], [2]),
        ("free", 1),
        ("aten", "mm", "", [("t", 0), ("t", 2)], [3]),
        ("aten", "sum", "", [("t", 3), none], [4]),
    ]
    x = torch.randn(3, 4)
    assert torch.equal(plan(1, 5, [4, 3], steps)(x)[0], (x @ x.relu().t()).sum())


FAILURES: dict[str, tuple[str, str, list[Any], list[Any], Callable[..., Any]]] = {
    "shape": ("mm", "", [("t", 0), ("t", 0)], [torch.ones(2, 3)], lambda x: torch.mm(x, x)),
    "index": (
        "embedding",
        "",
        [("t", 0), ("t", 1), ("int", -1), ("bool", False), ("bool", False)],
        [torch.ones(2, 2), torch.tensor([5])],
        lambda w, i: torch.embedding(w, i),
    ),
    "dimension": ("softmax", "int", [("t", 0), ("int", 7), none], [torch.ones(2)], lambda x: x.softmax(7)),
    "not implemented": ("mm", "", [("t", 0), ("t", 0)], [torch.ones(2, 2, dtype=torch.bool)], lambda x: torch.mm(x, x)),
    "in place": (
        "add_",
        "Tensor",
        [("t", 0), ("t", 1), ("scalar", 1)],
        [torch.ones(2), torch.ones(3)],
        lambda x, y: x.add_(y),
    ),
}


@pytest.mark.parametrize("name", list(FAILURES))
def test_errors_are_eagers_own(mode: str, name: str) -> None:
    operator, overload, arguments, inputs, eager = FAILURES[name]
    run = one(operator, overload, arguments, len(inputs))
    with pytest.raises(Exception) as expected:
        eager(*inputs)
    for _ in range(2):
        with pytest.raises(type(expected.value)) as found:
            run(*inputs)
        assert type(found.value) is type(expected.value)
        assert str(found.value).split("\n")[0] == str(expected.value).split("\n")[0]


def test_operators_in_place(mode: str) -> None:
    run = plan(2, 3, [2, 0], [("aten", "add_", "Tensor", [("t", 0), ("t", 1), ("scalar", 1)], [2])])
    x, y = torch.ones(3), torch.ones(3)
    version = x._version
    result, same = run(x, y)
    assert result is x
    assert same is x
    assert (x._version, x.tolist()) == (version + 1, [2.0, 2.0, 2.0])
    copy = plan(2, 2, [], [("aten", "copy_", "", [("t", 0), ("t", 1), ("bool", False)], [])])
    assert copy(x, torch.zeros(3)) == ()
    assert (x._version, x.tolist()) == (version + 2, [0.0, 0.0, 0.0])


def test_random_operators_follow_the_seed(mode: str) -> None:
    run = one("bernoulli", "", [("t", 0), ("generator", None)])
    torch.manual_seed(5)
    expected = torch.bernoulli(torch.full((9,), 0.5))
    torch.manual_seed(5)
    assert torch.equal(run(torch.full((9,), 0.5))[0], expected)


def test_parameters_are_accepted(mode: str) -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    with torch.no_grad():
        assert one("relu", "", [("t", 0)])(weight)[0].tolist() == [1.0, 1.0]


# ---- robustness ----


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": -1},
        {"inputs": 5},
        {"slots": -1},
        {"slots": 2**40},
        {"outputs": [1]},
        {"outputs": [9]},
        {"outputs": [-1]},
        {"outputs": 5},
        {"steps": [("nothing",)]},
        {"steps": [5]},
        {"steps": [("alloc", 1, 6, 0, -1, [2], [1, 1])]},
        {"steps": [("alloc", 1, 6, 0, -1, [2, 2], [1])]},
        {"steps": [("alloc", 1, 99, 0, -1, [2], [1])]},
        {"steps": [("alloc", 1, 6, 9, -1, [2], [1])]},
        {"steps": [("alloc", 0, 6, 0, -1, [2], [1])]},
        {"steps": [("alloc", 9, 6, 0, -1, [2], [1])]},
        {"steps": [("alloc", 1, 6, 0, -1, [1.5], [1])]},
        {"steps": [("alloc", 1, 6, 0, -1, [2**64], [1])]},
        {"steps": [("alloc", 1, 6, 0, -1, [("**", 1, 2)], [1])]},
        {"steps": [("alloc", 1, 6, 0, -1, [("+", 1)], [1])]},
        {"steps": [("alloc", 1, 6, 0, -1, [("slot", 1)], [1])]},
        {"steps": [("alloc", 1, 6, 0, -1, [1] * 65, [1] * 65)]},
        {"steps": [("view", 1, 2, [2], [1], 0)]},
        {"steps": [("view", 1, 0, [("slot", 0)], [1], 0)]},
        {"steps": [("kernel", 0, [0], [], 1)]},
        {"steps": [("free", 1)]},
        {"steps": [("aten", "no such operator", "", [], [])]},
        {"steps": [("aten", "relu", "no such overload", [("t", 0)], [1])]},
        {"steps": [("aten", "relu", "", [("t", 0), ("t", 0)], [1])]},
        {"steps": [("aten", "relu", "", [("t", 2)], [1])]},
        {"steps": [("aten", "relu", "", [("nothing", 0)], [1])]},
        {"steps": [("aten", "relu", "", [0], [1])]},
        {"steps": [("aten", "relu", "", 5, [1])]},
        {"steps": [("aten", "relu", "", [("t", 0)], [0])]},
        {"steps": [("aten", "relu", "", [("t", 0)], 5)]},
        {"steps": [("aten", "softmax", "int", [("t", 0), ("int", 0), ("dtype", 77)], [1])]},
        {"steps": [("aten", "clone", "", [("t", 0), ("memory_format", 9)], [1])]},
        {"kernels": [("cpu", "f", b"")]},
        {"kernels": [("gpu", "f", b"")]},
        {"kernels": [5]},
        {"kernels": [("cuda", "f", b"", 0, 1, 0, False)]},
    ],
)
def test_malformed_plans_are_refused(change: dict[str, Any]) -> None:
    good = {"inputs": 1, "slots": 3, "outputs": [0], "steps": [], "kernels": []}
    _shim.LaunchPlan(good)
    with pytest.raises((ValueError, TypeError, AttributeError, OverflowError)):
        _shim.LaunchPlan(good | change)


def test_missing_parts_are_refused() -> None:
    good = {"inputs": 1, "slots": 3, "outputs": [0], "steps": [], "kernels": []}
    for key in good:
        with pytest.raises(ValueError, match=key):
            _shim.LaunchPlan({name: value for name, value in good.items() if name != key})


def test_deep_expressions_are_refused() -> None:
    expression: Any = 1
    for _ in range(5000):
        expression = ("+", expression, 1)
    with pytest.raises(ValueError, match="deep"):
        plan(0, 1, [0], [alloc(0, [expression], [1])])


def test_wrong_number_of_inputs() -> None:
    run = plan(1, 1, [0], [])
    for arguments in ((), (1, 2)):
        with pytest.raises(TypeError, match="1 positional"):
            run(*arguments)
    with pytest.raises(TypeError):
        run(x=1)  # type: ignore[call-arg]


def test_plans_do_not_outlive_a_calibration() -> None:
    run = plan(0, 1, [0], [alloc(0, [1], [1])])
    _shim.calibrate(torch, portable=True)
    try:
        with pytest.raises(RuntimeError, match="calibrated anew"):
            run()
    finally:
        _shim.calibrate(torch)
    assert run()[0].shape == (1,)


def test_threads_share_a_plan(kernels: bytes) -> None:
    run = seed_plan(kernels, ("size", 0, 0))
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = torch.full((70_000,), float(seed))
        for _ in range(20):
            if not torch.equal(run(x, x)[0], x * 4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_references_stay_balanced(mode: str, kernels: bytes) -> None:
    x, y = torch.ones(4), torch.ones(4)
    good = seed_plan(kernels, 4)
    steps = [
        ("aten", "cat", "", [("tensors", [0, 1]), ("int", 0)], [2]),
        ("view", 3, 2, [2], [1], 0),
        alloc(4, [8], [1]),
        ("aten", "mm", "", [("t", 2), ("t", 2)], [5]),
    ]
    failing = plan(2, 6, [5, 2], steps)

    def fail() -> None:
        with pytest.raises(RuntimeError):
            failing(x, y)

    for action in (lambda: good(x, y), fail):
        for _ in range(3):
            action()
        gc.collect()
        before = (sys.getrefcount(x), sys.getrefcount(y), sum(type(o) is torch.Tensor for o in gc.get_objects()))
        for _ in range(50):
            action()
        gc.collect()
        after = (sys.getrefcount(x), sys.getrefcount(y), sum(type(o) is torch.Tensor for o in gc.get_objects()))
        assert after == before


def test_memory_is_returned(mode: str, kernels: bytes) -> None:
    """Eight megabytes a run: anything kept would show."""
    steps = [
        alloc(1, [1 << 20], [1]),
        ("view", 2, 1, [1 << 20], [1], 0),
        ("aten", "relu", "", [("t", 2)], [3]),
        ("aten", "split", "Tensor", [("t", 3), ("int", 1 << 19), ("int", 0)], [4, 5]),
    ]
    run = plan(1, 6, [4], steps)
    before = resident_bytes()
    for _ in range(100):
        run(None)
    assert resident_bytes() - before < 200 << 20


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_warnings_are_left_alone(mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one("relu", "", [("t", 0)])(X)


@pytest.mark.parametrize("claimed", [[3, 1], [1, 2], [6, 2]])
def test_layout_is_made_what_the_plan_claims(mode: str, claimed: list[int]) -> None:
    steps: list[Any] = [("aten", "t", "", [("t", 0)], [1]), ("layout", 1, claimed)]
    x = torch.arange(6.0).view(3, 2)
    (result,) = plan(1, 2, [1], steps)(x)
    assert torch.equal(result, x.t()) and list(result.stride()) == claimed
    assert (result.data_ptr() == x.data_ptr()) == (claimed == [1, 2])


def test_layout_of_one_element_a_dimension(mode: str) -> None:
    steps: list[Any] = [("aten", "relu", "", [("t", 0)], [1]), ("layout", 1, [7, 1])]
    for x in (torch.ones(1, 4), torch.ones(0, 4)):
        (result,) = plan(1, 2, [1], steps)(x)
        assert result.stride() == torch.relu(x).stride()
    with pytest.raises(ValueError, match="slot 1"):
        plan(1, 2, [0], [("layout", 1, [1])])


# ---- inputs that must be apart ----


def test_inputs_that_are_written_must_be_apart(mode: str, kernels: bytes) -> None:
    """The fallback is called, with nothing of the plan run, where a written input shares memory with another."""
    apart = [(0, 8, 1, True), (1, 8, 2, False)]
    described = {"inputs": 2, "slots": 2, "outputs": [], "steps": [("kernel", 0, [0], [], 1)], "apart": apart}
    described["kernels"] = [("cpu", "mark", kernels)]
    given: list[Any] = []
    run = _shim.LaunchPlan(described, lambda *inputs: given.append(inputs))
    base = torch.zeros(12, dtype=torch.int64)
    for first, second, overlap in (
        (base[:4], base[4:8].view(2, 2), False),
        (base[:4], base[3:7].view(2, 2), True),
        (base[:4], base[4:8].view(2, 2), False),
        (base[4:8], base.as_strided((2, 2), (8, 2), 1), True),
        (base[4:8], base[:4].view(2, 2), False),
        (base[4:8], base[4:4].view(0, 1), False),
    ):
        base.zero_()
        given.clear()
        run(first, second)
        assert bool(given) == overlap and bool(base.any()) != overlap
        assert not overlap or (given[0][0] is first and given[0][1] is second)
    with pytest.raises(RuntimeError, match="share memory"):
        _shim.LaunchPlan(described)(base[:4], base.view(6, 2))
    with pytest.raises(ValueError, match="bad sizes"):
        _shim.LaunchPlan({**described, "apart": [(0, 0, 1, True)]})


def test_consumed_inputs_end_where_they_are_freed() -> None:
    """The second operator finds the memory of the first input free, which a weak reference shows."""
    steps = [
        ("aten", "relu", "", [("t", 0)], [2]),
        ("free", 0),
        ("aten", "add", "Tensor", [("t", 2), ("t", 1)], [3]),
        ("free", 2),
        ("free", 1),
    ]
    held = plan(2, 4, [3], steps, consumes=True)
    x, y = torch.tensor([-1.0, 2.0]), torch.tensor([3.0, 4.0])
    inputs, ended = [x, y], []
    finalizer = weakref.finalize(x, ended.append, "x")
    del x
    (out,) = held.consume(inputs)
    assert out.tolist() == [3.0, 6.0] and inputs == [] and ended == ["x"] and y.tolist() == [3.0, 4.0]
    finalizer.detach()
    assert held(torch.tensor([1.0]), torch.tensor([1.0]))[0].tolist() == [2.0]
    for wrong in ([y], (y, y), [y, 1]):
        with pytest.raises(TypeError):
            held.consume(wrong)  # type: ignore[arg-type]


def test_a_freed_input_is_not_read() -> None:
    steps = [("free", 0), ("aten", "relu", "", [("t", 0)], [1])]
    with pytest.raises(ValueError):
        plan(1, 2, [1], steps, consumes=True)
    assert plan(1, 2, [1], steps)(torch.tensor([-1.0, 1.0]))[0].tolist() == [0.0, 1.0]  # a borrowed one stays


PLACED = [
    ("alloc", 1, 6, 0, -1, [("size", 0, 0)], [1]),
    ("aten", "add_", "Tensor", [("t", 1), ("t", 0)], [2]),
]


@pytest.mark.parametrize("portable", [False, True])
def test_outputs_are_placed_where_the_caller_says(portable: bool) -> None:
    _shim.calibrate(torch, portable=portable)
    try:
        placed = plan(1, 3, [1, 0], PLACED)
        assert placed.placeable() == (True, False)
        x = torch.tensor([1.0, 2.0])
        for place in (torch.zeros(2), torch.ones(2)):
            want = place + x
            (out, same) = placed.into((x,), (place, None))
            assert out is place and same is x and torch.equal(place, want)
        (out, _) = placed.into((x,), (None, None))
        assert out.shape == (2,) and out is not x
    finally:
        _shim.calibrate(torch)


def test_a_place_must_be_like_the_output() -> None:
    placed = plan(1, 3, [1, 0], PLACED)
    x = torch.tensor([1.0, 2.0])
    for place in (
        torch.zeros(3),
        torch.zeros(2, 1),
        torch.zeros(2).double(),
        torch.zeros(4)[::2],
        1,
        torch.zeros(()),
        "x",
    ):
        with pytest.raises(ValueError, match="place"):
            placed.into((x,), (place, None))
    with pytest.raises(ValueError, match="placed"):
        placed.into((x,), (None, torch.zeros(2)))
    for wrong in (((x,), ()), ([x], (None, None)), ((x,),), ((x, x), (None, None))):
        with pytest.raises(TypeError):
            placed.into(*wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "outputs"),
    [
        ([PLACED[0], ("view", 2, 1, [1], [1], 0)], [2]),
        ([("aten", "relu", "", [("t", 0)], [1])], [1]),
        ([PLACED[0]], [1, 1]),
        ([PLACED[0], ("free", 1), PLACED[0]], [1]),
        ([], [0]),
    ],
)
def test_outputs_that_have_no_place(steps: list[Any], outputs: list[int]) -> None:
    assert not any(plan(1, 3, outputs, steps).placeable())


def test_state_of_a_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host gives it, from a description and tensors, and later steps read it; a captured one is left alone."""
    captured = False
    given: list[Any] = []

    def state(tensors: tuple[torch.Tensor, ...], draws: tuple[int, ...], device: int) -> list[int]:
        given.append((tensors, draws, device))
        return [1, 2, 5, 4]

    host = types.ModuleType("fusee._random")
    vars(host).update(reserved=state, is_captured=lambda: captured)
    monkeypatch.setitem(sys.modules, "fusee._random", host)
    steps = [
        ("generator", 1, 3, [24, 4, 2, 0, 8], [0]),
        ("alloc", 2, FLOAT, *CPU, [("item", 1, 2), ("+", ("item", 1, 1), 1)], [3, 1]),
        ("free", 1),
    ]
    described = {"inputs": 1, "slots": 3, "outputs": [2], "steps": steps, "kernels": []}
    run, x = _shim.LaunchPlan(described, lambda x: (x + 1,)), torch.ones(3)
    (found,) = run(x)
    assert found.shape == (5, 3)
    ((tensors, draws, device),) = given
    assert tensors[0] is x
    assert (draws, device) == ((24, 4, 2, 0, 8), 3)
    captured = True
    assert torch.equal(run(x)[0], x + 1)
    beyond = plan(1, 3, [2], [steps[0], ("alloc", 2, FLOAT, *CPU, [("item", 1, 4)], [1])])
    with pytest.raises(IndexError, match="element 4"):
        beyond(x)
