"""Print what dis says about modules of the standard library.

For each module three blocks, each preceded by its length in four little-endian bytes: the marshalled code object, the
output of dis.dis, and one line for each instruction of dis.get_instructions: offset, name and argument.
"""

import contextlib
import dis
import io
import marshal
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

WANTED = 100
FEATURES = [
    "test_dis",
    "test_except_star",
    "test_patma",
    "test_coroutines",
    "test_fstring",
    "test_unicode_identifiers",
    "test_set",
]


def modules() -> list[Path]:
    """Modules spread over the standard library, and tests that use every feature of the language."""
    folder = Path(sysconfig.get_path("stdlib"))
    paths = sorted(folder.glob("*.py")) + sorted(folder.glob("asyncio/*.py"))
    paths = paths[:: max(1, len(paths) // WANTED)]
    return paths + [path for name in FEATURES if (path := folder / "test" / f"{name}.py").exists()]


def instructions(code: CodeType) -> Iterator[str]:
    """Lines for a code object and those within it."""
    yield code.co_qualname
    for instruction in dis.get_instructions(code):
        yield f"{instruction.offset} {instruction.opname} {instruction.arg}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from instructions(constant)


def main() -> None:
    """Print the blocks of each module."""
    for path in modules():
        code = compile(path.read_bytes(), str(path), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as text:
            dis.dis(code)
        lines = "".join(line + "\n" for line in instructions(code))
        for block in (marshal.dumps(code), text.getvalue().encode(), lines.encode()):
            sys.stdout.buffer.write(len(block).to_bytes(4, "little") + block)


main()
