"""CPU kernels against eager and against float64, over operators, types, layouts and awkward sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F

from .harness import Planner, clone_with_layout

Tensors = Sequence[torch.Tensor]
Function = Callable[..., torch.Tensor]

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

UNARY: dict[str, Function] = {
    **{
        name: getattr(torch, name)
        for name in (
            "abs",
            "neg",
            "sign",
            "ceil",
            "floor",
            "trunc",
            "round",
            "frac",
            "square",
            "reciprocal",
            "sqrt",
            "rsqrt",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "sigmoid",
            "erf",
            "erfc",
            "lgamma",
            "deg2rad",
            "rad2deg",
            "sinc",
            "isnan",
            "isinf",
            "isfinite",
            "isposinf",
            "isneginf",
            "signbit",
            "logical_not",
            "relu",
            "nan_to_num",
            "selu",
        )
    },
    **{
        name: getattr(F, name)
        for name in (
            "gelu",
            "silu",
            "mish",
            "softplus",
            "logsigmoid",
            "hardsigmoid",
            "hardswish",
            "hardshrink",
            "softshrink",
            "relu6",
            "elu",
            "celu",
            "leaky_relu",
            "hardtanh",
            "softsign",
            "tanhshrink",
        )
    },
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "clamp": lambda x: torch.clamp(x, -0.5, 1.5),
    "pow2": lambda x: x**2,
    "pow0.5": lambda x: x**0.5,
    "rsub": lambda x: 1 - x,
    "div": lambda x: x / 3,
    "to_float32": lambda x: x.float(),
    "to_int32": lambda x: x.nan_to_num(0, 0, 0).to(torch.int32),
    "to_bool": lambda x: x.bool(),
    "logit": lambda x: torch.logit(x, 1e-3),
}

BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    name: getattr(torch, name)
    for name in (
        "add",
        "sub",
        "mul",
        "div",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "atan2",
        "hypot",
        "copysign",
        "nextafter",
        "pow",
        "fmod",
        "remainder",
        "floor_divide",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logaddexp",
        "xlogy",
        "heaviside",
    )
}

INTEGER: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "true_divide": torch.true_divide,
    "maximum": torch.maximum,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "lt": torch.lt,
    "eq": torch.eq,
    "floordiv": lambda x, y: x // 3 + y // -7 if x.dtype != torch.uint8 else x // 3 + y // 7,
    "trunc_div": lambda x, y: torch.div(x, 5, rounding_mode="trunc") + y,
    "remainder": lambda x, y: x % 5 + y % 3,
    "shifts": lambda x, y: (x << 3) + (y >> 2),
    "invert": lambda x, y: ~x + y,
    "abs": lambda x, y: x.abs() - y,
    "float": lambda x, y: x.float() * 0.5 + y,
    "bool": lambda x, y: x.bool() | (y > 3),
    "square": lambda x, y: x**2 + y**3,
    "clamp": lambda x, y: x.clamp(1, 5) + y.clamp_min(2),
}

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    -7.0,
    20.5,
    -100.75,
    1e-3,
    1e-30,
    1e30,
    -1e30,
    math.inf,
    -math.inf,
    math.nan,
    88.7,
    -87.3,
    -103.9,
    3.93,
    1e-40,
]


def values(dtype: torch.dtype, *sizes: int, seed: int = 0) -> torch.Tensor:
    """Random elements, every sixth a special one."""
    generator = torch.Generator().manual_seed(seed)
    count = math.prod(sizes)
    if not dtype.is_floating_point:
        low, high = (0, 200) if dtype == torch.uint8 else (-100, 100)
        return torch.randint(low, high, sizes, generator=generator).to(dtype)
    result = torch.randn(count, generator=generator, dtype=torch.float64) * 3
    special = torch.tensor(SPECIAL, dtype=torch.float64)
    places = torch.arange(0, count, 6)
    result[places] = special[torch.arange(len(places)) * 7 % len(special)]
    return result.reshape(sizes).to(dtype)


def arrangements(dtype: torch.dtype, seed: int = 0) -> dict[str, torch.Tensor]:
    """One matrix of awkward sizes in several layouts."""
    big = values(dtype, 14, 26, seed=seed)
    return {
        "contiguous": values(dtype, 7, 13, seed=seed),
        "transposed": values(dtype, 13, 7, seed=seed).t(),
        "steps": big[1::2, ::2],
        "expanded": values(dtype, 7, 1, seed=seed).expand(7, 13),
        "empty": values(dtype, 0, 13, seed=seed),
        "single": values(dtype, 1, 1, seed=seed),
        "scalar": values(dtype, 1, seed=seed)[0],
        "prime": values(dtype, 101, seed=seed),
    }


def accepted(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> bool:
    """Whether eager has a kernel for the types."""
    try:
        function(*inputs)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def units(result: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Differences from float64 results in units in the last place of the type; 0 where neither is a finite number."""
    info = torch.finfo(dtype)
    scale = torch.clamp(torch.exp2(torch.floor(torch.log2(exact.abs()))), min=info.tiny) * info.eps
    gap = (result.double() - exact).abs() / scale
    return torch.where(torch.isfinite(exact) & (exact.abs() < info.max), gap, 0).nan_to_num(math.inf)


