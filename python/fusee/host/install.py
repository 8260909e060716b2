"""Turns the compiler's result into live objects and adds the entry (docs/contracts.md, sections 4 to 7)."""

from __future__ import annotations

import functools
import marshal
import types
from collections.abc import Callable, Iterable
from typing import Any

from .. import _helpers, _random, _shim, backends, logs, pygraph, training
from ..errors import HostFailure
from . import autocast, guards, names, recording
from .answer import Answers
from .describe import ObjectTable
from .originals import Originals
from .records import Target, new_record
from .tensors import INTERCEPTED, WRAPPER

_MARK = "$fusee"
_NO_REFERENCES = 2  # marshal versions below 3 write equal objects as equal bytes


class Installer:
    """Installs the result of one compile of one function."""

    def __init__(
        self, result: dict[str, Any], table: ObjectTable, function: types.FunctionType, target: Target
    ) -> None:
        self._result = result
        self._table = table
        self._function = function
        self._family = target.family
        self._changes = target.changes
        self._originals = Originals([function, *table.objects])
        self._graphs: dict[int, Any] = {}

    def entry(self) -> Any:
        """The entry: guard program and rewritten code, with everything they refer to in place.

        Its guards are to be settled for the call that it was compiled for.
        """
        code = self._code(self._result["code"])
        self._check_closure(code)
        tree = guards.bind(self._result["guards"], self._table, self._changes.note)
        program = _shim.GuardProgram(tree, self._result["captures"])
        return _shim.Entry(program, code, self._result.get("report") or {})

    def _check_closure(self, code: types.CodeType) -> None:
        """The code must find its free variables in the function's closure, or not look for them."""
        closure = self._function.__closure__
        if closure is None:
            _shim.make_step(code, self._function.__globals__)  # refuses code that copies from a closure
        elif len(code.co_freevars) != len(closure):
            raise HostFailure("protocol", f"the rewritten code of {code.co_qualname} has other free variables", True)

    def _constant(self, constant: Any) -> Any:
        if type(constant) is tuple and len(constant) >= 2 and constant[0] == _MARK:
            return self._placeholder(constant[1], constant[2:])
        own = self._originals.of(constant)
        if own is not None:
            return own
        if type(constant) is types.CodeType:
            return self._code(constant)
        return tuple(map(self._constant, constant)) if type(constant) is tuple else constant

    def _placeholder(self, kind: str, values: tuple[Any, ...]) -> Any:
        make = _KINDS.get(kind)
        if make is None:
            raise HostFailure("protocol", f"the compiler asked for a constant of kind {kind!r}")
        return make(self, *values)

    def _code(self, code: types.CodeType) -> types.CodeType:
        if type(code) is not types.CodeType:
            raise HostFailure("protocol", f"the compiler sent a {type(code).__name__} instead of code")
        constants = tuple(map(self._constant, code.co_consts))
        if all(new is old for new, old in zip(constants, code.co_consts, strict=True)):
            return code
        return code.replace(co_consts=constants)

    def _graph(self, index: int) -> Any:
        if index not in self._graphs:
            graph = self._result["graphs"][index]
            run = self._runner(graph)
            self._graphs[index] = _in_inference_mode(run) if graph.get("inference") else run
        return self._graphs[index]

    def _runner(self, graph: dict[str, Any]) -> Any:
        if graph["runs"] == "plan":
            options = self._family.options
            if graph.get("autocast") and graph["plan"].get("apart"):
                return self._in_python(graph)  # as the fallback does, for which autocast must be on
            self._check_draws(graph["plan"]["steps"])
            plan = _shim.LaunchPlan(graph["plan"], self._fallback(graph) if "nodes" in graph else None)
            run = recording.wrap(plan, graph, options.mode, options.changed)
            run = _within(_without_autocast(), run) if graph.get("autocast") else run
            return training.with_freed_history(run, graph) if graph.get("freed") else run
        if graph["runs"] == "training":
            self._check_draws(graph["training"]["forward"]["steps"])
            trained = training.TrainedGraph(graph, Answers(self._table).build)
            return _within(_without_autocast(), trained) if graph.get("autocast") else trained
        return self._in_python(graph)

    def _check_draws(self, steps: Iterable[Any]) -> None:
        """HostFailure where kernels of a plan would not draw what eager draws; the next compile leaves that to it."""
        if not _random.reproduces_all(steps):
            self._family.library_draws = True
            text = "this PyTorch's random numbers on a GPU are not those of kernels: its operators draw from now on"
            raise HostFailure("random numbers", text)

    def _fallback(self, graph: dict[str, Any]) -> Callable[..., Any]:
        """What runs a graph instead of its plan where that does not fit a call, built when that happens first."""
        changed = self._family.options.changed
        called: list[Callable[..., Any]] = []

        def run_in_python(*inputs: Any) -> Any:
            if not called:
                called.append(self._in_python(graph))
                reason = "tensors that it writes share memory with others that it is given"
                if _random.is_captured():
                    reason = "a CUDA graph that is captured keeps the state of the random generator to itself"
                logs.log("aliasing", f"Python runs {graph['name']} for a call: {reason}", changed)
            return called[0](*inputs)

        return run_in_python

    def _in_python(self, graph: dict[str, Any]) -> Any:
        run: Callable[..., Any]
        backend = backends.lookup(self._family.options.backend)
        value = Answers(self._table).build
        if backend is None:
            run = pygraph.as_function(graph, value)
        else:
            module = pygraph.as_module(graph, value)
            run = backends.Deferred(lambda: module, backend)
        if any(node[1] in autocast.STATE_CALLS for node in graph["nodes"]):
            run = autocast.restoring(run)
        return _without_overrides(run) if any(map(_intercepted, graph["inputs"])) else run

    def _continuation(self, index: int) -> Any:
        return self._shared("continuation", self._result["continuations"][index], self._compiled)

    def _step(self, index: int) -> Any:
        return self._shared("step", self._result["steps"][index], lambda function: function)

    def _shared(self, kind: str, piece: dict[str, Any], make: Callable[[types.FunctionType], Any]) -> Any:
        """One callable for each distinct code, so that a break reached twice shares its entries."""
        code = self._code(piece["code"])
        namespace = self._namespace(piece)
        key = (kind, *_fingerprint(code), id(namespace))
        known = self._family.functions.get(key)
        if known is not None:
            return known
        function = _shim.make_step(code, namespace)
        function.__name__ = piece["name"]
        made = self._family.functions[key] = make(function)
        return made

    def _namespace(self, piece: dict[str, Any]) -> dict[str, Any]:
        if not piece.get("globals"):
            return self._function.__globals__
        return self._table.object(piece["globals"])  # type: ignore[no-any-return]

    def _compiled(self, function: types.FunctionType) -> Any:
        from .miss import on_miss

        return _shim.CompiledFunction(function, new_record(self._family, function.__code__), on_miss, True)


