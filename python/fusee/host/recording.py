"""``mode="reduce-overhead"``: a launch plan recorded as a CUDA graph, which the driver launches as a whole.

A recording holds the addresses of its inputs. As long as a call's inputs lie at the same ones it is launched as it is;
those that moved are copied to places of the recording's own from then on, and back if the plan writes them. Results are
new tensors at every call, so that what a call has returned never changes. As an allocator hands out the same few places
again and again, there are recordings that write right there; for other places results are copied out of the recording's
own. A plan that cannot be recorded runs as it is, and the log says why.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from .. import _shim, logs, settings
from . import tensors

MODES = frozenset({"reduce-overhead", "max-autotune"})
LEAST_LAUNCHES = 4  # below this, launching one by one is as fast as a graph and the copies of its results
MOST_RECORDINGS = 8  # of one plan: for other sizes, numbers and streams
MOST_PLACEMENTS = 3  # of one recording: copies of it that write results to other places
MOST_MISSES = 64  # after so many results at other places in a row, no more are looked for
REMEMBERED = 8  # places that were seen once, and are worth a recording when seen again

_CUDA = 1  # c10::DeviceType
_DTYPE, _DEVICE, _SIZES, _STRIDES = range(4)  # places in a tensor's metadata
_FLAGS = 6

Plan = Callable[..., tuple[Any, ...]]
Replay = Callable[[], None]


class Recorder(Protocol):
    """What records and launches; the tests have one of their own."""

    def stream(self) -> object:
        """The stream that work goes to now, and whatever else tells recordings apart."""
        ...

    def recording(self) -> bool:
        """Whether somebody else is recording that stream, so that plans must run as they are."""
        ...

    def record(self, run: Callable[[], tuple[Any, ...]]) -> tuple[Replay, tuple[Any, ...]]:
        """What repeats the work of ``run``, and where its results will be. RuntimeError where it cannot."""
        ...


@runtime_checkable
class Placeable(Protocol):
    """A plan that writes results where it is told to, as a ``LaunchPlan`` does."""

    def placeable(self) -> tuple[bool, ...]:
        """For each result whether ``into`` takes a place for it."""
        ...

    def into(self, inputs: tuple[Any, ...], places: tuple[Any, ...], /) -> tuple[Any, ...]:
        """As a call, with each result that has a place written there."""
        ...


class NotRecordable(Exception):
    """Why a plan runs as it is."""


class CudaRecorder:
    """Records with torch's own CUDA graphs, whose memory is kept apart from what the program allocates.

    Recordings launched on one stream share their memory, as one is over before the next one starts. It lives as long as
    any of them.
    """

    def __init__(self) -> None:
        self._latest: weakref.WeakValueDictionary[object, Any] = weakref.WeakValueDictionary()

    def stream(self) -> object:
        """The device and its current stream."""
        from torch import _C

        device = _C._cuda_getDevice()
        return device, _C._cuda_getCurrentRawStream(device)

    def recording(self) -> bool:
        """Whether the current stream is being captured."""
        from torch import _C

        return _C._cuda_isCurrentStreamCapturing()

    def record(self, run: Callable[[], tuple[Any, ...]]) -> tuple[Replay, tuple[Any, ...]]:
        """Captures ``run`` on a stream of its own."""
        import torch

        graph, current = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        latest = self._latest.get(self.stream())
        pool = latest.pool() if latest is not None else None
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(current)
        with _no_collection(), _generator_kept(current.device_index), torch.cuda.stream(side):
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                results = run()
            finally:
                graph.capture_end()
        current.wait_stream(side)
        self._latest[self.stream()] = graph
        return graph.replay, results


@functools.lru_cache(maxsize=1)
def _recorder() -> CudaRecorder:
    return CudaRecorder()


@contextlib.contextmanager
def _generator_kept(device: int) -> Iterator[None]:
    """A capture that fails leaves the generator of random numbers as if it still went on."""
    import torch

    generator = torch.cuda.default_generators[device]
    try:
        yield
    except BaseException:
        generator.graphsafe_set_state(generator.clone_state())
        raise


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Nothing is collected meanwhile: freeing somebody's events or graphs would spoil the capture."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass
class _Recording:
    """One recorded run of a plan."""

    fixed: tuple[int, ...] = ()  # numbers of the inputs that are read in place
    addresses: bytes = b""  # where those lie
    moved: list[int] = field(default_factory=list)  # numbers of the inputs that are copied
    places: list[Any] = field(default_factory=list)  # what the recording reads instead of them
    replay: Replay | None = None
    results: tuple[Any, ...] = ()
    inputs: list[int | None] = field(default_factory=list)  # by result: the input that it is
    placing: _Placing | None = None  # None where results are always copied out


@dataclass
class _Placing:
    """Recordings that write results where a call's new tensors lie. They hold no tensor: whoever launches one does."""

    numbers: tuple[int, ...]  # of the results that are placed
    replays: dict[bytes, Replay] = field(default_factory=dict)  # by the addresses of those
    seen: list[bytes] = field(default_factory=list)  # addresses that results had lately
    misses: int = 0  # in a row

    def worth_recording(self, addresses: bytes) -> bool:
        """Whether results lay there before; counts those that did not lie where they can be written."""
        self.misses += 1
        if addresses in self.seen:
            return len(self.replays) < MOST_PLACEMENTS
        self.seen = [*self.seen[1 - REMEMBERED :], addresses]
        return False


