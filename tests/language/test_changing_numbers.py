"""Numbers and sizes that change from call to call give what plain Python gives, with few compilations.

``FUSEE_TEST_PROGRAMS`` sets how many random programs are made (25 without it).
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as functional
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusee

COUNT = int(os.environ.get("FUSEE_TEST_PROGRAMS", "25"))
X = torch.arange(12.0).reshape(3, 4)
INTS = [4, 7, 9, -5, 100, 0, 1, 2, 2**33, -1, 3, 2**62, 2**63, -(2**70)]
FLOATS = [0.5, 0.25, 3.0, -2.0, 0.0, -0.0, 1.0, math.inf, math.nan, 1e-3]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def outcome(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """What a call returns, or the exception's type and text."""
    try:
        return function(*arguments)
    except Exception as error:
        return type(error), str(error)


def same(got: Any, want: Any) -> None:
    """Equal in types and values; tensors as closely as their type allows."""
    assert type(got) is type(want), (got, want)
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want, equal_nan=True)
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want), (got, want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
    elif isinstance(want, dict):
        same(list(got.items()), list(want.items()))
    else:
        assert repr(got) == repr(want), (got, want)


def follow(make: Callable[[], Any], calls: Sequence[Sequence[Any]], **options: Any) -> int:
    """Run two instances of a program over the calls, one of them compiled; how many recompilations it took."""
    plain, fast = make(), fusee.compile(make(), **options)
    before = fusee.stats()["recompiles"]
    for arguments in calls:
        same(outcome(fast, arguments), outcome(plain, arguments))
    return fusee.stats()["recompiles"] - before


# ---- arguments ----


def arithmetic(x: torch.Tensor, n: int) -> Any:
    return n * 2 - 1, -n, abs(n), n // 3, n % 3, n % -4, (n + 1) // -2, ~n, +n, n * n, n / 7, float(n)


def in_graph(x: torch.Tensor, n: int) -> Any:
    return x * n, x + n * 2, (x > n).sum(), n + 1


def with_functions(x: torch.Tensor, n: int) -> Any:
    return min(n, 5), max(n, 2, 3), n**2, n & 3, n >> 1, n | 8, n ^ 5, int(n), x + min(n, 5)


def floats(x: torch.Tensor, lr: float) -> Any:
    return x * lr + lr, lr * 0.1, -lr, abs(lr), lr / 3, lr**2, min(1.0, lr), round(lr, 2), float(lr), lr - 1, 2 * lr


@pytest.mark.parametrize(
    ("function", "values", "most"),
    [(arithmetic, INTS, 5), (in_graph, INTS[:11], 2), (with_functions, INTS, 6), (floats, FLOATS, 2)],
)
@pytest.mark.parametrize("dynamic", [None, True])
def test_one_entry_serves_all_values(
    function: Callable[..., Any], values: list[Any], most: int, dynamic: bool | None
) -> None:
    assert follow(lambda: function, [(X, value) for value in values], dynamic=dynamic) <= most


def test_numbers_are_constants_where_nothing_is_dynamic() -> None:
    assert follow(lambda: in_graph, [(X, n) for n in (1, 2, 3)], dynamic=False) == 2


@pytest.mark.parametrize("backend", ["eager", lambda module, inputs: module.forward])
def test_other_backends_get_numbers_and_sizes(backend: Any) -> None:
    def program(x: torch.Tensor, n: int, rate: float) -> Any:
        return x.view(-1, x.size(0)) * rate + n, x[: n + 1], torch.zeros(max(n, 2), x.size(1) % 3)

    calls = [(torch.randn(size, 4), n, 0.5 * n) for size, n in ((5, 3), (6, 4), (9, 2), (3, 7))]
    assert follow(lambda: program, calls, backend=backend, dynamic=True) <= 1


@pytest.mark.parametrize(
    "computed", [lambda n: n | n, lambda n: n ^ 1, lambda n: n**2, lambda n: n >> 1, lambda n: n & 1]
)
def test_what_is_decided_by_a_number_that_python_computes_holds_for_its_value(computed: Callable[..., Any]) -> None:
    def program(n: int) -> Any:
        return "some" if computed(n) else "none", computed(n) == 4

    follow(lambda: program, [(n,) for n in (2, 0, 1, 3, 2, 0, 4, 5, 1)])


def laid_out(x: torch.Tensor) -> Any:
    results = x.relu(), x + 1, x.sum(-1), x.new_zeros(x.size(0), x.size(1), 2), 2**x, 2 ** x.t(), x.t() * 2
    return [(result.shape, result.stride()) for result in results]


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_dimensions_without_elements_count_as_one_in_strides(dynamic: bool | None) -> None:
    sizes = [(4, 3), (0, 3), (3, 0), (2, 0), (2, 5), (0, 0), (1, 3)]
    follow(lambda: laid_out, [(torch.ones(size),) for size in sizes], dynamic=dynamic)


def branches(x: torch.Tensor, n: int) -> Any:
    if n > 5:
        return x + n
    return x - n if n else x


def test_a_branch_is_a_guard() -> None:
    calls = [(X, n) for n in (3, 4, 5, 6, 7, 8, 100, -1, 0, 2, 9)]
    assert follow(lambda: branches, calls) <= 4
    texts = [guard["text"] for guard in fusee.explain(branches, dynamic=True)(X, 9).guards]
    assert "n >= 6" in texts


def looks_at_values(x: torch.Tensor, n: int) -> Any:
    return (
        f"{n:4}",
        str(n),
        {n: 1},
        hash(n),
        isinstance(n, int),
        type(n) is int,
        n is None,
        bool(n),
        n == 4,
        n in (4, 7),
    )


def test_what_has_no_symbolic_form_is_pinned() -> None:
    follow(lambda: looks_at_values, [(X, n) for n in (4, 7, 9, 0, 1, True, False, 4)])


def test_huge_constants_are_compared_exactly() -> None:
    def compared(x: torch.Tensor, n: int, m: int) -> Any:
        return m < x.size(0) - n, n < m, n + 1 == m, x + 1

    follow(
        lambda: compared, [(X, n, m) for n, m in ((3, 5), (64, 2**63 - 1), (64, -(2**63)), (5, 2**63 - 2), (7, 2**62))]
    )


def test_kinds_of_numbers_are_told_apart() -> None:
    def kinds(x: torch.Tensor, n: Any) -> Any:
        return n + 1, n / 2, isinstance(n, bool), type(n)

    follow(lambda: kinds, [(X, n) for n in (3, 4, 5.0, 6.5, True, False, 7, 2**80, 1 + 2j, -3, 0.0)])


def division(x: torch.Tensor, n: int, d: int) -> Any:
    try:
        return x + n // d, n % d
    except ZeroDivisionError:
        return "no"


def test_division_by_zero() -> None:
    pairs = [(5, 2), (7, 3), (8, 4), (9, 0), (9, -2), (0, 5), (3, 0)]
    assert follow(lambda: division, [(X, *pair) for pair in pairs]) <= 4
    assert follow(lambda: lambda n, d: n // d, pairs) <= 4


def test_an_exception_of_a_computed_number_meets_the_programs_handler() -> None:
    def reciprocal(x: torch.Tensor, n: int) -> Any:
        try:
            return x / n, 1 / n, math.sqrt(n)
        except (ZeroDivisionError, ValueError) as error:
            return str(error)

    assert follow(lambda: reciprocal, [(X, n) for n in (4, 2, 9, 0, 16, -1, 25)]) <= 4


def test_lists_and_dicts_of_numbers() -> None:
    def total(x: torch.Tensor, ns: list[Any], table: dict[str, Any]) -> Any:
        return [x * n for n in ns], sum(ns), {"scale": table["scale"] * 2, "all": [*ns, table["bias"]]}

    calls = [(X, [n, n + 0.5], {"scale": n * n, "bias": 0.1 * n}) for n in (2, 3, 5, 8, 13)]
    assert follow(lambda: total, calls) == 1


def test_strings_and_loops_are_unrolled_for_their_number() -> None:
    def loop(x: torch.Tensor, n: int) -> Any:
        for i in range(n):
            x = x + i * n
        return x

    follow(lambda: loop, [(X, n) for n in (2, 3, 0, 1, 3)])


# ---- state that lives on ----


def attribute_counter() -> Any:
    class Module(torch.nn.Module):
        step = 0

        def __init__(self) -> None:
            super().__init__()
            self.seen, self.rate = 0, 0.5

        def forward(self, x: torch.Tensor) -> Any:
            self.seen += 1
            self.rate *= 0.9
            return x * self.rate, self.seen, min(1.0, self.seen / 5)

    return Module()


def dictionary_counter() -> Any:
    state: dict[str, Any] = {"step": 0, "rate": 0.1, "pair": [1, 2.0]}

    def step(x: torch.Tensor) -> Any:
        state["step"] += 1
        state["rate"] *= 0.9
        state["pair"][0] += 2
        bias = 1 - 0.9 ** state["step"]
        return x * state["rate"] / bias + state["pair"][0], state["step"], bias

    return step


def global_counter() -> Any:
    namespace: dict[str, Any] = {"COUNT": 3}
    exec("def step(x):\n    global COUNT\n    COUNT += 1\n    return x + COUNT, COUNT\n", namespace)
    return namespace["step"]


def closure_counter() -> Any:
    count = 0

    def step(x: torch.Tensor) -> Any:
        nonlocal count
        count += 1
        return x + count, count

    return step


def class_counter() -> Any:
    class Model:
        count = 0

        def step(self, x: torch.Tensor) -> Any:
            Model.count += 1
            return x * Model.count + self.count

    return Model().step


@pytest.mark.parametrize(
    "make", [attribute_counter, dictionary_counter, global_counter, closure_counter, class_counter]
)
def test_a_counter_recompiles_once(make: Callable[[], Any]) -> None:
    assert follow(make, [(X,)] * 12) == 1


def batches_and_operators(batches: torch.Tensor, n: int) -> Any:
    """Operators that only the host knows, of what begins elsewhere in its memory at each call."""
    x = batches[n]
    halves = torch.hsplit(x, 2)
    rounded = torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -8, 7)
    product = torch.einsum("bi,bj->ij", x, halves[1])
    halves[1].mul_(2)
    return rounded, product, halves[1], halves[1].storage_offset(), torch.atleast_3d(x)[:, 1]


def test_operators_follow_where_tensors_begin() -> None:
    calls = [(torch.arange(60.0).reshape(5, 3, 4), n) for n in (0, 3, 1, 4, 2)]
    plain, fast = [[(one.clone(), n) for one, n in calls] for _ in range(2)]
    compiled = fusee.compile(batches_and_operators)
    for given_to_plain, given_to_fast in zip(plain, fast, strict=True):
        same(compiled(*given_to_fast), batches_and_operators(*given_to_plain))
        same(given_to_fast[0], given_to_plain[0])
    assert fusee.stats()["recompiles"] <= 1


def test_numbers_cross_a_break() -> None:
    def broken(x: torch.Tensor, n: int) -> Any:
        y = x * n
        print(end="")
        return y + n, [n, n + 1], {"double": n * 2}

    assert follow(lambda: broken, [(X, n) for n in (4, 7, 9, -5, 100, 3)]) <= 2


def test_numbers_meet_the_users_own_operators() -> None:
    class Vector:
        def __init__(self, value: int) -> None:
            self.value = value

        def __add__(self, other: Any) -> Any:
            return self.value + (other.value if isinstance(other, Vector) else other)

        def __gt__(self, other: Any) -> Any:
            return self.value > other

    def program(x: torch.Tensor, n: int) -> Any:
        v = Vector(n)
        with torch.no_grad():
            return x * (v + 1), v + n, v + v, v > -100

    assert follow(lambda: program, [(X, n) for n in (3, 4, 7, 100, -5)]) == 1


def test_optimizer_arithmetic_follows_the_rate() -> None:
    def update(x: torch.Tensor, rate: float, momentum: float, step: int) -> Any:
        p, g, b = x.clone(), x * 2, torch.zeros_like(x)
        b.mul_(momentum).add_(g, alpha=1 - momentum)
        p.add_(b, alpha=-rate)
        p.addcmul_(g, g, value=rate)
        p.addcdiv_(g, g + 10, value=-rate / (1 - 0.9**step))
        return p.lerp_(g, rate), math.sqrt(1 - 0.999**step)

    assert follow(lambda: update, [(X, 0.1 * n, 0.9 - 0.1 * n, n) for n in range(1, 7)]) == 1


def test_stores_at_changing_keys() -> None:
    def make() -> Any:
        table: dict[int, Any] = {}

        def store(x: torch.Tensor, n: int) -> Any:
            table[n] = x.sum() * n
            return x

        store.table = table  # type: ignore[attr-defined]
        return store

    assert follow(make, [(X, n) for n in (3, 1, 4, 15, 9, 2)]) == 1

    def reads(x: torch.Tensor, table: dict[int, Any], n: int) -> Any:
        table[n] = x + n
        return x * n + table[3], list(table)

    follow(lambda: lambda x, n: reads(x, {3: x}, n), [(X, n) for n in (1, 2, 4, 3, 7, 3)])


# ---- sizes ----


def shapes(x: torch.Tensor) -> Any:
    b, s, d = x.shape
    flat = x.view(b, -1)
    return (
        flat.sum(-1),
        x.transpose(1, 2).reshape(b, d * s),
        x.size(0) * x.size(1),
        x.shape,
        x.numel(),
        x.mean((0, 1)),
        x.stride(),
    )


def slices(x: torch.Tensor, n: int) -> Any:
    return x[:n], x[n:], x[1 : n - 1], x[:, : n - 1], x.narrow(0, 0, 2)


def factories(n: int) -> Any:
    return torch.arange(n) * 2, torch.zeros(n, 3) + 1, torch.ones(n).sum(), torch.full((n,), n), torch.arange(1, n, 2)


def broadcasts(x: torch.Tensor, y: torch.Tensor) -> Any:
    return x + y, x.unsqueeze(1) * y.unsqueeze(0)


def attention(q: torch.Tensor, k: torch.Tensor) -> Any:
    return torch.softmax(q @ k.transpose(-1, -2) / q.size(-1) ** 0.5, -1) @ k


def rows(x: torch.Tensor, index: torch.Tensor) -> Any:
    return x[index], torch.cat([x, x[:2]]), torch.nn.functional.embedding(index, x), x.cumsum(0), x.flip(0), x.var(0)


def pieces(x: torch.Tensor) -> Any:
    first, second = torch.cat([x, x], 1).chunk(2, 1)
    return first, second, x.split((len(x) + 1) // 2), x.chunk(3), x.tensor_split(2)


def outside_the_tables(x: torch.Tensor) -> Any:
    """Operators that PyTorch tells the shapes of."""
    image = x[None, None]
    return (
        functional.interpolate(image, scale_factor=2, mode="bilinear"),
        functional.interpolate(image, scale_factor=2),
        functional.adaptive_avg_pool1d(x.T[None], 2),
        functional.unfold(image, 2),
        torch.einsum("ij,kj->ik", x, x),
        torch.cdist(x, x + 1),
        torch.nn.utils.rnn.pad_sequence([x, x[:2]]),
    )


def of_uncertain_layout(x: torch.Tensor) -> Any:
    """Some versions of PyTorch tell another layout than the real one, or fixed sizes alone."""
    attended = functional.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)
    return torch.fft.fft(x, dim=0).real, attended, functional.avg_pool2d(x[None, None], 2, ceil_mode=True)


def tensors(*shapes_of_calls: tuple[tuple[int, ...], ...]) -> list[tuple[torch.Tensor, ...]]:
    return [tuple(torch.randn(shape) for shape in one) for one in shapes_of_calls]


SIZED: list[tuple[Callable[..., Any], list[Any], int]] = [
    (shapes, tensors(*[((b, s, 8),) for b, s in [(2, 3), (4, 3), (4, 5), (6, 7), (1, 9), (8, 1), (3, 4), (5, 6)]]), 5),
    (slices, [(torch.randn(20, 6), n) for n in (3, 5, 7, 19, 20, 21, 1, 0, 2)], 6),
    (factories, [(n,) for n in (3, 5, 7, 100, 2, 1, 0, 12)], 3),
    (broadcasts, tensors(*[((n,), (m,)) for n, m in [(3, 3), (4, 4), (9, 9), (1, 9), (5, 1), (7, 7), (8, 8)]]), 4),
    (
        attention,
        tensors(*[((2, 4, a, 8), (2, 4, b, 8)) for a, b in [(3, 3), (1, 4), (1, 5), (1, 6), (4, 4), (7, 9)]]),
        5,
    ),
    (pieces, tensors(*[((n, 4),) for n in (4, 6, 9, 12, 7)]), 1),
    (outside_the_tables, tensors(*[((n, 4),) for n in (4, 6, 9, 12, 7)]), 1),
    (of_uncertain_layout, tensors(*[((n, 4),) for n in (4, 6, 9, 12, 7)]), 4),
    (rows, [(torch.randn(9, 4), torch.randint(0, 9, (n,))) for n in (3, 4, 5, 6)], 1),
]


@pytest.mark.parametrize(("function", "calls", "most"), SIZED)
@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes(function: Callable[..., Any], calls: list[Any], most: int, dynamic: bool | None) -> None:
    assert follow(lambda: function, calls, dynamic=dynamic) <= most


def test_training_with_changing_sizes() -> None:
    layer = torch.nn.Linear(8, 2)

    def loss(x: torch.Tensor, scale: float) -> Any:
        return (layer(x).relu() * scale).sum() / x.size(0)

    fast = fusee.compile(loss)
    for n in (3, 4, 5, 6, 7, 2):
        x = torch.randn(n, 8)
        gradients = []
        for function in (loss, fast):
            layer.zero_grad()
            function(x, 0.1 * n).backward()
            gradients.append(layer.weight.grad)
        torch.testing.assert_close(gradients[1], gradients[0])
    assert fusee.stats()["recompiles"] == 1


def test_an_unused_argument_never_recompiles() -> None:
    def ignores(x: torch.Tensor, unused: torch.Tensor) -> Any:
        return x + 1, unused is None

    assert follow(lambda: ignores, [(X, torch.ones(n)) for n in (0, 1, 2, 5)]) == 0


def test_marks() -> None:
    def total(x: torch.Tensor) -> Any:
        return x.sum(0), x.size(0)

    def marked(mark: Callable[[torch.Tensor], None]) -> int:
        calls = tensors(*[((n, 3),) for n in (4, 5, 6, 20, 3)])
        for (x,) in calls:
            mark(x)
        return follow(lambda: total, calls)

    assert marked(lambda x: fusee.mark_dynamic(x, 0)) == 0
    fusee.reset()
    assert marked(lambda x: fusee.mark_dynamic(x, 0, min=4, max=10)) == 2
    fusee.reset()
    assert marked(lambda x: fusee.mark_static(x, 0)) == 4
    fusee.reset()
    assert marked(lambda x: None) == 1


# ---- random expressions ----

INT_LEAVES = ["n", "m", "n + m", "x.size(0)", "x.shape[1]", "x.numel()", "3", "-2", "0"]
INT_FORMS = [
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "({} // {})",
    "({} % {})",
    "min({}, {})",
    "max({}, {})",
    "abs({} - {})",
    "(-{} + ~{})",
    "({} if {} > 2 else n)",
    "({} & {})",
    "int({} < {})",
    "({} or {})",
    "(len(range(3)) + {} - {})",
]
FLOAT_FORMS = [
    "({} + r * {})",
    "({} / {})",
    "(r * {} - {})",
    "float({} + {})",
    "min(r, {} * 0.5 + {})",
    "math.sqrt(abs({} + {}))",
]


@pytest.mark.parametrize("sizes", [[4, 2, 1, 2, 3], [0, 2, 5, 1], [1, 2, 2, 4]])
@pytest.mark.parametrize("part", [lambda a: a[::2], lambda a: a[: len(a) // 2], lambda a: a[len(a) // 2 :]])
def test_parts_of_one_row_broadcast(part: Callable[[torch.Tensor], torch.Tensor], sizes: list[int]) -> None:
    """That a part has one row follows for no size that the call is given, only for a quotient."""

    def added(a: torch.Tensor) -> Any:
        return (a + part(a) * 2).tolist(), (part(a) + a.sum()).tolist()

    compiled = fusee.compile(added)
    for rows in sizes:
        rows_of_three = torch.arange(rows * 3.0).view(rows, 3)
        assert outcome(compiled, [rows_of_three]) == outcome(added, [rows_of_three]), rows


def expression(draw: Callable[[Any], Any], forms: list[str], depth: int) -> str:
    if depth == 0:
        return str(draw(st.sampled_from(INT_LEAVES)))
    form = draw(st.sampled_from(forms))
    return str(form.format(*(expression(draw, INT_FORMS, depth - 1) for _ in range(2))))


@st.composite
def programs(draw: Callable[[Any], Any]) -> str:
    ints = [expression(draw, INT_FORMS, draw(st.integers(0, 3))) for _ in range(2)]
    real = expression(draw, FLOAT_FORMS, draw(st.integers(1, 2)))
    return (
        "def program(x, n, m, r):\n"
        f"    a = {ints[0]}\n"
        f"    b = {ints[1]}\n"
        f"    c = {real}\n"
        "    y = x * a + b if a < b else x - c\n"
        "    return a, b, c, y, x[:a], y * c\n"
    )


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(programs(), st.integers(0, 2**32))
def test_random_expressions(text: str, seed: int) -> None:
    fusee.reset()
    namespace: dict[str, Any] = {"math": math}
    exec(text, namespace)
    choose = random.Random(seed)
    ints = [0, 1, 2, 3, -1, 5, -7, 64, 2**31, -(2**40), 2**62, 2**63 - 1, 2**65]
    calls = [
        (
            torch.randn(choose.randint(1, 4), choose.randint(1, 3)),
            choose.choice(ints),
            choose.choice(ints),
            choose.uniform(-2, 2),
        )
        for _ in range(7)
    ]
    follow(lambda: namespace["program"], calls, dynamic=choose.choice([None, True]))


DEEP = """
import sys, warnings, torch, fusee
warnings.simplefilter("ignore", fusee.FuseeWarning)
program = lambda x: torch.fft.rfft(x).abs() + 1
compiled = fusee.compile(program)

def deep(levels, x):
    return deep(levels - 1, x) if levels else compiled(x)

for levels, size in ((0, 8), (sys.getrecursionlimit() - 100, 9), (0, 10), (0, 11)):
    x = torch.randn(size, size)
    torch.testing.assert_close(deep(levels, x), program(x))
import torch._dynamo
assert torch._dynamo.guards and torch._dynamo.eval_frame
"""


def test_symbolic_sizes_are_imported_whole_however_deep_the_program_is() -> None:
    ran = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
