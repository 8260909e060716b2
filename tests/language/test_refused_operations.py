"""Operations that eager refuses raise its exceptions, at their own line, also where fake tensors accept them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from outcome import run

import fusee

TRUTHS = torch.tensor([[True, False, True]])


def outcome_of(function: Callable[[], Any], log: list[Any]) -> None:
    try:
        log.append(function())
    except Exception as error:
        log.extend((type(error), str(error)))


def subtraction(x: torch.Tensor, truths: torch.Tensor, log: list[Any]) -> None:
    outcome_of(lambda: x - truths, log)
    outcome_of(lambda: x.sub_(truths), log)
    outcome_of(lambda: 1 - truths, log)


def a_dimension_that_is_not_there(x: torch.Tensor, log: list[Any]) -> None:
    x.square().sort(7)
    log.append("sorted")


def of_truths(truths: torch.Tensor, log: list[Any]) -> None:
    for function in (torch.argmax, torch.relu, torch.topk, torch.trace, torch.softmax, torch.floor, torch.mean):
        outcome_of(functools.partial(function, truths), log)
    outcome_of(lambda: truths @ truths.t(), log)
    outcome_of(lambda: torch.addcmul(truths, truths, truths), log)


def behind_what_is_written(x: torch.Tensor, truths: torch.Tensor, log: list[Any]) -> torch.Tensor:
    x += 1
    y = truths.relu()
    log.append("computed")
    return y


def within_its_own_memory(x: torch.Tensor, log: list[Any]) -> torch.Tensor:
    y = x + 1
    log.append(y)
    x.index_add_(0, torch.tensor([0]), x[:1])
    y = y * 2
    return y


def scattered_from_itself(x: torch.Tensor) -> torch.Tensor:
    x.scatter_(0, torch.zeros(1, 3, dtype=torch.long), x[:1])
    return x + 1


def rows_that_overlap(x: torch.Tensor, log: list[Any]) -> torch.Tensor:
    x += 1
    try:
        raise ValueError(len(log))
    except ValueError as error:
        log.append(error)
        x[1:].add_(x[:-1])
    return x


def the_same_elements_in_another_shape(x: torch.Tensor) -> torch.Tensor:
    x += x.reshape(-1).add_(1)
    return x


def one_row_from_another(x: torch.Tensor) -> torch.Tensor:
    x[0].add_(x[1])
    return x


def a_row_added_to_all(x: torch.Tensor, index: int) -> torch.Tensor:
    x.add_(x[index])
    return x


def part_of_it_transposed(x: torch.Tensor) -> torch.Tensor:
    x.sub_(torch.tensor_split(x, 2)[0].mT)
    return x


def a_column_added_to_all(x: torch.Tensor) -> torch.Tensor:
    x += x[:1].narrow(1, 0, 1)
    return x


@fusee.disable
def left_to_python(x: torch.Tensor) -> None:
    x.add_(1)


def a_row_from_before_a_break(x: torch.Tensor, index: int) -> torch.Tensor:
    row = x[index]
    left_to_python(row)
    row.copy_(row * 3)
    x.add_(row)
    return x


def sums_of_itself_the_other_way(x: torch.Tensor) -> torch.Tensor:
    x.cumsum_(0)
    torch.cumsum(x.t(), 0, out=x)
    return x


def a_product_with_itself(x: torch.Tensor) -> torch.Tensor:
    x = x * 1
    x.addmm_(x.t(), x)
    return x


def resized_for_what_is_written(x: torch.Tensor) -> torch.Tensor:
    torch.add(torch.ones(1), torch.ones(1, 3), out=x)
    return x


def the_only_one_of_several_views(x: torch.Tensor, log: list[Any]) -> Any:
    log.append(torch.autograd.grad(x.sum(), x)[0].sum())
    (piece,) = (x.view(1, -1) ** 2).unbind()
    outcome_of(lambda: piece.mul_(2), log)


def a_list_in_itself(x: torch.Tensor, items: list[Any], log: list[Any]) -> None:
    items.append(items)
    outcome_of(lambda: torch.tensor(items), log)
    outcome_of(lambda: torch.cat(items), log)
    items.clear()


def an_index_behind_what_is_written(x: torch.Tensor, index: torch.Tensor, log: list[Any]) -> Any:
    x += 1
    log.append("ahead")
    return (x * 2)[index]


def an_index_that_is_caught(x: torch.Tensor, index: torch.Tensor, log: list[Any]) -> Any:
    x += 1
    try:
        log.append("ahead")
        return (x * 2)[index] + 1
    except IndexError:
        log.append("caught")
    return x


def an_index_behind_random_numbers(x: torch.Tensor, index: torch.Tensor, log: list[Any]) -> Any:
    torch.manual_seed(1)
    y = torch.nn.functional.dropout(x)
    outcome_of(lambda: y[index].sum(), log)
    return y, torch.rand(2)


def an_index_ahead_of_what_is_written(x: torch.Tensor, index: torch.Tensor, log: list[Any]) -> Any:
    log.append("ahead")
    y = (x * 2)[index]
    x += 1
    return y.sum() + x


INDEXED = [(torch.ones(3), torch.tensor([at]), []) for at in (1, 7)]
LARGE = [(torch.ones(20000), torch.tensor([at]), []) for at in (1, 20001)]  # what is written there is not kept

CALLS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (subtraction, [(torch.ones(2, 3), TRUTHS, []), (torch.ones(()), TRUTHS, []), (TRUTHS, TRUTHS, [])]),
    (a_dimension_that_is_not_there, [(torch.ones(3), []), (torch.tensor(1.0), [])]),
    (of_truths, [(TRUTHS, []), (TRUTHS.float(), [])]),
    (behind_what_is_written, [(torch.ones(3), TRUTHS, []), (torch.ones(3), TRUTHS.float(), [])]),
    (within_its_own_memory, [(torch.ones(2, 3), [])]),
    (scattered_from_itself, [(torch.ones(2, 3),)]),
    (rows_that_overlap, [(torch.ones(3, 2), [])]),
    (the_same_elements_in_another_shape, [(torch.ones(1, 3),), (torch.ones(3),)]),
    (resized_for_what_is_written, [(torch.ones(3),), (torch.ones(1, 3),)]),
    (one_row_from_another, [(torch.ones(2, 3),), (torch.ones(4, 2),), (torch.ones(2, 0),)]),
    (a_row_added_to_all, [(torch.ones(4, 2), 0), (torch.ones(5, 3), 3), (torch.ones(1, 2), 0)]),
    (part_of_it_transposed, [(torch.ones(2, 3),), (torch.ones(4, 2),), (torch.ones(1, 2),)]),
    (a_column_added_to_all, [(torch.ones(2, 3),), (torch.ones(4, 1),), (torch.ones(1, 1),)]),
    (a_row_from_before_a_break, [(torch.ones(4, 3), 3), (torch.ones(4, 3), 1)]),
    (sums_of_itself_the_other_way, [(torch.arange(9.0).view(3, 3),)]),
    (the_only_one_of_several_views, [(torch.ones(3, requires_grad=True), [])]),
    (a_list_in_itself, [(torch.ones(3), [], []), (torch.ones(3), [1.0], [])]),
    (an_index_behind_what_is_written, INDEXED),
    (an_index_that_is_caught, [*INDEXED, *LARGE]),
    (an_index_behind_random_numbers, [*INDEXED, *LARGE]),
    (an_index_ahead_of_what_is_written, [*INDEXED, *LARGE]),
    (a_product_with_itself, [(torch.ones(3, 3),), (torch.ones(1, 1),)]),
]


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")  # what runs as plain Python is the same anyway
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(("function", "calls"), CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_same_as_plain(function: Callable[..., Any], calls: list[tuple[Any, ...]], dynamic: bool | None) -> None:
    fusee.reset()
    compiled = fusee.compile(function, dynamic=dynamic)
    for arguments in calls:
        assert run(compiled, arguments, {}, __file__) == run(function, arguments, {}, __file__)


def test_one_row_from_another_is_captured() -> None:
    """Rows of one tensor share memory and do not overlap."""
    assert torch.equal(
        fusee.compile(one_row_from_another, fullgraph=True)(torch.ones(2, 3)),
        torch.ones(2, 3) + torch.tensor([[1.0], [0.0]]),
    )


def test_singular_matrices_are_captured() -> None:
    """They are refused for what they hold: the operation is tried out on matrices that are singular."""
    matrix = torch.eye(3) * 2
    assert torch.equal(fusee.compile(torch.linalg.inv, fullgraph=True)(matrix), torch.linalg.inv(matrix))
    assert torch.equal(fusee.compile(torch.linalg.solve, fullgraph=True)(matrix, matrix), torch.eye(3))


def test_an_index_behind_much_that_is_written_is_shown_at_its_own_line() -> None:
    fusee.reset()
    compiled = fusee.compile(an_index_behind_what_is_written)
    for arguments in LARGE[1:] * 2:
        with pytest.raises(IndexError) as wanted:
            an_index_behind_what_is_written(torch.ones(20000), *arguments[1:])
        with pytest.raises(IndexError) as given:
            compiled(torch.ones(20000), *arguments[1:])
        assert given.traceback[-1].lineno == wanted.traceback[-1].lineno


def test_arguments_that_share_memory_are_written_as_by_eager() -> None:
    def writes_both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x += 1
        y.mul_(2)
        return x + y

    fusee.reset()
    compiled = fusee.compile(writes_both)
    for _ in range(2):
        assert compiled(torch.ones(2), torch.ones(2)).tolist() == [4.0, 4.0]
        whole = torch.ones(3)
        assert compiled(whole, whole).tolist() == [8.0, 8.0, 8.0]
        assert compiled(whole[:2], whole[1:]).tolist() == [15.0, 18.0]


def test_a_leaf_is_changed_where_gradients_are_on_again() -> None:
    def changed(x: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            fusee.graph_break()
        leaf.zero_()
        return x + 1

    fusee.reset()
    compiled = fusee.compile(changed)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            compiled(torch.ones(3), torch.ones(3, requires_grad=True))
    leaf = torch.ones(3)
    assert torch.equal(compiled(torch.ones(3), leaf), torch.full((3,), 2.0))
    assert torch.equal(leaf, torch.zeros(3))
