"""Iterators of itertools, and the types of collections, functools and operator."""

import collections
import functools
import inspect
import itertools
import operator
import types
from typing import Any

from programs import calls

SECOND = operator.itemgetter(1)
REAL = operator.attrgetter("real", "imag")


def events(n: int) -> Any:
    for i in range(n):
        yield i


@calls((3,), (0,))
def itertools_finite(n):
    items = list(range(n))
    return (
        list(itertools.chain(items, "ab", (x for x in items))),
        list(itertools.chain.from_iterable([items, "cd"])),
        list(itertools.compress("abcdef", [1, 0, n, 1])),
        list(itertools.dropwhile(lambda v: v < 1, items)),
        list(itertools.takewhile(lambda v: v < 2, items)),
        list(itertools.filterfalse(lambda v: v % 2, items)),
        list(itertools.filterfalse(None, items)),
        list(itertools.starmap(pow, [(2, n), (3, 2)])),
        list(itertools.pairwise(items)),
        list(itertools.zip_longest(items, "ab", fillvalue="-")),
        list(itertools.zip_longest()),
        list(itertools.accumulate(items)),
        list(itertools.accumulate(items, lambda a, b: a * 2 + b, initial=n)),
        list(itertools.repeat(n, 2)),
    )


@calls((3,), (0,))
def itertools_selections(n):
    items = list(range(n))
    return (
        list(itertools.product(items, "ab")),
        list(itertools.product(items, repeat=2)),
        list(itertools.product()),
        list(itertools.permutations(items)),
        list(itertools.permutations(items, 2)),
        list(itertools.permutations(items, 4)),
        list(itertools.combinations("abcd", n)),
        list(itertools.combinations(items, 5)),
        list(itertools.combinations_with_replacement("ab", n)),
        list(itertools.combinations_with_replacement([], 0)),
    )


@calls((2,), (4,))
def itertools_slices(n):
    items = list(range(9))
    it = iter(items)
    taken = list(itertools.islice(it, 1, n + 3, 2))
    return (
        taken,
        list(it),
        list(itertools.islice(items, n)),
        list(itertools.islice(items, n, None)),
        list(itertools.islice(items, 5, 3)),
        list(itertools.islice("abc", None)),
        list(itertools.islice(itertools.count(n, 3), 4)),
        list(itertools.islice(itertools.cycle("xy"), n)),
        list(itertools.islice(itertools.cycle([]), n)),
    )


@calls((3,))
def itertools_returned(n):
    count, repeat, cycle = itertools.count(n), itertools.repeat(n, 3), itertools.cycle(range(n))
    chain, window = itertools.chain([1, n], "ab"), itertools.islice(range(9), 1, 8, 2)
    drop, take = itertools.dropwhile(lambda v: v < 1, range(n)), itertools.takewhile(lambda v: v < 2, range(5))
    total, pairs = itertools.accumulate(range(n)), itertools.pairwise("abcd")
    product, longest = itertools.product("ab", range(n)), itertools.zip_longest("abc", range(n - 1))
    first = [next(it) for it in (count, repeat, cycle, chain, window, drop, take, total, pairs, product, longest)]
    return first, repeat, chain, window, drop, take, total, pairs, product, longest, next(count), next(cycle)


@calls((1,), (5,))
def itertools_cycle_returned(n):
    cycle = itertools.cycle("abc")
    taken = [next(cycle) for _ in range(n)]
    return taken, itertools.islice(cycle, 7)


@calls((3,))
def itertools_not_started(n):
    return itertools.chain(), itertools.accumulate([n], initial=1), itertools.pairwise([n]), itertools.repeat(n, 0)


@calls((["a", "b", "A", "c", "C"],), ([],))
def itertools_groups(items):
    groups = [(key, list(group)) for key, group in itertools.groupby(items, key=str.lower)]
    skipped = [key for key, _ in itertools.groupby(sorted(items, key=str.lower), key=str.lower)]
    return groups, skipped, [(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 1])]


@calls((3,))
def itertools_group_outdated(n):
    groups = itertools.groupby([1, 1, 2, n])
    _, first = next(groups)
    _, second = next(groups)
    return list(first), list(second), list(groups) != []


@calls((4,))
def itertools_tee(n):
    a, b, c = itertools.tee(events(n), 3)
    first = [next(a), next(a), next(b)]
    return first, list(a), list(b), list(c), next(a, "end"), itertools.tee([], 0)


