"""Methods such as Tensor.unsqueeze_ change the shape of the very tensor they are called on; capture follows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from outcome import Describer

import fusee


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def every_method(x: Any) -> Any:
    made = x + 1
    same, row = made, made[0]
    assert made.unsqueeze_(1) is same and same.shape == (2, 1, 3)
    made.squeeze_(1).t_()
    made.transpose_(0, 1).swapaxes_(-1, 0)
    return row, same.stride(), same + 1


def written_through_views(x: Any) -> Any:
    made = x * 2
    before = made.view(-1)
    made.t_()
    made[0] = 7.0
    before[-1] += 1.0
    return before, made * 1


def kept_in_a_list(x: Any) -> Any:
    kept = [x.exp()]
    kept[0].unsqueeze_(0)
    return kept[0].shape, torch.cat([kept[0], kept[0]])


PROGRAMS = [every_method, written_through_views, kept_in_a_list]


@pytest.mark.parametrize("function", PROGRAMS)
def test_captured_whole(function: Callable[..., Any]) -> None:
    compiled = fusee.compile(function, fullgraph=True)
    x = torch.arange(6.0).reshape(2, 3)
    assert Describer()(compiled(x)) == Describer()(function(x))


def test_a_reshaped_tensor_that_is_returned_is_no_view() -> None:
    def function(x: Any) -> Any:
        made = x + 1
        made.unsqueeze_(0)
        return made

    x = torch.arange(3.0)
    assert Describer()(fusee.compile(function)(x)) == Describer()(function(x))


def test_gradients() -> None:
    def function(x: Any) -> Any:
        made = x * x
        made.unsqueeze_(0)
        return (made * torch.arange(3.0)).sum()

    given = torch.arange(3.0, requires_grad=True)
    taken = torch.arange(3.0, requires_grad=True)
    function(given).backward()
    fusee.compile(function, fullgraph=True)(taken).backward()
    assert given.grad is not None and taken.grad is not None
    assert torch.equal(given.grad, taken.grad)


def test_an_argument_is_reshaped_for_the_caller() -> None:
    def function(x: Any) -> Any:
        return x.unsqueeze_(0) + 1

    given, taken = torch.ones(3), torch.ones(3)
    assert torch.equal(fusee.compile(function)(taken), function(given))
    assert taken.shape == given.shape == (1, 3)


def test_the_larger_tensor_itself_is_reshaped() -> None:
    def function(x: Any) -> Any:
        first, second = x.sum(), x.mean()
        max(first, second).unsqueeze_(0)
        return first, second

    x = torch.arange(3.0)
    assert Describer()(fusee.compile(function)(x)) == Describer()(function(x))


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_result_resizes_the_tensor_it_is_written_to() -> None:
    """The tensor given as out= takes the shape of the result, and more memory than it had."""

    def function(x: Any, given: Any) -> Any:
        made = torch.tensor(0.0)
        torch.sigmoid(x, out=made)
        torch.neg(x, out=given)
        return made, made.numel(), given.shape, given + made

    x, one, other = torch.arange(15.0).reshape(3, 5), torch.empty(0), torch.empty(0)
    assert Describer()(fusee.compile(function)(x, one)) == Describer()(function(x, other))
    assert torch.equal(one, other)


def test_an_operation_that_reshapes_within_itself() -> None:
    """torch.stft transposes what it computed in place."""

    def function(x: Any) -> Any:
        found = torch.stft(x, 8, 2, window=torch.hann_window(8), return_complex=True)
        return found.abs(), torch.istft(found, 8, 2, window=torch.hann_window(8))

    x = torch.randn(2, 32)
    given, wanted = fusee.compile(function)(x), function(x)
    assert [tensor.stride() for tensor in given] == [tensor.stride() for tensor in wanted]
    torch.testing.assert_close(given, wanted)
