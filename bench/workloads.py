"""What the benchmark runs: plain PyTorch programs that know nothing of any compiler.

Each row of :data:`WORKLOADS` builds a function with its arguments, and with other arguments of unlike shapes that make
a compiler compile again. On CUDA the sizes fill a large card; on a CPU two cores take milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Workload:
    """A function without gradients, arguments for it, and arguments of other shapes (empty: not measured).

    Where ``trained`` is a module, the function is its loss, whose gradients a step takes too.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    others: tuple[Any, ...] = ()
    trained: nn.Module | None = None


Builder = Callable[[str], Workload]


def add_relu_double(x: Tensor, y: Tensor) -> Tensor:
    """The example of the README."""
    z = x + y
    return torch.relu(z) * 2


def tiny(device: str) -> Workload:
    """The example on 4 floats: what a call costs where the work costs nothing."""
    pair = (torch.randn(4, device=device), torch.randn(4, device=device))
    return Workload(add_relu_double, pair, (torch.randn(3, 5, device=device), torch.randn(3, 5, device=device)))


def large(device: str) -> Workload:
    """The example on 2^26 floats on CUDA and 2^20 on a CPU: the speed of memory."""
    size = 1 << (26 if device == "cuda" else 20)
    return Workload(add_relu_double, (torch.randn(size, device=device), torch.randn(size, device=device)))


def rows(device: str, cuda: tuple[int, int], cpu: tuple[int, int]) -> tuple[int, int]:
    """The size of a matrix for a device."""
    return cuda if device == "cuda" else cpu


def activation_dtype(device: str) -> torch.dtype:
    """What activations are kept in."""
    return torch.bfloat16 if device == "cuda" else torch.float32


def bias_gelu_residual(device: str) -> Workload:
    """A chain of pointwise operations as a transformer's feed-forward part writes it."""
    height, width = rows(device, (16384, 8192), (512, 1024))
    dtype = activation_dtype(device)
    x, residual = (torch.randn(height, width, device=device, dtype=dtype) for _ in range(2))
    bias = torch.randn(width, device=device, dtype=dtype)

    def run(x: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
        hidden = x + bias
        inner = math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)
        return 0.5 * hidden * (1 + torch.tanh(inner)) * 1.25 + residual

    return Workload(run, (x, bias, residual))


def softmax(device: str) -> Workload:
    """A softmax over rows, written out."""
    x = torch.randn(*rows(device, (32768, 4096), (1024, 1024)), device=device)

    def run(x: Tensor) -> Tensor:
        shifted = torch.exp(x - x.amax(dim=-1, keepdim=True))
        return shifted / shifted.sum(dim=-1, keepdim=True)

    return Workload(run, (x,))


def rms_norm(device: str) -> Workload:
    """Root-mean-square normalisation in float32 of activations in a smaller type."""
    height, width = rows(device, (16384, 8192), (512, 1024))
    x = torch.randn(height, width, device=device, dtype=activation_dtype(device))
    weight = torch.randn(width, device=device, dtype=activation_dtype(device))

    def run(x: Tensor, weight: Tensor) -> Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (wide * scale).to(x.dtype) * weight

    return Workload(run, (x, weight))


