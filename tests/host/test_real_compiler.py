"""The real compiler behind the host: the seed example, and its process killed at any moment of a compile."""

from __future__ import annotations

import copy
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fusee
from fusee.host import connection
from fusee.host.connection import CONNECTION

Use = Callable[..., None]
pytestmark = pytest.mark.usefixtures("empty_cache")


def f(x: Any, y: Any) -> Any:
    z = x + y
    return torch.relu(z) * 2


def test_seed_example(caught: list[Any]) -> None:
    x, y = torch.tensor([1.0, -2.0, 3.0, -4.0]), torch.full((4,), 0.5)
    fast = fusee.compile(f)
    for _ in range(3):
        torch.testing.assert_close(fast(x, y), f(x, y), rtol=0, atol=0)
    assert fusee.stats() == {"graphs": 1, "recompiles": 0, "breaks": 0}
    explanation = fusee.explain(f)(x, y)
    assert explanation.op_count == 3 and len(explanation.kernels) == 1
    assert not caught


def test_a_deep_copy_is_one_break() -> None:
    def copied(model: Any, x: Any) -> Any:
        return copy.deepcopy(model)(x) + 1

    fast, x = fusee.compile(copied), torch.linspace(-1, 1, 6)
    for _ in range(3):
        model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU())
        torch.testing.assert_close(fast(model, x), copied(model, x), rtol=0, atol=0)
    assert fusee.stats() == {"graphs": 1, "recompiles": 0, "breaks": 1}


def test_operators_that_torch_compiles_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(condition: Any, x: Any) -> Any:
        return torch.cond(condition, torch.sin, torch.cos, (x,)) + 1

    monkeypatch.setattr(torch, "compile", fusee.compile)
    fast, x = fusee.compile(chosen), torch.linspace(-1, 1, 5)
    for condition, branch in ((True, torch.sin), (False, torch.cos)):
        torch.testing.assert_close(fast(torch.tensor(condition), x), branch(x) + 1, rtol=0, atol=0)


def test_run_compiles_nothing(caught: list[Any]) -> None:
    fast = fusee.compile(f)
    fast(torch.ones(4), torch.ones(4))
    only = fusee.run(fast)
    for size in (4, 5):
        x = torch.linspace(-1, 1, size)
        torch.testing.assert_close(only(x, x), f(x, x), rtol=0, atol=0)
    assert fusee.stats() == {"graphs": 1, "recompiles": 0, "breaks": 0}
    inlined = fusee.compile(lambda x: only(x, x) + 1, fullgraph=True)
    torch.testing.assert_close(inlined(x), f(x, x) + 1, rtol=0, atol=0)
    with pytest.raises(TypeError, match="not Linear"):
        fusee.run(fusee.compile(torch.nn.Linear(2, 2)))
    assert fusee.run()(f) is f and not caught


