"""What ``fusee.compile`` returns for each kind of callable."""

from __future__ import annotations

import copy
import functools
import inspect
import types
import weakref
from typing import Any

from . import _shim
from .host import slots
from .host.miss import anticipate, on_miss
from .host.records import RECORDS
from .options import Options

_RUNS_LATER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def compiled(target: Any, options: Options) -> Any:
    """A compiled stand-in for a function, method, module, class or callable object."""
    if type(target) is types.FunctionType:
        return _function(target, options)
    if type(target) is _shim.CompiledFunction:
        return _function(target.function, options)
    if type(target) is types.MethodType:
        return types.MethodType(compiled(target.__func__, options), target.__self__)
    if type(target) is functools.partial:
        return functools.partial(compiled(target.func, options), *target.args, **target.keywords)
    if isinstance(target, type):
        return _class(target, options)
    if _is_module(target):
        return _module(original(target), options)
    if not callable(target):
        raise TypeError(f"fusee.compile takes a callable, not {type(target).__name__}")
    return _callable_object(target, options)


def run_only(target: Any) -> Any:
    """A stand-in that shares the entries of a compiled function or method, and compiles no more of them."""
    if type(target) is types.MethodType:
        return types.MethodType(run_only(target.__func__), target.__self__)
    if isinstance(target, CompiledModule) or not callable(target):
        raise TypeError(f"fusee.run takes a function or a method, not {type(target).__name__}")
    if not isinstance(target, _shim.CompiledFunction):
        return target
    function: Any = target.function
    return functools.update_wrapper(_shim.CompiledFunction(function, target.record, _no_entry), function)


def _no_entry(*_: Any) -> None:
    """Instead of a compile: the call runs as plain Python."""


def original(target: Any) -> Any:
    """What a compiled function or module was made from; anything else as it is."""
    if type(target) is _shim.CompiledFunction:
        return target.function
    return target._fusee_original if isinstance(target, CompiledModule) else target


def _function(function: Any, options: Options) -> Any:
    marked = slots.instance_dict(function) or {}
    if function.__code__.co_flags & _RUNS_LATER or marked.get("_torchdynamo_disable") or marked.get("_fusee_disable"):
        return function
    if str(function.__module__).startswith("torch._higher_order_ops."):
        return function  # torch.cond and the like give it to torch.compile, in whose place fusee may stand
    anticipate(options)
    calibrate()
    stand_in = _shim.CompiledFunction(function, RECORDS.of(function, options), on_miss)
    return functools.update_wrapper(stand_in, function)


@functools.lru_cache(maxsize=1)
def calibrate() -> None:
    """Let the extension find torch's symbols and tensor layout, once."""
    import torch

    _shim.calibrate(torch)


def _class(cls: type, options: Options) -> type:
    """The class itself, whose instances' calls are compiled from now on."""
    name = "forward" if _is_module_class(cls) else "__call__"
    method = slots.lookup(cls, name)
    if method is not None and type(method[1]) is types.FunctionType:
        setattr(cls, name, _function(method[1], options))
    return cls


def _callable_object(target: Any, options: Options) -> Any:
    found = slots.lookup(type(target), "__call__")
    if found is not None and type(found[1]) is types.FunctionType:
        return types.MethodType(_function(found[1], options), target)

    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    functools.update_wrapper(call, target, updated=())
    return _function(call, options)


def _is_module_class(cls: type) -> bool:
    import torch.nn

    return torch.nn.Module in slots.mro(cls)


def _is_module(target: Any) -> bool:
    return _is_module_class(type(target))


class CompiledModule:
    """First base of a compiled module's class. The instance shares its ``__dict__`` with the original module.

    So both have the same parameters, buffers, hooks and attributes, and setting one sets the other's. ``forward`` is
    compiled; hooks run around it as ``nn.Module.__call__`` always runs them.
    """

    __slots__ = ()
    _fusee_original: Any
    _fusee_options: Options
    _fusee_forward: tuple[Any, Any]

    def __init_subclass__(cls, **arguments: Any) -> None:
        """The user's ``__init_subclass__`` must not see the class made here."""

    @property
    def forward(self) -> Any:
        """The original's forward, compiled."""
        original = self._fusee_original
        method = original.forward
        if type(method) is not types.MethodType:
            return self._compiled_forward(method)
        return types.MethodType(self._compiled_forward(method.__func__), method.__self__)

    def _compiled_forward(self, function: Any) -> Any:
        """The compiled function of the forward that the original has now; compiled anew only when it was replaced."""
        before, stand_in = self._fusee_forward
        if before is not function:
            stand_in = compiled(function, self._fusee_options)
            slots.class_dict(type(self))["_fusee_forward"].__set__(self, (function, stand_in))
        return stand_in

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _module, (self._fusee_original, self._fusee_options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return _module(copy.deepcopy(self._fusee_original, memo), self._fusee_options)

    def __copy__(self) -> Any:
        return _module(copy.copy(self._fusee_original), self._fusee_options)


def _module(module: Any, options: Options) -> Any:
    """An instance of a subclass of the module's class that shares the module's state."""
    cls: Any = type(module)
    stand_in: Any = object.__new__(_module_class(cls))
    object.__setattr__(stand_in, "__dict__", slots.instance_dict(module))
    slot = slots.class_dict(type(stand_in))
    slot["_fusee_original"].__set__(stand_in, module)
    slot["_fusee_options"].__set__(stand_in, options)
    slot["_fusee_forward"].__set__(stand_in, (None, None))
    return stand_in


_module_classes: weakref.WeakValueDictionary[int, type] = weakref.WeakValueDictionary()  # by identity of the class


def _module_class(cls: type) -> type:
    """The subclass for compiled modules of a class, one as long as there are any of them."""
    made = _module_classes.get(id(cls))
    if made is None:
        made = _module_classes[id(cls)] = _make_module_class(cls)
    return made


def _make_module_class(cls: type) -> type:
    namespace = {
        "__slots__": ("_fusee_forward", "_fusee_options", "_fusee_original"),
        "__module__": slots.module_name(cls),
        "__qualname__": slots.qualname(cls),
        "__doc__": slots.class_dict(cls).get("__doc__"),
    }
    made: type = type.__new__(type(cls), cls.__name__, (CompiledModule, cls), namespace)
    return made
