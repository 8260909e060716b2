"""Exceptions: chaining, members, groups, notes; generators that are thrown into."""

import contextlib
import sys
from typing import Any

from programs import calls


class Custom(Exception):
    def __init__(self, code: Any) -> None:
        super().__init__(code, "custom")
        self.code = code


def chain(error: Any) -> Any:
    """Types and texts along the contexts and causes of an exception."""
    found = []
    while error is not None and len(found) < 10:
        found.append((type(error).__name__, str(error), type(error.__cause__).__name__, error.__suppress_context__))
        error = error.__context__
    return found


@calls((1,), (0,))
def contexts(v):
    try:
        try:
            1 / v
            [][v]
        except ZeroDivisionError as error:
            raise KeyError(v) from error
        finally:
            try:
                raise ValueError("in finally")
            except ValueError:
                pass
    except (KeyError, IndexError) as error:
        first = chain(error)
    try:
        try:
            raise Custom(v)
        except Custom:
            raise RuntimeError("no cause") from None
    except RuntimeError as error:
        second = chain(error)
    return first, second


@calls(("name",))
def members(v):
    found = []
    for attempt in (
        lambda: undefined_name,  # noqa: F821
        lambda: v.missing,
        lambda: {}[v],
        lambda: [].pop(),
        lambda: {}.popitem(),
        lambda: int("x"),
        lambda: next(iter([])),
        lambda: (1, 2)[5],
        lambda: "a" + 1,
        lambda: len(5),
        lambda: [1] < (1,),
        lambda: [].index(v),
        lambda: [].append(),
        lambda: {}.get(),
        lambda: [1, 2].__setitem__(slice(None, None, 2), [1, 2, 3]),
        lambda: dict([1]),
        lambda: dict([(1, 2, 3)]),
        lambda: iter(5),
        lambda: {[]: 1},
        lambda: set().pop(),
    ):
        try:
            found.append(attempt())
        except Exception as error:
            found.append((type(error).__name__, str(error), repr(error), error.args, getattr(error, "name", None)))
    return found


@calls((3,))
def notes(v):
    error = ValueError("base", v)
    error.add_note("first")
    error.add_note(f"second {v}")
    before = error.__traceback__ is None
    try:
        raise error
    except ValueError as caught:
        return (
            caught.__notes__,
            before,
            caught.__traceback__ is not None,
            caught is error,
            repr(caught),
            sys.exc_info()[1] is error,
        )


@calls((1,), (2,))
def groups(v):
    made = ExceptionGroup(
        "outer", [ValueError(v), TypeError("t"), ExceptionGroup("inner", [ValueError("deep"), KeyError("k")])]
    )
    match, rest = made.split(ValueError)
    seen = []
    try:
        raise made
    except* ValueError as caught:
        seen.append((str(caught), [repr(e) for e in caught.exceptions]))
    except* (TypeError, KeyError) as caught:
        seen.append((str(caught), len(caught.exceptions)))
    try:
        try:
            raise TypeError("lone")
        except* ValueError:
            seen.append("never")
    except TypeError as caught:
        seen.append(repr(caught))
    return str(made), repr(match), repr(rest), repr(made.subgroup(lambda e: isinstance(e, KeyError))), seen


@calls((1,))
def bad_raises(v):
    caught = []
    try:
        raise v
    except TypeError as error:
        caught.append(str(error))
    try:
        raise ValueError from v
    except TypeError as error:
        caught.append(str(error))
    try:
        raise
    except RuntimeError as error:
        caught.append(str(error))
    error = ValueError()
    for name, value in (("__cause__", 1), ("__context__", 1), ("__traceback__", 1)):
        try:
            setattr(error, name, value)
        except TypeError as failure:
            caught.append(str(failure))
    return caught


@calls((1,))
def delegation(v):
    log = []

    def inner():
        try:
            got = yield v
            log.append(("got", got))
            yield "second"
        except KeyError as error:
            log.append(("inner caught", str(error)))
            yield "after throw"
        finally:
            log.append("inner closed")
        return "inner result"

    def outer():
        result = yield from inner()
        log.append(result)
        yield "last"

    first = outer()
    values = [next(first), first.send("sent"), first.throw(KeyError, KeyError("x")), next(first)]
    second = outer()
    next(second)
    second.close()
    third = outer()
    next(third)
    try:
        third.throw(ZeroDivisionError("z"))
    except ZeroDivisionError as error:
        log.append(str(error))
    return values, log, list(third)


@calls((1,))
def generator_ends(v):
    def returns():
        yield v
        return "value"

    made, seen = returns(), []
    next(made)
    for _ in range(2):
        try:
            next(made)
        except StopIteration as stop:
            seen.append((stop.value, stop.args))

    def leaks():
        yield 1
        raise StopIteration("leak")

    try:
        list(leaks())
    except RuntimeError as error:
        seen.append((str(error), repr(error.__cause__)))

    def ignores():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    stubborn = ignores()
    next(stubborn)
    try:
        stubborn.close()
    except RuntimeError as error:
        seen.append(str(error))
    try:
        returns().send(1)
    except TypeError as error:
        seen.append(str(error))
    return seen


@calls((1,))
def managers(v):
    log = []

    @contextlib.contextmanager
    def managed(swallow):
        try:
            yield v
        except ValueError as error:
            log.append(str(error))
            if not swallow:
                raise
        finally:
            log.append("closed")

    with managed(True) as got:
        raise ValueError("swallowed")
    try:
        with managed(False):
            raise ValueError("kept")
    except ValueError as error:
        log.append(("kept", str(error), error.__context__))
    with contextlib.suppress(KeyError), contextlib.ExitStack() as stack:
        stack.callback(log.append, "callback")
        stack.enter_context(managed(True))
        raise KeyError(v)
    return got, log


@calls((1,), ("k",))
def patterns(v):
    class Point:
        __match_args__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    def kind(value):
        match value:
            case Point(0, y=w):
                return "origin-ish", w
            case Point(x, y) if x == y:
                return "diagonal", x
            case {"a": a, **rest}:
                return "mapping", a, rest
            case [1, *others, 9]:
                return "sequence", others
            case str() | bytes() as t:
                return "text", t
            case int(n):
                return "int", n
            case _:
                return "other"

    made = [
        kind(x)
        for x in (Point(0, v), Point(v, v), Point(1, 2), {"a": 1, v: 2}, [1, 2, 3, 9], "t", b"b", 5, None, (1, 9))
    ]
    caught = []
    try:
        match Point(1, 2):
            case Point(1, 2, 3):
                pass
    except TypeError as error:
        caught.append(str(error))
    return made, caught
