"""Times capture: what the interpreter of bytecode takes, its questions to the host included, the lowering not.

Each run is a first call in a process of its own with an empty cache; the compiler's report has the time of its capture.
The fastest of several runs counts, since other load on the machine only adds. Rows are captured twice: with the graph
left to Python, for the time of the capture alone, and as usual, for that of the whole first call.

usage: capture.py [--runs N] [--realtime] [ROW...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from workloads import LanguageModel

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def defined(source: str) -> Callable[..., Any]:
    """The function ``f`` of a source text."""
    names: dict[str, Any] = {"torch": torch}
    exec(compile(source, "<bench>", "exec"), names)
    function: Callable[..., Any] = names["f"]
    return function


def straight(operations: int) -> Program:
    """So many operations on tensors, one line each."""
    lines = ["x = x + y", "x = torch.relu(x)", "x = x * 0.5", "x = x.neg()"]
    body = "".join(f"    {lines[i % len(lines)]}\n" for i in range(operations))
    return defined(f"def f(x, y):\n{body}    return x\n"), (torch.ones(4), torch.ones(4))


def looped(operations: int) -> Program:
    """The same operations in a loop."""
    body = "        x = (torch.relu(x + y) * 0.5).neg()\n"
    source = f"def f(x, y):\n    for _ in range({operations // 4}):\n{body}    return x\n"
    return defined(source), (torch.ones(4), torch.ones(4))


INSTRUCTIONS_OF_A_ROUND = 9  # of the loop below


def plain(instructions: int) -> Program:
    """So many instructions of a loop over Python's numbers, and one operation on a tensor."""
    body = "        total = total + i * 3\n"
    rounds = instructions // INSTRUCTIONS_OF_A_ROUND
    return defined(f"def f(x):\n    total = 0\n    for i in range({rounds}):\n{body}    return x * total\n"), (
        torch.ones(4),
    )


def branched(branches: int) -> Program:
    """So many branches on Python's numbers, every second one taken, with an operation in each."""
    body = "".join(f"    if n > {i % 2}:\n        x = x + {i}\n" for i in range(branches))
    return defined(f"def f(x, n):\n{body}    return x\n"), (torch.ones(4), 1)


def sequential(layers: int) -> Program:
    """So many layers in a row, with two parameters each."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(layers)])
    return torch.no_grad()(model), (torch.ones(2, 4),)


def language_model(layers: int) -> Program:
    """A GPT; its matrices are small, since capture does the same for any size."""
    model = LanguageModel(layers, width=96, heads=12, words=1000, longest=64).eval()
    return torch.no_grad()(model), (torch.randint(0, 1000, (2, 64)),)


@dataclass(frozen=True)
class Row:
    """A program, and how many of what it is made of."""

    build: Callable[[int], Program]
    size: int
    unit: str


ROWS = {
    "language_model": Row(language_model, 12, "layer"),
    "straight_100": Row(straight, 100, "operation"),
    "straight_1000": Row(straight, 1_000, "operation"),
    "straight_3000": Row(straight, 3_000, "operation"),
    "straight_10000": Row(straight, 10_000, "operation"),
    "looped_10000": Row(looped, 10_000, "operation"),
    "plain_100000": Row(plain, 100_000, "instruction"),
    "branched_2000": Row(branched, 2_000, "branch"),
    "sequential_50": Row(sequential, 50, "layer"),
    "sequential_500": Row(sequential, 500, "layer"),
    "sequential_5000": Row(sequential, 5_000, "layer"),
}


def measure(row: Row, backend: str, realtime: bool) -> dict[str, float]:
    """Seconds of the capture and of the whole first call in this process."""
    import fusee

    function, arguments = row.build(row.size)
    if realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    fusee.compile(lambda x: x + 1, backend=backend)(torch.ones(1))  # the compiler has started
    start = time.perf_counter()
    explained = fusee.explain(function, backend=backend, fullgraph=True)(*arguments)
    first = time.perf_counter() - start
    if explained.graph_count != 1 or explained.graph_break_count:
        raise SystemExit(f"{explained.graph_count} graphs, not one")
    return {"capture": explained.times["capture"] / 1e6, "first": first}


def fresh_process(name: str, backend: str, options: list[str]) -> dict[str, float]:
    """The numbers of a new process with an empty cache."""
    with tempfile.TemporaryDirectory() as caches:
        command = [sys.executable, __file__, "--measure", backend, *options, name]
        environment = dict(os.environ, FUSEE_CACHE_DIR=caches)
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def best(name: str, backend: str, runs: int, options: list[str]) -> dict[str, float]:
    """The least of each number."""
    found = [fresh_process(name, backend, options) for _ in range(runs)]
    return {number: min(run[number] for run in found) for number in found[0]}


def main() -> None:
    """Prints a row of a table for each program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--runs", type=int, default=5, help="processes for each number")
    parser.add_argument("--realtime", action="store_true", help="measure ahead of all other processes (needs root)")
    parser.add_argument("--measure", metavar="BACKEND", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(ROWS[chosen.rows[0]], chosen.measure, chosen.realtime)))
        return
    options = ["--realtime"] if chosen.realtime else []
    print("| program | capture | for each | first call, graph in Python | first call |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in chosen.rows or ROWS:
        row = ROWS[name]
        alone, whole = (best(name, backend, chosen.runs, options) for backend in ("eager", "fusee"))
        each = f"{alone['capture'] / row.size * 1e6:.1f} us per {row.unit}"
        times = " | ".join(f"{seconds * 1e3:.0f} ms" for seconds in (alone["first"], whole["first"]))
        print(f"| {name} | {alone['capture'] * 1e3:.0f} ms | {each} | {times} |", flush=True)


if __name__ == "__main__":
    main()
