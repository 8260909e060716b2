"""Compiled functions: binding, dispatch, misses, recursion, threads, and what they keep alive."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import pytest
import torch
from helpers import code_of, compiled, never, node, tensor_check
from hypothesis import given, settings
from hypothesis import strategies as st

from fusee import _shim


def entry_for(function: Any, tree: tuple[Any, ...] = (), captures: int = 0) -> _shim.Entry:
    """An entry whose code returns its parameters as a tuple, in the order of the function's own."""
    code = function.__code__
    names = list(code.co_varnames[: parameter_count(code)]) + [f"capture_{i}" for i in range(captures)]
    body = f"def t({', '.join(names)}):\n return ({''.join(name + ', ' for name in names)})"
    return _shim.Entry(_shim.GuardProgram(tree, captures), code_of(body))


def parameter_count(code: CodeType) -> int:
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + stars


def outcome(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    try:
        return ("value", function(*args, **kwargs))
    except TypeError as error:
        return ("error", str(error))


# ---- binding ----


@st.composite
def functions(draw: st.DrawFn) -> FunctionType:
    """Functions with every kind of parameter that return what they were called with."""
    names = iter("abcdefghij")
    only, both, keyword = draw(st.integers(0, 2)), draw(st.integers(0, 3)), draw(st.integers(0, 3))
    positional = [next(names) for _ in range(only + both)]
    keywords = [next(names) for _ in range(keyword)]
    defaults = draw(st.integers(0, len(positional)))
    parts = [
        name + (f"={position * 10}" if position >= len(positional) - defaults else "")
        for position, name in enumerate(positional)
    ]
    if only:
        parts.insert(only, "/")
    star, stars = draw(st.booleans()), draw(st.booleans())
    if star or keywords:
        parts.append("*rest" if star else "*")
    parts += [name + (f"={index * 100}" if draw(st.booleans()) else "") for index, name in enumerate(keywords)]
    parts += ["**more"] if stars else []
    results = positional + keywords + ["rest"] * star + ["more"] * stars
    space: dict[str, Any] = {}
    exec(f"def f({', '.join(parts)}): return ({''.join(name + ', ' for name in results)})", space)
    return space["f"]


@settings(max_examples=300, deadline=None)
@given(
    functions(),
    st.lists(st.integers(), max_size=6).map(tuple),
    st.dictionaries(st.sampled_from([*"abcdefgh", "rest", "more", "zz"]), st.integers(), max_size=4),
)
def test_binds_as_cpython_does(function: FunctionType, args: tuple[int, ...], kwargs: dict[str, int]) -> None:
    expected = outcome(function, args, kwargs)
    target = compiled(function, entry_for(function))
    assert outcome(target, args, kwargs) == expected
    assert outcome(target, args, kwargs) == expected
    assert target.record.misses == (expected[0] == "value")


def test_the_host_is_given_bound_and_original_arguments() -> None:
    seen: list[Any] = []

    def function(a: int, /, b: int = 2, *rest: int, c: int = 3, **more: int) -> None: ...

    target = compiled(function, miss=lambda *received: seen.append(received))
    target(1, 5, 6, d=7)
    assert seen == [(target, (1, 5, 3, (6,), {"d": 7}), (1, 5, 6), {"d": 7}, ())]


def test_fresh_dict_and_tuple_for_each_call() -> None:
    def function(*rest: Any, **more: Any) -> Any: ...

    target = compiled(function, entry_for(function))
    keywords = {"x": 1}
    _, first = target(**keywords)
    first["y"] = 2
    assert keywords == {"x": 1}
    assert target(**keywords) == ((), {"x": 1})


def test_changed_defaults_are_used() -> None:
    def function(a: int = 1, *, b: int = 2) -> Any:
        return (a, b)

    target = compiled(function, entry_for(function))
    assert target() == (1, 2)
    function.__defaults__ = (5,)
    function.__kwdefaults__ = {"b": 6}
    assert target() == (5, 6)
    function.__kwdefaults__ = None  # type: ignore[assignment]
    with pytest.raises(TypeError, match="keyword-only"):
        target()


def test_defaults_and_code_may_be_set_on_the_compiled_function() -> None:
    def function(a: int = 1, *, b: int = 2) -> Any:
        return ("original", a, b)

    target = compiled(function, entry_for(function))
    target.__defaults__ = (5,)
    target.__kwdefaults__ = {"b": 6}
    assert target() == (5, 6)
    assert function.__defaults__ == (5,)
    target.__code__ = (lambda a, *, b: ("replaced", a, b)).__code__
    assert target() == ("replaced", 5, 6)
    del target.__defaults__
    with pytest.raises(TypeError, match="missing 1 required positional"):
        target()


def test_many_parameters() -> None:
    names = [f"p{i}" for i in range(100)]
    space: dict[str, Any] = {}
    exec(f"def f({', '.join(names)}): return ({', '.join(names)})", space)
    target = compiled(space["f"], entry_for(space["f"]))
    assert target(*range(100)) == tuple(range(100))
    assert target(*range(99), p99=99) == tuple(range(100))


# ---- the object ----


def test_behaves_like_a_function() -> None:
    def function(a: int, b: int = 2) -> Any:
        """Documented."""
        return (a, b)

    target = functools.update_wrapper(compiled(function, entry_for(function)), function)
    assert target.__wrapped__ is function  # type: ignore[attr-defined]
    assert (target.__name__, target.__doc__) == (function.__name__, "Documented.")  # type: ignore[attr-defined]
    assert target.__code__ is function.__code__
    assert target.__defaults__ == (2,)
    assert inspect.signature(target) == inspect.signature(function)
    assert target.function is function
    assert "function" in repr(target)
    target.note = 1  # type: ignore[attr-defined]
    assert vars(target)["note"] == 1
    assert weakref.ref(target)() is target


def test_binds_as_a_method() -> None:
    class Box:
        def method(self, x: int) -> Any:
            return (self, x)

    function = Box.method
    Box.method = compiled(function, entry_for(function))  # type: ignore[assignment, method-assign]
    box = Box()
    assert box.method(1) == (box, 1)
    assert Box.method(box, 2) == (box, 2)
    bound = box.method
    assert bound(3) == (box, 3)
    assert bound.__self__ is box  # type: ignore[attr-defined]
    assert Box.method.record.hits == 3  # type: ignore[attr-defined]


def module_level(x: int) -> int:
    return x


def test_is_copied_and_pickled_like_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    target = functools.update_wrapper(compiled(module_level, entry_for(module_level)), module_level)
    assert copy.deepcopy({"f": target})["f"] is target
    assert copy.copy(target) is target
    monkeypatch.setitem(globals(), "module_level", target)
    assert pickle.loads(pickle.dumps(target)) is target


def test_refuses_wrong_construction() -> None:
    with pytest.raises(TypeError):
        _shim.CompiledFunction(len, _shim.CodeRecord(), never)  # type: ignore[arg-type]
    program = _shim.GuardProgram((node(("arg", 0), capture=0),), 1)
    with pytest.raises(ValueError, match="positional"):
        _shim.Entry(program, code_of("def t(*a): pass"))
    with pytest.raises(ValueError, match="fewer"):
        _shim.Entry(program, code_of("def t(): pass"))


# ---- dispatch ----


def add(x: torch.Tensor, y: torch.Tensor) -> Any:
    return x + y


def named(name: str, *trees: tuple[Any, ...]) -> _shim.Entry:
    """An entry for two parameters that returns its own name."""
    return _shim.Entry(_shim.GuardProgram(trees, 0), code_of("def t(x, y): return 'name'", name=name))


def by_shape(mode: str) -> tuple[_shim.CompiledFunction, list[Any]]:
    """A compiled function with one entry per shape of its first argument, and the failures the host was shown."""
    seen: list[Any] = []

    def miss(target: Any, bound: Any, args: Any, kwargs: Any, failures: Any) -> Any:
        seen.append(failures)
        return named(str(tuple(bound[0].shape)), node(("arg", 0), tensor_check(bound[0])))

    return compiled(add, miss=miss), seen


def test_entries_by_shape_newest_hit_first(mode: str) -> None:
    target, seen = by_shape(mode)
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    assert [target(t, t) for t in (one, two, three, one, one)] == ["(1,)", "(2,)", "(3,)", "(1,)", "(1,)"]
    first, second, third = target.record.entries
    assert [entry.code.co_consts[-1] for entry in target.record.entries] == ["(1,)", "(3,)", "(2,)"]
    assert (target.record.hits, target.record.misses, first.hits) == (5, 3, 3)
    assert seen[0] == ()
    assert [(entry, number) for entry, number, _ in seen[2]] == [(third, 0), (first, 0)]
    assert seen[2][0][2] is three
    assert target.find((one, one)) is first
    assert target.find((two, two)) is third
    assert target.find((torch.ones(9), one)) is None
    assert second.hits == 1


def test_none_runs_the_original() -> None:
    target = compiled(add, miss=lambda *_: None)
    assert target(1, 2) == 3
    assert target(x=1, y=2) == 3
    assert target.record.misses == 2


@pytest.mark.parametrize("state", ["plain", "disabled"])
def test_other_states_run_the_original(state: Any) -> None:
    target = compiled(add, miss=never)
    target.record.state = state
    assert target.record.state == state
    assert target(1, 2) == 3
    with pytest.raises(ValueError, match="state"):
        target.record.state = "nothing"  # type: ignore[assignment]


def test_disabled_threads_run_the_original() -> None:
    target = compiled(add, miss=never)
    assert _shim.set_enabled(False) is True
    try:
        assert _shim.is_enabled() is False
        assert target(1, 2) == 3
        other: list[bool] = []
        thread = threading.Thread(target=lambda: other.append(_shim.is_enabled()))
        thread.start()
        thread.join()
        assert other == [True]
    finally:
        assert _shim.set_enabled(True) is False


def test_changed_code_of_the_original_runs_plain() -> None:
    def function(x: Any, y: Any) -> Any:
        return (x, y)

    target = compiled(function, named("entry"))
    assert target(1, 2) == "entry"
    function.__code__ = add.__code__
    assert target(1, 2) == 3


def test_an_entry_that_does_not_fit_its_own_call_is_not_run() -> None:
    target = compiled(add, named("never", node(("arg", 0), ("is", None))))
    assert target(1, 2) == 3
    assert target.record.rejected == 1


def test_the_host_may_answer_with_an_entry_made_meanwhile() -> None:
    record = _shim.CodeRecord()
    entry = named("shared", node(("arg", 0), ("equals", 1)))
    target = compiled(add, entry, record=record)
    assert target(1, 2) == "shared"
    assert target(5, 2) == 7
    assert record.entries == (entry,)
    assert record.rejected == 1


def test_errors_of_the_host_reach_the_caller() -> None:
    def broken(*_: object) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled(add, miss=broken)(1, 2)
    with pytest.raises(TypeError, match="Entry or None"):
        compiled(add, miss=lambda *_: 5)(1, 2)


def test_errors_of_the_entry_reach_the_caller() -> None:
    entry = _shim.Entry(_shim.GuardProgram((), 0), code_of("def t(x, y): return x[y]"))
    target = compiled(add, entry)
    assert target([7], 0) == 7
    with pytest.raises(IndexError):
        target([7], 1)
    with pytest.raises(IndexError) as caught:
        target([7], 1)
    assert caught.traceback[-1].name == "t"


def test_captures_follow_the_parameters() -> None:
    class Box:
        def __init__(self, value: object) -> None:
            self.value = value

    def function(box: Any) -> Any: ...

    tree = node(("arg", 0), ("type", Box), children=(node(("field", "value"), capture=0),))
    target = compiled(function, entry_for(function, (tree,), 1))
    for value in range(5):
        box = Box(value)
        assert target(box) == (box, value)
    assert target.record.misses == 1


def test_more_captures_than_fit_the_stack() -> None:
    def function(values: Any) -> Any: ...

    tree = node(("arg", 0), children=tuple(node(("item", i), capture=i) for i in range(80)))
    target = compiled(function, entry_for(function, (tree,), 80))
    values = list(range(80))
    for _ in range(3):
        assert target(values) == (values, *values)


def test_free_variables_and_globals_are_the_functions_own() -> None:
    def make(value: int) -> Any:
        def inner(x: int) -> Any:
            return (value, x, module_level)

        return inner

    first, second = make(1), make(2)
    code = first.__code__.replace(co_name="rewritten")
    record = _shim.CodeRecord()
    entry = _shim.Entry(_shim.GuardProgram((), 0), code)
    one, two = compiled(first, entry, record=record), compiled(second, entry, record=record)
    assert [one(5), two(5), one(6)] == [(1, 5, module_level), (2, 5, module_level), (1, 6, module_level)]
    assert record.misses == 1


def test_code_with_other_free_variables_is_refused() -> None:
    value = 1

    def inner(x: Any, y: Any) -> Any:
        return value

    entry = _shim.Entry(_shim.GuardProgram((), 0), inner.__code__)
    with pytest.raises(RuntimeError, match="free variables"):
        compiled(add, entry)(1, 2)


# ---- global state ----


def toggles() -> dict[str, Callable[[], Any]]:
    return {
        "grad mode": torch.no_grad,
        "dispatch keys": lambda: torch.autocast("cpu"),
        "inference": torch.inference_mode,
        "default dtype": lambda: DefaultDtype(torch.float64),
        "deterministic algorithms": Deterministic,
        "torch function modes": torch._C.DisableTorchFunction,
    }


class DefaultDtype:
    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __enter__(self) -> None:
        self.before = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self.before)