@calls((4,))
def itertools_tee_returned(n):
    a, b = itertools.tee(range(n))
    return next(a), a, b


@calls((0,))
def itertools_bad_step(n):
    return list(itertools.islice([1], 0, 2, n))


@calls((2,))
def itertools_chain_of_number(n):
    return list(itertools.chain([1], n))


@calls(({"a": [1, 2], "b": [3, 4]},), ({},))
def operator_getters(table):
    pair = operator.itemgetter("a", "b")
    return (
        pair(table) if table else None,
        sorted(table.items(), key=operator.itemgetter(0), reverse=True),
        operator.attrgetter("real")(3),
        operator.attrgetter("__class__.__name__", "imag")(3),
        operator.methodcaller("split", "b", maxsplit=1)("abcbd"),
        operator.methodcaller("keys")(table) == table.keys(),
        SECOND("xyz"),
        REAL(2),
    )


@calls((1,))
def operator_getters_returned(n):
    getter, call = operator.itemgetter(n), operator.methodcaller("split", sep="b")
    return getter("xyz"), getter.__class__.__name__, getter([5, 6]), call("abc")


@calls((3,))
def operator_getter_missing(n):
    return operator.itemgetter(n)([1])


@calls((3,), (0,))
def functools_reduce(n):
    return (
        functools.reduce(lambda a, b: (a, b), range(n), None),
        functools.reduce(operator.add, range(n + 1)),
        functools.reduce(lambda a, b: a + [b], "abc", []),
    )


@calls((0,))
def functools_reduce_of_nothing(n):
    return functools.reduce(operator.add, range(n))


@calls((3,), (0,))
def deque_methods(n):
    d = collections.deque([1, 2])
    d.append(n)
    d.extend("ab")
    d.extendleft([7, 8])
    d.appendleft("l")
    d.insert(1, "in")
    d.insert(-1, "near the end")
    popped = d.pop(), d.popleft()
    d[2] = "set"
    del d[0]
    d.rotate(2)
    e = d.copy()
    e.rotate(-n)
    e.reverse()
    e.remove("set")
    return (
        d,
        e,
        popped,
        d[0],
        d[-1],
        len(d),
        "set" in d,
        d.count(2),
        d.index(2),
        d == e,
        d != e,
        bool(d),
        list(reversed(d)),
    )


@calls((3,), (0,))
def deque_limits(n):
    d = collections.deque(range(9), maxlen=n)
    d.append("new")
    d.appendleft("left")
    d += [1, 2]
    return d, d.maxlen, collections.deque().maxlen, list(d), collections.deque("ab") + collections.deque("c"), d.copy()


@calls((1,))
def deque_full(n):
    collections.deque([1], maxlen=n).insert(0, 2)


@calls((1,))
def deque_negative_limit(n):
    return collections.deque([1], -n)


@calls((1,))
def deque_empty_pop(n):
    d = collections.deque([n])
    d.pop()
    d.popleft()


@calls((1,))
def deque_changed_while_walked(n):
    d = collections.deque([n, 2])
    for item in d:
        d.append(item)


@calls((2,))
def deque_iterators_returned(n):
    d = collections.deque(range(5))
    it, back = iter(d), reversed(d)
    return [next(it), next(back), next(back)], it, back, sorted(d, reverse=True), max(d), tuple(d), [*d, n]


@calls((2,))
def deque_ordered(n):
    a, b = collections.deque([1, n]), collections.deque([1, 3])
    return a < b, a >= b, a == [1, n], a == collections.deque([1, n]), isinstance(a, list), type(a).__name__


@calls((2,))
def deque_plus_list(n):
    return collections.deque([n]) + [1]


@calls((2,))
def deque_as_key(n):
    return {collections.deque([n]): 1}


@calls((2,), ("ab",))
def dict_from_keys(keys):
    if isinstance(keys, int):
        return dict.fromkeys(range(keys)), collections.OrderedDict.fromkeys("xy", keys)
    d = collections.defaultdict.fromkeys(keys, 0)
    d["a"] += 1
    return d, d.default_factory, dict.fromkeys(map(str.upper, keys), [])


@calls(({1, 2}, {"a", "b"}), ({3}, set()))
def set_methods(numbers, words):
    size = len(numbers)
    numbers.add(7)
    numbers.discard(1)
    words.update(["c"], {"d": 1}, ("e",))
    words.difference_update("a")
    words ^= {"b", "z"}
    numbers |= {4}
    numbers &= {4, 7, 9}
    return (
        size,
        len(words),
        "z" in words,
        sorted(words),
        words.isdisjoint({"q"}),
        numbers.issubset(range(10)),
        numbers.union([1], (2,)),
        numbers.intersection([4, 5]),
        numbers ^ {4, 5},
        numbers - {4},
        numbers < {4, 7, 8},
        numbers == {4, 7},
        max(words),
    )


