"""Measures what one call of the README's example costs, part by part, with an entry and a kernel made by hand.

No compiler process takes part: the numbers are those of the C extension alone. Each part is timed in short batches
that take turns, and the fastest batch of each counts, so that other load on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from fusee import _shim

Call = Callable[[torch.Tensor, torch.Tensor], Any]

KERNEL = """
#include <stdint.h>
void seed(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
    const float *x = p[0], *y = p[1];
    float *out = p[2];
    for (int64_t i = begin; i < end; i++) { float z = x[i] + y[i]; out[i] = (z > 0 ? z : 0) * 2; }
}
"""

FLOAT32 = 6
CPU = 0


def example(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The example: three operators that fuse into one kernel."""
    z = x + y
    return torch.relu(z) * 2


def nothing(x: torch.Tensor, y: torch.Tensor) -> None:
    """The least a Python function can cost."""


def object_of(source: str) -> bytes:
    """The relocatable object that the C compiler makes of this source."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise SystemExit("a C compiler is needed")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.c").write_text(source)
        subprocess.run([compiler, "-O3", "-fPIC", "-c", "kernel.c"], cwd=folder, check=True)
        return (Path(folder) / "kernel.o").read_bytes()


def plan() -> _shim.LaunchPlan:
    """Allocates four floats and runs the kernel on them."""
    steps = [("alloc", 2, FLOAT32, CPU, -1, [4], [1]), ("kernel", 0, [0, 1, 2], [], 4)]
    kernels = [("cpu", "seed", object_of(KERNEL))]
    return _shim.LaunchPlan({"inputs": 2, "slots": 3, "outputs": [2], "steps": steps, "kernels": kernels})


def tensor_guard(index: int, tensor: torch.Tensor) -> tuple[Any, ...]:
    """Type, dispatch keys, dtype, sizes and strides of one argument."""
    described = ("float32", "cpu", tuple(tensor.shape), tensor.stride(), 0, False, 0, _shim.key_set(tensor))
    return (("arg", index), (("tensor", torch.Tensor, described),), -1, ())


def relu_guard() -> tuple[Any, ...]:
    """That the globals still hold torch, and torch still its relu."""
    return (("global", "torch"), (("is", torch),), -1, ((("attr", "relu"), (("is", torch.relu),), -1, ()),))


def rewritten(run: _shim.LaunchPlan) -> CodeType:
    """Code that calls the plan and returns its only output."""
    module = compile("def example(x, y):\n (result,) = 'plan'(x, y)\n return result", "<rewritten>", "exec")
    (code,) = (constant for constant in module.co_consts if isinstance(constant, CodeType))
    return code.replace(co_consts=tuple(run if constant == "plan" else constant for constant in code.co_consts))


def compiled(guards: tuple[Any, ...], code: CodeType) -> _shim.CompiledFunction:
    """The example under one entry with these guards and this code."""
    entry = _shim.Entry(_shim.GuardProgram(guards, 0), code)
    return _shim.CompiledFunction(example, _shim.CodeRecord(), lambda *_: entry)  # type: ignore[arg-type]


def plain() -> _shim.CompiledFunction:
    """A compiled function that always runs its original, which is an empty one."""
    record = _shim.CodeRecord()
    record.state = "plain"
    return _shim.CompiledFunction(nothing, record, lambda *_: None)  # type: ignore[arg-type]


def parts(x: torch.Tensor, y: torch.Tensor) -> dict[str, Call]:
    """What is timed, from nothing to the whole call."""
    empty = nothing.__code__
    run = plan()
    tensors = (tensor_guard(0, x), tensor_guard(1, y))
    guards = (*tensors, relu_guard())
    return {
        "empty Python function": nothing,
        "the same, not compiled": plain(),
        "dispatch, no guards": compiled((), empty),
        "dispatch, two tensors": compiled(tensors, empty),
        "dispatch, all guards": compiled(guards, empty),
        "launch plan alone": run,
        "whole call": compiled(guards, rewritten(run)),
        "eager": example,
    }


def batch(call: Call, x: torch.Tensor, y: torch.Tensor, count: int) -> float:
    """Nanoseconds per call over one batch."""
    started = time.perf_counter_ns()
    for _ in range(count):
        call(x, y)
    return (time.perf_counter_ns() - started) / count


def measure(calls: dict[str, Call], rounds: int, count: int) -> dict[str, float]:
    """The fastest batch of each call, in nanoseconds."""
    x, y = torch.tensor([1.0, -2.0, 3.0, -4.0]), torch.full((4,), 0.5)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], batch(call, x, y, count))
    return best


def main() -> None:
    """Prints a table of nanoseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--calls", type=int, default=300, help="calls in a batch")
    parser.add_argument("--portable", action="store_true", help="read tensors through Python calls")
    arguments = parser.parse_args()
    found = _shim.calibrate(torch, portable=arguments.portable)
    torch.set_num_threads(1)
    x, y = torch.tensor([1.0, -2.0, 3.0, -4.0]), torch.full((4,), 0.5)
    calls = parts(x, y)
    torch.testing.assert_close(calls["whole call"](x, y), example(x, y))
    print(f"torch {found['torch']}, {found['mode']} path")
    for name, nanoseconds in measure(calls, arguments.rounds, arguments.calls).items():
        print(f"{name:24s} {nanoseconds:8.0f} ns")


if __name__ == "__main__":
    main()
