"""Programs that keep torch's state, or ask about it, are captured whole and do what they do uncompiled."""

from __future__ import annotations

import contextlib
import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from outcome import Describer

import fusee


def no_grad_block(x: Any) -> Any:
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
    return y, z, x * 4, torch.is_grad_enabled()


def grad_mode_set(x: Any) -> Any:
    with torch.set_grad_enabled(False):
        y = x * 2
    torch.set_grad_enabled(False)
    z = x * 2
    torch.set_grad_enabled(True)
    return y, z, x * 2


def grad_mode_left_changed(x: Any) -> Any:
    torch.set_grad_enabled(False)
    return x * 2


def decorated_functions(x: Any) -> Any:
    @torch.no_grad()
    def without(v: Any) -> Any:
        return v * 2

    @torch.enable_grad
    def within(v: Any) -> Any:
        return v * 2

    with torch.no_grad():
        y = within(x)
    return without(x), y, without.__name__


def exception_in_no_grad(x: Any) -> Any:
    try:
        with torch.no_grad():
            raise ValueError("inside")
    except ValueError:
        return x * 2, torch.is_grad_enabled()


def local_context_manager(x: Any) -> Any:
    @contextlib.contextmanager
    def added(amount: int) -> Any:
        try:
            yield x + amount
        finally:
            pass

    with added(3) as y:
        return y * 2


def availability(x: Any) -> Any:
    found = [
        torch.distributed.is_available(),
        torch.cuda.is_available(),
        torch.backends.mps.is_available(),
        torch.mps.is_available(),
        torch.xpu.is_available(),
    ]
    return x + 1, found


def torchscript(x: Any) -> Any:
    return (
        torch.jit.is_scripting(),
        torch.jit.is_tracing(),
        torch.jit.annotate(int, x + 1),
        torch.jit._unwrap_optional(x),
    )


def tensors_of_constants(x: Any) -> Any:
    return torch.as_tensor(2), torch.tensor(range(3)), torch.tensor([(1, 2), (3, 4)]), x + torch.tensor([1.0, 2.0, 3.0])


def legacy_types(x: Any) -> Any:
    return x.type(torch.HalfTensor), x.type(torch.float64), x.type(), x.new(x.size()).shape, x.new([1, 2])


def limits_of_numpy(x: Any) -> Any:
    return x + np.iinfo(np.int16).max, np.iinfo("int8").min, np.finfo(np.float32).bits


def device_module(x: Any) -> Any:
    return torch.get_device_module().__name__, torch.get_device_module("cpu").__name__, x + 1


class Counted:
    x = 1


def class_namespace(x: Any) -> Any:
    return (
        "x" in Counted.__dict__,
        "y" in type(Counted()).__dict__,
        Counted.__dict__["x"],
        Counted.__dict__.get("y", 5),
        x,
    )


class Meta(type):
    def __getattr__(cls, name: str) -> int:
        return len(name)


class WithMeta(metaclass=Meta):
    attr = 3


def metaclass_getattr(x: Any) -> Any:
    return x + WithMeta.attr + WithMeta.dynamic, hasattr(WithMeta, "anything")


