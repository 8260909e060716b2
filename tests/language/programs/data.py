"""Containers, text and numbers."""

import collections
import functools
import itertools
import math
import operator
from collections import Counter, OrderedDict, defaultdict, deque

from programs import calls

SHARED = [1, 2, 3]
TABLE = {"a": 1, "b": [2]}
NAMES = {"x", "y"}


@calls(([1, 2, 3], 4), ([], "z"))
def list_methods(items, v):
    items.append(v)
    items.extend([v, v])
    items.insert(0, "first")
    items += [9]
    popped = items.pop(), items.pop(0)
    items.reverse()
    count = items.count(v)
    where = items.index(v)
    items.remove(v)
    other = items.copy()
    other.clear()
    return popped, count, where, other, items * 2, [0] * 3, items + [1], len(items)


@calls(([3, 1, 2],), ([],), (["b", "a"],))
def sorting(items):
    by_key = sorted(items, key=lambda v: str(v), reverse=True)
    ordered = sorted(items)
    items.sort(reverse=True)
    return by_key, ordered, items, list(reversed(items)), sorted([(2, "b"), (1, "z"), (2, "a")]), sorted("hello")


@calls(([1, "a"],))
def unorderable(items):
    return sorted(items)


@calls(([5, 3, 9],), ([1],))
def extremes(items):
    return (
        min(items),
        max(items),
        sum(items),
        sum(items, 10),
        min(items, key=lambda v: -v),
        max([], default=4),
        any(items),
        all(items),
        max(1, 2.5, -1),
    )


@calls(([],))
def minimum_of_nothing(items):
    return min(items)


@calls(([0, 1, 2, 3, 4, 5],), (list("abcdefg"),))
def list_slices(items):
    first = items[1:3], items[::-1], items[-2:], items[::2], items[10:], items[:-10], items[4:1:-1]
    items[1:3] = ["new"]
    items[:0] = [7]
    del items[-1]
    del items[::3]
    items[0] = "zero"
    return first, items


@calls((5,), (-7,))
def index_error(i):
    return [1, 2, 3][i]


@calls(("a",))
def index_type(i):
    return [1, 2, 3][i]


@calls((1, 2), ("a", [3]))
def tuples(a, b):
    t = (a, b, a)
    x, *rest = t
    *start, last = t
    (p, q), r = (a, b), t
    return (
        t + (1,),
        t * 2,
        t[0],
        t[1:],
        len(t),
        a in t,
        t.count(a),
        t.index(b),
        x,
        rest,
        start,
        last,
        p,
        q,
        r,
        t == (a, b, a),
        t < (5,) if a == 1 else 0,
    )


@calls(([1, 2, 3],), ([1],))
def unpacking_wrong_length(items):
    a, b = items
    return a, b


@calls(([],))
def unpacking_too_few_with_star(items):
    a, *b = items
    return a, b


@calls((5,))
def unpacking_int(v):
    a, b = v
    return a, b


@calls(("k", 1), (3, "v"))
def dict_methods(key, value):
    d = {"a": 1, key: value}
    d["z"] = 0
    d.update({"b": 2}, c=3)
    got = d.get(key), d.get("missing"), d.get("missing", 5), d.setdefault("a", 9), d.setdefault("new", [])
    d["new"].append(1)
    popped = d.pop("z"), d.pop("none", None)
    d["a"] += 1
    del d["b"]
    merged = d | {"q": 1}
    d |= {"r": 2}
    copied = d.copy()
    last = copied.popitem()
    return (
        got,
        popped,
        merged,
        d,
        list(d),
        list(d.values()),
        list(d.items()),
        len(d),
        key in d,
        last,
        copied,
        dict(a=1, **{"b": 2}),
        dict([(1, 2)]),
        dict.fromkeys("ab", 0),
        list(reversed(d)),
    )


@calls(("zz",), (7,))
def key_error(key):
    return {"a": 1}[key]


@calls(([1],))
def unhashable(key):
    return {"a": 1}[key]


@calls(([1],))
def unhashable_in_set(key):
    return {1, key}


