"""What autograd promises of a graph that is compiled for training, compared with the same program uncompiled."""

# mypy: allow-untyped-calls
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fusee
from fusee import training

Program = Callable[..., Any]
Graphs = list[dict[str, Any]]


def leaf(*sizes: int) -> Tensor:
    """A float64 leaf that requires gradients."""
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def layer(x: Tensor, weight: Tensor) -> Tensor:
    return torch.tanh(x @ weight) * 2


def gradients_of(program: Program, *inputs: Tensor) -> list[Tensor | None]:
    """The gradients of the sum of everything that the program returns, and what it returned."""
    leaves = [tensor for tensor in inputs if tensor.requires_grad]
    results = program(*inputs)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    total = sum((result * (k + 1)).sum() for k, result in enumerate(results) if result.requires_grad)
    return [*torch.autograd.grad(total, leaves, allow_unused=True), *results]


def same(program: Program, *inputs: Tensor, trained: Graphs | None = None) -> None:
    """The compiled program has eager's results and gradients, and was trained where ``trained`` is given."""
    expected = gradients_of(program, *inputs)
    found = gradients_of(fusee.compile(program), *inputs)
    assert trained is None or trained, fusee.explain(program)(*inputs).graphs[0].get("why")
    for one, other in zip(expected, found, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one.requires_grad == other.requires_grad
            torch.testing.assert_close(other, one, rtol=1e-10, atol=1e-10)


def test_gradients_accumulate(trained: Graphs) -> None:
    x, weight = leaf(4, 3), leaf(3, 2)
    compiled = fusee.compile(layer)
    for _ in range(2):
        compiled(x, weight).sum().backward()
    once = torch.autograd.grad(layer(x, weight).sum(), weight)[0]
    torch.testing.assert_close(weight.grad, once * 2)
    assert trained


def test_backward_runs_once_unless_told_otherwise(trained: Graphs) -> None:
    x, weight = leaf(4, 3), leaf(3, 2)
    result = fusee.compile(layer)(x, weight).sum()
    first = torch.autograd.grad(result, weight, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(result, weight)[0], first)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(result, weight)
    assert trained


def test_a_kept_input_must_not_change(trained: Graphs) -> None:
    x, weight = leaf(4, 3), leaf(3, 2)
    result = fusee.compile(layer)(x, weight).sum()
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()
    assert trained


def test_an_input_that_is_not_kept_may_change(trained: Graphs) -> None:
    x, bias = leaf(4), leaf(4)
    result = fusee.compile(lambda a, b: (a * 3 + b).sum())(x, bias)
    with torch.no_grad():
        bias.add_(1)
    result.backward()
    torch.testing.assert_close(bias.grad, torch.ones_like(bias))
    assert trained


def exponential(x: Tensor) -> tuple[Tensor, Tensor]:
    a = x.exp()
    return a, a + 1


def with_places(x: Tensor) -> tuple[Tensor, Tensor]:
    found = x.max(1)
    return found.values, found.indices


CHANGED: dict[str, tuple[Callable[[Tensor], Any], Callable[[Tensor, Any], Any]]] = {
    "a result that autograd keeps": (lambda x: (x.relu(),), lambda x, found: found[0].mul_(2)),
    "the memory of a result": (exponential, lambda x, found: found[0].detach().mul_(2)),
    "a view of a result": (lambda x: (x.tanh().t(),), lambda x, found: found[0][0].zero_()),
    "a result that a later operation read": (
        lambda x: (a := x * 2, a.sin()),
        lambda x, found: found[0].detach().add_(1),
    ),
    "a result that the plan keeps": (lambda x: (x.softmax(1),), lambda x, found: found[0].mul_(2)),
    "places": (with_places, lambda x, found: found[1].zero_()),
    "a result that nothing keeps": (exponential, lambda x, found: found[1].mul_(2)),
    "an input that is kept": (lambda x: (x * x,), lambda x, found: x.mul_(2)),
    "an input, of which something else is kept": (lambda x: (x.exp() * 2,), lambda x, found: x.mul_(2)),
    "a result and an input": (lambda x: (x.sin().exp(),), lambda x, found: (x.mul_(2), found[0].mul_(2))),
}


@pytest.mark.parametrize("name", CHANGED)
def test_what_changes_before_backward_is_an_error_where_it_is_autograds(name: str, trained: Graphs) -> None:
    program, change = CHANGED[name]

    def gradient_or_error(run: Program) -> Tensor | str:
        first = torch.tensor([[0.5, 1.0], [-2.0, 0.25], [3.0, -1.5]], dtype=torch.float64, requires_grad=True)
        x = first * 1
        found = run(x)
        change(x, found)
        try:
            sum((k + 1) * one.sum() for k, one in enumerate(found) if one.requires_grad).backward()  # type: ignore[union-attr]
        except RuntimeError as error:
            return str(error)
        assert first.grad is not None
        return first.grad

    compiled = fusee.compile(program)
    expected = gradient_or_error(program)
    for _ in range(2):
        found = gradient_or_error(compiled)
        if isinstance(expected, str):
            assert found == expected
        else:
            assert isinstance(found, Tensor)
            torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-14)
    assert trained


