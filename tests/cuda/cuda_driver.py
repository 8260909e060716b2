"""The few functions of the CUDA driver that the tests call, through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch


def _check(code: int, function: str) -> None:
    if code:
        raise RuntimeError(f"{function} returned CUDA error {code}")


class Kernel:
    """A function of a cubin, loaded into the context that torch uses."""

    def __init__(self, image: bytes, symbol: str) -> None:
        torch.zeros(1, device="cuda")  # makes the context
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(self._driver.cuModuleLoadData(ctypes.byref(self._module), image), "cuModuleLoadData")
        name = symbol.encode()
        _check(
            self._driver.cuModuleGetFunction(ctypes.byref(self._function), self._module, name), "cuModuleGetFunction"
        )

    def attribute(self, number: int) -> int:
        """An attribute of the function, by its number in ``CUfunction_attribute``."""
        value = ctypes.c_int()
        _check(self._driver.cuFuncGetAttribute(ctypes.byref(value), number, self._function), "cuFuncGetAttribute")
        return value.value

    def launch(self, blocks: int, threads: int, pointers: Sequence[int], scalars: Sequence[int], work: int) -> None:
        """Launches on torch's current stream with 64-bit arguments: pointers, scalars, number of outer points."""
        values = [ctypes.c_uint64(value & 0xFFFF_FFFF_FFFF_FFFF) for value in (*pointers, *scalars, work)]
        arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        code = self._driver.cuLaunchKernel(self._function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, None)
        _check(code, "cuLaunchKernel")

    def unload(self) -> None:
        """Frees the module."""
        torch.cuda.synchronize()
        _check(self._driver.cuModuleUnload(self._module), "cuModuleUnload")
