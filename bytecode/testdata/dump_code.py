"""Write the code objects of every module of the standard library and of torch to standard output.

Each is marshalled and preceded by its length in four little-endian bytes. Arguments: "stdlib", "torch" or both.
"""

import importlib.util
import marshal
import os
import sys
import sysconfig
from pathlib import Path
from types import CodeType


def compiled(path: Path) -> CodeType | None:
    """The code object of a source file, from the bytecode cache where current; None where it does not compile."""
    cache = Path(importlib.util.cache_from_source(str(path)))
    if cache.exists():
        content = cache.read_bytes()
        status = path.stat()
        fresh = int(status.st_mtime).to_bytes(4, "little") + (status.st_size & 0xFFFFFFFF).to_bytes(4, "little")
        if content[:8] == importlib.util.MAGIC_NUMBER + bytes(4) and content[8:16] == fresh:
            cached: CodeType = marshal.loads(content[16:])
            return cached
    try:
        return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None


def roots(name: str) -> list[Path]:
    """The folders that hold a library's sources."""
    if name == "stdlib":
        return [Path(sysconfig.get_path("stdlib"))]
    specification = importlib.util.find_spec(name)
    if specification is None or specification.submodule_search_locations is None:
        return []
    return [Path(location) for location in specification.submodule_search_locations]


def main() -> None:
    """Dump the libraries that the command line names."""
    sys.setrecursionlimit(10000)
    output = os.fdopen(1, "wb", buffering=1 << 20, closefd=False)
    for library in sys.argv[1:]:
        for root in roots(library):
            for path in sorted(root.rglob("*.py")):
                if "site-packages" in path.relative_to(root).parts:
                    continue
                code = compiled(path)
                if code is not None:
                    data = marshal.dumps(code)
                    output.write(len(data).to_bytes(4, "little") + data)
    output.flush()


main()
