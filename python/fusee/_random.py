"""Random numbers of compiled graphs: the state that kernels draw from, and the same numbers in graphs of Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_FIELDS = 5  # of a draw: elements, numbers made of four words, bytes of an element, place among the tensors, offset
_BLOCK = 256  # threads of a block of eager's kernels
_WORDS = 4  # that the generator gives at once
_LOW = 0xFFFFFFFF
_FACTORS, _KEYS, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10


@lru_cache(maxsize=64)
def _most_threads(device: int) -> int:
    import torch

    properties = torch.cuda.get_device_properties(device)
    return int(properties.multi_processor_count * (properties.max_threads_per_multi_processor // _BLOCK) * _BLOCK)


def is_captured() -> bool:
    """Whether a CUDA graph is captured on the current stream: the generator's state is in memory of the GPU then."""
    import torch

    return bool(torch.cuda.is_current_stream_capturing())


def generator_state(given: Sequence[Tensor], draws: Sequence[int], *, device: torch.device | int) -> Tensor:
    """For each draw: seed, first counter, threads, and binary logarithm of the neighbours that a thread takes.

    ``draws`` is described in section 7 of the contracts. The GPU's generator goes on as by eager's kernels.
    """
    import torch

    index = device if isinstance(device, int) else device.index
    if is_captured():
        raise RuntimeError(
            "a compiled graph whose kernels draw eager's random numbers cannot be captured as part of a CUDA graph: "
            'compile it with mode="reduce-overhead" or options={"random": "fused"}'
        )
    generator = torch.cuda.default_generators[torch.cuda.current_device() if index is None else index]
    seed, offset, most = generator.initial_seed(), generator.get_offset(), _most_threads(generator.device.index)
    seed -= (seed >> 63) << 64  # as it lies in 64 bits with a sign
    rows = []
    for start in range(0, len(draws), _FIELDS):
        elements, at_once, item, place, distance = draws[start : start + _FIELDS]
        threads = min(most, -(-elements // _BLOCK) * _BLOCK)
        lanes = 16 // item
        while place >= 0 and lanes > 1 and (elements % lanes or (given[place].data_ptr() + distance) % (lanes * item)):
            lanes //= 2
        rows.append((seed, offset // _WORDS, threads, lanes.bit_length() - 1))
        offset += ((elements - 1) // (threads * at_once) + 1) * _WORDS
    generator.set_offset(offset)
    return torch.tensor(rows, dtype=torch.int64)


def uniform(
    state: Tensor,
    number: int,
    lanes: int,
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Uniform numbers above 0, up to 1, as kernels draw them (``UniformTarget`` of the compiler)."""
    import torch

    at_once = 2 if dtype == torch.float64 else _WORDS
    element = torch.zeros((), dtype=torch.int64, device=device)
    for dimension, (count, step) in enumerate(zip(size, stride, strict=True)):
        index = torch.arange(count, device=device).reshape([-1] + [1] * (len(size) - dimension - 1))
        element = element + index * step
    if lanes == 0:
        words = _philox(int(state[0]), element // at_once, torch.full_like(element, number))
        chosen = element % at_once
    else:
        seed, first, threads, shift = map(int, state[number])
        shift = lanes.bit_length() - 1 if lanes > 0 else shift
        group, lane = element >> shift, element & ((1 << shift) - 1)
        turn, thread = group // threads, group % threads
        call = turn // at_once if shift == 0 else turn * max((1 << shift) // _WORDS, 1) + lane // _WORDS
        chosen = turn % at_once if shift == 0 else lane % _WORDS
        words = _philox(seed, first + call, thread)
    if at_once == 2:
        words = [words[0] ^ (words[1] << 21), words[2] ^ (words[3] << 21)]
    bits = torch.stack(words).gather(0, chosen[None])[0].to(dtype)
    part = 2.0 ** (-53 if at_once == 2 else -32)
    result = torch.empty_strided(list(size), list(stride), dtype=dtype, device=device)
    return result.copy_(bits * part + part / 2)


def _philox(key: int, counter: Tensor, sequence: Tensor) -> list[Tensor]:
    """The four words of Philox4x32-10, each in 64 bits."""
    first, second = key & _LOW, key >> 32 & _LOW
    words = [counter & _LOW, counter >> 32 & _LOW, sequence & _LOW, sequence >> 32 & _LOW]
    for _ in range(_ROUNDS):
        products = words[0] * _FACTORS[0], words[2] * _FACTORS[1]
        high = [product >> 32 & _LOW for product in products]
        low = [product & _LOW for product in products]
        words = [high[1] ^ words[1] ^ first, low[1], high[0] ^ words[3] ^ second, low[0]]
        first, second = first + _KEYS[0] & _LOW, second + _KEYS[1] & _LOW
    return words
