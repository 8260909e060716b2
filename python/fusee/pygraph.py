"""Graphs that run in Python: straight-line functions, and ``torch.fx`` modules for other backends.

A graph's node list is that of docs/contracts.md, section 5. Constants are references, which a ``value`` function of the
compile's object table turns into live objects.
"""

from __future__ import annotations

import keyword
import operator
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _gradients
from .host import names
from .tracebacks import showing_calls

if TYPE_CHECKING:
    import torch.fx

Graph = dict[str, Any]
Value = Callable[[Any], Any]
_FUNCTIONS = ("max", "min")
_OPERATORS = ("+", "-", "*", "//", "%")
_EXPRESSIONS = frozenset([*_FUNCTIONS, *_OPERATORS, "size", "stride"])
_CONTAINERS = frozenset(["tuple", "list", "dict", "slice"])
_DEEPEST = 20  # calls within one expression, far from what Python's parser and its stack take
_LITERALS = (type(None), bool, int, str, bytes)
_APPLY = "fusee._gradients.apply"
_ATTRIBUTES = (types.GetSetDescriptorType, property)


def tag(argument: Any) -> Any:
    """What an argument is: its first item, or None for a reference."""
    return argument[0] if isinstance(argument, tuple) and len(argument) > 1 else None


def is_node(argument: Any) -> bool:
    """Whether an argument is an output of a node."""
    return bool(tag(argument) == "n")


def is_input(argument: Any) -> bool:
    """Whether an argument is an input of the graph."""
    return bool(tag(argument) == "i")


def rebuild(argument: Any, leaf: Callable[[Any], Any]) -> Any:
    """The Python container an argument describes, with ``leaf`` applied to what is in it."""
    kind = tag(argument)
    if kind == "tuple":
        return tuple(rebuild(item, leaf) for item in argument[1])
    if kind == "list":
        return [rebuild(item, leaf) for item in argument[1]]
    if kind == "dict":
        return {key if type(key) is str else leaf(key): rebuild(item, leaf) for key, item in argument[1]}
    if kind == "slice":
        return slice(*(rebuild(item, leaf) for item in argument[1:]))
    return leaf(argument)


def is_expression(argument: Any) -> bool:
    """Whether an argument is an int that is computed from sizes and other ints."""
    return tag(argument) in _EXPRESSIONS


def leaves(argument: Any) -> Iterable[Any]:
    """An argument, or everything within it if it is a container."""
    if tag(argument) not in _CONTAINERS:
        return (argument,)
    found: list[Any] = []
    rebuild(argument, found.append)
    return found


def identifiers(wanted: list[str]) -> list[str]:
    """A distinct Python name for each wanted name, as close to it as can be."""
    taken: dict[str, int] = {}  # with the last number that was appended to each
    for name in wanted:
        base = name if name.isidentifier() else re.sub(r"\W", "_", name) or "value"
        base = f"_{base}" if base[0].isdigit() or keyword.iskeyword(base) else base
        unique, number = base, taken.get(base, 0)
        while unique in taken:
            number += 1
            unique = f"{base}_{number}"
        taken[base] = number
        taken[unique] = 0
    return list(taken)


