"""Makes a program that fails smaller, as long as it still fails."""

from __future__ import annotations

import ast
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

from variants import copied


def shrink(text: str, fails: Callable[[str], bool], seconds: float = 30) -> str:
    """The smallest program found in a time by dropping statements, blocks, calls and parts of expressions."""
    end = time.monotonic() + seconds
    length = len(text) + 1
    while len(text) < length:
        length, index = len(text), 0
        while (smaller := edited(text, index)) is not None and time.monotonic() < end:
            if len(smaller) < len(text) and fails(smaller):
                text = smaller
            else:
                index += 1
    return text


def edited(text: str, index: int) -> str | None:
    """The program with one thing less, the largest things first; None where there are fewer."""
    tree = copied(ast.parse(text))
    edit = next(itertools.islice(edits(tree), index, None), None)
    if edit is None:
        return None
    edit()
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    except ValueError:  # there is no such program
        return text


def edits(tree: ast.Module) -> Iterator[Callable[[], Any]]:
    """Every way to make a program smaller, as a function that does it."""
    function = tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    decorator = function.decorator_list[0]
    assert isinstance(decorator, ast.Call)
    yield from removals(decorator.args, least=1)
    yield from removals(decorator.keywords, least=0)
    for part in ast.walk(function):
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            block = getattr(part, name, None)
            if isinstance(block, list):
                yield from removals(block, least=1 if name == "body" else 0)
                yield from unwrappings(block)
    for part in ast.walk(function):
        for name, value in ast.iter_fields(part):
            yield from simpler(part, name, value)


def removals(items: list[Any], least: int) -> Iterator[Callable[[], Any]]:
    """Drop one item of a list that keeps at least some, the last ones first."""
    if len(items) > least:
        for index in reversed(range(len(items))):
            yield lambda index=index: items.pop(index)


def unwrappings(block: list[ast.stmt]) -> Iterator[Callable[[], Any]]:
    """Put the statements of a compound statement in its place."""
    for index, statement in enumerate(block):
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if isinstance(inner, list) and inner and not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                yield lambda index=index, inner=inner: block.__setitem__(slice(index, index + 1), inner)


def simpler(part: ast.AST, name: str, value: Any) -> Iterator[Callable[[], Any]]:
    """Put a part of an expression, or a number, in its place."""
    items = value if isinstance(value, list) else [value]
    for index, item in enumerate(items):
        if not isinstance(item, ast.expr) or isinstance(getattr(item, "ctx", None), ast.Store | ast.Del):
            continue
        smaller = [inner for inner in ast.walk(item) if isinstance(inner, ast.expr) and inner is not item]
        for new in [ast.Constant(1), *smaller[:6]]:
            if isinstance(value, list):
                yield lambda index=index, new=new: value.__setitem__(index, new)
            else:
                yield lambda new=new: setattr(part, name, new)
