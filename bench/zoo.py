"""Models of the packages transformers and timm: randomly initialised, shrunk, with inputs; nothing is downloaded."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Inputs = dict[str, torch.Tensor]
PACKAGES = ("transformers", "timm")
BATCH, LENGTH, WORDS, CLASSES = 2, 16, 128, 10


@dataclass(frozen=True)
class Entry:
    """How to make a model and its inputs.

    Args:
        package: the package that it comes from.
        make: the model, given whether dropout keeps the model's default rates (else all are 0).
        inputs: the keyword arguments of a training step, drawn anew at each call; a model of transformers computes
            its own loss of them, for others ``labels`` are classes.
        unseen: names of inputs that only training is given.
    """

    package: str
    make: Callable[[bool], torch.nn.Module]
    inputs: Callable[[], Inputs]
    unseen: tuple[str, ...] = ("labels",)


def missing_packages() -> list[str]:
    """The packages that are not installed."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


def words(length: int = LENGTH) -> torch.Tensor:
    """Token ids, int64 of shape (BATCH, length)."""
    return torch.randint(3, WORDS, (BATCH, length))


def text() -> Inputs:
    """A text and the labels of a language model."""
    tokens = words()
    return {"input_ids": tokens, "labels": tokens.clone()}


def masked_text() -> Inputs:
    """As ``text``, where the last words of the first text are padding."""
    inputs = text()
    inputs["attention_mask"] = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    inputs["attention_mask"][0, -4:] = 0
    return inputs


def two_texts() -> Inputs:
    """A text for an encoder and the labels of a decoder, which it shifts to get its inputs."""
    return {"input_ids": words(), "labels": words(8)}


def sound() -> Inputs:
    """A spectrogram of 80 bands, and the labels of a decoder."""
    return {"input_features": torch.randn(BATCH, 80, 64), "labels": words(8)}


def image(size: int) -> Callable[[], Inputs]:
    """Square images of three channels, and their classes."""

    def draw() -> Inputs:
        return {"pixel_values": torch.randn(BATCH, 3, size, size), "labels": torch.randint(0, CLASSES, (BATCH,))}

    return draw


def without_dropout(model: torch.nn.Module) -> torch.nn.Module:
    """Sets all rates of dropout to 0, those that attention reads from attributes too."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name, value in vars(module).items():
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)
    return model


def transformer(architecture: str, **sizes: Any) -> Callable[[bool], torch.nn.Module]:
    """A model of transformers, ``NAME`` of ``NAMEForCausalLM`` and the like being its family's configuration."""

    def make(dropout: bool) -> torch.nn.Module:
        package = importlib.import_module("transformers")
        family = architecture.partition("For")[0].removesuffix("LMHeadModel")
        model = getattr(package, architecture)(getattr(package, f"{family}Config")(**sizes))
        return model if dropout else without_dropout(model)

    return make


def classifier(architecture: str, **options: Any) -> Callable[[bool], torch.nn.Module]:
    """A model of timm."""

    def make(dropout: bool) -> torch.nn.Module:
        package = importlib.import_module("timm")
        model = package.create_model(architecture, pretrained=False, num_classes=CLASSES, **options)
        return model if dropout else without_dropout(model)

    return make


LLAMA = {
    "vocab_size": WORDS,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
BERT = {name: size for name, size in LLAMA.items() if name != "num_key_value_heads"}
GPT2 = {"vocab_size": WORDS, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}
T5 = {
    "vocab_size": WORDS,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
VIT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": CLASSES,
}
WHISPER = {
    "vocab_size": WORDS,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "max_source_positions": 32,
    "max_target_positions": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}

MODELS: dict[str, Entry] = {
    "GPT-2": Entry("transformers", transformer("GPT2LMHeadModel", **GPT2), text),
    "Llama": Entry("transformers", transformer("LlamaForCausalLM", **LLAMA), text),
    "Qwen2": Entry("transformers", transformer("Qwen2ForCausalLM", **LLAMA), masked_text),
    "Qwen3": Entry("transformers", transformer("Qwen3ForCausalLM", head_dim=16, **LLAMA), text),
    "BERT": Entry("transformers", transformer("BertForMaskedLM", **BERT), masked_text),
    "T5": Entry("transformers", transformer("T5ForConditionalGeneration", **T5), two_texts, ()),
    "ViT": Entry("transformers", transformer("ViTForImageClassification", **VIT), image(32)),
    "Whisper": Entry("transformers", transformer("WhisperForConditionalGeneration", **WHISPER), sound, ()),
    "resnet18": Entry("timm", classifier("resnet18"), image(32)),
    "convnext_tiny": Entry("timm", classifier("convnext_tiny", depths=(1, 1, 2, 1), dims=(16, 32, 64, 64)), image(32)),
    "efficientnet_b0": Entry("timm", classifier("efficientnet_b0"), image(64)),
    "vit_tiny": Entry(
        "timm", classifier("vit_tiny_patch16_224", img_size=32, depth=2, embed_dim=64, num_heads=4), image(32)
    ),
}
