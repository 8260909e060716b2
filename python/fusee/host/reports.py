"""Reports of compiles: counting, logging, and handing them to whoever listens (docs/contracts.md, section 8)."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import logs, settings, warn
from . import connection, slots
from .records import Target

Report = dict[str, Any]

COUNTS: Counter[str] = Counter()
_STATE = -2  # number of the failed guard where grad mode or the like differs
_PLAIN_VALUES = (type(None), bool, int, float, complex, str, bytes)


def opened(report: Report) -> Report:
    """The report with its bulky parts, which the compiler writes as bytes since few are ever looked at."""
    details = report.get("details")
    if details is not None:
        report.update(connection.unmarshal(details))
        report.pop("details", None)
    return report


def broke(report: Report) -> bool:
    """Whether the capture stopped before the function did.

    Where an exception leaves it, Python raises that; where ``torch.cond`` takes one of two ways, each is captured when
    it is taken.
    """
    breaks = [item for item in report.get("breaks") or () if item.get("id") not in ("exception", "conditional")]
    return bool(breaks) or report.get("action") == "plain"


def value_text(value: Any) -> str:
    """A found value as text, without running its ``repr``: constants, tensor shapes, types of the rest."""
    if value is slots.ABSENT or value is Ellipsis:
        return "nothing"
    if type(value) in _PLAIN_VALUES:
        text = repr(value)
        return text if len(text) <= 80 else text[:77] + "..."
    if slots.is_a(value, _tensor_class()):
        return _tensor_text(value)
    return f"<{slots.module_name(type(value))}.{slots.qualname(type(value))}>"


def _tensor_class() -> type:
    from .tensors import tensor_class

    return tensor_class()


def _tensor_text(tensor: Any) -> str:
    from .tensors import metadata

    dtype, device, sizes, strides, _, requires_grad, _ = metadata(tensor)
    grad = " requires_grad" if requires_grad else ""
    return f"{dtype}{list(sizes)} strides {list(strides)} {device}{grad}"


def guard_text(report: Report, number: int) -> str:
    """Text of a guard by its number."""
    return str(_guard(report, number)["text"])


def _guard(report: Report, number: int) -> Report:
    guards = opened(report).get("guards") or []
    if 0 <= number < len(guards):
        return {"text": f"guard {number}", **guards[number]}
    return {"text": "torch's global state is the same" if number == _STATE else f"guard {number}"}


def _expected(text: str) -> str:
    """What a guard compares with, or the whole guard where it compares with nothing."""
    for sign in (" == ", " is "):
        _, found, value = text.rpartition(sign)
        if found:
            return value
    return text


def _failed(entry: int, report: Report, number: int, value: Any) -> Report:
    guard = _guard(report, number)
    guard.pop("reason", None)
    if number == _STATE:
        guard["text"] = f"torch's {value} is the same"
        return {**guard, "entry": entry, "guard": number, "old": "", "new": "another"}
    return {
        **guard,
        "entry": entry,
        "guard": number,
        "old": _expected(guard["text"]),
        "new": value_text(value),
    }


def note_recompile(target: Target, failures: Iterable[tuple[Any, int, Any]]) -> None:
    """Remember which guards failed, for the report, the log, and the warning at the limit."""
    failed = [
        _failed(index, entry.report or {}, number, value) for index, (entry, number, value) in enumerate(failures)
    ]
    target.recompile = {"failed": failed} if failed else None
    if failed:
        target.last_missed = f"{failed[0]['text']} (found {failed[0]['new']})"
        lines = [f"  entry {item['entry']}: {item['text']} failed: found {item['new']}" for item in failed]
        title = f"recompiling {target.name} ({target.place}):"
        logs.log("recompiles", "\n".join([title, *lines]), target.options.changed)


def finish(target: Target, result: dict[str, Any], started: float) -> None:
    """Count, log and hand out the report of a compile that ended at ``started`` seconds of perf_counter ago."""
    report: Report = result.get("report") or {}
    report.setdefault("times", {})["total"] = int((time.perf_counter() - started) * 1e6)
    report["recompile"] = target.recompile
    COUNTS["graphs"] += len(result.get("graphs") or ())
    COUNTS["breaks"] += len(report.get("breaks") or ())
    COUNTS["recompiles"] += target.recompile is not None
    if target.options.listener is not None:
        target.options.listener.append(opened(report))
    _log(report, result, target.options.changed)
    _write(report, settings.text("explain_out", target.options.changed))


def _write(report: Report, path: str) -> None:
    """One line of JSON with one write, as forked children append to the same file."""
    if not path:
        return
    line = json.dumps(opened(report), default=str) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        warn.once("explain_out", f"the report could not be written: {error}")


def place_text(place: Mapping[str, Any]) -> str:
    """File and line, the source line, and a caret under the expression."""
    head = f"{place.get('file', '?')}:{place.get('line', 0)}"
    source = str(place.get("source") or "")
    if not source:
        return head
    return f"{head}\n    {source.strip()}\n    {_caret(place, source)}".rstrip()


def _caret(place: Mapping[str, Any], source: str) -> str:
    start, end = place.get("column", -1), place.get("end_column", -1)
    if start < 0:
        return ""
    data = source.encode("utf-8", "surrogatepass")
    same_line = place.get("end_line") in (None, place.get("line"))
    stop = end if same_line and end > start else len(data)
    indent = len(source) - len(source.lstrip())
    before = len(data[:start].decode("utf-8", "replace"))
    width = len(data[start:stop].decode("utf-8", "replace"))
    return " " * max(before - indent, 0) + "^" * max(width, 1)


def break_text(item: Mapping[str, Any]) -> str:
    """A graph break as a person reads it."""
    hint = f"\n  hint: {item['hint']}" if item.get("hint") else ""
    return f"{item.get('message', 'graph break')} [{item.get('id', '?')}]\n  {place_text(item)}{hint}".replace(
        "\n    ", "\n      "
    )


def fullgraph_message(report: Report) -> str:
    """The message of Unsupported: the first break, with place, caret, reason id and hint."""
    breaks = report.get("breaks") or []
    first = breaks[0] if breaks else report.get("reason")
    return (
        break_text(first)
        if isinstance(first, Mapping)
        else str(first or "the function cannot be captured as one graph")
    )


def _log(report: Report, result: dict[str, Any], options: Mapping[str, settings.Value]) -> None:
    name = (report.get("function") or {}).get("name", "?")
    for artifact, texts in _LOGGED.items():
        if logs.enabled(artifact, options):  # the texts of a large function take a while to write
            for text in texts(name, opened(report)):
                logs.log(artifact, text, options)
    _log_code(name, result, options)


def _break_texts(name: str, report: Report) -> list[str]:
    return [f"graph break in {name}: {break_text(item)}" for item in report.get("breaks") or ()]


def _guard_texts(name: str, report: Report) -> list[str]:
    lines = [
        f"  {number}: {guard.get('text')}  # {guard.get('reason', '')}"
        for number, guard in enumerate(report.get("guards") or ())
    ]
    return ["\n".join([f"guards of {name}:", *lines])] if lines else []


def _graph_codes(name: str, report: Report) -> list[str]:
    return [f"{graph.get('name')} of {name}:\n{graph.get('text', '')}" for graph in report.get("graphs") or ()]


def _graph_tables(name: str, report: Report) -> list[str]:
    graphs = report.get("graphs") or ()
    return [f"{graph.get('name')} of {name}:\n{_table(graph.get('nodes') or ())}" for graph in graphs]


def _kernel_sources(name: str, report: Report) -> list[str]:
    del name
    kernels = report.get("kernels") or ()
    return [f"{kernel.get('name')}:\n{kernel['source']}" for kernel in kernels if kernel.get("source")]


_LOGGED: Mapping[str, Callable[[str, Report], list[str]]] = {
    "graph_breaks": _break_texts,
    "guards": _guard_texts,
    "graph_code": _graph_codes,
    "graph": _graph_tables,
    "output_code": _kernel_sources,
}


def _table(nodes: Iterable[Mapping[str, Any]]) -> str:
    rows = [(str(node.get("name")), str(node.get("target")), ", ".join(node.get("inputs") or ())) for node in nodes]
    return "\n".join(f"  {name:<24} {target:<32} {inputs}".rstrip() for name, target, inputs in rows)


def _log_code(name: str, result: dict[str, Any], options: Mapping[str, settings.Value]) -> None:
    if logs.enabled("bytecode", options) and result.get("code") is not None:
        import dis

        logs.log("bytecode", f"{name}:\n{dis.Bytecode(result['code']).dis()}", options)
