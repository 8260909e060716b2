"""How the compiler may treat a Python function: look into it, keep it as one operator, or leave it alone."""

from __future__ import annotations

import functools
import types
from typing import Any

from .. import _control
from . import names, slots

# Modules whose functions act on the interpreter or the outside world: looking into them gains nothing.
_LEFT_ALONE = (
    "logging",
    "threading",
    "multiprocessing",
    "subprocess",
    "socket",
    "asyncio",
    "traceback",
    "pickle",
    "copyreg",
    "tempfile",
    "pytest",
    "_pytest",
    "torch._dynamo",
    "torch._inductor",
    "torch._functorch",
    "torch._higher_order_ops",  # they take another way inside a compiler, which has to know them one by one
    "torch._subclasses",
    "torch.fx",
    "torch.jit",
    "torch.autograd",
    "torch.distributed",
    "torch.multiprocessing",
    "torch.profiler",
    "torch.serialization",
    "torch.storage",
    "torch.utils.data",
    "fusee",
)

# Modules inside these whose functions are looked into all the same: they keep state that capture follows, or just
# do what they say.
_LOOKED_INTO = frozenset(
    {"torch.autograd.grad_mode", "torch.fx._pytree", "torch.jit", "torch.jit._script", "torch.jit._trace"}
    | {_control.__name__}
)
_NOT_LOOKED_INTO = frozenset(
    {"script", "trace", "trace_module", "freeze", "optimize_for_inference", "load", "save", "fork", "wait"}
)

# Single functions inside those modules that just do what they say: the calls of graph modules, questions about sizes,
# which are plain numbers here, and about the memory behind tensors, how copy makes objects, how modules are called with
# other parameters, and scans by a function, which eager runs in these steps too.
_LOOKED_INTO_FUNCTIONS = {
    "torch.distributed.fsdp._flat_param": frozenset({"_same_storage_size", "_storage_size_allocated"}),
    "torch.fx.graph_module": frozenset({"GraphModule.recompile.<locals>.call_wrapped", "_WrappedCall.__call__"}),
    "torch.fx.experimental.symbolic_shapes": frozenset(
        {"expect_true", "guard_bool", "guard_int", "guard_float", "guard_scalar", "guard_size_oblivious"}
        | {"guard_or_true", "guard_or_false", "_guard_or", "statically_known_true", "sym_and", "sym_or", "sym_eq"}
        | {"hint_int", "is_concrete_int", "is_concrete_bool", "is_concrete_float", "is_symbolic"}
    ),
    "copyreg": frozenset({"__newobj__", "__newobj_ex__"}),
    "torch._functorch.functional_call": frozenset({"functional_call"}),
    "torch._higher_order_ops.associative_scan": frozenset(
        {"associative_scan", "generic_associative_scan", "safe_map", "wrap_combine_fn_flat", "_interleave"}
    ),
    "torch._higher_order_ops.utils": frozenset({"_maybe_compile_and_run_fn"}),
}

# Functions of other modules that are not looked into, and why.
_WRITES_CODE = "it makes Python code and runs it"
_SEEDS = "it seeds the generators of all kinds of device"  # or notes down, with a traceback, that it will
_NOT_FOLLOWED = {
    "dataclasses._process_class": _WRITES_CODE,
    "torch.random.manual_seed": _SEEDS,
    "torch.random.seed": _SEEDS,
}

# Functions that answer the same as long as the process lives: what the machine and the installed torch can do.
_CONSTANT_MODULES = frozenset(
    f"torch.{name}"
    for name in (
        "accelerator",
        "backends.cpu",
        "backends.cuda",
        "backends.mkl",
        "backends.mkldnn",
        "backends.mps",
        "backends.openmp",
        "cuda",
        "distributed",
        "mps",
        "mtia",
        "xpu",
    )
)
_CONSTANT_NAMES = frozenset({"is_available", "is_built", "is_bf16_supported", "device_count"})

_TENSOR_LEFT_ALONE = frozenset(
    {"backward", "register_hook", "register_post_accumulate_grad_hook", "__repr__", "__format__", "__reduce_ex__"}
    | {
        "__deepcopy__",
        "__setstate__",
        "storage",
        "share_memory_",
        "is_shared",
        "module_load",
        "__dlpack__",
        "__array__",
    }
)

_MARKS = {
    "_fusee_disable": "fusee.disable",
    "_torchdynamo_disable": "torch.compiler.disable",
}
_CONSTANT_MARK = "_dynamo_marked_constant"  # set by torch.compiler.assume_constant_result


def plain_function(value: Any) -> types.FunctionType:
    """The Python function itself, from inside a compiled one."""
    function = value if type(value) is types.FunctionType else value.function
    return function


def of(value: Any, function: types.FunctionType) -> tuple[str, str, str]:
    """``(treat, name, reason)`` for a function: treat is inline, break, opaque, constant or torch."""
    marked = _marked(function)
    if marked:
        return "break", function.__name__, marked
    module = _module(function)
    operator = names.torch_functions().get(id(function)) if module.startswith("torch") else None
    if operator is not None:
        return _operator(operator)
    if module == "fusee.api" and function.__name__ == "graph_break":
        return "break", "fusee.graph_break", "fusee.graph_break() was called"
    named_constant = module in _CONSTANT_MODULES and function.__qualname__ in _CONSTANT_NAMES
    if named_constant or _has_mark(function, _CONSTANT_MARK):
        return "constant", function.__name__, ""
    left_alone = "torch._ops" if _calls_higher_order(module, function) else _left_alone(module)
    if left_alone and not _is_exempt(module, function.__qualname__):
        return "opaque", f"{module}.{function.__qualname__}", f"functions of {left_alone} are not looked into"
    name = f"{module}.{function.__qualname__}"
    if name in _NOT_FOLLOWED:
        return "opaque", name, _NOT_FOLLOWED[name]
    return "inline", function.__name__, ""


def _is_exempt(module: str, name: str) -> bool:
    """Whether a function of a module that is left alone is looked into all the same."""
    if module in _LOOKED_INTO:
        return name not in _NOT_LOOKED_INTO
    return name in _LOOKED_INTO_FUNCTIONS.get(module, ())


def _calls_higher_order(module: str, function: types.FunctionType) -> bool:
    return module == "torch._ops" and function.__qualname__.startswith("HigherOrderOperator.")


def _operator(name: str) -> tuple[str, str, str]:
    method = name.removeprefix("Tensor.")
    if method != name and method in _TENSOR_LEFT_ALONE:
        return "break", name, f"{name} acts on the autograd graph or on Python objects"
    return "torch", name, ""


def _marked(function: types.FunctionType) -> str:
    return next((f"marked by {what}" for mark, what in _MARKS.items() if _has_mark(function, mark)), "")


def _has_mark(function: types.FunctionType, mark: str) -> bool:
    return (slots.instance_dict(function) or {}).get(mark) is True


def _module(function: types.FunctionType) -> str:
    name = function.__globals__.get("__name__")
    return name if type(name) is str else ""


@functools.lru_cache(maxsize=1024)
def _left_alone(module: str) -> str:
    return next((prefix for prefix in _LEFT_ALONE if module == prefix or module.startswith(prefix + ".")), "")
