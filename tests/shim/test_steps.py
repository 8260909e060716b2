"""What rewritten code uses: packed state and functions without a closure."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import code_of

from fusee import _shim


def test_pack_makes_a_marked_tuple() -> None:
    state = _shim.pack(1, "a", None)
    assert type(state) is _shim.State
    assert tuple(state) == (1, "a", None)
    assert _shim.is_state(state)
    assert not _shim.is_state((1, "a", None))
    assert not _shim.is_state(None)
    first, *rest = state
    assert (first, rest) == (1, ["a", None])
    assert _shim.pack() == ()
    assert _shim.is_state(_shim.pack())


def test_a_step_runs_in_the_given_globals() -> None:
    step = _shim.make_step(code_of("def t(x): return x + offset"), {"offset": 5})
    assert step(1) == 6
    assert step.__closure__ is None


def test_code_that_needs_a_closure_is_refused() -> None:
    value: Any = 1

    def inner() -> Any:
        return value

    with pytest.raises(ValueError, match="closure"):
        _shim.make_step(inner.__code__, {})
    with pytest.raises(TypeError):
        _shim.make_step(inner.__code__, 5)  # type: ignore[arg-type]


def test_free_variables_may_arrive_as_arguments() -> None:
    """Code keeps a free variable's place without copying it from a closure."""
    code = code_of("def t(x): return x")
    with_free = code.replace(co_freevars=("value",))
    assert _shim.make_step(with_free, {})(3) == 3
