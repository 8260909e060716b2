"""``python -m fusee._run script.py arguments``: run a script as Python would, for ``fusee explain``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run the script named by the first argument with the rest as its arguments."""
    if len(sys.argv) < 2:
        raise SystemExit("usage: python -m fusee._run SCRIPT [ARGUMENT ...]")
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
