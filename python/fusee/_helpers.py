"""Functions that rewritten code may call (placeholder kind "helper" of docs/contracts.md, section 4).

They write and make objects without running code of the user: the capture already followed what that code does.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import types
import typing
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from . import _random, _shim
from .host import slots


def _slot(target: Any, name: str) -> types.MemberDescriptorType | None:
    found = slots.lookup(type(target), name)
    return found[1] if found is not None and type(found[1]) is types.MemberDescriptorType else None


def _slot_method(target: Any, name: str) -> Any:
    """The first special method of a name along the MRO that is written in C."""
    found = (slots.class_dict(cls).get(name) for cls in slots.mro(type(target)))
    return next(method for method in found if type(method) is types.WrapperDescriptorType)


def set_field(target: Any, name: str, value: Any) -> None:
    """Write an instance attribute, into its slot or the instance dict."""
    slot, namespace = _slot(target, name), slots.instance_dict(target)
    if slot is not None:
        slot.__set__(target, value)
    elif namespace is not None:
        namespace[name] = value
    else:
        _slot_method(target, "__setattr__")(target, name, value)


def delete_field(target: Any, name: str) -> None:
    """Delete an instance attribute, from its slot or the instance dict."""
    slot, namespace = _slot(target, name), slots.instance_dict(target)
    if slot is None and namespace is not None:
        del namespace[name]
    else:
        _slot_method(target, "__delattr__")(target, name)


def replace_list(target: list[Any], items: Sequence[Any]) -> None:
    """Give a list its final contents."""
    list.__setitem__(target, slice(None), items)


def storage_bytes(tensor: Any) -> int:
    """How many bytes of memory lie behind a tensor, used by it or not."""
    return int(tensor.untyped_storage().nbytes())


def profiler_runs(_owner: Any) -> bool:
    """Whether labels of ``record_function`` would be noted down by a profiler."""
    from torch._C import _autograd

    return bool(_autograd._profiler_enabled())


def profiler_label(entered: bool, name: str, args: str | None = None) -> Any:
    """A label of ``record_function``, entered where the program has entered it already."""
    import torch

    label: Any = torch.autograd.profiler.record_function(name, args)
    return label.__enter__() if entered else label


def extend_list(target: list[Any], items: Sequence[Any]) -> None:
    """Append what was appended."""
    list.extend(target, items)


def replace_deque(target: deque[Any], items: Sequence[Any]) -> None:
    """Give a deque its final contents."""
    target.clear()
    target.extend(items)


def store_by_hashes(target: dict[Any, Any], entries: Sequence[tuple[Any, int | None, Any]]) -> None:
    """Store keys, hashes and values; keys whose hash is None are asked for it."""
    for key, number, value in entries:
        _shim.store(target, key, hash(key) if number is None else number, value)


def delete_by_hash(target: dict[Any, Any], key: Any, number: int) -> None:
    """Delete a key of this hash if it is there, as ``delete_item`` does."""
    _shim.discard(target, key, number)


def dict_by_hashes(entries: Sequence[tuple[Any, int | None, Any]]) -> dict[Any, Any]:
    """A dict of such entries."""
    made: dict[Any, Any] = {}
    store_by_hashes(made, entries)
    return made


def set_by_hashes(frozen: bool, entries: Sequence[tuple[Any, int | None, Any]]) -> set[Any] | frozenset[Any]:
    """A set of the keys of such entries: of an exact dict it takes the hashes that are stored there."""
    return (frozenset if frozen else set)(dict_by_hashes(entries))


def change_set(target: set[Any], changes: Sequence[tuple[bool, Any, int | None]]) -> None:
    """Add and, where the flag is set, remove members, in this order, by the hashes given or else by their own."""
    for removed, item, number in changes:
        if number is None:
            (set.discard if removed else set.add)(target, item)
        else:
            (set.difference_update if removed else set.update)(target, set_by_hashes(False, [(item, number, None)]))


def _mapping(target: dict[Any, Any]) -> type[dict[Any, Any]]:
    """The class written in C that keeps the items: an OrderedDict keeps their order beside the dict."""
    return OrderedDict if slots.is_a(target, OrderedDict) else dict


def set_item(target: dict[Any, Any], key: Any, value: Any) -> None:
    """Store under a key of a dict whose class may have a ``__setitem__`` of its own, which was already followed."""
    _mapping(target).__setitem__(target, key, value)


def delete_item(target: dict[Any, Any], key: Any) -> None:
    """Delete a key if it is there: it may have been added and deleted within one call."""
    if dict.__contains__(target, key):
        _mapping(target).__delitem__(target, key)


def _builtin_base(cls: type) -> Any:
    """The class along the MRO that is written in C and lays out the instances."""
    return next(base for base in slots.mro(cls) if not slots.is_heap_type(base))


def new_object(cls: type) -> Any:
    """An instance whose ``__new__`` and ``__init__`` were already followed."""
    return _builtin_base(cls).__new__(cls)


def new_subclass(cls: Any, base: Any) -> Any:
    """An instance of a subclass of a builtin type, holding what ``base`` holds."""
    kind: Any = type(base)
    if kind in (OrderedDict, defaultdict):
        made = kind.__new__(cls)
        if kind is defaultdict:
            kind.__init__(made, base.default_factory)
        for key in base:  # their own update calls a __setitem__ of the class
            kind.__setitem__(made, key, base[key])
        return made
    if kind in (list, set, dict, deque):
        made = kind.__new__(cls)
        getattr(kind, "update" if kind in (set, dict) else "extend")(made, base)
        return made
    return kind.__new__(cls, base)


def new_tuple(cls: Any, items: tuple[Any, ...]) -> Any:
    """An instance of a subclass of tuple: a named tuple, or a structure that torch returns."""
    if slots.lookup(cls, "n_sequence_fields") is not None:
        return cls(items)
    return tuple.__new__(cls, items)


def make_exception(cls: Any, arguments: tuple[Any, ...], cause: Any, suppress_context: bool) -> BaseException:
    """An exception whose ``__init__`` was already followed."""
    error = new_exception(cls, arguments, cause, suppress_context)
    _builtin_base(cls).__init__(error, *arguments)
    return error


def new_exception(cls: Any, arguments: tuple[Any, ...], cause: Any, suppress_context: bool) -> BaseException:
    """An exception of which the ``__init__`` of its builtin base was never called."""
    error: BaseException = _builtin_base(cls).__new__(cls, *arguments)
    error.__cause__ = cause
    error.__suppress_context__ = suppress_context
    return error


def make_function(
    code: types.CodeType,
    namespace: dict[str, Any],
    qualname: str,
    defaults: tuple[Any, ...] | None,
    keyword_defaults: dict[str, Any] | None,
    closure: tuple[types.CellType, ...] | None,
    annotations: tuple[Any, ...],
) -> types.FunctionType:
    """A function as ``def`` makes it; ``annotations`` are names and types in turn, as MAKE_FUNCTION takes them."""
    function = types.FunctionType(code, namespace, code.co_name, defaults, closure)
    function.__kwdefaults__ = keyword_defaults
    function.__qualname__ = qualname
    function.__annotations__ = dict(zip(annotations[::2], annotations[1::2], strict=True))
    return function


def make_partial(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """``functools.partial(function, *arguments, **keywords)``."""
    return functools.partial(function, *arguments, **keywords)


def make_iterator(items: Any, position: int) -> Iterator[Any]:
    """An iterator that has already given its first ``position`` items."""
    return _advanced(iter(items), position)


def make_reversed(items: Any, position: int) -> Iterator[Any]:
    """A reversed iterator that has already given its first ``position`` items."""
    return _advanced(reversed(items), position)


def make_stale(items: deque[Any], position: int) -> Iterator[Any]:
    """An iterator over a deque that was changed behind its back: it raises at the next step."""
    iterator = make_iterator(items, position)
    kept = list(items)
    items.clear()
    items.extend(kept)
    return iterator


def construct(cls: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """``cls(*arguments, **keywords)`` of a class of the standard library."""
    return cls(*arguments, **keywords)


def make_advanced(cls: Callable[..., Iterator[Any]], arguments: tuple[Any, ...], position: int) -> Iterator[Any]:
    """``cls(*arguments)`` of the module itertools that has already given its first ``position`` items."""
    return _advanced(cls(*arguments), position)


def make_chain(active: Iterator[Any] | None, rest: Iterator[Any]) -> Iterator[Any]:
    """A chain that walks ``active`` and then the iterables that ``rest`` gives."""
    chain: Any = itertools.chain.from_iterable(rest)
    if active is not None:
        chain.__setstate__((rest, active))
    return chain  # type: ignore[no-any-return]


def make_cycle(rest: Iterator[Any], saved: list[Any], again: bool) -> Iterator[Any]:
    """A cycle that gives what is left of ``rest``, then ``saved`` (and ``rest``, unless ``again``) over and over."""
    cycle: Any = itertools.cycle(rest)
    cycle.__setstate__((saved, again))
    return cycle  # type: ignore[no-any-return]


def make_accumulate(rest: Iterator[Any], function: Any, initial: Any, total: Any, started: bool) -> Iterator[Any]:
    """An accumulate that has given ``total`` last, where it has given anything."""
    if not started:
        return itertools.accumulate(rest, function, initial=initial)
    accumulate: Any = itertools.accumulate(rest, function)
    accumulate.__setstate__(total)
    return accumulate  # type: ignore[no-any-return]


def make_while(cls: Any, predicate: Any, rest: Iterator[Any], decided: bool) -> Iterator[Any]:
    """A takewhile or dropwhile; ``decided`` if its predicate has failed already."""
    iterator = cls(predicate, rest)
    iterator.__setstate__(decided)
    return iterator  # type: ignore[no-any-return]


def make_pairwise(last: Any, rest: Iterator[Any]) -> Iterator[Any]:
    """A pairwise whose next pair starts with ``last``."""
    return itertools.pairwise(itertools.chain((last,), rest))


def make_zip_longest(iterables: tuple[Any, ...], fill: Any) -> Iterator[Any]:
    """``itertools.zip_longest(*iterables, fillvalue=fill)``."""
    return itertools.zip_longest(*iterables, fillvalue=fill)


def zip_strict(*iterators: Iterator[Any]) -> Iterator[Any]:
    """``zip(*iterators, strict=True)``."""
    return zip(*iterators, strict=True)


def rest_of_range(iterator: Iterator[int]) -> tuple[int, int, int]:
    """Bounds and step of the numbers that an iterator over a range has yet to give."""
    reduced: Any = iterator.__reduce__()
    rest: range = reduced[1][0][reduced[2] :]
    return rest.start, rest.stop, rest.step


def protocol_members(protocol: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Members of a protocol that isinstance may ask for, and those of them that are methods; None for other classes."""
    if not (getattr(protocol, "_is_protocol", False) and getattr(protocol, "_is_runtime_protocol", False)):
        return None
    find: Callable[[Any], set[str]] = typing._get_protocol_attrs  # type: ignore[attr-defined]
    members = sorted(find(protocol))
    return tuple(members), tuple(name for name in members if callable(getattr(protocol, name, None)))


