"""``tensor_call`` of NumPy's functions, which are tried out with NumPy itself (``fusee._arrays``)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy

from .. import _arrays
from . import fake
from .small import SmallCall

if TYPE_CHECKING:
    from .answer import Answers, Reply


class ArrayCall:
    """One call: what ``torch._numpy`` makes of it, where NumPy's own result is of the same kind."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def answer(self, target: str, function: Any, arguments: list[Any], keywords: list[Any]) -> Reply:
        """The outcome of the call; unsupported where the two libraries differ."""
        small = SmallCall(self._answers).outcome(target, function, arguments, keywords)
        reply = small if small is not None else fake.TensorCall(self._answers).run(function, arguments, keywords)
        outcome, _ = reply
        if outcome[0] != "value":
            return (
                reply if outcome[0] == "unsupported" else fake.unsupported(NotImplementedError("NumPy must raise it"))
            )
        try:
            found = list(_found(outcome[1], target.endswith(".operator.getitem")))
            args = [self._ones(argument) for argument in arguments]
            _arrays.check(target, args, {name: self._ones(value) for name, value in keywords}, found)
        except _arrays.Differs as error:
            return fake.unsupported(error)
        return reply

    def _ones(self, argument: Any) -> Any:
        parts = argument if isinstance(argument, tuple) else ()
        if len(parts) == 3 and parts[0] == "T":
            dtype, _, sizes, strides, *_ = parts[2]
            if math.prod(sizes) > _arrays.MOST_ELEMENTS:
                raise _arrays.Differs("too large to try out")
            order = sorted(range(len(sizes)), key=lambda dim: strides[dim], reverse=True)
            dense = numpy.ones([sizes[dim] for dim in order], dtype)
            return dense.transpose([order.index(dim) for dim in range(len(sizes))])
        if len(parts) > 1 and parts[0] in ("tuple", "list"):
            items = [self._ones(item) for item in parts[1]]
            return tuple(items) if parts[0] == "tuple" else items
        return self._answers.build(argument)


def _found(structure: Any, item: bool) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Dtype, shape and relation to the arguments, of each array of a result; scalars only where it is an item."""
    if structure[0] == "T":
        dtype, _, sizes, *_ = structure[1]
        if not sizes and not item:
            raise _arrays.Differs("NumPy gives a scalar")
        relation = structure[2] if structure[2] == "new" else structure[2][0]
        yield dtype, tuple(sizes), relation if sizes else "scalar"
    elif len(structure) == 2 and structure[0] in ("tuple", "list"):
        for part in structure[1]:
            yield from _found(part, item)
    else:
        raise _arrays.Differs("the result is no array")
