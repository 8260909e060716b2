"""Classes: attributes, descriptors, operators, the special methods."""

import dataclasses
import enum
import functools
from collections import namedtuple
from typing import Any, NamedTuple

from programs import calls


class Point:
    kind = "point"

    def __init__(self, x: Any, y: Any = 0) -> None:
        self.x = x
        self.y = y

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Point):
            return Point(self.x + other.x, self.y + other.y)
        return NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Point(other + self.x, self.y)

    def __iadd__(self, other: Any) -> Any:
        self.x += other
        return self

    def __sub__(self, other: Any) -> Any:
        return NotImplemented

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Point):
            return NotImplemented
        return (self.x, self.y) == (other.x, other.y)

    def __lt__(self, other: Any) -> Any:
        return self.x < other.x

    def __repr__(self) -> str:
        return f"Point({self.x!r}, {self.y!r})"

    def __bool__(self) -> bool:
        return self.x != 0

    def __len__(self) -> int:
        return 2

    def __getitem__(self, key: Any) -> Any:
        return (self.x, self.y)[key]

    def __contains__(self, item: Any) -> bool:
        return item == self.x or item == self.y

    def __neg__(self) -> Any:
        return Point(-self.x, -self.y)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.x, args, kwargs

    @property
    def total(self) -> Any:
        return self.x + self.y

    @total.setter
    def total(self, value: Any) -> None:
        self.x, self.y = value, 0

    @total.deleter
    def total(self) -> None:
        self.x = self.y = -1

    @classmethod
    def make(cls, x: Any) -> Any:
        return cls(x, x)

    @staticmethod
    def norm(x: Any, y: Any) -> Any:
        return abs(x) + abs(y)


class Point3(Point):
    kind = "point3"

    def __init__(self, x: Any, y: Any = 0, z: Any = 0) -> None:
        super().__init__(x, y)
        self.z = z

    def __add__(self, other: Any) -> Any:
        base = super().__add__(other)
        if base is NotImplemented:
            return base
        return Point3(base.x, base.y, self.z)

    @property
    def total(self) -> Any:
        return super().total + self.z

    @classmethod
    def make(cls, x: Any) -> Any:
        made = super().make(x)
        made.z = x
        return made


class Typed:
    def __init__(self, default: Any) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return getattr(instance, self.name, self.default)

    def __set__(self, instance: Any, value: Any) -> None:
        if not isinstance(value, int):
            raise TypeError(f"not an int: {value!r}")
        setattr(instance, self.name, value)


class Described:
    width = Typed(3)
    height = Typed(4)


class Dynamic:
    def __init__(self) -> None:
        self.real = 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("no"):
            raise AttributeError(f"no {name}")
        return name.upper()


class Recording:
    def __init__(self) -> None:
        object.__setattr__(self, "log", [])

    def __setattr__(self, name: str, value: Any) -> None:
        self.log.append((name, value))
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self.log.append(("del", name))
        object.__delattr__(self, name)


class Intercepting:
    def __init__(self) -> None:
        self.count = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "magic":
            return 42
        return object.__getattribute__(self, name)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


class Number:
    def __init__(self, v: Any) -> None:
        self.v = v

    def __mul__(self, other: Any) -> Any:
        return Number(self.v * getattr(other, "v", other))

    __rmul__ = __mul__

    def __pow__(self, other: Any) -> Any:
        return Number(self.v**other)

    def __matmul__(self, other: Any) -> Any:
        return ("at", self.v, other)

    def __rsub__(self, other: Any) -> Any:
        return ("rsub", other, self.v)

    def __imatmul__(self, other: Any) -> Any:
        self.v = (self.v, other)
        return self

    def __index__(self) -> int:
        return self.v

    def __int__(self) -> int:
        return self.v

    def __float__(self) -> float:
        return self.v + 0.5

    def __abs__(self) -> Any:
        return "abs"

    def __invert__(self) -> Any:
        return "inverted"

    def __hash__(self) -> int:
        return hash(self.v)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.v == other.v

    def __format__(self, spec: str) -> str:
        return f"<{self.v}:{spec}>"

    def __str__(self) -> str:
        return f"N{self.v}"


