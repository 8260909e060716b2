"""Programs of classes: descriptors, attribute hooks, operators, slots, dataclasses, enums, metaclasses, inheritance."""

from __future__ import annotations

from generate import Grammar, rows

HEADER = '''
import abc
import collections
import copy
import dataclasses
import enum
import functools
from collections import OrderedDict, UserDict, deque
from typing import Any, NamedTuple

from programs import calls

LOG = []
REGISTRY = {}


class Named(type):
    def __new__(mcls, name, bases, space, **words):
        made = super().__new__(mcls, name, bases, space)
        made.words = words
        REGISTRY.setdefault(name, []).append(sorted(words))
        return made

    def __len__(cls):
        return len(cls.__name__)

    def __getattr__(cls, name):
        if name.startswith("meta"):
            return name
        raise AttributeError(f"class has no {name}")


class Typed:
    def __init__(self, kind, default=None):
        self.kind, self.default = kind, default

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self.default
        return getattr(instance, self.name, self.default)

    def __set__(self, instance, value):
        if not isinstance(value, self.kind):
            raise TypeError(f"{self.name} wants {self.kind.__name__}")
        LOG.append((self.name, value))
        setattr(instance, self.name, value)


class Once:
    """A descriptor without __set__: the instance's own attribute wins."""

    def __init__(self, function):
        self.function = function

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        value = self.function(instance)
        LOG.append(self.name)
        instance.__dict__[self.name] = value
        return value


class Base(metaclass=Named):
    size = Typed(int, 3)
    shared = []
    total = 0

    def __init__(self, value=0, **rest):
        self.value = value
        for name, item in rest.items():
            setattr(self, name, item)

    def __init_subclass__(cls, **words):
        super().__init_subclass__()
        cls.children = words

    @Once
    def doubled(self):
        return self.value * 2

    @functools.cached_property
    def tripled(self):
        LOG.append("tripled")
        return self.value * 3

    @property
    def half(self):
        if self.value % 2:
            raise AttributeError("odd")
        return self.value // 2

    @half.setter
    def half(self, value):
        self.value = value * 2

    @half.deleter
    def half(self):
        LOG.append("deleted")
        del self.value

    @classmethod
    def counted(cls, by=1):
        cls.total += by
        return cls.total

    @staticmethod
    def joined(*args):
        return "".join(map(str, args))

    def step(self, by=1):
        self.value += by
        return self

    def who(self):
        return "base", self.value

    def __repr__(self):
        return f"{type(self).__name__}({self.__dict__})"


class Left(Base, kind="left"):
    def who(self):
        return "left", *super().who()

    def __eq__(self, other):
        return isinstance(other, Left) and self.value == other.value

    def __hash__(self):
        LOG.append("hash")
        return hash(self.value)


class Right(Base):
    __slots__ = ("slot",)

    def who(self):
        return "right", *super().who()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return name, "missing"

    def __setattr__(self, name, value):
        LOG.append(("set", name))
        super().__setattr__(name, value)

    def __delattr__(self, name):
        LOG.append(("del", name))
        super().__delattr__(name)


class Both(Left, Right):
    def who(self):
        return "both", *super().who()

    def __bool__(self):
        return self.value > 1

    def __contains__(self, item):
        return item == self.value

    def __getitem__(self, key):
        if key == 3:
            raise IndexError(key)
        return self.value, key

    def __setitem__(self, key, value):
        self.value = key, value

    def __len__(self):
        return 4

    def __index__(self):
        return 1

    def __format__(self, spec):
        return f"<{spec}>"

    def __call__(self, *args, by=1):
        return self.value, args, by


@functools.total_ordering
class Amount:
    __slots__ = ("n", "unit")

    def __init__(self, n, unit="m"):
        self.n, self.unit = n, unit

    def _other(self, other):
        if isinstance(other, Amount):
            return other.n
        return other if isinstance(other, int) else NotImplemented

    def __add__(self, other):
        found = self._other(other)
        return found if found is NotImplemented else Amount(self.n + found)

    def __radd__(self, other):
        LOG.append("radd")
        return Amount(other + self.n, "r")

    def __mul__(self, other):
        return Amount(self.n * other) if isinstance(other, int) else NotImplemented

    __rmul__ = __mul__

    def __sub__(self, other):
        LOG.append("sub")
        return NotImplemented

    def __rsub__(self, other):
        return "rsub", other

    def __isub__(self, other):
        self.n -= other
        return self

    def __neg__(self):
        return Amount(-self.n)

    def __eq__(self, other):
        found = self._other(other)
        return found if found is NotImplemented else self.n == found

    def __lt__(self, other):
        found = self._other(other)
        return found if found is NotImplemented else self.n < found

    def __hash__(self):
        return hash((self.n, self.unit))

    def __int__(self):
        return self.n

    def __iter__(self):
        return iter((self.n, self.unit))

    def __repr__(self):
        return f"Amount({self.n!r}, {self.unit!r})"


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration(self)
        self.n -= 1
        LOG.append(self.n)
        return self.n

    def __length_hint__(self):
        return 1


@dataclasses.dataclass
class Record:
    n: int
    name: str = "r"
    items: list = dataclasses.field(default_factory=list)
    kind: Any = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self):
        LOG.append(("post", self.n))
        self.items.append(self.n)


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Fixed:
    n: int
    m: int = 2

    def moved(self, by):
        return dataclasses.replace(self, n=self.n + by)


class Place(NamedTuple):
    x: int
    y: int = 0

    @property
    def total(self):
        return self.x + self.y

    def flipped(self):
        return Place(self.y, self.x)


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3
    CRIMSON = 1

    @property
    def pretty(self):
        return self.name.lower()

    @classmethod
    def default(cls):
        return cls.GREEN


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3


class Mode(enum.Flag):
    A = enum.auto()
    B = enum.auto()
    AB = A | B


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        ...

    def twice(self):
        return 2 * self.area()


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side ** 2


class Stack(list):
    def __init__(self, items=(), limit=3):
        super().__init__(items)
        self.limit = limit

    def push(self, item):
        if len(self) >= self.limit:
            raise OverflowError(self.limit)
        self.append(item)
        return self

    def __getitem__(self, key):
        LOG.append(("get", key))
        return super().__getitem__(key)


class Table(dict):
    def __setitem__(self, key, value):
        LOG.append(("put", key))
        super().__setitem__(key, value)

    def __missing__(self, key):
        return "missing", key

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Meters(int):
    def __add__(self, other):
        return Meters(int(self) + other)

    def __repr__(self):
        return f"{int(self)}m"


class Text(str):
    def shout(self):
        return Text(self.upper() + "!")


@functools.singledispatch
def kind_of(value):
    return "other", type(value).__name__


@kind_of.register
def _(value: int):
    return "int", value


@kind_of.register(list)
@kind_of.register(tuple)
def _(value):
    return "sequence", len(value)


@kind_of.register(Base)
def _(value):
    return "base", value.value


@functools.lru_cache(maxsize=None)
def cached(n, m=1):
    LOG.append(("computed", n))
    return n * m


@functools.wraps(cached.__wrapped__)
def wrapped(*args):
    return cached(*args)


def with_class(n):
    class Inner(Base, kind="inner"):
        factor = n

        def who(self):
            return __class__.__name__, self.factor * n, super().who()

    return Inner(n)


class Session:
    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        LOG.append(("enter", self.name))
        return self

    def __exit__(self, *error):
        LOG.append(("exit", self.name, error[0] and error[0].__name__))
        return self.swallow
'''