# What makes the live object of each kind of constant. An installer holds none of these functions: it would be a cycle
# that keeps the program's objects alive.
_KINDS: dict[str, Callable[..., Any]] = {
    "graph": Installer._graph,
    "object": lambda installer, number: installer._table.object(number),
    "name": lambda _, name: names.resolve(name),
    "make": lambda _, parts: names.resolve(parts[0])(*parts[1:]),
    "continuation": Installer._continuation,
    "step": Installer._step,
    "helper": lambda _, name: _helper(name),
    "tuple": lambda installer, items: tuple(map(installer._constant, items)),
    "frozenset": lambda installer, items: frozenset(map(installer._constant, items)),
}

_FLAGS = 6  # place of the flags in a tensor's metadata; numbers have less


def _intercepted(graph_input: tuple[str, tuple[Any, ...]]) -> bool:
    """Whether an input's class defines ``__torch_function__``, or may."""
    _, metadata = graph_input
    return len(metadata) > _FLAGS and bool(metadata[_FLAGS] & (INTERCEPTED | WRAPPER))


def _within(mode: Callable[[], Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """A graph that runs in a mode of torch that ends with the call."""

    def within(*inputs: Any) -> Any:
        with mode():
            return run(*inputs)

    return within


def _without_autocast() -> Callable[[], Any]:
    """The mode in which torch makes no casts: a plan has those of the program among its operations."""
    import torch

    return torch._C._DisableAutocast


def _without_overrides(run: Callable[..., Any]) -> Callable[..., Any]:
    """A graph whose operations no ``__torch_function__`` sees: the capture already followed what that does."""
    import torch

    return _within(torch._C.DisableTorchFunctionSubclass, run)


def _in_inference_mode(run: Callable[..., Any]) -> Callable[..., Any]:
    """A graph that the program runs within ``torch.inference_mode``."""
    import torch

    return _within(functools.partial(torch._C._InferenceMode, True), run)


def _fingerprint(code: types.CodeType) -> tuple[bytes, tuple[int, ...]]:
    """Bytes of the code without its live objects, and the identities of those; the code keeps them alive."""
    live: list[int] = []
    return marshal.dumps(_without_objects(code, live), _NO_REFERENCES), tuple(live)


def _without_objects(value: Any, live: list[int]) -> Any:
    if type(value) is types.CodeType:
        constants = tuple(_without_objects(constant, live) for constant in value.co_consts)
        return value.replace(co_consts=constants)
    if type(value) in (tuple, frozenset):
        return type(value)(_without_objects(item, live) for item in value)
    if value is None or type(value) in (bool, int, float, complex, str, bytes, type(Ellipsis)):
        return value
    live.append(id(value))
    return f"object {len(live)}"


def _helper(name: str) -> Any:
    function = _helpers.TABLE.get(name)
    if function is None:
        raise HostFailure("protocol", f"the compiler asked for a helper {name!r} that does not exist")
    return function