class Table:
    def __init__(self) -> None:
        self.items: dict[Any, Any] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value

    def __getitem__(self, key: Any) -> Any:
        return self.items[key]

    def __delitem__(self, key: Any) -> None:
        del self.items[key]

    def __iter__(self) -> Any:
        return iter(self.items)


@functools.total_ordering
class Ordered:
    def __init__(self, n: Any) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordered) and self.n == other.n

    def __lt__(self, other: Any) -> bool:
        return self.n < other.n


@dataclasses.dataclass
class Item:
    name: str
    price: float = 1.0
    tags: list = dataclasses.field(default_factory=list)
    total: float = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.total = self.price * 2


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: int = 2


@dataclasses.dataclass(slots=True)
class SlottedItem:
    a: Any
    b: Any = None


class Color(enum.Enum):
    RED = 1
    GREEN = "g"

    @property
    def lower(self) -> str:
        return self.name.lower()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Permission(enum.Flag):
    R = enum.auto()
    W = enum.auto()


Pair = namedtuple("Pair", "left right", defaults=[9])


class Triple(NamedTuple):
    a: int
    b: int = 2
    c: int = 3

    def total(self) -> int:
        return self.a + self.b + self.c


class Meta(type):
    def __call__(cls, *args: Any) -> Any:
        made = super().__call__(*args)
        made.by_meta = True
        return made

    @property
    def label(cls) -> str:
        return "label of " + cls.__name__


class WithMeta(metaclass=Meta):
    def __init__(self, v: Any) -> None:
        self.v = v


class Left(Point):
    def __init__(self, x: Any) -> None:
        super().__init__(x)
        self.order = [*getattr(self, "order", []), "left"]


class Right(Point):
    def __init__(self, x: Any) -> None:
        super().__init__(x)
        self.order = [*getattr(self, "order", []), "right"]


class Both(Left, Right):
    pass


class Singleton:
    made: Any = None

    def __new__(cls) -> Any:
        if cls.made is None:
            cls.made = super().__new__(cls)
            cls.made.count = 0
        return cls.made

    def __init__(self) -> None:
        self.count += 1


class Cached:
    def __init__(self, n: Any) -> None:
        self.n = n
        self.computed = 0

    @functools.cached_property
    def value(self) -> Any:
        self.computed += 1
        return self.n * 2


class Words(str):
    def shout(self) -> str:
        return self.upper() + "!"


class Stack(list):
    def push(self, v: Any) -> None:
        self.append(v)


class Attributes(dict):
    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __missing__(self, key: Any) -> Any:
        return ("missing", key)


@calls((1, 2), (0, -5), (1.5, 2))
def instances(a, b):
    p = Point(a, b)
    q = Point(y=b, x=a)
    p.extra = [a]
    return p, q, p == q, p != q, p is q, p.kind, type(p).__name__, isinstance(p, Point), p.total


@calls((1, 2), (0, -5))
def operators(a, b):
    p, q = Point(a, b), Point(b)
    r = p + q
    s = 3 + p
    p += 10
    return r, s, p, -p, p < q, bool(Point(0)), len(p), p[0], p[-1], a in p, 99 in q, p(1, k=2)


@calls((1,), ("x",))
def unsupported_operand(a):
    return Point(a) - a


@calls((1,))
def unsupported_addition(a):
    return Point(a) + a


@calls((1,))
def unsupported_comparison(a):
    return Point(a) > [a]


@calls((1,), (2,))
def properties(a):
    p = Point(a, 5)
    before = p.total
    p.total = a * 3
    middle = p.total, p.x
    del p.total
    return before, middle, p.x, p.y


@calls((1,), (2,))
def inheritance(a):
    p = Point3(a, 2, 3)
    q = p + Point(1, 1)
    return p, q, type(q).__name__, q.total, Point3.make(a).z, Point.make(a), Point3.norm(-a, a), Point3.kind


@calls((1,), (7,))
def diamond(a):
    both = Both(a)
    return both.order, [c.__name__ for c in Both.__mro__], issubclass(Both, Point), both.x