NUMBERS = rows("""
$v
$v
$n
($i + $i)
($i * $n)
$o.value
$o.value
$o.size
$o.doubled
$o.tripled
$o.half
type($o).total
$o.counted($n)
Base.counted()
len(Both($i))
len(Left)
$w.n
int($w)
$e.value
Level.HIGH
Level($i)
Level.LOW + $i
Record($i).n
Fixed($i).moved($i).m
Place($i).total
Place($i, $n)[1]
Square($i).area()
Square($n).twice()
sum(Countdown($n))
next(Countdown($i), $i)
len(Stack([$i]))
cached($i)
cached($n, m=$i)
Meters($i) + $n
int(Meters($i))
opaque($i)
Table(a=$i).a
getattr($o, $a, $i)
hash(Amount($i))
hash(Fixed($i))
[$i, $i][Both($i)]
with_class($i).factor
functools.reduce(lambda p, q: p + q, Countdown($n), 0)
""")
OBJECTS = rows("""
obj
obj
obj
Base($i)
Left($i)
Right($i)
Both($i)
Both($i, extra=$i)
$o.step()
$o.step($i)
opaque($o)
with_class($i)
copy.copy($o)
type($o)($i)
Base.__new__(Left)
object.__new__(Both)
""")
AMOUNTS = rows("""
amount
amount
Amount($i)
($w + $i)
($i + $w)
($w * $n)
-$w
opaque($w)
min($w, $w)
sum([$w, $w], Amount(0))
copy.copy($w)
""")
ENUMS = rows("""
Color.RED
Color($n)
Color['BLUE']
Color.default()
Level.LOW
opaque(Color.GREEN)
max(Level)
""")
OTHERS = rows("""
$o.who()
$o.who()
Both.who($o)
super(Left, $o).who()
$o.missing
$o.slot
$o._hidden
Base.metaword
Left.children
Base.words
REGISTRY
vars($o)
$o == $o
$o in [$o]
{$o: $i}
Left($i) in {Left($i): 1}
bool(Both($i))
$i in Both($i)
Both($i)[$n]
Both($i)($i, by=$i)
f'{Both($i):>{$n}}'
list(range(5))[Both($i):]
$w == $i
$w < $w
$w >= $i
$w < 'a'
$w - $i
$i - $w
'a' - $w
$w - $w
[*$w]
sorted([$w, $w])
{$w: $i}
list(Countdown($n))
[q for q in Countdown($n) if q]
Record($i, items=[$i])
Record($i) == Record($i)
Record(name='z')
repr(Record($i))
dataclasses.asdict(Record($i))
dataclasses.astuple(Fixed($i))
[f.name for f in dataclasses.fields(Record)]
Fixed($i) < Fixed($i)
{Fixed($i): 1}
Fixed($i, n=1)
Place($i)._asdict()
Place($i).flipped()
Place._fields
$e.name
$e.pretty
$e is Color.CRIMSON
list(Color)
Color(7)
repr($e)
Mode.A | Mode.B
Mode.AB & Mode.A
Mode.A in Mode.AB
isinstance($e, int)
Shape()
isinstance(Square($i), Shape)
issubclass(Both, Right)
Both.__mro__
type($o).__name__
Stack([$i]).push($i)
Stack([$i])[0]
[*Stack([$i, $i])]
Table({1: $i})[$n]
Table(a=$i).b
dict(Table(a=$i))
Meters($i)
Meters($i) * $n
Text('ab').shout()
Text('ab') + 'c'
kind_of($x)
kind_of($o)
kind_of([$i])
wrapped($i)
wrapped.__name__
cached.cache_info()[:2]
with_class($i).who()
with_class($i)
hasattr($o, $a)
getattr($o, $a)
getattr(Base, $a, None)
isinstance($x, (Base, Amount))
opaque($x)
($x, $x)
$o
$o
$w
Base.joined($i, $i)
$o.joined($i)
$o.step
Both.counted
type($x)
$o.__class__
$o.__dict__
callable($o)
None
Base.__dict__['half']
Left.__hash__
object.__repr__($n)
""")
SIMPLE = [
    *rows("""
$t = $i
$t = $o
$t = $x
$t = $x
obj = $o
obj = $o
amount = $w
obj.value = $i
obj.size = $i
obj.size = 'a'
obj.half = $i
del obj.half
del obj.value
obj.doubled = $i
del obj.doubled
obj.slot = $i
del obj.slot
obj.new = $x
del obj.new
obj.value += $i
obj.size += $i
amount += $i
amount -= $i
amount *= $n
Base.total += $i
Base.shared.append($i)
obj.shared.append($i)
setattr(obj, $a, $i)
delattr(obj, $a)
vars(obj)['value'] = $i
obj.__dict__.update(value=$i)
obj.__class__ = Left
type(obj).added = $i
Left.who = lambda self: 'patched'
record.n = $i
record.items.append($i)
Fixed($i).n = $i
LOG.append($x)
LOG.append($x)
$t = cached.cache_clear()
observe($x, LOG, obj)
observe(vars(obj), amount)
opaque($i)
print($x)
print(amount, end=' ')
return $x
raise ValueError($x)
assert $c, $i
table[$i] = $i
table.key = $i
del table[$i]
stack.push($i)
stack.append($i)
stack[0] = $i
both = Both($i)
both[$n] = $i
$t = both = $x
x, y = $w
x, *y = Stack([$i, $i])
x, y = Place($i)
$t = iter(Countdown($n))
"""),
    "class Late(Left):\n    def who(self):\n        return super().who(), a\nobj = Late($i)",
    "class Local:\n    n = $i\n    m = n + a\n    items = [n for n in range(m % 3)]\n$t = Local.m, Local.items",
    "for q in Countdown($n): LOG.append(q)",
    "@dataclasses.dataclass\nclass Made:\n    n: int = $n\n$t = Made($i)",
]
BLOCKS = [
    "if $c:$Belse:$B",
    "for $t in Countdown($n):$L",
    "for $t in Stack([$i, $i]):$L",
    "for $t in Color:$L",
    "with Session($i):$B",
    "with Session($i, swallow=True) as $t:$B",
    "try:$Bexcept AttributeError as error:$Eelse:$B",
    "try:$Bexcept (TypeError, ValueError) as error:$Efinally:$B",
    "try:$Bexcept Exception as error:$E",
    "def method(self, p=$i):$F\nBase.method = method\n$t = obj.method()",
    "class Local(Left):\n    def __init__(self, value):\n        super().__init__(value)\n        self.more = a\n    @property\n    def half(self):$Fobj = Local($i)\n$t = obj.half",
    "class Proxy:\n    def __init__(self, inner):\n        self.inner = inner\n    def __getattr__(self, p):\n        self = self.inner$Fobj = Proxy($o)\n$t = obj.anything",
    "class Operator:\n    def __add__(self, p):$F    __radd__ = __add__\n$t = Operator() + $i, $i + Operator()",
    "match $x:\n  case Base(value=q) if q > $n:$C  case Place(x, y):$C  case Color.RED | Level.HIGH:$C  case Record(n=q, items=[*_]):$C  case Fixed(0, q):$C  case _:$C",
]
EXTRA = {
    "B": [],
    "C": [],
    "L": ["if $c: break", "if $c: continue", "pass"],
    "F": ["return $x", "LOG.append(vars(self))", "return type(self).__name__", "return self"],
    "E": [
        "LOG.append(error.args)",
        "raise",
        "raise RuntimeError($i) from error",
        "LOG.append(str(error))",
        "$t = error",
    ],
}

