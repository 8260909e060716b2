"""Programs, and variants of them in which one expression is computed outside of what is captured."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcome import Describer

import fusee

PROGRAMS = Path(__file__).with_name("programs")


@fusee.disable
def opaque(value: Any) -> Any:
    """The value, through a call that breaks the graph."""
    return value


@dataclass
class Program:
    """A function of a file of programs, with the definitions of that file that it reaches."""

    name: str
    filename: str
    definitions: list[ast.stmt]
    calls: list[tuple[Any, ...]]
    given: list[ast.expr]
    """The arguments of each call as they are written."""
    words: dict[str, Any] = field(default_factory=dict)
    """Options of ``@calls``: ``whole`` and those of ``fusee.compile``."""
    expressions: list[tuple[int, int, int, int]] = field(default_factory=list)

    def namespace(self, wrapped: tuple[int, int, int, int] | None = None) -> dict[str, Any]:
        """Run the definitions afresh, with one expression made opaque."""
        module = ast.Module(self.definitions, [])
        if wrapped is not None:
            module = Wrap(wrapped).visit(copied(module))
        space: dict[str, Any] = {"__name__": "programs", "opaque": opaque, **observer()}
        exec(compile(ast.fix_missing_locations(module), self.filename, "exec"), space)
        return space

    def arguments(self, space: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The arguments of each call, made of a namespace's own classes."""
        return [eval(compile(ast.Expression(item), "calls", "eval"), space) for item in self.given]


def observer(exact: bool = False) -> dict[str, Any]:
    """A function that breaks the graph and writes down what its arguments hold at that moment, and where."""
    observed: list[Any] = []

    @fusee.disable
    def observe(*values: Any) -> None:
        observed.append(Describer(exact)(values))

    return {"observe": observe, "OBSERVED": observed}


def copied(tree: Any) -> Any:
    """A copy of a syntax tree."""
    if isinstance(tree, list):
        return [copied(item) for item in tree]
    if not isinstance(tree, ast.AST):
        return tree
    twin = type(tree)(**{name: copied(value) for name, value in ast.iter_fields(tree)})
    return ast.copy_location(twin, tree)


def span(node: ast.expr) -> tuple[int, int, int, int]:
    """Where an expression stands."""
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


class Wrap(ast.NodeTransformer):
    """Puts ``opaque(...)`` around the outermost expression that stands in a place."""

    def __init__(self, place: tuple[int, int, int, int]) -> None:
        self.place = place

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and span(node) == self.place and can_wrap(node):
            call = ast.Call(ast.Name("opaque", ast.Load()), [node], [])
            return ast.fix_missing_locations(ast.copy_location(call, node))
        return super().visit(node)


def can_wrap(node: ast.AST) -> bool:
    """Whether an expression can be the argument of a call."""
    if not isinstance(node, ast.expr) or isinstance(node, ast.Starred | ast.Slice | ast.JoinedStr | ast.FormattedValue):
        return isinstance(node, ast.JoinedStr)
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def expressions(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that are computed when a function runs; patterns, annotations and parts of texts are not."""
    match node:
        case ast.FunctionDef():
            parts: list[ast.AST] = list(node.body)
        case ast.ClassDef():
            parts = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        case ast.match_case():
            parts = [*([node.guard] if node.guard else []), *node.body]
        case ast.JoinedStr():
            parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        case ast.AnnAssign():
            parts = [node.value] if node.value else []
        case _:
            parts = list(ast.iter_child_nodes(node))
    if can_wrap(node) and not is_docstring(node):
        yield node  # type: ignore[misc]
    for part in parts:
        yield from expressions(part)


def is_docstring(node: ast.AST) -> bool:
    """Whether an expression is a text that nobody computes."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value


def names_of(node: ast.AST) -> set[str]:
    """Every name that a definition mentions."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def defined(node: ast.stmt) -> list[str]:
    """The names that a statement of a module gives a value."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def reached(start: ast.stmt, table: dict[str, ast.stmt]) -> set[str]:
    """The module's names that a definition needs, directly or through others."""
    found: set[str] = set()
    work = [start]
    while work:
        for name in names_of(work.pop()) & table.keys() - found:
            found.add(name)
            work.append(table[name])
    return found


def calls_of(function: ast.FunctionDef) -> ast.Call | None:
    """The decorator ``@calls(...)``; None for helper functions."""
    return next((item for item in function.decorator_list if isinstance(item, ast.Call) and is_calls(item)), None)


def words_of(decorator: ast.Call) -> dict[str, Any]:
    """The options in ``@calls(...)``."""
    return {word.arg: ast.literal_eval(word.value) for word in decorator.keywords if word.arg}


def is_calls(decorator: ast.expr) -> bool:
    """Whether a decorator is ``@calls(...)``."""
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "calls"


def programs(path: Path) -> Iterator[Program]:
    """The programs of a file."""
    return parsed(path.read_text(), str(path))


def parsed(text: str, filename: str) -> Iterator[Program]:
    """The programs in the text of a module."""
    tree = ast.parse(text)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    table = {name: node for node in tree.body if node not in imports for name in defined(node)}
    space: dict[str, Any] = {"__name__": "programs", "calls": lambda *sets, **words: lambda function: function}
    exec(compile(tree, filename, "exec"), space)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and (found := calls_of(node)) is not None:
            bare = copied(node)
            bare.decorator_list = [item for item in node.decorator_list if not is_calls(item)]
            needed = (reached(bare, table) | reached(ast.Expr(found), table)) - {node.name}
            others = [part for part in tree.body if part not in imports and set(defined(part)) & needed]
            kept = [part for part in imports if "calls" not in {name.name for name in part.names}]
            definitions = [*kept, *others, bare]
            bodies = [part for part in [*others, bare] if not isinstance(part, ast.Assign)]
            places = dict.fromkeys(span(item) for part in bodies for item in expressions(part))
            program = Program(node.name, filename, definitions, [], found.args, words_of(found), list(places))
            program.calls = program.arguments(space)
            yield program


@functools.lru_cache
def corpus() -> dict[str, Program]:
    """Every program by name."""
    files = sorted(PROGRAMS.glob("[a-z]*.py"))
    return {f"{path.stem}.{program.name}": program for path in files for program in programs(path)}


def compiled(space: dict[str, Any], program: Program) -> Callable[..., Any]:
    """A program's function, compiled."""
    function = space[program.name]
    assert type(function) is types.FunctionType, "a program is a plain function"
    return fusee.compile(function, **{name: word for name, word in program.words.items() if name != "whole"})
