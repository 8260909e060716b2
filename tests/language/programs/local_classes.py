"""Classes defined where they are used: attributes, inheritance, metaclasses, builtin bases."""

from typing import Any

from programs import calls


class Recorder:
    def __init__(self, log: Any) -> None:
        self.log = log

    def __set_name__(self, owner: Any, name: Any) -> None:
        self.name = name
        self.log.append((owner.__name__, name))

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else (self.name, instance.value)


@calls((1,), ("a",))
def plain(v):
    class Local:
        kind = "local"

        def __init__(self, value):
            self.value = value

        def twice(self):
            return self.value * 2

    made = Local(v)
    return made.twice(), made.kind, Local.__name__, type(made) is Local, isinstance(made, Local), Local.__qualname__


@calls((1,), (2.5,))
def inheritance(v):
    class Base:
        def name(self):
            return "base"

        def who(self):
            return self.name(), v

    class Left(Base):
        def name(self):
            return "left " + super().name()

    class Right(Base):
        def name(self):
            return "right " + super().name()

    class Both(Left, Right):
        def name(self):
            return "both " + super().name()

    return Both().who(), [c.__name__ for c in Both.__mro__], issubclass(Both, Right), isinstance(Both(), Base)


@calls((1,))
def class_statements(v):
    log = []

    class Body:
        x = v
        y = [x, x + 1]
        for i in range(3):
            log.append(i)
        z: int = 5
        if v:
            flag = True

        class Inner:
            q = "inner"

    return log, Body.y, Body.i, Body.flag, Body.Inner.q, Body.__annotations__, Body.__module__, Body.__doc__


@calls((3,))
def set_names(v):
    log = []

    class Holder:
        a = Recorder(log)
        b = Recorder(log)

        def __init__(self, value):
            self.value = value

    return log, Holder(v).a, Holder(v).b, Holder.a is Holder.__dict__["a"]


@calls((2,))
def subclass_hooks(v):
    seen = []

    class Base:
        def __init_subclass__(cls, /, tag=None, **rest):
            super().__init_subclass__(**rest)
            seen.append((cls.__name__, tag))
            cls.tag = tag

    class First(Base, tag=v):
        pass

    class Second(First):
        pass

    try:

        class Third(Base, unknown=1):
            pass
    except TypeError as error:
        seen.append(str(error))
    return seen, First.tag, Second.tag


@calls((4,))
def metaclasses(v):
    class Meta(type):
        def __new__(mcls, name, bases, namespace, **kw):
            namespace["made_by"] = (mcls.__name__, kw.get("extra"))
            return super().__new__(mcls, name, bases, namespace)

        def __init__(cls, name, bases, namespace, **kw):
            super().__init__(name, bases, namespace)
            cls.initialised = True

        def __call__(cls, *args):
            return ("called", super().__call__(*args))

        @property
        def shout(cls):
            return cls.__name__.upper()

    class Made(metaclass=Meta, extra=v):
        def __init__(self, x):
            self.x = x

    called, made = Made(v)
    return called, made.x, Made.made_by, Made.initialised, Made.shout, type(Made).__name__, type(Made) is Meta


@calls((1,))
def class_errors(v):
    caught = []
    try:

        class A:
            pass

        class B(A):
            pass

        class C(A, B):
            pass
    except TypeError as error:
        caught.append(str(error))
    try:

        class D(bool):
            pass
    except TypeError as error:
        caught.append(str(error))
    try:
        A(v)
    except TypeError as error:
        caught.append(str(error))
    try:
        A().missing
    except AttributeError as error:
        caught.append((str(error), error.name))
    try:
        A.missing
    except AttributeError as error:
        caught.append((str(error), error.name, error.obj is A))
    return caught


@calls((5,))
def slots(v):
    class Narrow:
        __slots__ = ("a", "__b")

        def __init__(self, a):
            self.a = a
            self.__b = a + 1

        def b(self):
            return self.__b

    made, caught = Narrow(v), []
    for name in ("c", "__dict__"):
        try:
            setattr(made, name, 1)
        except AttributeError as error:
            caught.append(type(error).__name__)
    del made.a
    return made.b(), hasattr(made, "a"), hasattr(made, "__dict__"), caught


@calls((1,), (7,))
def properties(v):
    class Boxed:
        def __init__(self):
            self._x = v

        @property
        def x(self):
            "the x"
            return self._x

        @x.setter
        def x(self, value):
            self._x = value * 10

        @x.deleter
        def x(self):
            self._x = None

        @property
        def fixed(self):
            return 1

        @classmethod
        def of(cls):
            return cls.__name__

        @staticmethod
        def add(a, b):
            return a + b

    b, caught = Boxed(), []
    b.x = v
    before = b.x
    del b.x
    try:
        b.fixed = 3
    except AttributeError as error:
        caught.append(str(error))
    try:
        del b.fixed
    except AttributeError as error:
        caught.append(str(error))
    return before, b.x, Boxed.x.__doc__, b.of(), Boxed.of(), b.add(1, v), caught


@calls((2,))
def operators(v):
    class Number:
        def __init__(self, n):
            self.n = n

        def __add__(self, other):
            return Number(self.n + getattr(other, "n", other))

        __radd__ = __add__

        def __eq__(self, other):
            return isinstance(other, Number) and self.n == other.n

        def __hash__(self):
            return hash(self.n)

        def __lt__(self, other):
            return self.n < other.n

        def __repr__(self):
            return f"N({self.n})"

        def __bool__(self):
            return self.n > 2

        def __len__(self):
            return self.n

        def __contains__(self, item):
            return item == self.n

        def __getitem__(self, k):
            if k >= self.n:
                raise IndexError(k)
            return k * 10

        def __call__(self, *a, **kw):
            return a, kw

    a, b = Number(v), Number(v + 1)
    table = {a: "a", b: "b", Number(v): "again"}
    return (
        repr(a + b), repr(sum([a, b])), a == Number(v), a != b, a < b, sorted([b, a])[0] is a, bool(a), bool(b), len(a),
        v in a, list(b), a(1, k=2), table[Number(v)], len(table), Number(v) in {a}, f"{a!r}", [a, b].index(Number(v + 1)),
    )  # fmt: skip


@calls((3,), ("abc",))
def builtin_bases(v):
    class Items(list):
        def first(self):
            return self[0]

        def append(self, item):
            super().append(item)
            super().append(item)

    class Table(dict):
        def __missing__(self, key):
            return ("missing", key)

    class Whole(int):
        def __add__(self, other):
            return ("added", int(self), other)

    class Word(str):
        extra = 1

    class Group(set):
        pass

    items = Items([v])
    items.append(4)
    table = Table(a=1)
    table["b"] = v
    word, group = Word("w"), Group([1, 2, v])
    return (
        items, items.first(), len(items), items == [v, 4, 4], items + [1], table["a"], table["zz"], table, dict(table), Whole(5) + v,
        Whole(5) * 2, Whole(7) == 7, word + "x", word.upper(), word == "w", {word: 1}["w"], 1 in group, len(group | {9}),
        isinstance(items, list), type(items[1:]).__name__, sorted(Items([3, 1, 2])), items,
    )[:-1]  # fmt: skip


@calls((1,))
def abstract(v):
    import abc

    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

        def double(self):
            return self.area() * 2

    class Square(Shape):
        def area(self):
            return v * v

    caught = None
    try:
        Shape()
    except TypeError as error:
        caught = str(error)
    return Square().double(), caught, isinstance(Square(), Shape)


@calls((1,))
def returned_class(v):
    class Escaping:
        value = v

        def get(self):
            return self.value

    return Escaping().get(), Escaping.__name__, Escaping
