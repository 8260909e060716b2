"""Records the traces that the compiler's own tests replay: ``python -m replay.record_traces FOLDER`` in ``tests``.

Paths of the machine are taken out, so that the traces are the same wherever they are recorded. Afterwards
``go test ./cmd/fusee/internal/service -update`` writes what the compiler says now, and the golden files.
"""

from __future__ import annotations

import marshal
import struct
import sys
import sysconfig
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import fusee
from fusee.backends import dynamo_backend
from fusee.host.record import MAGIC

from .functions import CASES, DYNAMIC

_LENGTH = struct.Struct("<I")
_PREFIXES = (sysconfig.get_paths()["purelib"] + "/", str(Path(__file__).parents[2]) + "/")
_GREETING = {"llvm": "libllvmlite.so", "nvrtc": "", "nvjitlink": "", "cache_dir": "", "cpu_threads": 1, "settings": {}}


def messages(data: bytes) -> Iterator[tuple[bytes, Any]]:
    """Direction and content of each message of a trace."""
    at = len(MAGIC)
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at + 1)
        yield data[at : at + 1], marshal.loads(data[at + 5 : at + 5 + length])
        at += 5 + length


def without_paths(value: Any) -> Any:
    """A message with paths relative to the folder of packages or to the repository."""
    if isinstance(value, str):
        for prefix in _PREFIXES:
            value = value.replace(prefix, "")
        return value
    if isinstance(value, types.CodeType):
        constants = tuple(map(without_paths, value.co_consts))
        return value.replace(co_filename=without_paths(value.co_filename), co_consts=constants)
    if isinstance(value, dict):
        return {without_paths(key): without_paths(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, set, frozenset)):
        return type(value)(map(without_paths, value))
    return value


def portable(data: bytes) -> bytes:
    """A trace that says nothing about the machine."""
    parts = [MAGIC]
    for direction, message in messages(data):
        if message[0] == "hello":
            message = ("hello", message[1] | _GREETING)
        body = marshal.dumps(without_paths(message), 4)
        parts += (direction, _LENGTH.pack(len(body)), body)
    return b"".join(parts)


def record(folder: Path, name: str, run: Callable[[], object]) -> None:
    """Keep the first trace of what ``run`` compiles."""
    with tempfile.TemporaryDirectory() as scratch, fusee.record(scratch) as recorder:
        run()
        (folder / f"{name}.trace").write_bytes(portable(recorder.files[0].read_bytes()))


def main() -> None:
    """Record every case, and a training graph of another capture."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for function, arguments in (CASES | DYNAMIC).items():
        fast = fusee.compile(function, dynamic=True if function in DYNAMIC else None)
        record(folder, function.__name__, lambda f=fast, a=arguments: f(*a()))  # type: ignore[misc]
    lowered = torch.compile(attention_weights, backend=dynamo_backend)
    record(folder, "lower", lambda: lowered(torch.ones(3, 4, requires_grad=True)).sum().backward())


def attention_weights(x: torch.Tensor) -> torch.Tensor:
    """Softmax between pointwise operations."""
    return torch.softmax(x * 2, dim=-1) + x


if __name__ == "__main__":
    main()
