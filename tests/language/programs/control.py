"""Control flow: loops, exceptions, context managers, pattern matching."""

import contextlib
from typing import Any

from programs import calls

EVENTS: list[Any] = []


class Manager:
    def __init__(self, name: str, swallow: bool = False) -> None:
        self.name = name
        self.swallow = swallow

    def __enter__(self) -> Any:
        EVENTS.append(("enter", self.name))
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        EVENTS.append(("exit", self.name, kind and kind.__name__, str(value), trace is None))
        return self.swallow


class FailingExit(Manager):
    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        raise RuntimeError("exit failed")


class Custom(Exception):
    def __init__(self, code: Any, text: str = "custom") -> None:
        super().__init__(code, text)
        self.code = code


class Narrow(Custom):
    pass


class Shape:
    __match_args__ = ("kind", "size")

    def __init__(self, kind: Any, size: Any) -> None:
        self.kind = kind
        self.size = size


@contextlib.contextmanager
def managed(name: str) -> Any:
    EVENTS.append(("start", name))
    try:
        yield name.upper()
    except KeyError:
        EVENTS.append(("caught", name))
    finally:
        EVENTS.append(("end", name))


def divide(a: Any, b: Any) -> Any:
    return a / b


def nested(a: Any, b: Any) -> Any:
    try:
        return divide(a, b)
    except TypeError:
        return "type"
    finally:
        EVENTS.append("nested")


def raising(v: Any) -> Any:
    if v == 0:
        raise ValueError("zero", v)
    if v == 1:
        raise KeyError("one")
    if v == 2:
        raise Custom(v)
    return v


@calls((3,), (0,), (10,))
def for_else(n):
    out = []
    for i in range(n):
        if i == 5:
            out.append("break")
            break
        if i % 2:
            continue
        out.append(i)
    else:
        out.append("else")
    return out


@calls((3,), (0,))
def while_else(n):
    out = []
    while n > 0:
        n -= 1
        if n == 10:
            break
        out.append(n)
    else:
        out.append("else")
    return out


@calls((3,), (4,))
def nested_loops(n):
    out = []
    for i in range(n):
        for j in range(n):
            if j == 2:
                break
            if i == 1:
                continue
            out.append((i, j))
        else:
            out.append("no break")
    return out


@calls(([1, 2, 3],))
def list_grows_during_iteration(items):
    for v in items:
        if len(items) < 6:
            items.append(v * 10)
    return items


@calls(([1, 2, 3, 4],))
def list_shrinks_during_iteration(items):
    seen = []
    for v in items:
        seen.append(v)
        items.remove(v)
    return seen, items


@calls((1, 1), (1, 0), ("a", 1))
def try_except(a, b):
    try:
        result = a / b
    except ZeroDivisionError as error:
        result = str(error)
    except (TypeError, ValueError) as error:
        result = type(error).__name__, error.args
    else:
        result = "else", result
    finally:
        EVENTS.append("finally")
    return result


@calls((1, 1), (1, 0), ("a", 1))
def exception_in_nested_call(a, b):
    try:
        return nested(a, b)
    except ZeroDivisionError as error:
        return "zero", str(error), EVENTS
    finally:
        EVENTS.append("outer")


@calls((0,), (1,), (2,), (3,))
def uncaught(v):
    EVENTS.append("before")
    raising(v)
    EVENTS.append("after")
    return v


@calls((0,), (1,), (2,), (3,))
def caught_by_class(v):
    try:
        raising(v)
    except Custom as error:
        return error.code, error.args, str(error)
    except LookupError as error:
        return "lookup", repr(error), str(error)
    except Exception as error:
        return "other", error.args
    return "none"


@calls((0,), (1,))
def raise_from(v):
    try:
        try:
            raising(v)
        except ValueError as error:
            raise Custom("from") from error
        except KeyError:
            raise Custom("none") from None
    except Custom as error:
        return type(error.__cause__).__name__, type(error.__context__).__name__, error.__suppress_context__, error.code


@calls((0,), (1,))
def raise_in_handler(v):
    try:
        raising(v)
    except Exception:
        EVENTS.append("handling")
        raise RuntimeError("in handler")  # noqa: B904


@calls((0,), (1,))
def raise_from_uncaught(v):
    try:
        raising(v)
    except Exception as error:
        raise Custom(v) from error


@calls((0,), (2,))
def bare_raise(v):
    try:
        raising(v)
    except ValueError:
        EVENTS.append("reraised")
        raise
    except Custom as error:
        error.extra = "noted"
        raise


@calls((0,), (5,))
def finally_returns(v):
    for i in range(3):
        try:
            if v == 0:
                raise ValueError(i)
            if i == 1:
                return "returned"
        except ValueError:
            continue
        finally:
            EVENTS.append(i)
            if i == 2:
                break
    return "end"


@calls((0,), (1,))
def finally_overrides(v):
    def inner():
        try:
            return raising(v)
        finally:
            return "overridden"  # noqa: B012

    return inner()


@calls((0,), (3,))
def raise_in_finally(v):
    try:
        raising(v)
    finally:
        EVENTS.append("finally")
        if v == 3:
            raise RuntimeError("finally")


