"""The `fusee` command: hands over to the Go binary inside the installed package.

A module of its own because importing `fusee` imports torch, which `fusee dis` or `fusee replay` have no use for.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn


def binary() -> Path:
    """Path of the Go binary; raises FileNotFoundError where the package was not installed with one."""
    package = importlib.util.find_spec("fusee")
    for directory in (package.submodule_search_locations or []) if package else []:
        path = Path(directory, "bin", "fusee")
        if path.is_file():
            return path
    raise FileNotFoundError("the fusee binary is missing from the installed package; run `pip install .` again")


def main() -> NoReturn:
    """Replaces this process with the binary, which asks this same Python for what only Python knows."""
    os.environ.setdefault("FUSEE_PYTHON", sys.executable)
    path = str(binary())
    os.execv(path, ["fusee", *sys.argv[1:]])


if __name__ == "__main__":
    main()
