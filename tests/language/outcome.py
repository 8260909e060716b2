"""What one run of a program did, written so that two runs can be compared."""

from __future__ import annotations

import collections
import contextlib
import copy
import dis
import functools
import gc
import io
import itertools
import re
import traceback
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from fusee.errors import FuseeWarning

PLAIN = (type(None), bool, int, str, bytes, complex, type(Ellipsis), type(NotImplemented), range)
ITEMS = 1000
ADDRESS = re.compile(r"\b0x[0-9a-f]{9,}")
# PyTorch may write the C++ stack into an error's text. Its frames say who called, and the compiler's own C functions
# are among the callers.
FRAMES = re.compile(
    r"(Exception raised from [^\n]*?\(most recent call first\):)"
    r"(?:(?:\n|\\+n)(?:frame #\d+:|<omitting python frames>)(?:(?!\n|\\+n).)*)+"
)
# One node of autograd serves all results of a graph, as under torch.compile: its name is not that of eager.
NODE = re.compile(r"(?<=\bgrad_fn=)<\w+>")


def comparable(text: str) -> str:
    """A text without addresses, the frames of C++ behind an error, and the names of nodes of autograd."""
    return NODE.sub("<>", ADDRESS.sub("0x", FRAMES.sub(r"\1", text)))


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether all elements of two tensors of one type are the same, zeros of either sign told apart."""
    if one.is_complex():
        one, other = torch.view_as_real(one.resolve_conj()), torch.view_as_real(other.resolve_conj())
    if not one.is_floating_point():
        return torch.equal(one, other)
    unordered = torch.isnan(one) & torch.isnan(other)  # all of them are one and the same to a program
    same = (one == other) & (torch.signbit(one) == torch.signbit(other))
    return bool((same | unordered).all())


class Elements:
    """The elements of a tensor, equal to others as closely as their type allows, or ``exact`` only if the same."""

    def __init__(self, tensor: torch.Tensor, exact: bool = False) -> None:
        self.tensor = tensor.detach().clone()
        self.exact = exact

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Elements):
            return False
        alike = self.tensor.shape == other.tensor.shape and self.tensor.dtype == other.tensor.dtype
        if alike and same_bits(self.tensor, other.tensor):
            return True
        if self.exact:
            return False
        try:
            torch.testing.assert_close(self.tensor, other.tensor, equal_nan=True)
        except AssertionError:
            return False
        return True

    def __hash__(self) -> int:
        return hash(self.tensor.shape)

    def __repr__(self) -> str:
        return repr(self.tensor.tolist())


class Describer:
    """Writes values as nested tuples: types, contents, and which mutable objects are one and the same.

    Floats in tensors are compared as closely as their type allows, or ``exact``, bit by bit. With ``memory`` as
    ``"held"``, what was written lives as long as the describer, so that no address stands for two objects; as
    ``"collected"``, Python looks for garbage around it, so that what lies in a cycle is gone.
    """

    def __init__(self, exact: bool = False, memory: str = "") -> None:
        self.exact = exact
        self.memory = memory
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []
        self.memories: dict[int, int] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, PLAIN) and type(value) in PLAIN:
            return (type(value).__name__, comparable(repr(value)))
        if type(value) is float:
            return ("float", value.hex())
        if type(value) is tuple:
            return ("tuple", *map(self, value))
        if id(value) in self.seen:
            return ("again", self.seen[id(value)])
        self.seen[id(value)] = len(self.seen)
        self.kept.append(value)
        return (type(value).__qualname__, *self.contents(value))

    def collect(self) -> None:
        """Look for garbage where that is to be settled."""
        if self.memory == "collected":
            gc.collect()

    def contents(self, value: Any) -> tuple[Any, ...]:
        for kind, write in self.table():
            if isinstance(value, kind):
                return write(value)
        return (
            (("repr", comparable(repr(value))),) if type(value).__repr__ is not object.__repr__ else self.fields(value)
        )

    def table(self) -> list[tuple[Any, Callable[[Any], tuple[Any, ...]]]]:
        return [
            (type, lambda v: (v.__qualname__,)),
            (float, lambda v: (v.hex(),)),
            (torch.Tensor, self.tensor),
            (Elements, lambda v: (v,)),  # of a description that was made during the run
            (types.FunctionType, self.function),
            (functools.partial, lambda v: (self(v.func), self(v.args), self(v.keywords))),
            (types.MethodType, lambda v: (self(v.__self__), v.__name__)),
            (BaseException, self.exception),
            (Mapping, lambda v: (*((self(k), self(w)) for k, w in v.items()), *self.fields(v))),
            ((set, frozenset), lambda v: tuple(sorted(map(repr, map(self, v))))),
            (collections.abc.Iterator, self.iterator),
            ((list, tuple, collections.deque), lambda v: (*map(self, v), *self.fields(v))),
            (slice, lambda v: (self(v.start), self(v.stop), self(v.step))),
        ]

    def fields(self, value: Any) -> tuple[Any, ...]:
        slots = [name for cls in type(value).__mro__ for name in vars(cls).get("__slots__", ()) if name != "__dict__"]
        own = {name: getattr(value, name) for name in slots if hasattr(value, name)}
        own.update(getattr(value, "__dict__", {}))
        return tuple((name, self(item)) for name, item in own.items())

    def tensor(self, value: torch.Tensor) -> tuple[Any, ...]:
        """What a program can see of a tensor, and which others it shares memory with."""
        if value.layout != torch.strided:
            return str(value.layout), repr(value)
        memory = value.untyped_storage().data_ptr()
        shared = self.memories.setdefault(memory, len(self.memories)) if memory else None
        # What a tensor without gradients was cut from shows in memory that it shares, and else in nothing.
        cut = value.requires_grad and value._base is not None
        return (
            str(value.dtype), tuple(value.shape), value.stride(), value.storage_offset(), shared, value.requires_grad,
            value.is_leaf, cut, self(value.grad) if value.is_leaf else None,
            Elements(value, self.exact), self(vars(value)),
        )  # fmt: skip

    def function(self, value: types.FunctionType) -> tuple[Any, ...]:
        return (
            value.__qualname__, value.__doc__, self(value.__defaults__), self(value.__kwdefaults__),
            self(value.__annotations__), self(vars(value)),
        )  # fmt: skip

    def exception(self, value: BaseException) -> tuple[Any, ...]:
        return (
            self(value.args), comparable(str(value)), self(value.__cause__), self(value.__context__),
            value.__suppress_context__, self(vars(value)),
        )  # fmt: skip

    def iterator(self, value: Any) -> tuple[Any, ...]:
        """What is left of an iterator: it is used up."""
        items = []
        try:
            while len(items) < ITEMS:
                items.append(self(next(value)))
        except StopIteration as stop:
            return (*items, self(stop.value))
        except Exception as error:
            return (*items, type(error).__name__, str(error))
        return tuple(items)


def lines(error: BaseException, filename: str) -> list[tuple[str, int | None]]:
    """Function and line of each frame of the program's file that the exception passed."""
    return [
        (trace.tb_frame.f_code.co_name, unbound_line(trace) if isinstance(error, UnboundLocalError) else line)
        for trace, (_, line) in zip(entries(error), traceback.walk_tb(error.__traceback__), strict=True)
        if trace.tb_frame.f_code.co_filename == filename
    ]


