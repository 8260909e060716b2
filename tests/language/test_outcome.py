"""What outcomes say of errors' lines."""

from __future__ import annotations

from typing import Any

import pytest
from outcome import lines


def unbound(again: bool) -> Any:
    while again:
        again = False
        value  # type: ignore[has-type,used-before-def]  # noqa: B018, F821
    if again:
        value = 1
        return value


def test_a_variable_without_a_value_is_on_its_own_line_in_code_that_ran_often() -> None:
    first = unbound.__code__.co_firstlineno
    for _ in range(30):
        with pytest.raises(UnboundLocalError) as caught:
            unbound(True)
        assert lines(caught.value, __file__)[-1] == ("unbound", first + 3)