def keeps_order(mapping: OrderedDict[Any, Any]) -> bool:
    """Whether an ordered dict iterates in the order of the dict below it, as it does until items are moved."""
    return all(map(operator.is_, OrderedDict.__iter__(mapping), dict.__iter__(mapping)))


def set_holds(container: AbstractSet[Any], item: Any) -> bool | None:
    """Whether a set holds an item, as guards tell it; None where only code of the program could tell."""
    return _shim.lookup(container, item)


def advance_iterator(iterator: Iterator[Any], count: int) -> None:
    """Take as many items as the captured code took, and the end or the error that it met behind them."""
    with contextlib.suppress(RuntimeError):  # the program saw it
        _advanced(iterator, count)


def _advanced(iterator: Iterator[Any], count: int) -> Iterator[Any]:
    for _ in range(count):
        next(iterator, None)
    return iterator


def tensor_of_array(array: Any) -> Any:
    """A tensor on the memory of a NumPy array."""
    from . import _arrays

    return _arrays.tensor_of_array(array)


def array_of_tensor(tensor: Any) -> Any:
    """A NumPy array on the memory of a tensor."""
    return tensor.numpy()


def scalar_of_tensor(tensor: Any) -> Any:
    """The scalar of NumPy that a tensor of no dimension holds."""
    return tensor.numpy()[()]