@calls(({"a": 1, "b": 2},), ({},))
def dict_views(d):
    keys, values, items = d.keys(), d.values(), d.items()
    d["new"] = 3
    return (
        list(keys),
        list(values),
        list(items),
        len(keys),
        "a" in keys,
        ("a", 1) in items,
        keys & {"a", "q"},
        sorted(keys | {"q"}),
        keys,
    )


@calls(({"a": 1, "b": 2},))
def dict_changed_during_iteration(d):
    for key in d:
        d[key + "x"] = 1
    return d


@calls(({"b": 2, "a": 1},), ({1: 1.0},))
def dict_iteration(d):
    out = []
    for key in d:
        out.append(key)
    for key, value in d.items():
        out.append((value, key))
    for value in d.values():
        out += [value]
    return out, {v: k for k, v in d.items()}, d == dict(reversed(list(d.items())))


@calls((1, 2), (3, 3))
def sets(a, b):
    s = {a, b}
    t = set([2, 3])
    s.add(5)
    s.discard(99)
    u = s | t, s & t, s - t, s ^ t, s <= t, s == {a, b, 5}, s.isdisjoint({77}), len(s), a in s
    s.remove(a)
    s.update([7, 8])
    t -= {2}
    return u, s, t, frozenset([a, b]), frozenset([1]) | {2}, {x % 2 for x in range(5)}, set(), sorted(s)


@calls((4,))
def removing_from_set(v):
    s = {1}
    s.remove(v)


@calls(({1, 2},), ({"a", "b", "c"},))
def sets_from_outside(s):
    s.add(10)
    return len(s), 1 in s, sorted(map(str, s)), s


@calls((2,), (5,))
def deques(n):
    d = deque([1, 2, 3], maxlen=4)
    d.append(n)
    d.appendleft(0)
    d.extend([7, 8])
    right, left = d.pop(), d.popleft()
    d.rotate(1)
    return d, right, left, len(d), d[0], list(d), n in d, d.maxlen, deque("ab")


@calls(("b",), ("z",))
def ordered_dicts(key):
    d = OrderedDict(a=1, b=2)
    d[key] = 3
    d.move_to_end("a")
    return d, list(d), d.popitem(last=False), d == {"a": 1}, d


@calls(("x",), (1,))
def default_dicts(key):
    d = defaultdict(list)
    d[key].append(1)
    d["other"].append(2)
    n = defaultdict(int)
    for letter in "hello":
        n[letter] += 1
    return d, n, d.get("none"), len(d), dict(n), d.default_factory


@calls(("hello",), ("",))
def counters(text):
    c = Counter(text)
    c["z"] += 2
    c.update("ll")
    return c, c["l"], c["missing"], c.most_common(1), sum(c.values()), c + Counter("h")


@calls((2, 10), (5, 0))
def ranges(a, b):
    r = range(a, b, 2)
    return (
        r,
        list(r),
        len(r),
        r[-1:],
        a in r,
        r == range(a, b, 2),
        list(range(b, a, -1)),
        r.start,
        r.stop,
        r.step,
        list(reversed(r)),
        bool(range(0)),
        sum(range(a)),
    )


@calls((1, 3), (None, -1))
def slices(a, b):
    s = slice(a, b)
    return (
        s,
        s.start,
        s.stop,
        s.step,
        [0, 1, 2, 3, 4][s],
        "abcdef"[s],
        (0, 1, 2, 3)[s],
        s.indices(4),
        slice(2) == slice(None, 2, None),
    )


@calls(("hello world", "o"), ("", "x"))
def text_methods(s, sub):
    return (
        s.upper(), s.title(), s.split(), s.split(sub), s.replace(sub, "0"), s.find(sub), s.count(sub), s.startswith("h"), s.strip("hd"),
        sub.join(["a", "b"]), s.center(15, "*"), s.zfill(12), s[::-1], s * 2, s + sub, sub in s, len(s), s.partition(sub), s.isalpha(), s.encode(),
        s.swapcase(), s.ljust(3), s.rsplit(sub, 1), s.casefold(), s.translate({111: "0"}), s.splitlines(), s.isdigit(), s < sub, s == sub, [*s][:2],
    )  # fmt: skip


