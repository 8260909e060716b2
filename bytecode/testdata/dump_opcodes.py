"""Print CPython's own table of opcodes as JSON: what opcode_table.go must agree with."""

import json
import opcode
from opcode import _inline_cache_entries, _nb_ops  # type: ignore[attr-defined]

ARGUMENTS = [0, 1, 2, 3, 4, 5, 7, 8, 15, 255, 256, 513]

KINDS = {
    "constant": opcode.hasconst,
    "name": opcode.hasname,
    "jump": opcode.hasjrel,
    "local": opcode.haslocal,
    "variable": opcode.hasfree,
    "comparison": opcode.hascompare,
}


def row(name: str, number: int) -> dict[str, object]:
    """What CPython knows about one opcode."""
    takes_argument = number >= opcode.HAVE_ARGUMENT
    arguments = ARGUMENTS if takes_argument else [None]
    return {
        "number": number,
        "name": name,
        "caches": _inline_cache_entries[number],
        "has_argument": takes_argument,
        "kind": next((kind for kind, members in KINDS.items() if number in members), ""),
        "effects": [opcode.stack_effect(number, argument, jump=False) for argument in arguments],
        "jump_effects": [opcode.stack_effect(number, argument, jump=True) for argument in arguments],
    }


print(
    json.dumps(
        {
            "arguments": ARGUMENTS,
            "comparisons": opcode.cmp_op,
            "operators": [symbol for _, symbol in _nb_ops],
            "opcodes": [row(name, number) for name, number in sorted(opcode.opmap.items(), key=lambda item: item[1])],
        },
        indent=None,
        separators=(",", ":"),
    )
)
