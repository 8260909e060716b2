"""fusee's lowering under another capture: aten graphs as ``torch.fx`` modules become launch plans.

Dynamo captures, AOTAutograd functionalises, differentiates and decomposes; each graph goes to the compiler with a
``lower`` request (docs/contracts.md, section 1). A graph that cannot be lowered runs as fx.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import _disable_current_modes

from .. import _shim, settings, warn
from ..errors import HostFailure
from ..options import Options
from ..wrap import calibrate
from . import miss
from .describe import ObjectTable
from .operators import signature
from .tensors import DECORATED, UNUSUAL, metadata

Runner = Callable[..., Any]


class NotLowerable(Exception):
    """The graph holds something that node lists cannot say."""


def compile_module(module: torch.fx.GraphModule, inputs: list[Any], options: Mapping[str, settings.Value]) -> Runner:
    """A callable for a captured ``module``; gradients through it work."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    with _disable_current_modes():  # it looks at real tensors
        calibrate()
    lower = functools.partial(_lower, options=Options(settings=tuple(sorted(options.items()))))
    build = aot_autograd(fw_compiler=lower, bw_compiler=lower, partition_fn=min_cut_rematerialization_partition)
    runner: Runner = build(module, inputs)
    return runner


def _lower(module: torch.fx.GraphModule, inputs: list[Any], options: Options) -> Runner:
    from torch._functorch.aot_autograd import make_boxed_func  # type: ignore[attr-defined]

    try:
        with miss.paused():
            run = _plan(module, options)
    except NotLowerable:
        run = module.forward
    except HostFailure as failure:
        warn.once(failure.cause, f"a graph runs without fused kernels: {failure.message}")
        run = module.forward
    boxed: Runner = make_boxed_func(run)
    return boxed


def _plan(module: torch.fx.GraphModule, options: Options) -> Runner:
    table = ObjectTable()
    converter = _Converter(table, module)
    graph = converter.graph()
    request = {
        "graphs": [graph],
        "state": miss.state(),
        "settings": options.changed,
        "descriptions": table.describe(range(1, len(table.objects))),
    }
    result = miss.converse(("lower", request), table, options, "lower")
    lowered = result["graphs"][0]
    if lowered.get("runs") != "plan":
        raise NotLowerable
    try:
        return converter.runner(_shim.LaunchPlan(lowered["plan"]))
    except (TypeError, ValueError, RuntimeError, AttributeError, LookupError) as error:
        raise HostFailure("plan", f"the compiler's plan cannot be used: {error}") from error


def _metadata(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        *front, flags = metadata(value)
        return (*front, flags & ~(UNUSUAL | DECORATED))
    if type(value) in (tuple, list):
        return [None if item is None else _metadata(item) for item in value]
    raise NotLowerable  # symbolic sizes, or a number computed from data


class _Converter:
    """Writes an fx graph of aten operations as a node list."""

    def __init__(self, table: ObjectTable, module: torch.fx.GraphModule) -> None:
        self._table = table
        self._module = module
        self._places: dict[torch.fx.Node, Any] = {}
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._constants: list[torch.Tensor] = []  # tensors that the graph holds: the plan's last inputs
        self._absent: list[int] = []  # where the graph returns None, as backward does for what needs no gradient

    def graph(self) -> dict[str, Any]:
        """The graph of section 5."""
        graph = self._module.graph
        for node in graph.nodes:
            _WRITERS.get(node.op, _not_lowerable)(self, node)
        return {
            "name": "graph",
            "inputs": self._inputs,
            "nodes": self._nodes,
            "outputs": self._outputs,
            "runs": "plan",
            "plan": None,
            "mutates": any(_mutates(node.target) for node in graph.nodes),
        }

    def placeholder(self, node: torch.fx.Node) -> None:
        """An input."""
        self._places[node] = ("i", len(self._inputs))
        self._inputs.append((node.name, _metadata(node.meta.get("val"))))

    def constant(self, node: torch.fx.Node) -> None:
        """A tensor that the graph holds."""
        value = operator.attrgetter(str(node.target))(self._module)
        if not isinstance(value, torch.Tensor):
            raise NotLowerable
        self._constants.append(value)
        self._places[node] = ("i", len(self._inputs))
        self._inputs.append((node.name, _metadata(value)))

    def call(self, node: torch.fx.Node) -> None:
        """An operation, or the choice of one of its outputs."""
        if node.target is operator.getitem:
            source, index = node.args
            self._places[node] = (*self._argument(source), index)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise NotLowerable
        args = [self._argument(argument) for argument in node.args]
        kwargs = {name: self._argument(argument) for name, argument in node.kwargs.items()}
        found = _metadata(node.meta.get("val"))
        self._places[node] = ("n", len(self._nodes))
        outputs = found if type(found) is list else [found]
        self._nodes.append((node.name, str(node.target), args, kwargs, outputs, signature(node.target)))

    def output(self, node: torch.fx.Node) -> None:
        """What the graph returns."""
        results: Any = node.args[0]
        self._absent = [place for place, result in enumerate(results) if result is None]
        self._outputs = [self._argument(result) for result in results if result is not None]

    def runner(self, plan: Runner) -> Runner:
        """The plan as the graph is called: without the tensors it holds, and with its Nones."""
        absent, constants = self._absent, self._constants
        if not absent and not constants:
            return plan

        def run(*inputs: Any) -> list[Any]:
            results = list(plan(*inputs, *constants))
            for place in absent:
                results.insert(place, None)
            return results

        return run

    def _argument(self, argument: Any) -> Any:
        if isinstance(argument, torch.fx.Node):
            return self._places[argument]
        if isinstance(argument, (list, tuple)) and not isinstance(argument, torch.Size):
            return "tuple" if isinstance(argument, tuple) else "list", [self._argument(item) for item in argument]
        return self._table.reference(argument)


def _mutates(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable


def _not_lowerable(converter: _Converter, node: torch.fx.Node) -> None:
    raise NotLowerable


_WRITERS: dict[str, Callable[[_Converter, torch.fx.Node], None]] = {
    "placeholder": _Converter.placeholder,
    "call_function": _Converter.call,
    "get_attr": _Converter.constant,
    "output": _Converter.output,
}
