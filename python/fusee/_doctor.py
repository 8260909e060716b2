"""What only Python can see of an installation, for ``fusee doctor`` (docs/contracts.md, section 8)."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

from . import _shim
from .host.connection import hello

Check = dict[str, str]

# The advice where something was not found, and whether fusee can compile at all without it.
_LIBRARIES = (
    ("LLVM", "llvm", "missing", "pip install llvmlite"),
    ("NVRTC", "nvrtc", "note", "install PyTorch for CUDA to compile CUDA kernels; CPU kernels work without"),
    ("nvJitLink", "nvjitlink", "note", "install PyTorch for CUDA; without it CUDA kernels take longer to compile"),
)


def check(name: str, state: str, detail: str, advice: str = "") -> Check:
    """One finding; ``state`` is "ok", "note" (works without) or "missing" (cannot compile)."""
    return {"name": name, "state": state, "detail": detail, "advice": "" if state == "ok" else advice}


def checks() -> list[Check]:
    """Every finding, in the order in which a compile needs the parts."""
    said = hello()
    return [
        check("Python", "ok", f"{said['python']}, {sys.executable}"),
        check("torch", "ok", f"{said['torch']}, {torch.__path__[0]}"),
        *_library_checks(said),
        _gpu(),
        *_calibration(_shim.calibrate(torch)),
    ]


def _library_checks(said: dict[str, Any]) -> list[Check]:
    return [
        check(name, "ok", said[key]) if said[key] else check(name, absent, "not found", advice)
        for name, key, absent, advice in _LIBRARIES
    ]


def _gpu() -> Check:
    if not torch.cuda.is_available():
        return check("GPU", "note", "none that PyTorch can use", "tensors on the CPU are compiled all the same")
    major, minor = torch.cuda.get_device_capability()
    return check("GPU", "ok", f"{torch.cuda.get_device_name()}, sm_{major}{minor}")


def _calibration(found: dict[str, Any]) -> list[Check]:
    symbols = found["symbols"]
    absent = sorted(name for name, present in symbols.items() if not present)
    counted = f"{len(symbols) - len(absent)} of {len(symbols)} found"
    offsets = f"handle at byte {found['handle_offset']}, dispatch keys at byte {found['key_set_offset']}"
    direct = found["mode"] == "direct"
    return [
        check("torch symbols", "note" if absent else "ok", counted, f"this PyTorch lacks {', '.join(absent)}"),
        check(
            "calibration",
            "ok" if direct else "note",
            f"{found['mode']}: {offsets if direct else found['why']}",
            "calls work, but each takes about a microsecond longer",
        ),
    ]


if __name__ == "__main__":
    print(json.dumps({"checks": checks()}))
