"""``tensor_call`` on small real tensors, which costs microseconds where the first fake operation costs seconds.

It says what the real operation does, and falls back to fake tensors wherever values could matter: for an exception, for
a result that is not a tensor, for operators that read values into sizes, and for anything not small or not on the CPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from . import fake
from .tensors import Metadata

if TYPE_CHECKING:
    from .answer import Answers, Reply

# Elements of all arguments together: two of half this size still have a small outer product.
_MOST_ELEMENTS = 1 << 13
_VALUE = 1  # in the arguments: a valid index of most dimensions, and no division by zero
_OTHER_VALUE = 0
_OTHER_VALUES = (0, 2)
_ELSEWHERE = frozenset({"Tensor.cuda", "Tensor.xpu", "Tensor.pin_memory", "Tensor.share_memory_", "Tensor.numpy"})
_OF_TORCH = frozenset({"aten", "prim", "prims", "mkldnn", "quantized"})  # other operators run code of the program's
_READS_VALUES = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


class NotSmall(Exception):
    """The call must run on fake tensors instead."""


class _Recorder(fake.Recorder):  # type: ignore[no-untyped-call]
    """Refuses operators whose results' metadata depend on values, and leaves those of programs to their fake forms."""

    read_a_value = False  # a tensor was used as a number

    def __torch_dispatch__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.namespace not in _OF_TORCH:
            raise NotSmall
        if function is torch.ops.aten._local_scalar_dense.default:
            self.read_a_value = True
        elif any(tag in function.tags for tag in _READS_VALUES):
            raise fake.Unfakeable(f"what {function} returns depends on values")
        return super().__torch_dispatch__(function, kinds, args, kwargs)


class SmallCall(fake.TensorCall):
    """One ``tensor_call`` on real tensors full of one value."""

    def __init__(self, answers: Answers, value: int = _VALUE) -> None:
        super().__init__(answers)
        self._value = value
        self._recorder = _Recorder(answers, [])
        self._raised: Exception | None = None  # by the real operation

    def outcome(self, target: str, function: Any, arguments: list[Any], keywords: list[Any]) -> Reply | None:
        """The outcome, or None where only fake tensors can tell it."""
        everything = [*arguments, *(value for _, value in keywords)]
        if target in _ELSEWHERE or not _is_small(list(_tensors(everything))):
            return None
        try:
            outcome = self._run(function, arguments, keywords)
            if self._recorder.read_a_value:
                outcome = self._without_expansion(outcome)
            if self._value == _VALUE and self._depends_on_values(outcome, target, function, arguments, keywords):
                raise fake.Unfakeable("what it returns depends on values")
        except fake.Unfakeable as error:
            return fake.unsupported(error)
        except Exception as error:  # perhaps on account of the values; fake tensors have none
            if not isinstance(error, NotSmall):
                self._raised = error
            return fake.unsupported(error) if self._recorder.read_a_value else None
        return outcome, self._answers.table.describe(self._mentioned)

    def _depends_on_values(self, outcome: Any, target: str, function: Any, *rest: list[Any]) -> bool:
        """Whether other numbers in integer tensors, such as lengths, lead elsewhere: not all operators say so.

        Where no others are taken, the call depends on a tensor that it was given and no operator was.
        """
        numbers = {place for place, given in enumerate(self._inputs.values()) if not given.dtype.is_floating_point}
        if not numbers:
            return False
        unread, others = numbers - self._recorder.read, []
        for value in _OTHER_VALUES:
            found = SmallCall(self._answers, value).outcome(target, function, *rest)
            if found is not None and found[0][0] == "value":
                others.append(found[0][1:] == outcome[1:])
        return not all(others) if others else bool(unread)

    def corrected(self, reply: Reply, target: str, function: Any, arguments: list[Any], keywords: list[Any]) -> Reply:
        """What fake tensors told where the real operation raised: they refuse less than it, and in other words."""
        error, kind = self._raised, reply[0][0]
        if error is None or kind not in ("raise", "value"):
            return reply
        if kind == "raise":
            return self._answers.raised(error)
        other = SmallCall(self._answers, _OTHER_VALUE)
        other.outcome(target, function, arguments, keywords)
        return fake.unsupported(error) if _is_refusal(error, other._raised) else reply

    def _without_expansion(self, outcome: tuple[Any, ...]) -> tuple[Any, ...]:
        """Of calls that read a number from a tensor only those that write in place are known not to depend on it."""
        kind, structure, _ = outcome
        in_place = structure[0] == "T" and structure[2][0] == "same"
        if not in_place or structure[1] != fake.plain_metadata(self._inputs[structure[2][1]]):
            raise fake.Unfakeable("the call reads a tensor's value")
        return kind, structure, None

    @contextlib.contextmanager
    def mode(self) -> Iterator[None]:
        """Random numbers that the call draws must not be missing later."""
        with torch.random.fork_rng(devices=[]):
            yield

    def recorder(self, inputs: list[torch.Tensor]) -> fake.Recorder:
        """What writes down the operations and refuses some."""
        self._recorder = _Recorder(self._answers, inputs)
        return self._recorder

    def make_tensor(self, metadata: Metadata) -> torch.Tensor:
        """An argument full of one value."""
        return fake.make_tensor(metadata, self._value)

    def _build(self, argument: Any) -> Any:
        value = super()._build(argument)
        if isinstance(value, (torch.device, str)):
            _refuse_other_devices(str(value))
        return value

    def _mention(self, value: Any) -> Any:
        if value is not None and not isinstance(value, type):
            raise NotSmall
        return super()._mention(value)


def _is_refusal(error: Exception, other: Exception | None) -> bool:
    """Whether an operation refuses its arguments whatever they hold, judged by what it raised for two values."""
    singular: type[Exception] = torch.linalg.LinAlgError  # type: ignore[attr-defined]
    return type(error) is type(other) and str(error) == str(other) and not isinstance(error, singular)


def _refuse_other_devices(name: str) -> None:
    if name.partition(":")[0] in ("cuda", "xpu", "mps", "hpu", "meta"):
        raise NotSmall


def _tensors(arguments: list[Any]) -> Iterator[Metadata]:
    for argument in arguments:
        parts = argument if isinstance(argument, tuple) else ()
        if len(parts) > 2 and parts[0] == "T":
            yield parts[2]
        elif len(parts) > 1 and parts[0] in ("tuple", "list", "slice"):
            yield from _tensors(list(parts[1:]) if parts[0] == "slice" else parts[1])
        elif len(parts) > 1 and parts[0] == "dict":
            yield from _tensors([value for _, value in parts[1]])


def _is_small(found: list[Metadata]) -> bool:
    plain = all(metadata[1] == "cpu" and not metadata[6] & fake.NOT_FAKED for metadata in found)
    return bool(found) and plain and sum(map(fake.extent, found)) <= _MOST_ELEMENTS