def check(
    names: Sequence[str], got: Tensors, want: Tensors, exact: Tensors, cancels: bool = False, slack: float = 0.51
) -> None:
    """Same metadata as eager; equal values where they are exact; elsewhere no less accurate, up to half a unit.

    Where results cancel, units are of the largest result.
    """
    for name, ours, eager, reference in zip(names, got, want, exact, strict=True):
        assert ours.dtype == eager.dtype and ours.shape == eager.shape, name
        assert eager.numel() < 2 or ours.stride() == eager.stride(), name
        if not eager.dtype.is_floating_point:
            assert torch.equal(ours, eager), name
            continue
        mistaken = eager.isnan() & ~reference.isnan()  # some processors' vectors have gelu(inf) as NaN, and not as inf
        assert torch.equal(ours.isnan() & ~mistaken, eager.isnan() & ~mistaken), name
        infinite = eager.isinf() & reference.isinf()
        assert torch.equal(ours[infinite], eager[infinite]), name
        if eager.dtype == torch.float64:  # the reference is no more precise than the results
            assert torch.allclose(ours, eager, rtol=1e-11, atol=1e-14, equal_nan=True), name
        elif ours.numel():
            dtype = eager.dtype
            if cancels:
                span = reference.double().abs().max()
                ours, eager = ours.double() - reference + span, (eager.double() - reference + span)
                reference = span.expand_as(reference)
            error, allowed = (
                units(ours, reference.double(), dtype).max(),
                units(eager, reference.double(), dtype).max() + slack,
            )
            assert error <= allowed, f"{name}: {error:.2f} units off, eager {allowed - slack:.2f}"


