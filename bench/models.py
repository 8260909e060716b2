"""Runs whole models of transformers and timm compiled and eager, and writes what came of it as a table.

Each model is randomly initialised, shrunk, and runs on the CPU. Forward in eval mode is compared with eager in float64:
the compiled error may be four times eager's own, and a few units in the last place. Training compares the losses of
steps of SGD from the same seed. Where those part, as rounding alone makes some models do, the gradients of single steps
are compared with eager in float64 from the same parameters.

usage: models.py [MODEL ...] [--steps N] [--torch-compile] [--write docs/models.md]
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.metadata
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import fusee
from zoo import MODELS, Entry, Inputs, missing_packages

Model = Callable[..., Any]
COMPARED = 6  # steps that are compared with float64, which takes several times longer
HEADS = ["model", "mode", "graphs", "breaks", "plans", "agrees", "difference", "first call", "a call", "eager"]
BESIDE = ["torch.compile: graphs", "breaks", "first call", "a call"]


def results(entry: Entry, model: Model, inputs: Inputs) -> Any:
    """The model's result: models of timm take the image alone."""
    return model(inputs["pixel_values"]) if entry.package == "timm" else model(**inputs)


def scores(result: Any) -> torch.Tensor:
    """What a model computes, in float64."""
    found = result if isinstance(result, torch.Tensor) else result.logits
    return found.detach().double()


def loss(entry: Entry, model: Model, inputs: Inputs) -> torch.Tensor:
    """The loss of a training step."""
    if entry.package == "timm":
        return torch.nn.functional.cross_entropy(results(entry, model, inputs), inputs["labels"])
    found: torch.Tensor = results(entry, model, inputs).loss
    return found


def seconds(call: Callable[[], object]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def milliseconds(time: float) -> str:
    """A time in seconds as the table shows it."""
    return f"{1e3 * time:.1f} ms"


def beside(run: Callable[[], list[float]]) -> list[str]:
    """What torch.compile makes of calls: ``run`` does them and gives the seconds of each."""
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    times = run()
    graphs, breaks = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())
    return [str(graphs), str(breaks), milliseconds(times[0]), milliseconds(statistics.median(times))]


def row(name: str, mode: str, found: Any, agrees: str, difference: float, times: list[float]) -> list[str]:
    """One row of the table; ``found`` is an Explanation."""
    plans = sum("why" not in graph for graph in found.graphs)
    reasons = sorted({f"{one['id']} ({one['source'].strip()})" for one in found.breaks})
    broken = f"{len(found.breaks)}: {', '.join(reasons)}" if reasons else "0"
    shown = [milliseconds(one) for one in times]
    return [
        name,
        mode,
        str(len(found.graphs)),
        broken,
        f"{plans} of {len(found.graphs)}",
        agrees,
        f"{difference:.1e}",
        *shown,
    ]


def forward(name: str, entry: Entry, chosen: argparse.Namespace) -> list[str]:
    """The row of a forward in eval mode."""
    torch.manual_seed(0)
    model = entry.make(True).eval()
    inputs = {key: value for key, value in entry.inputs().items() if key not in entry.unseen}
    exact = {key: value.double() if value.is_floating_point() else value for key, value in inputs.items()}

    def timed(called: Model) -> list[float]:
        return [seconds(lambda: results(entry, called, inputs)) for _ in range(chosen.calls + 1)]

    with torch.no_grad():
        reference = scores(results(entry, copy.deepcopy(model).double(), exact))
        eager = scores(results(entry, model, inputs))
        compiled = fusee.compile(model)
        first, *warm = timed(compiled)
        found = scores(results(entry, compiled, inputs))
        plain = timed(model)[1:]
        explained = results(entry, fusee.explain(model), inputs)
        others = beside(lambda: timed(torch.compile(model))) if chosen.torch_compile else []
    difference, own = float((found - reference).abs().max()), float((eager - reference).abs().max())
    agrees = answer(difference <= allowed(own, float(reference.abs().max())))
    times = [first, statistics.median(warm), statistics.median(plain)]
    return row(name, "eval", explained, agrees, difference, times) + others


def answer(agrees: bool) -> str:
    """How the table says it."""
    return "yes" if agrees else "**no**"


def allowed(own: float, size: float) -> float:
    """The error that compiled code in float32 may have where eager's own is ``own`` and the exact result's ``size``."""
    return 4 * own + 16 * torch.finfo(torch.float32).eps * size


def train(entry: Entry, wrap: Callable[[Model], Model], dropout: bool, steps: int) -> tuple[list[float], list[float]]:
    """Losses and seconds of some steps."""
    torch.manual_seed(0)
    model = entry.make(dropout).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    wrapped = wrap(model)
    losses, times = [], []
    for _ in range(steps):
        inputs = entry.inputs()
        start = time.perf_counter()
        optimizer.zero_grad()
        value = loss(entry, wrapped, inputs)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        times.append(time.perf_counter() - start)
        losses.append(float(value.detach()))
    return losses, times


def converted(inputs: Inputs, dtype: torch.dtype) -> Inputs:
    """The inputs with floating-point numbers of a type."""
    return {key: value.to(dtype) if value.is_floating_point() else value for key, value in inputs.items()}


def gradients(
    entry: Entry, model: Any, wrapped: Model, inputs: Inputs, state: torch.Tensor
) -> tuple[float, torch.Tensor]:
    """The loss and, as float64 and one after another, the gradients of all parameters; ``state`` is the generator's."""
    torch.set_rng_state(state)
    model.zero_grad()
    value = loss(entry, wrapped, converted(inputs, next(model.parameters()).dtype))
    value.backward()  # type: ignore[no-untyped-call]
    found = [one.grad.double().flatten() for one in model.parameters() if one.grad is not None]
    return float(value.detach()), torch.cat(found)