@calls(({1, 2},), (set(),))
def set_unchanged_but_read(numbers):
    return 1 in numbers, len(numbers), bool(numbers), numbers.copy(), frozenset(numbers), numbers | {5}


@calls(({1},), (set(),))
def set_pop(numbers):
    first = numbers.pop()
    return first, numbers


@calls(({1, 2},))
def set_cleared(numbers):
    numbers.clear()
    numbers.add("again")


@calls(({1, 2},), ({8, 0, 16},), ({3, 1, 2, 0},))
def set_walked(numbers):
    return [v for v in numbers], list(frozenset(numbers)), list(numbers | {24}), list({*numbers})


@calls((frozenset({"a", 1}),), (frozenset(),))
def frozenset_argument(items):
    return items.copy() is items, frozenset(items) is items, items | {2}, items.__init__(), len(items), set(items)


@calls(({True},), ({1.0},), ({0},))
def set_of_equal_numbers(items):
    return items & {1}, {1} & items, items | {1}, {1} | items, {1, *items}, items.intersection([1, 2])


@calls(({1},))
def set_missing_member(items):
    items.remove(2)


@calls(({1},))
def set_of_unhashable(items):
    items.update([[]])


@calls(({1, 2}, {2, 3}))
def set_updates(a, b):
    a.intersection_update(b, [2])
    b.symmetric_difference_update([3, 9])
    b.__init__([4])
    a |= b
    return a, b


@calls(({"a": 1, "b": 2}, {"b": 2}), ({}, {"x": []}))
def dict_views(a, b):
    return (
        a.keys() == b.keys(),
        a.keys() & b.keys(),
        a.keys() - b,
        a.keys() | ["q"],
        a.items() >= {"b": 2}.items(),
        ("b", 2) in a.items(),
        a.keys().isdisjoint(b.keys()),
        a.values() == a.values(),
        {"a", "b"} == a.keys(),
        {"a"} < a.keys(),
        a.keys() ^ {"a"},
        len(b.items()),
        list(reversed(a.items())),
    )


def through_views(keys, values, items):
    return list(keys), list(values), list(items), "a" in keys, len(items), 1 in values, keys & {"a"}


@calls(({"a": 1, "b": 2},), ({},))
def dict_views_given(table):
    return through_views(table.keys(), table.values(), table.items())


@calls((collections.deque([1, 2]),), (collections.deque("ab", 2),), (collections.deque(),))
def deque_given(d):
    first = d.popleft()
    d.append(first)
    d.extend([d[0], 5])
    d[0] = "set"
    return first, d.maxlen, len(d), list(d), d


@calls((collections.deque([1, 2]),), (collections.deque([3]),))
def deque_read(d):
    return sum(d), d[-1], 2 in d, d.copy()


@calls((collections.defaultdict(list, a=[1]),), (collections.defaultdict(None, a=[2]),))
def defaultdict_given(d):
    d["a"].append(3)
    d["b"].append(4)
    return d, d.default_factory


@calls((collections.defaultdict(lambda: 7),))
def defaultdict_of_lambda_given(d):
    return d["x"] + d["y"], len(d), list(d)


@calls((3,))
def extended_while_read(n):
    items, table, members = [1], {0: 1}, {1}
    items.extend(map(lambda v: v + items[-1], range(n)))
    items += (v + len(items) for v in range(n))
    table.update((k, len(table)) for k in range(n))
    members.update(v + len(members) for v in range(n))
    return items, table, sorted(members)


class Mapped:
    def __init__(self, table: Any) -> None:
        self.table = table

    def keys(self) -> Any:
        return iter(self.table)

    def __getitem__(self, key: str) -> Any:
        return self.table[key] * 2


def named(a: int, b: int = 7, **rest: int) -> Any:
    return a, b, rest


@calls(({"a": 1, "c": 3},))
def mappings_spread(table):
    mapped = Mapped(table)
    merged = {"z": 0, **mapped}
    merged.update(mapped, q=1)
    return named(**mapped), merged, dict(mapped), dict([("x", 1)], **mapped)


@calls((1,))
def mapping_missing_argument(n):
    return named(**Mapped({"b": n}))


