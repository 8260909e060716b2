"""Outputs used again: only when nobody could tell."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from fusee import _shim

FLOAT = 6
SOURCE = """
#include <stdint.h>
int64_t fill(void *const *p, const int64_t *s, int64_t begin, int64_t end) {
    float *out = p[0];
    for (int64_t i = begin; i < end; i++) out[i] = (float)(s[0] + i);
    return 0;
}
"""

Run = Callable[[int], torch.Tensor]


@pytest.fixture(scope="module")
def kernels(compile_object: Callable[..., bytes]) -> bytes:
    return compile_object(SOURCE)


def plan(kernels: bytes, count: Any = 4) -> _shim.LaunchPlan:
    steps = [("alloc", 1, FLOAT, 0, -1, [count], [1]), ("kernel", 0, [1], [("slot", 0)], count)]
    kernel = ("cpu", "fill", kernels)
    return _shim.LaunchPlan({"inputs": 1, "slots": 2, "outputs": [1], "steps": steps, "kernels": [kernel]})


@pytest.fixture
def run(kernels: bytes) -> Run:
    """Fills four floats, counting from the argument."""
    if not _shim.calibrate(torch)["recycles_outputs"]:
        pytest.skip("outputs are not recycled with this torch")
    prepared = plan(kernels)
    return lambda start: prepared(start)[0]


def expected(start: int) -> torch.Tensor:
    return torch.arange(start, start + 4, dtype=torch.float32)


def test_an_output_nobody_holds_is_used_again(run: Run) -> None:
    seen = {id(run(index)) for index in range(20)}
    assert len(seen) <= 2


def test_outputs_that_are_held_are_distinct(run: Run) -> None:
    held = [run(index) for index in range(10)]
    assert len({tensor.data_ptr() for tensor in held}) == 10
    for index, tensor in enumerate(held):
        assert torch.equal(tensor, expected(index))


USES: dict[str, Callable[[torch.Tensor], Any]] = {
    "view": lambda t: t[1:],
    "detached": lambda t: t.detach(),
    "storage": lambda t: t.untyped_storage(),
    "numpy": lambda t: t.numpy(),
    "dlpack": lambda t: torch.from_dlpack(t),
    "saved for a gradient": lambda t: torch.ones(4, requires_grad=True) * t,
    "list": lambda t: [t],
    "closure": lambda t: lambda: t,
    "parameter": lambda t: torch.nn.Parameter(t),
    "alias by data": lambda t: torch.empty(0).set_(t),
    "expanded": lambda t: t.expand(2, 4),
}


@pytest.mark.parametrize("name", list(USES))
def test_what_shares_memory_keeps_its_values(run: Run, name: str) -> None:
    for start in (10, 20, 30):
        output = run(start)
        address = output.data_ptr()
        shared = USES[name](output)
        del output
        later = [run(index) for index in range(5)]
        assert address not in {tensor.data_ptr() for tensor in later}
        del shared


def test_saved_tensors_give_right_gradients(run: Run) -> None:
    leaf = torch.ones(4, requires_grad=True)
    product = leaf * run(7)
    for index in range(5):
        run(index)
    product.sum().backward()
    assert leaf.grad is not None
    assert torch.equal(leaf.grad, expected(7))


def state_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    layout = (tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype, tensor.device)
    flags = (tensor.requires_grad, tensor.is_leaf, tensor.grad_fn, tensor.grad, tensor._version, tensor.is_inference())
    return (*layout, *flags, dict(vars(tensor)), type(tensor), tensor._backward_hooks)


def change_class(tensor: torch.Tensor) -> None:
    tensor.__class__ = torch.nn.Parameter


CHANGES: dict[str, Callable[[torch.Tensor], Any]] = {
    "in place": lambda t: t.add_(1),
    "through a view": lambda t: t[1:].zero_(),
    "attribute": lambda t: setattr(t, "note", 1),
    "deleted attribute": lambda t: (setattr(t, "note", 1), delattr(t, "note")),
    "asked for its dict": lambda t: t.__dict__,
    "requires a gradient": lambda t: t.requires_grad_(),
    "gradient": lambda t: setattr(t, "grad", torch.ones(4)),
    "resized": lambda t: t.resize_(2),
    "reshaped in place": lambda t: t.unsqueeze_(0),
    "other data": lambda t: setattr(t, "data", torch.ones(3)),
    "other storage": lambda t: t.set_(torch.ones(4)),
    "hook": lambda t: t.requires_grad_().register_hook(lambda g: g),
    "class": change_class,
    "shared memory": lambda t: t.share_memory_(),
    "freed storage": lambda t: t.untyped_storage().resize_(0),
}


@pytest.mark.parametrize("name", list(CHANGES))
def test_changes_do_not_show_in_later_outputs(run: Run, name: str) -> None:
    fresh = state_of(run(0))
    for _ in range(4):
        CHANGES[name](run(3))
        for index in range(3):
            output = run(index)
            assert state_of(output) == fresh
            assert torch.equal(output, expected(index))


def test_weak_references_never_see_another_output(run: Run) -> None:
    output = run(5)
    reference = weakref.ref(output)
    del output
    for index in range(6):
        current = run(index)
        assert reference() is not current
    assert reference() is None


def test_inference_mode(run: Run) -> None:
    with torch.inference_mode():
        assert [run(index).is_inference() for index in range(4)] == [True] * 4
    assert [run(index).is_inference() for index in range(4)] == [False] * 4
    with torch.inference_mode():
        assert run(0).is_inference()


def test_large_outputs_are_not_kept(kernels: bytes) -> None:
    prepared = plan(kernels, 1 << 16)
    reference = weakref.ref(prepared(0)[0])
    assert reference() is None
    dynamic = plan(kernels, ("slot", 0))
    assert [dynamic(size)[0].shape[0] for size in (3, 5, 3)] == [3, 5, 3]


def test_one_tensor_as_two_outputs(kernels: bytes) -> None:
    steps = [("alloc", 1, FLOAT, 0, -1, [4], [1]), ("kernel", 0, [1], [("slot", 0)], 4)]
    described = {"inputs": 1, "slots": 2, "outputs": [1, 1], "steps": steps, "kernels": [("cpu", "fill", kernels)]}
    prepared = _shim.LaunchPlan(described)
    for start in range(4):
        first, second = prepared(start)
        assert first is second
        gc.collect()
        assert torch.equal(first, expected(start))


def test_a_view_output_keeps_its_base_from_use(kernels: bytes) -> None:
    steps = [
        ("alloc", 1, FLOAT, 0, -1, [4], [1]),
        ("kernel", 0, [1], [("slot", 0)], 4),
        ("view", 2, 1, [2], [1], 1),
    ]
    described = {"inputs": 1, "slots": 3, "outputs": [2, 1], "steps": steps, "kernels": [("cpu", "fill", kernels)]}
    prepared = _shim.LaunchPlan(described)
    views = [prepared(start)[0] for start in range(6)]
    for start, view in enumerate(views):
        assert torch.equal(view, expected(start)[1:3])


def test_a_plan_frees_what_it_kept(kernels: bytes) -> None:
    prepared = plan(kernels)
    reference = weakref.ref(prepared(0)[0])
    assert reference() is not None
    del prepared
    assert reference() is None


def test_a_cycle_through_a_kept_output_is_collected(kernels: bytes) -> None:
    prepared = plan(kernels)
    output = prepared(0)[0]
    output.plan = prepared  # type: ignore[attr-defined]
    reference = weakref.ref(output)
    del output, prepared
    gc.collect()
    assert reference() is None


def test_threads(run: Run) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for index in range(500):
            output = run(seed + index)
            if not torch.equal(output, expected(seed + index)):
                wrong.append(seed)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in (0, 10_000, 20_000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