@calls((4,), ("no",))
def descriptors(a):
    d = Described()
    first = d.width
    d.width = a
    return first, d.width, d.height, d.__dict__, Described.width.name


@calls((4,))
def missing_attribute(a):
    return Point(a).missing


@calls((4,))
def missing_class_attribute(a):
    return a, Point.missing


@calls((4,))
def attribute_of_int(a):
    return a.missing


@calls((4,))
def attribute_of_none(a):
    a = None
    return a.missing


@calls((4,))
def setting_attribute_of_int(a):
    a.missing = 1


@calls((4,))
def setting_property_without_setter(a):
    p = Point3(a)
    p.total = 4


@calls(("abc",), ("none",))
def dynamic_attributes(name):
    d = Dynamic()
    return d.real, d.other, getattr(d, name), hasattr(d, "nope")


@calls(("nope",))
def dynamic_default(name):
    d = Dynamic()
    return getattr(d, name, "default"), getattr(d, "yes", "default")


@calls((1,), ("a",))
def recorded_attributes(v):
    r = Recording()
    r.a = v
    r.b = [v]
    del r.a
    return r.log, r.b, hasattr(r, "a")


@calls((1,))
def intercepted_attributes(v):
    i = Intercepting()
    i.count += v
    return i.magic, i.count


@calls((1,), ([1, 2],))
def slots(v):
    s = Slotted(v)
    t = hasattr(s, "b")
    s.b = [v, s.a]
    del s.a
    return s, t, s.b, hasattr(s, "a")


@calls((1,))
def slots_without_dict(v):
    s = Slotted(v)
    s.c = 1


@calls((3,), (5,))
def numeric_operators(v):
    n = Number(v)
    m = n
    m @= 2
    return 2 * Number(v), Number(v) * Number(2), Number(v) ** 2, Number(v) @ 1, 10 - Number(v), n.v, abs(n), ~n


@calls((3,), (1,))
def conversions(v):
    n = Number(v)
    return [10, 20, 30, 40, 50][n], int(n), float(n), str(n), f"{n} {n:>5} {n!s}", hash(n) == hash(v), list(range(n))


@calls((3,), (5,))
def instances_as_keys(v):
    d = {Number(v): "a", Number(v + 1): "b"}
    return d[Number(v)], Number(v + 1) in d, Number(v + 2) in d, len({Number(1), Number(1), Number(v)})


@calls(("k",), (1,))
def item_methods(key):
    t = Table()
    t[key] = 1
    t["b"] = 2
    t["b"] += 5
    found = t["b"]
    del t["b"]
    return found, list(t), t.items, key in t


@calls(("k",))
def missing_item(key):
    return Table()[key]


@calls((1, 2), (2, 2))
def total_ordering(a, b):
    p, q = Ordered(a), Ordered(b)
    return p < q, p <= q, p > q, p >= q, p == q, sorted([q, p], key=lambda o: o.n)[0].n, max(p, q, key=lambda o: o.n).n


@calls(("a",), ("b",))
def dataclass_instances(name):
    i = Item(name)
    j = Item(name, 2.5, tags=["t"])
    i.tags.append(name)
    return (
        i,
        j,
        i == j,
        i == Item(name, tags=[name]),
        repr(j),
        i.total,
        dataclasses.asdict(j),
        dataclasses.replace(j, price=3.0) if False else None,
    )


@calls((1,), (3,))
def frozen_dataclass(a):
    f, g = Frozen(a), Frozen(2, 1)
    return f, f < g, f == Frozen(a, 2), hash(f) == hash(Frozen(a)), max(f, g), {f: 1}[Frozen(a)]


@calls((1,))
def writing_frozen_dataclass(a):
    f = Frozen(a)
    f.a = 2


@calls((1,))
def dataclass_with_slots(a):
    s = SlottedItem(a, [a])
    s.b.append(2)
    s.a = 5
    return s, s == SlottedItem(5, [a, 2])