@calls((3.14159, 42), (-0.0, -7), (float("inf"), 2**70))
def text_formatting(x, n):
    return (
        f"{x:.2f} {n:5d}|{n:<5}|{n:^7}|{n:+}|{x!r}", f"{n:x} {n:b} {n:o}" if isinstance(n, int) else "", "%d %s %.3f" % (n, n, x), "%-5s|" % n, "%05d" % n,
        "{:>10} {:,} {name}".format(n, n, name=x), "{0}{1}{0}".format(n, x), f"{'nested':{10}}", f"{n=}", str(x), repr(n), f"{x:e}", format(n, "010"), f"{x!s:>8}",
        "%(a)s" % {"a": n}, f"{[x]}", f"{{}}", f"{(n, 'a')}", ascii("é"), f"{'é'!a}",
    )  # fmt: skip


@calls(("abc",))
def formatting_error(s):
    return f"{s:d}"


@calls((5,))
def formatting_argument_error(n):
    return "%d %d" % (n,)


@calls(("abc",))
def text_plus_int(s):
    return s + 1


@calls((b"abc",), (b"",))
def byte_strings(b):
    return (
        b + b"d",
        b[:1],
        list(b),
        b.decode(),
        b.hex(),
        b * 2,
        len(b),
        b"a" in b,
        b == b"abc",
        b.upper(),
        bytes([1, 2]),
        bytes(3),
        bytearray(b),
        b.split(b"b"),
    )


@calls((2**70, 3), (-(2**65), 7), (10**40, -3))
def big_ints(a, b):
    return (
        a + b,
        a - b,
        a * b,
        a // b,
        a % b,
        -a,
        a == a + 0,
        a > b,
        a & 255,
        a | b,
        a >> 5,
        b << 80,
        a ^ b,
        divmod(a, b),
        abs(a),
        str(a),
        hash(a),
        float(a),
        a / b,
        pow(b, 50),
        a.bit_length(),
        int(str(a)),
        ~a,
        {a: 1}[a],
    )


@calls((7, 2), (-7, 2), (7, -2), (0, 5))
def int_arithmetic(a, b):
    return (
        a + b,
        a - b,
        a * b,
        a / b,
        a // b,
        a % b,
        a**b,
        divmod(a, b),
        -a,
        +a,
        ~a,
        a & b,
        a | b,
        a ^ b,
        a << 2,
        a >> 1,
        abs(a),
        round(a, -1),
        a == b,
        a < b,
        pow(a, 3, 5),
        bool(a),
        a.bit_length(),
        (a).real,
        a.__add__(b),
        hash(a),
    )


