"""Programs of plain Python: expressions, containers, control flow, functions, generators and small classes."""

from __future__ import annotations

from generate import Grammar, rows

HEADER = """
import contextlib
import copy
import functools
import itertools
import math
import operator
import sys
import warnings
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

from programs import calls

LOG = []
SHARED = {"n": 0}
TOTAL = 0
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


def scaled(v, *, by=2, **rest):
    "Doubles by default."
    return v * by, rest


def remember(v, seen=[]):
    seen.append(v)
    return len(seen)


def counter(start):
    count = start

    def step(by=1):
        nonlocal count
        count += by
        return count

    return step


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        LOG.append((function.__name__, args))
        try:
            return function(*args, **kwargs)
        finally:
            LOG.append("left")

    return wrapper


@logged
def halved(v):
    return 10 // v


def factorial(v):
    return 1 if v <= 1 else v * factorial(v - 1)


def guarded(v):
    for i in range(3):
        try:
            if i == v:
                continue
            if v > 2:
                return "early", i
            LOG.append(i)
        except ValueError:
            break
        finally:
            LOG.append(-i)
            if v == 0:
                break
    else:
        return "whole"
    return "broken"


def managed(v):
    with swallow(KeyError) as noted, swallow(ValueError):
        noted.append(v)
        return checked(v)
    return noted


@contextlib.contextmanager
def swallow(*kinds):
    noted = []
    try:
        yield noted
    except kinds as error:
        LOG.append(repr(error))
    finally:
        LOG.append("swallowed")


def echo(v):
    try:
        while True:
            try:
                v = yield v
            except KeyError as error:
                v = ("caught", error.args)
    except GeneratorExit:
        LOG.append("closed")
        raise
    finally:
        LOG.append("finally")


def bump(v):
    global TOTAL
    TOTAL += v
    return TOTAL


class Missing(dict):
    def __missing__(self, key):
        LOG.append(key)
        self[key] = key
        return key


class Problem(Exception):
    def __init__(self, code, detail=None):
        super().__init__(code)
        self.code, self.detail = code, detail
"""

