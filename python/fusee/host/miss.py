"""What happens when a call fits no entry: one compile, then the call again; plain Python whenever that fails."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import _shim, warn
from ..errors import HostFailure, Unsupported
from ..options import Options
from . import autocast, remembered, reports
from .answer import Answers
from .connection import CONNECTION, Answer, Message
from .describe import ObjectTable
from .install import Installer
from .record import Recorder, Tape, recorders
from .records import Target
from .tensors import Uninitialized


class _Thread(threading.local):
    paused = 0


_thread = _Thread()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Nothing is compiled on this thread, for the host's own work and for other compilers'."""
    _thread.paused += 1
    before = _shim.set_enabled(False)
    try:
        yield
    finally:
        _shim.set_enabled(before)
        _thread.paused -= 1


_MOST_FAILURES = 3  # compiles of one function that the compiler may die in before it is not tried again
Failures = tuple[tuple[Any, int, Any], ...]


def on_miss(
    compiled: Any, bound: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any], failures: Failures
) -> Any:
    """Compile for these arguments and return the entry that fits them, or None to run this call as plain Python.

    ``bound`` are the values of the parameters after binding; ``failures`` holds, for each entry that was tried, the
    entry, the number of the guard that failed and the value it found. Raises Unsupported under ``fullgraph`` only.
    """
    record = compiled.record
    if _thread.paused or (CONNECTION.in_background and record.data.options.setting("background")):
        return None
    with CONNECTION.turn(record.data.options.changed) as got_turn:
        if not got_turn:
            warn.once("timeout", "another thread's compile did not end in time; this call runs as plain Python")
            return None
        if record.state != "active":
            return None
        return compiled.find(bound) or _compile(_Miss(compiled, record, bound, failures, time.perf_counter()))


@dataclass(frozen=True)
class _Miss:
    """One call that no entry fits."""

    compiled: Any
    record: Any
    bound: tuple[Any, ...]
    failures: Failures
    started: float

    @property
    def target(self) -> Target:
        """The host's side of the record."""
        return self.record.data  # type: ignore[no-any-return]


def _compile(miss: _Miss) -> Any:
    target = miss.target
    try:
        with paused():
            return _attempt(miss)
    except Unsupported:
        raise
    except Uninitialized:
        return None
    except Exception as error:  # whatever went wrong in here, the program must not feel it
        failure = error if isinstance(error, HostFailure) else _internal(error)
        warn.once(failure.cause, f"{target.name} runs as plain Python: {failure.message}")
        target.failures += 1
        if failure.lasting or failure.cause == "timeout" or target.failures >= _MOST_FAILURES:
            _make_no_more(miss.record)
        return None


def _make_no_more(record: Any) -> None:
    """The entries there are still serve the calls that they fit."""
    record.state = "full" if record.entries else "plain"


def _internal(error: Exception) -> HostFailure:
    """An error of this package itself, with the place to look at."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else "?"
    text = f"internal error at {place}: {type(error).__name__}: {error}"
    return HostFailure(text, text, lasting=True)


def _give_up_family(miss: _Miss, limit: int) -> None:
    """Each break led to new code, so that no limit of entries would ever end it."""
    _make_no_more(miss.record)
    target = miss.target
    warn.once(
        f"compiles {target.place} {target.name}",
        f"{target.name} ({target.place}) and what goes on behind its breaks was compiled {limit} times, the limit; "
        "from now on calls that fit no entry run as plain Python",
    )


def _give_up(miss: _Miss) -> None:
    _make_no_more(miss.record)
    target = miss.target
    warn.once(
        f"limit {target.place} {target.name}",
        f"{target.name} ({target.place}) has {len(miss.record.entries)} entries, the limit; from now on "
        "calls that fit none of them run as plain Python; the guard that kept failing: "
        f"{target.last_missed or 'unknown'}",
    )


def _take_stock(miss: _Miss) -> None:
    """Why no entry fitted, and which of them never will again."""
    target = miss.target
    reports.note_recompile(target, miss.failures)
    if target.options.dynamic is not False:
        with contextlib.suppress(Exception):  # a value that cannot be looked at did not change
            target.changes.compare(miss.compiled.function, miss.bound)
    for entry in miss.record.entries:
        if entry.guards.dead:
            miss.record.remove(entry)


def _attempt(miss: _Miss) -> Any:
    if miss.target.plain_under_modes and _function_modes():
        return None
    _take_stock(miss)
    if len(miss.record.entries) >= int(miss.target.options.setting("entry_limit")):
        return _give_up(miss)
    limit = int(miss.target.options.setting("compile_limit"))
    if miss.target.family.compiles >= limit:
        return _give_up_family(miss, limit)
    miss.target.family.compiles += 1
    if remembered.nothing_kept(miss.target.options.changed):
        CONNECTION.prepare(miss.target.options.changed)  # comes up while the call is described
    table = ObjectTable()
    try:
        return _installed(miss, table)
    finally:
        table.release()


def _function_modes() -> int:
    import torch

    return torch._C._len_torch_function_stack()


def _without_dispatch_modes() -> contextlib.AbstractContextManager[Any]:
    """No mode of the program sees the host's own tensors; those that must see everything are asked for no compile."""
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    if not torch._C._len_torch_dispatch_stack():
        return contextlib.nullcontext()
    return _disable_current_modes()


def _installed(miss: _Miss, table: ObjectTable) -> Any:
    with _without_dispatch_modes():
        result = _conversed(miss, table)
    if result is None:
        return None
    target = miss.target
    target.made_behind = False
    report = result.setdefault("report", {}) or {}
    if target.options.fullgraph and reports.broke(report):
        if _function_modes():
            target.plain_under_modes = True  # the one graph was asked for without them
            return None
        raise Unsupported(reports.fullgraph_message(report))
    entry = None if result.get("action") == "plain" else _entry(result, table, miss)
    reports.finish(target, result, miss.started)
    if entry is None:
        _make_no_more(miss.record)
    return entry


