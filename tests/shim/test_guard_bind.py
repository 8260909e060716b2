"""Guard trees with live objects in the place of ids."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import node

from fusee import _shim

KEY, OTHER = object(), object()
OBJECTS = [None, KEY, OTHER]


def bound(*trees: Any, predicates: Any = None) -> Any:
    return _shim.bind_guards(trees, OBJECTS, predicates or {})


def test_objects_stand_in_accessors_and_checks() -> None:
    child = node(("key", ("object", 2)), ("is", ("object", 1)), ("keys", ["a", ("object", 2), 3]))
    trees, noted = bound(node(("object", 1), ("type", ("object", 2)), children=(child,)))
    ((accessor, checks, capture, ((key, child_checks, _, rest),)),) = trees
    assert accessor == ("object", KEY) and capture == -1 and rest == ()
    assert checks == (("type", OTHER),)
    assert key == ("key", OTHER)
    assert child_checks == (("is", KEY), ("keys", ["a", OTHER, 3]))
    assert noted == []


def test_members_are_bare() -> None:
    trees, _ = bound(node(("arg", 0), ("members", [(1,), ("object", 2), ("name",)])))
    assert trees[0][1] == (("members", (1, OTHER, "name")),)


def test_constants_that_sets_are_asked_for_are_bare() -> None:
    trees, _ = bound(node(("arg", 0), ("contains", ((1, 2),)), ("lacks", (None,))))
    assert trees[0][1] == (("contains", (1, 2)), ("lacks", None))


def test_checks_that_python_makes_become_callables_of_their_operands() -> None:
    made: list[Any] = []

    def make(*operands: Any) -> Any:
        made.append(operands)
        return bool

    trees, _ = bound(node(("arg", 0), ("gives", ("object", 1), 5)), predicates={"gives": make})
    assert trees[0][1] == (("predicate", bool),) and made == [(KEY, 5)]


def test_numbers_and_tensors_are_noted_with_the_way_to_them() -> None:
    tensor = ("tensor", ("object", 2), ("float32", "cpu", (2,), (1,), 0, False, 0))
    inner = node(("field", "x"), ("equals", 3), ("equals", True), ("equals", "text"), ("equals", 0.5))
    _, noted = bound(node(("object", 1), children=(inner,)), node(("arg", 1), tensor))
    path = (("object", KEY), ("field", "x"))
    assert noted == [
        (path, ("equals", 3)),
        (path, ("equals", 0.5)),
        ((("arg", 1),), ("tensor", OTHER, tensor[2])),
    ]


@pytest.mark.parametrize("number", [0, -1, 3, 1 << 70, True, "1"])
def test_objects_that_were_never_given_are_refused(number: Any) -> None:
    for tree in (node(("object", number)), node(("arg", 0), ("keys", [("object", number)]))):
        with pytest.raises(LookupError, match="there is no object"):
            bound(tree)


@pytest.mark.parametrize("tree", [5, (), (("arg", 0), (), -1), ("arg", (), -1, ()), (("arg", 0), (5,), -1, ())])
def test_what_is_no_tree_is_refused(tree: Any) -> None:
    with pytest.raises(TypeError):
        bound(tree)


def test_trees_that_are_too_deep_are_refused() -> None:
    tree = node(("arg", 0))
    for _ in range(1000):
        tree = node(("type",), children=(tree,))
    with pytest.raises(ValueError, match="too deep"):
        bound(tree)