def test_seed_example_with_every_backend() -> None:
    x, y = torch.tensor([1.0, -2.0]), torch.ones(2)
    modules: list[torch.fx.GraphModule] = []

    def custom(module: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Any:
        modules.append(module)
        return module.forward

    for backend in ("fusee", "eager", custom):
        torch.testing.assert_close(fusee.compile(f, backend=backend)(x, y), f(x, y), rtol=0, atol=0)
    assert "torch.relu" in modules[0].code


def half_precision(x: Any, y: Any) -> Any:
    return torch.sin(x * y + 1) * x - y


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_numerics_of_eager(dtype: torch.dtype) -> None:
    """Rounding every value of a kernel gives eager's bits; keeping them in float32 comes closer to the truth."""
    x, y = torch.linspace(-3, 3, 999, dtype=dtype), torch.linspace(5, -1, 999, dtype=dtype)
    expected = half_precision(x, y)
    rounded = fusee.compile(half_precision, options={"numerics": "eager"})(x, y)
    fused = fusee.compile(half_precision)(x, y)
    torch.testing.assert_close(rounded, expected, rtol=0, atol=0)
    assert not torch.equal(fused, expected)
    truth = half_precision(x.double(), y.double())
    assert (fused.double() - truth).norm() < (expected.double() - truth).norm()


@pytest.mark.parametrize(("library", "text"), [("", "no LLVM library was found"), (__file__, "loading LLVM")])
def test_missing_code_generator_warns_once(
    caught: list[Any], monkeypatch: pytest.MonkeyPatch, library: str, text: str
) -> None:
    """Whatever is wrong with LLVM, the result is eager's and one warning says so, however many functions need it."""
    found = connection._installed()
    monkeypatch.setattr(connection, "_installed", lambda: {**found, "llvm": library})
    x, y = torch.ones(3), torch.ones(3)
    for size in (3, 4):
        x, y = torch.linspace(-1, 1, size), torch.ones(size)
        for function in (f, lambda x, y: torch.relu(x - y) * 3):
            torch.testing.assert_close(fusee.compile(function)(x, y), function(x, y), rtol=0, atol=0)
    messages = [str(item.message) for item in caught]
    assert len(messages) == 1 and text in messages[0] and "llvmlite" in messages[0], messages


def test_fullgraph_names_the_place() -> None:
    def branches(x: Any) -> Any:
        if x.sum() > 0:
            return x + 1
        return x - 1

    with pytest.raises(fusee.Unsupported) as error:
        fusee.compile(branches, fullgraph=True)(torch.ones(2))
    text = str(error.value)
    assert __file__ in text and "if x.sum() > 0:" in text and "^" in text and "hint:" in text


@pytest.mark.parametrize("moment", [0.0, 0.001, 0.003, 0.006, 0.01, 0.02])
def test_killed_at_any_moment(caught: list[Any], moment: float) -> None:
    """The result is eager's whenever the process dies, and at most one warning says so."""
    x, y = torch.ones(3), torch.ones(3)
    CONNECTION.stop()

    def kill() -> None:
        deadline = time.monotonic() + 20
        while (child := CONNECTION._child) is None and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(moment)
        if child is not None:
            os.kill(child._process.pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    fast = fusee.compile(f)
    torch.testing.assert_close(fast(x, y), f(x, y), rtol=0, atol=0)
    thread.join()
    torch.testing.assert_close(fast(x, y), f(x, y), rtol=0, atol=0)
    assert len(caught) <= 1, [str(item.message) for item in caught]
    assert len(fast.record.entries) == 1


def test_fork_compiles_in_both_processes() -> None:
    x, y = torch.ones(3), torch.ones(3)
    fusee.compile(f)(x, y)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            other = fusee.compile(lambda x, y: torch.relu(x - y))
            status = 0 if torch.equal(other(x, y), torch.zeros(3)) and len(other.record.entries) == 1 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    another = fusee.compile(lambda x, y: torch.relu(x * y))
    assert torch.equal(another(x, y), torch.ones(3)) and len(another.record.entries) == 1


def test_unwritable_cache_warns_once(environment: Use, tmp_path: Path, caught: list[Any]) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    environment(FUSEE_CACHE_DIR=str(blocked / "cache"))
    x, y = torch.ones(3), torch.ones(3)
    torch.testing.assert_close(fusee.compile(f)(x, y), f(x, y), rtol=0, atol=0)
    torch.testing.assert_close(fusee.compile(lambda x, y: f(x, y))(x, y), f(x, y), rtol=0, atol=0)
    assert len(caught) == 1, [str(item.message) for item in caught]


def test_views_of_an_argument_that_begins_elsewhere() -> None:
    def views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[1:], x[1:] @ x[:-1], x.view(2, 2), x.detach().as_strided((2,), (1,)), x.as_strided((2,), (2,), 1)

    base = torch.arange(32.0)
    fast = fusee.compile(views)
    for start in (4, 0, 9):
        torch.testing.assert_close(fast(base[start : start + 4]), views(base[start : start + 4]), rtol=0, atol=0)
    assert fusee.stats()["recompiles"] == 0
