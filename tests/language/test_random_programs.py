"""Random programs do the same compiled as plain; ``random_programs.py`` runs as many as you like.

``FUSEE_TEST_PROGRAMS`` sets how many are made (20 without it), ``FUSEE_TEST_SEED`` which ones.
"""

from __future__ import annotations

import os

import pytest
from grammars import MIX
from outcome import comparable
from random_programs import failure, smaller, text_of

COUNT = int(os.environ.get("FUSEE_TEST_PROGRAMS", "20"))
SEED = int(os.environ.get("FUSEE_TEST_SEED", "0"))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("number", range(COUNT))
def test_random_program(number: int) -> None:
    text = text_of(SEED, number, MIX)
    found = failure(text)
    assert found in (None, "skipped"), f"{found} in\n{smaller(text, found)}"


def test_only_the_frames_of_an_error_are_left_out() -> None:
    error = "no dimension\nException raised from f at g.cpp:12 (most recent call first):"
    stack = (
        error + "\nframe #0: c10::Error + 0x98 (0x7f0011223344 in libc10.so)\n<omitting python frames>\nframe #1: main"
    )
    assert comparable(stack) == error
    assert comparable(stack + "\nbehind") == error + "\nbehind"
    assert comparable(repr(repr(stack + "\nbehind"))) == repr(repr(error + "\nbehind"))
    assert comparable("frame #0: of a picture") == "frame #0: of a picture"
