"""Recorded plans, with a recorder that repeats the plan itself into the results of its first run."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fusee import _shim
from fusee.host import recording, tensors
from fusee.host.recording import RecordedPlan

Results = tuple[Any, ...]


@pytest.fixture(autouse=True)
def calibrated() -> None:
    """Plans are recorded by what compiles them, which has done this."""
    _shim.calibrate(torch)


class FakeRecorder:
    """Replays by running the plan on the recorded places; the memory of results stays the same, as on a GPU."""

    def __init__(self) -> None:
        self.now: object = "stream"
        self.busy = False
        self.failing = False
        self.records = 0
        self.replays = 0

    def stream(self) -> object:
        return self.now

    def recording(self) -> bool:
        return self.busy

    def record(self, run: Callable[[], Results]) -> tuple[Callable[[], None], Results]:
        if self.failing:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.records += 1
        results = run()

        def replay() -> None:
            self.replays += 1
            for kept, fresh in zip(results, run(), strict=True):
                if isinstance(kept, Tensor) and kept is not fresh:
                    kept.copy_(fresh)

        for result in results:
            if isinstance(result, Tensor) and result._base is None:
                result.detach().fill_(-1)  # recording computes nothing
        return replay, results


def metadata(tensor: Tensor) -> tuple[Any, ...]:
    return ("float32", "cuda:0", tuple(tensor.shape), tuple(tensor.stride()), 0, False, 2)


def recorded(plan: Callable[..., Results], *inputs: Any) -> tuple[RecordedPlan, FakeRecorder]:
    described = [("x", metadata(value) if isinstance(value, Tensor) else ("int",)) for value in inputs]
    recorder = FakeRecorder()
    return RecordedPlan(plan, {"inputs": described}, recorder), recorder


def affine(x: Tensor, weight: Tensor) -> Results:
    return (x * weight + 1,)


def test_inputs_that_stay_are_not_copied_and_those_that_move_are() -> None:
    x, weight = torch.randn(5), torch.randn(5)
    run, recorder = recorded(affine, x, weight)
    for _ in range(4):
        x.normal_()
        assert torch.equal(run(x, weight)[0], x * weight + 1)
    assert recorder.records == 1 and recorder.replays == 3
    kept = [torch.randn(5) for _ in range(4)]
    for other in kept:
        assert torch.equal(run(other, weight)[0], other * weight + 1)
    assert recorder.records == 2 and recorder.replays == 7 and run.obstacle is None
    weight.add_(1)
    assert torch.equal(run(x, weight)[0], x * weight + 1)
    assert recorder.records == 2


def test_results_do_not_change_later() -> None:
    x, weight = torch.randn(5), torch.randn(5)
    run, _ = recorded(affine, x, weight)
    results, wanted = [], []
    for _ in range(5):
        x.normal_()
        wanted.append(x * weight + 1)
        results.append(run(x, weight)[0])
    assert all(map(torch.equal, results, wanted))


def test_results_that_are_inputs_and_numbers() -> None:
    x = torch.randn(5)
    run, recorder = recorded(lambda x, n: (x, x + n, n), x, 3)
    for n in (3, 3, 4, 4, 3):
        same, added, number = run(x, n)
        assert same is x and torch.equal(added, x + n) and number == n
    assert recorder.records == 2  # one for each number


def test_each_stream_has_its_own() -> None:
    x, weight = torch.randn(5), torch.randn(5)
    run, recorder = recorded(affine, x, weight)
    run(x, weight), run(x, weight)
    recorder.now = "other"
    run(x, weight), run(x, weight)
    assert recorder.records == 2
    recorder.busy = True
    assert torch.equal(run(x, weight)[0], affine(x, weight)[0])
    assert recorder.replays == 2


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (lambda x: (x[1:],), "shares memory"),
        (lambda x: (lambda y: (y, y[1:]))(x + 1), "shares memory"),
        (lambda x: (torch.empty(10)[::2].copy_(x),), "gaps"),
    ],
)
def test_results_that_cannot_be_copied_out(plan: Callable[..., Results], reason: str) -> None:
    x = torch.randn(5)
    run, _ = recorded(plan, x)
    for _ in range(4):
        for got, want in zip(run(x), plan(x), strict=True):
            assert torch.equal(got, want)
    assert run.obstacle is not None and reason in run.obstacle


def test_a_failed_recording_leaves_the_plan() -> None:
    x, weight = torch.randn(5), torch.randn(5)
    run, recorder = recorded(affine, x, weight)
    recorder.failing = True
    for _ in range(3):
        assert torch.equal(run(x, weight)[0], affine(x, weight)[0])
    assert run.obstacle == "operation not permitted when stream is capturing" and gc.isenabled()


def test_symbolic_sizes_are_recorded_one_by_one() -> None:
    recorder = FakeRecorder()
    run = RecordedPlan(lambda x: (x * 2,), {"inputs": [("x", ("float32", "cuda:0", (None,), (1,)))]}, recorder)
    buffer = torch.randn(5)
    for size in (3, 3, 5, 5, 3):
        x = buffer[:size]
        assert torch.equal(run(x)[0], x * 2)
    assert recorder.records == 2 and recorder.replays == 3


ALLOC = ("alloc", 2, 6, 1, 0, [5], [1])
KERNEL: tuple[Any, ...] = ("kernel", 0, [0, 2], [], 5)


def graph(
    steps: list[Any], kind: str = "cuda", device: str = "cuda:0", mutates: bool = False, flags: int = 0
) -> dict[str, Any]:
    plan = {"steps": steps, "kernels": [(kind, "k", b"")]}
    return {"inputs": [("x", ("float32", device, (5,), (1,), 0, False, flags))], "mutates": mutates, "plan": plan}


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        (graph([ALLOC, *[KERNEL] * 4]), None),
        (graph([ALLOC, KERNEL]), "fewer than 4 launches"),
        (graph([KERNEL] * 4, kind="cpu"), "on the CPU"),
        (graph([("alloc", 2, 6, 0, -1, [5], [1]), *[KERNEL] * 4]), "on the CPU"),
        (graph([("aten", "aten::zeros", "", [("device", 0, -1)], [3]), *[KERNEL] * 4]), "on the CPU"),
        (graph([KERNEL] * 4, device="cpu"), "not all on one GPU"),
        (graph([*[KERNEL] * 4, ("written", 0)], mutates=True), None),
        (graph([KERNEL] * 4, mutates=True, flags=tensors.INFERENCE), "in place"),
    ],
)
def test_what_is_not_recorded_at_all(described: dict[str, Any], reason: str | None) -> None:
    found = recording.obstacle(described)
    assert found == reason if reason is None else found is not None and reason in found


def test_addresses_are_those_of_the_elements() -> None:
    tensor = torch.arange(12.0)
    values = (tensor, 3, tensor[5:], torch.empty(0))
    found = memoryview(_shim.addresses(values, (0, 2))).cast("Q")
    assert list(found) == [tensor.data_ptr(), tensor[5:].data_ptr()]
    assert _shim.addresses(values, ()) == b""
    for numbers in ((1,), (4,), (-1,), ("x",)):
        with pytest.raises(TypeError):
            _shim.addresses(values, numbers)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "written"),
    [
        ([("written", 1)], {1}),
        ([("aten", "aten::add_", "Tensor", [("t", 0), ("t", 1)], [2])], {0}),
        ([("view", 2, 1, [5], [1], 0), ("aten", "aten::mul_", "Tensor", [("t", 2), ("t", 0)], [3])], {1}),
        (
            [
                ("aten", "aten::view", "", [("t", 0), ("ints", [5])], [2]),
                ("aten", "aten::relu_", "", [("t", 2)], [3]),
                ("aten", "aten::neg", "", [("t", 1)], [4]),
                ("aten", "aten::neg_", "", [("t", 4)], [5]),
            ],
            {0},
        ),
    ],
)
def test_inputs_that_a_plan_writes(steps: list[Any], written: set[int]) -> None:
    described = graph(steps, mutates=True)
    described["inputs"] *= 2
    assert recording.written_inputs(described) == frozenset(written)


class WritingRecorder(FakeRecorder):
    """Recording computes nothing: what a plan wrote to its arguments while it was recorded is taken back."""

    def __init__(self, kept: list[Tensor]) -> None:
        super().__init__()
        self.kept = kept

    def record(self, run: Callable[[], Results]) -> tuple[Callable[[], None], Results]:
        before = [tensor.clone() for tensor in self.kept]
        recorded = super().record(run)
        for tensor, value in zip(self.kept, before, strict=True):
            tensor.detach().copy_(value)
        return recorded


def accumulate(x: Tensor, total: Tensor) -> Results:
    total.detach().add_(x)
    return total, x * 2


def writing(total: Tensor) -> tuple[RecordedPlan, WritingRecorder]:
    recorder = WritingRecorder([total])
    described = graph([("written", 1)], mutates=True)
    described["inputs"] *= 2
    return RecordedPlan(accumulate, described, recorder), recorder


def test_inputs_are_written_once_and_count_it() -> None:
    x, total, wanted = torch.randn(5), torch.zeros(5), torch.zeros(5)
    run, recorder = writing(total)
    for _ in range(4):
        x.normal_()
        wanted += x
        version = total._version
        same, doubled = run(x, total)
        assert same is total and torch.equal(total, wanted) and torch.equal(doubled, x * 2)
        assert total._version > version
    assert recorder.records == 1 and recorder.replays == 3


def test_written_inputs_that_move_are_copied_back() -> None:
    x = torch.randn(5)
    run, recorder = writing(torch.zeros(5))
    totals = [torch.ones(5, requires_grad=True) for _ in range(5)]
    for total in totals:
        recorder.kept = [total]
        with torch.no_grad():
            same, _ = run(x, total)
        assert same is total and torch.equal(total.detach(), 1 + x) and total._version > 0
    assert recorder.records == 2 and run.obstacle is None


def test_memory_that_is_copied_and_written_is_left_to_the_plan() -> None:
    run, recorder = writing(torch.zeros(5))
    for _ in range(4):
        memory = torch.ones(10)
        recorder.kept = [memory[:5]]
        run(memory[5:], memory[:5])
        want = torch.ones(10)
        want[:5] += 1
        assert torch.equal(memory, want)
    assert run.obstacle is not None and "shares memory" in run.obstacle