PROGRAMS = [
    no_grad_block, grad_mode_set, grad_mode_left_changed, decorated_functions, exception_in_no_grad,
    local_context_manager, availability, torchscript, tensors_of_constants, legacy_types, class_namespace,
    metaclass_getattr, limits_of_numpy, device_module,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_captured_whole(program: Callable[..., Any]) -> None:
    function = fusee.compile(program, fullgraph=True)
    for _ in range(2):
        outcomes = []
        for run in (program, function):
            with torch.enable_grad():
                outcomes.append(Describer()((run(torch.arange(3.0, requires_grad=True)), torch.is_grad_enabled())))
        assert outcomes[0] == outcomes[1]


def marked(x: Any) -> Any:
    return x * 2 if getattr(marked, "double", False) else x


def test_attributes_of_functions_are_guarded() -> None:
    function = fusee.compile(marked, fullgraph=True)
    x = torch.ones(2)
    try:
        assert function(x) is x
        for double in (True, False, True):
            marked.double = double  # type: ignore[attr-defined]
            assert torch.equal(function(x), marked(x))
    finally:
        del marked.double  # type: ignore[attr-defined]
    assert function(x) is x


def test_names_in_a_class_are_guarded() -> None:
    function = fusee.compile(lambda x: x + 1 if "late" in Counted.__dict__ else x - 1, fullgraph=True)
    x = torch.ones(2)
    assert torch.equal(function(x), x - 1)
    Counted.late = 1  # type: ignore[attr-defined]
    try:
        assert torch.equal(function(x), x + 1)
    finally:
        del Counted.late  # type: ignore[attr-defined]
    assert torch.equal(function(x), x - 1)


@functools.lru_cache
def cached(x: Any, factor: int = 2) -> Any:
    return x * factor


def test_cached_functions_are_called_past_their_cache_only_for_one_graph() -> None:
    x = torch.ones(2)
    with pytest.warns(fusee.FuseeWarning, match="cached is called past its functools.lru_cache"):
        assert torch.equal(fusee.compile(lambda x: cached(x) + 1, fullgraph=True)(x), x * 2 + 1)
    fusee.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fusee.compile(lambda x: cached(x))(x) is cached(x)


class Caching:
    @functools.lru_cache  # noqa: B019
    def run(self, x: Any, factor: int = 3) -> Any:
        """Text."""
        return x * factor


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return inner


def test_wrappers_of_cached_functions() -> None:
    holder = Caching()

    def program(x: Any) -> Any:
        made = wrapped(cached)
        facts = made.__name__, made.__qualname__, made.__doc__, made.__module__, sorted(vars(made))
        return holder.run(x) + made(x), facts, made

    x = torch.ones(2)
    expected = program(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fusee.compile(program, fullgraph=True)(x)
    assert torch.equal(found[0], expected[0]) and found[1] == expected[1]
    assert vars(found[2]) == vars(expected[2])


def test_another_backend_sees_operations_that_nobody_reads() -> None:
    seen: list[int] = []

    def backend(module: Any, _: Any) -> Any:
        seen.append(sum("call" in node.op for node in module.graph.nodes))
        return module.forward

    def asked(x: Any) -> Any:
        y = x + 1
        return torch.is_floating_point(y)

    assert fusee.compile(asked, backend=backend)(torch.ones(2)) is True
    assert seen == [1]


def with_default(x: Any, amount: int = 1, *, factor: int = 1) -> Any:
    return (x + amount) * factor


def test_defaults_are_guarded() -> None:
    function = fusee.compile(lambda x: with_default(x), fullgraph=True)
    x = torch.ones(2)
    assert torch.equal(function(x), x + 1)
    before = with_default.__defaults__
    with_default.__defaults__ = (5,)
    try:
        assert torch.equal(function(x), x + 5)
        with_default.__defaults__ = None
        with pytest.raises(TypeError):
            fusee.compile(lambda x: with_default(x))(x)
    finally:
        with_default.__defaults__ = before


def test_variables_of_a_module_read_both_ways() -> None:
    module = types.ModuleType("counted_module")
    exec("count = 0\ndef bump():\n    global count\n    count += 1\n    return count", module.__dict__)

    def program(x: Any) -> Any:
        first = module.bump()
        module.label = "set"
        module.count = module.count + 10
        return x + module.bump() + module.count, first, module.label

    x = torch.ones(2)
    expected = program(x)
    plain = {"count": module.count}
    module.count = 0
    del module.label
    found = fusee.compile(program, fullgraph=True)(x)
    assert torch.equal(found[0], expected[0]) and found[1:] == expected[1:]
    assert {"count": module.count} == plain and module.label == "set"


def autograd_sees(tensor: torch.Tensor) -> tuple[bool, bool, bool, bool]:
    """What autograd knows of a tensor."""
    return tensor.requires_grad, tensor.is_leaf, tensor._is_view(), tensor.is_inference()


def test_operators_within_no_grad_record_nothing() -> None:
    """Library operators would record what they do with parameters unless grad mode is off when the plan runs."""
    layer = torch.nn.Linear(4, 4)

    @torch.no_grad()
    def evaluate(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden = layer(x)
        return hidden, hidden.view(-1), layer.weight.t(), torch.relu(hidden) * 2

    function, x = fusee.compile(evaluate, fullgraph=True), torch.randn(2, 4)
    for _ in range(2):
        found, expected = function(x), evaluate(x)
        torch.testing.assert_close(found, expected)
        assert [autograd_sees(tensor) for tensor in found] == [autograd_sees(tensor) for tensor in expected]
    assert torch.is_grad_enabled()


def inferred_block(layer: Any, x: Any) -> Any:
    with torch.inference_mode():
        hidden = layer(x)
        found = torch.relu(hidden), hidden.view(-1), layer.weight.t(), torch.is_grad_enabled()
    return *found, torch.is_inference_mode_enabled(), torch.is_grad_enabled()


@torch.inference_mode()
def inferred_twice(layer: Any, x: Any) -> Any:
    @torch.inference_mode()
    def inner(v: Any) -> Any:
        return layer(v) * 2

    with torch.enable_grad(), torch.inference_mode(True):
        y = inner(x)
    return y, inner(y), torch.is_grad_enabled()


def inferred_in_part(layer: Any, x: Any) -> Any:
    y = x * 2
    with torch.inference_mode():
        z = layer(y)
    return y * 3, z


def inferred_with_exception(layer: Any, x: Any) -> Any:
    try:
        with torch.inference_mode():
            y = layer(x)
            raise ValueError("inside")
    except ValueError:
        return y, torch.is_inference_mode_enabled()


def inferred_with_break(layer: Any, x: Any) -> Any:
    with torch.inference_mode():
        y = layer(x)
        fusee.graph_break()
        return y + 1, torch.is_inference_mode_enabled()


def inferred_not(layer: Any, x: Any) -> Any:
    with torch.inference_mode(False):
        y = layer(x)
    with torch.no_grad(), torch.inference_mode(mode=False):
        return y, layer(x)


def inferred_mode_kept(layer: Any, x: Any) -> Any:
    manager = torch.inference_mode()
    manager.__enter__()
    y = layer(x)
    manager.__exit__(None, None, None)
    return y, isinstance(manager, torch.inference_mode)


INFERRED = [
    (inferred_block, True),
    (inferred_twice, True),
    (inferred_in_part, False),
    (inferred_with_exception, True),
    (inferred_with_break, False),
    (inferred_not, False),
    (inferred_mode_kept, True),
]


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(("program", "whole"), INFERRED, ids=[program.__name__ for program, _ in INFERRED])
def test_inference_mode(program: Any, whole: bool, requires_grad: bool) -> None:
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4, requires_grad=requires_grad)
    function = fusee.compile(program, fullgraph=whole)
    for _ in range(2):
        found, expected = function(layer, x), program(layer, x)
        for ours, theirs in zip(found, expected, strict=True):
            if isinstance(theirs, torch.Tensor):
                torch.testing.assert_close(ours, theirs)
                assert autograd_sees(ours) == autograd_sees(theirs)
            else:
                assert ours == theirs
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()


def test_inference_mode_of_a_function_that_is_called_within_it() -> None:
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    function = fusee.compile(lambda v: inferred_block(layer, v), fullgraph=True)
    with torch.inference_mode():
        found, expected = function(x), inferred_block(layer, x)
    assert found[0].is_inference() and found[3:] == expected[3:]
    assert function(x)[3:] == inferred_block(layer, x)[3:]


def rows_packed(layer: Any, x: Any, lengths: Any) -> Any:
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    rows, last = layer(packed)
    return packed.data * 2, torch.nn.utils.rnn.pad_packed_sequence(rows, batch_first=True), last


def cut_at(_: Any, x: Any, places: Any) -> Any:
    return [part * 2 for part in x.tensor_split(places, 1)]


@pytest.mark.parametrize("program", [rows_packed, cut_at])
def test_numbers_that_an_operation_reads_from_memory(program: Any) -> None:
    """Not all operators whose shapes depend on values say so; some read what symbolic tensors do not have."""
    layer = torch.nn.GRU(3, 4, batch_first=True)
    function = fusee.compile(program)
    for length, other in [(5, 3), (5, 4), (6, 2), (7, 5)]:
        x, numbers = torch.randn(2, length, 3), torch.tensor([other, length])
        assert Describer()(function(layer, x, numbers)) == Describer()(program(layer, x, numbers))
