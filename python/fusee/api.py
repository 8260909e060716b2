"""The public functions of fusee."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from . import backends, options, settings, warn
from .explanation import Explanation
from .host import miss, reports
from .host.records import RECORDS
from .wrap import compiled, original, run_only

F = TypeVar("F", bound=Callable[..., Any])


@overload
def compile(
    fn: F,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | backends.Backend = ...,
    mode: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    disable: bool = ...,
) -> F: ...
@overload
def compile(
    fn: None = None,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | backends.Backend = ...,
    mode: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    disable: bool = ...,
) -> Callable[[F], F]: ...
def compile(
    fn: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | backends.Backend = "fusee",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compile a function, method, module, class or callable object; without ``fn``, a decorator that does.

    Nothing happens until the first call. A call that no compiled entry fits compiles one; what cannot be compiled runs
    as plain Python.

    Args:
        fullgraph: raise Unsupported where one graph cannot hold the whole function, instead of breaking the graph.
        dynamic: True: sizes and numbers are symbolic from the start; False: never; None: once they changed.
        backend: "fusee", "eager", "aot_eager", "inductor", or a callable ``(gm, example_inputs)``.
        mode: "default", "reduce-overhead", "max-autotune" or "max-autotune-no-cudagraphs".
        options: settings by name (``fusee.settings.TABLE`` lists them) for this function.
        disable: return ``fn`` as it is.

    Raises UnknownSetting for a backend, mode or option that does not exist.
    """
    chosen = _options(fullgraph, dynamic, backend, mode, options)

    def wrap(function: Any) -> Any:
        if disable or settings.get("disable", chosen.changed):
            return function
        return compiled(function, chosen)

    return wrap if fn is None else wrap(fn)


_options = options.check


class _Explained:
    """``explain(fn)``: call it as ``fn`` is called."""

    def __init__(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
        self._function = function
        self._arguments = arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Explanation:
        """Compile and run ``fn`` afresh, and say what was compiled."""
        import dataclasses

        found: list[dict[str, Any]] = []
        chosen = dataclasses.replace(_options(**self._arguments), listener=found)
        result = compiled(original(self._function), chosen)(*args, **kwargs)
        return Explanation(found, result)


def explain(
    fn: Callable[..., Any],
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | backends.Backend = "fusee",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> _Explained:
    """``explain(fn)(*args)`` compiles ``fn`` afresh for these arguments, runs it, and returns an Explanation."""
    arguments = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend, "mode": mode, "options": options}
    return _Explained(fn, arguments)


def reset() -> None:
    """Drop every compiled entry, count and given warning; compiled functions start anew at their next call."""
    RECORDS.reset()
    reports.COUNTS.clear()
    warn.forget()


def stats() -> dict[str, int]:
    """Counts since the start or the last reset: ``graphs`` compiled, ``recompiles``, graph ``breaks``."""
    return {name: reports.COUNTS[name] for name in ("graphs", "recompiles", "breaks")}


class _Disabled(contextlib.ContextDecorator):
    """``with fusee.disable():`` compiled functions run as plain Python on this thread."""

    def __enter__(self) -> _Disabled:
        self._paused = miss.paused()
        self._paused.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._paused.__exit__(*error)


@overload
def disable(fn: F, recursive: bool = True, *, reason: str | None = None) -> F: ...
@overload
def disable(fn: None = None, recursive: bool = True, *, reason: str | None = None) -> _Disabled: ...
def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Run ``fn``, and what it calls, as plain Python; a call of it inside a compiled function breaks the graph.

    Without ``fn``: a context manager and decorator. The other parameters are those of ``torch.compiler.disable``:
    with ``recursive=False`` compiled functions that ``fn`` calls stay compiled; ``reason`` is for the reader.
    """
    if fn is None:
        return _Disabled()
    function = fn

    @functools.wraps(function)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        with _Disabled() if recursive else contextlib.nullcontext():
            return function(*args, **kwargs)

    disabled._fusee_disable = True  # type: ignore[attr-defined]
    return disabled


@overload
def run(fn: F) -> F: ...
@overload
def run(fn: None = None) -> Callable[[F], F]: ...
def run(fn: Callable[..., Any] | None = None) -> Any:
    """Let calls of a compiled function use the entries that it has, and run as plain Python where none of them fits.

    Compiled functions that ``fn`` calls are not concerned. Without ``fn``: a decorator. Raises TypeError for a compiled
    module, whose ``forward`` can be given instead, and for what cannot be called.
    """
    return run_only if fn is None else run_only(fn)


def graph_break() -> None:
    """Break the graph here when compiled; nothing otherwise."""


def is_compiling() -> bool:
    """True inside a function that is being compiled, False when it runs as plain Python."""
    return False


def list_backends() -> list[str]:
    """Names that ``backend=`` of :func:`compile` takes."""
    return backends.list_backends()


def mark_dynamic(
    tensor: Any, index: int | tuple[int, ...] | list[int], *, min: int | None = None, max: int | None = None
) -> None:
    """Treat a dimension's size as symbolic from the first compile on; kept on the tensor as torch does."""
    if min is not None or max is not None or "torch._dynamo" in sys.modules:
        import torch._dynamo

        if torch._dynamo.mark_dynamic is not mark_dynamic:  # a program may have put this function in its place
            torch._dynamo.mark_dynamic(tensor, index, min=min, max=max)
            return
    if not hasattr(tensor, "_dynamo_dynamic_range"):
        tensor._dynamo_dynamic_range = set()
    _mark(tensor, "_dynamo_dynamic_indices", index)


def mark_static(tensor: Any, index: Any = None) -> None:
    """Treat a dimension's size (all, without an index) as a constant of each entry."""
    _mark(tensor, "_dynamo_static_indices", range(tensor.dim()) if index is None else index)


def _mark(tensor: Any, name: str, index: Any) -> None:
    """Add dimensions to a set on the tensor, under the name that torch uses."""
    marked = tensor.__dict__.setdefault(name, set())
    marked.update([index] if isinstance(index, int) else index)