def step_exactly(model: Any, exact: Any) -> None:
    """A step of SGD of the model in float64, rounded to float32, so that both have the same parameters."""
    with torch.no_grad():
        for one, precise in zip(model.parameters(), exact.parameters(), strict=True):
            if precise.grad is not None:
                one.copy_(precise - 0.01 * precise.grad)
            precise.copy_(one)


def against_float64(entry: Entry, dropout: bool, steps: int) -> tuple[bool, list[float]]:
    """Whether the gradients of steps agree with float64's as eager's do, and the losses of training in float64.

    Each step begins with the same parameters, inputs and random numbers in eager, compiled and exact training, so that
    no error of one step is amplified by the next. The error of all gradients together may be four times eager's own.
    """
    torch.manual_seed(0)
    model = entry.make(dropout).train()
    exact, compiled = copy.deepcopy(model).double(), fusee.compile(model)
    agrees, losses = True, []
    for _ in range(steps):
        inputs, state = entry.inputs(), torch.get_rng_state()
        value, reference = gradients(entry, exact, exact, inputs, state)
        eager = gradients(entry, model, model, inputs, state)[1]
        found = gradients(entry, model, compiled, inputs, state)[1]
        own, size = float((eager - reference).norm()), float(reference.norm())
        agrees = agrees and float((found - reference).norm()) <= allowed(own, size)
        losses.append(value)
        step_exactly(model, exact)
    return agrees, losses


def agreement(entry: Entry, dropout: bool, expected: list[float], difference: float) -> str:
    """Whether training agrees, and how far eager itself is from float64 where rounding alone parts the losses."""
    if difference <= 1e-4 * max(map(abs, expected)):
        return answer(True)
    agrees, exact = against_float64(entry, dropout, min(COMPARED, len(expected)))
    own = max(abs(one - other) for one, other in zip(expected, exact, strict=False))
    return f"{answer(agrees)}, by step (eager's losses from float64's: {own:.1e})"


def training(name: str, entry: Entry, dropout: bool, chosen: argparse.Namespace) -> list[str]:
    """The row of training; torch.compile, whose dropout draws other numbers, is seen without."""
    mode = "training, dropout" if dropout else "training"
    expected, plain = train(entry, lambda model: model, dropout, chosen.steps)
    found, times = train(entry, fusee.compile, dropout, chosen.steps)
    torch.manual_seed(0)
    explained = results(entry, fusee.explain(entry.make(dropout).train()), entry.inputs())
    difference = max(abs(one - other) for one, other in zip(expected, found, strict=True))
    agrees = agreement(entry, dropout, expected, difference)
    others: list[str] = []
    if chosen.torch_compile:
        others = [""] * len(BESIDE) if dropout else beside(lambda: train(entry, torch.compile, False, chosen.steps)[1])
    measured = [times[0], statistics.median(times), statistics.median(plain)]
    return row(name, mode, explained, agrees, difference, measured) + others


def rows_of(name: str, chosen: argparse.Namespace) -> list[list[str]]:
    """All rows of one model."""
    fusee.reset()
    rows = [forward(name, MODELS[name], chosen)]
    for dropout in (False, True):
        fusee.reset()
        rows.append(training(name, MODELS[name], dropout, chosen))
    return rows


def page(rows: list[list[str]], steps: int) -> str:
    """docs/models.md"""
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", "timm"))
    heads = HEADS + BESIDE * (len(rows[0]) > len(HEADS))
    lines = [heads, ["---"] * len(heads), *rows]
    table = "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)
    explanation = (
        "Models are randomly initialised and shrunk, and share the machine with other work. Of eval, the result\n"
        "agrees where its difference from eager in float64 is at most four times eager's own; of training, where\n"
        f"the losses of {steps} steps of SGD from the same seed are eager's up to 1e-4 of the largest. Where they\n"
        "are not, as eager in float32 itself parts from eager in float64 then, steps from the same parameters are\n"
        "compared: the gradients of each must differ from float64's at most four times as far as eager's do. Rates\n"
        "of dropout are 0, or the model's own where it says dropout. Plans are the graphs that Python does not run\n"
        "node by node. Calls of training are whole steps, of which forward is compiled; breaks of torch.compile are\n"
        "those that it counts."
    )
    title = (
        f"Written by `bench/models.py` on {datetime.date.today()}: {packages}, CPU, threads: {torch.get_num_threads()}."
    )
    return f"# Models\n\n{title}\n{explanation}\n\n{table}"


def main() -> None:
    """Runs the models of the command line, all by default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names; all by default")
    parser.add_argument("--steps", type=int, default=20, help="steps of training")
    parser.add_argument("--calls", type=int, default=9, help="calls that are timed")
    parser.add_argument("--torch-compile", action="store_true", help="show what torch.compile makes of it too")
    parser.add_argument("--write", type=Path, help="the page to write")
    chosen = parser.parse_args()
    if missing := missing_packages():
        sys.exit(f"nothing was run: {' and '.join(missing)} must be installed")
    if unknown := [name for name in chosen.models if name not in MODELS]:
        sys.exit(f"no model is called {', '.join(unknown)}; there are {', '.join(MODELS)}")
    rows: list[list[str]] = []
    for name in chosen.models or MODELS:
        rows += rows_of(name, chosen)
        print("\n".join(" | ".join(line) for line in rows[-3:]), flush=True)
        if chosen.write:
            chosen.write.write_text(page(rows, chosen.steps))


if __name__ == "__main__":
    main()
