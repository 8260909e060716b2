"""Writes the pages of docs/ that are made from tables; with ``--check``, fails if they are not as they should be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from fusee import settings

DOCS = Path(__file__).resolve().parent.parent / "docs"

SETTINGS_HEAD = """# Settings

Made from `python/fusee/settings.py` by `scripts/write_docs.py`.

Each setting is an environment variable, and a name in `options=` of `fusee.compile`, which wins. Names are checked: an
unknown one is an error that lists all of them.
"""

BREAKS_HEAD = """# Why a graph breaks

Made from the table in `symbolic/reasons.go` by `scripts/write_docs.py`.

Where an instruction cannot be captured, the graph ends, the instruction runs in Python, and capture goes on behind it.
`fusee explain` shows each break with the id of its reason; with `fullgraph=True` a break is an error instead.
An exception that leaves the function is none: Python raises it.
"""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(heads)]
    lines.append(["---"] * len(lines[0]))
    lines += [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def code(text: object) -> str:
    """Text as code, in doubled backquotes where it has some of its own."""
    quote = "``" if "`" in str(text) else "`"
    return f"{quote}{text}{quote}" if str(text) else ""


def settings_page() -> str:
    """docs/settings.md"""
    rows = ((code(r.name), code(r.variable), r.kind.__name__, code(repr(r.default)), r.doc) for r in settings.TABLE)
    return f"{SETTINGS_HEAD}\n{table(('option', 'variable', 'type', 'default', 'meaning'), rows)}"


def breaks_page() -> str:
    """docs/breaks.md"""
    command = ["go", "run", "./cmd/fusee", "reasons", "--json"]
    answer = subprocess.run(command, capture_output=True, check=True, text=True)
    rows = ((code(r["id"]), r["message"], r["hint"], code(r["example"])) for r in json.loads(answer.stdout))
    return f"{BREAKS_HEAD}\n{table(('id', 'reason', 'hint', 'example'), rows)}"


PAGES = {"settings.md": settings_page, "breaks.md": breaks_page}


def main() -> None:
    """Writes or checks every page."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, page in PAGES.items():
        path = DOCS / name
        if not check:
            path.write_text(page(), encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != page():
            stale.append(name)
    if stale:
        raise SystemExit(f"not up to date: {', '.join(stale)}; run scripts/write_docs.py")
    print(f"{len(PAGES)} pages are up to date" if check else f"wrote {len(PAGES)} pages")


if __name__ == "__main__":
    main()
