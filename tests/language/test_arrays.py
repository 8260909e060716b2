"""NumPy's arrays in captured programs: as NumPy computes them, and left to it where torch's own interface differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import fusee

PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []


def calls(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append((function, arguments))
        return function

    return register


@pytest.fixture(autouse=True)
def no_warnings(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    """A program that runs as plain Python shows nothing."""
    yield
    assert not [str(w.message) for w in recwarn if issubclass(w.category, fusee.FuseeWarning)]


@calls(np.arange(8))
def operators(x: Any) -> Any:
    return 2 * x**2, x + 1.5, -x, x // 3, x % 3, x > 2, 3 - x, x & 1, abs(x - 4)


@calls(np.linspace(-1, 1, 12).reshape(3, 4))
def methods(x: Any) -> Any:
    y = (x * 5).astype(bool).astype(float).astype(int) + 8
    return (
        y,
        x.T,
        x.reshape(4, 3),
        x.sum(axis=0),
        x.mean(1),
        x.copy(),
        x.transpose(1, 0),
        x.clip(0, 1),
        x.cumsum(axis=1),
    )


@calls(np.ones((2, 3), dtype=np.float32), np.arange(3))
def functions(x: Any, i: Any) -> Any:
    stacked = np.concatenate([x, x]), np.stack([x, x * 2]), np.where(x > 0, x, -x)
    return (
        np.add(x, 1),
        np.exp(x),
        np.linalg.norm(x, axis=0),
        np.ones_like(x, dtype=np.float64),
        stacked,
        np.sort(i),
    )


@calls(np.arange(6).reshape(3, 2))
def facts(x: Any) -> Any:
    same = isinstance(x, np.ndarray), type(x) is np.ndarray
    return (
        x.shape,
        x.ndim,
        x.size,
        x.itemsize,
        x.dtype,
        len(x),
        same,
        [row + 1 for row in x],
        x[1:],
        x[::2, 1:],
    )


@calls(torch.arange(6.0).reshape(2, 3))
def tensors(t: Any) -> Any:
    a = t.numpy()
    return a + a, a.T, np.full_like(t, 2.4, dtype=np.dtype("float")), torch.from_numpy(a * 2) + t, np.zeros((2, 2))


@calls(np.arange(4), 3)
def new_arrays(x: Any, n: int) -> Any:
    return np.arange(n) * 2, np.asarray([1, 1, 2], dtype=np.float16), np.asarray(x) is x, np.array([n, 2.5])


@calls(np.arange(8) ** 2, np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3))
def items(x: Any, y: Any) -> Any:
    chosen = [x[0], x[2], x[-1]]
    view = torch.from_numpy(x)
    taken = x[3]
    return torch.LongTensor(chosen), torch.FloatTensor([y[1, 2], y[0][1]]), view + 1, taken, chosen, y[1, 2]


def described(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return "array", value.dtype.name, value.shape, np.round(value.astype(complex), 6).tolist()
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(item) for item in value]
    return type(value).__name__, value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0].__name__)
def test_captured_whole(program: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
    function, arguments = program
    compiled = fusee.compile(function, fullgraph=True)
    for _ in range(2):
        assert described(compiled(*arguments)) == described(function(*arguments))


def test_guards() -> None:
    """Arrays of other dtypes, shapes and strides are captured anew, other contents are not."""
    compiled = fusee.compile(lambda x: x * 2 + 1, fullgraph=True)
    fusee.reset()
    base = np.arange(12.0)
    arrays = [base[:4], base[4:8], base[::3], base[:4].astype(np.int32), base[:6]]
    for array in arrays:
        assert described(compiled(array)) == described(array * 2 + 1)
    assert fusee.stats()["graphs"] == 4


def test_what_only_numpy_does() -> None:
    """Scalars, errors, changes in place, dtypes that torch lacks: Python runs them, and the results are NumPy's."""

    def program(x: Any, names: Any) -> Any:
        total = x.sum()
        x[0] = 5
        x += 1
        y = np.add(x, 1, out=np.zeros_like(x))
        try:
            x + np.ones(7)
        except ValueError as error:
            failure = str(error)
        return total, type(total).__name__, y, failure, names[::-1], np.unique(x), x[1], np.append(x, 3)

    def arguments() -> tuple[Any, Any]:
        return np.arange(4.0), np.array(["a", "b"])

    given, taken = arguments(), arguments()
    expected, found = program(*given), fusee.compile(program)(*taken)
    assert expected[0] == found[0] and expected[1:2] == found[1:2] and expected[3] == found[3]
    assert [described(expected[k]) for k in (2, 5, 7)] == [described(found[k]) for k in (2, 5, 7)]
    assert expected[4].tolist() == found[4].tolist() and described(given[0]) == described(taken[0])


