"""Compiled functions on a GPU against eager: results, layouts, streams, graphs, guards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import fusee
from fusee.host import recording

Function = Callable[..., Any]
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
pytestmark = pytest.mark.filterwarnings("error::fusee.FuseeWarning")  # nothing here may run as plain Python


@pytest.fixture(autouse=True)
def _clean_slate() -> None:
    fusee.reset()
    torch.manual_seed(0)


def random(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor on the GPU, from -3 to 3."""
    return (torch.rand(*sizes, device="cuda", dtype=torch.float64) * 6 - 3).to(dtype)


def check(function: Function, *arguments: Any, exact: bool = False) -> None:
    """Two calls give what eager gives, and something was compiled."""
    compiled = fusee.compile(function)
    expected = function(*arguments)
    for _ in range(2):
        actual = compiled(*arguments)
        if exact:
            torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
        else:
            torch.testing.assert_close(actual, expected, equal_nan=True)
    assert fusee.stats()["graphs"] > 0


def add_relu(x: Tensor, y: Tensor) -> Tensor:
    return torch.relu(x + y) * 2


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("size", [0, 1, 4, 5, 1023, 4096, 1_000_003])
def test_cuda_sizes_and_dtypes(size: int, dtype: torch.dtype) -> None:
    check(add_relu, random(size, dtype=dtype), random(size, dtype=dtype), exact=dtype in (torch.float32, torch.float64))


