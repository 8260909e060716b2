"""``shaped_call``: what a torch function returns for sizes that change (docs/contracts.md, section 3).

The sizes of the fake arguments are PyTorch's symbolic integers. Those of the results are expressions over them, and
what PyTorch decided on the way is told to the compiler, which guards it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch._dynamo.guards  # which ShapeEnv imports where it is first used
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import Source
from torch._subclasses import fake_tensor
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from . import fake, names, tensors

if TYPE_CHECKING:
    from .answer import Answers, Reply
    from .tensors import Metadata

Symbol = tuple[str, int, int]
Sizes = Mapping[str, int]
_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": torch.sym_max,
    "min": torch.sym_min,
}
_RELATIONS = {
    "Equality": "==",
    "Unequality": "!=",
    "StrictLessThan": "<",
    "LessThan": "<=",
    "StrictGreaterThan": ">",
    "GreaterThan": ">=",
}
_NAMES = {"FloorDiv": "//", "CleanDiv": "//", "Mod": "%", "PythonMod": "%", "Max": "max", "Min": "min"}


class _Named(Source):
    """Where PyTorch is told that a symbol comes from."""

    def __init__(self, name: str) -> None:
        self._text = name

    @property
    def _name_template(self) -> str:
        return self._text


class _Recorder(fake.Recorder):  # type: ignore[no-untyped-call]
    """Writes sizes as expressions."""

    def __init__(self, call: ShapedCall, answers: Answers, inputs: list[torch.Tensor]) -> None:
        super().__init__(answers, inputs)
        self._call = call

    def metadata(self, tensor: torch.Tensor) -> Any:
        """What is written about a result."""
        return self._call.plain(tensor)

    def write(self, value: Any) -> Any:
        """An argument of a node."""
        if isinstance(value, torch.SymInt):
            return "size", self._call.expression(value)
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            raise fake.Unfakeable("an operation takes a number that depends on sizes")
        if isinstance(value, torch.Size) and any(isinstance(size, torch.SymInt) for size in value):
            value = list(value)
        return super().write(value)


def _resized(name: str) -> Callable[..., torch.Tensor]:
    """An operator that resizes images: C++ finds the size that a factor gives only for fixed sizes."""

    def resize(image: Any, size: Any, *more: Any) -> torch.Tensor:
        *corners, factors = more
        factors = factors or [None] * (image.dim() - 2)
        if size is None:
            size = [_scaled(length, float(factor)) for length, factor in zip(image.shape[2:], factors, strict=True)]
        return getattr(torch.ops.aten, name).default(image, size, *corners, *factors)  # type: ignore[no-any-return]

    return resize


def _scaled(length: Any, factor: float) -> Any:
    if factor >= 1 and factor.is_integer():
        return length * int(factor)
    if 0 < factor < 1 and math.frexp(factor)[0] == 0.5:  # one over a power of two, so that it is exact
        return length // int(1 / factor)
    raise fake.Unfakeable("a size is rounded")


_RESIZING = {
    f"torch._C._nn.{name}": _resized(name)
    for name in (
        *(
            f"{kind}{dimensions}d"
            for kind in ("upsample_nearest", "_upsample_nearest_exact")
            for dimensions in (1, 2, 3)
        ),
        *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
    )
}


def answer(answers: Answers, symbols: list[Symbol], target: Any, arguments: list[Any], keywords: list[Any]) -> Reply:
    """What PyTorch's C++ tells, or where that wants fixed sizes, what its Python does, which takes more of them.

    It must be what is known for the sizes of this call, as fake tensors are not always laid out like the real ones.
    """
    values = {name: hint for name, hint, _ in symbols}
    fixed = [_at(values, argument) for argument in arguments], [(name, _at(values, value)) for name, value in keywords]
    best: Reply = ("unsupported", "the host does not tell it for all sizes"), []
    try:
        function = _RESIZING.get(target) or (names.resolve(target) if type(target) is str else answers.build(target))
    except LookupError:
        return best
    for in_python in (False, True):
        with enable_python_dispatcher() if in_python else contextlib.nullcontext():
            known = answers.fixed_call(target, *fixed)[0]
            if known[0] != "value":
                break  # some functions read at once what a fake tensor does not have
            reply = ShapedCall(answers, symbols).run(function, arguments, keywords)
        if _pins(reply[0]) < _pins(best[0]) and _agree(values, reply[0], known):
            best = reply
        if _pins(best[0]) == 0:
            break
    return best


def _pins(outcome: tuple[Any, ...]) -> float:
    """How many equations hold for the sizes of an outcome."""
    return sum(relation == "==" for relation, *_ in outcome[3]) if outcome[0] == "value" else math.inf


def _agree(values: Sizes, outcome: tuple[Any, ...], known: tuple[Any, ...]) -> bool:
    if _at(values, outcome[1], _LAYOUT) != _at(values, known[1], _LAYOUT):
        return False
    runs, wanted = outcome[2], known[2]
    if runs is None or wanted is None:
        return runs is wanted
    return _operations(values, runs["nodes"]) == _operations(values, wanted["nodes"])


def _operations(values: Sizes, nodes: list[Any]) -> list[Any]:
    """The operators that ran and the layouts of what they returned."""
    return [
        (node[1], [None if found is None else _metadata_at(values, found)[:_LAYOUT] for found in node[4]])
        for node in nodes
    ]


_LAYOUT = 5  # items of metadata ahead of what autograd knows


def _at(values: Sizes, written: Any, items: int | None = None) -> Any:
    """An argument or a result with the sizes of this call, and so many items of metadata."""
    if type(written) is list:
        return [_at(values, item, items) for item in written]
    if type(written) is not tuple or len(written) < 2:
        return written
    if written[0] == "size":
        return (size_at(values, written[1]),)
    if written[0] == "T":
        place = next(place for place, part in enumerate(written) if type(part) is tuple)
        return *written[:place], _metadata_at(values, written[place])[:items], *written[place + 1 :]
    return tuple(_at(values, part, items) for part in written)


def _metadata_at(values: Mapping[str, Any], metadata: Any) -> Any:
    kind, device, sizes, strides, offset, *rest = metadata
    sizes, strides = (tuple(size_at(values, size) for size in several) for several in (sizes, strides))
    return kind, device, sizes, strides, size_at(values, offset), *rest


def size_at(values: Mapping[str, Any], written: Any) -> Any:
    """A number, the name of a symbol, or an operator with such operands."""
    if type(written) is int:
        return written
    if type(written) is str:
        return values[written]
    sign, operands = written
    return functools.reduce(_OPERATORS[sign], [size_at(values, operand) for operand in operands])


class ShapedCall(fake.TensorCall):
    """One run of a function for a ``shaped_call``."""

    def __init__(self, answers: Answers, symbols: Iterable[Symbol]) -> None:
        super().__init__(answers)
        self._environment = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
        self._symbols = {name: self._symbol(name, hint, least) for name, hint, least in symbols}
        self._names = {value.node.expr: name for name, value in self._symbols.items()}
        self._mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=False, shape_env=self._environment)

    def _symbol(self, name: str, hint: int, least: int) -> torch.SymInt:
        source = _Named(name)
        if least >= 2 and hint >= 2:
            symbol = self._environment.create_symbol(hint, source, DimDynamic.DYNAMIC)
        else:
            symbol = self._environment.create_unspecified_symbol(hint, source, DimDynamic.DYNAMIC)
        return self._environment.create_symintnode(symbol, hint=hint, source=source)  # type: ignore[return-value]

    def run(self, function: Any, arguments: list[Any], keywords: list[Any]) -> tuple[Any, list[Any]]:
        """The outcome; where the function raises it is for the sizes of this call that the compiler wants to know."""
        outcome, descriptions = super().run(function, arguments, keywords)
        return (outcome, descriptions) if outcome[0] != "raise" else (("unsupported", "it raises"), [])

    def _run(self, function: Any, arguments: list[Any], keywords: list[Any]) -> tuple[Any, ...]:
        outcome = super()._run(function, arguments, keywords)
        nodes = outcome[2]["nodes"] if outcome[2] else []
        if any(random and "dropout_p" not in schema for *_, (schema, random) in nodes):
            raise fake.Unfakeable("the numbers that are drawn are those of the very operation")
        if self._environment.deferred_runtime_asserts:
            raise fake.Unfakeable("what it returns depends on values")
        return *outcome, self._decisions()

    def mode(self) -> contextlib.AbstractContextManager[Any]:
        """Under which the arguments are made and the function runs."""
        return self._mode

    def recorder(self, inputs: list[torch.Tensor]) -> fake.Recorder:
        """What writes down the operations."""
        return _Recorder(self, self._answers, inputs)

    def make_tensor(self, metadata: Metadata) -> torch.Tensor:
        """An argument."""
        return fake.make_tensor(_metadata_at(self._symbols, metadata))

    def plain(self, tensor: torch.Tensor) -> Any:
        """Metadata of a result."""
        if type(tensor) is not fake_tensor.FakeTensor or not tensors.is_dense(tensor):
            raise fake.Unfakeable("what comes out is not a plain dense tensor")
        flags = tensors._flags(tensor, True) & ~(tensors.UNUSUAL | tensors.DECORATED)
        dtype, device = str(tensor.dtype).removeprefix("torch."), str(tensor.device)
        sizes, strides = tuple(map(self.expression, tensor.shape)), tuple(map(self.expression, tensor.stride()))
        return dtype, device, sizes, strides, self.expression(tensor.storage_offset()), tensor.requires_grad, flags

    def _build(self, argument: Any) -> Any:
        if type(argument) is tuple and len(argument) == 2 and argument[0] == "size":
            return size_at(self._symbols, argument[1])
        return super()._build(argument)

    def expression(self, size: int | torch.SymInt) -> Any:
        """A size of a result as ``size_at`` reads it."""
        return size if type(size) is int else self._tree(size.node.expr)  # type: ignore[union-attr]

    def _tree(self, expression: Any) -> Any:
        if expression.is_Integer:
            return int(expression)
        if expression in self._names:
            return self._names[expression]
        kind, operands = type(expression).__name__, expression.args
        if kind == "Pow" and operands[1].is_Integer and 0 < int(operands[1]) < 5:
            return "*", [self._tree(operands[0])] * int(operands[1])
        if kind == "ModularIndexing":
            base, divisor, modulus = map(self._tree, operands)
            return "%", [("//", [base, divisor]), modulus]
        sign = {"Add": "+", "Mul": "*"}.get(kind) or _NAMES.get(kind)
        if sign is None:
            raise fake.Unfakeable(f"a size is a {kind}")
        return sign, [self._tree(operand) for operand in operands]

    def _decisions(self) -> list[tuple[str, Any, Any]]:
        """Relations of two expressions that held."""
        found: list[tuple[str, Any, Any]] = []
        for guard in self._environment.guards:
            self._decide(guard.expr, found)
        return found

    def _decide(self, decided: Any, found: list[tuple[str, Any, Any]]) -> None:
        kind = type(decided).__name__
        if kind == "And":
            for part in decided.args:
                self._decide(part, found)
        elif kind in _RELATIONS:
            left, right = decided.args
            found.append((_RELATIONS[kind], self._tree(left), self._tree(right)))
        elif kind != "BooleanTrue":
            raise fake.Unfakeable(f"it decides a {kind}")