def run(
    planner: Planner,
    functions: dict[str, Callable[..., torch.Tensor]],
    inputs: Tensors,
    wide: bool = True,
    cancels: bool = False,
) -> None:
    """Compiles all functions as one graph and checks each result."""
    names = [name for name, function in functions.items() if accepted(function, *inputs)]

    def together(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return [functions[name](*tensors) for name in names]

    compiled = planner.compile(together, *inputs)
    want = together(*inputs)
    widened = [tensor.double() if wide and tensor.dtype.is_floating_point else tensor for tensor in inputs]
    check(names, compiled(*inputs), want, together(*widened), cancels)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", list(arrangements(torch.float32)))
def test_unary(planner: Planner, layout: str, dtype: torch.dtype) -> None:
    functions = dict(UNARY)
    if dtype == torch.float16:
        del functions["pow0.5"]  # the formula takes the square root, which differs from eager's pow at -inf and -0
    run(planner, functions, [arrangements(dtype)[layout]])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("layout", list(arrangements(torch.float32)))
def test_binary(planner: Planner, layout: str, dtype: torch.dtype) -> None:
    run(planner, BINARY, [arrangements(dtype)[layout], arrangements(dtype, seed=1)[layout]])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("layout", list(arrangements(torch.float32)))
def test_integers(planner: Planner, layout: str, dtype: torch.dtype) -> None:
    run(planner, INTEGER, [arrangements(dtype)[layout], arrangements(dtype, seed=1)[layout]])


@pytest.mark.parametrize(
    "shapes", [((7, 13), (13,)), ((7, 13), (7, 1)), ((5, 1, 3), (4, 1)), ((7, 13), ()), ((2, 0), (1, 1))]
)
def test_broadcasting(planner: Planner, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    functions = {name: BINARY[name] for name in ("add", "mul", "maximum", "lt", "div")}
    left, right = (torch.randn(shape) for shape in shapes)
    run(planner, functions, [left, right])
    run(planner, functions, [right, left])


@pytest.mark.parametrize(
    "types",
    [(a, b) for a in (*FLOATS[:3], torch.int64, torch.bool) for b in (torch.float32, torch.int32, torch.bfloat16)],
)
def test_mixed_types(planner: Planner, types: tuple[torch.dtype, torch.dtype]) -> None:
    functions = {name: BINARY[name] for name in ("add", "mul", "div", "eq", "maximum")}
    left, right = ((torch.randn(7, 13) * 4).to(dtype) for dtype in types)
    run(planner, functions, [left, right], wide=False)


REDUCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "sum": lambda x, d: x.sum(d),
    "sum_keep": lambda x, d: x.sum(d, keepdim=True) + 1,
    "mean": lambda x, d: x.mean(d),
    "amax": lambda x, d: x.amax(d),
    "amin": lambda x, d: x.amin(d),
    "argmax": lambda x, d: x.argmax(d),
    "max_index": lambda x, d: x.max(d).indices,
    "var": lambda x, d: x.var(d),
    "std": lambda x, d: x.std(d, correction=0),
    "any": lambda x, d: (x > 1).any(d),
    "all": lambda x, d: (x > -3).all(d),
    "softmax": lambda x, d: torch.softmax(x, d),
    "log_softmax": lambda x, d: torch.log_softmax(x, d),
    "logsumexp": lambda x, d: torch.logsumexp(x, d),
    "count": lambda x, d: torch.count_nonzero(x > 0, d),
}


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(7, 13), (1, 1), (3, 5, 17), (2, 1, 131)], ids=str)
def test_reductions(planner: Planner, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(dtype)
    for dimension in range(len(shape)):
        functions = {name: (lambda t, f=f, d=dimension: f(t, d)) for name, f in REDUCTIONS.items()}
        run(planner, functions, [x], cancels=True)


LONG: dict[str, Callable[..., torch.Tensor]] = {
    "sum": lambda x: x.sum(),
    "fused": lambda x: (torch.relu(x - 0.5) * 2).sum() / 3 + 1,
    "mean": lambda x: (x * x).mean(),
    "greatest": lambda x: (x * 3).amax(),
    "truth": lambda x: (x > 2).any(),
    "count": lambda x: (x > 0.5).sum(),
    "std": lambda x: x.std(),
    "norm": lambda x: (x / x.norm())[:100],
    "softmax": lambda x: torch.softmax(x, 0)[:100],
    "columns": lambda x: (x[:300000].view(-1, 6) * 2).sum(0),
    "rows": lambda x: (x[:300000].view(3, -1) * 2).sum(1),
    "middle": lambda x: (x[:300000].view(250, 2, 600) * 2).sum((0, 2)),
    "transposed": lambda x: (x[:300000].view(500, 600).t() + x[:500]).sum(),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_long_reductions(planner: Planner, dtype: torch.dtype) -> None:
    x = torch.rand(300007, dtype=torch.float64).to(dtype)
    compiled = planner.compile(lambda x: [f(x) for f in LONG.values()], x)
    got, again, want = compiled(x), compiled(x), [f(x) for f in LONG.values()]
    exact = [f(x.double()) for f in LONG.values()]
    for name, ours, repeated, eager, reference in zip(LONG, got, again, want, exact, strict=True):
        assert ours.dtype == eager.dtype and ours.shape == eager.shape and torch.equal(ours, repeated), name
        if dtype == torch.float64:  # the reference is no more precise than the results
            assert torch.allclose(ours, eager, rtol=1e-11), name
            continue
        errors = [(result.double() - reference.double()).abs().max() for result in (ours, eager)]
        assert errors[0] <= errors[1] + torch.finfo(dtype).eps * reference.double().abs().max(), name
    assert not compiled.library_calls


def test_a_sum_and_what_it_sums_take_one_pass(planner: Planner) -> None:
    x = torch.rand(300007)
    compiled = planner.compile(lambda x: [x + 1, (x + 1).sum()], x)
    assert len(compiled.kernels) == 2 and not compiled.library_calls
    shifted, total = compiled(x)
    assert torch.equal(shifted, x + 1) and torch.allclose(total.double(), (x.double() + 1).sum(), rtol=1e-7)


def losses(shape: tuple[int, ...]) -> dict[str, Callable[..., torch.Tensor]]:
    """Classification losses over scores of a shape, with every reduction and weights."""

    def cross_entropy(reduction: str, weighted: bool) -> Callable[..., torch.Tensor]:
        return lambda x, target, weight: F.cross_entropy(x, target, weight if weighted else None, reduction=reduction)

    def likelihood(reduction: str, ignored: int) -> Callable[..., torch.Tensor]:
        return lambda x, target, weight: F.nll_loss(
            F.log_softmax(x * 2, 1 if len(shape) > 1 else 0), target, weight, ignore_index=ignored, reduction=reduction
        )

    result = {}
    for reduction in ("none", "mean", "sum"):
        result[f"weighted {reduction}"] = cross_entropy(reduction, True)
        result[f"likelihood {reduction}"] = likelihood(reduction, 2)
        result[reduction] = cross_entropy(reduction, False)
    return result


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(7, 13), (5,), (2, 6, 3), (2, 3, 5, 4), (300, 100)], ids=str)
def test_losses(planner: Planner, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(5)
    x = (torch.randn(shape, generator=generator, dtype=torch.float64) * 3).to(dtype)
    count = shape[min(1, len(shape) - 1)]
    places = shape[:1] + shape[2:] if len(shape) > 1 else ()
    target = torch.randint(0, count, places, generator=generator)
    if len(shape) > 1:
        target.view(-1)[1] = -100 if count != 13 else 2
    weight = torch.rand(count, generator=generator, dtype=torch.float64).to(dtype)
    if count != 13:
        target[target == 2] = 1  # 2 is ignored by some, and -100 by others, but not both by all
    functions = losses(shape)
    if bool((target == -100).any()):
        functions = {name: f for name, f in functions.items() if not name.startswith("likelihood")}
    run(planner, functions, [x, target, weight], cancels=True)


def element_losses(reduction: str) -> dict[str, Callable[..., torch.Tensor]]:
    """Losses of two tensors; the third is a weight of each column."""
    return {
        "mse": lambda x, y, w: F.mse_loss(x, y, reduction=reduction),
        "l1": lambda x, y, w: F.l1_loss(x, y, reduction=reduction),
        "smooth": lambda x, y, w: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.7),
        "sharp": lambda x, y, w: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.0),
        "huber": lambda x, y, w: F.huber_loss(x, y, reduction=reduction, delta=1.5),
        "margin": lambda x, y, w: F.soft_margin_loss(x, y, reduction=reduction),
        "divergence": lambda x, y, w: F.kl_div(x, y.abs(), reduction=reduction),
        "of logarithms": lambda x, y, w: F.kl_div(x, y, reduction=reduction, log_target=True),
        "logits": lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, reduction=reduction),
        "weighted logits": lambda x, y, w: F.binary_cross_entropy_with_logits(
            x, y, w, reduction=reduction, pos_weight=w * 2
        ),
    }


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_element_losses(planner: Planner, reduction: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(7)
    wide = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((7, 13), (7, 13), (13,))]
    wide[1][2, :5] = 0.0
    x, y, w = (tensor.to(dtype) for tensor in wide)
    for left, right in ((x, y), (x[:0], y[:0]), (x.t().contiguous().t(), y), (x[1::2], y[::2][:3])):
        run(planner, element_losses(reduction), [left, right, w.abs()], cancels=True)
    compiled = planner.compile(lambda *tensors: [f(*tensors) for f in element_losses(reduction).values()], x, y, w)
    assert not set(compiled.library_calls) - {"aten.full.default"}


