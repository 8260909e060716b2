"""Printed kernels on a GPU: every trial of ``go test ./backend/cuda -export DIR`` against what the exporting test
expects, and operations against torch's own kernels, bit for bit.

``FUSEE_CUDA_TRIALS`` names DIR.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from cuda_driver import Kernel

TRIALS = Path(os.environ.get("FUSEE_CUDA_TRIALS", ""))
DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
LOCAL_BYTES = 3  # CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES


def _exported() -> list[dict[str, Any]]:
    path = TRIALS / "trials.json"
    if not os.environ.get("FUSEE_CUDA_TRIALS") or not path.exists():
        return []
    trials: list[dict[str, Any]] = json.loads(path.read_text())
    return trials


EXPORTED = {trial["Name"]: trial for trial in _exported()}


@dataclass
class Run:
    """The buffers of a trial after its launch, and what was expected."""

    trial: dict[str, Any]
    before: dict[str, torch.Tensor]
    after: dict[str, torch.Tensor]
    expected: dict[str, torch.Tensor]
    local_bytes: int


def _split(trial: dict[str, Any], data: bytes, left_out: str) -> dict[str, torch.Tensor]:
    """The buffers in a file, which holds all but those of one mode."""
    tensors, at = {}, 0
    for buffer in trial["Buffers"]:
        if buffer["Mode"] != left_out:
            raw = bytearray(data[at : at + buffer["Bytes"]])
            tensors[buffer["Name"]] = torch.frombuffer(raw, dtype=DTYPES[buffer["Type"]])
            at += buffer["Bytes"]
    return tensors


def _on_device(tensor: torch.Tensor, shift: int) -> torch.Tensor:
    """A copy whose pointer is off its natural alignment by some bytes."""
    first = shift // tensor.element_size()
    room = torch.empty(tensor.numel() + first, dtype=tensor.dtype, device="cuda")
    return room[first:].copy_(tensor)


def _run(name: str) -> Run:
    trial = EXPORTED[name]
    before = _split(trial, (TRIALS / f"{name}.in").read_bytes(), left_out="none")
    expected = _split(trial, (TRIALS / f"{name}.out").read_bytes(), left_out="read")
    device = {buffer["Name"]: _on_device(before[buffer["Name"]], buffer["Shift"]) for buffer in trial["Buffers"]}
    kernel = Kernel((TRIALS / f"{name}.cubin").read_bytes(), trial["Symbol"])
    pointers = [tensor.data_ptr() for tensor in device.values()]
    kernel.launch(trial["Blocks"], trial["Threads"], pointers, trial["Scalars"] or [], trial["Work"])
    after = {key: tensor.cpu() for key, tensor in device.items()}
    local_bytes = kernel.attribute(LOCAL_BYTES)
    kernel.unload()
    return Run(trial, before, after, expected, local_bytes)


def _tolerances(trial: dict[str, Any], dtype: torch.dtype) -> tuple[float, float]:
    relative = {torch.float64: 1e-13, torch.float32: 1e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}[dtype]
    absolute = {torch.float64: 1e-300, torch.float32: 1e-40, torch.bfloat16: 1e-38, torch.float16: 1.2e-7}[dtype]
    if not trial["Pointwise"]:
        relative *= 20
    if trial["Name"] == "op_lgamma":  # CUDA bounds only its absolute error between -10 and -2, where it has zeros
        absolute = relative
    if "sum" in trial["Name"] or "inner_dimensions" in trial["Name"]:
        absolute = 2e-3
    return relative, absolute


# CUDA's own functions for these keep arrays in local memory; in any other kernel that would be spilled registers.
LOCAL_ARRAYS = ("op_sin", "op_cos", "op_tan", "op_lgamma", "op_remainder", "op_modulo")
APPROXIMATE = ("op_lgamma", "op_erfc", "op_pow", "op_tan", "op_rsqrt", "op_exp", "op_sinh", "op_cosh")


@pytest.mark.parametrize("name", EXPORTED or ["none"])
def test_cuda_kernel_matches_the_interpreter(name: str) -> None:
    if name == "none":
        pytest.skip("FUSEE_CUDA_TRIALS names no directory of exported trials")
    run = _run(name)
    for key, expected in run.expected.items():
        actual = run.after[key]
        if not expected.dtype.is_floating_point:
            assert torch.equal(actual, expected), key
            continue
        relative, absolute = _tolerances(run.trial, expected.dtype)
        if name.startswith(APPROXIMATE):  # CUDA's functions are within some units in the last place
            relative *= 20
        torch.testing.assert_close(actual, expected, rtol=relative, atol=absolute, equal_nan=True)
    assert run.local_bytes == 0 or name.startswith(LOCAL_ARRAYS)


Eager = Callable[..., torch.Tensor]
OPERATIONS: dict[str, Eager] = {
    "add": torch.add,
    "subtract": torch.sub,
    "multiply": torch.mul,
    "divide": torch.div,
    "negate": torch.neg,
    "absolute": torch.abs,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "maximum_number": torch.fmax,
    "minimum_number": torch.fmin,
    "remainder": torch.fmod,
    "modulo": torch.remainder,
    "divide_floor": torch.floor_divide,
    "divide_truncate": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "not": torch.bitwise_not,
    "shift_left": torch.bitwise_left_shift,
    "shift_right": torch.bitwise_right_shift,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "is_nan": torch.isnan,
    "copysign": torch.copysign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "truncate": torch.trunc,
    "round_even": torch.round,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "pow": torch.pow,
    "atan2": torch.atan2,
    "hypot": torch.hypot,
    "nextafter": torch.nextafter,
    "exp": torch.exp,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "log": torch.log,
    "log2": torch.log2,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "lgamma": torch.lgamma,
}


def _operands(run: Run, dtype: str) -> Iterator[torch.Tensor]:
    for letter in "abc":
        if f"{dtype}_{letter}" in run.before:
            yield run.before[f"{dtype}_{letter}"].cuda()


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's bits, with all NaN alike."""
    if not tensor.dtype.is_floating_point:
        return tensor
    plain = torch.where(tensor.isnan(), torch.full_like(tensor, torch.nan), tensor)
    return plain.view({8: torch.int64, 4: torch.int32, 2: torch.int16}[tensor.element_size()])


