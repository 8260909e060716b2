"""Recorded plans, with a recorder that repeats the plan itself into the results of its first run."""

from __future__ import annotations

import ctypes
import gc
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

import fusee
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


def test_changing_sizes_are_recorded_one_by_one() -> None:
    recorder = FakeRecorder()
    described = {"inputs": [("x", ("float32", "cuda:0", (3,), (1,)))], "changing": True}
    run = RecordedPlan(lambda x: (x * 2,), described, recorder)
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
        (graph([("aten", "zeros", "default", [("device", 0, -1)], [3]), *[KERNEL] * 4]), "on the CPU"),
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
        ([("aten", "add_", "Tensor", [("t", 0), ("t", 1)], [2])], {0}),
        ([("view", 2, 1, [5], [1], 0), ("aten", "mul_", "Tensor", [("t", 2), ("t", 0)], [3])], {1}),
        (
            [
                ("aten", "view", "default", [("t", 0), ("ints", [5])], [2]),
                ("aten", "relu_", "default", [("t", 2)], [3]),
                ("aten", "neg", "default", [("t", 1)], [4]),
                ("aten", "neg_", "default", [("t", 4)], [5]),
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


class PlacingPlan:
    """``affine`` as a plan that can write its result where it is told to."""

    def __init__(self, able: bool = True, obeys: bool = True) -> None:
        self.able = able
        self.obeys = obeys

    def __call__(self, x: Tensor, weight: Tensor) -> Results:
        return x * weight + 1, 7

    def placeable(self) -> tuple[bool, ...]:
        return self.able, False

    def into(self, inputs: Results, places: Results, /) -> Results:
        assert places[1] is None
        if not self.obeys:
            return self(*inputs)
        places[0].copy_(self(*inputs)[0])
        return places[0], 7


class AddressRecorder(FakeRecorder):
    """As on a GPU, what is replayed knows addresses only, and writes there whatever lies there by then."""

    def __init__(self, x: Tensor, weight: Tensor) -> None:
        super().__init__()
        self.inputs = x, weight

    def record(self, run: Callable[[], Results]) -> tuple[Callable[[], None], Results]:
        self.records += 1
        if self.failing and self.records > 1:
            raise RuntimeError("operation not permitted when stream is capturing")
        results = run()
        results[0].fill_(-1)
        address, size = results[0].data_ptr(), results[0].numel() * results[0].element_size()

        def replay() -> None:
            self.replays += 1
            computed = affine(*self.inputs)[0]
            ctypes.memmove(address, computed.data_ptr(), size)

        return replay, results


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[int]], None]:
    """Has new results lie at numbered places, in this order and round again."""
    places = torch.empty(20, 5)

    def allocate(order: list[int]) -> None:
        following = itertools.cycle(order)
        monkeypatch.setattr(torch, "empty_like", lambda _: places[next(following)].detach())

    return allocate


def placing(plan: PlacingPlan) -> tuple[RecordedPlan, AddressRecorder, Tensor, Tensor]:
    x, weight = torch.randn(5), torch.randn(5)
    recorder = AddressRecorder(x, weight)
    described = [("x", metadata(x)), ("weight", metadata(weight))]
    return RecordedPlan(plan, {"inputs": described}, recorder), recorder, x, weight


def call_often(run: RecordedPlan, x: Tensor, weight: Tensor, calls: int) -> list[int]:
    """Checks each call's results; where they lay."""
    found = []
    for _ in range(calls):
        x.normal_()
        value, number = run(x, weight)
        assert torch.equal(value, x * weight + 1) and number == 7
        found.append(value.data_ptr())
    return found


@pytest.mark.parametrize(
    ("order", "calls", "records"),
    [
        ([0], 8, 2),  # the recording's own, and one for the place that comes again
        ([0, 1], 9, 3),
        ([0, 1, 2, 3, 4], 40, 1 + recording.MOST_PLACEMENTS),
        ([*range(20)], 60, 1),  # none comes again while it is remembered
    ],
)
def test_results_are_written_where_new_tensors_lie(
    allocator: Callable[[list[int]], None], order: list[int], calls: int, records: int
) -> None:
    run, recorder, x, weight = placing(PlacingPlan())
    allocator(order)
    addresses = call_often(run, x, weight, calls)
    assert recorder.records == records and recorder.replays == calls - 1
    assert len(set(addresses[1:])) == len(order)


def test_results_that_are_held_do_not_change() -> None:
    """Nothing decides where results lie but torch's allocator."""
    run, _, x, weight = placing(PlacingPlan())
    held, wanted = [], []
    for number in range(40):
        x.normal_()
        wanted.append(x * weight + 1)
        held.append(run(x, weight)[0])
        if number % 3 == 0:
            del held[number // 2], wanted[number // 2]
        assert all(map(torch.equal, held, wanted))


def test_places_are_given_up_where_none_comes_again(
    allocator: Callable[[list[int]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, recorder, x, weight = placing(PlacingPlan())
    allocator([*range(20)])
    call_often(run, x, weight, recording.MOST_MISSES + 3)
    monkeypatch.delattr(torch, "empty_like")  # from now on results are copied as they are
    call_often(run, x, weight, 3)
    assert recorder.records == 1 and run.obstacle is None


@pytest.mark.parametrize("plan", [PlacingPlan(able=False), PlacingPlan(obeys=False)])
def test_plans_that_do_not_place_have_their_results_copied(
    plan: PlacingPlan, allocator: Callable[[list[int]], None]
) -> None:
    run, recorder, x, weight = placing(plan)
    allocator([0])
    call_often(run, x, weight, 6)
    assert recorder.records == 1 + (not plan.obeys) and run.obstacle is None


def test_a_placed_recording_that_fails_leaves_the_first(allocator: Callable[[list[int]], None]) -> None:
    run, recorder, x, weight = placing(PlacingPlan())
    recorder.failing = True
    allocator([0])
    call_often(run, x, weight, 6)
    assert recorder.records == 2 and recorder.replays == 5 and run.obstacle is None


@pytest.mark.parametrize(("dynamic", "changing"), [(True, True), (False, False)])
def test_plans_say_whether_sizes_change(monkeypatch: pytest.MonkeyPatch, dynamic: bool, changing: bool) -> None:
    """What the compiler says is what recording goes by."""
    described: list[Mapping[str, Any]] = []

    def keep(graph: Mapping[str, Any]) -> str:
        described.append(graph)
        return "this is a test"

    monkeypatch.setattr(recording, "obstacle", keep)
    fusee.compile(lambda x: x.sum(0) @ x.t(), mode="reduce-overhead", dynamic=dynamic)(torch.randn(5, 3))
    assert [graph.get("changing", False) for graph in described] == [changing]