class RecordedPlan:
    """A launch plan that is recorded at its second call."""

    def __init__(self, plan: Plan, graph: Mapping[str, Any], recorder: Recorder) -> None:
        self._plan = plan
        self._recorder = recorder
        described = [metadata for _, metadata in graph["inputs"]]
        self._tensors = tuple(number for number, metadata in enumerate(described) if len(metadata) > _STRIDES)
        self._numbers = [number for number in range(len(graph["inputs"])) if number not in set(self._tensors)]
        self._written = written_inputs(graph) or frozenset()
        self._changing: bool = graph.get("changing", False)
        self._recordings: dict[Any, _Recording] = {}
        self._lock = threading.Lock()
        self.obstacle: str | None = None  # why it is recorded no more

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        if self.obstacle is not None or self._recorder.recording():
            return self._plan(*inputs)
        with self._lock:
            return self._run(inputs)

    def _run(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        key = self._key(inputs)
        recording = self._recordings.get(key)
        if recording is None:  # once as it is, so that libraries set themselves up
            if len(self._recordings) < MOST_RECORDINGS:
                self._recordings[key] = _Recording(self._tensors)
            return self._plan(*inputs)
        addresses = _shim.addresses(inputs, recording.fixed)
        try:
            if recording.replay is None or addresses != recording.addresses:
                recording = self._recordings[key] = self._record(recording, inputs, addresses)
            self._check_apart(recording.moved, inputs)
        except (NotRecordable, RuntimeError) as error:
            self._give_up(str(error))
            return self._plan(*inputs)
        return self._launch(recording, inputs)

    def _key(self, inputs: tuple[Any, ...]) -> Any:
        shapes = [(inputs[number].shape, inputs[number].stride()) for number in self._tensors] if self._changing else []
        return self._recorder.stream(), tuple(inputs[number] for number in self._numbers), tuple(shapes)

    def _give_up(self, reason: str) -> None:
        self.obstacle = reason
        self._recordings.clear()
        logs.log("cudagraphs", f"a graph is launched step by step: {reason}")

    def _record(self, before: _Recording, inputs: tuple[Any, ...], addresses: bytes) -> _Recording:
        moved = list(before.moved)
        if before.replay is not None:
            pairs = zip(before.fixed, _pointers(before.addresses), _pointers(addresses), strict=True)
            moved += [number for number, old, new in pairs if old != new]
        fixed = tuple(number for number in self._tensors if number not in moved)
        recording = _Recording(fixed, _shim.addresses(inputs, fixed), sorted(moved))
        arguments = list(inputs)
        for number in recording.moved:
            arguments[number] = _place_for(inputs[number])
            recording.places.append(arguments[number])
        before.replay = before.placing = None  # its memory is free for the new one
        recording.replay, recording.results = self._recorder.record(lambda: self._plan(*arguments))
        recording.inputs = _inputs_among(recording.results, arguments)
        recording.placing = self._placing(recording)
        logs.log("cudagraphs", f"recorded a graph; copied at each call: inputs {recording.moved}")
        return recording

    def _placing(self, recording: _Recording) -> _Placing | None:
        """What places the results; None unless all those that are copied can be placed."""
        copied = [
            number
            for number, (result, same) in enumerate(zip(recording.results, recording.inputs, strict=True))
            if same is None and hasattr(result, "data_ptr")
        ]
        placeable = self._plan.placeable() if isinstance(self._plan, Placeable) else ()
        if not copied or len(placeable) != len(recording.results) or not all(placeable[number] for number in copied):
            return None
        return _Placing(tuple(copied))

    def _launch(self, recording: _Recording, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        assert recording.replay is not None
        for number, place in zip(recording.moved, recording.places, strict=True):
            place.copy_(inputs[number].detach())
        fresh = _fresh_results(recording)
        placed = self._placed(recording, inputs, fresh)
        replay = recording.replay if placed is None else placed
        replay()
        if self._written:
            self._write_back(recording, inputs)
        made = zip(recording.results, recording.inputs, fresh, strict=True)
        return tuple(
            [inputs[same] if same is not None else _handed_out(result, new, placed) for result, same, new in made]
        )

    def _placed(self, recording: _Recording, inputs: tuple[Any, ...], fresh: tuple[Any, ...]) -> Replay | None:
        """What writes the results to ``fresh``, recorded if they lay there before; None: they have to be copied."""
        placing = recording.placing
        if placing is None:
            return None
        addresses = _shim.addresses(fresh, placing.numbers)
        replay = placing.replays.get(addresses)
        if replay is None and placing.worth_recording(addresses):
            replay = self._record_placed(recording, inputs, fresh)
        if replay is not None:
            placing.replays[addresses] = replay
            placing.misses = 0
        elif placing.misses > MOST_MISSES and not placing.replays:
            recording.placing = None
        return replay

    def _record_placed(self, recording: _Recording, inputs: tuple[Any, ...], fresh: tuple[Any, ...]) -> Replay | None:
        """A recording like another one that writes its results to ``fresh``; None where that fails, and for ever."""
        assert isinstance(self._plan, Placeable) and recording.placing is not None
        plan, numbers = self._plan, recording.placing.numbers
        arguments = list(inputs)
        for number, place in zip(recording.moved, recording.places, strict=True):
            arguments[number] = place
        places = tuple(value if number in numbers else None for number, value in enumerate(fresh))
        try:
            replay, results = self._recorder.record(lambda: plan.into(tuple(arguments), places))
        except (RuntimeError, ValueError, TypeError) as error:
            logs.log("cudagraphs", f"results are copied out of a recorded graph: {error}")
            recording.placing = None
            return None
        if any(results[number] is not places[number] for number in numbers):
            recording.placing = None
            return None
        logs.log("cudagraphs", f"recorded a graph that writes results {list(numbers)} where new tensors lie")
        return replay

    def _write_back(self, recording: _Recording, inputs: tuple[Any, ...]) -> None:
        """What was written to places goes to the inputs, and autograd hears of what was written in place."""
        import torch

        for number, place in zip(recording.moved, recording.places, strict=True):
            if number in self._written:
                inputs[number].detach().copy_(place)
        for number in self._written.intersection(recording.fixed):
            if not inputs[number].is_inference():
                torch.autograd.graph.increment_version(inputs[number])

    def _check_apart(self, moved: Sequence[int], inputs: tuple[Any, ...]) -> None:
        """NotRecordable where memory that is copied and memory that is written are the same."""
        if not moved or not self._written:
            return
        copied = {_storage(inputs[number]) for number in moved}
        others = self._tensors if self._written.intersection(moved) else self._written
        shared = any(_storage(inputs[number]) in copied for number in set(others).difference(moved))
        if shared or len(copied) < len(moved):
            raise NotRecordable("an input that moves shares memory with another one")


def _pointers(addresses: bytes) -> memoryview:
    return memoryview(addresses).cast("Q")


def _place_for(tensor: Any) -> Any:
    import torch

    place = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    if place.numel() > 1 and vars(torch)["_debug_has_internal_overlap"](place) != 0:
        raise NotRecordable("an input that moves has elements that share memory")
    return place


def _fresh_results(recording: _Recording) -> tuple[Any, ...]:
    """For each result that may be placed a new tensor like it, else None."""
    if recording.placing is None:
        return (None,) * len(recording.results)
    import torch

    numbers = recording.placing.numbers
    return tuple(
        [torch.empty_like(value) if number in numbers else None for number, value in enumerate(recording.results)]
    )


def _handed_out(result: Any, new: Any, placed: Replay | None) -> Any:
    """A result of the recording's own, or of one that writes to ``new``, as the caller may keep it."""
    if new is None:
        return result.clone() if hasattr(result, "data_ptr") else result
    return new if placed is not None else new.copy_(result)


def _inputs_among(results: tuple[Any, ...], arguments: list[Any]) -> list[int | None]:
    """For each result the input that it is; NotRecordable where results share memory with anything else."""
    import torch

    owners = {_storage(value) for value in arguments if isinstance(value, torch.Tensor)}
    found: list[int | None] = []
    for result in results:
        same = [number for number, value in enumerate(arguments) if value is result]
        found.append(same[0] if same else None)
        if same or not isinstance(result, torch.Tensor):
            continue
        if _storage(result) in owners:
            raise NotRecordable("a result shares memory with an input or another result")
        if result.clone().stride() != result.stride():
            raise NotRecordable("a result has gaps between its elements")
        owners.add(_storage(result))
    return found


def _storage(tensor: Any) -> int:
    return tensor.untyped_storage().data_ptr()  # type: ignore[no-any-return]


def obstacle(graph: Mapping[str, Any]) -> str | None:
    """Why a graph's plan cannot be recorded at all; None where nothing speaks against it."""
    plan = graph["plan"]
    tensors = [metadata for _, metadata in graph["inputs"] if len(metadata) > _STRIDES]
    launches = [step for step in plan["steps"] if step[0] in ("kernel", "aten")]
    devices = {metadata[_DEVICE] for metadata in tensors}
    if len(devices) != 1 or not next(iter(devices)).startswith("cuda"):
        return "its inputs are not all on one GPU"
    if written_inputs(graph) is None:
        return "it changes its inputs in place where that cannot be seen"
    if len(launches) < LEAST_LAUNCHES:
        return f"it has fewer than {LEAST_LAUNCHES} launches"
    if any(kernel[0] != "cuda" for kernel in plan["kernels"]) or any(map(_leaves_gpu, plan["steps"])):
        return "part of it runs on the CPU"
    return None


def written_inputs(graph: Mapping[str, Any]) -> frozenset[int] | None:
    """Numbers of the inputs that a graph's plan writes; None where they are not known."""
    if not graph.get("mutates"):
        return frozenset()
    if any(len(metadata) > _FLAGS and metadata[_FLAGS] & tensors.INFERENCE for _, metadata in graph["inputs"]):
        return None  # kernels that write these leave no trace in a plan
    roots: dict[int, int] = {}
    written: set[int] = set()
    for step in graph["plan"]["steps"]:
        if step[0] == "written":
            written.add(step[1])
        elif step[0] == "view":
            base: int = step[2]
            roots[step[1]] = roots.get(base, base)
        elif step[0] == "aten":
            slots, aliased = _aliases(step)
            written.update(roots.get(slot, slot) for slot in slots)
            for result in step[4]:
                roots[result] = result if aliased is None else roots.get(aliased, aliased)
    return frozenset(slot for slot in written if slot < len(graph["inputs"]))


def _aliases(step: Sequence[Any]) -> tuple[list[int], int | None]:
    """The slots that an operator writes, and one that its results may be views of."""
    import torch

    written: list[int] = []
    aliased: int | None = None
    name, overload = step[1], step[2]
    schema = torch._C._get_schema(name if "::" in name else f"aten::{name}", "" if overload == "default" else overload)
    for argument, given in zip(schema.arguments, step[3], strict=False):
        if argument.alias_info is None or given[0] not in ("t", "tensors", "optional_tensors"):
            continue
        slots = list(given[1]) if given[0] != "t" else [given[1]]
        aliased = slots[0] if slots else None
        if argument.alias_info.is_write:
            written += slots
    return written, aliased


def _leaves_gpu(step: Sequence[Any]) -> bool:
    if step[0] == "alloc":
        return bool(step[3] != _CUDA)
    return step[0] == "aten" and any(argument[0] == "device" and argument[1] != _CUDA for argument in step[3])


def wrap(plan: Plan, graph: Mapping[str, Any], mode: str, changed: Mapping[str, settings.Value]) -> Plan:
    """The plan as its mode runs it."""
    if mode not in MODES:
        return plan
    reason = obstacle(graph)
    if reason is not None:
        logs.log("cudagraphs", f"a graph is launched step by step: {reason}", changed)
        return plan
    return RecordedPlan(plan, graph, _recorder())
