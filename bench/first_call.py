"""Times the first call of the smallest example in fresh processes, with empty caches and then with full ones.

The clock of a process runs from ``fusee.compile`` until the first call has returned: PyTorch and fusee are imported
before it, the compiler is started within it. Python keeps the package's bytecode, as it does for an installed one.
Prints the least and the median of the wall clock, and the processor time of this process and of the compiler, which
other load on the machine changes less. Times are in milliseconds.

usage: first_call.py [--runs N] [--device cuda] [--realtime]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

NUMBERS = ("wall", "host", "compiler")


def processor_time(who: int) -> float:
    """Seconds that this process (RUSAGE_SELF) or its ended children (RUSAGE_CHILDREN) computed."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(device: str, realtime: bool) -> dict[str, float]:
    """The numbers of this process, in seconds."""
    import torch

    import fusee

    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x + y
        return torch.relu(z) * 2

    x, y = torch.tensor([1.0, -2.0, 3.0, -4.0], device=device), torch.full((4,), 0.5, device=device)
    expected = f(x, y).cpu()  # the device is in use before the clock starts
    if realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    others = processor_time(resource.RUSAGE_CHILDREN)
    before, start = processor_time(resource.RUSAGE_SELF), time.perf_counter()
    result = fusee.compile(f)(x, y)
    wall, host = time.perf_counter() - start, processor_time(resource.RUSAGE_SELF) - before
    if not torch.equal(result.cpu(), expected) or fusee.stats()["graphs"] != 1:
        raise SystemExit("the example was not compiled")
    end_compiler()
    return {"wall": wall, "host": host, "compiler": processor_time(resource.RUSAGE_CHILDREN) - others}


def end_compiler() -> None:
    """Closes the connection and waits for the compiler, whose processor time the kernel then knows."""
    from fusee.host.connection import CONNECTION

    CONNECTION.leave()
    with contextlib.suppress(ChildProcessError):  # a call that the cache answers needs no compiler
        os.waitpid(-1, 0)


def fresh_process(options: list[str], caches: str, bytecode: str) -> dict[str, float]:
    """The numbers of a new process that keeps compiled kernels in one folder and Python's bytecode in another."""
    environment = dict(os.environ, FUSEE_CACHE_DIR=caches, PYTHONPYCACHEPREFIX=bytecode)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, __file__, "--measure", *options],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def row(title: str, runs: list[dict[str, float]]) -> str:
    """Least and median of each number, in milliseconds."""
    columns = [[run[name] * 1e3 for run in runs] for name in NUMBERS]
    return " | ".join([title.ljust(6), *(f"{min(times):6.1f} {statistics.median(times):6.1f}" for times in columns)])


def main() -> None:
    """Runs pairs of processes: one with an empty cache, one with what the first left there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="pairs of processes")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="measure as on an idle machine, ahead of all other processes (needs root)",
    )
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.device, chosen.realtime)))
        return
    cold, warm, options = [], [], sys.argv[1:]
    with tempfile.TemporaryDirectory() as bytecode:
        fresh_process(options, bytecode, bytecode)
        for _ in range(chosen.runs):
            with tempfile.TemporaryDirectory() as caches:
                cold.append(fresh_process(options, caches, bytecode))
                warm.append(fresh_process(options, caches, bytecode))
    print(" | ".join(["ms    ", *(f"{name}: least, median" for name in NUMBERS)]))
    print(row("cold", cold))
    print(row("warm", warm))


if __name__ == "__main__":
    main()
