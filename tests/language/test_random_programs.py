"""Random programs do the same compiled as plain.

``FUSEE_TEST_PROGRAMS`` sets how many are made (25 without it), ``FUSEE_TEST_SEED`` which ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from checks import check
from generate import Writer
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from variants import parsed

COUNT = int(os.environ.get("FUSEE_TEST_PROGRAMS", "25"))
SEED = int(os.environ.get("FUSEE_TEST_SEED", "0"))


@st.composite
def texts(draw: Callable[[Any], Any]) -> str:
    """The text of a program; every choice can be shrunk."""
    return Writer(lambda items: draw(st.sampled_from(items))).program()


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@seed(SEED)
@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(texts())
def test_random_program(text: str) -> None:
    try:
        program = next(parsed(text, "<random program>"))
    except SyntaxError:
        return  # some combinations are no Python
    check(program)