def test_double_backward(trained: Graphs) -> None:
    x, weight = leaf(4, 3), leaf(3, 2)

    def penalty(program: Program) -> list[Tensor]:
        first = torch.autograd.grad(program(x, weight).sum(), (x, weight), create_graph=True)
        return list(torch.autograd.grad([(g**2).sum() for g in first], (x, weight)))

    for one, other in zip(penalty(layer), penalty(fusee.compile(layer)), strict=True):
        torch.testing.assert_close(other, one)
    torch.autograd.gradgradcheck(fusee.compile(layer), (x, weight))
    assert trained


def test_double_backward_where_one_input_comes_from_another(trained: Graphs) -> None:
    x = leaf(4)

    def program(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sin()

    def second(run: Program) -> Tensor:
        first = torch.autograd.grad(run(x, x.exp()).sum(), x, create_graph=True)[0]
        return torch.autograd.grad(first.sum(), x)[0]

    torch.testing.assert_close(second(fusee.compile(program)), second(program))
    assert trained


def test_gradients_that_are_not_given(trained: Graphs) -> None:
    x, y = leaf(4), leaf(4)
    compiled = fusee.compile(lambda a, b: ((a * a).sum(), (b * b).sum()))
    compiled(x, y)[0].backward()
    torch.testing.assert_close(x.grad, 2 * x)
    assert y.grad is None
    assert trained


def test_the_graph_is_freed_with_its_result(trained: Graphs) -> None:
    weight = leaf(3, 2)
    activation = torch.randn(4, 3, dtype=torch.float64)
    seen = weakref.ref(activation)
    result = fusee.compile(layer)(activation, weight)
    result.sum().backward(retain_graph=True)
    del activation
    gc.collect()
    assert seen() is not None
    del result
    gc.collect()
    assert seen() is None
    assert trained


def test_hooks_and_gradients_of_intermediates(trained: Graphs) -> None:
    x, weight = leaf(4, 3), leaf(3, 2)
    compiled = fusee.compile(layer)
    seen: list[Tensor] = []
    middle = compiled(x, weight)
    middle.retain_grad()
    middle.register_hook(seen.append)
    compiled(middle, leaf(2, 2)).sum().backward()
    assert len(seen) == 1
    torch.testing.assert_close(middle.grad, seen[0])
    assert trained


def test_saved_tensor_hooks_see_what_is_kept(trained: Graphs) -> None:
    x, weight = leaf(4, 3), leaf(3, 2)
    packed: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        packed.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = fusee.compile(layer)(x, weight)
    result.sum().backward()
    assert len(packed) == len(trained[0]["training"]["saved"])


class _Views:
    """Programs whose results are views, inputs, or not differentiable."""

    @staticmethod
    def view(x: Tensor, y: Tensor) -> Tensor:
        return (x * y).view(-1)

    @staticmethod
    def two_views(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        product = x * y
        return product[0], product.t()

    @staticmethod
    def view_of_an_input(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x.t(), x * y

    @staticmethod
    def the_input_itself(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x, x * y

    @staticmethod
    def detached(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        product = x * y
        return product.detach(), product.exp()

    @staticmethod
    def integers(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x * y).argmax(-1), x * y

    @staticmethod
    def without_gradients(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            scale = x.abs().sum()
        return scale, x * y / scale

    @staticmethod
    def the_same_twice(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        product = x * y
        return product, product


@pytest.mark.parametrize("name", [name for name in vars(_Views) if not name.startswith("_")])
def test_views_as_results(name: str, trained: Graphs) -> None:
    program = getattr(_Views, name)
    same(program, leaf(3, 3), leaf(3, 3), trained=trained)


def test_views_of_results_are_views(trained: Graphs) -> None:
    first, second = fusee.compile(_Views.two_views)(leaf(3, 3), leaf(3, 3))
    assert first._is_view()
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    second.mul_(2)
    torch.testing.assert_close(first, second.t()[0])
    assert trained


class _InPlace:
    """Programs that change intermediates or inputs."""

    @staticmethod
    def relu(x: Tensor, y: Tensor) -> Tensor:
        return F.relu_(x @ y)

    @staticmethod
    def through_a_view(x: Tensor, y: Tensor) -> Tensor:
        product = x * y
        product.view(-1).mul_(y.reshape(-1))
        return product.sin()

    @staticmethod
    def seen_by_a_view(x: Tensor, y: Tensor) -> Tensor:
        product = x * y
        row = product.t()
        product += y
        return row * x

    @staticmethod
    def fill(x: Tensor, y: Tensor) -> Tensor:
        total = torch.zeros(3, 3, dtype=x.dtype)
        total.copy_(x * y)
        total.add_(y, alpha=2)
        return total.cos()

    @staticmethod
    def part(x: Tensor, y: Tensor) -> Tensor:
        product = x * y
        product[0] = 1
        return product.exp()

    @staticmethod
    def part_of_a_part(x: Tensor, y: Tensor) -> Tensor:
        total = torch.zeros(3, 3, dtype=x.dtype)
        total[1:, ::2] = x[:2, :2] * y[0, 0]
        total[:, 1].mul_(y[1])
        total.diagonal().add_(x[2])
        return total.sin()

    @staticmethod
    def pieces(x: Tensor, y: Tensor) -> Tensor:
        table = torch.ones(3, 3, dtype=x.dtype)
        first, second = table.split(2)
        row, _, last = table.unbind(1)
        second.add_(first[1], alpha=3)
        last.mul_(row * 2)
        return x * y * table

    @staticmethod
    def transposed(x: Tensor, y: Tensor) -> Tensor:
        total = torch.zeros_like(x).t()
        total[0] = y[1]
        other = (x * y).t().clone()
        other[:, 1] = x[0]
        return total * other

    @staticmethod
    def shifted_indices(x: Tensor, y: Tensor) -> Tensor:
        indices = torch.zeros(3, 3, dtype=torch.int64)
        indices[:, 1:] = torch.arange(6).reshape(3, 2) % 3
        return x.gather(1, indices) * y

    @staticmethod
    def copied(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        product, copy = x * y, torch.zeros(3, 3, dtype=x.dtype)
        copy.copy_(product)
        return product, copy


@pytest.mark.parametrize("name", [name for name in vars(_InPlace) if not name.startswith("_")])
def test_in_place_operations(name: str, trained: Graphs) -> None:
    same(getattr(_InPlace, name), leaf(3, 3), leaf(3, 3), trained=trained)


def test_copies_have_memory_of_their_own() -> None:
    product, copy = fusee.compile(_InPlace.copied)(leaf(3, 3), leaf(3, 3))
    assert product.untyped_storage().data_ptr() != copy.untyped_storage().data_ptr()


class _Unrecorded:
    """Programs that change tensors while gradients are not recorded."""

    @staticmethod
    def all(x: Tensor, y: Tensor) -> Tensor:
        product = x * y
        with torch.no_grad():
            product.mul_(2)
        return product.sum()

    @staticmethod
    def part(x: Tensor, y: Tensor) -> Tensor:
        product = x * y
        with torch.no_grad():
            product[0] = 1
        return product * product

    @staticmethod
    def constants(x: Tensor, y: Tensor) -> Tensor:
        total = torch.zeros(3, 3, dtype=x.dtype)
        with torch.no_grad():
            total.add_(x)
        return total * y

    @staticmethod
    def view(x: Tensor, y: Tensor) -> Tensor:
        with torch.no_grad():
            scale = x.expand(2, 3, 3).sum(0)
        return scale * y


@pytest.mark.parametrize("name", [name for name in vars(_Unrecorded) if not name.startswith("_")])
def test_changes_that_are_not_recorded(name: str) -> None:
    same(getattr(_Unrecorded, name), leaf(3, 3), leaf(3, 3))


def test_views_of_parameters_need_no_gradients_without_grad_mode() -> None:
    weight = nn.Parameter(torch.randn(1, 3))

    def program(x: Tensor) -> Tensor:
        return torch.cat((weight.expand(2, -1), x))

    with torch.no_grad():
        explained = fusee.explain(program)(torch.randn(2, 3))
    assert "why" not in explained.graphs[0]


def test_parameters_change_in_a_plan() -> None:
    weight, other = leaf(3), leaf(3)

    def program() -> None:
        with torch.no_grad():
            for parameter in (weight, other):
                parameter.mul_(0.5).add_(parameter, alpha=-0.1)

    before = weight.detach().clone()
    assert "why" not in fusee.explain(program)().graphs[0]
    torch.testing.assert_close(weight.detach(), before * 0.45)
    assert weight.requires_grad


def test_what_a_graph_writes_gets_a_new_version() -> None:
    buffer, weight = torch.ones(3), leaf(3).float().detach().requires_grad_()
    result = (weight * buffer).sum()
    compiled = fusee.compile(lambda tensor: tensor.add_(1))
    compiled(buffer)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_running_statistics_are_updated_once(trained: Graphs) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).double()
    torch.manual_seed(0)
    other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).double()
    compiled = fusee.compile(other)
    x = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    for _ in range(3):
        module(x).sin().sum().backward()
        compiled(x).sin().sum().backward()
    for one, two in zip(module.state_dict().values(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(two, one)
    for one, two in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(two.grad, one.grad)
    assert trained


def test_reading_a_buffer_that_changes_stays_with_autograd(trained: Graphs) -> None:
    buffer, x = torch.ones(3, dtype=torch.float64), leaf(3)

    def program(tensor: Tensor, state: Tensor) -> Tensor:
        result = tensor * state
        state.add_(1)
        return result

    explained = fusee.explain(program)(x, buffer)
    assert "the graph changes" in explained.graphs[0]["why"]
    assert not trained


class _Dropout:
    """Programs that draw random numbers."""

    @staticmethod
    def once(x: Tensor, y: Tensor) -> Tensor:
        return F.dropout(x * y, 0.3) * y

    @staticmethod
    def twice(x: Tensor, y: Tensor) -> Tensor:
        return F.dropout(F.dropout(x, 0.5).exp() @ y, 0.25)

    @staticmethod
    def in_place(x: Tensor, y: Tensor) -> Tensor:
        return F.dropout(x * y, 0.4, inplace=True) * y

    @staticmethod
    def attention(x: Tensor, y: Tensor) -> Tensor:
        query, key = x.view(1, 2, 3, 6), y.view(1, 2, 3, 6)
        return F.scaled_dot_product_attention(query, key, key, dropout_p=0.3)

    @staticmethod
    def noise(x: Tensor, y: Tensor) -> Tensor:
        return (x * torch.randn_like(y) + torch.rand(6, dtype=y.dtype) + torch.empty_like(x).uniform_(1, 2) * x) * y

    @staticmethod
    def transposed(x: Tensor, y: Tensor) -> Tensor:
        return F.dropout((x * y).t(), 0.3) * y

    @staticmethod
    def transposed_in_place(x: Tensor, y: Tensor) -> Tensor:
        return F.dropout((x * y).t(), 0.3, inplace=True) * y

    @staticmethod
    def all_dropped(x: Tensor, y: Tensor) -> Tensor:
        return F.dropout(x * y, 1.0) + y * x

    @staticmethod
    def noise_in_columns(x: Tensor, y: Tensor) -> Tensor:
        return x * y * torch.zeros(6, 12, dtype=x.dtype)[:, ::2].t().normal_(1, 0.1)

    @staticmethod
    def a_part_is_drawn(x: Tensor, y: Tensor) -> Tensor:
        noise = torch.ones(6, 6, dtype=x.dtype)
        noise[1:5, 2:4].uniform_(2, 3)
        return x * noise * y

    @staticmethod
    def other_distributions(x: Tensor, y: Tensor) -> Tensor:
        noise = [torch.empty_like(x).exponential_(2), torch.empty_like(x).log_normal_(0, 0.1)]
        noise += [torch.empty_like(x).geometric_(0.5), torch.empty_like(x).bernoulli_(torch.full_like(x, 0.7))]
        return x * y * (noise[0] + noise[1]) * (noise[2] + noise[3])

    @staticmethod
    def gumbel(x: Tensor, y: Tensor) -> Tensor:
        return F.gumbel_softmax(x * y, dim=-1) * y

    @staticmethod
    def leak(x: Tensor, y: Tensor) -> Tensor:
        return F.rrelu(x * y, training=True) * y + F.rrelu(y * x.exp(), 0.1, 0.4)

    @staticmethod
    def mask(x: Tensor, y: Tensor) -> Tensor:
        return x * y * torch.bernoulli(torch.full_like(y, 0.5)) + x * torch.empty(6, dtype=x.dtype).bernoulli_(0.3)


@pytest.mark.parametrize("name", [name for name in vars(_Dropout) if not name.startswith("_")])
def test_dropout_draws_what_eager_draws(name: str, trained: Graphs) -> None:
    program, x, y = getattr(_Dropout, name), leaf(6, 6), leaf(6, 6)
    compiled = fusee.compile(program)

    def seeded(run: Program) -> Program:
        def call(*inputs: Tensor) -> Any:
            torch.manual_seed(7)
            return run(*inputs)

        return call

    expected, found = gradients_of(seeded(program), x, y), gradients_of(seeded(compiled), x, y)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-12)

    def second(run: Program) -> Tensor:
        torch.manual_seed(7)
        first = torch.autograd.grad(run(x, y).sum(), x, create_graph=True)[0]
        drawn = torch.rand(1)
        return torch.cat([torch.autograd.grad((first**2).sum(), y)[0].flatten(), drawn])

    torch.testing.assert_close(second(compiled), second(program))
    assert trained


def test_an_expanded_gradient(trained: Graphs) -> None:
    x = leaf(4, 3)
    fusee.compile(lambda tensor: tensor.exp() * 2)(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.exp().detach())
    assert trained


class Small(nn.Module):
    """A transformer block and a head, as small as can be."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.qkv, self.up, self.down = nn.Linear(8, 24), nn.Linear(8, 16), nn.Linear(16, 8)
        self.head = nn.Linear(8, 11, bias=False)

    def forward(self, tokens: Tensor, target: Tensor) -> Tensor:
        x = self.tokens(tokens)
        q, k, v = (part.view(2, 5, 2, 4).transpose(1, 2) for part in self.qkv(self.norm(x)).split(8, dim=2))
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 5, 8)
        x = x + self.down(F.gelu(self.up(self.norm(x))))
        return F.cross_entropy(self.head(x).view(-1, 11), target)


def test_a_model_trains_as_it_does_uncompiled(trained: Graphs) -> None:
    tokens, target = torch.randint(0, 11, (2, 5)), torch.randint(0, 11, (10,))

    def losses(compiler: Program) -> list[float]:
        torch.manual_seed(1)
        module = Small().double()
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
        run, found = compiler(module), []
        for _ in range(20):
            optimizer.zero_grad()
            loss = run(tokens, target)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    plain = losses(lambda module: module)
    assert losses(fusee.compile) == pytest.approx(plain, rel=1e-9)
    assert plain[-1] < plain[0]
    assert len(trained) == 1


def weighted_means(keys: Tensor, values: Tensor, decay: Tensor, first: Tensor) -> Tensor:
    """Means that forget, as a recurrent network's: each step reads the three states before it several times."""
    above = below = torch.zeros_like(keys[0])
    most, means = below - 1e30, []
    for key, value in zip(keys, values, strict=True):
        limit = torch.maximum(most, key + first)
        old, new = torch.exp(most - limit), torch.exp(key + first - limit)
        means.append((old * above + new * value) / (old * below + new))
        limit = torch.maximum(most - decay, key)
        old, new = torch.exp(most - decay - limit), torch.exp(key - limit)
        above, below, most = old * above + new * value, old * below + new, limit
    return torch.stack(means)


def test_long_recurrences_are_compiled_in_time(trained: Graphs) -> None:
    """Going back along each way from a step to the first would take as long as there are ways."""
    same(weighted_means, leaf(24, 2, 5), leaf(24, 2, 5), leaf(5), leaf(5), trained=trained)


@pytest.mark.parametrize("kind", [torch.bool, torch.float64])
def test_masks_of_attention_reach_its_kernel(kind: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that raises, as the kernel adds masks of numbers alone, would leave each call to Python."""
    raised: list[Exception] = []
    run = training.TrainedGraph.__init__

    def noting(self: training.TrainedGraph, graph: dict[str, Any], value: Any) -> None:
        run(self, graph, value)
        forward = self.forward

        def noted(*inputs: Any) -> Any:
            try:
                return forward(*inputs)
            except Exception as error:
                raised.append(error)
                raise

        self.forward = noted

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask) * 2

    monkeypatch.setattr(training.TrainedGraph, "__init__", noting)
    truth = torch.tensor([[True, False, False], [True, True, False], [False, True, True]])
    mask = truth if kind == torch.bool else torch.randn(3, 3, dtype=kind)
    given = [leaf(2, 2, 3, 4) for _ in range(3)]
    expected = torch.autograd.grad(attend(*given).sin().sum(), given)
    found = torch.autograd.grad(fusee.compile(attend)(*given).sin().sum(), given)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one)
    assert not raised


def test_attention_with_a_mask_and_dropout_is_one_graph() -> None:
    """Each run on other numbers that the host makes meets devices of its own, which are the same one."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=0.5)

    mask = torch.ones(3, 3, dtype=torch.bool).tril()
    given = [leaf(2, 2, 3, 4) for _ in range(3)]
    torch.manual_seed(1)
    expected = attend(*given)
    torch.manual_seed(1)
    torch.testing.assert_close(fusee.compile(attend, fullgraph=True)(*given), expected)
