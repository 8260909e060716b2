"""A training step as one function, from forward to zero_grad, compared with the same step uncompiled."""

# mypy: allow-untyped-calls
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fusee

Make = Callable[[Any], torch.optim.Optimizer]
Step = Callable[..., Any]

OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "foreach": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, foreach=True),
    "fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, fused=True),
    "single": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=False),
}


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


class Convolutions(nn.Module):
    """Two convolutions with batch norms, a maximum pool and a mean over the images."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.head = nn.Linear(8, 5)

    def forward(self, images: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norms[0](self.first(images))), 2)
        x = F.relu(self.norms[1](self.second(x)))
        result: Tensor = self.head(x.mean((2, 3)))
        return result


class Block(nn.Module):
    """A block of a transformer over token numbers, with dropout and an embedding that is the head's weight too."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(20, 16), nn.Linear(16, 20, bias=False)
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)])
        self.attention, self.project = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)
        self.head.weight = self.tokens.weight

    def forward(self, numbers: Tensor) -> Tensor:
        x = self.tokens(numbers)
        parts = self.attention(self.norms[0](x)).split(16, -1)
        query, key, value = (part.view(*part.shape[:2], 2, 8).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.project(mixed), 0.1, self.training)
        x = x + F.dropout(self.down(F.gelu(self.up(self.norms[1](x)))), 0.1, self.training)
        result: Tensor = self.head(x)
        return result


def made(make: Callable[[], nn.Module], dtype: torch.dtype) -> nn.Module:
    """A module whose parameters depend on nothing but its kind."""
    torch.manual_seed(0)
    return make().to(dtype)


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, data: list[tuple[Tensor, Tensor]], compiled: bool
) -> dict[str, Any]:
    """Losses, parameters, buffers and the optimizer's state after a step for each batch."""

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run: Step = fusee.compile(step, fullgraph=True) if compiled else step
    losses = [run(x, y) for x, y in data]
    return {
        "losses": [loss.item() for loss in losses],
        "model": model.state_dict(),
        "gradients": [parameter.grad for parameter in model.parameters()],
        "optimizer": optimizer.state_dict()["state"],
    }


def batches(count: int, sizes: tuple[int, ...], results: int, dtype: torch.dtype) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(*sizes, generator=generator, dtype=dtype),
            torch.randn(sizes[0], results, generator=generator, dtype=dtype),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_a_perceptron(name: str) -> None:
    fusee.reset()
    outcomes = []
    for compiled in (False, True):
        model = made(perceptron, torch.float64)
        outcomes.append(
            train(model, OPTIMIZERS[name](model.parameters()), batches(20, (5, 8), 4, torch.float64), compiled)
        )
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-11, atol=1e-12)
    assert fusee.stats()["breaks"] == 0 and fusee.stats()["graphs"] <= 3


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (torch.optim.Adamax, {"foreach": True}),
        (torch.optim.NAdam, {"foreach": True, "momentum_decay": 0}),
        (torch.optim.Adadelta, {}),
        (torch.optim.Adam, {"fused": True}),
        (torch.optim.SGD, {"fused": True, "momentum": 0.9}),
        (torch.optim.Adagrad, {"fused": True}),
    ],
)
def test_rates_that_change_at_each_step(make: Any, options: dict[str, Any]) -> None:
    """One graph without gradients, one with them; the rate is an argument of both, also of the fused kernels."""
    fusee.reset()
    outcomes = []
    for compiled in (False, True):
        model = made(perceptron, torch.float64)
        optimizer = make(model.parameters(), lr=0.05, **options)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)

        def step(x: Tensor, y: Tensor, model: Any = model, optimizer: Any = optimizer) -> Tensor:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run: Step = fusee.compile(step, fullgraph=True) if compiled else step
        losses = []
        for x, y in batches(10, (5, 8), 4, torch.float64):
            losses.append(run(x, y))
            schedule.step()
        outcomes.append((losses, model.state_dict()))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-7, atol=1e-9)
    assert fusee.stats()["graphs"] <= 3


