"""Random programs do the same compiled as plain; ``random_programs.py`` runs as many as you like.

``FUSEE_TEST_PROGRAMS`` sets how many are made (20 without it), ``FUSEE_TEST_SEED`` which ones.
"""

from __future__ import annotations

import os

import pytest
from grammars import MIX
from random_programs import failure, smaller, text_of

COUNT = int(os.environ.get("FUSEE_TEST_PROGRAMS", "20"))
SEED = int(os.environ.get("FUSEE_TEST_SEED", "0"))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("number", range(COUNT))
def test_random_program(number: int) -> None:
    text = text_of(SEED, number, MIX)
    found = failure(text)
    assert found in (None, "skipped"), f"{found} in\n{smaller(text, found)}"