@calls((7.5, 2.0), (-7.5, 2.0), (0.0, -1.0), (float("nan"), 1.0), (float("inf"), -0.0), (1e308, 10.0))
def float_arithmetic(a, b):
    results = [
        a + b,
        a - b,
        a * b,
        -a,
        a == b,
        a < b,
        a <= b,
        a != a,
        abs(a),
        bool(a),
        a is a,
        hash(b),
        a.is_integer(),
        repr(a),
        str(b),
        min(a, b),
        max(a, b),
        sorted([a, b]),
    ]
    if b:
        results += [a / b, a // b, a % b, divmod(a, b)]
    return results


@calls((1, 0), (1.0, 0), (0, 0.0))
def division_by_zero(a, b):
    return a / b


@calls((1, 0), (1.5, 0.0))
def remainder_by_zero(a, b):
    return a % b


@calls((True, False), (True, 2))
def booleans(a, b):
    return (
        a + b,
        a & b,
        a | b,
        a ^ True,
        a and b,
        not a,
        a == 1,
        int(a),
        str(a),
        a * 3,
        -a,
        [10, 20][a],
        isinstance(a, int),
        sum([a, b, a]),
        {True: "x"}.get(1),
        a < b,
        ~a,
    )


@calls((1 + 2j, 2), (0j, 1.5))
def complex_numbers(a, b):
    return a + b, a * a, a.real, a.imag, abs(a), a == b, complex(1, b), -a, a.conjugate(), bool(a), repr(a)


@calls(("12", "3.5"), ("-7", "1e3"))
def conversions(a, b):
    return (
        int(a),
        float(b),
        int(float(b)),
        str(int(a)),
        bool(a),
        int("ff", 16),
        chr(97),
        ord("a"),
        hex(255),
        bin(5),
        oct(8),
        list(a),
        tuple(a),
        float("inf"),
        round(2.5),
        round(3.14159, 2),
        complex("1j"),
        int(True),
        abs(-3),
    )


@calls(("x",), ("1.5",))
def conversion_error(a):
    return int(a)


@calls((4,), (0,))
def comprehensions(n):
    return (
        [i * i for i in range(n) if i % 2],
        {i: str(i) for i in range(n)},
        {i % 3 for i in range(n)},
        tuple(i for i in range(n)),
        [(i, j) for i in range(n) for j in range(i)],
        [[j for j in range(i)] for i in range(n)],
        sum(i for i in range(n)),
        [x for x in [n] if (y := x) or y == 0],
    )


@calls(([1, 2, 3], "abc"), ([], ""))
def iteration_tools(items, text):
    return (
        list(enumerate(items)),
        list(enumerate(text, 5)),
        list(zip(items, text)),
        list(map(str, items)),
        list(map(lambda a, b: (a, b), items, text)),
        list(filter(None, [0, *items])),
        list(filter(lambda v: v > 1, items)),
        list(reversed(items)),
        dict(zip(text, items)),
        [*items, *text],
        {**{"a": 1}, "b": 2},
        next(iter(items), None),
        list(iter(text)),
    )


@calls(([1, 2], [3]))
def strict_zip(a, b):
    return list(zip(a, b, strict=True))


@calls(([1, 2, 3, 4],), ([],))
def itertools_functions(items):
    return (
        list(itertools.chain(items, "ab")), list(itertools.chain.from_iterable([items, items])), list(itertools.islice(items, 1, 3)), list(itertools.accumulate(items)),
        list(itertools.product(items[:2], "xy")), list(itertools.permutations(items[:3], 2)), list(itertools.combinations(items, 2)), list(itertools.repeat(1, 3)),
        list(itertools.takewhile(lambda v: v < 3, items)), list(itertools.dropwhile(lambda v: v < 3, items)), list(itertools.zip_longest(items, "ab", fillvalue=0)),
        [(k, list(g)) for k, g in itertools.groupby(items, lambda v: v // 2)], list(itertools.starmap(pow, [(2, 3)])), list(itertools.islice(itertools.count(5, 2), 3)),
        list(itertools.islice(itertools.cycle("ab"), 5)), list(itertools.pairwise(items)), list(itertools.compress(items, [1, 0, 1])), list(itertools.filterfalse(None, [0, 1])),
    )  # fmt: skip


@calls(([3, 1, 2],), ([5],))
def operator_functions(items):
    pairs = [(1, "b"), (0, "c")]
    return (
        operator.add(1, 2),
        operator.itemgetter(0)(items),
        sorted(pairs, key=operator.itemgetter(1)),
        operator.attrgetter("real")(3),
        operator.methodcaller("upper")("a"),
        functools.reduce(operator.mul, items, 1),
        functools.reduce(lambda a, b: a - b, items),
        operator.contains(items, 3),
        operator.not_(items),
        operator.itemgetter(0, -1)(items),
    )


@calls((2.0,), (0.5,), (10,))
def math_functions(x):
    return (
        math.sqrt(x),
        math.floor(x),
        math.ceil(x),
        math.exp(x),
        math.log(x),
        math.log2(x),
        math.pi,
        math.sin(x),
        math.pow(x, 2),
        math.gcd(12, 18),
        math.factorial(5),
        math.isclose(x, x + 1e-12),
        math.hypot(3, 4),
        math.prod([1, 2, 3]),
        math.inf > x,
        math.isnan(math.nan),
        math.trunc(-x),
        math.copysign(1, -x),
        math.fsum([x, x]),
        math.comb(5, 2),
        math.isqrt(17),
    )


@calls((-1.0,))
def math_domain_error(x):
    return math.sqrt(x)


@calls(([1, [2, 3], {"k": (4, [5])}],))
def nested_mutation(data):
    data[1].append(data[0])
    data[2]["k"][1][0] += 1
    inner = data[2]
    inner["new"] = data[1]
    alias = data[1]
    alias[0] = "changed"
    data[0], data[1] = data[1], data[0]
    return data, inner, alias


@calls((1,), (2,))
def shared_objects(v):
    SHARED.append(v)
    TABLE["b"].append(v)
    TABLE["c"] = SHARED
    TABLE.pop("a", None)
    return SHARED, TABLE, len(NAMES), SHARED is TABLE["c"], "x" in NAMES


@calls(([1],), ([],))
def same_list_twice(items):
    pair = [items, items]
    pair[0].append(1)
    return pair, pair[0] is pair[1], [[]] * 2, items


@calls(([1, 2],))
def self_reference(items):
    items.append(items)
    return items[-1] is items, len(items)


@calls((1, "a"), (None, 2.5))
def identity_and_equality(a, b):
    return (
        a is b,
        a == b,
        a is a,
        a is None,
        b is not None,
        1 == 1.0,
        1 == True,
        "a" == "a",
        (1, 2) == (1.0, 2),
        [1] == (1,),
        {1: 2} == {1.0: 2},
        None == 0,
        "a" != b"a",
        ... is Ellipsis,
        NotImplemented is NotImplemented,
    )  # noqa: E711, E712


@calls((1, [2]), ("k", {}))
def membership(a, b):
    return (
        a in [1, 2],
        a in (a,),
        a in {a: b},
        b in [b],
        a not in [],
        "a" in "cat",
        1 in {1.0},
        None in [None],
        float("nan") in [float("nan")],
        b in ([],),
        3 in range(5),
        2.0 in range(5),
    )


@calls((3,), ("s",))
def not_iterable(v):
    return [x for x in v]


@calls((3,))
def not_subscriptable(v):
    return v[0]


@calls((3,))
def not_callable(v):
    return v()


@calls((3,))
def no_length(v):
    return len(v)


@calls(((1, 2),))
def tuple_assignment(t):
    t[0] = 1


@calls(("abc",))
def text_assignment(t):
    t[0] = 1


@calls((3, "a"))
def comparison_type_error(a, b):
    return a < b


@calls((3, [1]))
def addition_type_error(a, b):
    return a + b


@calls(("x",))
def negation_type_error(a):
    return -a


@calls(([1, 2, 3], 1), ((1, 2), 0))
def augmented_assignments(items, i):
    a = 5
    a += 1
    a -= 2
    a *= 3
    a //= 5
    a **= 2
    a <<= 1
    a |= 1
    a ^= 3
    a &= 7
    a %= 4
    s = "x"
    s += "y"
    t = items
    t += type(items)([4])
    u = [items]
    u[0] = u[0] * 2
    b = 7.0
    b /= 2
    return a, s, t, items, t is items, u, b, i


@calls(([5, 6], 0), ([1, 2, 3], -1))
def augmented_items(items, i):
    items[i] += 10
    d = {"n": items}
    d["n"][i] *= 2
    d["n"] += [i]
    return items, d


@calls((3, 4), (0, 1))
def chained_assignment(a, b):
    x = y = [a]
    y.append(b)
    i, z = 0, [0, 1]
    i, z[i] = 1, "set"
    (p, (q, *r)), s = (a, (b, 1, 2)), "s"
    return x, y, i, z, p, q, r, s


@calls(([1, 2, 3],))
def delete_statements(items):
    d = {"a": 1, "b": 2}
    x = 1
    del items[0], d["a"], x
    return items, d


@calls((10,), (3,))
def chain_maps(n):
    c = collections.ChainMap({"a": n}, {"a": 1, "b": 2})
    return c["a"], c["b"], len(c), sorted(c)
