"""Records what CPython's operators give on constants, for the Go test of constant folding.

Usage: python tests/language/record_folds.py symbolic/testdata/folds.marshal
"""

from __future__ import annotations

import marshal
import operator
import sys
from pathlib import Path
from typing import Any

INTS = [
    0,
    1,
    -1,
    2,
    -3,
    7,
    255,
    256,
    257,
    2**31,
    -(2**53),
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**70),
    10**30,
]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e308, 5e-324, 2.0**53, float("inf"), float("-inf"), float("nan")]
OTHERS = [True, False, None, "", "a", "ab", "é", "\U0001f600", b"", b"a", 1j, ...]
BINARY = "add sub mul floordiv mod truediv lt le eq ne gt ge".split()
UNARY = "neg pos invert truth".split()


def outcome(function: str, *operands: Any) -> tuple[str, Any]:
    """The value, or that it raised."""
    try:
        value = getattr(operator, function)(*operands)
    except Exception as error:
        return "raise", type(error).__name__
    return "value", value


def rows() -> list[tuple[Any, ...]]:
    """(function, operands, outcome, value or name of the exception)."""
    values = [*INTS, *FLOATS, *OTHERS]
    table = [(name, (a,), *outcome(name, a)) for name in UNARY for a in values]
    for name in BINARY:
        table += [(name, (a, b), *outcome(name, a, b)) for a in values for b in values if not repeats(name, a, b)]
    return table


def repeats(name: str, a: Any, b: Any) -> bool:
    """Whether an operation would make a text of many gigabytes."""
    pairs = ((a, b), (b, a))
    return name == "mul" and any(isinstance(x, str | bytes) and isinstance(y, int) and y > 300 for x, y in pairs)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(marshal.dumps(rows(), 4))
