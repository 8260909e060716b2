"""The child process that compiles, and the messages to and from it (docs/contracts.md, section 1).

The child is spawned at the first compile, or a little ahead of it, spoken to over a socketpair, and replaced when it
died, timed out, was interrupted in the middle of a compile, or when this process is a forked child of the one that
started it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import marshal
import math
import multiprocessing
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from .. import settings, warn
from ..errors import HostFailure
from . import progress
from .progress import Waits, nobody
from .record import Tape

PROTOCOL = 1
_LENGTH = struct.Struct("<I")
_LARGEST = 1 << 30
_MARSHAL = 4

Message = tuple[Any, ...]
Answer = Callable[[Message], Message]
Finish = Callable[[Message | HostFailure], None]

_ENDS = ("done", "failed")
_HANDED_ON = ("captured", *_ENDS)


def unmarshal(data: bytes) -> Any:
    """What ``data`` holds, read without garbage collections: the new objects cannot be garbage yet, and the many of a
    large function's result would have all of the program's objects walked over."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return marshal.loads(data)
    finally:
        if collects:
            gc.enable()


def encode(message: Message) -> bytes:
    """A message as it stands on the wire: 4 bytes of length, then marshal."""
    body = marshal.dumps(message, _MARSHAL)
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes) -> Message:
    """The message in ``body``; HostFailure when it is not one."""
    try:
        message = unmarshal(body)
    except Exception as error:
        raise HostFailure("protocol", f"the compiler sent {len(body)} bytes that are not a message: {error}") from error
    if type(message) is not tuple or not message or type(message[0]) is not str:
        raise HostFailure("protocol", f"the compiler sent a {type(message).__name__} that is not a message")
    found: Message = message
    return found


def binary(options: Mapping[str, settings.Value]) -> str:
    """Path of the compiler: the setting, the one beside this package, or the first on PATH."""
    chosen = settings.text("compiler", options)
    packaged = Path(__file__).parent.parent / "bin" / "fusee"
    found = chosen or (str(packaged) if packaged.is_file() else shutil.which("fusee"))
    if not found:
        raise HostFailure("missing", "the compiler is neither in the package nor on PATH; try `fusee doctor`", True)
    return found