GRAMMAR = Grammar(
    header=HEADER,
    parameters="a, b, obj, amount",
    pools=[
        ["1", "2", "3", "0", "-1", "6"],
        ["2", "0", "3", "1", "8"],
        ["Base(1)", "Left(2)", "Right(3)", "Both(4)", "Both(1, size=5)", "Base(a=2)"],
        ["Amount(1)", "Amount(2, 'k')", "Amount(-1)"],
    ],
    start="x, y, z = None, 5, 'z'\nrecord, table, stack = Record(a), Table(k=b), Stack([a, b])",
    result="a, b, x, y, z, obj, amount, record, table, stack, Base.total, Base.shared",
    expressions={
        "i": NUMBERS,
        "o": OBJECTS,
        "w": AMOUNTS,
        "e": ENUMS,
        "r": OTHERS,
        "m": ["a", "b", "x", "y", "z", "record", "table", "stack"],
        "c": ["$i < $i", "$w == $w", "$o", "isinstance($x, Base)", "$o == $o", "$e is Color.RED", "hasattr($o, $a)"],
    },
    short={"i": "$v", "o": "obj", "w": "amount", "e": "Color.RED", "r": "None", "m": "x", "c": "$v > 1"},
    words={
        "n": ["0", "1", "2", "3"],
        "v": ["a", "b"],
        "t": ["x", "y", "z", "a"],
        "a": ["'value'", "'size'", "'half'", "'tripled'", "'other'", "'_x'"],
    },
    anything=["i", "o", "o", "w", "e", "r", "r", "r", "m"],
    simple=SIMPLE,
    blocks=BLOCKS,
    extra=EXTRA,
    options=["", "", "dynamic=True", "dynamic=False"],
)
