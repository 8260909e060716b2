"""Run functions of eager PyTorch on described tensors and record what comes back (format: graph_oracle.py)."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

Spec = tuple[str, tuple[int, ...], tuple[int, ...], int, bool]
Json = Any

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int8", "int16", "int32", "int64", "uint8"]
ALL = [*FLOATS, *INTS, "bool", "complex64"]
NAMESPACES: dict[str, Any] = {
    "torch": torch,
    "Tensor": torch.Tensor,
    "operator": operator,
    "torch._C._nn": torch._C._nn,
    "torch._C._special": getattr(torch._C, "_special"),  # noqa: B009, unknown to the stubs
    "torch._C._linalg": getattr(torch._C, "_linalg"),  # noqa: B009
    "torch.nn.functional": torch.nn.functional,
    "torch.functional": torch.functional,
}


NO_GRAD, GRAD, INFERENCE = 0, 1, 2
REJECTED_CASES = 8  # calls that eager rejects kept per function in the short recording


class T:
    """A tensor argument: element type, layout and whether it requires gradients."""

    def __init__(
        self,
        dtype: str,
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        offset: int = 0,
        grad: bool = False,
    ) -> None:
        self.spec: Spec = (
            dtype,
            tuple(sizes),
            tuple(strides if strides is not None else contiguous(sizes)),
            offset,
            grad,
        )

    def make(self, content: int, device: str) -> torch.Tensor:
        """Allocate the tensor, every element the same small number.

        On an accelerator integers are 0: an index out of range would end the process there.
        """
        dtype, sizes, strides, offset, grad = self.spec
        if device != "cpu" and dtype in INTS:
            content = 0
        last = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))
        length = max(1, last + 1) if 0 not in sizes else offset + 1
        values = torch.full((length,), content, device=device).to(getattr(torch, dtype))
        tensor = values.as_strided(sizes, strides, offset).detach()
        return tensor.requires_grad_() if grad else tensor


def contiguous(sizes: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of a fresh tensor."""
    strides: list[int] = []
    step = 1
    for n in reversed(sizes):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def channels_last(dtype: str, sizes: Sequence[int], grad: bool = False) -> T:
    """A tensor of four dimensions whose second one is innermost."""
    _, c, h, w = sizes
    return T(dtype, sizes, (c * h * w, 1, w * c, c), 0, grad)


def indexes_nothing(args: Sequence[Any]) -> bool:
    """Whether an empty tensor may be indexed: on an accelerator that ends the process instead of raising."""
    specs = [value.spec for value in flat(args) if isinstance(value, T)]
    return any(0 in spec[1] for spec in specs) and any(spec[0] in ("int64", "int32") for spec in specs)


def flat(value: Any) -> list[Any]:
    """The leaves of nested lists and tuples."""
    return [leaf for v in value for leaf in flat(v)] if isinstance(value, list | tuple) else [value]


