"""A compiler for tests of the host: speaks the protocol of docs/contracts.md and does what its scenario says.

Run as ``fake_compiler.py SCENARIO serve --fd N``. Scenarios that capture build the result by hand.
"""

from __future__ import annotations

import inspect
import marshal
import os
import signal
import socket
import struct
import sys
import time
import types
from collections.abc import Callable
from typing import Any

PLAIN_KINDS = (type(None), bool, int, float, str, bytes)


class Peer:
    """The host at the other end."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self.questions = 0

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                sys.exit(0)
            data += part
        return data

    def receive(self) -> Any:
        (length,) = struct.unpack("<I", self.read(4))
        return marshal.loads(self.read(length))

    def send(self, *message: Any) -> None:
        body = marshal.dumps(message, 4)
        self.socket.sendall(struct.pack("<I", len(body)) + body)

    def ask(self, question: str, *arguments: Any) -> Any:
        self.questions += 1
        self.send("ask", question, *arguments)
        reply = self.receive()
        assert reply[0] == "answer", reply
        return reply[1]


def description(request: Any, number: int) -> Any:
    return next(item for item in request["descriptions"] if item[0] == number)


def code_of(source: str, replaced: dict[str, Any]) -> types.CodeType:
    """The code of the one function in ``source``, with string constants replaced by placeholders."""
    module = compile(source, "<fake>", "exec")
    code = next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))
    return code.replace(co_consts=tuple(replaced.get(c, c) if isinstance(c, str) else c for c in code.co_consts))


def tensor_guards(request: Any) -> tuple[Any, ...]:
    """One guard for each parameter: a tensor check or equality with a constant."""
    return tuple(guard(request, index, value) for index, value in enumerate(request["parameters"]))


def guard(request: Any, index: int, value: Any) -> Any:
    if type(value) is tuple:
        check: Any = ("equals", value[0])
    else:
        _, kind, type_id, payload = description(request, value)
        check = ("tensor", ("object", type_id), payload[:7]) if kind == "tensor" else ("type", ("object", type_id))
    return ("arg", index), (check,), -1, ()


def report(request: Any, **more: Any) -> dict[str, Any]:
    code = description(request, request["function"])[3]["code"]
    place = {"file": code.co_filename, "line": code.co_firstlineno, "end_line": 0, "column": -1, "end_column": -1}
    guards = [{"text": f"guard on parameter {i}", "reason": "test", "source": "", **place} for i in range(9)]
    return {
        "format": 1,
        "function": {"name": code.co_qualname, "file": code.co_filename, "line": code.co_firstlineno},
        "action": "entry",
        "reason": None,
        "graphs": [],
        "breaks": [],
        "guards": guards,
        "kernels": [],
        "times": {},
        **more,
    }


def result(request: Any, code: types.CodeType, **more: Any) -> dict[str, Any]:
    return {
        "action": "entry",
        "code": code,
        "captures": 0,
        "guards": tensor_guards(request),
        "graphs": [],
        "continuations": [],
        "steps": [],
        "report": report(request),
        **more,
    }


def same(peer: Peer, request: Any) -> None:
    """The original code, its parameters all positional, under guards on them."""
    code = description(request, request["function"])[3]["code"]
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_argcount=len(request["parameters"]), co_kwonlyargcount=0, co_flags=flags)
    peer.send("done", result(request, code))


def seed_graph(request: Any) -> dict[str, Any]:
    metadata = [description(request, value)[3][:7] for value in request["parameters"]]
    nodes = [
        ("z", "operator.add", [("i", 0), ("i", 1)], {}, [metadata[0]]),
        ("relu", "torch.relu", [("n", 0)], {}, [metadata[0]]),
        ("mul", "Tensor.mul", [("n", 1), (2,)], {}, [metadata[0]]),
    ]
    inputs = list(zip(("x", "y"), metadata, strict=True))
    return {
        "name": "graph0",
        "inputs": inputs,
        "nodes": nodes,
        "outputs": [("n", 2)],
        "runs": "python",
        "plan": None,
        "mutates": False,
        "text": "seed",
    }


def seed(peer: Peer, request: Any) -> None:
    """``relu(x + y) * 2`` as a graph that runs in Python."""
    code = code_of("def T(x, y):\n    return 'graph'(x, y)[0]\n", {"graph": ("$fusee", "graph", 0)})
    text = {"name": "graph0", "ops": 3, "text": "seed", "nodes": [], "outputs": []}
    peer.send("done", result(request, code, graphs=[seed_graph(request)], report=report(request, graphs=[text])))


def continued(peer: Peer, request: Any) -> None:
    """A break: the prefix calls a continuation, which runs as its own code."""
    code = description(request, request["function"])[3]["code"]
    if code.co_name == "resumed":
        return same(peer, request)
    rest = code_of("def resumed(z):\n    return z * 2\n", {})
    first = code_of("def T(x, y):\n    return 'rest'(x + y)\n", {"rest": ("$fusee", "continuation", 0)})
    broke = {
        "id": "print",
        "message": "print was called",
        "hint": "do not",
        "file": code.co_filename,
        "line": code.co_firstlineno,
        "end_line": code.co_firstlineno,
        "column": 4,
        "end_column": 8,
        "source": "    print(z)",
    }
    peer.send(
        "done",
        result(
            request, first, continuations=[{"code": rest, "name": "resumed"}], report=report(request, breaks=[broke])
        ),
    )


def plain(peer: Peer, request: Any) -> None:
    peer.send("done", {"action": "plain", "report": report(request, action="plain")})


def failed(peer: Peer, request: Any) -> None:
    peer.send("failed", {"message": "it cannot be done", "hint": "do something else", "details": ""})


def questions(peer: Peer, request: Any) -> None:
    """Asks one question of each kind and then the ordinary result."""
    function = request["function"]
    peer.ask("describe", [function])
    peer.ask("evaluate", ("name", "math.sqrt"), [(4.0,)], [])
    peer.ask("source_line", __file__, 1)
    same(peer, request)


def warned(peer: Peer, request: Any) -> None:
    """A result that comes with a warning."""
    code = description(request, request["function"])[3]["code"]
    peer.send("done", result(request, code, warnings=["the cache folder cannot be written"]))


def crash(peer: Peer, request: Any) -> None:
    print("panic: something is wrong", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def crash_after_question(peer: Peer, request: Any) -> None:
    peer.send("ask", "describe", [request["function"]])
    crash(peer, request)


def crash_in_message(peer: Peer, request: Any) -> None:
    peer.socket.sendall(struct.pack("<I", 1000) + b"half")
    crash(peer, request)


def garbage(peer: Peer, request: Any) -> None:
    peer.socket.sendall(struct.pack("<I", 5) + b"\xff\xfe\x00zz")


def huge(peer: Peer, request: Any) -> None:
    peer.socket.sendall(struct.pack("<I", 0xFFFFFFFF))


def wrong_message(peer: Peer, request: Any) -> None:
    peer.send("surprise", 1)


def nonsense_question(peer: Peer, request: Any) -> None:
    peer.send("ask", "describe", [123456])
    peer.receive()
    peer.send("failed", {"message": "the host could not answer", "hint": "", "details": ""})


def bad_code(peer: Peer, request: Any) -> None:
    peer.send("done", result(request, "not code"))  # type: ignore[arg-type]


def bad_graph(peer: Peer, request: Any) -> None:
    code = code_of("def T(x, y):\n    return 'graph'(x, y)[0]\n", {"graph": ("$fusee", "graph", 7)})
    peer.send("done", result(request, code))


def bad_guard(peer: Peer, request: Any) -> None:
    """A guard that does not hold for the very arguments it was made from."""
    code = description(request, request["function"])[3]["code"]
    peer.send("done", result(request, code, guards=((("arg", 0), (("equals", "nobody"),), -1, ()),)))


def hang(peer: Peer, request: Any) -> None:
    time.sleep(600)


def slow(peer: Peer, request: Any) -> None:
    time.sleep(0.5)
    same(peer, request)


def plan_argument(argument: Any, slots: dict[Any, int]) -> Any:
    """An argument of a node as an argument of an aten step; enough for the operators of the tests."""
    if argument in slots:
        return "t", slots[argument]
    (value,) = argument
    return {type(None): "none", bool: "bool", int: "int", float: "float"}[type(value)], value


def lower(peer: Peer, request: Any) -> None:
    """Every node as one call of its operator."""
    (graph,) = request["graphs"]
    slots = {("i", index): index for index in range(len(graph["inputs"]))}
    steps = []
    for index, (_, target, args, *_) in enumerate(graph["nodes"]):
        _, name, overload = target.split(".")
        written = [plan_argument(argument, slots) for argument in args]
        slots[("n", index)] = len(slots)
        steps.append(("aten", name, overload, written, [slots["n", index]]))
    outputs = [slots[output] for output in graph["outputs"]]
    plan = {"inputs": len(graph["inputs"]), "slots": len(slots), "outputs": outputs, "steps": steps, "kernels": []}
    peer.send("done", {"graphs": [{**graph, "runs": "plan", "plan": plan}], "report": {}})


SCENARIOS: dict[str, Callable[[Peer, Any], None]] = {
    function.__name__: function
    for function in (
        same,
        seed,
        continued,
        plain,
        failed,
        questions,
        warned,
        crash,
        crash_after_question,
        crash_in_message,
        garbage,
        huge,
        wrong_message,
        nonsense_question,
        bad_code,
        bad_graph,
        bad_guard,
        hang,
        slow,
    )
}


def main() -> None:
    scenario, descriptor = sys.argv[1], int(sys.argv[sys.argv.index("--fd") + 1])
    if scenario == "dead":
        sys.exit(3)
    peer = Peer(descriptor)
    assert peer.receive()[0] == "hello"
    if scenario == "dumb":
        time.sleep(600)
    peer.send("ready", {"version": "fake", "protocol": 99 if scenario == "other_protocol" else 1})
    while True:
        kind, request = peer.receive()
        (lower if kind == "lower" else SCENARIOS[scenario])(peer, request)


if __name__ == "__main__":
    main()
