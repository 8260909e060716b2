"""Conversations with the compiler, kept on disk: one that goes as an earlier one went needs no compiler.

What the compiler says follows from what it was told, so the same beginning, request and answers give the same result.
One file holds one conversation, in the folder and the format of the compiler's own disk cache (``backend/cache``),
which counts, trims and clears it: ``FUSEEKC1``, the SHA-256 of the content, the content. Here the content is, in
marshal, the list of questions, each with the digest of its answer, and the result.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import marshal
import os
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .. import settings
from ..errors import HostFailure
from . import connection
from .connection import Answer, Message

_MAGIC = b"FUSEEKC1"
_FOLDER = "entries-1"
_DIGEST = hashlib.sha256().digest_size
_NO_REFERENCES = 2  # marshal versions below 3 write equal messages as equal bytes
_WIRE = 4
_FIRST_PROCESSOR = 4096  # bytes of /proc/cpuinfo that hold its description

Turn = tuple[Message, bytes]  # a question, and the digest of its answer


class Conversation:
    """One conversation, told apart from all others by what the compiler is told in it.

    Call :meth:`recall` for the result of an earlier one that went the same way. Where there is none, the object itself
    answers the compiler, giving again what recall found out meanwhile, and :meth:`keep` keeps the result.
    """

    def __init__(self, folder: Path, told: tuple[Any, ...], answer: Answer) -> None:
        digest = _digest(told).hex()
        self._path = folder / digest[:2] / digest[2:]
        self._answer = answer
        self._turns: list[Turn] = []
        self._ahead: deque[tuple[Message, Message]] = deque()

    def recall(self) -> Message | None:
        """The result of the conversation that is kept, None if there is none or an answer differs from then."""
        turns, result = _load(self._path) or ([], None)
        for question, digest in turns:
            answer = self._answer(question)
            self._ahead.append((question, answer))
            if _digest(answer) != digest:
                return None
        if result is not None:
            result[1].get("report", {}).pop("times", None)  # those stages do not run now
            with contextlib.suppress(OSError):
                os.utime(self._path)  # the entries unused for longest go first when space runs out
        return result

    def __call__(self, question: Message) -> Message:
        """Answer the compiler. Raises HostFailure if it asks something else than it did under the same conditions."""
        if not self._ahead:
            answer = self._answer(question)
        else:
            expected, answer = self._ahead.popleft()
            if _digest(expected) != _digest(question):
                self._path.unlink(missing_ok=True)
                raise HostFailure("cache", "what the disk cache holds does not fit the compiler, and was removed")
        self._turns.append((question, _digest(answer)))
        return answer

    def keep(self, result: Message) -> None:
        """Write the conversation to disk, if it succeeded without warnings, which have causes outside of it."""
        if result[0] != "done" or result[1].get("warnings"):
            return
        content = marshal.dumps((self._turns, result), _WIRE)
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix="new-", dir=self._path.parent)
            with open(descriptor, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(content).digest() + content)
            os.replace(name, self._path)
        except OSError:
            return  # the compiler keeps its kernels in the same folder, and reports what is wrong with it


def _load(path: Path) -> tuple[list[Turn], Message] | None:
    """What a file holds; a damaged one is removed and counts as absent."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head, content = data[: len(_MAGIC) + _DIGEST], data[len(_MAGIC) + _DIGEST :]
    if head == _MAGIC + hashlib.sha256(content).digest():
        kept: tuple[list[Turn], Message] = connection.unmarshal(content)
        return kept
    path.unlink(missing_ok=True)
    return None


def _digest(message: Any) -> bytes:
    return hashlib.sha256(marshal.dumps(message, _NO_REFERENCES)).digest()


def conversation(request: Message, answer: Answer, options: Mapping[str, settings.Value]) -> Conversation | None:
    """The conversation that a request begins; None where nothing can be kept."""
    hello = connection.hello()
    folder = _entries(hello["cache_dir"])
    if folder is None or settings.text("compiler", options):  # a compiler of one's own may change any time
        return None
    return Conversation(folder, (hello, _compiler(), _machine(), request), answer)


def _entries(cache: str) -> Path | None:
    """The entries' folder, made if need be; None where somebody else can write it: what it holds is run as code."""
    if not cache:
        return None
    folder = Path(cache, _FOLDER)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder if all(map(_private, (folder.parent, folder))) else None
    except OSError:
        return None


def _private(folder: Path) -> bool:
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def nothing_kept(options: Mapping[str, settings.Value]) -> bool:
    """Whether the next compile needs the compiler for certain."""
    folder = connection.cache_folder()
    if not folder or settings.text("compiler", options) or settings.text("record", options):
        return True
    try:
        with os.scandir(Path(folder, _FOLDER)) as entries:
            return not any(entries)
    except OSError:
        return True


@functools.lru_cache(maxsize=1)
def _compiler() -> tuple[str, int, int]:
    """Which compiler it is: path, size and time of the binary."""
    path = connection.binary({})
    status = os.stat(path)
    return path, status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=1)
def _machine() -> tuple[str, ...]:
    """What code for this machine depends on: processor and C library. Several machines may share a home directory."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        lines = file.read(_FIRST_PROCESSOR).splitlines()
    wanted = ("model name", "flags", "Features", "CPU part")
    library: Callable[[str], str | None] = os.confstr
    return (*(line for line in lines if line.startswith(wanted)), library("CS_GNU_LIBC_VERSION") or "")
