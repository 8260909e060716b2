"""``fusee.explain``: what was compiled, as an object with a readable text."""

from __future__ import annotations

import json
import linecache
from collections.abc import Iterable
from typing import Any

from .host import reports


class Explanation:
    """Reports of the compiles of one call (docs/contracts.md, section 8); ``str()`` is a page to read."""

    def __init__(self, compiles: list[dict[str, Any]], result: Any = None) -> None:
        self.compiles = compiles
        self.result = result

    def _all(self, name: str) -> list[dict[str, Any]]:
        return [item for report in self.compiles for item in report.get(name) or ()]

    @property
    def graphs(self) -> list[dict[str, Any]]:
        """Every graph: name, text, ops, nodes, outputs."""
        return self._all("graphs")

    @property
    def breaks(self) -> list[dict[str, Any]]:
        """Every graph break: id, message, hint and place."""
        return self._all("breaks")

    @property
    def guards(self) -> list[dict[str, Any]]:
        """Every guard: text, reason and the place that caused it."""
        return self._all("guards")

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """Every kernel: name, graph, target, kind, the fused ops, source."""
        return self._all("kernels")

    @property
    def times(self) -> dict[str, int]:
        """Microseconds per stage, summed over the compiles."""
        total: dict[str, int] = {}
        for report in self.compiles:
            for stage, microseconds in (report.get("times") or {}).items():
                total[stage] = total.get(stage, 0) + microseconds
        return total

    @property
    def graph_count(self) -> int:
        """Number of graphs."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """Number of graph breaks."""
        return len(self.breaks)

    @property
    def op_count(self) -> int:
        """Number of operations in all graphs."""
        return sum(int(graph.get("ops") or 0) for graph in self.graphs)

    def json(self) -> str:
        """One line of JSON for each compile, as ``fusee explain`` reads them."""
        return "".join(json.dumps(report, default=str) + "\n" for report in self.compiles)

    def __str__(self) -> str:
        counts = f"{self.graph_count} graphs, {self.op_count} operations, {self.graph_break_count} breaks"
        head = f"{len(self.compiles)} compiles, {counts}"
        return "\n\n".join([head, *map(_page, self.compiles)])

    def __repr__(self) -> str:
        return f"<Explanation: {str(self).partition(chr(10))[0]}>"


def _page(report: dict[str, Any]) -> str:
    sections = (
        _heading(report),
        *map(_graph, report.get("graphs") or ()),
        _breaks(report),
        _guards(report),
        _kernels(report),
    )
    return "\n".join(section for section in (*sections, _times(report)) if section)


def _heading(report: dict[str, Any]) -> str:
    function = report.get("function") or {}
    resumed = f", from line {function['resumes_at']} on" if function.get("resumes_at") else ""
    line = f"{function.get('name', '?')} ({function.get('file', '?')}:{function.get('line', 0)}{resumed})"
    reason = report.get("reason")
    plain = f"\nruns as plain Python: {reports.break_text(reason)}" if isinstance(reason, dict) else ""
    return line + "\n" + "=" * len(line) + plain


def _graph(graph: dict[str, Any]) -> str:
    head = f"graph {graph.get('name')} ({graph.get('ops')} operations)"
    kept, drawn = _kept(graph.get("training") or {}), _drawn(graph.get("random") or ())
    return "\n".join([head, _indented(str(graph.get("text", ""))), *drawn, *kept])


def _drawn(draws: Iterable[dict[str, Any]]) -> list[str]:
    """Where the random numbers of a graph come from."""
    lines = [f"    line {draw['line']}: {draw['from']}" for draw in draws]
    return ["  random numbers", *lines] if lines else []


def _kept(training: dict[str, Any]) -> list[str]:
    """What the forward part of a graph keeps for the backward part, and why."""
    lines = [
        f"    {value['name']}: {value['type']}, {value['bytes']} bytes {_in_brackets(value.get('why'))}"
        for value in training.get("kept") or ()
    ]
    return ["  kept for backward", *lines] if lines else []


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.rstrip("\n").splitlines())


def _breaks(report: dict[str, Any]) -> str:
    return "\n".join(f"break: {reports.break_text(item)}" for item in report.get("breaks") or ())


def _guards(report: dict[str, Any]) -> str:
    lines = []
    for number, guard in enumerate(report.get("guards") or ()):
        place = f"  line {guard['line']}: {_source(guard)}" if guard.get("line") else ""
        lines.append(f"  {number}: {guard.get('text')} {_in_brackets(guard.get('reason'))}{place}")
    return "\n".join(["guards", *lines]) if lines else ""


def _in_brackets(text: Any) -> str:
    return f"({text})" if text else ""


def _source(place: dict[str, Any]) -> str:
    """The text of a place's line, read here where the compiler did not ask for it."""
    return str(place.get("source") or linecache.getline(str(place.get("file")), place["line"])).strip()


def _kernels(report: dict[str, Any]) -> str:
    lines = [
        f"  {kernel.get('name')} ({kernel.get('target')}, {kernel.get('kind')}): {', '.join(kernel.get('ops') or ())}"
        for kernel in report.get("kernels") or ()
    ]
    return "\n".join(["kernels", *lines]) if lines else ""


def _times(report: dict[str, Any]) -> str:
    spent = ", ".join(
        f"{stage} {microseconds / 1000:.1f} ms" for stage, microseconds in (report.get("times") or {}).items()
    )
    return f"times: {spent}" if spent else ""
