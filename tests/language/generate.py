"""Makes small random programs over the constructs of the language, as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Choose = Callable[[list[Any]], Any]

HEADER = """
import functools
import itertools
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

from programs import calls

LOG = []
SHARED = {"n": 0}
Pair = namedtuple("Pair", "left right")


class Box:
    count = 0

    def __init__(self, value, *rest):
        self.value = value
        self.rest = rest

    def __add__(self, other):
        if isinstance(other, Box):
            return Box(self.value + other.value)
        if isinstance(other, int):
            return Box(self.value + other)
        return NotImplemented

    def __radd__(self, other):
        return ("radd", other, self.value)

    def __iadd__(self, other):
        self.value += other
        return self

    def __eq__(self, other):
        return isinstance(other, Box) and self.value == other.value

    def __lt__(self, other):
        return self.value < other.value

    def __repr__(self):
        return f"Box({self.value!r})"

    def __len__(self):
        return 2

    def __iter__(self):
        yield self.value
        yield self.rest

    def __getitem__(self, key):
        return (self.value, self.rest)[key]

    def __enter__(self):
        LOG.append("enter")
        return self.value

    def __exit__(self, kind, error, trace):
        LOG.append(kind and kind.__name__)
        return kind is KeyError

    def __call__(self, *args, **kwargs):
        return self.value, args, kwargs

    @property
    def double(self):
        return self.value * 2

    @double.setter
    def double(self, value):
        self.value = value

    @classmethod
    def make(cls, value):
        cls.count += 1
        return cls(value, cls.count)


class Sub(Box):
    def __init__(self, value):
        super().__init__(value, "sub")

    @property
    def double(self):
        return super().double + 1


def numbers(n):
    for i in range(n):
        got = yield i
        LOG.append(got)
    return "end"


def chained(n):
    result = yield from numbers(n)
    yield result


def checked(v):
    if v == 2:
        raise KeyError(v)
    if v == 3:
        raise ValueError("three", v)
    return v


def deep(v):
    try:
        return checked(v) + 1
    except KeyError as error:
        LOG.append(str(error))
        return -1
    finally:
        LOG.append("deep")


def keywords(a, b=2, *args, c=3, **others):
    return a, b, args, c, others
