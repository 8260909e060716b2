"""Random programs of tensor operations, and checks of what the backend makes of them.

A program is a list of calls that were chosen at random while eager ran them, so that every call is one that eager
takes. :func:`check` compares three ways: the fused plan with one in which every operation is a kernel of its own, bit
by bit; every operation by itself, on what eager handed it, with eager and with float64; and the same on WebAssembly.
``python -m kernels.random_graphs FIRST COUNT`` (in ``tests``) checks many and prints those that differ.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from .harness import Planner, clone_with_layout

Operation = Callable[..., Any]

TYPES = (
    *(torch.float32,) * 4,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)
SHAPES: tuple[tuple[int, ...], ...] = (
    (),
    (1,),
    (7,),
    (13,),
    (3, 13),
    (13, 1),
    (1, 13),
    (13, 13),
    (2, 3, 13),
    (3, 1, 13),
    (0, 13),
    (3, 0),
    (2, 0, 13),
    (5, 2, 1, 13),
    (17, 31),
    (257,),
    (2, 16, 13),
)
LARGE: tuple[tuple[int, ...], ...] = ((70_001,), (3, 40_009), (1031, 67), (40_009, 2))
MOST_ELEMENTS = 300_000


def named(module: Any, names: str) -> dict[str, Operation]:
    """The functions of a module with these names."""
    return {name: getattr(module, name) for name in names.split()}


def of_rank(function: Operation) -> Operation:
    """The operation on tensors that have a dimension; others are added to."""
    return lambda x: function(x) if x.dim() else x + 1


SMOOTH_UNARY: dict[str, Operation] = {
    **named(torch, "neg sigmoid tanh erf square atan clone"),
    **named(F, "gelu silu softplus elu"),
    "sin": lambda x: torch.sin(torch.tanh(x)),
    "exp": lambda x: torch.exp(-x.abs()),
    "rsqrt": lambda x: torch.rsqrt(x * x + 1),
    "contiguous": lambda x: x.contiguous(),
    "flip": of_rank(lambda x: x.flip(-1)),
    "flip_all": lambda x: x.flip(tuple(range(x.dim()))),
    "roll": of_rank(lambda x: x.roll(2, 0)),
    "roll_far": lambda x: x.roll(-1000),
    "roll_two": of_rank(lambda x: x.roll((-1, 3), (0, x.dim() - 1)) if x.dim() > 1 else x.roll(-1, 0)),
    "reflect": lambda x: F.pad(x, (1, 2), mode="reflect") if x.dim() in (2, 3) else x + 1,
    "reflect_two": lambda x: F.pad(x, (2, 1, 0, 1), mode="reflect") if x.dim() in (3, 4) else x + 1,
    "replicate": lambda x: F.pad(x, (0, 3), mode="replicate") if x.dim() in (2, 3) else x + 1,
    "rotate_half": of_rank(lambda x: torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)),
}
ROUGH_UNARY: dict[str, Operation] = {
    **named(torch, "abs relu floor ceil round trunc sign isnan isinf signbit sqrt log log1p expm1 reciprocal frac"),
    **named(torch, "logical_not bitwise_not exp nan_to_num"),
    **named(F, "hardswish"),
    "clamp": lambda x: torch.clamp(x, -1, 2),
    "tril": lambda x: x.tril(1),
}
SMOOTH_BINARY: dict[str, Operation] = {
    **named(torch, "add sub mul hypot logaddexp"),
    "div": lambda a, b: a / (b.abs() + 1),
    "lerp": lambda a, b: torch.lerp(a, b.to(a.dtype), 0.25),
    "rsub": lambda a, b: torch.rsub(a, b, alpha=2),
    "add_alpha": lambda a, b: torch.add(a, b, alpha=3),
}
ROUGH_BINARY: dict[str, Operation] = {
    **named(
        torch, "maximum minimum fmax fmin eq ne lt le gt ge div fmod remainder floor_divide logical_and logical_xor"
    ),
    **named(torch, "bitwise_and bitwise_or atan2 copysign pow bitwise_left_shift bitwise_right_shift"),
    "where": lambda a, b: torch.where(a > b, a, b * 2),
    "masked_fill": lambda a, b: a.masked_fill(b > 0, 1),
}
SMOOTH_REDUCTIONS: dict[str, Operation] = {
    **named(torch, "sum mean var logsumexp"),
    "norm": lambda x, dim, keepdim: torch.linalg.vector_norm(x, 2, dim, keepdim),
}
ROUGH_REDUCTIONS = named(torch, "amax amin any all std")
ONE_DIMENSION: dict[str, Operation] = {
    **named(torch, "argmax argmin prod any all"),
    "max": lambda x, dim, keepdim: torch.max(x, dim, keepdim)[0],
}
ROWS = named(torch, "softmax log_softmax cumsum")
IN_PLACE = named(torch.Tensor, "add_ mul_ sub_ copy_")


@dataclass
class Step:
    """One call; ``arguments`` are positions among the values of the program."""

    name: str
    function: Operation
    arguments: list[int]
    before: list[torch.Tensor] = field(default_factory=list)  # the arguments as the call found them
    after: list[torch.Tensor] = field(default_factory=list)  # its results


@dataclass
class Program:
    """Inputs, calls, and the values that the program returns."""

    inputs: list[torch.Tensor]
    steps: list[Step] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    smooth: bool = False

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        """Runs the program on inputs like its own: its results, and the inputs as they were left."""
        values = list(inputs)
        for step in self.steps:
            values.extend(results(step.function(*(values[index] for index in step.arguments))))
        return [values[index] for index in self.outputs] + list(inputs)

    def separately(self, *arguments: torch.Tensor) -> list[torch.Tensor]:
        """Runs every call by itself on its own arguments, one after the other: all results, then all arguments."""
        made: list[torch.Tensor] = []
        position = 0
        for step in self.steps:
            made.extend(results(step.function(*arguments[position : position + len(step.arguments)])))
            position += len(step.arguments)
        return made + list(arguments)

    def __str__(self) -> str:
        lines = [f"v{k} = {describe(tensor)}" for k, tensor in enumerate(self.inputs)]
        number = len(self.inputs)
        for step in self.steps:
            made = [f"v{number + k}" for k in range(len(step.after))]
            number += len(made)
            shapes = ", ".join(describe(tensor) for tensor in step.after)
            lines.append(f"{', '.join(made)} = {step.name}({', '.join(f'v{k}' for k in step.arguments)})  # {shapes}")
        return "\n".join([*lines, f"return {', '.join(f'v{k}' for k in self.outputs)}"])


def describe(tensor: torch.Tensor) -> str:
    """Type and layout of a tensor."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype}{list(tensor.shape)} strides {list(tensor.stride())} at {tensor.storage_offset()}"


