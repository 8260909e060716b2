"""Functions: closures, arguments, decorators, recursion."""

import functools
from collections.abc import Callable
from typing import Any

from programs import calls

COUNT = 0
LOG: list[Any] = []


def adder(n: int) -> Callable[[int], int]:
    def add(x: int) -> int:
        return x + n

    return add


def twice(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs), function(*args, **kwargs)

    return wrapper


def tagged(tag: str) -> Any:
    def decorate(function: Any) -> Any:
        def inner(x: Any) -> Any:
            return tag, function(x)

        return inner

    return decorate


@tagged("outer")
@twice
def decorated(x: int) -> int:
    """Doubles."""
    return x * 2


def many(a: Any, b: Any = 2, /, c: Any = 3, *rest: Any, d: Any, e: Any = 5, **others: Any) -> Any:
    return a, b, c, rest, d, e, others


def plain(a: Any, b: Any, c: Any = 7) -> Any:
    return [a, b, c]


def keyword_only(*, key: Any, other: Any = None) -> Any:
    return key, other


@calls((3, 4), (10, -1), (2.5, 1))
def closure(a, b):
    add = adder(a)
    return add(b) + adder(1)(b)


@calls((3,), (0,))
def nonlocal_counter(n):
    count = 0

    def step(by):
        nonlocal count
        count += by
        return count

    for i in range(n):
        step(i)
    return step(1), count


@calls((1,), (2,))
def cells_shared_by_two_functions(x):
    state = [x]

    def put(v):
        nonlocal state
        state = state + [v]

    def get():
        return state

    put(x * 2)
    first = get()
    put(x * 3)
    return first, get(), put, get


@calls((3,), (1,))
def late_binding(n):
    functions = [lambda: i for i in range(n)]
    bound = [lambda i=i: i for i in range(n)]
    return [f() for f in functions], [f() for f in bound]


@calls((1, 2), ("a", "b"))
def argument_kinds(x, y):
    args = (x, y)
    words = {"d": y, "z": x}
    return many(x, d=y), many(*args, **words), many(x, y, x, y, x, d=1, e=2, q=3), plain(y, b=x), plain(*args, c=0)


@calls((1,))
def missing_argument(x):
    return plain(x)


@calls((1,))
def too_many_arguments(x):
    return plain(x, x, x, x)


@calls((1,))
def unexpected_keyword(x):
    return plain(x, x, z=x)


@calls((1,))
def multiple_values(x):
    return plain(x, x, a=x)


@calls((1,))
def missing_keyword_only(x):
    return keyword_only(other=x)


@calls((1,))
def positional_to_keyword_only(x):
    return keyword_only(x)


@calls((1,))
def positional_only_by_name(x):
    return many(a=x, d=1)


@calls((1,))
def missing_several(x):
    return many(), x


@calls((1,), (2,))
def keyword_given_twice(x):
    words = {"key": x}
    return keyword_only(key=x, **words)


@calls((1,), (2,))
def stars_twice(x):
    return plain(*[x], *(x + 1, x + 2)), many(*range(x), d=0, **{"k": 1}, **{"m": 2})


@calls((1,), ("ab",))
def decorators(x):
    return decorated(x)


@calls((5,), (7,))
def partials(x):
    p = functools.partial(plain, x, c=1)
    q = functools.partial(p, 9, c=2)
    return p(2), p(2, c=3), q(), q.func is plain, q.args, q.keywords


@calls((5,))
def partial_result(x):
    return functools.partial(plain, x, c=[1])


@calls((6,), (1,))
def recursion(n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(n)


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@calls((1, 2), (2, 1))
def recursion_of_a_global(m, n):
    return ackermann(m, n)


@calls((2,), (-3,))
def lambdas(x):
    f = lambda a, *b, c=x: (a, b, c)  # noqa: E731
    return f(1), f(1, 2, c=3), (lambda: x)(), sorted([3, 1, 2], key=lambda v: -v * x)


@calls((4,), (5,))
def mutable_default(x):
    def collect(v, into=[]):  # noqa: B006
        into.append(v)
        return into

    collect(x)
    return collect(x + 1), collect.__defaults__


@calls((1,), (2,))
def globals_written(x):
    global COUNT
    COUNT += x
    LOG.append(COUNT)
    before = COUNT
    COUNT = before * 2
    return COUNT


@calls((1,), (2,))
def global_deleted(x):
    global TEMPORARY
    TEMPORARY = x
    first = TEMPORARY
    del TEMPORARY
    try:
        return TEMPORARY
    except NameError as error:
        return str(error), first


@calls((1,))
def unbound_local(x):
    if x > 5:
        y = 1
    return y


@calls((1,))
def deleted_local(x):
    y = x
    del y
    return y


@calls((1,))
def deleted_cell(x):
    def read():
        return y

    y = x
    first = read()
    del y
    try:
        read()
    except NameError as error:
        return str(error), first


@calls((1,))
def undefined_name(x):
    return x + not_defined_anywhere  # noqa: F821


@calls((1,), (0,))
def function_attributes(x):
    def f():
        return f.value

    f.value = x
    f.other = [x]
    return f(), f.__name__, f.__qualname__, f


@calls((3,))
def returned_closure(x):
    items = [x]

    def get(y: int = 2, *, z: str = "z") -> list:
        """Has text."""
        return items + [x, y, z]

    return get, get(), items


@calls((3, 2), (2, 0))
def three_frames_deep(x, y):
    def third(v):
        w = v + 1
        return w // y + w

    def second(v):
        total = 1
        for k in range(2):
            total += third(v + k) * 2
        return [total, v]

    def first(v):
        a = v * 2
        b = second(a)
        return a, b

    return first(x), x


@calls((1,), (2,), ("s",))
def walrus(x):
    values = [y := x * 2, y * 2]
    if (n := len(values)) > 1:
        values.append(n)
    found = [last := v for v in values]
    return values, found, last, n


@calls((1, 2), (5, 3))
def conditional_expressions(a, b):
    return (a if a > b else b), (a and b), (a or b), not a, a < b < 10, a > b > 0, (a, b) if a else ()


@calls((1,), (None,), (0,))
def none_tests(x):
    first = 1 if x is None else 2
    second = 3 if x is not None else 4
    while x is None:
        x = 5
    return first, second, x


@calls((3,), (-3,))
def assertions(x):
    assert x > 0, f"{x} is not positive"
    assert isinstance(x, int)
    return x


@calls((0,), (4,))
def bare_assertion(x):
    assert x
    return x


@calls((2,), (3,))
def compose(x):
    def composed(*functions):
        return functools.reduce(lambda f, g: lambda v: f(g(v)), functions)

    return composed(lambda v: v + 1, lambda v: v * 2, str.__len__)("abc" * x)