class Child:
    """One running compiler."""

    def __init__(self, options: Mapping[str, settings.Value]) -> None:
        self.owner = os.getpid()
        self.prologue = Tape()
        self._ready = False
        self._stderr = None if settings.text("logs", options) else _scratch_file()
        ours, theirs = socket.socketpair()
        self._socket = ours
        try:
            self._process = self._spawn(binary(options), theirs)
        except BaseException as error:
            self._close_files()
            if isinstance(error, OSError):
                raise HostFailure("spawn", f"the compiler could not be started: {error}", lasting=True) from error
            raise
        finally:
            theirs.close()

    def _spawn(self, path: str, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """The compiler reads and writes the inherited descriptor; its own session keeps Ctrl-C away from it."""
        descriptor = theirs.fileno()
        return subprocess.Popen(
            [path, "serve", "--fd", str(descriptor)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            pass_fds=(descriptor,),
            start_new_session=True,
        )

    def await_ready(self, deadline: float) -> None:
        """Read the reply to the hello, once."""
        if self._ready:
            return
        kind, *rest = self.receive(self.prologue, deadline)
        if kind != "ready" or len(rest) != 1 or rest[0].get("protocol", PROTOCOL) != PROTOCOL:
            raise HostFailure("version", f"the compiler does not speak protocol {PROTOCOL}: {kind} {rest!r:.200}")
        self._ready = True

    def send(self, message: Message, tape: Tape | None, deadline: float) -> None:
        """Write one message; HostFailure when the child is gone."""
        data = encode(message)
        if tape is not None:
            tape.add(">", data)
        self._wait(deadline)
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise HostFailure("timeout", "the compiler did not read its input in time") from None
        except OSError as error:
            raise HostFailure("crash", f"the compiler went away: {error}{self.last_words()}") from error

    def receive(self, tape: Tape | None, deadline: float, waits: Waits = nobody) -> Message:
        """Read one message; HostFailure for an end, garbage or no message before ``deadline``.

        ``waits`` is called again and again until its first bytes come.
        """
        head = self._read(_LENGTH.size, deadline, waits)
        (length,) = _LENGTH.unpack(head)
        if length > _LARGEST:
            raise HostFailure("protocol", f"the compiler announced a message of {length} bytes")
        body = self._read(length, deadline)
        if tape is not None:
            tape.add("<", head + body)
        return decode(body)

    def _wait(self, deadline: float, most: float = math.inf) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise HostFailure("timeout", "the compiler did not answer in time")
        self._socket.settimeout(min(left, most))

    def _read(self, count: int, deadline: float, waits: Waits = nobody) -> bytes:
        parts = []
        while count:
            self._wait(deadline, progress.SECONDS)
            try:
                part = self._socket.recv(min(count, 1 << 20))
            except TimeoutError:
                waits()
                continue
            except OSError as error:
                raise HostFailure("crash", f"the compiler went away: {error}{self.last_words()}") from error
            if not part:
                raise HostFailure("crash", f"the compiler ended in the middle of a compile{self.last_words()}")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def last_words(self) -> str:
        """What the child wrote to its standard error, for the warning."""
        if self._stderr is None:
            return ""
        try:
            self._stderr.seek(0)
            lines = [line for line in self._stderr.read(4096).decode(errors="replace").splitlines() if line.strip()]
        except (OSError, ValueError):
            return ""
        return f" (it said: {lines[0][:200]})" if lines else ""

    def alive(self) -> bool:
        """Whether this process started the child and it still runs."""
        return self.owner == os.getpid() and self._process.poll() is None

    def close(self) -> None:
        """Close the connection, after which the child ends by itself."""
        self._close_files()
        if self.owner != os.getpid():
            self._process.returncode = 0  # the parent's child: this process must neither wait for it nor warn

    def _close_files(self) -> None:
        self._socket.close()
        if self._stderr is not None:
            self._stderr.close()

    def kill(self) -> None:
        """End the child now and reap it."""
        if self.owner == os.getpid() and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self.close()


class Connection:
    """Hands out one conversation at a time with a child that is known to be fit."""

    def __init__(self, hello: Callable[[], Mapping[str, Any]]) -> None:
        self._hello = hello
        self._child: Child | None = None
        self._busy = threading.RLock()
        self._anticipated = False
        self._rest: threading.Thread | None = None  # waits for the rest of a conversation in the background

    def converse(
        self,
        request: Message,
        answer: Answer,
        options: Mapping[str, settings.Value],
        tape: Tape | None,
        name: str,
        finish: Finish | None = None,
    ) -> Message | None:
        """Send ``request`` about what has a ``name``, answer every question, and return the ``done`` or ``failed``
        message.

        With ``finish``, None is returned once the compiler has captured the function and needs its objects no more;
        another thread then waits for the message and calls ``finish`` with it, or with what went wrong.

        Raises HostFailure whenever the child did not get there; after that, and after any other exception
        (an interrupt for one), the child is replaced, as it may still be in the middle of the conversation.
        """
        deadline = time.monotonic() + settings.number("timeout", options)
        with self.turn(options) as got_turn:
            if not got_turn:
                raise HostFailure("timeout", "another thread's compile did not end in time")
            try:
                child = self._asked(request, options, tape, deadline)
                with progress.Line(f"compiling {name}") as line:
                    reply = _reply(child, answer, tape, deadline, _HANDED_ON if finish else _ENDS, line)
            except BaseException:
                self.stop()
                raise
            if reply[0] in _ENDS or finish is None:
                return reply
            self._rest = threading.Thread(
                target=self._await_rest, args=(child, answer, deadline, finish), name="fusee compile", daemon=True
            )
            self._rest.start()
            return None

    def _await_rest(self, child: Child, answer: Answer, deadline: float, finish: Finish) -> None:
        """The rest of a conversation whose first thread goes on; the turn is this thread's until it ends."""
        try:
            reply: Message | HostFailure = _reply(child, answer, None, deadline, _ENDS, nobody)
        except HostFailure as failure:
            child.kill()
            reply = failure
        finish(reply)

    @property
    def in_background(self) -> bool:
        """Whether the compiler is at work for a thread that went on."""
        return self._rest is not None and self._rest.is_alive()

    @contextlib.contextmanager
    def turn(self, options: Mapping[str, settings.Value]) -> Iterator[bool]:
        """Wait for other threads' compiles, at most as long as one may take; whether the turn came."""
        busy, deadline = self._busy, time.monotonic() + settings.number("timeout", options)
        got_turn = busy.acquire(timeout=deadline - time.monotonic())
        try:
            if got_turn and self._rest is not None:
                self._rest.join(max(0.0, deadline - time.monotonic()))
            yield got_turn and not self.in_background
        finally:
            if got_turn:
                busy.release()

    def _asked(
        self, request: Message, options: Mapping[str, settings.Value], tape: Tape | None, deadline: float
    ) -> Child:
        """A child that has got the request."""
        child = self._fit(options, deadline)
        child.await_ready(deadline)
        if tape is not None:
            tape.extend(child.prologue)
        child.send(request, tape, deadline)
        return child

    def _fit(self, options: Mapping[str, settings.Value], deadline: float) -> Child:
        if self._child is None or not self._child.alive():
            self.stop()
            self._child = Child(options)
            self._child.send(("hello", dict(self._hello())), self._child.prologue, deadline)
        return self._child

    def prepare(self, options: Mapping[str, settings.Value]) -> None:
        """Start the child if there is none, so that it comes up while the host describes what to compile."""
        try:
            self._fit(options, time.monotonic() + settings.number("timeout", options))
        except BaseException:
            self.stop()
            raise

    def anticipate(self, options: Mapping[str, settings.Value]) -> None:
        """Start the first child ahead of the first compile, so that it is up by then; only the compile may complain.

        Not in the workers of ``multiprocessing``, which import the program but often compile nothing.
        """
        if self._anticipated or multiprocessing.parent_process() is not None or not self._busy.acquire(blocking=False):
            return
        self._anticipated = True
        try:
            with contextlib.suppress(HostFailure):
                self.prepare(options)
        finally:
            self._busy.release()

    def stop(self) -> None:
        """End the child, if there is one; the next conversation starts another."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def leave(self) -> None:
        """At exit: close the connection and let the child end by itself."""
        child, self._child = self._child, None
        if child is not None:
            child.close()
            child._process.returncode = 0 if child._process.poll() is None else child._process.returncode

    def forget(self) -> None:
        """In a forked child: drop the parent's compiler and any lock another thread held at the fork."""
        self._busy, self._rest = threading.RLock(), None
        child, self._child = self._child, None
        if child is not None:
            child.close()


def _reply(
    child: Child, answer: Answer, tape: Tape | None, deadline: float, ends: tuple[str, ...], waits: Waits
) -> Message:
    """Answer a child's questions until a message comes that is none, of one of the kinds in ``ends``."""
    while True:
        message = child.receive(tape, deadline, waits)
        kind, rest = message[0], message[1:]
        if kind in ends:
            return message
        if kind == "captured":
            continue
        if kind != "ask" or not rest:
            raise HostFailure("protocol", f"the compiler sent {kind!r} instead of a question")
        child.send(answer(rest), tape, deadline)


def _scratch_file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _library(*places: str) -> str:
    """Path of a shared library that another wheel brings, or "" when it is not there. Imports nothing."""
    import torch

    for folder in dict.fromkeys([str(Path(torch.__path__[0]).parent), *sys.path]):
        for place in places:
            path = os.path.join(folder or ".", place)
            if os.path.isfile(path):
                return path
    return ""


def _cuda_library(name: str, package: str) -> str:
    """Path of one of CUDA's compilers, of the version torch was built for: where CUDA 13's wheels put it, then 12's."""
    import torch

    major = str(torch.version.cuda or "").partition(".")[0]
    file = f"lib{name}.so.{major}"
    return _library(f"nvidia/cu{major}/lib/{file}", f"nvidia/{package}/lib/{file}") if major else ""


def hello() -> dict[str, Any]:
    """The first message: versions, where the code generators are, and the settings."""
    return {
        **_installed(),
        "cuda_arch": architecture(),
        "cache_dir": _usable(cache_folder()),
        "settings": {**settings.environment(), "cache_size": int(settings.number("cache_size")) << 20},
    }


@functools.lru_cache(maxsize=1)
def _installed() -> Mapping[str, Any]:
    """The part of the first message that stays the same as long as the process lives."""
    import torch

    from .. import __version__

    return {
        "protocol": PROTOCOL,
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": str(torch.__version__),
        "fusee": __version__,
        "llvm": _library("llvmlite/binding/libllvmlite.so"),
        "nvrtc": _cuda_library("nvrtc", "cuda_nvrtc"),
        "nvjitlink": _cuda_library("nvJitLink", "nvjitlink"),
    }


def architecture() -> str:
    """The GPU's architecture once CUDA is in use; asking earlier would initialise it, which a fork does not survive."""
    import torch

    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return ""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def cache_folder() -> str:
    """The disk cache's folder, "" when the cache is off."""
    if not settings.get("cache"):
        return ""
    chosen = settings.text("cache_dir")
    return chosen or str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "fusee"))


def _usable(folder: str) -> str:
    """The folder, made if need be; "" and one warning when it cannot be written."""
    if not folder:
        return ""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
        problem = "it is not writable"
    except OSError as error:
        problem = str(error)
    warn.once("cache", f"compiled kernels are not kept in {folder}: {problem}; set FUSEE_CACHE_DIR to another folder")
    return ""


CONNECTION = Connection(hello)
atexit.register(CONNECTION.leave)
os.register_at_fork(after_in_child=CONNECTION.forget)