def entries(error: BaseException) -> Iterator[types.TracebackType]:
    """The entries of an exception's traceback, outermost first."""
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next


def unbound_line(trace: types.TracebackType) -> int | None:
    """The line of the variable that has no value.

    Where the interpreter has made one instruction of a store and the load behind it, as it does in code that ran often,
    its traceback shows the line of the store.
    """
    at = trace.tb_lasti
    following = dis.opname[trace.tb_frame.f_code.co_code[at]] in ("STORE_FAST", "LOAD_CONST")
    position = next(itertools.islice(trace.tb_frame.f_code.co_positions(), at // 2 + following, None))
    return position[0]


def run(function: Callable[..., Any], arguments: Sequence[Any], namespace: Mapping[str, Any], filename: str) -> Any:
    """Call once with copies of the arguments, as ``observed`` does."""
    return observed(function, copy.deepcopy(tuple(arguments)), namespace, filename, Describer())


def observed(
    function: Callable[..., Any],
    given: tuple[Any, ...],
    namespace: Mapping[str, Any],
    filename: str,
    describe: Describer,
) -> tuple[Any, str, list[tuple[str, int | None]], list[str]]:
    """Call once: outcome with arguments and globals afterwards, text printed, traceback lines, our warnings."""
    printed = io.StringIO()
    passed: list[tuple[str, int | None]] = []
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        outcome: tuple[str, Any]
        try:
            outcome = ("value", function(*given))
        except Exception as error:
            outcome, passed = ("raise", error), lines(error, filename)
        describe.collect()
        data = {name: value for name, value in namespace.items() if is_data(name, value)}
        described = describe((outcome, given, data))
        if describe.memory != "held":
            describe.kept.clear()  # a cycle through the traceback would leave it to chance when generators end
        del outcome
        describe.collect()
    ours = [str(warning.message) for warning in caught if issubclass(warning.category, FuseeWarning)]
    return described, comparable(printed.getvalue()), passed, ours


def is_data(name: str, value: Any) -> bool:
    """Tells variables of a program from its definitions and imports."""
    return not name.startswith("__") and not callable(value) and not isinstance(value, types.ModuleType)


def is_subsequence(short: Sequence[Any], long: Sequence[Any]) -> bool:
    """Whether the items of one sequence stand in the other in this order."""
    rest = iter(long)
    return all(item in rest for item in short)