def anticipate(options: Options) -> None:
    """Start the compiler now if the first call of a function with these options is going to need it."""
    if remembered.nothing_kept(options.changed):
        CONNECTION.anticipate(options.changed)


def _conversed(miss: _Miss, table: ObjectTable) -> dict[str, Any] | None:
    """The result of compiling for a call; None where that goes on in the background.

    A later call finds the result on disk. Where the program has gone on so that it compiles for something else by
    then, it waits, but not for kernels, which are on disk too.
    """
    target, message = miss.target, ("compile", _request(table, miss))
    options = target.options.changed
    answers = Answers(table)
    alone = target.options.setting("background") and not target.made_behind and not recorders(options)
    earlier = remembered.conversation(message, answers, options) if alone else None
    if earlier is None:
        return converse(message, table, target.options, target.name)
    reply = earlier.recall()
    if reply is None:
        finish = functools.partial(_finish_behind, target, earlier)
        reply = CONNECTION.converse(message, earlier, options, None, target.name, finish)
    return None if reply is None else _result(reply)


def _finish_behind(target: Target, earlier: remembered.Conversation, reply: Message | HostFailure) -> None:
    """What went wrong shows again where a call waits for it."""
    if not isinstance(reply, HostFailure):
        earlier.keep(reply)
    target.made_behind = True


def converse(message: tuple[Any, ...], table: ObjectTable, options: Options, name: str) -> dict[str, Any]:
    """The ``done`` result of a request: of an earlier conversation that went as this one goes, or of the compiler."""
    wanted = recorders(options.changed)
    answers = Answers(table)
    earlier = None if wanted else remembered.conversation(message, answers, options.changed)
    reply = earlier.recall() if earlier is not None else None
    if reply is None:
        reply = _ask(message, earlier or answers, options, wanted, name)
        if earlier is not None:
            earlier.keep(reply)
    return _result(reply)


def _result(reply: Message) -> dict[str, Any]:
    """What a request came to; HostFailure where the compiler gave up."""
    if reply[0] == "failed":
        raise _failure(reply[1])
    result: dict[str, Any] = reply[1]
    for text in result.get("warnings") or ():
        warn.once(f"compiler {text}", str(text))
    return result


def _ask(message: tuple[Any, ...], answer: Answer, options: Options, wanted: list[Recorder], name: str) -> Message:
    """One conversation with the compiler, recorded for whoever wants the trace."""
    tape = Tape() if wanted else None
    try:
        reply = CONNECTION.converse(message, answer, options.changed, tape, name)
        assert reply is not None  # as nobody else was to finish
        return reply
    finally:
        for recorder in wanted:
            _save(tape, recorder.file(name))


def _save(tape: Any, path: Any) -> None:
    try:
        tape.save(path)
    except OSError as error:
        warn.once("record", f"the trace could not be written: {error}")


def _failure(details: dict[str, Any]) -> HostFailure:
    hint = details.get("hint") or ""
    text = details.get("message", "the compiler gave up") + (f" ({hint})" if hint else "")
    return HostFailure(f"failed {text}", text, lasting=True)


def _request(table: ObjectTable, miss: _Miss) -> dict[str, Any]:
    options = miss.target.options
    function = table.identify(miss.compiled.function)
    parameters = [table.reference(value) for value in miss.bound]
    return {
        "function": function,
        "parameters": parameters,
        "fullgraph": options.fullgraph,
        "dynamic": _dynamic(options),
        "changed": miss.target.changes.wire(table),
        "backend": "fusee" if options.backend == "fusee" else "python",
        "mode": options.mode,
        **({"library_draws": True} if miss.target.family.library_draws else {}),
        "state": state(),
        "settings": options.changed,
        "entries": len(miss.record.entries),
        "missed": [(entry, number) for entry, (_, number, _) in enumerate(miss.failures)],
        "descriptions": table.describe([function, *parameters]),
    }


def _dynamic(options: Options) -> bool | str | None:
    """What may be symbolic: nothing for backends that may compile for the sizes of the first call, unless asked for."""
    own = options.backend in ("fusee", "eager")
    if not own and not callable(options.backend):
        return False
    return options.dynamic if options.dynamic or (own and options.dynamic is None) else "marked"


def state() -> dict[str, Any]:
    """What of torch's global state a capture depends on."""
    import torch

    from .connection import architecture

    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        **autocast.state(),
        "handling": sys.exc_info()[1] is not None,
        "functions_disabled": not torch._C._is_torch_function_enabled(),
        "function_modes": torch._C._len_torch_function_stack(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "cuda_arch": architecture(),
    }


_BAD_RESULT = (LookupError, TypeError, ValueError, AttributeError, OSError, RuntimeError)


def _entry(result: dict[str, Any], table: ObjectTable, miss: _Miss) -> Any:
    """The entry, checked: if its own guards did not hold right away, every call would compile anew."""
    target, compiled = miss.target, miss.compiled
    try:
        entry = Installer(result, table, compiled.function, target).entry()
    except _BAD_RESULT as error:
        text = f"the compiler's result cannot be used: {type(error).__name__}: {error}"
        raise HostFailure(f"result of {target.place}", text, lasting=True) from error
    number, value = entry.guards.settle(compiled.function, miss.bound)
    if number != -1:
        text = reports.guard_text(result["report"], number)
        found = reports.value_text(value)
        raise HostFailure(
            f"guard of {target.place}", f"a guard fails right after its compile: {text}, found {found}", True
        )
    return entry