@calls((1,), ("g",))
def enums(v):
    c = Color(v)
    return (
        c,
        c.name,
        c.value,
        c is Color.RED,
        Color["GREEN"],
        c.lower,
        [m.name for m in Color],
        Color.RED == Color.RED,
        len(Color),
    )


@calls((9,))
def unknown_enum_value(v):
    return Color(v)


@calls((1,), (5,))
def int_enums(v):
    x = Level(v)
    return (
        x,
        x + 1,
        x < Level.HIGH,
        x == v,
        Level.LOW | 2,
        [10, 20][Level.LOW],
        isinstance(x, int),
        {Level.LOW: 1}.get(v),
        f"{x}",
    )


@calls((1,))
def flags(v):
    both = Permission.R | Permission.W
    return both.value, Permission.R in both, bool(both & Permission.W), Permission(v), ~Permission.R


@calls((1, 2), ("a", [1]))
def named_tuples(a, b):
    p = Pair(a, b)
    q = Pair(a)
    left, right = p
    return (
        p,
        q,
        p.left,
        p[1],
        left,
        right,
        p == (a, b),
        p._replace(left=0),
        p._asdict(),
        Pair._fields,
        len(p),
        p + (1,),
        Pair._make([b, a]),
    )


@calls((1,), (2,))
def typed_named_tuples(a):
    t = Triple(a, c=a + 1)
    return t, t.total(), t[1:], [*t], isinstance(t, tuple), t._replace(b=0).total(), repr(t)


@calls((1,))
def metaclasses(v):
    w = WithMeta(v)
    return w.by_meta, w.v, WithMeta.label, type(WithMeta).__name__


@calls((1,))
def singletons(v):
    a = Singleton()
    b = Singleton()
    return a is b, a.count, v


@calls((4,), ("x",))
def cached_properties(n):
    c = Cached(n)
    first = c.value
    return first, c.value, c.computed, c.__dict__


@calls(("ab",), ("",))
def text_subclass(s):
    w = Words(s)
    return w, w.shout(), w + "x", len(w), w == s, type(w).__name__


@calls((3,))
def list_subclass(v):
    s = Stack([1])
    s.push(v)
    s += [7]
    return s, len(s), s[-1], list(s), type(s).__name__, s == [1, v, 7]


@calls(("k",), ("z",))
def dict_subclass(key):
    d = Attributes(k=1)
    d.update(b=2)
    return d.k, d["b"], d[key], d.get("none"), hasattr(d, "q"), d


@calls((1,), (2,))
def class_attributes_written(v):
    Point.kind = "changed"
    Point.count = getattr(Point, "count", 0) + v
    p = Point(v)
    p.kind = "own"
    result = p.kind, Point.kind, Point.count, Point3.kind
    del p.kind
    return result, p.kind


@calls((1,))
def methods_as_values(v):
    p = Point(v, 2)
    bound = p.__add__
    function = Point.__add__
    return bound(Point(1)), function(p, Point(2)), bound.__self__ is p, bound.__name__, Point.make


@calls((1,))
def bound_method_result(v):
    p = Point(v, 2)
    return p.norm, p.__add__, p


@calls((3,))
def special_attributes(v):
    p = Point(v)
    return (
        p.__class__,
        p.__dict__,
        vars(p),
        Point.__name__,
        Point.__mro__[0],
        type(p) is Point,
        p.__class__.__name__,
        callable(p),
        callable(v),
    )


@calls((3,), ("s",))
def attribute_builtins(v):
    p = Point(v)
    setattr(p, "q", v)
    delattr(p, "x")
    return p.q, hasattr(p, "x"), getattr(p, "y"), sorted(vars(p)), isinstance(v, (int, str)), issubclass(bool, int)


@calls((3,))
def local_class(v):
    class Local(Point):
        size = v

        def grow(self):
            return self.size + 1

    item = Local(1)
    return item.grow(), Local.size, Local.__name__, item.x


@calls((3,))
def repr_and_str(v):
    p = Point(v, "a")
    return (
        repr(p),
        str(p),
        f"{p}",
        f"{p!r:>20}",
        "%s %r" % (p, p),
        "{} {0.x}".format(p) if False else "{0} {0.x}".format(p),
    )