def images(count: int, dtype: torch.dtype) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(4, 3, 8, 8, generator=generator, dtype=dtype), torch.randint(0, 5, (4,), generator=generator))
        for _ in range(count)
    ]


def texts(count: int, dtype: torch.dtype) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randint(0, 20, (2, 6), generator=generator), torch.randint(0, 20, (2, 6), generator=generator))
        for _ in range(count)
    ]


@pytest.mark.parametrize(("make", "data"), [(Convolutions, images), (Block, texts)], ids=["convolutions", "block"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_classifiers_with_a_schedule_and_clipped_gradients(make: Any, data: Any, dtype: torch.dtype) -> None:
    """20 steps in which the learning rate changes 19 times, and the random numbers of dropout are eager's."""
    outcomes = []
    for compiled in (False, True):
        model = made(make, dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)

        def step(x: Tensor, y: Tensor, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return loss, norm

        run: Step = fusee.compile(step, fullgraph=True) if compiled else step
        losses = []
        for x, y in data(20, dtype):
            losses += [value.item() for value in run(x, y)]
            schedule.step()
        outcomes.append((losses, model.state_dict()))
    relative, absolute = (1e-10, 1e-11) if dtype == torch.float64 else (1e-4, 1e-5)
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=relative, atol=absolute)
    assert fusee.stats()["breaks"] == 0 and fusee.stats()["graphs"] <= 3


def test_scaled_gradients() -> None:
    """Only whether the step is taken, which depends on values, is decided in Python."""
    outcomes = []
    for compiled in (False, True):
        model = made(perceptron, torch.float32)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4, growth_interval=2)

        def step(x: Tensor, y: Tensor, model: Any = model, optimizer: Any = optimizer, scaler: Any = scaler) -> None:
            optimizer.zero_grad()
            scaler.scale(F.mse_loss(model(x), y)).backward()
            scaler.step(optimizer)
            scaler.update()

        run: Step = fusee.compile(step) if compiled else step
        for k, (x, y) in enumerate(batches(6, (5, 8), 4, torch.float32)):
            run(x * torch.inf if k == 3 else x, y)
        outcomes.append((scaler.get_scale(), list(model.state_dict().values())))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-5, atol=1e-6)
    # Without and with gradients there were, then the step taken and not taken.
    assert fusee.stats()["graphs"] == 4 and fusee.stats()["breaks"] == 2


def test_a_detached_loss_behind_a_break() -> None:
    """The graph behind the break is given the loss, and returns it detached beside what else it does: as a plan."""

    def program(x: Tensor) -> Any:
        loss = (x * x).sum()
        fusee.graph_break()
        with torch.no_grad():
            x.mul_(2)
            part = x[1:]
        return loss.detach(), x.detach(), x.detach().add_(1), part

    x, y = leaf(3), leaf(3)
    y.data.copy_(x)
    explained = fusee.explain(program)(x)
    assert explained.graph_count == 2 and not [graph for graph in explained.graphs if "why" in graph]
    for found, wanted, owner in zip(explained.result, program(y), (None, y, y, y), strict=True):
        assert torch.equal(found, wanted) and found._is_view() == wanted._is_view()
        assert found.requires_grad == wanted.requires_grad
        assert owner is None or found._version == x._version
    explained.result[1].mul_(3)
    assert torch.equal(x, explained.result[2]) and explained.result[1]._base is x.detach()._base


