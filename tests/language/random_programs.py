"""Runs random programs compiled and as they are: ``random_programs.py --count 20000 --seed 1``.

Prints each program that differs, made smaller, and ends with 1 if there is one. Program number n of a seed is always
the same, so ``--first n --count 1`` runs one again. Programs run in child processes, so that a crash is one more
difference.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import random
import re
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from generate import Writer
from generated import Generated, differs, read
from grammars import GRAMMARS, MIX
from shrink import shrink

SECONDS = 30  # of this process's own time
PATIENCE = 300  # seconds on the clock
AGAIN = 0.05  # seconds until it is told again that time is up, as programs may swallow what is raised
STUBBORN = 20  # times that it is told, after which the process ends
PLAIN_HANGS, COMPILED_HANGS = 77, 78  # how it ends then
CHUNK = 1000
DEEPER = 20  # frames


class Late(BaseException):
    """A program took too long."""


def text_of(seed: int, number: int, names: Sequence[str]) -> str:
    """The text of a program."""
    source = random.Random(f"{seed} {number}")
    return Writer(source.choice, GRAMMARS[names[number % len(names)]]).program()


def timed(function: Callable[[], list[Any]], seconds: float, status: int) -> list[Any]:
    """Call with a limit to the time; ``status`` is how the process ends where the program swallows that it is up."""
    told, streams = 0, (sys.stdout, sys.stderr)

    def late(*_: Any) -> None:
        nonlocal told
        told += 1
        if told > STUBBORN:
            os._exit(status)
        raise Late

    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGVTALRM, late)
    signal.alarm(PATIENCE)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN)
    try:
        return function()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.alarm(0)
        sys.stdout, sys.stderr = streams  # they stay redirected where time was up as a redirection ended


def failure(text: str) -> str | None:
    """How a program differs, or None; what says nothing of the compiler is ``"skipped"``."""
    try:
        program = read(text)
        eager = timed(program.plain, SECONDS / 10, PLAIN_HANGS)
    except (Late, Exception):
        return "skipped"
    try:
        captured = timed(program.compiled, SECONDS, COMPILED_HANGS)
    except Late:
        return "took too long"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if (found := differs(program, eager, captured)) is None:
        return None
    # What depends on how many frames are left until RecursionError says nothing: compiled code has frames of its own.
    steady = [call[:3] for call in deeper(program.plain, DEEPER)] == [call[:3] for call in eager]
    chance = any(by_memory(program, eager, captured, memory) for memory in ("collected", "held"))
    return found if steady and not chance else "skipped"


def by_memory(program: Generated, eager: list[Any], captured: list[Any], memory: str) -> bool:
    """Whether runs depend on what becomes of memory, and plain and compiled ones are the same where that is settled.

    What lies in a cycle, as through the traceback of an exception that its frame holds, goes when Python looks for
    garbage: that the plain run shows. The hash of an object may be that of one which was at its address before: either
    may meet such a one.
    """
    try:
        plain = timed(lambda: program.plain(memory), SECONDS, PLAIN_HANGS)
        compiled = timed(lambda: program.compiled(memory), SECONDS, COMPILED_HANGS)
    except (Late, Exception):
        return False
    depends = differs(program, eager, plain) is not None
    by_address = memory == "held" and differs(program, captured, compiled) is not None
    return (depends or by_address) and differs(program, plain, compiled) is None


def deeper(function: Callable[[], list[Any]], frames: int) -> list[Any]:
    """Call with more frames on the stack."""
    return deeper(function, frames - 1) if frames else function()


def kind(found: str | None) -> str:
    """What a difference is about, whichever call shows it first."""
    return re.sub(r"call \d+", "call", found or "")[:60]


def smaller(text: str, found: str) -> str:
    """A small program that differs in the same way."""
    return shrink(text, lambda other: kind(failure(other)) == kind(found))


def work(options: argparse.Namespace) -> None:
    """Run programs, one line for each; what a child process does."""
    warnings.simplefilter("ignore")
    importlib.import_module("torch._dynamo")  # which time that is up in the middle would leave in pieces
    gc.collect()
    gc.freeze()  # collections need not look at what was imported
    for number in range(options.first, options.first + options.count):
        text = text_of(options.seed, number, options.grammar)
        print("at", number, flush=True)
        found = failure(text)
        if found in (None, "skipped"):
            print(found or "same", flush=True)
            continue
        small = smaller(text, found) if found and options.shrink else text
        report = failure(small) or f"differs only at times: {found}" if options.shrink else found
        kept = options.keep / f"{options.seed}_{number}.py"
        kept.write_text(f"# {number}: {report}\n".replace("\n", " ") + "\n" + small)
        print("differs", f"{number}: {report}"[:600].replace("\n", " "), flush=True)


def follow(options: argparse.Namespace, first: int, count: int, seen: Counter[str]) -> int:
    """Run a child over some programs; the number of the first that it did not reach."""
    command = [sys.executable, "-X", "faulthandler", __file__, "--child", "--seed", str(options.seed)]
    command += ["--first", str(first), "--count", str(count), "--keep", str(options.keep)]
    command += ["--grammar", *options.grammar, *([] if options.shrink else ["--no-shrink"])]
    at = first
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "at":
                at = int(rest)
                continue
            seen[word] += 1
            if word == "differs":
                print(rest, flush=True)
    if child.returncode == PLAIN_HANGS:
        seen["skipped"] += 1
    elif child.returncode:
        seen["crashed"] += 1
        print(f"{at}: the process ended with {child.returncode}", flush=True)
    return at + 1


def main() -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--grammar", nargs="*", default=list(MIX), choices=list(GRAMMARS))
    parser.add_argument("--keep", type=Path, default=Path("/tmp"), help="folder for programs that differ")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.keep.mkdir(parents=True, exist_ok=True)
    if options.child:
        work(options)
        return 0
    seen: Counter[str] = Counter()
    start, at = time.monotonic(), options.first
    while at < options.first + options.count:
        at = follow(options, at, min(CHUNK, options.first + options.count - at), seen)
    print(f"{dict(seen)} in {time.monotonic() - start:.0f} s")
    return 1 if seen["differs"] + seen["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