class _Writer:
    """Writes one graph as the source of a Python function and collects the objects that it names."""

    def __init__(self, graph: Graph, value: Value) -> None:
        self._graph = graph
        self._value = value
        self._objects: dict[int, str] = {}
        self.namespace: dict[str, Any] = {}
        wanted = [name for name, _ in graph["inputs"]] + [node[0] for node in graph["nodes"]]
        chosen = identifiers(wanted)
        count = len(graph["inputs"])
        self._inputs, self._nodes = chosen[:count], chosen[count:]
        self._callees: dict[Any, tuple[str, bool]] = {}
        self._within: dict[int, str] = {}  # the nodes that are written within the next one, as its argument
        self._last = self._last_used()
        self._dropped: dict[int, list[int]] = {}  # the nodes whose values are not needed after each node
        for node, user in self._last.items():
            self._dropped.setdefault(user, []).append(node)

    def source(self) -> str:
        """``def graph(inputs): ...``, one line a node, dropping each value after its last use."""
        lines = [f"def graph({', '.join(self._inputs)}):"]
        index = 0
        for first, end in self._graph.get("checkpoints", ()):
            lines += [*self._operations(range(index, first)), *self._checkpoint(range(first, end))]
            index = end
        lines += self._operations(range(index, len(self._nodes)))
        outputs = "".join(self._text(output) + ", " for output in self._graph["outputs"])
        return "\n".join([*lines, f"    return ({outputs})", ""])

    def nodes_of(self, source: str) -> dict[int, int]:
        """The node whose operation each line of the source calls."""
        places = {name: index for index, name in enumerate(self._nodes)}
        starts = (line.strip().partition(" = ")[0] for line in source.splitlines())
        return {line: places[start] for line, start in enumerate(starts, 1) if start in places}

    def _operations(self, indices: range, own: bool = False) -> list[str]:
        """A line for each node, or for several calls one within the other; ``own``: what other nodes made is kept."""
        lines, depth = [], 0
        for index in indices:
            call = self._call(self._graph["nodes"][index])
            dropped = [other for other in self._dropped.get(index, ()) if not own or other in indices]
            dropped = [other for other in dropped if self._within.pop(other, None) is None]
            if not (own or dropped) and index + 1 < indices.stop and self._is_argument(index):
                depth += 1
                if depth == _DEEPEST:  # the next line takes the value out of a list, so that nothing else holds it
                    lines.append(f"    {self._nodes[index]} = [{call}]")
                    call, depth = f"{self._nodes[index]}.pop()", 0
                self._within[index] = call
                continue
            lines += [f"    {self._nodes[index]} = {call}", *self._dropping(dropped)]
            depth = 0
        return lines

    def _is_argument(self, index: int) -> bool:
        """Whether a node is read once, by the next one, which computes nothing else before it is called."""
        if self._last.get(index) != index + 1:
            return False
        _, innermost = self._graph.get("calls", ((), ()))
        if innermost and innermost[index] != innermost[index + 1]:  # a traceback tells calls apart by their lines
            return False
        found = 0
        for argument in _arguments(self._graph["nodes"][index + 1]):
            for leaf in leaves(argument):
                kind = tag(leaf)
                if kind in _EXPRESSIONS:
                    return False
                found += kind == "n" and leaf[1] == index
        return found == 1

    def _dropping(self, nodes: list[int]) -> list[str]:
        return [f"    del {', '.join(self._nodes[node] for node in nodes)}"] if nodes else []

    def _checkpoint(self, indices: range) -> list[str]:
        """A function of some nodes, and its call, which keeps nothing of what they make but the results."""
        name = f"checkpoint__{indices.start}"
        reads = dict.fromkeys(leaf for index in indices for leaf in self._read(index))
        outside = [read for read in reads if read not in {self._nodes[index] for index in indices}]
        results = "".join(
            f"{self._nodes[index]}, " for index in indices if self._last.get(index, indices.stop) >= indices.stop
        )
        body = [f"    {line}" for line in self._operations(indices, own=True)]
        call = f"{self._name(_gradients.checkpointed, 'checkpointed')}({', '.join([name, *outside])})"
        dropped = [node for index in indices for node in self._dropped.get(index, ()) if node not in indices]
        return [
            f"    def {name}({', '.join(outside)}):",
            *body,
            f"        return ({results})",
            f"    {results}= {call}" if results else f"    {call}",
            *self._dropping(dropped),
        ]

    def _read(self, index: int) -> Iterator[str]:
        """The names that a node reads."""
        for argument in _arguments(self._graph["nodes"][index]):
            for leaf in leaves(argument):
                yield from self._names(leaf)

    def _names(self, leaf: Any) -> Iterator[str]:
        if is_expression(leaf):
            operands = leaf[1:2] if leaf[0] in ("size", "stride") else leaf[1:]
            for operand in operands:
                yield from [self._inputs[operand]] if type(operand) is int else self._names(operand)
        elif is_input(leaf):
            yield self._inputs[leaf[1]]
        elif is_node(leaf):
            yield self._nodes[leaf[1]]

    def _last_used(self) -> dict[int, int]:
        """The node that is the last to read each node, where the value is no output."""
        last: dict[int, int] = {}
        for index, node in enumerate(self._graph["nodes"]):
            last[index] = index
            for argument in _arguments(node):
                for leaf in leaves(argument):
                    if tag(leaf) == "n":
                        last[leaf[1]] = index
        for output in self._graph["outputs"]:
            for leaf in leaves(output):
                if is_node(leaf):
                    last.pop(leaf[1], None)
        return last

    def _call(self, node: Any) -> str:
        _, target, args, kwargs, *_ = node
        callee, is_attribute = self._callees.get(target) or self._callee(target)
        written = [self._text(argument) for argument in args]
        if is_attribute:
            return f"{written[0]}{callee}"
        if kwargs:
            written += [f"{name}={self._text(argument)}" for name, argument in _named(kwargs).items()]
        if callee[0] == ".":
            return f"{written[0]}{callee}({', '.join(written[1:])})"
        return f"{callee}({', '.join(written)})"

    def _callee(self, target: Any) -> tuple[str, bool]:
        """What a target is written as, methods and attributes behind a dot, and whether it is an attribute."""
        function = self._value(target) if type(target) is int else names.resolve(target)
        method = _method(target)
        if method:
            found = f".{method}", type(function) in _ATTRIBUTES
        else:
            found = self._name(function, target if type(target) is str else "callee"), False
        self._callees[target] = found
        return found

    def _text(self, argument: Any) -> str:
        kind = tag(argument)
        if kind in ("tuple", "list"):
            inner = "".join(self._text(item) + ", " for item in argument[1])
            return f"({inner})" if kind == "tuple" else f"[{inner.removesuffix(', ')}]"
        if kind == "dict":
            pairs = (f"{self._key(key)}: {self._text(item)}" for key, item in argument[1])
            return "{" + ", ".join(pairs) + "}"
        if kind == "slice":
            return f"slice({', '.join(map(self._text, argument[1:]))})"
        return self._leaf(argument)

    def _key(self, key: Any) -> str:
        return repr(key) if type(key) is str else self._leaf(key)

    def _expression(self, argument: Any) -> str:
        kind, *operands = argument
        if kind in ("size", "stride"):
            return f"{self._inputs[operands[0]]}.{kind}({operands[1]})"
        left, right = map(self._leaf, operands)
        return f"{kind}({left}, {right})" if kind in _FUNCTIONS else f"({left} {kind} {right})"

    def _leaf(self, argument: Any) -> str:
        kind = tag(argument)
        if kind == "n":
            text: str = self._within.get(argument[1]) or self._nodes[argument[1]]
            return text if len(argument) == 2 else text + "".join(f"[{place}]" for place in argument[2:])
        if kind == "i":
            number: int = argument[1]
            return self._inputs[number]
        if kind in _EXPRESSIONS:
            return self._expression(argument)
        value = self._value(argument)
        return repr(value) if type(value) in _LITERALS else self._name(value, "constant")

    def _name(self, value: Any, wanted: str) -> str:
        if id(value) not in self._objects:
            base = re.sub(r"\W", "_", wanted)
            name = f"{base}__{len(self._objects)}"
            self._objects[id(value)] = name
            self.namespace[name] = value
        return self._objects[id(value)]