def results(value: Any) -> list[torch.Tensor]:
    """The tensors that a call gave."""
    return [value] if isinstance(value, torch.Tensor) else list(value)


class Generator:
    """Chooses a program. ``smooth`` ones hold no operation whose result jumps where its argument hardly changes."""

    def __init__(self, seed: int, smooth: bool) -> None:
        self.random = random.Random(seed)
        self.torch_random = torch.Generator().manual_seed(seed)
        self.smooth = smooth
        self.program = Program([], smooth=smooth)
        self.values: list[torch.Tensor] = []

    def generate(self, calls: int) -> Program:
        """A program of at most so many calls."""
        shapes = [self.random.choice(SHAPES) for _ in range(3)]
        if self.random.random() < 0.15:
            shapes[0] = self.random.choice(LARGE)
        for _ in range(self.random.randint(2, 4)):
            self.program.inputs.append(self.tensor(self.random.choice(shapes)))
        self.values = [clone_with_layout(tensor) for tensor in self.program.inputs]
        for _ in range(calls):
            self.step()
        count = len(self.values)
        self.program.outputs = sorted({self.random.randrange(count) for _ in range(3)} | {count - 1})
        return self.program

    def tensor(self, shape: tuple[int, ...]) -> torch.Tensor:
        """An input: contiguous, with gaps, transposed, expanded, or a slice at an offset."""
        dtype = self.random.choice(TYPES)
        layout = self.random.choice(("contiguous", "contiguous", "gaps", "transposed", "offset", "expanded"))
        if not shape:
            return self.numbers(shape, dtype)
        if layout == "gaps":
            return self.numbers((*shape[:-1], shape[-1] * 2), dtype)[..., ::2]
        if layout == "transposed":
            return self.numbers(shape[::-1], dtype).permute(*range(len(shape) - 1, -1, -1))
        if layout == "offset":
            return self.numbers((*shape[:-1], shape[-1] + 3), dtype)[..., 2:-1]
        if layout == "expanded":
            return self.numbers((1, *shape[1:]), dtype).expand(shape)
        return self.numbers(shape, dtype)

    def numbers(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Contiguous elements."""
        if dtype.is_floating_point:
            drawn = torch.randn(shape, generator=self.torch_random, dtype=torch.float64).to(dtype)
            if not self.smooth and self.random.random() < 0.2 and drawn.numel():
                special = self.random.choice((float("nan"), float("inf"), -float("inf"), -0.0, 0.0))
                drawn.view(-1)[self.random.randrange(drawn.numel())] = special
            return drawn
        low, high = (0, 2) if dtype == torch.bool else (0 if dtype == torch.uint8 else -9, 10)
        return torch.randint(low, high, shape, generator=self.torch_random).to(dtype)

    def pick(self) -> int:
        """A value, the latest ones more often."""
        count = len(self.values)
        return self.random.choice((self.random.randrange(count), self.random.randrange(max(0, count - 3), count)))

    def dimension(self, index: int) -> int:
        """A dimension of a value, 0 where it has none."""
        return self.random.randrange(max(self.values[index].dim(), 1))

    def step(self) -> None:
        """Tries one call; those that eager refuses are left out."""
        kinds: list[tuple[int, Callable[[], None]]] = [
            (5, self.unary),
            (6, self.binary),
            (2, self.with_number),
            (2, self.cast),
            (6, self.view),
            (3, self.reduction),
            (2, self.row),
            (3, self.index),
            (3, self.join),
            (2, self.pad),
            (4, self.in_place),
            (1, self.product),
            (1, self.pool),
            (1, self.alike),
        ]
        self.random.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]()

    def call(self, name: str, function: Operation, *arguments: int) -> bool:
        """Appends a call, unless eager refuses it."""
        before = [clone_with_layout(self.values[index]) for index in arguments]
        try:
            made = results(function(*(self.values[index] for index in arguments)))
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            return False
        if any(tensor.numel() > MOST_ELEMENTS or tensor.dtype.is_complex for tensor in made):
            return False
        self.program.steps.append(Step(name, function, list(arguments), before, [clone_with_layout(t) for t in made]))
        self.values.extend(made)
        return True

    def unary(self) -> None:
        table = SMOOTH_UNARY if self.smooth else SMOOTH_UNARY | ROUGH_UNARY
        name = self.random.choice(list(table))
        self.call(name, table[name], self.pick())

    def binary(self) -> None:
        table = SMOOTH_BINARY if self.smooth else SMOOTH_BINARY | ROUGH_BINARY
        name = self.random.choice(list(table))
        for _ in range(3):
            if self.call(name, table[name], self.pick(), self.pick()):
                return

    def with_number(self) -> None:
        number = self.random.choice((2, -3, 0.5, 1.7, True))
        table: dict[str, Operation] = {"add": torch.add, "sub": torch.sub, "mul": torch.mul}
        if not self.smooth:
            names = ("eq", "lt", "ge", "div", "remainder", "floor_divide", "fmod", "clamp_min", "clamp_max")
            table |= {name: getattr(torch, name) for name in names}
        name, function = self.random.choice(list(table.items()))
        self.call(f"{name}[{number}]", lambda x: function(x, number), self.pick())

    def cast(self) -> None:
        dtype = self.random.choice(TYPES)
        index = self.pick()
        if not dtype.is_floating_point and self.values[index].is_floating_point():
            if self.smooth:
                return
            if dtype != torch.bool:  # what does not fit is undefined
                self.call(f"to[{dtype}]", lambda x: x.nan_to_num(0, 0, 0).clamp(0, 100).to(dtype), index)
                return
        self.call(f"to[{dtype}]", lambda x: x.to(dtype), index)

    def view(self) -> None:
        index = self.pick()
        value, dim = self.values[index], self.dimension(index)
        size = value.shape[dim] if value.dim() else 0
        other = self.dimension(index)
        start = self.random.randrange(max(size, 1))
        length = self.random.randint(0, max(size - start, 0))
        divisor = next((k for k in (2, 3, 13, 1) if size and size % k == 0), 1)
        shape = (*value.shape[:dim], divisor, -1, *value.shape[dim + 1 :])
        choices: list[tuple[str, Operation]] = [
            (f"transpose[{dim}, {other}]", lambda x: x.transpose(dim, other)),
            (f"narrow[{dim}, {start}, {length}]", lambda x: x.narrow(dim, start, length)),
            (f"step[{dim}, {start}]", lambda x: x[(slice(None),) * dim + (slice(start, None, 2),)]),
            (f"select[{dim}, {start}]", lambda x: x.select(dim, start)),
            (f"unsqueeze[{dim}]", lambda x: x.unsqueeze(dim)),
            (f"squeeze[{dim}]", lambda x: x.squeeze(dim)),
            ("expand", lambda x: x.expand(3, *x.shape)),
            ("expand_none", lambda x: x.expand(0, *x.shape)),
            (f"reshape[{shape}]", lambda x: x.reshape(shape)),
            ("flatten", lambda x: x.reshape(-1)),
            (f"diagonal[{dim}, {other}]", lambda x: x.diagonal(0, dim, other)),
            (f"unfold[{dim}]", lambda x: x.unfold(dim, 2, 1)),
            (f"chunk[{dim}]", lambda x: x.chunk(2, dim)),
            ("unbind", lambda x: x.unbind(0)[:3]),
        ]
        name, function = self.random.choice(choices)
        self.call(name, function, index)

    def reduction(self) -> None:
        index = self.pick()
        keepdim = self.random.random() < 0.5
        rank = self.values[index].dim()
        if not self.smooth and self.random.random() < 0.4:
            name, function = self.random.choice(list(ONE_DIMENSION.items()))
            dim = self.dimension(index)
            self.call(f"{name}[{dim}, {keepdim}]", lambda x: function(x, dim, keepdim), index)
            return
        table = SMOOTH_REDUCTIONS if self.smooth else SMOOTH_REDUCTIONS | ROUGH_REDUCTIONS
        name, function = self.random.choice(list(table.items()))
        dims = tuple(d for d in range(rank) if self.random.random() < 0.5) or tuple(range(rank))
        self.call(f"{name}[{dims}, {keepdim}]", lambda x: function(x, dims, keepdim=keepdim), index)

    def row(self) -> None:
        index = self.pick()
        dim = self.dimension(index)
        name, function = self.random.choice(list(ROWS.items()))
        self.call(f"{name}[{dim}]", lambda x: function(x, dim), index)

    def index(self) -> None:
        index = self.pick()
        value, dim = self.values[index], self.dimension(index)
        if not value.dim() or not value.shape[dim]:
            return
        size = value.shape[dim]
        shape = self.random.choice(((5,), (0,), (2, 3), tuple(value.shape)))
        positions = torch.randint(0, size, shape, generator=self.torch_random)
        self.program_constant(positions)
        at = len(self.values) - 1
        choices: list[tuple[str, Operation]] = [
            (f"index_select[{dim}]", lambda x, i: x.index_select(dim, i)),
            (f"gather[{dim}]", lambda x, i: x.gather(dim, i)),
            ("embedding", lambda x, i: F.embedding(i, x)),
            (f"getitem[{dim}]", lambda x, i: x[(slice(None),) * dim + (i,)]),
            (f"getitem[{dim}, negative]", lambda x, i: x[(slice(None),) * dim + (i - size,)]),
            (f"index_add[{dim}]", lambda x, i: x.index_add(dim, i, x.index_select(dim, i))),
            (f"scatter[{dim}]", lambda x, i: x.scatter(dim, i[:1], 3)),
        ]
        name, function = self.random.choice(choices)
        self.call(name, function, index, at)

    def program_constant(self, tensor: torch.Tensor) -> None:
        """Positions, made by the program itself so that the number of inputs stays."""
        shape = tensor.shape

        def made(x: torch.Tensor) -> torch.Tensor:
            steps = torch.arange(len(flat), device=x.device)
            return (steps * 7 + seed).remainder(bound).reshape(shape)

        flat = tensor.reshape(-1).tolist()
        bound = max(flat, default=0) + 1
        seed = self.random.randrange(100)
        self.call(f"positions[{seed}, {bound}, {list(shape)}]", made, 0)

    def join(self) -> None:
        first = self.pick()
        dim = self.dimension(first)
        count = self.random.randint(1, 3)
        shape = self.values[first].shape

        def fits(other: torch.Tensor) -> bool:
            return other.dim() == len(shape) and all(
                a == b or d == dim for d, (a, b) in enumerate(zip(other.shape, shape, strict=True))
            )

        fitting = [k for k, value in enumerate(self.values) if fits(value)]
        chosen = [first] + [self.random.choice(fitting) for _ in range(count)]
        if self.random.random() < 0.3:
            self.call(f"stack[{dim}]", lambda *x: torch.stack(x, dim), *chosen)
        else:
            self.call(f"cat[{dim}]", lambda *x: torch.cat(x, dim), *chosen)

    def pad(self) -> None:
        index = self.pick()
        rank = self.values[index].dim()
        if not rank:
            return
        widths = [self.random.choice((0, 1, 2, 3, 9, -1, -2)) for _ in range(2 * self.random.randint(1, min(rank, 3)))]
        number = self.random.choice((0, 1, -2) if self.smooth else (0, 1, -2, 0.5, True, float("-inf")))
        self.call(f"pad[{widths}, {number}]", lambda x: F.pad(x, widths, value=number), index)

    def pool(self) -> None:
        index = self.pick()
        if self.values[index].dim() not in (3, 4):
            return
        kernel, stride, dilation = (self.random.randint(1, 3) for _ in range(3))
        padding, ceil = self.random.randint(0, kernel // 2), self.random.random() < 0.3
        settings = (kernel, stride, padding, dilation, ceil)
        with_indices = not self.smooth and self.random.random() < 0.3  # of equal elements any may be the greatest
        function: Operation = F.max_pool2d_with_indices if with_indices else F.max_pool2d
        self.call(f"max_pool2d[{settings}]", lambda x: function(x, *settings), index)

    def alike(self) -> None:
        """The same formula over several values, as an optimizer has it."""
        chosen = [self.pick() for _ in range(self.random.randint(2, 4))]
        self.call("alike", lambda *values: [(x * 2).square() + 1 for x in values], *chosen)

    def in_place(self) -> None:
        target, name = self.pick(), self.random.choice([*IN_PLACE, "copy_"])
        function = IN_PLACE[name]
        if overlaps_itself(self.values[target]):
            return  # the order of elements is undefined
        if self.random.random() < 0.3:
            number = self.random.choice((2, 0, 3))
            function = torch.Tensor.fill_ if name == "copy_" else function
            self.call(f"{name}[{number}]", lambda x: function(x, number), target)
            return
        for _ in range(3):
            source = self.pick()
            own, given = self.values[target], self.values[source]
            if self.smooth and given.is_floating_point() and not own.is_floating_point():
                continue
            if (given.is_floating_point() and not own.is_floating_point()) or (
                shares_memory(own, given) and source != target
            ):
                continue  # what does not fit an integer, and the order of elements, are undefined
            if self.call(name, function, target, source):
                return

    def product(self) -> None:
        first, second = self.pick(), self.pick()
        if min(self.values[first].dim(), self.values[second].dim()) > 1:  # else eager reshapes a result in place
            self.call("matmul", lambda x, y: x @ y.transpose(-1, -2), first, second)


def shares_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors lie in one storage."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether two elements are one place in memory."""
    reached = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= reached:
            return True
        reached += (size - 1) * stride
    return False


def program_of(seed: int) -> Program:
    """The program of a seed; every third is smooth."""
    return Generator(seed, smooth=seed % 3 == 0).generate(3 + seed % 16)


# ---- checks ----


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The elements so that equal bits are equal; NaN is one value."""
    if not tensor.is_floating_point():
        return tensor
    number = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    whole = torch.where(tensor.isnan(), torch.full((), float("nan"), dtype=tensor.dtype), tensor)
    return whole.contiguous().view(number)


def same(got: Sequence[torch.Tensor], want: Sequence[torch.Tensor], eps: float = 0) -> list[str]:
    """How two lists of results differ, bit by bit; or by more than `eps`, relative to the largest element."""
    found = []
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if eps and a.is_floating_point() and a.dtype == b.dtype and a.shape == b.shape and a.numel():
            size = b.double().where(b.isfinite(), torch.zeros(())).abs().max()
            if torch.allclose(a.double(), b.double(), rtol=0, atol=eps * float(size), equal_nan=True):
                continue
        if a.dtype != b.dtype or a.shape != b.shape or not torch.equal(bits(a), bits(b)):
            found.append(f"result {k}: {first_difference(a, b)}")
    return found


def first_difference(a: torch.Tensor, b: torch.Tensor) -> str:
    """Where two results differ first."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{describe(a)} for {describe(b)}"
    where = (bits(a) != bits(b)).nonzero()
    place = tuple(where[0].tolist())
    return f"{len(where)} of {a.numel()} elements, first at {place}: {a[place].item()!r} for {b[place].item()!r}"


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements in double precision, where they are numbers with a fraction."""
    copy = clone_with_layout(tensor)
    return copy.double() if tensor.is_floating_point() else copy


def far(got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor, units: float) -> str:
    """How a result is farther from the exact one than eager's is and than `units` in the last place; "" if not."""
    if got.dtype != want.dtype or got.shape != want.shape or got.stride() != want.stride():
        return f"{describe(got)} for {describe(want)}"
    if not got.is_floating_point():
        return "" if torch.equal(got, want) else first_difference(got, want)
    if not got.numel():
        return ""
    eager, ours, true = want.double(), got.double(), exact.double()
    special = ~(eager.isfinite() & true.isfinite())
    if not torch.equal(bits(got)[special & eager.isnan()], bits(want)[special & eager.isnan()]):
        return f"NaN: {first_difference(got, want)}"
    usual = eager.isfinite() & true.isfinite()
    scale = torch.finfo(got.dtype).eps * torch.maximum(true.abs(), torch.full_like(true, torch.finfo(got.dtype).tiny))
    allowed = units * scale + 2 * (eager - true).abs().where(usual, torch.zeros_like(true))
    wrong = usual & ~((ours - true).abs() <= allowed)
    if not wrong.any():
        return ""
    place = tuple(wrong.nonzero()[0].tolist())
    return f"{first_wrong(wrong, got, want)}, exact {true[place].item()!r}"


def first_wrong(wrong: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> str:
    """How many elements are marked as wrong, and the first of them."""
    place = tuple(wrong.nonzero()[0].tolist())
    return f"{int(wrong.sum())} of {got.numel()}, first at {place}: {got[place].item()!r}, eager {want[place].item()!r}"


REDUCING = (
    "sum",
    "mean",
    "var",
    "logsumexp",
    "norm",
    "std",
    "prod",
    "softmax",
    "log_softmax",
    "cumsum",
    "matmul",
    "index_add",
    "add_alpha",  # from here on: differences of nearly equal numbers
    "gelu",
    "rsub",
    "lerp",
)


def check_separately(program: Program, found: Sequence[torch.Tensor]) -> list[str]:
    """Compares the result of every call by itself."""
    differences = []
    position = 0
    for step in program.steps:
        # On the CPU, since a GPU's own hardswish divides by six in float32 for any type.
        wide = [widened(tensor).cpu() for tensor in step.before]
        try:
            exact = [
                tensor.to(want.device) for tensor, want in zip(results(step.function(*wide)), step.after, strict=True)
            ]
        except RuntimeError:
            exact = [tensor.double() for tensor in step.after]
        for want, true in zip(step.after, exact, strict=True):
            got = found[position]
            position += 1
            reduces = step.name.partition("[")[0] in REDUCING
            if reduces and got.is_floating_point() and got.numel():
                true_scale = max(
                    float(t.double().nan_to_num(0, 0, 0).abs().max()) if t.numel() else 0.0 for t in step.before
                )
                count = max(t.numel() for t in step.before) / max(got.numel(), 1)
                slack = (
                    torch.finfo(got.dtype).eps * (2 + 0.1 * count**0.5) * max(true_scale, 1e-30) * max(count, 1) ** 0.5
                )
                close = ((got.double() - true.double()).abs() <= slack) & (got.shape == want.shape)
                if got.dtype == want.dtype and bool((close | far_elements(got, want, true)).all()):
                    continue
            why = far(got, want, true, 4)
            if why:
                differences.append(f"{step.name} of {', '.join(describe(t) for t in step.before)}: {why}")
    return differences


def far_elements(got: torch.Tensor, want: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
    """Elements that are as eager's, or near to them in units in the last place."""
    near = (got.double() - want.double()).abs() <= 16 * torch.finfo(got.dtype).eps * want.double().abs()
    return near | (got == want) | (got.isnan() & want.isnan()) | ~true.double().isfinite()


def coarsest(program: Program) -> float:
    """The precision of the narrowest type among a program's numbers with a fraction; 0 where there are none."""
    types = {t.dtype for s in program.steps for t in (*s.before, *s.after) if t.is_floating_point()}
    return max((torch.finfo(dtype).eps for dtype in types), default=0.0)


def check_whole(program: Program, found: Sequence[torch.Tensor]) -> list[str]:
    """Compares a smooth program's results with eager's, with room for what its roundings grow to."""
    want = program(*(clone_with_layout(tensor) for tensor in program.inputs))
    exact = program(*(widened(tensor) for tensor in program.inputs))
    eps = coarsest(program)
    differences = []
    for k, (got, eager, true) in enumerate(zip(found, want, exact, strict=True)):
        if got.dtype != eager.dtype or got.shape != eager.shape or got.stride() != eager.stride():
            differences.append(f"result {k}: {describe(got)} for {describe(eager)}")
            continue
        if not got.is_floating_point() or not got.numel():
            if not torch.equal(got, eager):
                differences.append(f"result {k}: {first_difference(got, eager)}")
            continue
        a, b, c = got.double(), eager.double(), true.double()
        usual = b.isfinite() & c.isfinite()
        size = float(c[usual].abs().max()) if usual.any() else 0.0
        error = float((b - c).abs()[usual].max()) if usual.any() else 0.0
        wrong = usual & ~((a - b).abs() <= 8 * error + 64 * eps * size)
        if wrong.any():
            differences.append(f"result {k} of eager: {first_wrong(wrong, got, eager)}")
    return differences


def run(planner: Planner, function: Operation, inputs: Sequence[torch.Tensor], **options: Any) -> list[torch.Tensor]:
    """Compiles for the inputs and runs on copies of them."""
    compiled = planner.compile(function, *inputs, **options)
    return list(compiled(*(clone_with_layout(tensor) for tensor in inputs)))


def check(planner: Planner, program: Program) -> list[str]:
    """Everything in which the backend and eager differ on a program."""
    if not program.steps:
        return []
    fused = run(planner, program, program.inputs, round=True, disjoint=True)
    unfused = run(planner, program, program.inputs, round=True, unfused=True)
    reduces = any(step.name.partition("[")[0] in REDUCING for step in program.steps)
    eps = 64 * coarsest(program) if reduces else 0.0  # the shape of a kernel's loops decides in what order it adds
    found = [f"fused and unfused: {text}" for text in same(fused, unfused, eps)]
    if program.smooth:
        found += [f"whole: {text}" for text in check_whole(program, unfused)]
    arguments = [tensor for step in program.steps for tensor in step.before]
    alone = run(planner, program.separately, arguments, unfused=True)
    found += [f"LLVM: {text}" for text in check_separately(program, alone)]
    wasm = planner.run_on_wasm(program.separately, *arguments, unfused=True)
    if wasm is not None:
        found += [f"WebAssembly: {text}" for text in check_separately(program, wasm)]
    return found


def on_device(program: Program, device: str) -> Program:
    """The program of the same calls on another device, with what eager gives there."""
    moved = Program(
        [clone_with_layout(tensor, device) for tensor in program.inputs], smooth=program.smooth, outputs=program.outputs
    )
    for step in program.steps:
        before = [clone_with_layout(tensor, device) for tensor in step.before]
        given = [clone_with_layout(tensor) for tensor in before]
        after = [clone_with_layout(tensor) for tensor in results(step.function(*given))]
        moved.steps.append(Step(step.name, step.function, step.arguments, before, after))
    return moved


def check_compiled(program: Program, compile_function: Callable[[Operation], Operation]) -> list[str]:
    """What a compiler of functions and eager differ in: call by call, and of smooth programs as a whole."""
    arguments = [clone_with_layout(tensor) for step in program.steps for tensor in step.before]
    found = check_separately(program, compile_function(program.separately)(*arguments))
    if program.smooth:
        fused = compile_function(program)(*(clone_with_layout(tensor) for tensor in program.inputs))
        found += [f"whole: {text}" for text in check_whole(program, fused)]
    return found


def main() -> None:
    """Checks the programs of the seeds on the command line."""
    import llvmlite  # type: ignore[import-untyped]

    from fusee import _shim

    warnings.simplefilter("ignore")
    first, count = int(sys.argv[1]), int(sys.argv[2])
    _shim.calibrate(torch)
    library = Path(llvmlite.__file__).parent / "binding" / "libllvmlite.so"
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "planner"))
        go = shutil.which("go") or "go"
        subprocess.run(
            [go, "build", "-o", program, "./backend/internal/planner"],
            cwd=Path(__file__).resolve().parents[2],
            check=True,
        )
        planner = Planner(program, str(library))
        differing = 0
        for seed in range(first, first + count):
            made = program_of(seed)
            try:
                found = check(planner, made)
            except Exception:
                found = [traceback.format_exc(limit=-3)]
            if found:
                differing += 1
                print(f"==== seed {seed}\n{made}", *found, sep="\n", flush=True)
        print(f"{count} programs, {differing} of them differ")


if __name__ == "__main__":
    main()
