"""Measures eager PyTorch, torch.compile and fusee side by side, and prints a table.

Each workload runs under each compiler in a process of its own, first with empty caches and then once more with the
caches that it has just filled; in each of them the eager function takes turns with the compiled one. The numbers are
also appended to a file of JSON lines, which ``--table`` prints again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
COMPILERS = ("torch.compile", "fusee")
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "FUSEE_CACHE_DIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH")
TIMEOUT = 600
COLUMNS = (
    ("workload", 21),
    ("compiler", 30),
    ("first", 9),
    ("first, warm", 11),
    ("recompile", 9),
    ("a call", 9),
    ("eager", 9),
    ("ratio", 6),
    ("error", 8),
)

Record = dict[str, Any]


def environment(caches: str) -> dict[str, str]:
    """The environment of a measured process: all compilers keep their caches in one folder, and Python its bytecode."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return inherited | {name: str(Path(caches, name.lower())) for name in CACHES}


def run_once(python: str, workload: str, compiler: str, device: str, caches: str) -> Record:
    """The numbers of one process, or why there are none."""
    command = [python, str(FOLDER / "measure.py"), workload, compiler, device]
    try:
        done = subprocess.run(command, env=environment(caches), capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"failure": f"no result after {TIMEOUT} s"}
    if done.returncode != 0:
        return {"failure": (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]}
    numbers: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return numbers


def cold_and_warm(python: str, workload: str, compiler: str, device: str) -> Record:
    """The numbers of a process with empty caches, and the first call of one with full caches."""
    with tempfile.TemporaryDirectory() as caches:
        record = run_once(python, workload, compiler, device, caches)
        if "failure" not in record:
            again = run_once(python, workload, compiler, device, caches)
            record.update({"first_warm": again["first"]} if "first" in again else again)
    return record


def compare(python: str, workload: str, compiler: str, device: str, repeats: int) -> Record:
    """The least of each number over some repetitions, since other load on the machine only adds; the largest error."""
    records = [cold_and_warm(python, workload, compiler, device) for _ in range(repeats)]
    best = next((record for record in records if "failure" in record), None)
    if best is None:
        best = {name: min(record[name] for record in records) for name in records[0]}
        best["error"] = max(record["error"] for record in records)
    return {"workload": workload, "compiler": compiler, "device": device, "repeats": repeats, **best}


def machine(device: str) -> Record:
    """What the numbers were measured on, and when."""
    import torch

    name = torch.cuda.get_device_name() if device == "cuda" else processor()
    return {
        "date": datetime.date.today().isoformat(),
        "machine": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def processor() -> str:
    """The name of the CPU."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def duration(seconds: object) -> str:
    """A time with three digits and its unit."""
    if not isinstance(seconds, float):
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def cells(record: Record) -> list[str]:
    """One row of the table."""
    if "failure" in record:
        return [record["workload"], record["compiler"], record["failure"]]
    times = [duration(record.get(name)) for name in ("first", "first_warm", "recompile", "steady", "eager")]
    ratio = f"{record['steady'] / record['eager']:.2f}"
    return [record["workload"], record["compiler"], *times, ratio, f"{record['error']:.1g}"]


def row(texts: list[str]) -> str:
    """Texts in columns, numbers to the right."""
    padded = [
        text.ljust(width) if i < 2 or len(texts) < len(COLUMNS) else text.rjust(width)
        for i, (text, (_, width)) in enumerate(zip(texts, COLUMNS, strict=False))
    ]
    return "  ".join(padded).rstrip()


def markdown(records: list[Record]) -> str:
    """The table as Markdown."""
    lines = [[name for name, _ in COLUMNS], ["---", "---", *["---:"] * (len(COLUMNS) - 2)], *map(cells, records)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def read(path: Path) -> list[Record]:
    """The records of a file of JSON lines, the last of each workload, compiler and device."""
    latest: dict[tuple[str, str, str], Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        latest[record["workload"], record["compiler"], record["device"]] = record
    return list(latest.values())


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workloads", nargs="*", help="names of workloads (default: all)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compilers", default=",".join(COMPILERS), help="such as fusee,fusee/reduce-overhead")
    parser.add_argument("--repeats", type=int, default=1, help="processes for each row; the least number counts")
    parser.add_argument("--fusee-python", default=sys.executable, help="interpreter for fusee, where it differs")
    parser.add_argument("--output", type=Path, default=FOLDER / "results.jsonl", help="file that gets the numbers")
    parser.add_argument("--table", action="store_true", help="measure nothing; print the file's numbers as Markdown")
    return parser.parse_args()


def main() -> None:
    """Measures what the command line asks for."""
    chosen = arguments()
    if chosen.table:
        print(markdown(read(chosen.output)))
        return
    from workloads import WORKLOADS

    facts = machine(chosen.device)
    print(*facts.values(), sep=", ")
    print(row([name for name, _ in COLUMNS]))
    for workload in chosen.workloads or WORKLOADS:
        for compiler in chosen.compilers.split(","):
            python = chosen.fusee_python if compiler.startswith("fusee") else sys.executable
            record = compare(python, workload, compiler, chosen.device, chosen.repeats)
            print(row(cells(record)), flush=True)
            with chosen.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**facts, **record}) + "\n")


if __name__ == "__main__":
    main()