def _named(kwargs: Any) -> dict[str, Any]:
    return dict(kwargs) if kwargs else {}


def _arguments(node: Any) -> Sequence[Any]:
    """The arguments of a node, those by keyword last."""
    _, _, args, kwargs, *_ = node
    return (*args, *_named(kwargs).values()) if kwargs else args


def _method(target: Any) -> str:
    """Name of the Tensor method or attribute that a target is, else ""."""
    return str(target).removeprefix("Tensor.") if type(target) is str and target.startswith("Tensor.") else ""


def function_source(graph: Graph, value: Value) -> str:
    """The Python source that :func:`as_function` compiles."""
    return _Writer(graph, value).source()


def as_function(graph: Graph, value: Value) -> Callable[..., tuple[Any, ...]]:
    """A Python function of the graph's inputs that returns the tuple of its outputs."""
    writer = _Writer(graph, value)
    source = writer.source()
    exec(compile(source, f"<fusee graph {graph.get('name', '')}>", "exec"), writer.namespace)
    function: types.FunctionType = writer.namespace["graph"]
    calls, innermost = graph.get("calls", ((), ()))
    if not calls:
        return function
    return showing_calls(function, calls, {line: innermost[node] for line, node in writer.nodes_of(source).items()})


def as_module(graph: Graph, value: Value) -> torch.fx.GraphModule:
    """The graph as a ``torch.fx.GraphModule`` whose ``forward`` returns the tuple of outputs."""
    import torch.fx

    builder = _Builder(torch.fx.Graph(), graph, value)
    return torch.fx.GraphModule(builder.root, builder.build())


