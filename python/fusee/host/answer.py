"""Answers to the compiler's questions about one compile (docs/contracts.md, section 2)."""

from __future__ import annotations

import contextlib
import importlib
import linecache
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from typing import Any

from .. import logs
from . import autocast, names, slots
from .describe import Description, ObjectTable

Message = tuple[Any, ...]
Reply = tuple[Any, list[Description]]
_NOTHING: list[Description] = []
_SEQUENCES: Mapping[str, Callable[..., Any]] = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}
_BUILT = frozenset({"tuple", "list", "set", "frozenset", "dict", "slice", "name", "device"})


def _module_of_its_own(name: str) -> Any:
    """A module that imports much, in a thread of its own; None where it cannot be imported.

    In the program's, signals and the limit of recursion could end the import halfway.
    """
    if name not in sys.modules:
        with futures.ThreadPoolExecutor(1) as pool, contextlib.suppress(Exception):
            pool.submit(importlib.import_module, name).result()
    return sys.modules.get(name)


class Answers:
    """Answers questions about the objects of one :class:`ObjectTable`."""

    def __init__(self, table: ObjectTable) -> None:
        self.table = table
        self.stand_ins: dict[int, Any] = {}  # fake tensors of wrapping classes, by the id of what they stand for

    def __call__(self, question: Message) -> Message:
        """The message that answers ``question``; one that cannot be answered ends the compile, never the program."""
        try:
            reply: Message = ("answer", _QUESTIONS[question[0]](self, *question[1:]))
        except Exception as error:  # the compiler may ask nonsense; the user's program must not feel it
            reply = ("error", f"{question[0]}: {type(error).__name__}: {error}")
        if logs.enabled("trace"):
            logs.log("trace", f"{question!r:.300} -> {reply!r:.300}")
        return reply

    def describe(self, numbers: list[int]) -> Reply:
        """Descriptions of objects that were only mentioned so far."""
        return None, self.table.redescribe(number for number in numbers if self.table.object(number) is not None)

    def type_lookup(self, number: int, name: str) -> Reply:
        """``_PyType_Lookup``: the raw attribute and the class that holds it."""
        found = slots.lookup(self.table.object(number), name)
        if found is None:
            return None, _NOTHING
        owner, value = found
        pair = (self.table.identify(owner), self.table.reference(value))
        return pair, self.table.describe(pair)

    def module_get(self, number: int, name: str) -> Reply:
        """An attribute of a module; only library modules may compute one by their ``__getattr__``."""
        module = self.table.object(number)
        namespace = slots.instance_dict(module) or {}
        if name in namespace:
            return self._reference(namespace[name])
        if type(module) is not types.ModuleType or not _is_library(module):
            return None, _NOTHING
        value = getattr(module, name, slots.ABSENT)
        return (None, _NOTHING) if value is slots.ABSENT else self._reference(value)

    def dict_get(self, number: int, key: Any) -> Reply:
        """The value under a key, a reference or a bare str."""
        mapping = self.table.object(number)
        found = dict.get(mapping, key if type(key) is str else self.table.value(key), slots.ABSENT)
        return (None, _NOTHING) if found is slots.ABSENT else self._reference(found)

    def get_attribute(self, number: int, name: str) -> Reply:
        """Full getattr; the compiler asks only where no user code can run."""
        return self._outcome(lambda: getattr(self.table.object(number), name))

    def evaluate(self, function: Any, arguments: list[Any], keywords: list[Any]) -> Reply:
        """Run a pure function."""
        target = self.build(function)
        positional = [self.build(argument) for argument in arguments]
        named = {name: self.build(argument) for name, argument in keywords}
        return self._outcome(lambda: target(*positional, **named))

    def tensor_call(
        self,
        target: Any,
        arguments: list[Any],
        keywords: list[Any],
        cast: autocast.Devices | None = None,
        gradients: bool | None = None,
    ) -> Reply:
        """Run a torch function on fake tensors, under autocast if its state is given, and with gradients on or off."""
        with self._modes(cast, gradients):
            return self.fixed_call(target, arguments, keywords)

    def shaped_call(
        self,
        symbols: list[tuple[str, int, int]],
        target: Any,
        arguments: list[Any],
        keywords: list[Any],
        cast: autocast.Devices | None,
        gradients: bool | None,
    ) -> Reply:
        """``tensor_call`` for sizes that change."""
        shaped = _module_of_its_own(f"{__package__}.shaped")
        if shaped is None:
            return ("unsupported", "PyTorch's symbolic sizes cannot be had"), []
        with self._modes(cast, gradients):
            reply: Reply = shaped.answer(self, symbols, target, arguments, keywords)
            return reply

    @staticmethod
    @contextlib.contextmanager
    def _modes(cast: autocast.Devices | None, gradients: bool | None) -> Iterator[None]:
        with contextlib.ExitStack() as modes:
            if cast is not None:
                modes.enter_context(autocast.under(cast))
            if gradients is not None:
                import torch

                modes.enter_context(torch.set_grad_enabled(gradients))
            yield

    def fixed_call(self, target: Any, arguments: list[Any], keywords: list[Any]) -> Reply:
        """``tensor_call`` in the modes that are on."""
        from . import attention
        from .fake import TensorCall
        from .small import SmallCall

        if type(target) is not str:
            return TensorCall(self).run(self.build(target), arguments, keywords)
        try:
            function = names.resolve(target)
        except LookupError as error:
            return ("unsupported", f"there is no {error}"), _NOTHING
        if target.startswith("fusee._arrays."):
            from .arrays import ArrayCall

            return ArrayCall(self).answer(target, function, arguments, keywords)
        small = SmallCall(self)
        known = small.outcome(target, function, arguments, keywords)
        if known is None and target == attention.TARGET:
            known = attention.AttentionCall(self).outcome(arguments, keywords)
        if known is not None:
            return known
        reply = TensorCall(self).run(function, arguments, keywords)
        return small.corrected(reply, target, function, arguments, keywords)

    def hash_equal(self, left: Any, right: Any) -> Reply:
        """``a == b`` where no user code runs."""
        return bool(self.build(left) == self.build(right)), _NOTHING

    def source_line(self, filename: str, line: int) -> Reply:
        """A line of a source file, "" when there is none."""
        return linecache.getline(filename, line).rstrip("\n"), _NOTHING

    def build(self, reference: Any) -> Any:
        """What a reference, or a container built from references, stands for."""
        if type(reference) is tuple and len(reference) > 1 and reference[0] in _BUILT:
            return self._build_container(reference[0], reference[1:])
        return self.table.value(reference)

    def _build_container(self, kind: str, parts: tuple[Any, ...]) -> Any:
        if kind == "name":
            return names.resolve(parts[0])
        if kind == "device":
            return names.resolve("torch.device")(parts[0])
        if kind == "slice":
            return slice(*map(self.build, parts))
        if kind == "dict":
            return {self.build_key(key): self.build(value) for key, value in parts[0]}
        return _SEQUENCES[kind](map(self.build, parts[0]))

    def build_key(self, key: Any) -> Any:
        """A dict key: a reference, or a bare str."""
        return key if type(key) is str else self.build(key)

    def _reference(self, value: Any) -> Reply:
        reference = self.table.reference(value)
        return reference, self.table.describe((reference,))

    def _outcome(self, run: Callable[[], Any]) -> Reply:
        try:
            value = run()
        except Exception as error:  # the program would see this exception
            return self.raised(error)
        reference, descriptions = self._reference(value)
        return ("value", reference), descriptions

    def raised(self, error: Exception) -> Reply:
        """An exception as an outcome: its type and arguments."""
        arguments = [self.table.reference(argument) for argument in error.args]
        cls = self.table.identify(type(error))
        return ("raise", cls, arguments), self.table.describe((cls, *arguments))


_QUESTIONS: Mapping[str, Callable[..., Reply]] = {  # functions, as bound methods would make a cycle of each object
    "describe": Answers.describe,
    "type_lookup": Answers.type_lookup,
    "module_get": Answers.module_get,
    "dict_get": Answers.dict_get,
    "getattr": Answers.get_attribute,
    "evaluate": Answers.evaluate,
    "tensor_call": Answers.tensor_call,
    "shaped_call": Answers.shaped_call,
    "hash_equal": Answers.hash_equal,
    "source_line": Answers.source_line,
}


def _is_library(module: types.ModuleType) -> bool:
    top = module.__name__.partition(".")[0]
    return top == "torch" or top in sys.stdlib_module_names
