"""F.one_hot within compiled functions, with eager's results and errors."""

# mypy: allow-untyped-calls
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import fusee


def soft_loss(y: Tensor, classes: int) -> Tensor:
    weights = torch.linspace(0.0, 1.0, classes, dtype=torch.float64)
    return (F.one_hot(y, num_classes=classes).double() * weights).sum(-1)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,)])
def test_with_a_number_of_classes(shape: tuple[int, ...]) -> None:
    y = torch.randint(4, shape, generator=torch.Generator().manual_seed(0))
    found, expected = fusee.compile(soft_loss, fullgraph=True)(y, 4), soft_loss(y, 4)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    plain = fusee.compile(F.one_hot, fullgraph=True)(y, 5)
    torch.testing.assert_close(plain, F.one_hot(y, 5), rtol=0, atol=0)


@pytest.mark.parametrize("values", [[0, 4], [-1, 2]])
def test_index_out_of_range(values: list[int]) -> None:
    y = torch.tensor(values)
    with pytest.raises(RuntimeError) as expected:
        soft_loss(y, 3)
    with pytest.raises(RuntimeError) as found:
        fusee.compile(soft_loss)(y, 3)
    assert str(found.value) == str(expected.value)


def test_number_of_classes_in_the_data_is_left_to_python() -> None:
    def greatest(y: Tensor) -> Tensor:
        return F.one_hot(y) * 2

    y = torch.tensor([0, 2, 1])
    torch.testing.assert_close(fusee.compile(greatest)(y), greatest(y), rtol=0, atol=0)
    assert [row["id"] for row in fusee.explain(greatest)(y).breaks] == ["tensor-call"]
