"""What libraries of models do around tensors is captured whole: results that are dicts, copied configurations."""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from outcome import Describer

import fusee


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """No entry of another test."""
    fusee.reset()
    yield
    fusee.reset()


def check(function: Callable[..., Any], *arguments: Any) -> Any:
    """The compiled function, captured as one graph, does twice what the plain one does; its result."""
    compiled = fusee.compile(function, fullgraph=True)
    expected = function(*arguments)
    for _ in range(2):
        result = compiled(*arguments)
        assert Describer()(result) == Describer()(expected)
    return result


class Output(OrderedDict):  # type: ignore[type-arg]
    """A dict whose keys are its attributes that are not None."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = self.__dict__.get(field.name)
            if value is not None:
                self[field.name] = value

    def __getitem__(self, key: Any) -> Any:
        return dict(self.items())[key] if isinstance(key, str) else tuple(self.values())[key]

    def __setattr__(self, name: str, value: Any) -> None:
        if value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)


@dataclasses.dataclass
class Scores(Output):
    loss: Any = None
    scores: Any = None
    states: Any = None


def test_result_that_is_a_dict_and_a_dataclass() -> None:
    def program(x: Any) -> Any:
        made = Scores(scores=x + 1, states=(x * 2,))
        made.loss = made.scores.sum()
        return made, made[0], made["states"], len(made), "loss" in made, list(made)

    result = check(program, torch.ones(3))[0]
    assert type(result) is Scores and list(result) == ["scores", "states", "loss"]
    assert result.scores is result["scores"] and result.__dict__["loss"] is result.loss


def test_attributes_of_a_given_one_hide_those_of_its_class() -> None:
    def program(made: Any) -> Any:
        return made.scores + 1, made.loss

    check(program, Scores(scores=torch.ones(3)))


class Doubling(defaultdict):  # type: ignore[type-arg]
    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value * 2)


def test_subclass_of_defaultdict() -> None:
    def program(x: Any) -> Any:
        made = Doubling(list)
        made["x"] = x
        return made, made["x"], isinstance(made, dict)

    result = check(program, torch.ones(3))[0]
    assert type(result) is Doubling and result.default_factory is list


class Configuration:
    def __init__(self) -> None:
        self.layers = [1, {"kind": None}]
        self.dtype = torch.float32
        self.itself = self


def test_deep_copies() -> None:
    given = Configuration()

    def program(x: Any) -> Any:
        copied = copy.deepcopy(given)
        copied.layers[0] += 1
        return x + copied.layers[0], copied.itself is copied, copied.layers is given.layers, copied.dtype

    check(program, torch.ones(3))
    assert given.layers[0] == 1


def test_numbers_of_identities_as_keys() -> None:
    def program(a: Any, b: Any) -> Any:
        seen = {id(a): 1}
        seen[id(b)] = 2
        return len(seen), a[0] + b[0]

    one, other = [torch.ones(2)], [torch.ones(2)]
    compiled = fusee.compile(program, fullgraph=True)
    assert [compiled(*pair)[0] for pair in ((one, other), (one, one), (other, one))] == [2, 1, 2]


class Items(Sequence[Any]):
    """Its ``__iter__`` is a generator that stands in a try statement."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]

    def __len__(self) -> int:
        return len(self.items)


def test_generator_that_is_dropped_in_a_try_statement() -> None:
    def program(x: Any) -> Any:
        for factor, item in zip([2, 3], Items(x, x + 1, x + 2)):  # noqa: B905
            x = x + factor * item
        return x

    check(program, torch.ones(3))


def test_limits_of_types() -> None:
    def program(x: Any) -> Any:
        return x.masked_fill(x > 0, torch.finfo(x.dtype).min), torch.iinfo(torch.int8).max

    check(program, torch.ones(3))


def test_empty_tensor_grows() -> None:
    def program(x: Any) -> Any:
        return torch.cat([torch.tensor([], dtype=x.dtype, device=x.device), x], dim=-2)

    check(program, torch.ones(2, 3, 4))
    graphs = fusee.explain(program)(torch.ones(2, 3, 4, requires_grad=True)).graphs
    assert "training" in graphs[0]


def test_attention_with_fewer_heads_of_keys() -> None:
    def program(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    generator = torch.Generator().manual_seed(0)
    inputs = [
        torch.randn(2, heads, 5, 8, dtype=torch.float64, generator=generator, requires_grad=True) for heads in (4, 2, 2)
    ]
    graphs = fusee.explain(program)(*inputs).graphs
    assert "training" in graphs[0]
    expected = torch.autograd.grad(program(*inputs).square().sum(), inputs)
    found = torch.autograd.grad(fusee.compile(program)(*inputs).square().sum(), inputs)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-10, atol=1e-10)
