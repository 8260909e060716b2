"""What calibrate() finds, and that both ways of reading tensors agree."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from fusee import _shim


def test_the_direct_path_is_found() -> None:
    found = _shim.calibrate(torch)
    assert found["mode"] == "direct", found["why"]
    assert found["why"] == ""
    assert found["torch"] == torch.__version__
    assert found["handle_offset"] >= 16
    assert found["key_set_offset"] > 0
    assert found["symbols"]["aoti_torch_empty_strided"] is True


def unusual_states() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    return {
        "inference mode": torch.inference_mode,
        "no grad": torch.no_grad,
        "another device": lambda: torch.device("meta"),
        "fake tensors": FakeTensorMode,
        "function mode": torch.overrides.BaseTorchFunctionMode,
        "autocast": lambda: torch.autocast("cpu"),
    }


@pytest.mark.parametrize("name", list(unusual_states()))
def test_calibration_in_an_unusual_state(name: str) -> None:
    expected = _shim.calibrate(torch)
    with unusual_states()[name]():
        before = _shim.global_state()
        assert _shim.calibrate(torch) == expected
        assert _shim.global_state() == before
    assert _shim.calibrate(torch) == expected


def test_the_portable_path_can_be_asked_for() -> None:
    found = _shim.calibrate(torch, portable=True)
    assert (found["mode"], found["why"]) == ("portable", "asked for")
    _shim.calibrate(torch)


def test_wrong_calls() -> None:
    for arguments in ((), (torch, True)):
        with pytest.raises(TypeError):
            _shim.calibrate(*arguments)
    with pytest.raises(TypeError):
        _shim.calibrate(torch, wrong=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        _shim.calibrate(threading)
    assert _shim.calibrate(torch)["mode"] == "direct"


def test_key_sets(mode: str) -> None:
    samples = [
        torch.ones(2),
        torch.ones(2, requires_grad=True),
        torch.ones(2, dtype=torch.complex64).conj(),
        torch.ones(2).to_sparse(),
        torch.ones(2, device="meta"),
        torch.nn.Parameter(torch.ones(2)),
    ]
    for sample in samples:
        assert _shim.key_set(sample) == torch._C._dispatch_keys(sample).raw_repr()
    with pytest.raises(TypeError):
        _shim.key_set(5)  # type: ignore[arg-type]


OTHER_MODES = 2**64 - 1  # of classes that may do more than call the function


def test_global_state_follows_torch(mode: str) -> None:
    before = _shim.global_state()
    assert before == _shim.global_state()
    with torch.no_grad():
        assert _shim.global_state()[4] == 0
    with torch.enable_grad():
        assert _shim.global_state()[4] == 1
    with torch.overrides.BaseTorchFunctionMode(), torch.overrides.BaseTorchFunctionMode():
        assert _shim.global_state()[7] == before[7] + 2
        assert _shim.global_state()[8] not in (before[8], OTHER_MODES)
    with torch.overrides.TorchFunctionMode():
        assert _shim.global_state()[8] == OTHER_MODES
        with torch._C.DisableTorchFunction():
            assert _shim.global_state()[8] == before[8]
    with torch._C.DisableTorchFunctionSubclass():
        if mode == "direct":
            assert _shim.global_state()[6] != before[6]
    assert _shim.global_state() == before


def test_global_state_is_per_thread(mode: str) -> None:
    seen: list[tuple[int, ...]] = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(_shim.global_state()))
        thread.start()
        thread.join()
        assert seen[0][4] == 1
        assert _shim.global_state()[4] == 0
