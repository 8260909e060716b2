"""Random numbers of compiled graphs: the state that kernels draw from, and the same numbers in graphs of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_FIELDS = 5  # of a draw: elements, numbers made of four words, bytes of an element, place among the tensors, offset
_BLOCK = 256  # threads of a block of eager's kernels
_WORDS = 4  # that the generator gives at once
_LOW = 0xFFFFFFFF
_FACTORS, _KEYS, _ROUNDS = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 10


State = Any  # of a generator: of a GPU's, the seed and the offset


def number_of(device: str) -> int:
    """The number of a GPU, of "cuda:1" for one."""
    return int(device.removeprefix("cuda:"))


def state_of(device: str) -> State:
    """The state of a device's generator, to set it back to."""
    import torch

    if device == "cpu":
        return torch.get_rng_state()
    generator = torch.cuda.default_generators[number_of(device)]
    return generator.initial_seed(), generator.get_offset()


def set_back(device: str, state: State) -> None:
    """Have a device's generator draw again what it drew from this state on."""
    import torch

    if device == "cpu":
        torch.set_rng_state(state)
        return
    seed, offset = state
    generator = torch.cuda.default_generators[number_of(device)]
    generator.manual_seed(seed)
    generator.set_offset(offset)


@lru_cache(maxsize=64)
def _most_threads(device: int) -> int:
    import torch

    properties = torch.cuda.get_device_properties(device)
    return int(properties.multi_processor_count * (properties.max_threads_per_multi_processor // _BLOCK) * _BLOCK)


def is_captured() -> bool:
    """Whether a CUDA graph is captured on the current stream: the generator's state is in memory of the GPU then."""
    import torch

    # Where the driver is too old for PyTorch, or there is none, the question itself raises.
    used: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return used and bool(torch.cuda.is_current_stream_capturing())


def generator_state(given: Sequence[Tensor], draws: Sequence[int], *, device: torch.device) -> Tensor:
    """What :func:`reserved` gives, a row for each draw (``GeneratorStateTarget`` of the compiler)."""
    import torch

    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.tensor(reserved(given, draws, index), dtype=torch.int64).reshape(-1, 4)


def reserved(given: Sequence[Tensor], draws: Sequence[int], device: int) -> list[int]:
    """For each draw: seed, first counter, threads, and binary logarithm of the neighbours that a thread takes.

    ``draws`` is described in section 7 of the contracts. The GPU's generator goes on as by eager's kernels.
    """
    import torch

    if is_captured():
        raise RuntimeError(
            "a compiled graph whose kernels draw eager's random numbers cannot be captured as part of a CUDA graph: "
            'compile it with mode="reduce-overhead" or options={"random": "fused"}'
        )
    generator = torch.cuda.default_generators[device]
    seed, offset, most = generator.initial_seed(), generator.get_offset(), _most_threads(device)
    seed -= (seed >> 63) << 64  # as it lies in 64 bits with a sign
    rows: list[int] = []
    for start in range(0, len(draws), _FIELDS):
        elements, at_once, item, place, distance = draws[start : start + _FIELDS]
        threads = min(most, -(-elements // _BLOCK) * _BLOCK)
        lanes = 16 // item
        while place >= 0 and lanes > 1 and (elements % lanes or (given[place].data_ptr() + distance) % (lanes * item)):
            lanes //= 2
        rows += (seed, offset // _WORDS, threads, lanes.bit_length() - 1)
        offset += ((elements - 1) // (threads * at_once) + 1) * _WORDS
    generator.set_offset(offset)
    return rows


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

    element = torch.zeros((), dtype=torch.int64, device=device)
    for dimension, (count, step) in enumerate(zip(size, stride, strict=True)):
        index = torch.arange(count, device=device).reshape([-1] + [1] * (len(size) - dimension - 1))
        element = element + index * step
    result = torch.empty_strided(list(size), list(stride), dtype=dtype, device=device)
    return result.copy_(_numbers(state, number, lanes, element, dtype))


def _numbers(state: Tensor, number: int, lanes: int, element: Tensor, dtype: torch.dtype) -> Tensor:
    """The uniform numbers of elements, which are counted in the order of memory."""
    import torch

    at_once = 2 if dtype == torch.float64 else _WORDS
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
    return bits * part + part / 2


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


def reproduces_all(steps: Iterable[Any]) -> bool:
    """Whether this PyTorch draws on a GPU what kernels draw in its place in the steps of a plan."""
    return all(reproduces(step[2]) for step in steps if step[0] == "generator")


@lru_cache(maxsize=64)
def reproduces(device: int) -> bool:
    """Whether kernels draw what eager draws on a GPU, by samples: another PyTorch may deal numbers otherwise."""
    import torch

    generator = torch.cuda.default_generators[device]
    before = generator.get_state()
    try:
        with torch.cuda.device(device), torch.no_grad():
            return all(_agrees(generator, before, *kind) for kind in _samples())
    finally:
        generator.set_state(before)


def _samples() -> Iterable[tuple[torch.dtype, int, Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]]:
    """Element type, turns of all threads, what eager draws like a tensor, and how that follows from uniform numbers."""
    import torch

    for dtype, turns in ((torch.float32, 9), (torch.float64, 3)):
        yield dtype, turns, torch.rand_like, lambda numbers: torch.where(numbers == 1, 0, numbers)
    for dtype, turns in ((torch.float32, 9), (torch.bfloat16, 9), (torch.float64, 3)):
        yield dtype, turns, lambda like: torch.native_dropout(like, 0.5, True)[1], lambda numbers: numbers < 0.5


def _agrees(
    generator: torch.Generator,
    before: Tensor,
    dtype: torch.dtype,
    turns: int,
    draw: Callable[[Tensor], Tensor],
    follows: Callable[[Tensor], Tensor],
) -> bool:
    import torch

    elements, dropout = _most_threads(generator.device.index) * turns, draw is not torch.rand_like
    at_once = 2 if dtype == torch.float64 and not dropout else _WORDS
    generator.set_state(before)
    state = generator_state((), (elements, at_once, dtype.itemsize, -1, 0), device=generator.device)
    after = generator.get_offset()
    generator.set_state(before)
    drawn = draw(torch.ones(elements, dtype=dtype, device=generator.device))
    element = torch.linspace(0, elements - 1, 999, dtype=torch.float64).long()
    kind = torch.float64 if at_once == 2 else torch.float32
    expected = follows(_numbers(state, 0, -1 if dropout else 1, element, kind))
    return generator.get_offset() == after and torch.equal(drawn[element.to(drawn.device)].cpu(), expected)