def warn_for(
    message: str, category: type[Warning], file: str | None, line: int, namespace: dict[str, Any] | None
) -> None:
    """Give a warning as ``warnings.warn`` does in that file and line of a module with these globals.

    Without them ``line`` says how far above the function that calls this the warning's place is.
    """
    if file is None or namespace is None:
        warnings.warn(message, category, stacklevel=line + 2)
        return
    registry = namespace.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, file, line, namespace.get("__name__") or "<string>", registry)


def keep(random: bool, *tensors: Any) -> tuple[Any, list[tuple[Any, Any]]]:
    """What a graph may write before it raises: the state of the CPU's generator, and the elements of tensors."""
    # data has a version counter of its own, and no history
    return _random.state_of("cpu") if random else None, [(t, t.data.clone()) for t in tensors]


def put_back(kept: tuple[Any, list[tuple[Any, Any]]]) -> None:
    """Undo what was written since ``keep``."""
    state, tensors = kept
    if state is not None:
        _random.set_back("cpu", state)
    for tensor, elements in tensors:
        tensor.data.copy_(elements)


TABLE: Mapping[str, Callable[..., Any]] = {
    "is_state": _shim.is_state,
    "pack": _shim.pack,
    "keep": keep,
    "put_back": put_back,
    "set_field": set_field,
    "delete_field": delete_field,
    "replace_list": replace_list,
    "extend_list": extend_list,
    "profiler_label": profiler_label,
    "replace_deque": replace_deque,
    "change_set": change_set,
    "store_by_hashes": store_by_hashes,
    "delete_by_hash": delete_by_hash,
    "dict_by_hashes": dict_by_hashes,
    "set_by_hashes": set_by_hashes,
    "set_item": set_item,
    "delete_item": delete_item,
    "new_object": new_object,
    "new_subclass": new_subclass,
    "new_tuple": new_tuple,
    "make_exception": make_exception,
    "new_exception": new_exception,
    "make_function": make_function,
    "make_partial": make_partial,
    "advance_iterator": advance_iterator,
    "make_iterator": make_iterator,
    "make_reversed": make_reversed,
    "make_stale": make_stale,
    "tensor_of_array": tensor_of_array,
    "array_of_tensor": array_of_tensor,
    "scalar_of_tensor": scalar_of_tensor,
    "construct": construct,
    "make_advanced": make_advanced,
    "make_chain": make_chain,
    "make_cycle": make_cycle,
    "make_accumulate": make_accumulate,
    "make_while": make_while,
    "make_pairwise": make_pairwise,
    "make_zip_longest": make_zip_longest,
    "zip_strict": zip_strict,
    "warn_for": warn_for,
}
