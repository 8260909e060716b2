"""compile requests, results and entries, with the fake compiler."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fusee

Use = Callable[..., None]
Caught = list[Any]


def f(x: Any, y: Any) -> Any:
    z = x + y
    return torch.relu(z) * 2


def arguments(count: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(-1, 1, count), torch.full((count,), 0.25)


def check(compiled: Callable[..., Any], *values: Any) -> None:
    torch.testing.assert_close(compiled(*values), f(*values), rtol=0, atol=0)


def test_graph_runs_in_python_and_compiles_once(scenario: Use) -> None:
    scenario("seed")
    fast = fusee.compile(f)
    check(fast, *arguments())
    check(fast, *arguments())
    assert fusee.stats() == {"graphs": 1, "recompiles": 0, "breaks": 0}


def test_other_shape_compiles_again(scenario: Use) -> None:
    scenario("seed")
    fast = fusee.compile(f)
    check(fast, *arguments(4))
    check(fast, *arguments(5))
    check(fast, *arguments(4))
    assert fusee.stats() == {"graphs": 2, "recompiles": 1, "breaks": 0}


def test_gradients_flow_through_a_python_graph(scenario: Use) -> None:
    scenario("seed")
    x, y = (value.requires_grad_() for value in arguments())
    fusee.compile(f)(x, y).sum().backward()
    found = x.grad
    x.grad = None
    f(x, y).sum().backward()
    torch.testing.assert_close(found, x.grad, rtol=0, atol=0)


def test_grad_mode_is_a_guard_of_its_own(scenario: Use) -> None:
    scenario("same")
    fast = fusee.compile(f)
    check(fast, *arguments())
    with torch.no_grad():
        check(fast, *arguments())
    assert len(fast.record.entries) == 2
    (failed,) = fast.record.entries[0].report["recompile"]["failed"]
    assert (failed["guard"], failed["text"]) == (-2, "torch's grad mode is the same")


def test_function_objects_of_one_code_share_entries(scenario: Use) -> None:
    scenario("same")

    def make(step: int) -> Any:
        def inner(x: Any, y: Any) -> Any:
            return x + y

        return inner

    for step in range(3):
        check_sum = fusee.compile(make(step))(*arguments())
        torch.testing.assert_close(check_sum, sum(arguments()))
    assert fusee.stats()["recompiles"] == 0


def test_continuation_is_compiled_and_shared(scenario: Use) -> None:
    scenario("continued")
    fast = fusee.compile(lambda x, y: (x + y) * 2)
    for count in (4, 5):
        x, y = arguments(count)
        torch.testing.assert_close(fast(x, y), (x + y) * 2)
        torch.testing.assert_close(fast(x, y), (x + y) * 2)
    assert fusee.stats() == {"graphs": 0, "recompiles": 2, "breaks": 2}


def test_fullgraph_raises_with_place_caret_and_hint(scenario: Use) -> None:
    scenario("continued")
    with pytest.raises(fusee.Unsupported) as error:
        fusee.compile(f, fullgraph=True)(*arguments())
    text = str(error.value)
    assert "print was called [print]" in text
    assert "hint: do not" in text
    assert f"{__file__}:" in text
    lines = text.splitlines()
    source = next(index for index, line in enumerate(lines) if line.strip() == "print(z)")
    assert lines[source + 1].index("^") == lines[source].index("print")
    assert lines[source + 1].strip() == "^^^^"


def test_plain_action_runs_the_original_for_good(scenario: Use, caught: Caught) -> None:
    scenario("plain")
    fast = fusee.compile(f)
    check(fast, *arguments(4))
    check(fast, *arguments(5))
    assert fast.record.state == "plain"
    assert not caught


def test_limit_of_entries_warns_once_with_the_guard(scenario: Use, caught: Caught) -> None:
    scenario("same", FUSEE_ENTRY_LIMIT="3")
    fast = fusee.compile(f)
    for count in range(1, 8):
        check(fast, *arguments(count))
    assert len(fast.record.entries) == 3
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "guard on parameter 0" in text
    assert "float32[4]" in text


def test_wrong_arguments_raise_the_original_error(scenario: Use) -> None:
    scenario("same")
    fast = fusee.compile(f)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        fast(torch.ones(1))


def test_exceptions_are_the_users(scenario: Use) -> None:
    scenario("same")
    with pytest.raises(RuntimeError, match="must match the size"):
        fusee.compile(f)(torch.ones(2), torch.ones(3))


def test_threads_get_right_results_and_one_compile(scenario: Use, tmp_path: Path) -> None:
    scenario("slow")
    reports = tmp_path / "reports"
    fast = fusee.compile(f, options={"explain_out": str(reports)})
    wrong: list[BaseException] = []
    barrier = threading.Barrier(6)

    def run(seed: int) -> None:
        try:
            barrier.wait()
            check(fast, *(value * seed for value in arguments()))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(fast.record.entries) == 1
    assert len(reports.read_text().splitlines()) == 1


def test_reset_drops_entries_and_counts(scenario: Use) -> None:
    scenario("seed")
    fast = fusee.compile(f)
    check(fast, *arguments())
    fusee.reset()
    assert fusee.stats() == {"graphs": 0, "recompiles": 0, "breaks": 0}
    assert not fast.record.entries
    check(fast, *arguments())
    assert fusee.stats()["graphs"] == 1


def test_questions_are_answered(scenario: Use, caught: Caught) -> None:
    scenario("questions")
    check(fusee.compile(f), *arguments())
    assert not caught


def test_explain_reports_and_returns_the_result(scenario: Use) -> None:
    scenario("seed")
    explanation = fusee.explain(f)(*arguments())
    torch.testing.assert_close(explanation.result, f(*arguments()))
    assert explanation.graph_count == 1 and explanation.op_count == 3
    text = str(explanation)
    assert "1 graphs, 3 operations, 0 breaks" in text
    assert "guard on parameter 0" in text
    assert "total" in explanation.times