def residual_layer_norm(device: str) -> Workload:
    """Layer normalisation of a sum."""
    height, width = rows(device, (16384, 8192), (512, 1024))
    x, residual = (torch.randn(height, width, device=device) for _ in range(2))
    weight, bias = (torch.randn(width, device=device) for _ in range(2))

    def run(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional.layer_norm(x + residual, (x.shape[-1],), weight, bias, 1e-5)

    return Workload(run, (x, residual, weight, bias))


def cross_entropy(device: str) -> Workload:
    """The loss of a language model's last layer."""
    height, width = rows(device, (16384, 32000), (256, 4000))
    logits = torch.randn(height, width, device=device)
    targets = torch.randint(0, width, (height,), device=device)
    return Workload(lambda logits, targets: functional.cross_entropy(logits, targets), (logits, targets))


class FeedForward(nn.Module):
    """Two linear layers with a GELU between them, and the input added."""

    def __init__(self, width: int, inner: int) -> None:
        """Makes the layers."""
        super().__init__()
        self.widen = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """``x``: [rows, width]."""
        narrowed: Tensor = self.narrow(functional.gelu(self.widen(x)))
        return x + narrowed


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, width: int, heads: int) -> None:
        """Makes the projections."""
        super().__init__()
        self.heads = heads
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """``x``: [batch, time, width]."""
        batch, time, width = x.shape
        parts = self.project_in(x).view(batch, time, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        result: Tensor = self.project_out(mixed.transpose(1, 2).reshape(batch, time, width))
        return result


class TransformerLayer(nn.Module):
    """Normalise, attend, normalise, feed forward."""

    def __init__(self, width: int, heads: int) -> None:
        """Makes the parts."""
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.before_feed_forward = nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """``x``: [batch, time, width]."""
        x = x + self.attention(self.before_attention(x))
        fed: Tensor = self.feed_forward(self.before_feed_forward(x))
        return x + fed


class LanguageModel(nn.Module):
    """A decoder in the style of GPT-2."""

    def __init__(self, layers: int, width: int, heads: int, words: int, longest: int) -> None:
        """Makes embeddings, layers and the head."""
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(TransformerLayer(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """``tokens``: int64 [batch, time]; returns logits [batch, time, words]."""
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.head(self.last(x))
        return logits


class ConvolutionBlock(nn.Module):
    """Two convolutions with a shortcut around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        """Makes the layers; the shortcut has one of its own where the shapes differ."""
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        """``x``: [batch, before, height, width]."""
        y = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(y)) + self.shortcut(x))


def residual_network() -> nn.Module:
    """A ResNet-18 with 1000 classes."""
    blocks: list[nn.Module] = []
    before = 64
    for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [ConvolutionBlock(before, after, stride), ConvolutionBlock(after, after, 1)]
        before = after
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def module_workload(module: nn.Module, *arguments: Tensor) -> Workload:
    """Inference with a module on the device and in the type of its floating-point arguments."""
    return Workload(torch.no_grad()(module.eval()), arguments)


def feed_forward(device: str) -> Workload:
    """One feed-forward block: two matrix products and what is around them."""
    width, inner, height = (4096, 16384, 8192) if device == "cuda" else (256, 1024, 256)
    dtype = activation_dtype(device)
    module = FeedForward(width, inner).to(device, dtype)
    return module_workload(module, torch.randn(height, width, device=device, dtype=dtype))


def language_model(device: str, batch: int, time: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A GPT-2 small on CUDA, a toy on a CPU; its words and those that follow them, int64 [batch, time] each."""
    layers, width, heads, words = (12, 768, 12, 50304) if device == "cuda" else (4, 128, 4, 1000)
    module = LanguageModel(layers, width, heads, words, time).to(device, activation_dtype(device))
    tokens, following = torch.randint(0, words, (2, batch, time), device=device)
    return module, tokens, following


def transformer(device: str) -> Workload:
    """The forward pass over whole texts."""
    module, words, _ = language_model(device, *((16, 1024) if device == "cuda" else (2, 64)))
    return module_workload(module, words)


def decode_step(device: str) -> Workload:
    """One word at batch size one: the launches cost more than the work."""
    module, words, _ = language_model(device, 1, 1)
    return module_workload(module, words)


def deep_narrow(device: str) -> Workload:
    """64 tiny layers, where everything but the arithmetic counts."""
    layers = [part for _ in range(64) for part in (nn.Linear(16, 16), nn.ReLU())]
    return module_workload(nn.Sequential(*layers).to(device), torch.randn(8, 16, device=device))


def convolution(device: str) -> Workload:
    """Inference with a ResNet-18."""
    batch, side = (128, 224) if device == "cuda" else (1, 64)
    return module_workload(residual_network().to(device), torch.randn(batch, 3, side, side, device=device))


def transformer_training(device: str) -> Workload:
    """The loss of a language model, half as many texts as for the forward pass alone."""
    module, words, targets = language_model(device, *((8, 1024) if device == "cuda" else (2, 64)))

    def loss(words: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(module(words).flatten(0, 1).float(), targets.flatten())

    return Workload(loss, (words, targets), trained=module)


def convolution_training(device: str) -> Workload:
    """The loss of a ResNet-18."""
    batch, side = (128, 224) if device == "cuda" else (2, 64)
    network = residual_network().to(device)
    images = torch.randn(batch, 3, side, side, device=device)
    classes = torch.randint(0, 1000, (batch,), device=device)
    return Workload(lambda x, y: functional.cross_entropy(network(x), y), (images, classes), trained=network)


def branch(device: str) -> Workload:
    """A branch on a tensor's value between two chains."""

    def run(x: Tensor) -> Tensor:
        y = torch.sin(x) + 1
        y = y * 2 if y.sum() > 0 else y - 3
        return torch.cos(y).relu()

    return Workload(run, (torch.randn(*rows(device, (1024, 1024), (64, 64)), device=device),))


WORKLOADS: dict[str, Builder] = {
    builder.__name__: builder
    for builder in (
        tiny,
        large,
        bias_gelu_residual,
        softmax,
        rms_norm,
        residual_layer_norm,
        cross_entropy,
        feed_forward,
        transformer,
        decode_step,
        deep_narrow,
        convolution,
        branch,
    )
}

TRAINED: dict[str, Builder] = {builder.__name__: builder for builder in (transformer_training, convolution_training)}