def options(*choices: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Keyword arguments to try in turn."""
    return choices


class Recorder:
    """Runs calls and keeps what they returned."""

    def __init__(self, full: bool, device: str) -> None:
        self.full = full
        self.device = device
        self.rejected: dict[str, int] = {}
        self.tensors: dict[Spec, int] = {}
        self.cases: list[Json] = []
        self.seen: set[str] = set()

    def call(self, target: str, *args: Any, grad_mode: int = GRAD, **keywords: Any) -> None:
        """Record one call; repeated ones are dropped."""
        encoded = [target, self.encode(list(args)), {k: self.encode(v) for k, v in keywords.items()}, int(grad_mode)]
        key = json.dumps(encoded)
        if key in self.seen or (self.device != "cpu" and indexes_nothing(args)):
            return
        self.seen.add(key)
        outcome = self.run(resolve(target), args, keywords, grad_mode)
        self.rejected[target] = self.rejected.get(target, 0) + (outcome is None)
        if outcome is not None or self.full or self.rejected[target] <= REJECTED_CASES:
            self.cases.append([*encoded, outcome])

    def run(self, function: Callable[..., Any], args: Any, keywords: dict[str, Any], grad_mode: int) -> Json:
        """Call the function and describe the result; None when it raises whatever the tensors hold.

        Ones divide integers, zeros are valid indices everywhere.
        """
        return self.attempt(function, args, keywords, grad_mode, 1) or self.attempt(
            function, args, keywords, grad_mode, 0
        )

    def attempt(
        self, function: Callable[..., Any], args: Any, keywords: dict[str, Any], grad_mode: int, content: int
    ) -> Json:
        """Call the function on tensors full of one number."""
        made: list[torch.Tensor] = []

        def build(value: Any) -> Any:
            if isinstance(value, T):
                made.append(value.make(content, self.device))
                return made[-1]
            if isinstance(value, list | tuple):
                return type(value)(build(v) for v in value)
            return value

        positional = [build(a) for a in args]
        named = {k: build(v) for k, v in keywords.items()}
        try:
            with torch.inference_mode(grad_mode == INFERENCE), torch.set_grad_enabled(grad_mode == GRAD):
                return {"r": describe(function(*positional, **named), made)}
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            return None

    def encode(self, value: Any) -> Json:
        """Turn an argument into its JSON form."""
        if isinstance(value, T):
            return f"@{self.tensors.setdefault(value.spec, len(self.tensors))}"
        if isinstance(value, torch.dtype):
            return {"d": str(value).removeprefix("torch.")}
        if isinstance(value, torch.memory_format):
            return {"m": str(value).removeprefix("torch.")}
        if isinstance(value, complex):
            return {"c": [value.real, value.imag]}
        if isinstance(value, float) and not math.isfinite(value):
            return {"f": str(value)}
        if isinstance(value, slice):
            return {"s": [self.encode(v) for v in (value.start, value.stop, value.step)]}
        if value is Ellipsis:
            return {"e": 1}
        if isinstance(value, tuple):
            return {"u": [self.encode(v) for v in value]}
        if isinstance(value, list):
            return [self.encode(v) for v in value]
        return value

    def result(self) -> Json:
        """Everything recorded, as one JSON value."""
        tensors = [list(spec) for spec in self.tensors]
        return {
            "torch": torch.__version__,
            "tensors": tensors,
            "device": self.device,
            "schemas": schemas(),
            "cases": self.cases,
        }


INTERNAL_WORDS = (
    "quantize mkldnn miopen cudnn sparse fbgemm fft_ linalg_ polynomial rnn lstm gru pool1d pool3d upsample "
    "grid_sample histogram pad1d pad2d pad3d unpool stft scatter_list window coalesce names rename "
    "dim_order sym_ chebyshev"
).split()


# Rows of the operator table whose names look internal.
LISTED_INTERNAL = (
    "_softmax",
    "_log_softmax",
    "_safe_softmax",
    "_to_copy",
    "_unsafe_view",
    "linalg_vector_norm",
    "_adaptive_avg_pool2d_backward",
    "mkldnn_rnn_layer",
    "mkldnn_rnn_layer_backward",
)


ATTENTION = re.compile("_scaled_dot_product_(flash|cudnn|efficient)_attention(_for_cpu)?(_backward)?$")


def schemas() -> list[str]:
    """All functional and in-place aten schemas, for checking the operator table's own."""
    found = []
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name.removeprefix("aten::")
        internal = any(word in name for word in INTERNAL_WORDS) or name.startswith("_")
        kept = not internal or name in LISTED_INTERNAL or ATTENTION.match(name) is not None
        if (
            name != schema.name
            and kept
            and (not name.endswith("_copy") or name in ("index_copy", "_to_copy"))
            and not any(a.is_out for a in schema.arguments)
            and "Tensor" in str(schema)
        ):
            found.append(str(schema).removeprefix("aten::"))
    return sorted(set(found))


def resolve(target: str) -> Callable[..., Any]:
    """Find the function behind a canonical name; getsets become functions of the tensor."""
    namespace, _, name = target.rpartition(".")
    if namespace.startswith("aten."):
        operator_packet: Any = getattr(torch.ops.aten, namespace.removeprefix("aten."))
        overload: Callable[..., Any] = getattr(operator_packet, name)
        return overload
    found: Any = getattr(NAMESPACES[namespace], name)
    function: Callable[..., Any] = found if callable(found) else found.__get__
    return function


def describe(value: Any, made: list[torch.Tensor]) -> Json:
    """Describe a result: tensors as lists starting with a string, tuples and lists as lists of descriptions."""
    if isinstance(value, list | tuple):
        return [describe(v, made) for v in value]
    if not isinstance(value, torch.Tensor):
        return repr(type(value))
    relation = "n"
    for i, tensor in enumerate(made):
        if value is tensor:
            relation = f"s{i}"
            break
        if value.untyped_storage()._cdata == tensor.untyped_storage()._cdata:
            relation = f"v{i}"
            break
    shares_argument = relation != "n"
    flags = (
        8 * value.is_inference()
        + 2 * value.is_leaf
        + 4 * (value.grad_fn is not None)
        + 64 * (shares_argument and value._is_view())
    )
    dtype = str(value.dtype).removeprefix("torch.")
    return [
        dtype,
        list(value.shape),
        list(value.stride()),
        value.storage_offset(),
        value.requires_grad,
        flags,
        relation,
    ]
