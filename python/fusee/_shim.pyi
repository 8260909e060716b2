"""Types of the C extension that dispatches calls, checks guards and runs launch plans."""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, Literal, SupportsIndex

import torch

Failure = tuple["Entry", int, Any]
"""(entry, number of the first failing check, value found); -2 and the name of the difference for global state."""

Miss = Callable[
    ["CompiledFunction", tuple[Any, ...], tuple[Any, ...], dict[str, Any], tuple[Failure, ...]], "Entry | None"
]
"""miss(compiled, bound, args, kwargs, failures): the entry to run from now on, or None to run the original."""

def calibrate(torch: ModuleType, *, portable: bool = False) -> dict[str, Any]:
    """Find torch's symbols and where a tensor keeps its handle and dispatch keys. Must run before everything else.

    Returns ``mode`` ("direct" or "portable"), ``why`` (why not direct), ``handle_offset``, ``key_set_offset`` (bytes,
    -1 if not found), ``torch`` (its version) and ``symbols`` (name -> found); and whether the faster readers of the
    direct path were found: ``tensor_layout``, ``grad_mode_layout``, ``function_mode_layout``, ``recycles_outputs``.
    ``portable=True`` asks for the slower path that reads tensors through Python calls only.
    """

def key_set(tensor: torch.Tensor) -> int:
    """The tensor's raw dispatch key set, to be appended to the metadata of a ``("tensor", type, metadata)`` check."""

def lookup(container: AbstractSet[object], item: object, /) -> bool | None:
    """Whether a set or frozenset holds an item; None where only code of the program could tell, which is not run."""

def addresses(values: tuple[object, ...], numbers: tuple[int, ...], /) -> bytes:
    """Where the elements of the numbered tensors among the values begin, eight bytes each; TypeError if one is none."""

def global_state() -> tuple[int, int, int, int, int, int, int, int]:
    """The state entries are compared with: included and excluded dispatch keys, default dtype, autocast dtypes, grad
    mode, deterministic algorithms, torch function disabled, number of torch function modes."""

def cuda_driver() -> dict[str, int]:
    """Version of the CUDA driver as ``major`` and ``minor``; raises RuntimeError if there is none."""

def capture_all(choose: Callable[[FunctionType], CodeRecord | None], miss: Callable[..., Any], /) -> None:
    """Run every Python function as compiled for whose code ``choose(function)`` gives a record."""

def bind_guards(
    trees: tuple[Any, ...], objects: list[Any], predicates: dict[str, Callable[..., Callable[[Any], bool]]], /
) -> tuple[tuple[Any, ...], list[tuple[tuple[tuple[Any, ...], ...], tuple[Any, ...]]]]:
    """The guard trees with live objects in the place of ids, callables in that of the checks that ``predicates`` names,
    and ``(path, check)`` of each check that is on a number or a tensor. LookupError for an id never given."""

def set_enabled(enabled: bool, /) -> bool:
    """Whether compiled functions called by this thread look for entries; returns the former setting."""

def is_enabled() -> bool:
    """The setting of this thread."""

def pack(*values: Any) -> State:
    """A State that holds the values."""

def is_state(value: object, /) -> bool:
    """Whether the value was made by :func:`pack`."""

def store(target: dict[Any, Any], key: object, number: int, value: object, /) -> None:
    """Store a value in a dict under a key whose hash is known, without asking the key for it."""

def discard(target: dict[Any, Any], key: object, number: int, /) -> None:
    """Delete a key whose hash is known, if it is there, without asking the key for it."""

def make_step(code: CodeType, globals: dict[str, Any], /) -> FunctionType:
    """A plain function without a closure; ValueError if the code copies free variables from one."""

class State(tuple[Any, ...]):
    """The locals and stack of a frame at a graph break; made by rewritten code only."""

class GuardProgram:
    """Compiled checks over a call's arguments and what the function reads."""

    checks: Final[int]
    captures: Final[int]
    dead: Final[bool]  # an object that a guard compares with is gone: no call can pass any more

    def __new__(cls, tree: tuple[Any, ...] | list[Any], captures: SupportsIndex) -> GuardProgram: ...
    def check(self, function: FunctionType | CompiledFunction, bound: tuple[Any, ...], /) -> tuple[Any, ...] | None:
        """The captured values, or None if a guard fails. Never raises on account of a guard."""

    def explain(self, function: FunctionType | CompiledFunction, bound: tuple[Any, ...], /) -> tuple[int, Any]:
        """(number of the first failing check, value found); Ellipsis for a value that does not exist. When an accessor
        fails the number is that of the next check of the walk. (-1, None) if all hold."""

    def settle(self, function: FunctionType | CompiledFunction, bound: tuple[Any, ...], /) -> tuple[int, Any]:
        """As explain; each tensor check that has no dispatch key set takes that of the tensor it finds."""

