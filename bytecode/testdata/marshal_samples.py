"""Exchange marshalled objects with the Go tests.

"write": print samples, one a line: marshal version, bytes, repr, separated by tabs.
"read": for each line of bytes on standard input, print the repr of the object.
Bytes and reprs are in hexadecimal.
"""

import marshal
import random
import sys
from collections.abc import Callable
from typing import Any

FIXED: list[Any] = [
    None, True, False, Ellipsis, StopIteration, 0, 1, -1, 255, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1,
    2**63, -(2**63), -(2**63) - 1, 2**64, 10**100, -(10**300), 2**15, 2**30, 2**45 - 1, 0.0, -0.0, 1.0, 1.5, 1e16,
    1e15, 1e-4, 1e-5, 123456789012345680.0, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"),
    1j, -1j, 1 + 2j, complex(-0.0, 1), complex(0.0, -0.0), complex(float("nan"), float("inf")), complex(1e20, 1e-7),
    "", "a", "it's", 'say "hi"', "both ' and \"", "\\ \t\n\r\x00\x1f\x7f", "é", "\xa0\xad", "日本", "😀", "\u2028",
    "\ud800", "a\udfff", "\U0010ffff", "x" * 255, "x" * 256, "é" * 300, b"", b"abc", b"\x00\xff'", b'"\'', (), (1,),
    (1, 2), tuple(range(256)), [], [1, [2, [3]]], {}, {1: 2, "a": None}, {(1, 2): {3: [4]}}, set(), {1}, frozenset(),
    frozenset({1, 2, 3}), ((), ((),), [()]), frozenset(range(0, 1000, 7)),
    frozenset({10**20, 0.5, -7, 2**61, True, 1 / 3, -1.25e300}), frozenset({(1, 2), (1.5, "x"), ()}),
    frozenset(f"name{i}" for i in range(40)), frozenset({"", "é", "日本", "😀", b"", b"bytes of more than eight"}),
    frozenset({1j, 2 + 3j, float("inf"), float("-inf"), -1, -2}),
]  # fmt: skip


def sample(generator: random.Random, depth: int) -> Any:
    """A random object that marshal can write."""
    leaves: list[Callable[[], Any]] = [
        lambda: generator.randint(-(2**80), 2**80) >> generator.randrange(81),
        lambda: generator.uniform(-1, 1) * 10 ** generator.randint(-30, 30),
        lambda: "".join(chr(generator.choice([65, 0xE9, 0x3B1, 0x1F600])) for _ in range(generator.randrange(6))),
        lambda: generator.randbytes(generator.randrange(9)),
        lambda: generator.choice([None, True, False, Ellipsis]),
    ]
    if depth == 0 or generator.random() < 0.3:
        return generator.choice(leaves)()
    items = [sample(generator, depth - 1) for _ in range(generator.randrange(5))]
    kind = generator.randrange(4)
    if kind == 0:
        return items
    if kind == 1:
        return tuple(items)
    if kind == 2:
        return {leaves[0](): item for item in items}
    return frozenset(leaves[0]() for _ in items)


def text(data: bytes) -> str:
    """The repr of a marshalled object, in hexadecimal UTF-8."""
    return repr(marshal.loads(data)).encode("utf-8", "surrogatepass").hex()


def write() -> None:
    """Print the fixed samples and random ones, in every marshal version."""
    generator = random.Random(20260731)
    objects = FIXED + [sample(generator, 4) for _ in range(500)]
    for item in objects:
        for version in range(5):
            data = marshal.dumps(item, version)
            print(version, data.hex(), text(data), sep="\t")


def read() -> None:
    """Print the repr of each object on standard input."""
    for line in sys.stdin:
        print(text(bytes.fromhex(line)))


sys.setrecursionlimit(5000)
{"write": write, "read": read}[sys.argv[1]]()