@calls((1,), (2,))
def namedtuple_made(n):
    point = collections.namedtuple("point", ["x", "y", "label"], defaults=("none",))
    first = point(n, y=2)
    second = first._replace(x=5)
    return (
        first.x + first[1],
        second.x,
        first.label,
        point._fields,
        point.__name__,
        first == (n, 2, "none"),
        repr(first),
    )


@calls((1,))
def namedtuple_made_anew(n):
    classes = [collections.namedtuple("pair", "a b") for _ in range(2)]
    return classes[0] is classes[1], classes[0].__module__, isinstance(classes[0](n, 2), classes[1]), classes[1](n, 3)


@calls((1,))
def namedtuple_bad_name(n):
    return collections.namedtuple("pair", "a class")


class Fielded:
    def __init__(self, n: int) -> None:
        self.a, self.b = n, "b"


@calls((1,))
def instance_dict_as_dict(n):
    fields = Fielded(n).__dict__
    return [k for k in fields], len(fields), sorted(vars(Fielded(n))), fields == {"a": 1, "b": "b"}, {} == fields


@calls((2**70,), (-(2**70),), (3,))
def huge_bounds(n):
    items, walked = [0, 1, 2, 3, 4], range(10)
    items[1::n] = [9] * len(items[1::n])
    found = items.index(0, -n, n) if n > 100 else None
    return items, items[3::n], items[:n], walked[2:8:3], walked[5:n], walked[-3:], found, (5, 6).count(n)


@calls((2**62,), (2**70,))
def too_long(n):
    return [1, 2] * n


@calls((2**70,))
def index_too_large(n):
    return [1, 2][n]


@calls((1,))
def keywords_for_containers(n):
    return tuple(sequence=(n,))


@calls((1,))
def ranges_and_methods_compared(n):
    point = Fielded(n)
    other = Fielded(n)
    return (
        range(n, 5) == range(1, 5),
        range(0, 10, 3) == range(0, 12, 3),
        range(n, n) == range(0),
        range(3) == [0, 1, 2],
        [0] == range(1),
        point.__init__ == point.__init__,
        point.__init__ == other.__init__,
        point.__init__ == "text",
        point.__init__ != 3,
    )


class Echo:
    def __init__(self) -> None:
        self.held: Any = None

    def __repr__(self) -> str:
        return "<" + repr(self.held) + ">"


@calls((1,))
def reprs_that_meet_themselves(n):
    echo = Echo()
    echo.held = {"echo": echo, "n": n}
    listed = [n, echo]
    listed.append(listed)
    return repr(echo), repr(listed), repr(echo.held)


class Summed:
    total = 3

    @classmethod
    @property
    def doubled(cls):
        return cls.total * 2


@calls((1,))
def class_property(n):
    return Summed.doubled + n, Summed().doubled


class ByAddress:
    def __hash__(self):
        return hash(id(self))


@calls((1,))
def hash_of_an_address(n):
    item = ByAddress()
    return hash(item) == hash(item), hash(item) == id(item), n


@calls((1,))
def reversed_attributes(n):
    return list(reversed(Fielded(n).__dict__)), [*reversed(vars(Fielded(n)))]


def documented(a: int, b: "int" = 2, *c: Any, d: Any = None, **e: Any) -> str:
    return "text"


class Shaped:
    def method(self, width: int, *, height: int = 3) -> int:
        return width * height


@calls((1,))
def signatures(n):
    def inner(x, y=n, /, *rest):
        return x

    found = [inspect.signature(f) for f in (documented, Shaped().method, inner, functools.partial(documented, n))]
    bound = found[0].bind(n, 3, 4, d=5, f=6)
    bound.apply_defaults()
    return (
        [list(each.parameters) for each in found],
        [str(each) for each in found],
        found[0].parameters["b"].default,
        found[0].return_annotation,
        found[1].parameters["height"].kind.name,
        dict(bound.arguments),
        bound.args,
        bound.kwargs,
    )


@calls((1,))
def code_attributes(n):
    code = documented.__code__
    return (
        code.co_varnames,
        code.co_argcount,
        code.co_nlocals,
        code is documented.__code__,
        hasattr(documented, "__text__"),
    )


@calls((1,))
def view_of_a_dict(n):
    table = {"a": n}
    view = types.MappingProxyType(table)
    table["b"] = 2
    return list(view), view["b"], len(view), "c" in view, dict(view), view.get("z"), view
