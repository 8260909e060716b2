"""A program that takes every kind of instruction of CPython 3.11 and prints what comes of it."""

# The style is that of no person: every line is here for the instructions that it compiles to.
# ruff: noqa
# fmt: off

import asyncio
import contextlib
import sys
import traceback


def arithmetic(a, b):
    total = 0
    for i in range(10):
        if i % 3 == 0:
            continue
        total += a * i - b // (i or 1) ** 2
        if total > 500:
            break
    else:
        total = ~total
    while total > 7 and not total == 11:
        total -= 7 if total & 1 else 3
    return total, -a, +b, not a, a << 2 | b ^ 3, a @ Matrix() if b else None, a < b <= 9 != 4, a is b, a not in [b]


class Matrix:
    "Right operand of @."
    size: int = 3

    def __rmatmul__(self, other):
        return (other, type(self).size)


def patterns(subject):
    match subject:
        case {"key": value, **rest}:
            return "mapping", value, rest
        case [first, *middle, last]:
            return "sequence", first, middle, last
        case str() | bytes() as text if text:
            return "text", text
        case complex(real=r, imag=0.0):
            return "complex", r
        case None | True:
            return "singleton", subject
        case _:
            return "other", subject


def handlers(action):
    events = []
    try:
        try:
            events.append("begin")
            action(events)
        except (ValueError, KeyError) as error:
            events.append(repr(error))
            raise RuntimeError("again") from error
        except ZeroDivisionError:
            return events + ["zero"]
        else:
            events.append("else")
        finally:
            events.append("finally")
    except RuntimeError as error:
        events.append((str(error), repr(error.__cause__)))
        with contextlib.suppress(LookupError):
            {}["missing"]
        for frame in traceback.extract_tb(error.__traceback__):
            events.append((frame.lineno, frame.end_lineno, frame.colno, frame.end_colno, frame.line))
    return events


def raise_(error):
    def action(events):
        events.append("raising")
        raise error

    return action


def groups(*errors):
    seen = []
    try:
        try:
            if errors:
                raise ExceptionGroup("group", errors)
        except* ValueError as group:
            seen.append(("value", len(group.exceptions)))
        except* TypeError:
            seen.append("type")
    except ExceptionGroup as rest:
        seen.append(repr(rest))
    return seen


def loop_with_finally(items):
    out = []
    for item in items:
        try:
            if item == 2:
                continue
            if item == 4:
                break
            out.append(item)
        finally:
            out.append(-item)
    return out


def generator(n):
    try:
        for i in range(n):
            got = yield i
            if got:
                yield from (x * got for x in range(3))
        return "end"
    finally:
        print("generator finished")


def drive():
    g = generator(3)
    out = [next(g), g.send(5), next(g)]
    out.extend(g)
    h = generator(2)
    next(h)
    h.close()
    k = generator(2)
    next(k)
    try:
        k.throw(KeyError("thrown"))
    except KeyError as error:
        out.append(repr(error))
    return out


def closures(n):
    counter = 0

    def bump(by=1, *args, scale=2, **kwargs):
        nonlocal counter
        counter += by * scale + len(args) + len(kwargs) + n
        return counter

    class Holder:
        captured = n
        function = bump

    spare = n
    m = lambda: spare  # noqa: E731
    out = m()
    del spare
    return out, bump(), bump(3, 4, scale=5, extra=6), bump(*[1, 2], **{"scale": 1}), Holder.captured, [lambda: counter][0]()


async def numbers(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


class Manager:
    async def __aenter__(self):
        return "entered"

    async def __aexit__(self, kind, error, trace):
        return kind is ValueError


async def asynchronous():
    out = [i async for i in numbers(4) if i % 2]
    async for i in numbers(2):
        out.append(i)
    else:
        out.append("else")
    async with Manager() as entered:
        out.append(entered)
        raise ValueError
    return out


def containers(a, b):
    x, (y, *z), = a, b
    d = {"x": x, **{"y": y}, "f": f"{x!r:>5} {y:03d} {z!s} {x}"}
    d["x"] += 1
    del d["y"]
    s = {*z, 1, 2}
    return d, sorted(s), [*z, *b], (*z,), b[1:], b[::2], {k: v for k, v in d.items()}, {i for i in z}, x if x in {1, 2, 3} else s


def assertion(value):
    try:
        assert value, f"bad {value}"
    except AssertionError as error:
        return str(error)
    return "good"


def main():
    print(arithmetic(5, 7), arithmetic(-3, 2), arithmetic(100, 1))
    for subject in [{"key": 1, "more": 2}, [1, 2, 3, 4], "text", "", 3 + 0j, None, True, 8]:
        print(patterns(subject))
    for action in [raise_(ValueError("v")), raise_(ZeroDivisionError()), raise_(KeyError("k")), lambda events: events.append("ok")]:
        print(handlers(action))
    try:
        handlers(raise_(OSError("escapes")))
    except OSError as error:
        print([frame.lineno for frame in traceback.extract_tb(error.__traceback__)])
    print(groups(), groups(ValueError(1), TypeError(2)), groups(ValueError(1), KeyError(3)))
    print(loop_with_finally(range(6)), drive(), closures(10))
    print(asyncio.run(asynchronous()), containers(1, [2, 3, 4]), assertion(0), assertion(1))
    print([sum(i * j for j in range(i)) for i in range(30)])
    for _ in range(200):  # long enough for the interpreter to specialise
        arithmetic(5, 7), loop_with_finally(range(6)), containers(1, [2, 3, 4]), patterns([1, 2])
    print(sys.getrecursionlimit() > 0)


main()
