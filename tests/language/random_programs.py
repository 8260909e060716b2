"""Runs random programs compiled and as they are: ``random_programs.py --count 20000 --seed 1``.

Prints each program that differs, made smaller, and ends with 1 if there is one. Program number n of a seed is always
the same, so ``--first n --count 1`` runs one again. Programs run in child processes, so that a crash is one more
difference.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from checks import check
from generate import Writer
from grammars import GRAMMARS
from outcome import run
from shrink import shrink
from variants import Program, parsed

SECONDS = 30  # of this process's own time
PATIENCE = 300  # seconds on the clock
CHUNK = 250


class Late(BaseException):
    """A program took too long."""


def text_of(seed: int, number: int, names: Sequence[str]) -> str:
    """The text of a program."""
    source = random.Random(f"{seed} {number}")
    return Writer(source.choice, GRAMMARS[names[number % len(names)]]).program()


def program_of(text: str) -> Program | None:
    """The program of a text; None where some combination is no Python, or has no arguments."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return next(parsed(text, "<random program>"))
    except Exception:
        return None


def steady(program: Program) -> bool:
    """Whether plain runs give the same every time, so that there is something to compare with, and soon."""
    outcomes = []
    for _ in range(2):
        space = program.namespace()
        outcomes.append(
            [run(space[program.name], given, space, program.filename)[:3] for given in program.arguments(space)]
        )
    return bool(outcomes[0] == outcomes[1])


def timed(function: Any, *arguments: Any) -> Any:
    """Call with a limit to the time."""

    def late(*_: Any) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGVTALRM, late)
    signal.alarm(PATIENCE)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        return function(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.alarm(0)


def failure(text: str) -> str | None:
    """How a program differs, or None; what says nothing of the compiler is ``"skipped"``."""
    program = program_of(text)
    try:
        if program is None or not timed(steady, program):
            return "skipped"
    except Late:
        return "skipped"
    except Exception:
        return "skipped"
    try:
        timed(check, program)
    except Late:
        return "took too long"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def fails(text: str) -> bool:
    """Whether a program differs."""
    return failure(text) not in (None, "skipped")


def work(options: argparse.Namespace) -> None:
    """Run programs, one line for each; what a child process does."""
    warnings.simplefilter("ignore")
    for number in range(options.first, options.first + options.count):
        text = text_of(options.seed, number, options.grammar)
        print("at", number, flush=True)
        found = failure(text)
        if found in (None, "skipped"):
            print(found or "same", flush=True)
            continue
        small = shrink(text, fails) if options.shrink else text
        report = failure(small)
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
    if child.returncode:
        seen["crashed"] += 1
        print(f"{at}: the process ended with {child.returncode}", flush=True)
    return at + 1


def main() -> int:
    """Run as many programs as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--grammar", nargs="*", default=list(GRAMMARS), choices=list(GRAMMARS))
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