def _eager(operation: Eager, operands: list[torch.Tensor]) -> torch.Tensor | None:
    """torch's result, or None where torch has no such kernel."""
    try:
        return operation(*operands).cpu()
    except (RuntimeError, NotImplementedError):
        return None


# torch compiles these float32 functions from code of its own, at run time, instead of calling CUDA's.
OTHER_CODE = ("expm1", "erf")


def _no_worse(run: Run, name: str, dtype: str, expected: torch.Tensor) -> torch.Tensor:
    """Where the kernel's result is as close to float64's as torch's is, or within one unit in the last place of it."""
    if dtype != "f32" or name not in OTHER_CODE:
        return torch.zeros_like(expected, dtype=torch.bool)
    truth = OPERATIONS[name](*(operand.double() for operand in _operands(run, dtype))).cpu()
    rounded = truth.to(expected.dtype)
    unit = (torch.nextafter(rounded.abs(), torch.full_like(rounded, torch.inf)) - rounded.abs()).double()
    error = (run.after[f"{dtype}_out"].double() - truth).abs()
    return error <= torch.maximum((expected.double() - truth).abs(), unit)


@pytest.mark.parametrize("name", OPERATIONS)
def test_cuda_operation_equals_eager_bit_for_bit(name: str) -> None:
    if f"op_{name}" not in EXPORTED:
        pytest.skip("FUSEE_CUDA_TRIALS names no directory of exported trials")
    run = _run(f"op_{name}")
    compared = 0
    for dtype in DTYPES:
        operands = list(_operands(run, dtype))
        expected = _eager(OPERATIONS[name], operands) if operands else None
        if expected is None or expected.dtype != run.after[f"{dtype}_out"].dtype:
            continue
        wrong = (_bits(run.after[f"{dtype}_out"]) != _bits(expected)) & ~_no_worse(run, name, dtype, expected)
        assert not wrong.any(), (
            f"{dtype}: {int(wrong.sum())} differ, first for {[x.cpu()[wrong][0].item() for x in operands]}: "
            f"{run.after[f'{dtype}_out'][wrong][0].item()} instead of {expected[wrong][0].item()}"
        )
        compared += 1
    assert compared > 0


@pytest.mark.parametrize("source", DTYPES)
def test_cuda_cast_equals_eager_bit_for_bit(source: str) -> None:
    if f"cast_{source}" not in EXPORTED:
        pytest.skip("FUSEE_CUDA_TRIALS names no directory of exported trials")
    run = _run(f"cast_{source}")
    value = run.before["in"].cuda()
    for target, dtype in DTYPES.items():
        expected = value.to(dtype).cpu()
        assert torch.equal(_bits(run.after[target]), _bits(expected)), f"{source} to {target}"
