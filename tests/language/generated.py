"""Random programs: read from text, run as they are and compiled, and compared bit by bit."""

from __future__ import annotations

import ast
import functools
import itertools
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from checks import compare
from outcome import Describer, Elements, observed
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from variants import observer, opaque, words_of

import fusee

NAME = "generated"
ROUNDED = 8  # runs that tell how far off roundings may be
FILENAME = "<random program>"

Function = Callable[..., Any]


class Doubled(TorchDispatchMode):
    """Makes floats of float64 also where a program asks for float32, and draws random numbers as those of float32.

    A generator draws others in float64.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*tree_map(wide, args), **tree_map(wide, kwargs))
        kept = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            result = func(*tree_map(single, args), **tree_map(single, kwargs))
        finally:
            torch.set_default_dtype(kept)
        if func._schema.is_mutable:
            return args[0].copy_(result)
        return tree_map(double, result)


class Rounded(Doubled):
    """Rounds each result that float32 does not hold to one of the two floats beside it, by chance.

    So runs are as far apart as roundings alone may take them, in whichever order sums are computed.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.chance = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if not any(argument.alias_info and not argument.alias_info.is_write for argument in func._schema.returns):
            tree_map(self.round, result)
        return result

    def round(self, value: Any) -> None:
        """Round a tensor in place."""
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
            return
        nearest = value.float()
        beyond = torch.where(nearest.double() < value, torch.inf, -torch.inf).float()
        other = torch.nextafter(nearest, beyond)
        chosen = torch.rand(value.shape, generator=self.chance) < 0.5
        inexact = (nearest.double() != value) & value.isfinite()
        value.copy_(torch.where(inexact & chosen, other, nearest))


def single(value: Any) -> Any:
    """A value with float32 for float64, in tensors and as a dtype."""
    if isinstance(value, torch.Tensor) and value.dtype is torch.float64:
        return value.float()
    return torch.float32 if value is torch.float64 else value


def wide(value: Any) -> Any:
    """A value with float64 for float32 as a dtype."""
    return torch.float64 if value is torch.float32 else value


def double(value: Any) -> Any:
    """A value with float64 for float32."""
    return value.double() if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


@dataclass(frozen=True)
class Generated:
    """A function with the definitions ahead of it, and the arguments of its calls."""

    header: types.CodeType
    function: types.CodeType
    given: list[types.CodeType]
    words: dict[str, Any]

    def outcomes(self, wrap: Callable[[Function], Function], memory: str = "") -> list[Any]:
        """What each call does, and then the first one again, in definitions made afresh."""
        space: dict[str, Any] = {"__name__": "programs", "opaque": opaque, **observer(exact=True)}
        exec(self.header, space)
        exec(self.function, space)
        arguments = [eval(given, space) for given in [*self.given, self.given[0]]]
        function = wrap(space[NAME])
        describers = [Describer(exact=True, memory=memory) for _ in arguments]
        pairs = zip(arguments, describers, strict=True)
        return [observed(function, given, space, FILENAME, describer) for given, describer in pairs]

    def plain(self, memory: str = "") -> list[Any]:
        """What each call does uncompiled."""
        return self.outcomes(lambda function: function, memory)

    def compiled(self, memory: str = "") -> list[Any]:
        """What each call does compiled."""
        fusee.reset()
        return self.outcomes(lambda function: fusee.compile(function, **self.words), memory)

    def doubled(self, mode: TorchDispatchMode) -> list[Any]:
        """What each call does uncompiled where floats have twice the bits, so that roundings are those of the mode."""
        kept = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            with mode:
                return self.plain()
        finally:
            torch.set_default_dtype(kept)


@functools.lru_cache(maxsize=16)
def code_of(text: str) -> types.CodeType:
    """The code of definitions that many programs share."""
    return compile(text, FILENAME, "exec")


def read(text: str) -> Generated:
    """The program of a text. Raises SyntaxError where it is no Python."""
    header, calls, rest = text.rpartition("\n@calls(")
    function = ast.parse(calls + rest).body[0]
    assert isinstance(function, ast.FunctionDef)
    decorator = function.decorator_list.pop()
    assert isinstance(decorator, ast.Call)
    given = [compile(ast.Expression(item), "calls", "eval") for item in decorator.args]
    code = compile(ast.Module([function], []), FILENAME, "exec")
    return Generated(code_of(header), code, given, words_of(decorator))


def differs(program: Generated, eager: list[Any], captured: list[Any]) -> str | None:
    """How compiled runs differ from plain ones, None if they do not."""
    for number, (one, other) in enumerate(zip(eager, captured, strict=True)):
        try:
            compare(one, other, f"call {number}")
        except AssertionError as error:
            return None if only_rounding(program, eager, captured) else str(error)
    return None


def only_rounding(program: Generated, eager: list[Any], captured: list[Any]) -> bool:
    """Whether runs differ in floats alone, as near to those of float64 as those of plain runs are, or may be."""
    pairs = [pair for one, other in zip(eager, captured, strict=True) for pair in leaves(one, other)]
    if not all(isinstance(one, Elements) and isinstance(other, Elements) for one, other in pairs):
        return False
    try:
        near = program.doubled(Doubled())
        rounded = [program.doubled(Rounded(seed)) for seed in range(ROUNDED)]
    except Exception:
        return False
    found = itertools.chain.from_iterable(map(triples, eager, captured, zip(near, *rounded, strict=True)))
    return all(is_near(*triple) for triple in found)


def leaves(eager: Any, captured: Any) -> Iterator[tuple[Any, Any]]:
    """The innermost places in which two descriptions differ."""
    if isinstance(eager, tuple | list) and type(eager) is type(captured) and len(eager) == len(captured):
        for one, other in zip(eager, captured, strict=True):
            yield from leaves(one, other)
    elif eager != captured:
        yield eager, captured


def triples(eager: Any, captured: Any, others: Sequence[Any]) -> Iterator[tuple[Elements, Elements, Sequence[Any]]]:
    """Tensors that differ, with what stands in their place in other descriptions."""
    if isinstance(eager, Elements):
        if eager != captured:
            yield eager, captured, others
    elif isinstance(eager, tuple | list):
        alike = [items_of(other, len(eager)) for other in others]
        for one, other, *items in zip(eager, captured, *alike, strict=True):
            yield from triples(one, other, items)


def items_of(description: Any, count: int) -> Sequence[Any]:
    """The items of a description, None for each where it has another number of them."""
    fits = isinstance(description, tuple | list) and len(description) == count
    return description if fits else [None] * count


def is_near(eager: Elements, captured: Elements, others: Sequence[Any]) -> bool:
    """Whether floats are at most as far from those of float64 as the farthest of a plain run, or one unit off.

    Of the others the first one is of float64, and the rest says how far off roundings may be.
    """
    one, other = eager.tensor, captured.tensor
    tensors = [item.tensor if isinstance(item, Elements) else None for item in others]
    fitting = [tensor.double() for tensor in tensors if tensor is not None and tensor.shape == one.shape]
    if not one.is_floating_point() or tensors[0] is None or tensors[0].shape != one.shape:
        return False
    right = fitting[0]
    farthest = (one.double() - right).abs().max()
    bounds = [(tensor - right).abs() for tensor in fitting] + [right.abs() * torch.finfo(one.dtype).eps]
    most = functools.reduce(torch.maximum, bounds, farthest)
    return bool(((other.double() - right).abs() <= most).all())
