"""Launch plans on a GPU: kernels, streams, devices, graphs, errors."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from fusee import _shim

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

FLOAT, CUDA = 6, 1

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 out, .param .f64 factor, .param .u64 work)
{
    .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<8>; .reg .f32 %f<3>; .reg .f64 %g;
    ld.param.u64 %d1, [x]; ld.param.u64 %d2, [out]; ld.param.f64 %g, [factor]; ld.param.u64 %d3, [work];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.wide.u32 %d4, %r1, %r2, 0; cvt.u64.u32 %d5, %r3; add.u64 %d4, %d4, %d5;
    setp.ge.u64 %p, %d4, %d3; @%p ret;
    shl.b64 %d5, %d4, 2; add.u64 %d1, %d1, %d5; add.u64 %d2, %d2, %d5;
    cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;
    ld.global.f32 %f1, [%d1]; cvt.rn.f32.f64 %f2, %g; mul.f32 %f1, %f1, %f2; st.global.f32 [%d2], %f1; ret;
}
"""


def scale_plan(device: int = 0, image: bytes = PTX, shared_bytes: int = 0, symbol: str = "scale") -> _shim.LaunchPlan:
    size: Any = ("size", 0, 0)
    steps = [("alloc", 2, FLOAT, CUDA, device, [size], [1]), ("kernel", 0, [0, 2], [("slot", 1)], size)]
    kernels = [("cuda", symbol, image, 128, 128, shared_bytes, False)]
    return _shim.LaunchPlan({"inputs": 2, "slots": 3, "outputs": [2], "steps": steps, "kernels": kernels})


def test_without_a_driver_the_error_says_so() -> None:
    try:
        found = _shim.cuda_driver()
    except RuntimeError as error:
        assert "CUDA" in str(error)
    else:
        assert found["major"] >= 11


@needs_gpu
@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 100_000])
def test_kernels(mode: str, count: int) -> None:
    run = scale_plan()
    x = torch.randn(count, device="cuda")
    for factor in (2.0, -0.5):
        assert torch.equal(run(x, factor)[0], x * factor)


@needs_gpu
def test_launches_on_the_current_stream(mode: str) -> None:
    run = scale_plan()
    x = torch.randn(1 << 22, device="cuda")
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        slow = x
        for _ in range(50):
            slow = slow + 1
        (result,) = run(slow, 2.0)
    stream.synchronize()
    assert torch.equal(result, slow * 2)


@needs_gpu
def test_runs_under_graph_capture() -> None:
    run = scale_plan()
    x = torch.ones(1000, device="cuda")
    run(x, 2.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        (result,) = run(x, 2.0)
    x.fill_(5)
    graph.replay()
    assert torch.equal(result, torch.full_like(x, 10))


@needs_gpu
def test_a_thread_without_a_context() -> None:
    run = scale_plan()
    x = torch.ones(10, device="cuda")
    torch.cuda.synchronize()
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(run(x, 3.0)[0]))
    thread.start()
    thread.join()
    assert seen[0].tolist() == [3.0] * 10


@needs_gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_other_devices() -> None:
    run = scale_plan(device=1)
    x = torch.ones(10, device="cuda:1")
    with torch.cuda.device(0):
        assert run(x, 3.0)[0].tolist() == [3.0] * 10
    with torch.cuda.device(1):
        assert run(x, 4.0)[0].tolist() == [4.0] * 10


@needs_gpu
def test_errors_name_the_call() -> None:
    x = torch.ones(10, device="cuda")
    with pytest.raises(RuntimeError, match="cuModuleLoadData"):
        scale_plan(image=b"nonsense")(x, 2.0)
    with pytest.raises(RuntimeError, match="cuModuleGetFunction"):
        scale_plan(symbol="other")(x, 2.0)
    with pytest.raises(RuntimeError, match="cuFuncSetAttribute"):
        scale_plan(shared_bytes=100 << 20)(x, 2.0)
    assert scale_plan(shared_bytes=64 << 10)(x, 2.0)[0].tolist() == [2.0] * 10


@needs_gpu
def test_operators_and_guards_on_the_gpu(mode: str) -> None:
    from helpers import node, tensor_check

    x = torch.randn(4, 4, device="cuda")
    program = _shim.GuardProgram((node(("arg", 0), tensor_check(x)),), 0)
    assert program.check(test_kernels, (x,)) == ()
    assert program.check(test_kernels, (x.cpu(),)) is None
    steps = [("aten", "mm", "", [("t", 0), ("t", 0)], [1]), ("aten", "relu", "", [("t", 1)], [2])]
    run = _shim.LaunchPlan({"inputs": 1, "slots": 3, "outputs": [2], "steps": steps, "kernels": []})
    assert torch.equal(run(x)[0], (x @ x).relu())