POINTWISE: dict[str, Function] = {
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "softplus": functional.softplus,
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "mish": functional.mish,
    "hardswish": functional.hardswish,
    "exp_log": lambda x: torch.log(torch.exp(x) + 1),
    "trigonometry": lambda x: torch.sin(x) * torch.cos(x) + torch.tan(x),
    "powers": lambda x: x**2 + x**3 - x.abs() ** 0.5,
    "clamp": lambda x: x.clamp(-1, 1.5),
    "where": lambda x: torch.where(x > 0, x, x * 0.1),
    "comparisons": lambda x: (x > 0) & (x < 1) | x.isnan(),
    "rounding": lambda x: x.floor() + x.ceil() + x.round() + x.trunc(),
    "division": lambda x: x / 3 + 1 / (x * x + 1),
    "remainder": lambda x: x % 1.5 + torch.fmod(x, 0.7),
    "casts": lambda x: x.to(torch.int32).to(torch.float32) + x.bool(),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", POINTWISE)
def test_cuda_pointwise(name: str, dtype: torch.dtype) -> None:
    function, x = POINTWISE[name], random(33, 130, dtype=dtype)
    if dtype in (torch.float32, torch.float64):
        check(function, x)
        return
    # A fused kernel rounds once at its end, where eager rounds after each operation.
    actual, expected = fusee.compile(function)(x), function(x.float())
    assert actual.dtype == function(x).dtype
    allowed = 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(actual.to(expected.dtype), expected, rtol=allowed, atol=allowed)


LAYOUTS: dict[str, Function] = {
    "transposed": lambda: (random(40, 30).t(), random(30, 40)),
    "expanded": lambda: (random(40, 1).expand(40, 30), random(30)),
    "strided": lambda: (random(64, 64)[::2, ::3], random(32, 22)),
    "offset": lambda: (random(1001)[1:], random(1000)),
    "both_offset": lambda: (random(1001)[1:], random(1001)[1:]),
    "channels_last": lambda: (random(2, 8, 5, 6).to(memory_format=torch.channels_last), random(1, 8, 1, 1)),
    "scalar_tensor": lambda: (random(17, 5), torch.tensor(2.5, device="cuda")),
    "cpu_scalar": lambda: (random(17, 5), torch.tensor(2.5)),
    "zero_size": lambda: (random(0, 5), random(5)),
    "zero_dimensional": lambda: (random(1)[0], random(1)[0]),
    "five_dimensions": lambda: (random(2, 3, 4, 5, 6), random(3, 1, 5, 1)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_cuda_layouts(name: str) -> None:
    arguments = LAYOUTS[name]()
    check(add_relu, *arguments, exact=True)
    compiled = fusee.compile(add_relu)
    assert compiled(*arguments).stride() == add_relu(*arguments).stride()


REDUCTIONS: dict[str, Function] = {
    "sum": lambda x: x.sum(),
    "mean_rows": lambda x: (x * 2).mean(-1),
    "sum_columns": lambda x: x.sum(0),
    "max_rows": lambda x: x.amax(-1, keepdim=True),
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x * 0.5, -1),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
    "rms": lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5),
    "variance": lambda x: x.var(-1),
    "argmax": lambda x: x.argmax(-1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 7), (64, 768), (300, 31), (3, 5000), (2, 40_000)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_cuda_reductions(name: str, shape: tuple[int, int], dtype: torch.dtype) -> None:
    x = random(*shape, dtype=dtype)
    if name == "sum":
        check_sum(x)
    else:
        check(REDUCTIONS[name], x)


def check_sum(x: Tensor) -> None:
    """The terms cancel, so the error is judged by what they add up to without their signs, as any sum's bound is."""
    actual = fusee.compile(REDUCTIONS["sum"])(x)
    exact = x.double().sum()
    rounding = torch.finfo(x.dtype).eps * exact.abs() / 2 if x.dtype != torch.float32 else 0
    bound = torch.finfo(torch.float32).eps * x.double().abs().sum() + rounding
    assert actual.dtype == x.dtype and (actual.double() - exact).abs() <= bound
    assert fusee.stats()["graphs"] == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cuda_an_input_that_begins_elsewhere_at_a_later_call(dtype: torch.dtype) -> None:
    x, y = random(4099, dtype=dtype), random(4096, dtype=dtype)
    compiled = fusee.compile(add_relu)
    for start in (0, 1, 2, 3, 0):
        part = x[start : start + 4096]
        assert torch.equal(compiled(part, y), add_relu(part, y))
    assert fusee.stats()["recompiles"] == 0


def test_cuda_matmul_and_epilogue() -> None:
    weight, bias = random(64, 32), random(64)
    check(lambda x: functional.gelu(functional.linear(x, weight, bias)) + 1, random(16, 32))


def test_cuda_special_values_survive() -> None:
    nan, inf = float("nan"), float("inf")
    values = torch.tensor([nan, inf, -inf, -0.0, 0.0, 1e-45, -1e-45, 3.4e38], device="cuda")
    for function in (torch.relu, torch.exp, torch.tanh, lambda x: x * 0, lambda x: 1 / x, lambda x: x.clamp(min=0)):
        compiled, eager = fusee.compile(function)(values), function(values)
        assert torch.equal(compiled.view(torch.int32), eager.view(torch.int32))


def test_cuda_side_stream() -> None:
    x, y = random(1 << 20), random(1 << 20)
    compiled, stream = fusee.compile(add_relu), torch.cuda.Stream()
    compiled(x, y)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        late = torch.full_like(x, 1.0)
        for _ in range(20):
            late = late + 0
        result = compiled(late, y)
    stream.synchronize()
    assert torch.equal(result, add_relu(torch.ones_like(x), y))


def test_cuda_under_graph_capture() -> None:
    x, y = random(1000), random(1000)
    compiled = fusee.compile(add_relu)
    compiled(x, y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compiled(x, y)
    x.copy_(random(1000))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(result, add_relu(x, y))


def test_cuda_and_cpu_have_entries_of_their_own() -> None:
    compiled = fusee.compile(add_relu)
    x, y = random(10), random(10)
    assert torch.equal(compiled(x, y), add_relu(x, y))
    assert torch.equal(compiled(x.cpu(), y.cpu()), add_relu(x.cpu(), y.cpu()))
    assert compiled(x, y).device.type == "cuda"


def test_cuda_mixed_devices_raise_as_eager_does() -> None:
    x, y = random(10), random(10).cpu()
    with pytest.raises(RuntimeError) as eager:
        add_relu(x, y)
    with pytest.raises(RuntimeError) as compiled:
        fusee.compile(add_relu)(x, y)
    assert str(compiled.value).splitlines()[0] == str(eager.value).splitlines()[0]


def test_cuda_threads_share_a_function() -> None:
    compiled, wrong = fusee.compile(add_relu), []

    def work(seed: int) -> None:
        x, y = random(1000) + seed, random(1000)
        for _ in range(50):
            if not torch.equal(compiled(x, y), add_relu(x, y)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_cuda_in_place_on_argument() -> None:
    def update(x: Tensor, step: Tensor) -> Tensor:
        x.add_(step)
        return x * 2

    mine, theirs, step = torch.ones(37, device="cuda"), torch.ones(37, device="cuda"), random(37)
    result = fusee.compile(update)(mine, step)
    assert torch.equal(result, update(theirs, step))
    assert torch.equal(mine, theirs)


def test_cuda_large_tensor_uses_wide_indices() -> None:
    x = torch.zeros((1 << 31) + 8, dtype=torch.int8, device="cuda")
    x[-1] = 5
    result = fusee.compile(lambda value: value + 1)(x)
    assert result[-1].item() == 6
    assert result[1 << 30].item() == 1


def heads(layout: str, dtype: torch.dtype) -> list[Tensor]:
    """Queries, keys and values of two batches, three heads, twelve tokens and sixteen elements."""
    together = random(2, 12, 3 * 48, dtype=dtype)
    if layout == "split":
        return [part.view(2, 12, 3, 16).transpose(1, 2) for part in together.split(48, dim=2)]
    parts = [random(2, 3, 12, 16, dtype=dtype) for _ in range(3)]
    return parts if layout == "contiguous" else [part.mT.contiguous().mT for part in parts]


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layout", ["split", "contiguous", "transposed"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_attention_lies_in_memory_as_that_of_eager(
    dtype: torch.dtype, layout: str, causal: bool, gradient: bool
) -> None:
    """What follows in the graph is compiled for the layout that was foretold."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        return found, torch.relu(found) + 1

    parts = [part.detach().requires_grad_(gradient) for part in heads(layout, dtype)]
    expected, actual = attend(*parts), fusee.compile(attend)(*parts)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.stride() == theirs.stride()
        torch.testing.assert_close(ours, theirs)


def layers(x: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
    """Products with what is around them: several launches."""
    for weight in weights:
        x = torch.relu(x @ weight) - 0.1
    return x, x.sum(0)


def recorded_layers() -> tuple[Function, Tensor, list[Tensor]]:
    return fusee.compile(layers, mode="reduce-overhead"), random(8, 16), [random(16, 16) / 4 for _ in range(4)]


def same(actual: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    for got, want in zip(actual, expected, strict=True):
        torch.testing.assert_close(got, want)


def test_cuda_graph_follows_its_inputs() -> None:
    run, x, weights = recorded_layers()
    earlier, wanted = [], []
    for _ in range(4):  # in place
        x.uniform_()
        weights[1].uniform_(-0.2, 0.2)
        wanted.append(layers(x, *weights))
        earlier.append(run(x, *weights))
    for _ in range(4):  # at another address each time
        other = random(8, 16)
        wanted.append(layers(other, *weights))
        earlier.append(run(other, *weights))
    for got, want in zip(earlier, wanted, strict=True):  # no result changed later
        same(got, want)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans that are made to be recorded."""
    from fusee.host import recording

    made: list[recording.RecordedPlan] = []
    original = recording.RecordedPlan

    def keep(*arguments: Any) -> recording.RecordedPlan:
        made.append(original(*arguments))
        return made[-1]

    monkeypatch.setattr(recording, "RecordedPlan", keep)
    return made


def test_cuda_graph_was_recorded(made: list[Any]) -> None:
    run, x, weights = recorded_layers()
    for _ in range(3):
        same(run(x, *weights), layers(x, *weights))
    assert made and made[0].obstacle is None and any(one.replay for one in made[0]._recordings.values())


def test_cuda_graph_writes_results_where_new_tensors_lie(made: list[Any]) -> None:
    """Whatever a caller does with results, none changes later, be they dropped, held, or in use on another stream."""

    def centred(x: Tensor) -> tuple[Tensor, Tensor]:
        for axis in (0, 1, 0, 1, 0):
            x = x - x.mean(axis, keepdim=True)
        return x, x.square().sum(0)

    run, x = fusee.compile(centred, mode="reduce-overhead"), random(80, 64)
    for _ in range(10):
        x.uniform_()
        same(run(x), centred(x))
    assert any(one.placing and one.placing.replays for one in made[0]._recordings.values())
    side, sleep = torch.cuda.Stream(), vars(torch.cuda)["_sleep"]
    held: list[tuple[int, tuple[Tensor, ...]]] = []
    wanted: list[tuple[Tensor, ...]] = []
    for number in range(12):
        x.uniform_()
        results = run(x)
        wanted.append(centred(x))
        if number % 3:
            held.append((number, results))
        else:  # still read on the other stream when the next calls come
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                sleep(20_000_000)
                copied = tuple(result.clone() for result in results)
            for result in results:
                result.record_stream(side)
            held.append((number, copied))
        del results
    torch.cuda.synchronize()
    for number, results in held:
        same(results, wanted[number])


def test_cuda_graph_writes_its_inputs(made: list[Any]) -> None:
    """A training step in place: what it writes stays where it is, and what moves is copied in, and back."""

    def step(weight: Tensor, momentum: Tensor, gradient: Tensor) -> Tensor:
        for axis in (0, 1, 0, 1, 0):  # sums along both, so that it takes several launches
            momentum.mul_(0.9).add_(gradient - gradient.mean(axis, keepdim=True))
            weight.mul_(0.99).add_(momentum - momentum.mean(axis, keepdim=True), alpha=-0.1)
        return weight.square().sum()

    run = fusee.compile(step, mode="reduce-overhead")
    weight, momentum = random(40, 16), torch.zeros(40, 16, device="cuda")
    ours, theirs = [weight.clone(), momentum.clone()], [weight, momentum]
    for number in range(8):
        gradient = random(40, 16)
        if number == 5:
            ours = [value.clone() for value in ours]
        version = ours[0]._version
        same((run(*ours, gradient), *ours), (step(*theirs, gradient), *theirs))
        assert ours[0]._version > version
    assert made and made[0].obstacle is None and any(one.replay for one in made[0]._recordings.values())


def test_cuda_graph_on_other_streams_and_under_capture() -> None:
    run, x, weights = recorded_layers()
    expected = layers(x, *weights)
    for _ in range(3):
        same(run(x, *weights), expected)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            results = run(x, *weights)
    torch.cuda.current_stream().wait_stream(side)
    same(results, expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = run(x, *weights)
    graph.replay()
    same(results, expected)


def test_cuda_graph_of_a_module_in_evaluation() -> None:
    module = torch.nn.Sequential(
        *[torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.GELU()) for _ in range(6)]
    )
    module = module.cuda().eval()
    run = fusee.compile(module, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(5):
            x = random(4, 16)
            torch.testing.assert_close(run(x), module(x))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cuda_linear_layers_with_relu(dtype: torch.dtype, mode: str) -> None:
    parts = [part for _ in range(4) for part in (torch.nn.Linear(16, 16), torch.nn.ReLU())]
    module = torch.nn.Sequential(*parts, torch.nn.Linear(16, 1), torch.nn.ReLU()).to("cuda", dtype).eval()
    run = fusee.compile(module, mode=mode)
    with torch.no_grad():
        for _ in range(3):
            x = random(8, 16, dtype=dtype)
            torch.testing.assert_close(run(x), module(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(16, 50), (300, 32000), (64, 1000, 3)])
def test_cuda_losses(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    scores, target = random(*shape, dtype=dtype), torch.randint(0, shape[1], (shape[0], *shape[2:]), device="cuda")
    target.view(-1)[3] = -100
    for reduction in ("mean", "sum", "none"):
        compiled = fusee.compile(
            lambda scores, target, how=reduction: functional.cross_entropy(scores, target, reduction=how)
        )
        expected = functional.cross_entropy(scores.double(), target, reduction=reduction)
        tolerance = 1e-5 if dtype == torch.float32 else 1e-2
        torch.testing.assert_close(compiled(scores, target).double(), expected, rtol=tolerance, atol=tolerance)


LONG: dict[str, Function] = {
    "sum": lambda x: x.sum(),
    "odd": lambda x: (x[1:] * 2).sum(),
    "mean": lambda x: (x * x).mean(),
    "greatest": lambda x: x.amax() - x.amin(),
    "columns": lambda x: x.view(-1, 64).sum(0),
    "rows": lambda x: x.view(4, -1).sum(1),
    "stored": lambda x: torch.cat([(x + 1)[:5], (x + 1).sum().view(1)]),
    "softmax": lambda x: torch.softmax(x, 0) * 1000,
    "embedding": lambda x: functional.embedding(x[:300].abs().long(), x.view(-1, 64)) + 1,
}


@pytest.mark.parametrize("name", LONG)
def test_cuda_long_reductions(name: str) -> None:
    x = random(1 << 22)
    compiled = fusee.compile(LONG[name])
    expected = LONG[name](x.double())
    results = [compiled(x) for _ in range(3)]
    torch.testing.assert_close(
        results[0].double(), expected, rtol=1e-5, atol=2e-2 if name in ("sum", "odd", "rows") else 1e-3
    )
    assert all(torch.equal(results[0], result) for result in results)


def test_cuda_graphs_after_others_died() -> None:
    """The memory that recordings share goes with the last of them, and comes anew with the next."""
    for _ in range(3):
        run, x, weights = recorded_layers()
        for _ in range(3):
            same(run(x, *weights), layers(x, *weights))
        del run
        fusee.reset()
        gc.collect()


def test_cuda_graph_that_cannot_be_recorded() -> None:
    """The program's random numbers go on as before."""

    def refuse() -> tuple[Any, ...]:
        torch.cuda.synchronize()
        return ()

    torch.manual_seed(3)
    expected = random(4)
    torch.manual_seed(3)
    with pytest.raises(RuntimeError):
        recording.CudaRecorder().record(refuse)
    assert torch.equal(random(4), expected)
    random(4).sum().item()


class DecoderLayer(torch.nn.Module):
    """One layer of a decoder, which is given the keys and values of earlier tokens."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.project, self.out = torch.nn.Linear(width, width), torch.nn.Linear(width, width, bias=False)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        query = self.project(self.first(x)).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        x = x + self.out(functional.scaled_dot_product_attention(query, keys, values).transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.second(x))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("keys", [1, 7, 128, 200])
def test_cuda_decoding_of_one_token_is_as_near_as_eager(keys: int, dtype: torch.dtype) -> None:
    layer = DecoderLayer(256, 4).to("cuda", dtype).eval()
    arguments = [
        random(1, 1, 256, dtype=dtype),
        random(1, 4, keys, 64, dtype=dtype),
        random(1, 4, keys, 64, dtype=dtype),
    ]
    compiled = fusee.compile(layer)
    with torch.no_grad():
        for _ in range(2):
            actual = compiled(*arguments)
        expected = layer(*arguments)
        exact = layer.double()(*(argument.double() for argument in arguments))
    assert actual.shape == expected.shape and actual.stride() == expected.stride()
    assert (actual - exact).abs().max() <= 2 * (expected - exact).abs().max() + 1e-6


def products_of_a_row(x: Tensor, w: Tensor, b: Tensor) -> list[Tensor]:
    row = x[:1]
    return [
        row @ w,
        row.mm(w.t()),
        torch.addmm(b, row, w.t()),
        x[0] @ w.t(),
        functional.linear(row, w[:, ::1], b),
        torch.softmax(row, 1) @ w.t(),
    ]


@pytest.mark.parametrize("dtype", FLOATS)
def test_cuda_products_of_one_row(dtype: torch.dtype) -> None:
    x, w, b = (random(*sizes, dtype=dtype) / 3 for sizes in ((3, 96), (96, 96), (96,)))
    expected = products_of_a_row(x, w, b)
    exact = products_of_a_row(x.double(), w.double(), b.double())
    for actual, eager, best in zip(fusee.compile(products_of_a_row)(x, w, b), expected, exact, strict=True):
        assert actual.shape == eager.shape and actual.stride() == eager.stride()
        assert (actual - best).abs().max() <= 2 * (eager - best).abs().max() + 1e-6


class Residual(torch.nn.Module):
    """A block as residual networks have it, with changes in place."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = torch.nn.Conv2d(outputs, outputs, 3, padding=1)
        self.short = torch.nn.Conv2d(inputs, outputs, 1, stride)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(outputs, affine=index != 1) for index in range(3))
        self.relu = torch.nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        result = self.norms[1](self.second(self.relu(self.norms[0](self.first(x)))))
        result += self.norms[2](self.short(x))
        return self.relu(result)


class Images(torch.nn.Module):
    """Several convolutions with what comes between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 32, 7, 2, 3, bias=False), torch.nn.Conv2d(32, 32, 3, padding=1)
        self.third, self.grouped = torch.nn.Conv2d(32, 64, 1), torch.nn.Conv2d(64, 64, 3, padding=1, groups=64)
        self.norm, self.residual = torch.nn.BatchNorm2d(32), Residual(32, 32, 1)
        self.odd = torch.nn.Conv2d(32, 7, 3)
        for norm in [self.norm, *self.residual.norms]:
            for vector in (norm.running_mean, norm.weight, norm.bias):
                if vector is not None:
                    torch.nn.init.normal_(vector)
            torch.nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = functional.max_pool2d(functional.relu(self.norm(self.first(x)), inplace=True), 3, 2, 1)
        odd = functional.relu(self.odd(x)).sum((1, 2, 3))
        y = functional.relu(self.second(self.residual(x)) + x)
        y += 1
        joined = torch.cat([y, x], 1)[:, 16:48]
        z = self.grouped(self.third(joined))
        seen = z.view(z.shape[0], -1)
        seen.mul_(2)
        return self.third(functional.avg_pool2d(y, 2)).mean((2, 3)) + z.mean((2, 3)), seen[:, :5], odd


@pytest.mark.parametrize("dtype", FLOATS)
def test_cuda_convolutions(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch.backends.cudnn, "allow_tf32", False
    )  # where it is allowed, the layout decides whether it is used
    images = Images().to("cuda", dtype).eval()
    x = random(4, 3, 64, 64, dtype=dtype)
    with torch.no_grad():
        compiled = fusee.compile(images)
        for _ in range(2):
            actual = compiled(x)
        expected = images(x)
        exact = images.double()(x.double())
    for ours, eager, best in zip(actual, expected, exact, strict=True):
        assert ours.stride() == eager.stride()
        assert (ours - best).abs().max() <= 2 * (eager - best).abs().max() + 1e-6
