"""Tensors of 2^31 and more elements on a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import fusee

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kernels.large import NEEDED, OPERATIONS, numbers


@pytest.mark.parametrize("name", OPERATIONS)
def test_cuda_more_elements_than_31_bits_count(name: str) -> None:
    if torch.cuda.mem_get_info()[0] < NEEDED:
        pytest.skip("too little memory is free")
    fusee.reset()
    x, function = numbers("cuda"), OPERATIONS[name]
    assert torch.equal(fusee.compile(function)(x), function(x))
    assert fusee.stats()["graphs"] > 0