def test_memory_is_shared_as_with_numpy() -> None:
    def views(x: Any, t: Any) -> Any:
        return x.reshape(2, 2), x[1:], t.numpy(), x.astype(np.float32), torch.from_numpy(x)

    for run in (views, fusee.compile(views, fullgraph=True)):
        x, t = np.arange(4.0), torch.zeros(3)
        reshaped, tail, of_tensor, copied, tensor = run(x, t)
        x[1], t[0] = 9, 7
        assert (reshaped[0, 1], tail[0], of_tensor[0], copied[1], float(tensor[1])) == (9, 9, 7, 1, 9)


def graphs_of(program: Callable[..., Any], arguments: tuple[Any, ...], fullgraph: bool) -> list[int]:
    """How many operations each graph has that a backend gets, of a program that gives what it gives uncompiled."""
    graphs: list[int] = []

    def backend(module: torch.fx.GraphModule, _inputs: list[Any]) -> Callable[..., Any]:
        graphs.append(sum(node.op.startswith("call") for node in module.graph.nodes))
        return module.forward

    found = fusee.compile(program, backend=backend, fullgraph=fullgraph)(*arguments)
    assert described(found) == described(program(*arguments))
    return graphs


def test_backends_see_arrays_being_taken() -> None:
    """The call of numpy() is an operation of the graph, whether the array leaves it or only its size is asked for."""

    def broken(x: Any, y: Any) -> Any:
        a, b = x.numpy(), y.numpy()
        fusee.graph_break()
        return np.add(a, 1), np.add(b, 1)

    assert graphs_of(lambda x: x.numpy().size, (torch.ones(3),), fullgraph=True) == [1]
    assert graphs_of(broken, (torch.ones(1, 3), torch.zeros(1, 3)), fullgraph=False) == [2, 2]


def test_ints_of_numpy() -> None:
    """Scalars of 64 bits are ints to the graph; Python is given NumPy's own, also of what is computed with them."""

    def computed(x: Any, a: int, b: Any) -> Any:
        return (
            x + a % b,
            (b * 2 - a) * x,
            b,
            a // b,
            b + 1,
            torch.full((2,), b),
            x[: b - 6],
            isinstance(b + a, np.integer),
        )

    compiled = fusee.compile(computed, fullgraph=True, dynamic=True)
    for a, b in ((4096, np.int64(8)), (4097, np.int64(8)), (7, np.int64(-3))):
        assert described(compiled(torch.ones(3), a, b)) == described(computed(torch.ones(3), a, b))


@pytest.mark.parametrize(
    "use",
    [
        lambda b, x: (b == 8, b < 9, b in (7, 8), x + 1 if b > 3 else x),
        lambda b, x: ({8: "found"}[b], len({b, 8}), [*range(9)][b], hash(b)),
        lambda b, x: (f"{b}", repr(b), str(b)),
        lambda b, x: (b / 3, b**2, -b, abs(b), b & 3, b + 0.5, b + True, x / b, x**b),
        lambda b, x: (b // (b - b), b % -1),
        lambda b, x: (b + 2**62 + 2**62, b * 2**62),
        lambda b, x: (int(b), float(b), bool(b), b.dtype, b.item(), isinstance(b, int)),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_else_is_done_with_ints_of_numpy(use: Callable[[Any, Any], Any]) -> None:
    def program(b: Any, x: Any) -> Any:
        return use(b + 1, x)

    assert described(fusee.compile(program)(np.int64(7), torch.ones(3))) == described(
        program(np.int64(7), torch.ones(3))
    )
