"""Runs CPython's own tests of the language without capture and with every Python function captured, and compares.

Each module of the ``test`` package runs in a process of its own, twice: with ``FUSEE_CAPTURE_ALL=0`` and with ``=1``.
What each test came to is written down as it ends, so that a crash or a timeout shows where it happened.

usage: python_tests.py [MODULE ...] [--test ID ...] [--timeout SECONDS] [--show]
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODULES = (
    "test_generators test_exceptions test_descr test_dict test_functools test_contextlib test_dataclasses test_enum "
    "test_itertools test_collections test_re test_json test_with test_scope test_traceback test_gc test_weakref "
    "test_sys_settrace"
).split()


class Results(unittest.TestResult):
    """Writes one line of JSON when a test starts and one when it has ended."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115  # stays open as long as the process lives
        self._outcome, self._text, self._began = "passed", "", 0.0

    def _say(self, **line: Any) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def startTest(self, test: unittest.TestCase) -> None:
        self._outcome, self._text, self._began = "passed", "", time.perf_counter()
        self._say(starts=test.id())
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        seconds = round(time.perf_counter() - self._began, 2)
        self._say(test=test.id(), outcome=self._outcome, seconds=seconds, text=self._text[-6000:])

    def _note(self, outcome: str, error: Any, test: unittest.TestCase) -> None:
        self._outcome = outcome
        self._text += self._exc_info_to_string(error, test)  # type: ignore[attr-defined]

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._note("error", err, test)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._note("failed", err, test)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self._note("failed" if issubclass(err[0], test.failureException) else "error", err, subtest)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._outcome = "skipped"

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._outcome = "expected failure"


def run_here(module: str, path: str, tests: list[str]) -> None:
    """Runs a module's tests in this process; ``tests`` are ids, all of them where there are none."""
    import faulthandler

    import fusee  # noqa: F401  # captures everything where the environment asks for it

    faulthandler.enable()
    sys.argv = [module]
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(tests) if tests else loader.loadTestsFromName(f"test.{module}")
    suite.run(Results(path))


@dataclass
class Run:
    """What one process did: the outcome and the text of each test, and how the process ended."""

    outcomes: dict[str, str]
    texts: dict[str, str]
    seconds: dict[str, float]
    ended: str
    took: float

    def counts(self) -> str:
        """Such as ``80 passed, 2 failed``."""
        counts = collections.Counter(self.outcomes.values())
        text = ", ".join(f"{counts[outcome]} {outcome}" for outcome in sorted(counts, key=lambda o: (o != "passed", o)))
        return ", ".join(part for part in (text, self.ended) if part)


def run(module: str, everything: bool, tests: list[str], timeout: float) -> Run:
    """Runs the tests of a module in a process of their own."""
    environment = {**os.environ, "FUSEE_CAPTURE_ALL": "1" if everything else "0"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results.jsonl")
        command = [sys.executable, __file__, "--child", str(path), module, *(f"--test={name}" for name in tests)]
        began = time.perf_counter()
        try:
            process = subprocess.run(command, capture_output=True, env=environment, timeout=timeout, cwd=folder)
            ended = "" if process.returncode == 0 else f"ended with {process.returncode}"
            errors = process.stderr.decode(errors="replace")
        except subprocess.TimeoutExpired as error:
            ended, errors = "timeout", (error.stderr or b"").decode(errors="replace")
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return gathered(lines, ended, errors, time.perf_counter() - began)


def gathered(lines: list[dict[str, Any]], ended: str, errors: str, took: float) -> Run:
    """The lines of a process; a test that started and never ended is what the process ended in."""
    found = Run({}, {}, {}, ended, took)
    for line in lines:
        if "starts" in line:
            found.outcomes[line["starts"]] = ended or "left"
        else:
            name = line["test"]
            found.outcomes[name], found.texts[name] = line["outcome"], line["text"]
            found.seconds[name] = line["seconds"]
    if ended:
        found.texts[""] = errors[-4000:]
    return found


def differences(plain: Run, captured: Run) -> list[str]:
    """The tests that did not come to the same; those that a process did not get to are not listed one by one."""
    names = [*plain.outcomes, *(name for name in captured.outcomes if name not in plain.outcomes)]
    if captured.ended:
        names = list(captured.outcomes)
    return [name for name in names if plain.outcomes.get(name) != captured.outcomes.get(name)]


def report(plain: Run, captured: Run, texts: bool) -> None:
    """Prints what differs."""
    for name in differences(plain, captured):
        print(f"  {name}: {plain.outcomes.get(name)} -> {captured.outcomes.get(name)}")
        if texts:
            print("    " + captured.texts.get(name, "").replace("\n", "\n    "))
    if texts and "" in captured.texts:
        print(captured.texts[""])
    slow = sorted(captured.seconds.items(), key=lambda item: -item[1])[:5]
    print(
        "  slowest:", ", ".join(f"{name.rpartition('.')[2]} {seconds:.0f} s" for name, seconds in slow if seconds > 5)
    )


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*")
    parser.add_argument(
        "--test", action="append", default=[], help="id of a test, such as test.test_dict.DictTest.test_len"
    )
    parser.add_argument("--timeout", type=float, default=900, help="of each process, in seconds")
    parser.add_argument("--show", action="store_true", help="print the errors of tests that differ")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return run_here(options.modules[0], options.child, options.test)
    modules = options.modules or list(dict.fromkeys(name.split(".")[1] for name in options.test)) or MODULES
    for module in modules:
        tests = [name for name in options.test if name.startswith(f"test.{module}.")]
        plain, captured = (run(module, everything, tests, options.timeout) for everything in (False, True))
        print(
            f"{module}: {plain.counts()} ({plain.took:.0f} s) -> {captured.counts()} ({captured.took:.0f} s)",
            flush=True,
        )
        report(plain, captured, options.show)


if __name__ == "__main__":
    main()