"""

NAMES = ["a", "b", "x", "y", "z"]

NUMBERS = [
    "$n",
    "$v",
    "$v",
    "($i + $i)",
    "($i - $i)",
    "($i * $n)",
    "($i // $n)",
    "($i % $n)",
    "len($l)",
    "sum($l)",
    "max($i, $i)",
    "abs($i)",
    "-$i",
    "($i if $c else $i)",
    "deep($i)",
    "checked($i)",
]
NUMBERS += [
    "(w := $i)",
    "$o.value",
    "$o.double",
    "(lambda q, r=$i: q + r)($i)",
    "$l[$i]",
    "$d.get($i, $i)",
    "int($c)",
    "next(numbers($i), 7)",
    "functools.reduce(lambda p, q: p + q, $l, 0)",
    "$l.count($i)",
]
NUMBERS += [
    "SHARED['n']",
    "($i ** 2)",
    "($i & $i)",
    "($i << 1)",
    "round($i / 2)",
    "hash($i)",
    "len($o)",
    "min($l, default=$i)",
    "sum(1 for q in $l if q)",
    "ord($s[0])",
    "opaque($i)",
    "opaque($i)",
]
LISTS = [
    "[$i, $i]",
    "[]",
    "items",
    "items",
    "list(range($n))",
    "sorted($l)",
    "$l[1:]",
    "$l[::-1]",
    "($l + $l)",
    "[q * 2 for q in $l]",
    "[q for q in $l if q > $n]",
    "list(numbers($n))",
    "[*$l, $i]",
    "list($d)",
    "list(map(lambda q: q + $i, $l))",
]
LISTS += [
    "sorted($l, key=lambda q: -q)",
    "list(itertools.islice($l, 2))",
    "[q for q, _ in zip($l, $l)]",
    "list(reversed($l))",
    "[opaque(q) for q in $l]",
    "opaque($l)",
    "list($d.values())",
    "[i for i, q in enumerate($l)]",
    "list(dict.fromkeys($l))",
]
DICTS = [
    "table",
    "table",
    "{'k': $i, 1: $i}",
    "{q: q + 1 for q in $l}",
    "dict(zip($l, $l))",
    "opaque($d)",
    "($d | $d)",
    "{**$d, 'm': $i}",
    "OrderedDict($d)",
]
CONDITIONS = [
    "$i < $i",
    "$i == $i",
    "$l",
    "not $i",
    "($c and $c)",
    "($c or $i)",
    "$i in $l",
    "$i in $d",
    "$l == $l",
    "x is None",
    "isinstance($x, int)",
    "$i < $i < $i",
    "$o == $o",
    "opaque($c)",
    "any(q > $n for q in $l)",
    "$s < $s",
]
OBJECTS = ["box", "box", "Box($i)", "Sub($i)", "Box.make($i)", "($o + $i)", "opaque($o)"]
TEXTS = [
    "'ab'",
    "str($i)",
    "f'{$v}'",
    "f'{items}-{$v:>3}'",
    "($s + $s)",
    "$s.upper()",
    "'%s' % ($i,)",
    "repr($x)",
    "','.join(str(q) for q in $l)",
    "$s[::-1]",
    "opaque($s)",
]
OTHERS = [
    "($i, $s)",
    "{$i, $i}",
    "None",
    "Pair($i, $i)",
    "keywords($i, c=$i, k=$s)",
    "keywords(*$l)",
    "$o($i, k=$i)",
    "Counter($s)",
    "frozenset($l)",
    "(i for i in $l)",
    "$o + $s",
    "deque($l, 2)",
    "tuple($l)",
    "list(chained($n))",
    "$l, $d",
]

TABLES = {"i": NUMBERS, "l": LISTS, "d": DICTS, "c": CONDITIONS, "o": OBJECTS, "s": TEXTS}
SHORT = {"i": "$v", "l": "items", "d": "table", "c": "$v > 1", "o": "box", "s": "'t'"}

SIMPLE = [
    "$t = $i",
    "$t = $i",
    "$t += $i",
    "items.append($i)",
    "table[$i] = $i",
    "LOG.append($x)",
    "$t = $x",
    "box.value = $i",
    "box += $i",
    "items[0] = $i",
    "box.double = $i",
    "items.extend($l)",
    "items.sort()",
    "$t, *y = $l",
    "$t, y = $i, $i",
]
SIMPLE += [
    "(p, q), r = ($i, $i), $i",
    "del table[$i]",
    "items[1:2] = $l",
    "SHARED['n'] += $i",
    "print($i, $s)",
    "$t = items.pop()",
    "table.update($d)",
    "assert $c, $s",
    "raise ValueError($i)",
    "return $x",
    "opaque($i)",
    "box.extra = $x",
    "$t = box.extra",
    "table.pop($i, None)",
]
SIMPLE += [
    "$t = $l\nitems = $t",
    "$t = $o\nbox = $t",
    "for y in $l: LOG.append(y)",
    "print(LOG[-1:])",
    "items[-1] += $i",
    "z = [q for q in $l if (y := q)]",
    "del items[-1:]",
    "$t = iter($l)\nLOG.append(next($t, None))\nLOG.append(list($t))",
]
BLOCKS = [
    "if $c:$Belse:$B",
    "for $t in $l:$L",
    "for $t in range($n):$Lelse:$B",
    "try:$Bexcept (KeyError, IndexError):$B",
    "try:$Bexcept Exception as error:$Eelse:$Bfinally:$B",
    "try:$Bfinally:$B",
    "with $o as $t:$B",
    "with Box(1), Box(2) as y:$B",
    "for i, q in enumerate($l):$L",
    "for key, value in $d.items():$L",
    "for $t in numbers($n):$L",
    "k = 0\nwhile k < $n and $c:\n    k += 1$L",
    "def inner(p, *, q=$i):$F$t = inner($i)",
    "def gen(p):$G$t = list(gen($i))",
    "match $x:\n  case int(q) if q > $n:$C  case [p, *q]:$C  case Box(value=q):$C  case _:$C",
]


EXTRA = {
    "B": [],
    "C": [],
    "L": ["if $c: break", "if $c: continue", "pass"],
    "F": ["return $x", "y = p + q"],
    "G": ["yield p", "x = yield $i", "yield from $l"],
    "E": [
        "LOG.append(type(error).__name__)",
        "raise",
        "raise RuntimeError($s) from error",
        "LOG.append(error.args)",
        "raise KeyError(1)",
    ],
}
HOLE = re.compile(r"\$([a-zA-Z])")


class Writer:
    """Writes one program; every choice comes from outside."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.budget = 60

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind; ``x`` is any."""
        if kind == "x":
            kind = self.choose(["i", "i", "l", "d", "c", "o", "s", "other", "name"])
        if kind == "name":
            return self.choose(NAMES)
        if kind == "other":
            return self.fill(self.choose(OTHERS), depth - 1)
        self.budget -= 1
        if depth <= 0 or self.budget <= 0:
            return self.fill(SHORT[kind], 0)
        return self.fill(self.choose(TABLES[kind]), depth - 1)

    def fill(self, template: str, depth: int) -> str:
        """A template with its holes filled in."""
        return HOLE.sub(lambda match: self.hole(match[1], depth), template)

    def hole(self, hole: str, depth: int) -> str:
        """What stands for one hole of an expression or a simple statement."""
        match hole:
            case "n":
                return str(self.choose([0, 1, 2, 3]))
            case "v":
                return self.choose(["a", "b"])
            case "t":
                return self.choose(["x", "y", "z", "a"])
        return self.expression(hole, depth)

    def block(self, depth: int, extra: list[str]) -> str:
        """The indented statements of a block; ``extra`` are statements that only this kind of block may hold."""
        lines = [self.statement(depth - 1) for _ in range(self.choose([1, 1, 2]))]
        if extra:
            lines.insert(self.choose([0, 1]), self.fill(self.choose(extra), 1))
        text = "\n".join(lines)
        return "\n" + "\n".join("    " + line for line in text.splitlines()) + "\n"

    def statement(self, depth: int) -> str:
        """A statement."""
        self.budget -= 1
        if depth <= 0 or self.budget <= 0 or self.choose([True, True, False]):
            return self.fill(self.choose(SIMPLE), 2)
        return HOLE.sub(lambda match: self.part(match[1], depth), self.choose(BLOCKS))

    def part(self, hole: str, depth: int) -> str:
        """What stands for one hole of a compound statement."""
        if hole not in EXTRA:
            return self.hole(hole, 2)
        text = self.block(depth, EXTRA[hole])
        return text.replace("\n    ", "\n      ") if hole == "C" else text

    def program(self) -> str:
        """The text of a module with one program."""
        body = "\n".join(self.statement(3) for _ in range(self.choose([2, 3, 4, 5])))
        start = "x, y, z = None, 5, 'z'\nbox = Box(a)\n"
        lines = (start + body + "\nreturn a, b, x, y, z, items, table, box").splitlines()
        sets = "(1, 2, [3, 1, 2], {'k': 1, 1: 2}), (2, 0, [], {}), (3, 3, [5], {3: 'v'})"
        return (
            f"{HEADER}\n\n@calls({sets})\ndef generated(a, b, items, table):\n"
            + "\n".join("    " + line for line in lines)
            + "\n"
        )
