"""What ``fusee explain`` says of programs that break, word for word, against files kept beside this one.

``FUSEE_UPDATE_GOLDEN=1`` writes the files anew; read the difference before you commit it. The programs are those of
``programs/`` and, where ``FUSEE_TEST_CASES`` names a folder of larger cases, those too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
FOLDERS = (HERE / "programs", *map(Path, filter(None, [os.environ.get("FUSEE_TEST_CASES")])))
TORCH = "2.15."  # some breaks are in torch's own modules, which differ from release to release
UPDATE = os.environ.get("FUSEE_UPDATE_GOLDEN") == "1"


def cases() -> list[Path]:
    """Programs that have a golden file; every program while the files are written."""
    found = [path for folder in FOLDERS for path in sorted(folder.glob("[0-9]*.py"))]
    return [path for path in found if UPDATE or golden(path).exists()]


def golden(case: Path) -> Path:
    """Where the text for a case is kept."""
    return GOLDEN / f"{case.stem}.txt"


def steady(text: str, folder: Path) -> str:
    """The text without what differs from machine to machine: folders, times, digests, guards, library lines."""
    text = re.sub(r"\n  Guards\n.*?(?=\n  Times|\n\S)", "", text, flags=re.DOTALL)
    text = re.sub(r"\n  Times\n.*?\n(?=\n|$)", "\n", text, flags=re.DOTALL)
    text = text.replace(f"{folder}{os.sep}", "")
    text = re.sub(r"\S*(?:site-packages|python3\.11)/(\S+?):\d+\n +\d+ \|.*\n +\|.*\n", r"\1\n", text)
    text = re.sub(r"\S*(?:site-packages|python3\.11)/(\S+?):\d+", r"\1", text)
    text = re.sub(r"_[0-9a-f]{12}\b", "", text)
    text = re.sub(r"compiled in [\d.]+ \S+:", "compiled:", text)
    text = re.sub(r",\s+\d+\s+guards?\b|,\s+no\s+guards", "", text)
    return re.sub(r", [\d.]+ (µs|ms|s)$", "", text, flags=re.MULTILINE)


def explained(case: Path, cache: Path) -> str:
    """What the command prints for a case."""
    environment = {**os.environ, "FUSEE_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "fusee", "explain", "--python", sys.executable]
    ran = subprocess.run(
        [*command, str(HERE / "run_case.py"), str(case.parent), case.stem],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return steady(ran.stdout, case.parent)


@pytest.mark.skipif(not torch.__version__.startswith(TORCH), reason="the texts are those of another torch")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.stem)
def test_explanation(case: Path, tmp_path: Path) -> None:
    text = explained(case, tmp_path)
    if not UPDATE:
        assert text == golden(case).read_text()
    elif re.search(r"^ +\d+\. ", text, re.MULTILINE):
        GOLDEN.mkdir(exist_ok=True)
        golden(case).write_text(text)