NORMS: dict[str, Callable[..., torch.Tensor]] = {
    **{
        f"order {order}": lambda x, d, order=order: torch.linalg.vector_norm(x, order, d)
        for order in (0, 0.5, 1, 2, 3, math.inf, -math.inf)
    },
    "kept": lambda x, d: x / torch.linalg.vector_norm(x, dim=d, keepdim=True),
    "normalised": lambda x, d: F.normalize(x, dim=d),
    "nansum": lambda x, d: torch.where(x > 1, math.nan, x).nansum(d),
    "least": lambda x, d: torch.aminmax(x, dim=d)[0],
    "greatest": lambda x, d: torch.aminmax(x, dim=d)[1],
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(7, 13), (3, 5, 17), (2, 1, 131)], ids=str)
def test_norms(planner: Planner, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(dtype)
    for dimension in range(len(shape)):
        functions = {name: (lambda t, f=f, d=dimension: f(t, d)) for name, f in NORMS.items()}
        run(planner, functions, [x], cancels=True)


def test_norms_of_what_is_no_number(planner: Planner) -> None:
    x = torch.tensor([[math.nan, 1.0], [math.inf, -2.0], [-math.inf, math.inf], [-0.0, 0.0]])
    run(planner, {name: (lambda t, f=f: f(t, 1)) for name, f in NORMS.items()}, [x])


def test_loss_leaves_no_library_call_and_no_wide_copy(planner: Planner) -> None:
    x, target = torch.randn(64, 50).bfloat16(), torch.randint(0, 50, (64,))
    compiled = planner.compile(lambda x, target: F.cross_entropy(x.float() * 0.5, target), x, target)
    assert not compiled.library_calls and len(compiled.kernels) == 2
    assert not any("[64, 50]" in step for step in compiled.steps if "alloc" in step)
    (got,), want = compiled(x, target), F.cross_entropy(x.double() * 0.5, target)
    assert torch.allclose(got.double(), want, rtol=1e-6)


def test_exp_over_its_range(planner: Planner) -> None:
    x = torch.cat(
        [
            torch.linspace(-105, 89.5, 200003),
            torch.linspace(-1, 1, 50021),
            torch.tensor([math.inf, -math.inf, math.nan, -3e38, 3e38]),
        ]
    )
    (got,) = planner.compile(torch.exp, x)(x)
    exact = x.double().exp()
    normal = exact > torch.finfo(x.dtype).tiny
    assert units(got, exact, x.dtype)[normal].max() <= 0.62 and units(got, exact, x.dtype)[~normal].max() <= 0.8
    assert torch.equal(got.isnan(), x.isnan()) and torch.equal(got.isinf(), x > 88.72283)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.uint8, torch.bool], ids=str)
