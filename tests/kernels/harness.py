"""Compiles Python functions of tensors with the backend alone: ATen records operators, the planner makes a plan."""

from __future__ import annotations

import marshal
import struct
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fusee import _shim

Encoded = tuple[Any, ...]


def metadata(tensor: torch.Tensor) -> Encoded:
    """The tensor as the planner describes it."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return dtype, list(tensor.shape), list(tensor.stride()), tensor.storage_offset()


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down every ATen operator that runs, with how its results relate to its arguments."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: list[Any] = list(inputs)  # so that no id is used twice
        self.values: dict[int, Encoded] = {id(tensor): ("i", index) for index, tensor in enumerate(inputs)}
        self.nodes: list[Encoded] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        outputs = [result] if isinstance(result, torch.Tensor) else list(result or ())
        if func.overloadpacket in (torch.ops.aten.lift_fresh, torch.ops.aten.detach) and outputs[0] is args[0]:
            return result
        mutated = [
            self.encode(value)
            for value, parameter in zip(args, func._schema.arguments, strict=False)
            if parameter.alias_info is not None and parameter.alias_info.is_write
        ]
        encoded = [self.encode(value) for value in args]
        keywords = [(name, self.encode(value)) for name, value in kwargs.items()]
        related = [(metadata(output), self.relation(output, args)) for output in outputs]
        namespace, _, name = func._schema.name.partition("::")
        target = f"{namespace}.{name}.{func._schema.overload_name or 'default'}"
        random = torch.Tag.nondeterministic_seeded in func.tags
        for index, output in enumerate(outputs):
            if id(output) not in self.values:
                self.kept.append(output)
                self.values[id(output)] = ("n", len(self.nodes), index)
        self.nodes.append((target, encoded, keywords, related, mutated, random))
        return result

    def relation(self, output: torch.Tensor, args: tuple[Any, ...]) -> Encoded | None:
        """How an output's memory relates to the arguments'."""
        for arg in args:
            if isinstance(arg, torch.Tensor):
                if arg is output:
                    return "same", self.encode(arg)
                if arg.untyped_storage().data_ptr() == output.untyped_storage().data_ptr() and arg.numel():
                    return "view", self.encode(arg)
        return None

    def encode(self, value: Any) -> Encoded:
        """A value as the planner reads it."""
        if isinstance(value, torch.Tensor):
            return self.values[id(value)]
        if isinstance(value, list | tuple):
            return "list", [self.encode(item) for item in value]
        for kind, tag in ((torch.dtype, "dtype"), (torch.memory_format, "memory_format"), (torch.layout, "layout")):
            if isinstance(value, kind):
                return tag, str(value).removeprefix("torch.")
        if isinstance(value, torch.device):
            return "device", value.type
        return "c", value


@dataclass
class Compiled:
    """A plan ready to run, and what it is made of."""

    plan: Any
    kernels: list[tuple[str, tuple[str, ...], str, str]]
    steps: list[str]
    described: list[tuple[Any, ...]] = field(default_factory=list)

    def __call__(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Runs the plan."""
        results: tuple[torch.Tensor, ...] = self.plan(*inputs)
        return results

    @property
    def library_calls(self) -> list[str]:
        """The operators that run as library calls."""
        return [str(step[1]) for step in self.described if step[0] == "aten"]


class Planner:
    """The planner process."""

    def __init__(self, program: str, llvm: str) -> None:
        self.llvm = llvm
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends one request and returns the answer; AssertionError if the planner reports an error."""
        assert self.process.stdin is not None and self.process.stdout is not None
        message = marshal.dumps(request, 2)
        self.process.stdin.write(struct.pack("<I", len(message)) + message)
        self.process.stdin.flush()
        (length,) = struct.unpack("<I", self.process.stdout.read(4))
        answer: dict[str, Any] = marshal.loads(self.process.stdout.read(length))
        assert "error" not in answer, answer["error"]
        return answer

    def compile(self, function: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> Compiled:
        """Compiles a function for inputs like these. The inputs' elements are not changed."""
        answer = self.ask({"llvm": self.llvm, "options": options, **record(function, inputs)})
        plan = _shim.LaunchPlan(answer["plan"])
        return Compiled(plan, answer["kernels"], answer["steps"], plan.describe())

    def run_on_wasm(
        self, function: Callable[..., Any], *inputs: torch.Tensor, **options: Any
    ) -> list[torch.Tensor] | None:
        """What the function gives on WebAssembly; None where it needs operators of torch."""
        data = [contents(tensor) for tensor in inputs]
        results = self.ask({"options": options, "data": data, **record(function, inputs)})["results"]
        return None if results is None else [restored(*result) for result in results]


def record(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> dict[str, Any]:
    """The graph of a function for inputs like these, as the planner reads it. The inputs' elements are not changed."""
    inputs = tuple(clone_with_layout(tensor) for tensor in inputs)
    recorder = Recorder(inputs)
    described = [metadata(tensor) for tensor in inputs]
    with recorder:
        result = function(*inputs)
    results = [result] if isinstance(result, torch.Tensor) else list(result)
    return {"inputs": described, "nodes": recorder.nodes, "outputs": [recorder.encode(tensor) for tensor in results]}


def contents(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's storage."""
    storage = tensor.untyped_storage()
    return bytes(torch.empty(0, dtype=torch.uint8).set_(storage, 0, (len(storage),), (1,)).numpy())


def restored(meta: Encoded, data: bytes) -> torch.Tensor:
    """The tensor that the planner described."""
    dtype, sizes, strides, offset = meta
    storage = torch.frombuffer(bytearray(data or bytes(16)), dtype=torch.uint8).untyped_storage()
    return torch.empty(0, dtype=getattr(torch, dtype)).set_(storage, offset, sizes, strides)


def clone_with_layout(tensor: torch.Tensor, device: str | torch.device | None = None) -> torch.Tensor:
    """A copy of the whole storage, perhaps on another device, seen with the same strides."""
    whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    whole.set_(tensor.untyped_storage())
    copy = torch.empty_like(whole, device=device).copy_(whole)
    return copy.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