@calls((0,))
def exception_variable_is_deleted(v):
    try:
        raising(v)
    except ValueError as error:
        kept = error
    try:
        return error, kept  # noqa: F821
    except NameError as other:
        return str(other), kept.args


@calls((0,))
def caught_exception_returned(v):
    try:
        raising(v)
    except ValueError as error:
        return error


@calls((5,))
def exception_objects(v):
    e = ValueError("a", v)
    f = Custom(v)
    return (
        e.args,
        str(e),
        repr(e),
        f.args,
        str(f),
        e,
        str(KeyError("k")),
        isinstance(f, Exception),
        str(Exception()),
        e.__cause__,
    )


@calls((5,))
def raising_class(v):
    raise Custom


@calls((5,))
def raising_non_exception(v):
    raise v


@calls((5,))
def catching_non_exception(v):
    try:
        raise ValueError
    except v:
        return 1


@calls((0,), (1,), (3,))
def nested_handlers(v):
    out = []
    try:
        try:
            raising(v)
        except ValueError:
            out.append("inner")
            try:
                raise KeyError("second")
            except KeyError as error:
                out.append(type(error.__context__).__name__)
            out.append("after")
            raise
        finally:
            out.append("finally")
    except (ValueError, KeyError) as error:
        out.append(error.args)
        out.append(type(error.__context__).__name__)
    return out


@calls((3,), (0,))
def exception_in_loop(n):
    out = []
    for i in range(4):
        try:
            out.append(10 // (i - n))
        except ZeroDivisionError:
            out.append("zero")
            continue
        finally:
            out.append(i)
    return out


@calls((0,), (1,))
def exception_in_comprehension(v):
    try:
        return [raising(i + v) for i in (5, 1, 0)]
    except (ValueError, KeyError) as error:
        return repr(error)


@calls((1,), (0,))
def with_statement(v):
    with Manager("a") as a, Manager("b") as b:
        EVENTS.append(a.name + b.name)
        result = 10 / v
    return result


@calls((1,), (0,))
def with_swallowing(v):
    with Manager("a", swallow=True):
        result = 10 / v
        return result
    return "swallowed"


@calls((1,), (0,))
def with_in_loop(v):
    out = []
    for i in range(3):
        with Manager(str(i), swallow=True):
            if i == 1:
                continue
            out.append(i // v)
            if i == 2:
                break
        out.append("after")
    return out


@calls((1,))
def with_failing_exit(v):
    with FailingExit("f"):
        EVENTS.append(v)
    return v


@calls((1,))
def with_failing_exit_while_raising(v):
    with FailingExit("f"):
        raise KeyError(v)


@calls((1,))
def with_without_protocol(v):
    with v:
        pass


@calls((5,), (1,), (0,))
def with_generator_manager(v):
    with managed("m") as name:
        raising(v)
        return name
    return "caught"


@calls((5,), (0,))
def contextlib_managers(v):
    with contextlib.suppress(ValueError):
        raising(v)
        return "passed"
    with contextlib.nullcontext(3) as three:
        return three


@calls((1,), (0,))
def exit_stack(v):
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(Manager("a"))
        stack.callback(EVENTS.append, "callback")
        return a.name, 1 // v


@calls((1,), ("a",), (None,), (2.5,), (True,), ("ab",))
def match_values(v):
    match v:
        case None:
            return "none"
        case True:
            return "true"
        case 1 | 2:
            return "small"
        case str() as s if len(s) == 1:
            return "letter", s
        case float(x):
            return "float", x
        case _:
            return "other"


@calls(([1, 2],), ([1, 2, 3],), ({"k": 5},), ({"k": 5, "o": 1},), ((7, 8),), ({"k": "s"},))
def match_containers(v):
    match v:
        case [a, b]:
            return "pair", a, b
        case [first, *rest]:
            return "list", first, rest
        case {"k": n, **others} if others:
            return "more", n, others
        case {"k": int(n)}:
            return "dict", n
        case _:
            return "other"


@calls(("c", 1), ("s", 5), ("t", [1]), ("u", 0))
def match_classes(kind, size):
    match Shape(kind, size):
        case Shape("c", 1):
            return "unit circle"
        case Shape(kind="s", size=n) if n > 3:
            return "large", n
        case Shape(k, [x]):
            return k, x
        case Shape():
            return "shape"


@calls((3,), (4,))
def while_true(n):
    steps = 0
    while True:
        steps += 1
        if n == 1:
            break
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    return steps, n


@calls((2,), (0,))
def printing(n):
    for i in range(n):
        print("step", i, sep=":")
    print("done", end="!\n")
    return n


@calls((2,), (0,))
def logging_around_errors(n):
    try:
        print("dividing")
        return 10 // n
    except ZeroDivisionError:
        print("failed")
        raise
    finally:
        print("finally")


@calls((1,), (0,))
def exception_groups(v):
    try:
        if v == 0:
            raise ExceptionGroup("group", [ValueError(1), KeyError(2)])
    except* ValueError as group:
        EVENTS.append(len(group.exceptions))
    except* KeyError:
        EVENTS.append("key")
    return v


@calls((3,), (100,))
def stop_iteration_from_next(n):
    it = iter(range(n))
    out = []
    try:
        for _ in range(5):
            out.append(next(it))
    except StopIteration as stop:
        out.append(("stop", stop.value))
    return out, next(it, "default")
