"""Makes small random programs from a grammar, as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Choose = Callable[[Sequence[Any]], Any]
HOLE = re.compile(r"\$([a-zA-Z])")


def rows(text: str) -> list[str]:
    """The templates of a text that has one in each line."""
    return [line for line in text.splitlines() if line]


@dataclass(frozen=True)
class Grammar:
    """What programs of one kind are made of.

    Templates are text with holes: ``$i`` is filled with an expression of kind ``i``, ``$x`` with one of any of the
    kinds in ``anything``, ``$t`` with a name to assign to, and in blocks a capital letter with the statements of a
    block.
    """

    header: str
    """Definitions ahead of the program."""
    parameters: str
    """Parameters of the program's function."""
    pools: Sequence[Sequence[str]]
    """For each parameter, what a call may give it."""
    start: str
    """The first lines of the function."""
    result: str
    """What the function returns at its end."""
    expressions: Mapping[str, Sequence[str]]
    """Templates of expressions by kind."""
    short: Mapping[str, str]
    """The template of each kind where an expression must end."""
    words: Mapping[str, Sequence[str]]
    """Holes that are filled with one of some words."""
    anything: Sequence[str]
    """Kinds of expressions that ``$x`` stands for."""
    simple: Sequence[str]
    """Templates of statements."""
    blocks: Sequence[str]
    """Templates of compound statements."""
    extra: Mapping[str, Sequence[str]]
    """By the letter of a block: statements that only this kind of block may hold."""
    options: Sequence[str] = field(default=("",))
    """Further arguments of ``@calls``, one of which is chosen."""


class Writer:
    """Writes one program; every choice comes from outside."""

    def __init__(self, choose: Choose, grammar: Grammar) -> None:
        self.choose = choose
        self.grammar = grammar
        self.budget = 60

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a kind; ``x`` is any."""
        if kind == "x":
            kind = self.choose(self.grammar.anything)
        self.budget -= 1
        if depth <= 0 or self.budget <= 0:
            return self.fill(self.grammar.short[kind], 0)
        return self.fill(self.choose(self.grammar.expressions[kind]), depth - 1)

    def fill(self, template: str, depth: int) -> str:
        """A template with its holes filled in."""
        return HOLE.sub(lambda match: self.hole(match[1], depth), template)

    def hole(self, hole: str, depth: int) -> str:
        """What stands for one hole of an expression or a simple statement."""
        words = self.grammar.words.get(hole)
        return self.choose(words) if words else self.expression(hole, depth)

    def block(self, depth: int, extra: Sequence[str], indent: str) -> str:
        """The indented statements of a block; ``extra`` are statements that only this kind of block may hold."""
        lines = [self.statement(depth - 1) for _ in range(self.choose([1, 1, 2]))]
        if extra:
            lines.insert(self.choose([0, 1]), self.fill(self.choose(extra), 1))
        text = "\n".join(lines)
        return "\n" + "\n".join(indent + line for line in text.splitlines()) + "\n"

    def statement(self, depth: int) -> str:
        """A statement."""
        self.budget -= 1
        if depth <= 0 or self.budget <= 0 or self.choose([True, True, False]):
            return self.fill(self.choose(self.grammar.simple), 2)
        return HOLE.sub(lambda match: self.part(match, depth), self.choose(self.grammar.blocks))

    def part(self, match: re.Match[str], depth: int) -> str:
        """What stands for one hole of a compound statement."""
        if match[1] not in self.grammar.extra:
            return self.hole(match[1], 2)
        line = match.string[: match.start()].rpartition("\n")[2]
        indent = line[: len(line) - len(line.lstrip())] + ("    " if line.endswith(":") else "")
        return self.block(depth, self.grammar.extra[match[1]], indent)

    def calls(self) -> str:
        """The arguments of ``@calls``: those of three to five calls, and an option."""
        sets = [
            "(" + ", ".join(self.choose(pool) for pool in self.grammar.pools) + ",)"
            for _ in range(self.choose([3, 4, 5]))
        ]
        return ", ".join([*sets, *filter(None, [self.choose(self.grammar.options)])])

    def program(self) -> str:
        """The text of a module with one program."""
        body = "\n".join(self.statement(3) for _ in range(self.choose([2, 3, 4, 5])))
        lines = [*self.grammar.start.splitlines(), *body.splitlines(), f"return {self.grammar.result}"]
        return (
            f"{self.grammar.header}\n\n@calls({self.calls()})\ndef generated({self.grammar.parameters}):\n"
            + "\n".join("    " + line for line in lines)
            + "\n"
        )