def leaf(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def planned(program: Step, *inputs: Any) -> Any:
    """What the compiled program gives; its one graph runs as a plan."""
    fusee.reset()
    [graph] = fusee.explain(program)(*inputs).graphs
    assert "why" not in graph, graph["why"]
    for tensor in inputs:
        tensor.grad = None
    return fusee.compile(program, fullgraph=True)(*inputs)


def test_gradients_are_added_to_those_there_are() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        loss = (x * y).sum()
        loss.backward()
        return loss

    x, y = leaf(3), leaf(3)
    planned(program, x, y)
    first = x.grad
    assert first is not None
    fusee.compile(program, fullgraph=True)(x, y)
    assert x.grad is first and torch.equal(first, y * 2) and y.grad is not None and torch.equal(y.grad, x * 2)
    assert y.grad.data_ptr() != first.data_ptr()


def test_gradients_lie_like_their_leaves() -> None:
    def program(x: Tensor, y: Tensor) -> None:
        (x * y).sum().backward()

    dense = leaf(3, 4).detach().t().requires_grad_()
    apart = leaf(4, 6).detach()[:, ::2].requires_grad_()
    found: list[Any] = []
    for run in (program, fusee.compile(program, fullgraph=True)):
        dense.grad = apart.grad = None
        run(dense, apart)
        assert dense.grad is not None and apart.grad is not None
        found.append((dense.grad, apart.grad, dense.grad.stride(), apart.grad.stride(), dense.grad.is_leaf))
    torch.testing.assert_close(found[1], found[0])


def test_two_leaves_of_one_gradient_have_memory_of_their_own() -> None:
    def program(x: Tensor, y: Tensor) -> None:
        (x + y).sum().backward()
        with torch.no_grad():
            assert x.grad is not None
            x.grad.mul_(3)

    x, y = leaf(3), leaf(3)
    planned(program, x, y)
    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == [3.0] * 3 and y.grad.tolist() == [1.0] * 3


def test_gradients_that_the_program_asks_for() -> None:
    def program(x: Tensor, y: Tensor) -> Any:
        hidden = (x * y).tanh()
        first, inner = torch.autograd.grad(hidden.sum(), (x, hidden), retain_graph=True)
        [second] = torch.autograd.grad(hidden, y, torch.ones_like(hidden) * 2)
        return first, inner, second

    x, y = leaf(3), leaf(3)
    torch.testing.assert_close(planned(program, x, y), program(x, y))


def test_what_backward_went_through_has_no_history_left() -> None:
    def program(x: Tensor) -> Any:
        hidden = x.sin()
        loss = (hidden * hidden).sum()
        loss.backward()
        return loss, hidden, hidden.detach()

    x = leaf(3)
    for run in (program, lambda x: planned(program, x)):
        loss, hidden, plain = run(x)
        assert loss.requires_grad and loss.grad_fn is not None and not loss.is_leaf
        assert hidden.requires_grad and not plain.requires_grad
        for result in (loss, hidden.sum()):
            with pytest.raises(RuntimeError, match="second time"):
                result.backward()


def test_backward_that_runs_twice() -> None:
    def squared(x: Tensor) -> None:
        loss = (x * x).sum()
        loss.backward()
        loss.backward()

    with pytest.raises(RuntimeError, match="second time"):
        fusee.compile(squared)(leaf(3))


def test_results_that_can_still_be_differentiated() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        (x * x).sum().backward()
        return y * y

    x, y = leaf(3), leaf(3)
    fusee.compile(program, fullgraph=True)(x, y).sum().backward()
    torch.testing.assert_close((x.grad, y.grad), (x * 2, y * 2))


def test_memory_that_is_written_before_backward() -> None:
    def program(x: Tensor, scale: Tensor) -> None:
        loss = (x * scale).sum()
        scale.add_(1)
        loss.backward()

    for run in (program, fusee.compile(program)):
        with pytest.raises(RuntimeError, match="inplace operation"):
            run(leaf(3), torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("post", [False, True])
def test_hooks_are_called(post: bool) -> None:
    def program(x: Tensor) -> None:
        (x * 2).sum().backward()

    compiled = fusee.compile(program)
    x = leaf(3)
    compiled(x)
    seen = []
    register = x.register_post_accumulate_grad_hook if post else x.register_hook
    handle = register(lambda tensor: seen.append(tensor.sum().item()))
    compiled(x)
    handle.remove()
    compiled(x)
    assert len(seen) == 1 and x.grad is not None and x.grad.tolist() == [6.0] * 3


def test_gradients_flow_to_what_was_before() -> None:
    def program(hidden: Tensor) -> Tensor:
        loss = (hidden * hidden).sum()
        loss.backward()
        return loss

    x = leaf(3)
    fusee.compile(program)(x * 2)
    torch.testing.assert_close(x.grad, x * 8)


def test_an_operation_without_derivative_in_the_table_runs_in_python() -> None:
    def program(x: Tensor) -> Tensor:
        loss: Tensor = torch.special.i0e(x).sum()
        loss.backward()
        return loss.detach()

    x = leaf(3)
    fusee.compile(program, fullgraph=True)(x)
    found, x.grad = x.grad, None
    program(x)
    torch.testing.assert_close(found, x.grad)


@pytest.mark.parametrize("within", [False, True])
def test_anomaly_mode_finds_the_operation_behind_a_gradient_that_is_no_number(within: bool) -> None:
    def step(x: Tensor) -> Tensor:
        loss = (x * 0).sqrt().sum()
        loss.backward()
        return loss.detach()

    def watched(x: Tensor) -> Tensor:
        with torch.autograd.set_detect_anomaly(True):
            return step(x)

    compiled = fusee.compile(watched if within else step)
    if not within:
        compiled(leaf(3))  # compiled before the mode is on
    with torch.autograd.set_detect_anomaly(not within), pytest.raises(RuntimeError, match="MulBackward0"):
        compiled(leaf(3))
    assert not torch.is_anomaly_enabled()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_updates_within_an_autocast_region_are_part_of_the_graph(optimizer: Any, whole: bool) -> None:
    def train(compiled: bool) -> list[Tensor]:
        torch.manual_seed(0)
        network = torch.nn.Linear(4, 3)
        chosen = optimizer(network.parameters(), lr=0.1)

        def step(x: Tensor) -> Tensor:
            with torch.autocast("cpu", torch.bfloat16, enabled=whole):
                loss = network(x).square().mean()
                loss.backward()
                with torch.autocast("cpu", torch.bfloat16):
                    chosen.step()
            chosen.zero_grad()
            return loss.detach()

        x = torch.randn(5, 4)
        if not compiled:
            return [step(x) for _ in range(3)] + [parameter.detach() for parameter in network.parameters()]
        explained = fusee.explain(step)(x)
        assert not [graph for graph in explained.graphs if "why" in graph]
        run = fusee.compile(step, fullgraph=True)
        return [explained.result, run(x), run(x)] + [parameter.detach() for parameter in network.parameters()]

    torch.testing.assert_close(train(True), train(False), rtol=1e-2 if whole else 1e-5, atol=1e-2 if whole else 1e-6)


class Classifier(torch.nn.Module):
    """Counts its calls, updates statistics and draws numbers ahead of a loss that refuses labels."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout())
        self.calls = 0

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.nn.functional.cross_entropy(self.layers(x), labels)


def careful_step(
    model: Classifier, optimizer: torch.optim.Optimizer, x: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor | str:
    optimizer.zero_grad()
    try:
        loss: torch.Tensor = model(x, labels)
    except IndexError as error:
        return str(error)
    loss.backward()
    optimizer.step()
    return loss.detach()


def test_a_label_out_of_range_in_a_step_is_caught_and_leaves_what_eager_does() -> None:
    told = []
    for function in (careful_step, fusee.compile(careful_step)):
        torch.manual_seed(0)
        model = Classifier()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        seen: list[Any] = []
        for label in (1, 7, 2, 7):
            seen.append(function(model, optimizer, torch.eye(4), torch.tensor([0, 1, 2, label])))
        told.append(([s if isinstance(s, str) else s.item() for s in seen], model.calls, torch.rand(1).item()))
        told[-1] += ([value.tolist() for value in model.state_dict().values()],)
    torch.testing.assert_close(told[1][2:], told[0][2:])
    assert told[1][1] == told[0][1] == 4 and told[1][0][1::2] == told[0][0][1::2] == ["Target 7 is out of bounds."] * 2