class Deterministic:
    def __enter__(self) -> None:
        torch.use_deterministic_algorithms(True, warn_only=True)

    def __exit__(self, *_: object) -> None:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", list(toggles()))
def test_entries_hold_in_their_own_state_only(mode: str, name: str) -> None:
    seen: list[Any] = []

    def miss(target: Any, bound: Any, args: Any, kwargs: Any, failures: Any) -> Any:
        seen.append(failures)
        return named(f"entry {len(seen)}")

    target = compiled(add, miss=miss)
    assert target(1, 2) == "entry 1"
    with toggles()[name]():
        assert target(1, 2) == "entry 2"
        assert target(1, 2) == "entry 2"
    assert target(1, 2) == "entry 1"
    with toggles()[name]():
        assert target(1, 2) == "entry 2"
    assert len(seen) == 2
    ((entry, number, difference),) = seen[1]
    assert (entry.code.co_consts[-1], number) == ("entry 1", -2)
    assert difference == name or name == "inference"


def test_autocast_dtypes_are_told_apart(mode: str) -> None:
    names = iter(("plain", "bfloat16", "float16"))
    target = compiled(add, miss=lambda *_: named(next(names)))
    assert target(1, 2) == "plain"
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert target(1, 2) == "bfloat16"
        with torch.autocast("cpu", dtype=torch.float16):
            assert target(1, 2) == "float16"


