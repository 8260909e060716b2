"""Generators and iterators."""

import contextlib
import itertools
from typing import Any

from programs import calls

EVENTS: list[Any] = []


def count_to(n: int) -> Any:
    EVENTS.append("started")
    try:
        for i in range(n):
            got = yield i
            if got is not None:
                EVENTS.append(("got", got))
    except ValueError as error:
        EVENTS.append(("thrown", str(error)))
        yield "recovered"
    finally:
        EVENTS.append("closed")
    return "returned"


def delegating(n: int) -> Any:
    first = yield from count_to(n)
    second = yield from [10, 20]
    return first, second


def failing(n: int) -> Any:
    yield n
    raise KeyError(n)


def walk(tree: Any) -> Any:
    if isinstance(tree, list):
        for part in tree:
            yield from walk(part)
    else:
        yield tree


class Countdown:
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Repeatable:
    def __init__(self, items: Any) -> None:
        self.items = items

    def __iter__(self) -> Any:
        for item in self.items:
            yield item

    def __reversed__(self) -> Any:
        return iter(self.items[::-1])


class Sequence:
    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Any:
        if i >= 3:
            raise IndexError(i)
        return i * i


@calls((3,), (0,))
def generator_loop(n):
    out = []
    for v in count_to(n):
        out.append(v)
    return out, list(count_to(n)), EVENTS


@calls((3,), (0,))
def generator_break(n):
    for v in count_to(n):
        if v == 1:
            break
    return EVENTS


@calls((3,))
def generator_send(n):
    g = count_to(n)
    out = [next(g), g.send("a"), g.send(None)]
    try:
        g.send("b")
    except StopIteration as stop:
        out.append(stop.value)
    return out


@calls((3,), (1,))
def generator_throw(n):
    g = count_to(n)
    next(g)
    out = [g.throw(ValueError("in"))]
    out.append(next(g, "end"))
    return out


@calls((3,))
def generator_throw_uncaught(n):
    g = count_to(n)
    next(g)
    g.throw(KeyError("out"))


@calls((3,))
def generator_close(n):
    g = count_to(n)
    next(g)
    g.close()
    g.close()
    return next(g, "closed"), EVENTS


@calls((2,), (0,))
def generator_delegation(n):
    g = delegating(n)
    out = []
    while True:
        try:
            out.append(next(g))
        except StopIteration as stop:
            return out, stop.value


@calls((2,))
def generator_delegated_send(n):
    g = delegating_to(n)
    return next(g), g.send("x"), g.throw(ValueError("v")), list(g)


@calls((2,), (0,))
def generator_raises(n):
    out = []
    try:
        for v in failing(n):
            out.append(v)
    except KeyError as error:
        out.append(error.args)
    return out


@calls((2,))
def generator_raises_uncaught(n):
    return list(failing(n))


@calls((2,))
def stop_iteration_in_generator(n):
    def bad():
        yield n
        raise StopIteration(n)

    return list(bad())


@calls((3,), (0,))
def generator_expressions(n):
    squares = (i * i for i in range(n))
    first = next(squares, None)
    return (
        first,
        list(squares),
        sum(i for i in range(n) if i % 2),
        max((i for i in range(n)), default=-1),
        any(i > 1 for i in range(n)),
        ",".join(str(i) for i in range(n)),
    )


@calls((3,))
def generator_returned(n):
    return (i * n for i in range(n))


@calls((3,))
def generator_function_returned(n):
    g = count_to(n)
    first = next(g)
    return g, first


@calls((3,))
def generator_interleaved(n):
    a, b = count_to(n), count_to(n)
    return [next(a), next(b), next(a), next(a), next(b)], EVENTS


@calls(([1, [2, [3, 4]], 5],), ([],))
def recursive_generator(tree):
    return list(walk(tree))


@calls((3,), (0,))
def iterator_class(n):
    c = Countdown(n)
    return (
        [v for v in c],
        list(c),
        next(Countdown(2)),
        sum(Countdown(n)),
        list(zip(Countdown(n), "ab")),
        1 in Countdown(n),
    )


@calls((1,))
def iterator_class_exhausted(n):
    c = Countdown(n)
    next(c)
    next(c)


@calls(([1, 2],), ("ab",))
def repeatable(items):
    r = Repeatable(items)
    a, *b = r
    return list(r), list(r), a, b, list(reversed(r)), [x for x in r for _ in r]


@calls((1,))
def sequence_protocol(n):
    s = Sequence()
    return list(s), 4 in s, [x + n for x in s], len(s), tuple(reversed(s)), max(s)


@calls(([1, 2, 3, 4],))
def iterators_shared(items):
    it = iter(items)
    pairs = list(zip(it, it))
    it = iter(items)
    first = next(it)
    rest = list(it)
    return pairs, first, rest, list(it)


@calls(([1, 2, 3, 4],))
def iterator_returned(items):
    it = iter(items)
    next(it)
    return it, enumerate(items), zip(items, "ab"), map(str, items), reversed(items)


@calls((3,))
def iterator_with_sentinel(n):
    values = [1, 2, n, 4]
    return list(iter(lambda: values.pop(0), n)), values


@calls((2,), (5,))
def infinite_generator(n):
    def naturals():
        i = 0
        while True:
            yield i
            i += 1

    g = naturals()
    return [next(g) for _ in range(n)], list(itertools.islice(g, 3)), list(itertools.takewhile(lambda v: v < 12, g))


@calls((3,))
def generator_closure(n):
    total = 0

    def gen():
        nonlocal total
        for i in range(n):
            total += i
            yield total

    out = list(gen())
    return out, total


@calls((3,))
def generator_with_manager(n):
    def gen():
        try:
            yield 1
            yield n
        finally:
            EVENTS.append("finished")

    for v in gen():
        EVENTS.append(v)
    return EVENTS


@calls((1,))
def generator_attributes(n):
    g = count_to(n)
    return iter(g) is g, g.__name__, type(g).__name__, hasattr(g, "send")


@calls((4,))
def enumerate_and_zip_partly(n):
    e = enumerate(range(n))
    next(e)
    z = zip(e, "abc")
    return next(z), list(z)


@contextlib.contextmanager
def noted(values):
    EVENTS.append("enter")
    values.append(2)
    try:
        yield values[-1]
        EVENTS.append("left")
    except ValueError as error:
        EVENTS.append(str(error))
    finally:
        values.pop()


@calls((3,), (-3,))
def manager_made_by_a_generator(n):
    values = [1]
    with noted(values) as factor:
        n = n * factor
        if n < 0:
            raise ValueError(n)
        values.append(n)
    return n, values, EVENTS


def resumed(n, scale=3):
    total = 0
    try:
        for i in range(n):
            got = yield i * scale
            total += got or 0
    except KeyError as error:
        yield error.args
    finally:
        EVENTS.append(total)
    return total


def delegating_to(n):
    result = yield from resumed(n)
    yield "result", result


@calls((4,), (1,))
def generator_that_waits_while_others_work(n):
    g = delegating_to(n)
    out = [next(g)]
    n = n + 1
    out.append(g.send(n))
    n = n + len(out)
    return out, n, list(g), EVENTS


@calls((4,))
def generator_that_is_thrown_into(n):
    g, other = resumed(n), resumed(n)
    out = [next(g), next(other)]
    n = n + len(out)
    out.append(g.throw(KeyError(n)))
    n = n + len(out)
    other.close()
    g.close()
    return out, n, EVENTS


@calls((4,))
def generators_that_leave_the_function(n):
    fresh, waiting = resumed(n), delegating_to(n)
    return next(waiting), fresh, waiting
