"""Every program does the same compiled as plain, also with a graph break in the place of any of its expressions."""

from __future__ import annotations

import copy
import os
import random
import sys
import traceback
from types import FrameType

import pytest
from checks import check
from variants import corpus

import fusee

NAMES = list(corpus())
# How many places of each program get a break; all of them where FUSEE_TEST_ALL_BREAKS is set.
SAMPLE = 2

# Programs over the standard library that no break needs, apart from exceptions that leave them.
BREAK = ("itertools_tee_returned", "itertools_bad_step", "set_walked")
WHOLE = [name for name in NAMES if name.startswith("library.") and not name.endswith(BREAK)]


@pytest.mark.parametrize("name", WHOLE)
def test_captured_whole(name: str) -> None:
    program = corpus()[name]
    for arguments in program.calls:
        fusee.reset()
        function = fusee.compile(program.namespace()[program.name], fullgraph=True)
        try:
            function(*copy.deepcopy(arguments))
        except fusee.Unsupported as error:
            assert "an exception leaves the function" in str(error)
        except Exception:
            pass  # the program's own, which test_compiled_does_as_plain compares


@pytest.mark.parametrize("name", NAMES)
def test_compiled_does_as_plain(name: str) -> None:
    check(corpus()[name])


@pytest.mark.parametrize("name", [name for name in NAMES if not corpus()[name].words.get("whole")])
def test_break_in_an_expression(name: str) -> None:
    program = corpus()[name]
    places = program.expressions
    if not os.environ.get("FUSEE_TEST_ALL_BREAKS"):
        places = random.Random(name).sample(places, min(SAMPLE, len(places)))
    for place in places:
        check(program, place)


def look(frame: FrameType | None) -> None:
    """Read the variables of a frame and its callers, as debuggers and reports of failures do."""
    for _ in range(6):
        if frame is not None:
            frame.f_locals  # noqa: B018 - reading it is what is tested
            frame = frame.f_back


@pytest.mark.parametrize("name", NAMES[::6])
def test_variables_of_frames_can_be_read_at_any_time(name: str) -> None:
    program = corpus()[name]
    fusee.reset()
    function = fusee.compile(program.namespace()[program.name])
    for arguments in [*program.calls, *program.calls]:
        sys.setprofile(lambda frame, event, argument: look(frame))
        try:
            function(*copy.deepcopy(arguments))
        except Exception as error:
            for frame, _ in traceback.walk_tb(error.__traceback__):
                look(frame)
        finally:
            sys.setprofile(None)
