"""Graphs as Python functions and fx modules, and every backend on the fake compiler's graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fusee
from fusee import pygraph
from fusee.host.answer import Answers
from fusee.host.describe import ObjectTable

Use = Callable[..., None]
METADATA = ("float32", "cpu", (4,), (1,), 0, False, 2)


def f(x: Any, y: Any) -> Any:
    z = x + y
    return torch.relu(z) * 2


def value(reference: Any) -> Any:
    return Answers(ObjectTable()).build(reference)


def graph(nodes: list[Any], outputs: list[Any], inputs: tuple[str, ...] = ("x", "y")) -> dict[str, Any]:
    return {"name": "g", "inputs": [(name, METADATA) for name in inputs], "nodes": nodes, "outputs": outputs}


EVERYTHING = graph(
    [
        ("z", "operator.add", [("i", 0), ("i", 1)], {}, [METADATA]),
        ("pair", "torch.max", [("n", 0)], {"dim": (0,)}, [METADATA, METADATA]),
        ("both", "torch.stack", [("list", [("n", 1, 0), ("n", 1, 1)])], {}, [METADATA]),
        ("turned", "Tensor.real", [("n", 2)], {}, [METADATA]),
        ("class", "Tensor.to", [("n", 3), ("name", "torch.float64")], {}, [METADATA]),
        ("cut", "operator.getitem", [("i", 0), ("slice", (1,), (None,), (2,))], {}, [METADATA]),
        ("z", "Tensor.mul_", [("n", 5), (float("inf"),)], {}, [METADATA]),
    ],
    [("n", 4), ("n", 6), ("n", 0)],
)


def expected(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    z = x + y
    pair = torch.max(z, dim=0)
    both = torch.stack([pair[0], pair[1].float()])
    cut = x[1::2]
    return both.real.to(torch.float64), cut.mul_(float("inf")), z


@pytest.mark.parametrize("form", [pygraph.as_function, pygraph.as_module])
def test_graph_computes_what_its_nodes_say(form: Callable[..., Any]) -> None:
    x, y = torch.tensor([1.0, -2.0, 3.0, 5.0]), torch.ones(4)
    x2, y2 = x.clone(), y.clone()
    found = form(EVERYTHING, value)(x, y)
    wanted = expected(x2, y2)
    assert type(found) is tuple
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    torch.testing.assert_close(x, x2)


def test_source_is_readable_and_drops_values_after_their_last_use() -> None:
    source = pygraph.function_source(EVERYTHING, value)
    assert source.startswith("def graph(x, y):\n")
    assert "    turned = both.real\n    del both\n" in source
    assert "_class = turned.to(" in source
    assert "del z\n" not in source


class Held:
    """Counts how many of its kind live, also while one is made from another."""

    alive = 0
    most = 0

    def __init__(self, *made_from: Any) -> None:
        self.made_from = len(made_from)
        Held.alive += 1
        Held.most = max(Held.most, Held.alive)

    def __del__(self) -> None:
        Held.alive -= 1


def test_a_long_chain_of_nodes_compiles_as_few_lines_and_holds_no_value_longer_than_needed() -> None:
    table = ObjectTable()
    target = table.identify(Held)
    nodes = [(f"held_{i}", target, [("n", i - 1) if i else ("i", 0), ("i", 1)], {}, [METADATA]) for i in range(1000)]
    chain = graph(nodes, [("n", 999)])
    source = pygraph.function_source(chain, Answers(table).build)
    assert source.count("\n") < 100
    Held.most = 0
    (last,) = pygraph.as_function(chain, Answers(table).build)(1, 2)
    assert type(last) is Held and last.made_from == 2
    assert Held.most == 2  # what a node makes and what it is made from


def test_nodes_of_other_calls_stand_on_lines_of_their_own() -> None:
    nodes = [(f"relu_{i}", "torch.relu", [("n", i - 1) if i else ("i", 0)], {}, [METADATA]) for i in range(4)]
    chain = graph(nodes, [("n", 3)])
    chain["calls"] = ([("f", "f.py", 1, -1), ("f", "f.py", 2, -1)], [0, 0, 1, 1])
    source = pygraph.function_source(chain, value)
    starts = [line.strip().partition(" = ")[0] for line in source.splitlines()[1:-1]]
    assert starts == ["relu_1", "relu_2", "del relu_1", "relu_3", "del relu_2"]


def test_nodes_read_twice_or_beside_a_size_are_computed_once_and_in_order() -> None:
    nodes = [
        ("twice", "torch.relu", [("i", 0)], {}, [METADATA]),
        ("both", "operator.add", [("n", 0), ("n", 0)], {}, [METADATA]),
        ("grown", "Tensor.resize_", [("i", 1), (6,)], {}, [METADATA]),
        ("sized", "torch.full_like", [("n", 2), ("size", 1, 0)], {}, [METADATA]),
    ]
    source = pygraph.function_source(graph(nodes, [("n", 1), ("n", 3)]), value)
    assert source.count("relu") == 1
    both, sized = pygraph.as_function(graph(nodes, [("n", 1), ("n", 3)]), value)(torch.ones(4), torch.ones(4))
    assert both.tolist() == [2.0] * 4 and sized.tolist() == [6.0] * 6


def test_module_prints_readable_code() -> None:
    nodes = [
        ("z", "operator.add", [("i", 0), ("i", 1)], {}, [METADATA]),
        ("relu", "torch.relu", [("n", 0)], {}, [METADATA]),
        ("mul", "Tensor.mul", [("n", 1), (2,)], {}, [METADATA]),
    ]
    module = pygraph.as_module(graph(nodes, [("n", 2)]), value)
    assert [(node.op, node.name) for node in module.graph.nodes] == [
        ("placeholder", "x"), ("placeholder", "y"), ("call_function", "z"), ("call_function", "relu"),
        ("call_method", "mul"), ("output", "output"),
    ]  # fmt: skip
    assert "def forward(self, x, y):" in module.code
    assert "torch.relu(z)" in module.code and "x + y" in module.code


def test_nodes_that_return_their_argument_may_be_unused() -> None:
    nodes = [("unused", "torch.relu", [("i", 0)], {}, [METADATA])]
    assert pygraph.as_function(graph(nodes, [("i", 1)]), value)(1 + torch.ones(1), 5) == (5,)


def test_custom_backend_gets_a_module_and_real_tensors(scenario: Use) -> None:
    scenario("seed")
    seen: list[Any] = []

    def backend(module: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Any:
        seen.append((module, example_inputs))
        return module.forward

    x, y = torch.tensor([1.0, -2.0]), torch.ones(2)
    fast = fusee.compile(f, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(fast(x, y), f(x, y), rtol=0, atol=0)
    ((module, inputs),) = seen
    assert isinstance(module, torch.fx.GraphModule)
    assert inputs[0] is x and inputs[1] is y
    assert len([node for node in module.graph.nodes if node.op == "call_function"]) == 2


def test_errors_of_a_custom_backend_reach_the_user(scenario: Use) -> None:
    scenario("seed")

    def backend(module: Any, example_inputs: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        fusee.compile(f, backend=backend)(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="returned int, which cannot be called"):
        fusee.compile(f, backend=lambda module, inputs: 3)(torch.ones(2), torch.ones(2))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_named_backends(scenario: Use, backend: str) -> None:
    scenario("seed")
    x, y = torch.tensor([1.0, -2.0], requires_grad=True), torch.ones(2)
    result = fusee.compile(f, backend=backend)(x, y)
    torch.testing.assert_close(result, f(x, y), rtol=0, atol=0)
    result.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([2.0, 0.0]))


def test_list_of_backends() -> None:
    assert fusee.list_backends() == ["aot_eager", "eager", "fusee", "inductor"]
    with pytest.raises(TypeError, match="not int"):
        fusee.compile(f, backend=3)  # type: ignore[call-overload]
