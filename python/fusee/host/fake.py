"""``tensor_call``: what a torch function returns, found out on fake tensors (docs/contracts.md, section 3).

The first fake operation of a process imports sympy (seconds), so the compiler asks only for what its own tables lack.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses import fake_tensor
from torch.utils._python_dispatch import TorchDispatchMode

from . import tensors, wrappers
from .operators import signature, view_like
from .tensors import Metadata

if TYPE_CHECKING:
    from .answer import Answers, Reply

_UNSUPPORTED = (
    fake_tensor.DynamicOutputShapeException,
    fake_tensor.DataDependentOutputException,
    fake_tensor.UnsupportedFakeTensorException,
    fake_tensor.UnsupportedOperatorException,
    NotImplementedError,
)
NOT_FAKED = tensors.UNUSUAL | tensors.CONJUGATE


class Unfakeable(Exception):
    """The arguments or results have no fake form."""


class _Computed(torch.autograd.Function):
    """Makes a tensor that is not a leaf: in-place operations are allowed on it, unlike on a leaf that requires grad."""

    @staticmethod
    def forward(ctx: Any, leaf: torch.Tensor, make: Any) -> torch.Tensor:
        return make()  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, None


class Recorder(TorchDispatchMode):
    """Writes down the aten operations that run, as a node list of section 5."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch would import Dynamo to keep it away from here, where it never comes."""
        return False

    def __init__(self, answers: Answers, inputs: list[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._answers = answers
        self._places: dict[int, Any] = {id(tensor): ("i", place) for place, tensor in enumerate(inputs)}
        self._alive: list[Any] = list(inputs)
        self.nodes: list[Any] = []
        self.complete = True
        self.read: set[int] = set()  # inputs that an operator was given

    def __torch_dispatch__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function.namespace == "prim":
            return function(*args, **kwargs)  # reads a property; computes nothing
        written = [self.write(value) for value in args], {name: self.write(value) for name, value in kwargs.items()}
        result = function(*args, **kwargs)
        if torch.Tag.inplace_view in function.tags:
            function = self._reshaped(function, result)
        several = isinstance(result, (tuple, list))
        outputs = list(result) if several else [result]
        index = len(self.nodes)
        for place, output in enumerate(outputs):
            if isinstance(output, torch.Tensor):
                self._places.setdefault(id(output), ("n", index, place) if several else ("n", index))
        self._alive.append(result)
        found = [self.metadata(output) if isinstance(output, torch.Tensor) else None for output in outputs]
        name = f"{function._overloadpacket.__name__}_{index}"
        self.nodes.append((name, str(function), *written, found, signature(function)))
        return result

    def _reshaped(self, function: Any, tensor: torch.Tensor) -> Any:
        """What is written for a change of a tensor's own shape: the view that later operations see."""
        place = self._places.pop(id(tensor), ("i",))
        view = view_like(function)
        self.complete = self.complete and view is not None and place[0] == "n"
        return view or function

    def metadata(self, tensor: torch.Tensor) -> Any:
        """What is written about a result."""
        return plain_metadata(tensor)

    def write(self, value: Any) -> Any:
        """An argument of a node: a place, a container, or a reference."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self._places:
                self.complete = False  # torch made a tensor of a Python value, which no node list can hold
                return (None,)
            place = self._places[id(value)]
            if place[0] == "i":
                self.read.add(place[1])
            return place
        if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
            return "list" if isinstance(value, list) else "tuple", [self.write(item) for item in value]
        return self._answers.table.reference(_one_of(value) if isinstance(value, torch.device) else value)


@functools.cache
def _one_of(device: torch.device) -> torch.device:
    """The one of equal devices that is written, as PyTorch makes them anew, and runs of an operator are compared."""
    return device


def plain_metadata(tensor: torch.Tensor) -> Metadata:
    """Metadata of a fake tensor, which stands for a plain one."""
    dtype, device, sizes, strides, offset, requires_grad, flags = tensors.metadata(tensor)
    return dtype, device, sizes, strides, offset, requires_grad, flags & ~(tensors.UNUSUAL | tensors.DECORATED)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Fake operations log every exception, though here the program gets to see it."""
    logger = logging.getLogger(fake_tensor.__name__)
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@functools.lru_cache(maxsize=1)
def _mode() -> fake_tensor.FakeTensorMode:
    return fake_tensor.FakeTensorMode(allow_non_fake_inputs=False)


def unsupported(error: Exception) -> Reply:
    """The outcome of a call that cannot be told."""
    return ("unsupported", f"{type(error).__name__}: {error}".partition("\n")[0]), []


class TensorCall:
    """One ``tensor_call``: builds the fake arguments, runs, and describes what came out."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._mentioned: list[Any] = []
        self._inputs: dict[int, torch.Tensor] = {}  # by node id, in order of mention
        self._wrapped = False  # an argument is a wrapper of other tensors

    def run(self, function: Any, arguments: list[Any], keywords: list[Any]) -> Reply:
        """The outcome: structure and expansion, the exception it raises, or why it cannot be told."""
        try:
            with _quiet():
                outcome = self._run(function, arguments, keywords)
            return outcome, self._answers.table.describe(self._mentioned)
        except (Unfakeable, *_UNSUPPORTED) as error:
            return unsupported(error)
        except Exception as error:  # the program would see this exception, if it does not come from the fake tensors
            return unsupported(error) if self._wrapped else self._answers.raised(error)

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        """Under which the arguments are made and the function runs."""
        return _mode()

    def recorder(self, inputs: list[torch.Tensor]) -> Recorder:
        """What writes down the operations."""
        return Recorder(self._answers, inputs)

    def make_tensor(self, metadata: Metadata) -> torch.Tensor:
        """An argument."""
        return make_tensor(metadata)

    def plain(self, tensor: torch.Tensor) -> Any:
        """Metadata of a result."""
        return plain_metadata(tensor)

    def _run(self, function: Any, arguments: list[Any], keywords: list[Any]) -> tuple[Any, ...]:
        with self.mode():
            positional = [self._build(argument) for argument in arguments]
            named = {name: self._build(argument) for name, argument in keywords}
            recorder = self.recorder(list(self._inputs.values()))
            before = self._wrapper_states()
            with recorder:
                result = _call(function, positional, named)
            if self._wrapper_states() != before:
                raise Unfakeable("a tensor subclass replaces the tensors in it")
            structure = self._structure(result)
            return "value", structure, self._expansion(recorder, result)

    def _expansion(self, recorder: Recorder, result: Any) -> Any:
        outputs = recorder.write(result)
        if not recorder.complete:
            if any(random for *_, (_, random) in recorder.nodes):
                raise Unfakeable("random numbers are drawn beside a tensor that is not among the arguments")
            return None
        return {"inputs": list(self._inputs), "nodes": recorder.nodes, "output": outputs}

    def _build(self, argument: Any) -> Any:
        if type(argument) is tuple and len(argument) > 1:
            kind = argument[0]
            if kind == "T":
                return self._fake(*argument[1:])
            if kind in ("tuple", "list"):
                items = [self._build(item) for item in argument[1]]
                return tuple(items) if kind == "tuple" else items
            if kind == "dict":
                return {self._answers.build_key(key): self._build(value) for key, value in argument[1]}
            if kind == "slice":
                return slice(*map(self._build, argument[1:]))
        value = self._answers.build(argument)
        if isinstance(value, torch.Tensor):
            raise Unfakeable("a tensor was passed as an object")
        return value

    def _fake(self, node: int, metadata: Metadata, stands_for: int = 0) -> torch.Tensor:
        if node not in self._inputs:
            if stands_for:
                self._wrapped = True
                self._inputs[node] = self._stand_in(stands_for)
            elif metadata[6] & NOT_FAKED:
                raise Unfakeable("the argument is not a plain dense tensor")
            else:
                self._inputs[node] = self.make_tensor(metadata)
        return self._inputs[node]

    def _stand_in(self, number: int) -> torch.Tensor:
        known = self._answers.stand_ins
        if number not in known:
            known[number] = wrappers.stand_in(self._answers.table.object(number), make_wrapped)
        return known[number]  # type: ignore[no-any-return]

    def _wrapper_states(self) -> list[Any]:
        return [wrappers.state(given) for given in self._inputs.values() if tensors.is_wrapper(type(given))]

    def _structure(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if tensors.is_wrapper(type(value)):
                return "T", tensors.metadata(value), self._relation(value), *self._wrapper(value)
            if not tensors.is_dense(value):
                raise Unfakeable(f"a tensor of layout {value.layout} comes out")
            return "T", self.plain(value), self._relation(value)
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            raise Unfakeable("the result is a number that depends on data")
        if type(value) in (tuple, list):
            return type(value).__name__, [self._structure(item) for item in value]
        if isinstance(value, tuple) and not isinstance(value, torch.Size):
            return "named", self._mention(type(value)), [self._structure(item) for item in value]
        return self._mention(value)

    def _wrapper(self, value: torch.Tensor) -> tuple[int, Any]:
        """The id under which later calls name a result that wraps other tensors, and its class."""
        number = self._answers.table.identify(value)
        self._answers.stand_ins[number] = value
        return number, self._mention(type(value))

    def _mention(self, value: Any) -> Any:
        reference = self._answers.table.reference(value)
        self._mentioned.append(reference)
        return reference

    def _relation(self, output: torch.Tensor) -> Any:
        for node, given in self._inputs.items():
            if given is output:
                return "same", node
        memory = wrappers.storages(output)
        for node, given in self._inputs.items():
            if memory & wrappers.storages(given):
                return "view", node
        return "new"


def extent(metadata: Metadata) -> int:
    """How many elements the memory of a tensor must have."""
    _, _, sizes, strides, offset, _, _ = metadata
    if 0 in sizes:
        return offset
    return offset + 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def make_tensor(metadata: Metadata, value: float | None = None) -> torch.Tensor:
    """A tensor of this metadata, all its memory filled with ``value`` if one is given."""
    dtype, device, sizes, strides, offset, _, _ = metadata

    def make() -> torch.Tensor:
        kind: dict[str, Any] = {"dtype": getattr(torch, dtype), "device": device}
        plain = torch.empty(extent(metadata), **kind) if offset else torch.empty_strided(sizes, strides, **kind)
        if value is not None:
            plain.as_strided((extent(metadata),), (1,), 0).fill_(value)
        return plain.as_strided(sizes, strides, offset).detach() if offset else plain

    return _with_gradient(metadata, make)


def make_wrapped(metadata: Metadata, make: Callable[[], torch.Tensor] | None) -> torch.Tensor:
    """A tensor of this metadata, which ``make`` puts together where it wraps others."""
    return make_tensor(metadata) if make is None else _with_gradient(metadata, make)


def _with_gradient(metadata: Metadata, make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """What ``make`` gives, as the leaf or computed tensor that it stands for."""
    *_, requires_grad, flags = metadata
    with torch.inference_mode(bool(flags & tensors.INFERENCE)):
        if requires_grad and not flags & tensors.LEAF:
            with torch.enable_grad():
                return _Computed.apply(torch.empty(1, requires_grad=True), make)  # type: ignore[no-any-return]
        with torch.no_grad():
            made = make()
        return made.requires_grad_(requires_grad)


def _call(function: Any, positional: list[Any], named: dict[str, Any]) -> Any:
    if type(function) in (types.GetSetDescriptorType, property):
        return function.__get__(positional[0])
    return function(*positional, **named)
