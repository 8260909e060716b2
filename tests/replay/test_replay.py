"""Recorded compilations, replayed without Python, are byte for byte what they were."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fusee

from .conftest import Command
from .functions import CASES, pointwise, symbolic_numbers

NAMES = {function.__name__: function for function in CASES}


def same(found: Any, wanted: Any) -> None:
    """Equal structure, equal values; tensors up to rounding."""
    if isinstance(wanted, torch.Tensor):
        torch.testing.assert_close(found, wanted)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key, value in wanted.items():
            same(found[key], value)
    elif isinstance(wanted, (list, tuple)):
        assert type(found) is type(wanted) and len(found) == len(wanted)
        for left, right in zip(found, wanted, strict=True):
            same(left, right)
    else:
        assert type(found) is type(wanted) and found == wanted


def recorded(name: str, folder: Path) -> list[Path]:
    """The traces of one case, whose result is checked against eager."""
    function = NAMES[name]
    arguments = CASES[function]
    torch.manual_seed(0)
    wanted = function(*arguments())
    torch.manual_seed(0)
    with fusee.record(folder) as recorder:
        same(fusee.compile(function)(*arguments()), wanted)
    return recorder.files


@pytest.mark.parametrize("name", NAMES)
def test_replay_is_identical(name: str, tmp_path: Path, replay: Command) -> None:
    files = recorded(name, tmp_path / "traces")
    assert files
    for file in files:
        done = replay(file)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("Identical to the recorded compilation.\n")


def test_replay_of_symbolic_numbers(tmp_path: Path, replay: Command) -> None:
    calls = [(torch.ones(size, 3), n, 0.25 * n) for size, n in ((7, 3), (8, 4), (20, 9), (5, 1))]
    with fusee.record(tmp_path / "traces") as recorder:
        fast = fusee.compile(symbolic_numbers)
        for arguments in calls:
            same(fast(*arguments), symbolic_numbers(*arguments))
    assert len(recorder.files) == 3  # as it came first, with symbols, and on the other side of the branch
    for file in recorder.files:
        done = replay(file)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith("Identical to the recorded compilation.\n")


def test_what_a_replay_shows(tmp_path: Path, replay: Command) -> None:
    (file,) = recorded("pointwise", tmp_path)
    text = replay(file).stdout
    kernel = "define i64 @k_fused_mul_add_relu_sub"
    for part in ("graph graph(", "torch.relu", "Kernels", kernel, "SCALE", "Rewritten bytecode", "LOAD_FAST"):
        assert part in text, part


def test_json_is_the_same_each_time(tmp_path: Path, replay: Command) -> None:
    (file,) = recorded("reduction", tmp_path)
    first, second = replay("--json", "--run", file), replay("--json", "--run", file)
    assert first.returncode == 0 and first.stdout == second.stdout
    found = json.loads(first.stdout)
    assert found["identical"] and found["complete"]
    (compilation,) = found["compilations"]
    assert "times" not in compilation["report"]
    assert compilation["codes"][0]["role"] == "entry"
    (run,) = compilation["runs"]
    assert run["outputs"] == 2 and run["largest_difference"] < 1e-6


def test_run_on_given_inputs(tmp_path: Path, replay: Command) -> None:
    (file,) = recorded("branch", tmp_path / "traces")
    inputs = tmp_path / "inputs.json"
    inputs.write_text(json.dumps([[0.0, 1, 2, 3, 4, 5, 6]]))
    assert "largest difference 0" in replay("--run", "--inputs", inputs, file).stdout
    inputs.write_text("[[1]]")
    assert "list of 7 items" in replay("--run", "--inputs", inputs, file).stdout
    inputs.write_text("{")
    done = replay("--run", "--inputs", inputs, file)
    assert done.returncode == 1 and "hint:" in done.stderr


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "damaged"),
        (lambda data: data[:9], "damaged"),
        (lambda data: data[:8], "no compilation"),
        (lambda data: b"", "not a fusee trace"),
        (lambda data: b"import torch\n", "not a fusee trace"),
        (lambda data: b"FUSEETR9" + data[8:], "format"),
        (lambda data: data.replace(b"operator.mul", b"operator.sub", 1), "differs"),
    ],
)
def test_bad_traces_have_one_message_and_a_hint(
    damage: Callable[[bytes], bytes], message: str, tmp_path: Path, replay: Command
) -> None:
    (file,) = recorded("pointwise", tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    done = replay(file)
    assert done.returncode == 1
    first, *hints = done.stderr.splitlines()
    assert message in first and all(line.startswith("  hint: ") for line in hints) and hints


def test_missing_file(tmp_path: Path, replay: Command) -> None:
    done = replay(tmp_path / "nothing.fusee")
    assert done.returncode == 1 and "hint:" in done.stderr and "no such file" in done.stderr


def test_record_to_one_file(tmp_path: Path, replay: Command) -> None:
    with fusee.record(tmp_path / "one.fusee") as recorder:
        fusee.compile(pointwise)(*CASES[pointwise]())
    assert recorder.files == [tmp_path / "one.fusee"]
    assert replay(recorder.files[0]).returncode == 0


def test_record_by_environment(tmp_path: Path, environment: Callable[..., None], replay: Command) -> None:
    folder = tmp_path / "traces"
    environment(FUSEE_RECORD=str(folder))
    fusee.compile(pointwise)(*CASES[pointwise]())
    (file,) = folder.iterdir()
    assert "pointwise" in file.name
    assert replay(file).returncode == 0


def test_traces_are_private(tmp_path: Path) -> None:
    """They hold the user's code and constants."""
    existing = tmp_path / "pointwise.fusee"
    existing.write_bytes(b"")
    existing.chmod(0o644)
    with fusee.record(existing):
        fusee.compile(pointwise)(*CASES[pointwise]())
    assert stat.S_IMODE(existing.stat().st_mode) == 0o600