NUMBERS = rows("""
$n
$v
$v
$v
($i + $i)
($i - $i)
($i * $n)
($i // $n)
($i % $n)
len($l)
sum($l)
max($i, $i)
abs($i)
-$i
($i if $c else $i)
deep($i)
checked($i)
(w := $i)
$o.value
$o.double
(lambda q, r=$i: q + r)($i)
$l[$i]
$d.get($i, $i)
int($c)
next(numbers($i), 7)
functools.reduce(lambda p, q: p + q, $l, 0)
$l.count($i)
SHARED['n']
($i ** 2)
($i & $i)
($i << 1)
round($i / 2)
hash($i)
len($o)
min($l, default=$i)
sum(1 for q in $l if q)
ord($s[0])
opaque($i)
opaque($i)
remember($i)
bump($i)
TOTAL
halved($i)
factorial($n)
counter($i)($i)
($i ^ $i | $i)
~$i
$i // 2 * 2 + $i % 2
divmod($i, $n)[0]
pow($i, 2, 7)
math.floor($i / 2)
math.gcd($i, $i)
operator.add($i, $i)
operator.itemgetter($n)($l)
$l.index($i)
max($l, key=lambda q: -q)
int(str($i))
$i.bit_length()
sum(itertools.chain($l, $l))
len({*$l})
len(sys.exc_info())
getattr($o, 'value', $i)
$s.find($s)
sum(map(operator.mul, $l, $l))
$d[$i]
Missing($d)[$i]
next((q for q in $l if q > $n), $i)
($i - 2 ** 62)
[*range($i)][-1]
(lambda *q, **r: len(q) + len(r))(*$l, **{'u': $i})
""")
LISTS = rows("""
[$i, $i]
[]
items
items
items
list(range($n))
sorted($l)
$l[1:]
$l[::-1]
($l + $l)
[q * 2 for q in $l]
[q for q in $l if q > $n]
list(numbers($n))
[*$l, $i]
list($d)
list(map(lambda q: q + $i, $l))
sorted($l, key=lambda q: -q)
list(itertools.islice($l, 2))
[q for q, _ in zip($l, $l)]
list(reversed($l))
[opaque(q) for q in $l]
opaque($l)
list($d.values())
[i for i, q in enumerate($l)]
list(dict.fromkeys($l))
[q + r for q in $l for r in $l[:2]]
[(lambda: q)() for q in $l]
[f() for f in [lambda: q for q in $l]]
list(filter(None, $l))
list(itertools.accumulate($l))
list(itertools.chain.from_iterable([$l, $l]))
[len(list(g)) for k, g in itertools.groupby($l)]
list(itertools.takewhile(lambda q: q < $n, $l))
$l[:] * $n
copy.copy($l)
copy.deepcopy($l)
$l.copy()
[q for q in $l if q not in $d]
list(itertools.starmap(operator.add, zip($l, $l)))
[sum(p) for p in itertools.product($l[:2], repeat=2)]
[p - q for p, q in itertools.pairwise($l)]
[*map(remember, $l)]
sorted($l, reverse=True)[$n:]
[i for i in range($n) for j in range(i)]
list(range($i, $i, -1))
[*{q % 3 for q in $l}]
[h() for h in [counter($i)] * 2]
""")
DICTS = rows("""
table
table
table
{'k': $i, 1: $i}
{q: q + 1 for q in $l}
dict(zip($l, $l))
opaque($d)
($d | $d)
{**$d, 'm': $i}
OrderedDict($d)
dict($d, r=$i)
dict(enumerate($l))
{q: w for q, w in $d.items() if q != $i}
$d.copy()
dict.fromkeys($l, $i)
dict(sorted($d.items(), key=str))
defaultdict(int, $d)
Missing($d)
dict(Counter($l))
""")
CONDITIONS = rows("""
$i < $i
$i == $i
$l
not $i
($c and $c)
($c or $i)
$i in $l
$i in $d
$l == $l
x is None
isinstance($x, int)
$i < $i < $i
$o == $o
opaque($c)
any(q > $n for q in $l)
$s < $s
all($l)
$l < $l
$d == $d
$i not in $d
$s in $s
$s.startswith($s)
callable($x)
hasattr($x, 'value')
isinstance($x, (list, str))
issubclass(type($x), Box)
bool($d)
type($x) is type($x)
$x is $x
$l is items
{*$l} <= {*$l}
$i != $i != $i
$d.keys() >= {$i}
math.isclose($i, $i)
""")
OBJECTS = rows("""
box
box
box
Box($i)
Sub($i)
Box.make($i)
($o + $i)
opaque($o)
copy.copy($o)
Box(*$l[:1], $i)
max($o, $o)
""")
TEXTS = rows("""
'ab'
str($i)
f'{$v}'
f'{items}-{$v:>3}'
($s + $s)
$s.upper()
'%s' % ($i,)
repr($x)
','.join(str(q) for q in $l)
$s[::-1]
opaque($s)
$s.replace('a', $s)
'{}:{k!r:>4}'.format($i, k=$s)
f'{$i!r:0>{3}}'
f'{$i / 4:.2f}'
$s.split('a')[0]
$s.join(map(str, $l))
($s * $n)
$s.title().center(7, '*')
str(type($x).__name__)
'%d-%5.1f' % ($i, $i)
chr(97 + $n)
str($x)
$s.partition('b')[2]
scaled.__doc__
halved.__name__
str($d)
bytes($s, 'utf8').hex()
format($i, '#x')
""")
OTHERS = rows("""
($i, $s)
{$i, $i}
None
Pair($i, $i)
keywords($i, c=$i, k=$s)
keywords(*$l)
$o($i, k=$i)
Counter($s)
frozenset($l)
(i for i in $l)
$o + $s
deque($l, 2)
tuple($l)
list(chained($n))
$l, $d
scaled($i, k=$s)
scaled($i, by=$i)
functools.partial(keywords, $i)($i)
guarded($n)
managed($i)
Problem($i)
$i / $n
$i / 3
complex($i, $n)
1.5 * $i
round($i / 7, 2)
divmod($i, $n)
$d.items() & $d.items()
set($l) | {$i}
$l, *$l
range($i)
slice($i, None)
Pair($i, $s)._replace(left=$i)
$d.keys()
bytes(range($n))
Ellipsis
NotImplemented
[$x, $x]
{$i: $x}
($x, $x)
dict(u=$x)
$x if $c else $x
$x and $x
$x or $x
(lambda: $x)()
[*itertools.zip_longest($l, $s)]
int.from_bytes(b'ab', 'big') + $i
operator.attrgetter('value', 'rest')($o)
type($x)
max($s, $s)
iter($l)
echo($i)
zip($l, $s)
float($i)
math.sqrt($i)
2 ** 70 + $i
{*$s}
[$l, $l]
min($x, $x)
$x + $x
$x[$i]
$x == $x
len($x)
""")
SIMPLE = [
    *rows("""
$t = $i
$t = $i
$t = $i
$t += $i
items.append($i)
items.append($i)
table[$i] = $i
table[$i] = $i
LOG.append($x)
LOG.append($x)
$t = $x
$t = $x
box.value = $i
box += $i
items[0] = $i
box.double = $i
items.extend($l)
items.sort()
$t, *y = $l
$t, y = $i, $i
(p, q), r = ($i, $i), $i
del table[$i]
items[1:2] = $l
SHARED['n'] += $i
print($i, $s)
print($x, end='')
$t = items.pop()
table.update($d)
assert $c, $s
raise ValueError($i)
raise Problem($i, detail=$s)
return $x
opaque($i)
observe($x, LOG)
observe(items, table, box, SHARED)
box.extra = $x
$t = box.extra
table.pop($i, None)
items[-1] += $i
z = [q for q in $l if (y := q)]
del items[-1:]
items.insert($n, $i)
items.remove($i)
items.reverse()
table.setdefault($i, $i)
$t = table.popitem()
$t *= $n
$t -= $i
$t //= $n
del $t
del box.extra
setattr(box, $s, $i)
a, b = b, a
$t = y = $x
[$t, *_, y] = $l
items *= 2
items += $l
table |= $d
items.clear()
vars(box)['v'] = $i
$t = sorted($x)
$t = list($x)
$t = {**$d}
$t = next(iter($l))
warnings.warn($s)
raise
raise KeyError($s) from None
$t: int = $i
box.rest += ($i,)
items.sort(key=lambda q: (q % 2, q))
$t = $x, $x
"""),
    "$t = $l\nitems = $t",
    "$t = $o\nbox = $t",
    "for y in $l: LOG.append(y)",
    "print(LOG[-1:])",
    "$t = iter($l)\nLOG.append(next($t, None))\nLOG.append(list($t))",
    "e = echo($i)\nLOG.append(next(e))\nLOG.append(e.send($i))\nLOG.append(e.throw(KeyError($i)))\ne.close()",
    "e = numbers($n)\nnext(e)\n$t = e.send($i)",
    "h = counter($i)\n$t = h() + h($i)\nLOG.append(h)",
    "@logged\ndef local(q=$i):\n    return q + $i\n$t = local()",
    "e = (opaque(q) + $i for q in $l)\n$t = next(e, 0)\nLOG.append(list(e))",
]
BLOCKS = [
    "if $c:$Belse:$B",
    "if $c:$Belif $c:$Belse:$B",
    "for $t in $l:$L",
    "for $t in range($n):$Lelse:$B",
    "try:$Bexcept (KeyError, IndexError):$B",
    "try:$Bexcept Exception as error:$Eelse:$Bfinally:$B",
    "try:$Bfinally:$B",
    "try:$Bexcept ValueError as error:$Eexcept Exception as error:$E",
    "with $o as $t:$B",
    "with Box(1), Box(2) as y:$B",
    "with swallow(ValueError, KeyError) as $t:$B",
    "with contextlib.suppress(KeyError, TypeError):$B",
    "with contextlib.ExitStack() as stack:\n    stack.callback(LOG.append, $i)\n    $t = stack.enter_context(Box($i))$B",
    "for i, q in enumerate($l):$L",
    "for key, value in $d.items():$L",
    "for $t in numbers($n):$L",
    "for i in reversed(range($n)):$L",
    "for q, w in zip($l, $s):$L",
    "k = 0\nwhile k < $n and $c:\n    k += 1$L",
    "k = $n\nwhile k:\n    k -= 1$Lelse:$B",
    "def inner(p, *, q=$i):$F$t = inner($i)",
    "def inner(*p, **q):$F$t = inner($i, k=$i)",
    "def outer(p):\n    q = $i\n    def inner():\n        nonlocal q\n        q += p\n        return q\n    inner()$F$t = outer($i)",
    "def gen(p, q=$i):$G$t = list(gen($i))",
    "def gen(p, q=$i):$Gfor $t in gen($i):$L",
    "def gen(p, q=$i):$Ge = gen($i)\n$t = next(e, None)\nLOG.append(list(e))",
    "match $x:\n  case int(q) if q > $n:$C  case [p, *q]:$C  case Box(value=q):$C  case _:$C",
    "match $d:\n  case {'k': q, **rest}:$C  case {1: q} | {3: q}:$C  case _:$C",
    "match $x:\n  case None | 'ab':$C  case (q, w) | [_, q, w]:$C  case str() as q:$C",
    "try:$Bexcept* ValueError as error:$Bexcept* (KeyError, TypeError):$B",
    "class Local(Box):\n    size = $i\n    def __len__(self):\n        return self.size + a\n    def grown(self):\n        return super().__len__() + len(self)\n$t = Local($i).grown()",
]
EXTRA = {
    "B": [],
    "C": [],
    "L": ["if $c: break", "if $c: continue", "pass"],
    "F": ["return $x", "y = p", "y = q", "LOG.append((p, q))"],
    "G": [
        "yield p",
        "x = yield $i",
        "yield from $l",
        "yield (p, q)",
        "return $i",
        "try: yield q\nfinally: LOG.append('done')",
    ],
    "E": [
        "LOG.append(type(error).__name__)",
        "raise",
        "raise RuntimeError($s) from error",
        "LOG.append(error.args)",
        "raise KeyError(1)",
        "raise error",
        "$t = error",
        "LOG.append(error.__context__)",
        "error.add_note($s)",
    ],
}

