"""Tensors of 2^31 and more elements, where there is memory for them."""

from __future__ import annotations

import os

import pytest
import torch

import fusee

from .large import NEEDED, OPERATIONS, numbers


def free_memory() -> int:
    """Bytes that processes can have without swapping."""
    with open("/proc/meminfo") as lines:
        found = next((line.split()[1] for line in lines if line.startswith("MemAvailable")), "0")
    return int(found) * 1024


@pytest.mark.skipif(not os.path.exists("/proc/meminfo") or free_memory() < NEEDED, reason="too little memory is free")
@pytest.mark.parametrize("name", ("cat", "gather"))
def test_more_elements_than_31_bits_count(name: str) -> None:
    fusee.reset()
    x, function = numbers("cpu"), OPERATIONS[name]
    got = fusee.compile(function)(x)
    assert torch.equal(got, function(x))
    assert fusee.stats()["graphs"] > 0
