"""``torch.compile(fn, backend="fusee")``: our lowering under Dynamo's capture; the fake compiler calls operators."""

from __future__ import annotations

import gc
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import fusee
from fusee.backends import dynamo_backend

Use = Callable[..., None]


def f(x: Any, y: Any) -> Any:
    return torch.relu(x * y) * y


def check() -> None:
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    y = torch.tensor([2.0, 1.0, 0.5], requires_grad=True)
    torch._dynamo.reset()
    result = torch.compile(f, backend=dynamo_backend)(x, y)
    torch.testing.assert_close(result, f(x, y), rtol=0, atol=0)
    found = torch.autograd.grad(result.sum(), (x, y))
    torch.testing.assert_close(found, torch.autograd.grad(f(x, y).sum(), (x, y)), rtol=0, atol=0)


def ours(caught: list[Any]) -> list[str]:
    return [str(item.message) for item in caught if item.category is fusee.FuseeWarning]


def test_forward_and_backward_run_as_plans(scenario: Use, caught: list[Any], tmp_path: Path) -> None:
    scenario("same", FUSEE_RECORD=str(tmp_path / "traces"))
    check()
    assert ours(caught) == []
    assert len(list((tmp_path / "traces").glob("*-lower-*.fusee"))) == 2


def test_without_a_compiler_the_graphs_run_as_fx(environment: Use, caught: list[Any]) -> None:
    environment(FUSEE_COMPILER="/nonexistent/fusee")
    check()
    (warning,) = ours(caught)
    assert "without fused kernels" in warning


def test_entry_point_of_the_installed_package() -> None:
    """The name that ``torch.compile(backend="fusee")`` looks up, as declared in pyproject.toml."""
    declared = Path(__file__).parents[2] / "pyproject.toml"
    assert 'fusee = "fusee.backends:dynamo_backend"' in declared.read_text()
    for point in metadata.entry_points(group="torch_dynamo_backends", name="fusee"):
        assert point.load() is dynamo_backend


def test_code_that_only_dynamo_knows_can_die() -> None:
    """CPython asks everyone who ever wanted a slot in code objects to free theirs, even an empty one."""
    fusee.compile(lambda x: x + 1)(torch.ones(2))
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    torch._dynamo.reset()
    gc.collect()