class Entry:
    """One compiled version of a code object; holds in the global state of the call it was made for."""

    guards: Final[GuardProgram]
    code: Final[CodeType]
    report: Final[Any]
    hits: Final[int]
    state: Final[tuple[int, ...] | None]

    def __new__(cls, guards: GuardProgram, code: CodeType, report: Any = None) -> Entry: ...

class CodeRecord:
    """Entries and counters shared by all function objects of one code object."""

    entries: Final[tuple[Entry, ...]]
    data: Any
    state: Literal["active", "full", "plain", "disabled"]
    hits: Final[int]
    misses: Final[int]
    rejected: Final[int]

    def __new__(cls, data: Any = None) -> CodeRecord: ...
    def remove(self, entry: Entry, /) -> bool:
        """Forget one entry; calls that run it finish. False if the record does not hold it."""

    def clear(self) -> None:
        """Forget all entries."""

class CompiledFunction:
    """Calls the entry of the record whose guards hold; binds as a method; copied and pickled like a function.

    One that ``continues`` is called by rewritten code alone, as the last thing that does: the call is made when that
    code has returned.
    """

    function: Final[FunctionType]
    record: Final[CodeRecord]
    miss: Final[Miss]
    __code__: CodeType
    __globals__: Final[dict[str, Any]]
    __closure__: Final[tuple[Any, ...] | None]
    __defaults__: tuple[Any, ...] | None
    __kwdefaults__: dict[str, Any] | None

    def __new__(
        cls, function: FunctionType, record: CodeRecord, miss: Miss, continues: bool = False
    ) -> CompiledFunction: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...
    def find(self, bound: tuple[Any, ...], /) -> Entry | None:
        """The entry whose guards hold now; for a host that waited while another thread compiled."""

class ObjectTable:
    """Ids of the live objects of one compile, and descriptions of the plain ones (docs/contracts.md, section 2)."""

    objects: Final[list[Any]]
    """By id; the first is None. The list keeps the objects alive."""
    plain: Final[dict[type, tuple[str, int, int, frozenset[str]]]]
    """Classes whose instances are nothing but their attributes: their kind, the least depth to which attributes are
    described, how many levels an instance uses up, and the attributes whose values are mentioned only."""

    def identify(self, value: object, /) -> int:
        """The id of a live object, new or known."""

    def reference(self, value: object, /) -> Any:
        """An id, or a tuple of the value itself if its exact type is that of a constant."""

    def mention(self, value: object, depth: int, /) -> Any:
        """A reference to what is described in its turn if ``depth`` levels are left."""

    def mention_all(self, values: Iterable[Any], depth: int, /) -> list[Any]:
        """The references to several values."""

    def own(self, namespace: dict[str, Any], value: object, /) -> int | None:
        """Note down that a dict holds an object's attributes; the dict's id where it has one already."""

    def enqueue(self, number: int, depth: int, /) -> None:
        """Have an object described that was not yet, if ``depth`` levels are left; LookupError for an unknown id."""

    def forget_description(self, number: int, /) -> None:
        """Describe an object again when it is mentioned again."""

    def write_queued(self, budget: int, /) -> tuple[list[tuple[int, str, int, Any]], list[tuple[int, int]]]:
        """Descriptions of up to ``budget`` objects that wait; ids and depths of the rest, which then wait no more.

        The method ``describe_one(number, depth)`` of the subclass writes those that are not plain.
        """

    def release(self) -> None:
        """Let the objects go: the compile is over."""

class LaunchPlan:
    """A compiled graph: called with its inputs, returns the tuple of its outputs.

    ``fallback`` is called instead where inputs share memory that the plan takes to be apart; RuntimeError without one.
    """

    def __new__(cls, plan: dict[str, Any], fallback: Callable[..., Any] | None = None) -> LaunchPlan: ...
    def __call__(self, *inputs: Any) -> tuple[Any, ...]: ...
    def consume(self, inputs: list[Any]) -> tuple[Any, ...]:
        """As a call with the inputs in the list, which is empty afterwards.

        One that nothing else holds ends where the plan frees it.
        """
    def into(self, inputs: tuple[Any, ...], places: tuple[Any, ...], /) -> tuple[Any, ...]:
        """As a call, with each output that has a place, a tensor and not None, written there.

        ValueError for a place that the output cannot have.
        """
    def placeable(self) -> tuple[bool, ...]:
        """For each output whether ``into`` takes a place for it: the plan allocates its memory, once."""
    def describe(self) -> list[tuple[Any, ...]]:
        """A tuple per step, its kind first; ("aten", operator, way) tells how each operator is called."""
