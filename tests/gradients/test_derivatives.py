"""Every row of the derivative table against eager's gradients in float64 and against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from samples import Sample, arguments, operator, samples
from torch import Tensor

import fusee

LISTING = Path(__file__).parents[2] / "graph" / "testdata" / "derivatives.txt"
TARGETS = [line for line in LISTING.read_text().splitlines() if not line.startswith(" ")]

# Operators that stand for others where gradients are wanted, and the operator that leads to them.
REACHED_BY = {
    "aten.native_layer_norm.default": "aten.layer_norm.default",
    "aten.native_group_norm.default": "aten.group_norm.default",
    "aten.native_batch_norm.default": "aten.batch_norm.default",
    "aten.nll_loss_forward.default": "aten.nll_loss_nd.default",
    "aten.nll_loss2d_forward.default": "aten.nll_loss_nd.default",
    "aten.max_pool2d_with_indices.default": "aten.max_pool2d.default",
    "aten._scaled_dot_product_flash_attention_for_cpu.default": "aten.scaled_dot_product_attention.default",
    "aten.rrelu_with_noise_functional.default": "aten.rrelu.default",
}
# Attention and dropout on a GPU, tested there.
ON_A_GPU = [f"aten._scaled_dot_product_{kernel}_attention.default" for kernel in ("flash", "cudnn", "efficient")]
ON_A_GPU.append("aten.native_dropout.default")
# Tested with the random numbers of eager.
WITH_RANDOM_NUMBERS = ("aten.dropout.default", "aten.bernoulli.default", "aten.rrelu.default")
IN_MODULES = ("aten.mkldnn_rnn_layer.default",)  # of float32 alone: tested in test_recurrent.py
# Eager differentiates these by other formulas while gradients are recorded: tested as second derivatives.
NOT_CALLED = ("aten.hardsigmoid_backward.default", "aten.silu_backward.default")
CASES = [
    pytest.param(target, make, id=f"{target.removeprefix('aten.')}-{number}")
    for target in TARGETS
    if target not in REACHED_BY and target not in ON_A_GPU and target not in WITH_RANDOM_NUMBERS
    if target not in (*NOT_CALLED, *IN_MODULES)
    for number, make in enumerate(samples(target))
]


def call(target: str, given: Sample) -> tuple[Callable[..., Any], list[Tensor]]:
    """A function of the tensors that gradients are wanted of, and these tensors."""
    bound = arguments(target, given)
    fixed = given.get("fixed", ())
    places: list[tuple[str, int | None]] = [
        (name, None) for name, value in bound.items() if name not in fixed and is_real(value)
    ]
    places += [
        (name, k)
        for name, value in bound.items()
        if type(value) is list
        for k, item in enumerate(value)
        if is_real(item)
    ]
    op = operator(target)

    def run(*tensors: Tensor) -> Any:
        filled = {name: list(value) if type(value) is list else value for name, value in bound.items()}
        for (name, k), tensor in zip(places, tensors, strict=True):
            if k is None:
                filled[name] = tensor
            else:
                filled[name][k] = tensor
        outcome = op(**filled)
        # Views of inputs alone are no work that autograd would compile.
        return [result * 1.5 for result in real_results(outcome)]

    return run, [(bound[name] if k is None else bound[name][k]).requires_grad_() for name, k in places]


def is_real(value: Any) -> bool:
    """Whether gradients can be asked of a value."""
    return isinstance(value, Tensor) and value.is_floating_point()


def real_results(outcome: Any) -> list[Tensor]:
    """The results that gradients flow into."""
    results = list(outcome) if isinstance(outcome, (tuple, list)) else [outcome]
    return [result for result in results if result.is_floating_point() and result.requires_grad]


def gradients(function: Callable[..., Any], tensors: list[Tensor]) -> list[Tensor]:
    """Gradients of a sum of the results, each element weighted in its own way."""
    results = function(*tensors)
    weights = [torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).reshape(result.shape) for result in results]
    return list(torch.autograd.grad(results, tensors, weights))


@pytest.mark.parametrize(("target", "make"), CASES)
def test_gradients(target: str, make: Callable[[], Sample], trained: list[dict[str, Any]]) -> None:
    """They equal eager's, and differences of results over differences of arguments unless the sample sits on a kink."""
    torch.manual_seed(0)
    given = make()
    run, tensors = call(target, given)
    compiled = fusee.compile(run, fullgraph=True)
    expected, found = gradients(run, tensors), gradients(compiled, tensors)
    assert trained, fusee.explain(run)(*tensors).graphs[0].get("why")
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-12)
    if "kink" not in given and not given.get("training"):
        torch.autograd.gradcheck(lambda *inputs: tuple(compiled(*inputs)), tensors, fast_mode=True)


@pytest.mark.parametrize(("target", "by"), REACHED_BY.items())
def test_operators_that_stand_for_others_are_reached(target: str, by: str) -> None:
    """So that their rows are tested by the operators that they stand for."""
    joint = ""
    for make in samples(by):
        run, tensors = call(by, make())
        joint += fusee.explain(run)(*tensors).graphs[0]["training"]["joint"]
    assert target in joint
