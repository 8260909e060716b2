"""What autograd says of views and of memory that is written, in programs that random ones were reduced to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fusee

Program = Callable[[torch.Tensor], Any]


def views_made_without_gradients(x: torch.Tensor) -> Any:
    with torch.no_grad():
        squeezed, flat = x.squeeze(0), x.view(-1)[1:]
    return squeezed, flat, x * 2


def view_of_one_made_without_gradients(x: torch.Tensor) -> Any:
    with torch.no_grad():
        flat = x.view(-1)
    return flat[1:], x * 2


@pytest.mark.parametrize("program", [views_made_without_gradients, view_of_one_made_without_gradients])
def test_views_made_without_gradients_are_what_eager_says(program: Program) -> None:
    fusee.reset()
    compiled = fusee.compile(program)
    for _ in range(2):
        x = torch.ones(2, 3, requires_grad=True)
        for given, wanted in zip(compiled(x), program(x), strict=True):
            assert given.requires_grad == wanted.requires_grad and given.is_leaf == wanted.is_leaf
            assert (given.grad_fn is None) == (wanted.grad_fn is None)
            assert (given._base is x) == (wanted._base is x) and torch.equal(given, wanted)


def writes_a_result(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    y.add_(1)
    return y.sum()


def writes_a_result_through_a_view(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    y[0].mul_(2)
    return y.sum()


def writes_a_factor(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y * x
    y += 3
    return y.sum() + z.sum()


def writes_what_it_wrote(x: torch.Tensor) -> torch.Tensor:
    y = (x * 2).relu_()
    y += 3
    return y.sum()


def asks_for_gradients_itself(x: torch.Tensor) -> torch.Tensor:
    writes_a_result(x).backward()
    return x.detach().sum().requires_grad_()


def writes_what_nothing_keeps(x: torch.Tensor) -> torch.Tensor:
    y = (x * 2).sin_()
    y.mul_(x.cos())
    z = torch.nn.functional.silu(x + 1, inplace=True)
    z += y
    return y.sum() + z.sum()


def written_in_a_loop(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    for _ in range(3):
        y.add_(x).mul_(0.5)
    return y.sum()


WRITING = [
    writes_a_result,
    writes_a_result_through_a_view,
    writes_a_factor,
    writes_what_it_wrote,
    asks_for_gradients_itself,
    writes_what_nothing_keeps,
    written_in_a_loop,
]


def gradient_or_error(program: Program) -> Any:
    """The gradient of ones, or what autograd says."""
    x = torch.linspace(-1, 1, 6).view(2, 3).requires_grad_()
    try:
        program(x).backward()
    except RuntimeError as error:
        return str(error)
    assert x.grad is not None
    return x.grad.flatten().tolist()


@pytest.mark.filterwarnings("error::fusee.FuseeWarning")
@pytest.mark.parametrize("program", WRITING)
def test_backward_refuses_what_was_written_as_eager_does(program: Program) -> None:
    fusee.reset()
    wanted = gradient_or_error(program)
    compiled = fusee.compile(program)
    for _ in range(2):
        given = gradient_or_error(compiled)
        assert given == wanted if isinstance(wanted, str) else given == pytest.approx(wanted, rel=1e-6)


def raises_behind_effects(x: torch.Tensor, seen: torch.Tensor, log: list[str]) -> None:
    seen += 1
    y = x.exp()
    z = y.exp()
    log.append("ahead")
    y += z
    y.sum().backward()


def caught_behind_effects(x: torch.Tensor, seen: torch.Tensor, log: list[str]) -> None:
    try:
        raises_behind_effects(x, seen, log)
    except RuntimeError as error:
        log.append(str(error))


def raises_ahead_of_effects(x: torch.Tensor, seen: torch.Tensor, log: list[str]) -> None:
    try:
        (x // 2).sum().backward()
    finally:
        seen += 1
        log.append("behind")
    seen.add_(1)
    log.append("not reached")


@pytest.mark.parametrize("program", [raises_behind_effects, caught_behind_effects, raises_ahead_of_effects])
def test_effects_around_backward_that_raises_are_kept(program: Callable[..., None]) -> None:
    fusee.reset()
    told = []
    for function in (program, *[fusee.compile(program)] * 2):
        log: list[str] = []
        x, seen = torch.ones(2, 3, requires_grad=True), torch.zeros(())
        try:
            function(x, seen, log)
        except RuntimeError as error:
            log.append(f"raised {error}")
        told.append((log, seen.item(), x.grad))
    assert len(told[0][0]) == 2 and told[1] == told[0] and told[2] == told[0]


def written_through_detach(a: torch.Tensor, b: torch.Tensor) -> Any:
    z = a * 2
    y = z.detach()
    y.mul_(b)
    return z, y


def written_through_data_in_a_loop(a: torch.Tensor, b: torch.Tensor) -> Any:
    z = a * 2
    for _ in range(2):
        z.data.mul_(b)
        z = z * 2
    return z


def a_part_written_through_detach(a: torch.Tensor, b: torch.Tensor) -> Any:
    z = a * 2
    y = z.detach()[0]
    y.mul_(b[0])
    z.detach()[1] = b.sum()
    return z, y


def written_through_a_view_made_without_gradients(a: torch.Tensor, b: torch.Tensor) -> Any:
    z = a * 2
    with torch.no_grad():
        y = z[0]
    y.mul_(b[0])
    return z, y


WRITTEN_APART = [
    written_through_detach,
    written_through_data_in_a_loop,
    a_part_written_through_detach,
    written_through_a_view_made_without_gradients,
]


def seen_of(t: torch.Tensor | None) -> Any:
    return None if t is None else (t.tolist(), t.requires_grad, t.is_leaf, t._base is None)


@pytest.mark.parametrize("recorded", [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("program", WRITTEN_APART)
def test_what_is_written_through_detach_has_a_history_of_its_own(
    program: Callable[..., Any], recorded: tuple[bool, bool]
) -> None:
    fusee.reset()
    told = []
    for function in (program, *[fusee.compile(program)] * 2):
        given = [torch.arange(6.0).view(2, 3).requires_grad_(recorded[0]), torch.full((2, 3), 3.0)]
        given[1].requires_grad_(recorded[1])
        try:
            results = function(*given)
            results = results if isinstance(results, tuple) else (results,)
            seen = [*map(seen_of, results)]
            torch.stack([r.sum() for r in results]).sum().backward()
            told.append([*seen, *(seen_of(t.grad) for t in given)])
        except RuntimeError as error:
            told.append([str(error)])
    assert told[1] == told[0] and told[2] == told[0]


def goes_back_beside_a_history(x: torch.Tensor) -> torch.Tensor:
    z = x
    for _ in range(3):
        z = z + 1
        x.sum().backward()
        z.mul_(2)
    return z


def asks_for_the_gradient_of_a_result(x: torch.Tensor) -> torch.Tensor:
    z = x.clone()
    (found,) = torch.autograd.grad((z * 2).sum(), z)
    return z + found


@pytest.mark.parametrize("program", [goes_back_beside_a_history, asks_for_the_gradient_of_a_result])
def test_histories_of_results_at_a_break_are_apart(program: Program) -> None:
    fusee.reset()
    told = []
    for function in (program, *[fusee.compile(program)] * 2):
        x = torch.arange(6.0, requires_grad=True)
        result = function(x)
        result.sum().backward()
        told.append((result.tolist(), x.grad.tolist() if x.grad is not None else None))
    assert told[1] == told[0] and told[2] == told[0]


def bounded(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    return [
        x.clamp(min=0), x.clamp(max=1), x.clamp(0, 1), x.clamp(1, 0), torch.clamp_min(x, 0), torch.clamp_max(x, 1),
        x.clamp(y), x.clamp(max=y), x.clamp(y, y + 1), x.clamp(y, y - 1), x.clamp(y, y), torch.clamp_max(x, y),
        torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y),
    ]  # fmt: skip


def losses(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    functional = torch.nn.functional
    return [
        functional.hinge_embedding_loss(x, y.detach().sign()), functional.margin_ranking_loss(x, y, y.detach().sign()),
        functional.smooth_l1_loss(x, y),
    ]  # fmt: skip


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("program", [bounded, losses])
def test_gradients_at_bounds_and_ties_are_those_of_eager(program: Callable[..., Any], inside: bool) -> None:
    def told(function: Callable[..., list[torch.Tensor]], at: int) -> list[Any]:
        fusee.reset()
        x = torch.tensor([-1.0, 0.0, 0.0, 1.0, 1.0, 2.0, torch.nan, torch.inf, 1.0]).requires_grad_()
        y = torch.tensor([-1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, torch.inf, torch.nan]).requires_grad_()

        def step(x: torch.Tensor, y: torch.Tensor) -> None:
            function(x, y)[at].sum().backward()

        (fusee.compile(step) if inside and function is not program else step)(x, y)
        return [None if v.grad is None else v.grad.nan_to_num(7.0).tolist() for v in (x, y)]

    compiled = (lambda x, y: program(x, y)) if inside else fusee.compile(program)
    for at in range(len(program(torch.ones(2), torch.ones(2)))):
        assert told(compiled, at) == told(program, at), at


def reads_what_it_wrote_through_a_view(x: torch.Tensor, w: torch.Tensor) -> None:
    x += fusee.disable(lambda v: v)(x * w)
    (x @ w).sum().backward()


def test_an_error_about_a_view_that_was_written_is_that_of_eager_alone() -> None:
    told = []
    for function in (reads_what_it_wrote_through_a_view, fusee.compile(reads_what_it_wrote_through_a_view)):
        try:
            function(torch.arange(9.0).view(3, 3), torch.ones(3, 3, requires_grad=True))
            told.append("")
        except RuntimeError as error:
            assert error.__context__ is None
            told.append(str(error))
    assert told[1] == told[0]