def test_nothing_compiled_runs_under_modes(mode: str) -> None:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Function(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    target = compiled(add, named("entry"))
    assert target(1, 2) == "entry"
    with Function():
        assert target(1, 2) == 3
    with Dispatch():
        assert target(1, 2) == 3
    assert target(1, 2) == "entry"
    assert target.record.misses == 1


def test_dispatch_modes_may_leave_compiled_code_alone(mode: str) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Outside(TorchDispatchMode):
        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    class Inside(Outside):
        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return False

    target = compiled(add, named("entry"))
    for _ in range(2):
        with Outside(), Outside():
            assert target(1, 2) == "entry"
        with Outside(), Inside():
            assert target(1, 2) == 3
    assert target.record.misses == 1


def test_other_threads_have_their_own_state(mode: str) -> None:
    target = compiled(add, miss=lambda *_: named("grad" if torch.is_grad_enabled() else "no grad"))
    assert target(1, 2) == "grad"
    results: list[Any] = []

    def work() -> None:
        results.append(target(1, 2))
        with torch.no_grad():
            results.append(target(1, 2))

    with torch.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert results == ["grad", "no grad"]
    assert target.record.misses == 2


# ---- reentry, threads, lifetime ----


def test_recursion() -> None:
    # Beyond some depth calls run the original, so it does what the entry does.
    body = "def t(n): return 0 if n == 0 else 1 + target(n - 1)"
    space: dict[str, Any] = {}
    bare = FunctionType(code_of(body), space)
    target = compiled(bare, _shim.Entry(_shim.GuardProgram((), 0), code_of(body)))
    space["target"] = target
    assert target(200) == 200
    with pytest.raises(RecursionError):
        target(10**6)
    assert target(3) == 3


def test_a_miss_may_call_the_function_it_compiles() -> None:
    calls: list[int] = []

    def miss(target: Any, bound: Any, *_: Any) -> Any:
        calls.append(bound[0])
        if bound[0] > 0:
            assert target(bound[0] - 1, 0) == f"entry {bound[0] - 1}"
        return named(f"entry {bound[0]}", node(("arg", 0), ("equals", bound[0])))

    target = compiled(add, miss=miss)
    assert target(3, 0) == "entry 3"
    assert calls == [3, 2, 1, 0]
    assert len(target.record.entries) == 4


def test_entries_may_change_while_guards_run() -> None:
    record = _shim.CodeRecord()

    class Meddler:
        def __getattr__(self, name: str) -> int:
            record.clear()
            gc.collect()
            return 1

    tree = node(("arg", 0), children=(node(("attr", "x"), ("equals", 1), capture=0),))
    code = code_of("def t(x, y, capture): return capture")
    entry = _shim.Entry(_shim.GuardProgram((tree,), 1), code)
    target = compiled(add, entry, record=record)
    for _ in range(3):
        assert target(Meddler(), 0) == 1
        assert record.entries in ((), (entry,))


def test_an_entry_may_remove_itself_while_it_runs() -> None:
    record = _shim.CodeRecord()
    space: dict[str, Any] = {"record": record, "gc": gc}
    function = FunctionType(add.__code__, space)
    entry = _shim.Entry(_shim.GuardProgram((), 0), code_of("def t(x, y): record.clear(); gc.collect(); return x + y"))
    target = compiled(function, entry, record=record)
    assert [target(1, 2), target(3, 4)] == [3, 7]


def test_removing_entries() -> None:
    target, _ = by_shape("direct")
    for size in (1, 2, 3):
        target(torch.ones(size), 0)
    second = target.record.entries[1]
    assert target.record.remove(second) is True
    assert target.record.remove(second) is False
    assert second not in target.record.entries
    target.record.clear()
    assert target.record.entries == ()


def test_removed_entries_are_freed() -> None:
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    entry = _shim.Entry(_shim.GuardProgram((node(("object", marker)),), 0), code_of("def t(x, y): return 'old'"))
    target = compiled(add, miss=lambda *_: named("new"))
    holder = compiled(add, entry, record=target.record)
    assert holder(1, 2) == "old"
    assert target(1, 2) == "old"
    target.record.clear()
    del marker, entry, holder
    assert target(1, 2) == "new"
    gc.collect()
    assert alive() is None


def test_cycles_are_collected() -> None:
    def make() -> weakref.ref[Any]:
        def inner(x: Any, y: Any) -> Any:
            return target

        target = compiled(inner, named("entry"))
        target.me = target  # type: ignore[attr-defined]
        target.record.data = target
        target(1, 2)
        return weakref.ref(target)

    reference = make()
    gc.collect()
    assert reference() is None


def test_threads_share_one_function() -> None:
    target, _ = by_shape("direct")
    tensors = [torch.ones(size) for size in range(1, 6)]
    wrong: list[Any] = []

    def work() -> None:
        for round_ in range(300):
            tensor = tensors[round_ % 5]
            if target(tensor, tensor) != str(tuple(tensor.shape)):
                wrong.append(tensor.shape)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def leaks(action: Callable[[], object], *watched: object) -> list[int]:
    """How the reference counts of the watched objects change over many runs of the action."""
    for _ in range(5):
        action()
    gc.collect()
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(50):
        action()
    gc.collect()
    after = [sys.getrefcount(item) for item in watched]
    return [count - earlier for count, earlier in zip(after, before, strict=True)]


def test_references_stay_balanced(mode: str) -> None:
    class Box:
        pass

    box, extra, default = Box(), Box(), Box()
    box.value = extra  # type: ignore[attr-defined]

    def function(a: Any, b: Any = default, *rest: Any, c: Any = default, **more: Any) -> Any:
        return None

    tree = node(("arg", 0), ("type", Box), children=(node(("attr", "value"), capture=0),))
    hit = compiled(function, entry_for(function, (tree,), 1))
    none = compiled(function, miss=lambda *_: None)
    rejected = compiled(function, miss=lambda *_: entry_for(function, (node(("arg", 0), ("is", None)),)))
    failing = compiled(function, _shim.Entry(_shim.GuardProgram((), 0), code_of("def t(a, b, c, d, e): 1 / 0")))

    def fail() -> None:
        with pytest.raises(ZeroDivisionError):
            failing(box, extra, extra, k=extra)

    def misfit() -> None:
        with pytest.raises(TypeError):
            hit(box, a=extra)

    watched = (box, extra, default, Box)
    assert leaks(lambda: hit(box, extra, extra, c=extra, k=extra), *watched) == [0, 0, 0, 0]
    assert leaks(lambda: hit(box), *watched) == [0, 0, 0, 0]
    assert leaks(lambda: none(box, k=extra), *watched) == [0, 0, 0, 0]
    assert leaks(fail, *watched) == [0, 0, 0, 0]
    assert leaks(misfit, *watched) == [0, 0, 0, 0]

    def reject() -> None:
        rejected(box)
        rejected.record.clear()

    assert leaks(reject, *watched) == [0, 0, 0, 0]
    program = _shim.GuardProgram((tree,), 1)
    assert leaks(lambda: program.check(hit, (box,)), *watched) == [0, 0, 0, 0]
    assert leaks(lambda: program.explain(hit, (extra,)), *watched) == [0, 0, 0, 0]


def test_deep_recursion_ends_in_an_exception() -> None:
    """Compiled calls take C stack that the interpreter's own limit does not count."""
    space: dict[str, Any] = {}
    code = code_of("def t(x): return 0 if x == 0 else 1 + target(x - 1)")
    target = compiled(FunctionType(code, space), _shim.Entry(_shim.GuardProgram((), 0), code))
    space["target"] = target
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        for state in ("plain", "active"):
            target.record.state = state  # type: ignore[assignment]
            assert target(1000) == 1000
            with pytest.raises(RecursionError):
                target(10**6)
        seen: list[type[BaseException]] = []

        def work() -> None:
            try:
                target(10**6)
            except RecursionError as error:
                seen.append(type(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert seen == [RecursionError]
    finally:
        sys.setrecursionlimit(limit)


def test_code_with_other_parameters_is_refused() -> None:
    entry = _shim.Entry(_shim.GuardProgram((), 0), code_of("def t(x): return x"))
    with pytest.raises(RuntimeError, match="1 parameters instead of 2"):
        compiled(add, entry)(1, 2)