class _Builder:
    """Builds an fx graph from a node list."""

    def __init__(self, target: torch.fx.Graph, graph: Graph, value: Value) -> None:
        self.root: dict[str, Any] = {}
        self._fx = target
        self._graph = graph
        self._value = value
        self._nodes: list[torch.fx.Node] = []
        self._inputs: list[torch.fx.Node] = []

    def build(self) -> torch.fx.Graph:
        """Placeholders, one fx node for each node, and the output."""
        for name, _ in self._graph["inputs"]:
            self._inputs.append(self._fx.placeholder(identifiers([name])[0]))
        for name, target, args, kwargs, *_ in self._graph["nodes"]:
            named = {key: self._argument(item) for key, item in _named(kwargs).items()}
            self._nodes.append(self._node(name, target, tuple(map(self._argument, args)), named))
        self._fx.output(tuple(map(self._argument, self._graph["outputs"])))
        self._fx.lint()
        return self._fx

    def _node(self, name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.fx.Node:
        function = self._value(target) if type(target) is int else names.resolve(target)
        if target == _APPLY:  # fx writes a class among the arguments as text that is no Python
            function, args = _gradients.applying(args[0]), args[1:]
        method = _method(target)
        if method and type(function) in _ATTRIBUTES:
            return self._fx.create_node("call_function", getattr, (args[0], method), {}, name)
        if method:
            return self._fx.create_node("call_method", method, args, kwargs, name)
        return self._fx.create_node("call_function", function, args, kwargs, name)

    def _argument(self, argument: Any) -> Any:
        return rebuild(argument, self._leaf)

    def _expression(self, argument: Any) -> Any:
        kind, *operands = argument
        if kind in ("size", "stride"):
            return self._fx.call_method(kind, (self._inputs[operands[0]], operands[1]))
        function = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}
        return self._fx.call_function(
            function.get(kind, max if kind == "max" else min), tuple(map(self._leaf, operands))
        )

    def _leaf(self, argument: Any) -> Any:
        if is_expression(argument):
            return self._expression(argument)
        if is_input(argument):
            return self._inputs[argument[1]]
        if is_node(argument):
            return self._output(argument[1], argument[2:])
        value = self._value(argument)
        return self._attribute(value) if _is_tensor(value) else value

    def _output(self, index: int, places: tuple[int, ...]) -> Any:
        node = self._nodes[index]
        for place in places:
            node = self._fx.call_function(operator.getitem, (node, place))
        return node

    def _attribute(self, tensor: Any) -> Any:
        name = f"constant{len(self.root)}"
        self.root[name] = tensor
        return self._fx.get_attr(name)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)