@pytest.mark.parametrize("shape", [(3, 37, 53), (64, 48), (2, 16, 16), (301, 513)], ids=str)
def test_transposed_tiles(planner: Planner, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = values(dtype, *shape) if dtype.is_floating_point else torch.randint(0, 2, shape).to(dtype)
    y = x.transpose(-1, -2).contiguous()
    functions = [
        lambda x, y: torch.where(x.transpose(-1, -2) == y, y, x.transpose(-1, -2)),
        lambda x, y: x.transpose(-1, -2).contiguous(),
        lambda x, y: (x.transpose(-1, -2) != y) & (y.transpose(-1, -2).to(torch.bool).transpose(-1, -2)),
    ]
    compiled = planner.compile(lambda x, y: [f(x, y) for f in functions], x, y)
    for got, f in zip(compiled(x, y), functions, strict=True):
        assert torch.equal(got.nan_to_num(7), f(x, y).nan_to_num(7)) and got.stride() == f(x, y).stride()


def test_every_target_ignored(planner: Planner) -> None:
    x, target = torch.randn(4, 5), torch.full((4,), -100)
    compiled = planner.compile(lambda x, target: F.cross_entropy(x, target), x, target)
    assert compiled(x, target)[0].isnan()


INDEXING: dict[str, Callable[..., torch.Tensor]] = {
    "embedding": lambda x, i, j: F.embedding(i, x[:, :, 0]) * 2,
    "select": lambda x, i, j: torch.index_select(x, 1, i[0]).exp(),
    "select_last": lambda x, i, j: torch.index_select(x.transpose(0, 2), 2, i[1]),
    "gather": lambda x, i, j: torch.gather(x[:, :, 1], 1, i) + 1,
    "gather_first": lambda x, i, j: torch.gather(x[:, :, 1].t(), 1, i[:, :2]),
    "index": lambda x, i, j: x[i].relu(),
    "index_two": lambda x, i, j: x[:, i, j],
    "index_middle": lambda x, i, j: x[:, -1 - j] * 3,
    "of_formula": lambda x, i, j: (x * 2 + x[:1])[i],
    "of_sum": lambda x, i, j: x.sum(2)[i],
}


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.bool], ids=str)
def test_indexing(planner: Planner, dtype: torch.dtype) -> None:
    x = (torch.randn(5, 7, 3, dtype=torch.float64) * 3).to(dtype)
    inputs = [x, torch.randint(0, 5, (4, 5)), torch.randint(0, 3, (5,))]
    run(planner, INDEXING, inputs, cancels=True)
    for name in ("embedding", "index_two", "gather") if dtype.is_floating_point else ("index_two",):
        compiled = planner.compile(INDEXING[name], *inputs)
        assert not compiled.library_calls and len(compiled.kernels) == 1, name