GRAMMAR = Grammar(
    header=HEADER,
    parameters="a, b, items, table",
    pools=[
        ["1", "2", "3", "0", "5", "-1", "7", "2 ** 64", "True"],
        ["2", "0", "3", "1", "8", "-4", "2.5"],
        ["[3, 1, 2]", "[]", "[5]", "[1, 1]", "[4, 3, 2, 1, 0]"],
        ["{'k': 1, 1: 2}", "{}", "{3: 'v'}", "{0: 1, 2: 3}"],
    ],
    start="x, y, z = None, 5, 'z'\nbox = Box(a)",
    result="a, b, x, y, z, items, table, box",
    expressions={
        "i": NUMBERS,
        "l": LISTS,
        "d": DICTS,
        "c": CONDITIONS,
        "o": OBJECTS,
        "s": TEXTS,
        "r": OTHERS,
        "m": ["a", "b", "x", "y", "z"],
    },
    short={"i": "$v", "l": "items", "d": "table", "c": "$v > 1", "o": "box", "s": "'t'", "r": "None", "m": "x"},
    words={"n": ["0", "1", "2", "3"], "v": ["a", "b"], "t": ["x", "y", "z", "a"]},
    anything=["i", "i", "l", "d", "c", "o", "s", "r", "r", "m"],
    simple=SIMPLE,
    blocks=BLOCKS,
    extra=EXTRA,
    options=["", "", "dynamic=True", "dynamic=False"],
)