def test_index_out_of_range(planner: Planner) -> None:
    table, index = torch.randn(5, 33), torch.tensor([0, 4, 1])
    compiled = planner.compile(lambda table, index: F.embedding(index, table) + 1, table, index)
    assert torch.equal(compiled(table, index)[0], table[index] + 1)
    for wrong in (5, -1, 1 << 62):
        with pytest.raises(IndexError):
            compiled(table, torch.tensor([0, wrong, 1]))
    wrapping = planner.compile(lambda table, index: table[index] + 1, table, index)
    assert torch.equal(wrapping(table, torch.tensor([-5, -1, 0]))[0], table[[0, 4, 0]] + 1)
    with pytest.raises(IndexError):
        wrapping(table, torch.tensor([-6, -1, 0]))


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (33,), weight, bias)


def layer_norm_by_hand(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias


def rms_norm_by_hand(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight + bias


def softmax_by_hand(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    shifted = x * weight + bias
    power = (shifted - shifted.amax(-1, keepdim=True)).exp()
    return power / power.sum(-1, keepdim=True)


@pytest.mark.parametrize("function", [layer_norm, layer_norm_by_hand, rms_norm_by_hand, softmax_by_hand])
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16), ids=str)
def test_rows_are_one_kernel(planner: Planner, function: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    inputs = [torch.randn(512, 33).to(dtype), torch.randn(33).to(dtype), torch.randn(33).to(dtype)]
    compiled = planner.compile(function, *inputs)
    assert len(compiled.kernels) == 1 and not compiled.library_calls
    (got,), want = compiled(*inputs), function(*inputs)
    exact = function(*(tensor.double() for tensor in inputs))
    assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
    if dtype == torch.float64:
        assert torch.allclose(got, want, rtol=1e-11, atol=1e-14)
    else:
        assert mean_units(got, exact) <= mean_units(want, exact) * 1.02


def mean_units(result: torch.Tensor, exact: torch.Tensor) -> float:
    """The mean error, in units in the last place of each row's largest result.

    Where results cancel, the largest error of a few is luck for either side; the mean of many is not.
    """
    span = exact.abs().amax(-1, keepdim=True).expand_as(exact)
    return units(result.double() - exact + span, span, result.dtype).mean().item()


def test_seed_example_keeps_the_sign_of_zero_and_nan(planner: Planner) -> None:
    x = torch.tensor([1.0, -2.0, -0.0, math.nan, math.inf, -math.inf] * 3)
    compiled = planner.compile(lambda x, y: torch.relu(x + y) * 2, x, torch.zeros_like(x) * -1)
    assert len(compiled.kernels) == 1
    (got,) = compiled(x, torch.zeros_like(x) * -1)
    want = torch.relu(x + torch.zeros_like(x) * -1) * 2
    assert torch.equal(got.view(torch.int32), want.view(torch.int32))


def test_views_library_calls_and_mutation(planner: Planner) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        a = (x + 1).t()
        b = torch.relu(a @ x)
        x.mul_(2)
        c = x[1:, ::2] - y
        b[0].add_(c[0, 0])
        return [a, b * 3, c, x.cumsum(0) + b.sum(), torch.cat([x, c], 1) if c.shape[0] == x.shape[0] else x]

    inputs = [torch.randn(5, 4), torch.randn(4, 2)]
    compiled = planner.compile(function, *inputs)
    ours, eagers = ([clone_with_layout(tensor) for tensor in inputs] for _ in range(2))
    for got, want in zip(compiled(*ours), function(*eagers), strict=True):
        torch.testing.assert_close(got, want)
    torch.testing.assert_close(ours[0], eagers[0])


def test_rounding_option_rounds_where_eager_does(planner: Planner) -> None:
    x, y = torch.randn(300).half(), torch.randn(300).half()
    compiled = planner.compile(lambda x, y: (x * y + 1) * x - y, x, y, round=True)
    assert torch.equal(compiled(x, y)[0], (x * y + 1) * x - y)


def test_large_reductions_are_accurate(planner: Planner) -> None:
    x = torch.rand(8, 1 << 15)
    compiled = planner.compile(lambda x: x.sum(1), x)
    exact = x.double().sum(1)
    ours, eager = ((result.double() - exact).abs().max() for result in (compiled(x)[0], x.sum(1)))
    assert ours <= eager


def test_default_type_of_the_program_counts(planner: Planner) -> None:
    x = torch.arange(7)
    torch.set_default_dtype(torch.float64)
    try:
        compiled = planner.compile(lambda x: torch.exp(x) + x * 0.1, x)
        want = torch.exp(x) + x * 0.1
    finally:
        torch.set_default_dtype(torch.float32)
    (got,) = compiled(x)
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, want)


def test_a_reduction_over_nothing_reads_nothing(planner: Planner) -> None:
    """Neither what varies along the reduced dimension nor what does not, as there may be no memory."""
    x, y = torch.empty_strided((0, 13), (0, 1)), torch.empty(0, 13)
    for unfused in (False, True):
        compiled = planner.compile(lambda x, y: [x.sum(0), (x * y).amin(1), (x + 1).prod(0)], x, y, unfused=unfused)
        for got, want in zip(compiled(x, y), (torch.zeros(13), torch.empty(0), torch.ones(13)), strict=True):
            assert torch.equal(got, want)
