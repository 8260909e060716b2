"""Arguments for every operator that has a derivative, made from its schema and from what is special about it.

The elements lie between 0.2 and 0.9, inside the domain of every function, unless a sample says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Sample = dict[str, Any]


def between(low: float, high: float, *sizes: int) -> Tensor:
    """Random float64 elements in an interval."""
    return torch.rand(sizes, dtype=torch.float64) * (high - low) + low


def real(*sizes: int) -> Tensor:
    """Random normal float64 elements."""
    return torch.randn(*sizes, dtype=torch.float64)


def mask(*sizes: int) -> Tensor:
    """Random truth values."""
    return torch.rand(*sizes) > 0.5


def holed() -> Tensor:
    """Elements of which some rows and columns hold no zero, one zero, or two."""
    return torch.tensor([[2.0, 0.0, 3.0], [1.5, 4.0, 0.0], [0.5, 2.0, 0.0]], dtype=torch.float64)


def indices(bound: int, *sizes: int) -> Tensor:
    """Random indices, which may repeat."""
    return torch.randint(0, bound, sizes)


def _convolution(spatial: int, transposed: bool = False) -> Callable[[], Sample]:
    def make() -> Sample:
        weight = real(3, 2, *[2] * spatial)
        return {
            "input": real(2, 3 if transposed else 2, *[4] * spatial),
            "weight": weight,
            "bias": real(2 if transposed else 3),
        }

    return make


def _batch_norm(training: bool) -> Callable[[], Sample]:
    def make() -> Sample:
        return {
            "input": real(3, 4, 2),
            "weight": real(4),
            "bias": real(4),
            "running_mean": real(4),
            "running_var": between(0.5, 1, 4),
            "fixed": ["running_mean", "running_var"],
            "training": training,
            "momentum": 0.1,
            "eps": 1e-5,
            "cudnn_enabled": False,
        }

    return make


def _attention() -> Sample:
    query, key, value = real(2, 2, 5, 4), real(2, 2, 5, 4), real(2, 2, 5, 4)
    return {"query": query, "key": key, "value": value, "is_causal": True}


def _loss(low: float = 0.2, high: float = 0.9) -> Callable[[], Sample]:
    return lambda: {"self": between(low, high, 3, 4), "target": between(low, high, 3, 4)}


def _classes(dim: int) -> Sample:
    sizes = [4, 3, 2, 2][:dim]
    return {"self": torch.log_softmax(real(*sizes), 1), "target": indices(3, *sizes[:1], *sizes[2:])}


def _pooling() -> Sample:
    return {"self": real(1, 2, 6, 6), "kernel_size": [2, 2]}


def _scattered(**more: Any) -> Sample:
    return {"self": real(3, 4), "dim": 1, "index": torch.tensor([[0, 2], [3, 1], [1, 0]]), **more}


def _along_rows(**more: Any) -> Sample:
    return {"self": real(3, 4), "dim": 0, "index": torch.tensor([2, 0]), **more}


def _product(*shapes: tuple[int, ...]) -> Callable[..., Sample]:
    return lambda *names: {name: real(*shape) for name, shape in zip(names, shapes, strict=True)}


# Operators by name, or by name and overload. Arguments that are not given get what `arguments` thinks of their types.
def _pooled() -> Sample:
    pooled = {"grad_output": real(1, 2, 2, 2), "self": real(1, 2, 4, 4), "kernel_size": [2, 2], "stride": [2, 2]}
    return {**pooled, "padding": [0, 0], "ceil_mode": False}


def _largest() -> Sample:
    given = _pooled()
    found = torch.nn.functional.max_pool2d(given["self"], 2, return_indices=True)[1]
    return {**given, "dilation": [1, 1], "indices": found, "fixed": ["self"]}


def _embedding_gradient(padding: int) -> Sample:
    given = {"grad_output": real(2, 4, 3), "indices": indices(5, 2, 4), "num_weights": 5}
    return {**given, "padding_idx": padding, "scale_grad_by_freq": False}


def _class_gradient(*sizes: int) -> Sample:
    target = indices(sizes[1], sizes[0], *sizes[2:])
    scores = {"grad_output": real(1)[0], "self": real(*sizes), "target": target, "weight": None, "reduction": 1}
    total = torch.tensor(float(target.numel()), dtype=torch.float64)
    return {**scores, "ignore_index": -100, "total_weight": total, "fixed": ["total_weight"]}


def _convolution_gradient(transposed: bool) -> Sample:
    grad, input = real(2, 4, 5, 5), real(2, 2, 3 if transposed else 7, 3 if transposed else 7)
    weight = real(2, 4, 3, 3) if transposed else real(4, 2, 3, 3)
    sizes = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "output_padding": [0, 0], "groups": 1}
    settings = {"bias_sizes": [4], "transposed": transposed, "output_mask": [True, True, True]}
    return {"grad_output": grad, "input": input, "weight": weight, **sizes, **settings}


SAMPLES: dict[str, list[Callable[[], Sample]]] = {
    "acosh": [lambda: {"self": between(1.2, 3, 3, 4)}],
    "abs": [lambda: {"self": real(3, 4)}],
    "leaky_relu": [lambda: {"self": real(3, 4)}],
    "leaky_relu_backward": [lambda: {"self": real(3, 4)}],
    "hardtanh_backward": [lambda: {"self": real(3, 4), "min_val": -0.5, "max_val": 0.5}],
    "hardsigmoid_backward": [lambda: {"self": real(3, 4) * 4}],
    "elu_backward": [
        lambda: {"self_or_result": real(3, 4)},
        lambda: {"self_or_result": real(3, 4) * 0.3, "is_result": True},
    ],
    "silu_backward": [lambda: {"self": real(3, 4)}],
    "softplus_backward": [lambda: {"self": real(3, 4), "beta": 2.0, "threshold": 1.0}],
    "gelu_backward": [lambda: {"self": real(3, 4)}, lambda: {"self": real(3, 4), "approximate": "tanh"}],
    "slice_backward": [lambda: {"input_sizes": [3, 9], "start": 1, "end": 9, "step": 2, "dim": 1}],
    "select_backward": [lambda: {"grad_output": real(3), "input_sizes": [3, 4], "dim": 1, "index": 2}],
    "diagonal_backward": [
        lambda: {"grad_output": real(3), "input_sizes": [3, 4], "offset": 1, "dim1": 0, "dim2": 1},
    ],
    "unfold_backward": [lambda: {"grad_in": real(3, 3, 2), "input_sizes": [3, 4], "dim": 1, "size": 2, "step": 1}],
    "relu": [lambda: {"self": real(3, 4)}],
    "relu6": [lambda: {"self": real(3, 4) * 6}],
    "gelu": [lambda: {"self": real(3, 4)}, lambda: {"self": real(3, 4), "approximate": "tanh"}],
    "elu": [lambda: {"self": real(3, 4)}],
    "celu": [lambda: {"self": real(3, 4), "alpha": 2.0}],
    "selu": [lambda: {"self": real(3, 4)}],
    "silu": [lambda: {"self": real(3, 4)}],
    "mish": [lambda: {"self": real(3, 4)}],
    "hardswish": [lambda: {"self": real(3, 4) * 3}],
    "hardsigmoid": [lambda: {"self": real(3, 4) * 3}],
    "hardtanh": [lambda: {"self": real(3, 4)}],
    "logit": [lambda: {}, lambda: {"eps": 0.3}],
    "clamp": [lambda: {"self": real(3, 4), "min": -0.5, "max": 0.5}, lambda: {"self": real(3, 4), "max": 0.1}],
    "clamp.Tensor": [lambda: {"self": real(3, 4), "min": between(-1, 0, 3, 4), "max": between(-0.5, 1, 3, 1)}],
    "clamp_min.Tensor": [lambda: {"self": real(3, 4), "min": real(3, 1)}],
    "clamp_max.Tensor": [lambda: {"self": real(3, 4), "max": real(4)}],
    "div.Tensor_mode": [lambda: {"rounding_mode": None}],
    "fmod.Tensor": [lambda: {"self": real(3, 4) * 3, "other": between(0.5, 1, 3, 4)}],
    "remainder.Tensor": [lambda: {"self": real(3, 4) * 3, "other": between(0.5, 1, 3, 4)}],
    "pow.Tensor_Scalar": [lambda: {"exponent": 3}, lambda: {"exponent": 0}, lambda: {"exponent": -1.5}],
    "pow.Scalar": [lambda: {"self": 2.5}],
    "maximum": [lambda: {"self": real(3, 4), "other": real(4)}],
    "minimum": [lambda: {"self": real(3, 4), "other": real(4)}],
    "where.self": [lambda: {"condition": mask(3, 4), "self": real(3, 4), "other": real(4)}],
    "where.ScalarOther": [lambda: {"condition": mask(3, 4)}],
    "where.ScalarSelf": [lambda: {"condition": mask(3, 4)}],
    "masked_fill.Scalar": [lambda: {"mask": mask(3, 4)}],
    "masked_fill.Tensor": [lambda: {"mask": mask(3, 4), "value": between(0.2, 0.9)}],
    "polygamma": [lambda: {"n": 1}],
    "div.Scalar_mode": [lambda: {"rounding_mode": None}, lambda: {"self": real(3, 4), "rounding_mode": "floor"}],
    "mvlgamma": [lambda: {"self": between(2, 4, 3, 4), "p": 3}],
    "special_i1": [lambda: {"self": real(3, 4)}],
    "special_i1e": [lambda: {"self": real(3, 4)}],
    "special_log_ndtr": [lambda: {"self": real(3, 4)}],
    "special_xlog1py.other_scalar": [lambda: {"other": 0.5}, lambda: {"other": -1, "kink": True}],
    "igamma": [lambda: {"self": between(1, 2, 3, 4), "fixed": ["self"], "other": between(0.5, 2, 3, 4)}],
    "igammac": [lambda: {"self": between(1, 2, 3, 4), "fixed": ["self"], "other": between(0.5, 2, 3, 4)}],
    "angle": [lambda: {"self": real(3, 4)}],
    "special_zeta": [
        lambda: {"self": torch.full((3, 4), 2.5, dtype=torch.float64), "fixed": ["self"], "other": between(1, 3, 3, 4)}
    ],
    "lerp.Tensor": [lambda: {"weight": real(3, 4)}],
    # views
    "view": [lambda: {"size": [2, 6]}],
    "_unsafe_view": [lambda: {"size": [2, 6]}],
    "expand": [lambda: {"self": real(3, 1), "size": [2, 3, 4]}],
    "permute": [lambda: {"self": real(2, 3, 4), "dims": [2, 0, -2]}],
    "transpose.int": [lambda: {"dim0": 0, "dim1": 1}],
    "movedim.int": [lambda: {"self": real(2, 3, 4), "source": 0, "destination": 2}],
    "movedim.intlist": [lambda: {"self": real(2, 3, 4), "source": [0, 1], "destination": [2, 0]}],
    "squeeze": [lambda: {"self": real(3, 1, 4)}],
    "squeeze.dim": [lambda: {"self": real(3, 1, 4)}],
    "squeeze.dims": [lambda: {"self": real(3, 1, 4, 1), "dim": [1, 3]}],
    "unflatten.int": [lambda: {"sizes": [2, 2]}],
    "slice.Tensor": [lambda: {"start": 1, "end": 9, "step": 2}, lambda: {"start": -3, "end": -1}],
    "select.int": [lambda: {"index": 2}],
    "narrow": [lambda: {"start": 1, "length": 2}],
    "unfold": [lambda: {"dimension": 1, "size": 2, "step": 1}],
    "split.Tensor": [lambda: {"split_size": 3}],
    "split_with_sizes": [lambda: {"split_sizes": [1, 3], "dim": 1}],
    "chunk": [lambda: {"chunks": 2}],
    "tensor_split.sections": [lambda: {"sections": 3}],
    "tensor_split.indices": [lambda: {"indices": [1, 2]}],
    # reductions
    "sum.dim_IntList": [lambda: {"dim": [1]}, lambda: {"dim": [0], "keepdim": True}, lambda: {"dim": None}],
    "mean.dim": [lambda: {"dim": [1]}, lambda: {"dim": [0], "keepdim": True}],
    "nansum": [lambda: {"dim": [1]}],
    "amax": [lambda: {"dim": [1]}, lambda: {"self": torch.ones(3, 4, dtype=torch.float64), "kink": True}],
    "amin": [lambda: {"dim": [1]}],
    "max": [lambda: {}, lambda: {"self": torch.ones(3, 4, dtype=torch.float64), "kink": True}],
    "var.dim": [lambda: {"dim": [1]}],
    "std.dim": [lambda: {"dim": [1]}],
    "var.correction": [lambda: {"dim": [1], "correction": 0}, lambda: {"dim": None}],
    "std.correction": [lambda: {"dim": [1], "correction": 0, "keepdim": True}],
    "var_mean.dim": [lambda: {"dim": [1]}, lambda: {"dim": [0], "unbiased": False, "keepdim": True}],
    "std_mean.dim": [lambda: {"dim": [1]}],
    "var_mean.correction": [lambda: {"dim": [1], "correction": 0}, lambda: {"dim": None}],
    "std_mean.correction": [lambda: {"dim": [1], "correction": 0, "keepdim": True}],
    "prod": [lambda: {}, lambda: {"self": torch.tensor([2.0, 0.0, 3.0], dtype=torch.float64)}],
    "prod.dim_int": [lambda: {"dim": 1}, lambda: {"self": holed(), "dim": 0, "keepdim": True}],
    "cumprod": [lambda: {"dim": 1}, lambda: {"self": holed(), "dim": 0}, lambda: {"self": holed(), "dim": 1}],
    "logcumsumexp": [lambda: {"self": real(3, 4), "dim": 1}],
    "cummax": [lambda: {"self": real(3, 4), "dim": 1}],
    "cummin": [lambda: {"self": real(3, 4), "dim": 0}],
    "median.default": [
        lambda: {"self": real(3, 5)},
        lambda: {"self": torch.ones(3, dtype=torch.float64), "kink": True},
    ],
    "nanmedian.default": [lambda: {"self": real(3, 5)}],
    "aminmax": [lambda: {"self": real(3, 4), "dim": 1}, lambda: {"self": real(3, 4)}],
    "logsumexp": [lambda: {"dim": [1]}],
    "linalg_vector_norm": [lambda: {"dim": [1]}, lambda: {"ord": 1, "dim": [0], "keepdim": True}, lambda: {}],
    "norm.ScalarOpt_dim": [lambda: {"p": 2, "dim": [1]}],
    # products
    "mm": [lambda: _product((3, 4), (4, 2))("self", "mat2")],
    "bmm": [lambda: _product((2, 3, 4), (2, 4, 2))("self", "mat2")],
    "addmm": [lambda: {**_product((2,), (3, 4), (4, 2))("self", "mat1", "mat2"), "beta": 0.5, "alpha": 2}],
    "baddbmm": [lambda: _product((2, 3, 2), (2, 3, 4), (2, 4, 2))("self", "batch1", "batch2")],
    "addmv": [lambda: _product((3,), (3, 4), (4,))("self", "mat", "vec")],
    "mv": [lambda: _product((3, 4), (4,))("self", "vec")],
    "dot": [lambda: _product((4,), (4,))("self", "tensor")],
    "vdot": [lambda: _product((4,), (4,))("self", "other")],
    "addr": [lambda: {**_product((3, 4), (3,), (4,))("self", "vec1", "vec2"), "beta": 0.5, "alpha": 2}],
    "addbmm": [lambda: {**_product((2,), (2, 3, 4), (2, 4, 2))("self", "batch1", "batch2"), "beta": 0.5, "alpha": 2}],
    "inner": [
        lambda: _product((2, 3, 4), (5, 4))("self", "other"),
        lambda: _product((4,), (4,))("self", "other"),
    ],
    "outer": [lambda: _product((3,), (4,))("self", "vec2")],
    "matmul": [
        lambda: _product((3, 4), (4, 2))("self", "other"),
        lambda: _product((4,), (4,))("self", "other"),
        lambda: _product((2, 3, 4), (4,))("self", "other"),
        lambda: _product((4,), (2, 4, 3))("self", "other"),
        lambda: _product((2, 1, 3, 4), (5, 4, 2))("self", "other"),
        lambda: _product((2, 3, 4), (4, 2))("self", "other"),
    ],
    "linear": [
        lambda: _product((2, 3, 4), (5, 4), (5,))("input", "weight", "bias"),
        lambda: {**_product((4,), (5, 4))("input", "weight"), "bias": None},
    ],
    "conv1d": [_convolution(1)],
    "conv2d": [_convolution(2), lambda: {**_convolution(2)(), "bias": None, "stride": [2, 2], "padding": [1, 1]}],
    "conv3d": [_convolution(3)],
    "conv1d.padding": [lambda: {**_convolution(1)(), "padding": "valid"}],
    "conv2d.padding": [
        lambda: {**_convolution(2)(), "weight": real(3, 2, 3, 5), "padding": "same", "dilation": [1, 2]}
    ],
    "conv3d.padding": [lambda: {**_convolution(3)(), "weight": real(3, 2, 3, 1, 3), "padding": "same"}],
    "conv_transpose1d": [_convolution(1, True)],
    "conv_transpose2d.input": [_convolution(2, True)],
    "conv_transpose3d.input": [_convolution(3, True)],
    "convolution": [
        lambda: {
            **_convolution(2)(),
            "stride": [1, 1],
            "padding": [1, 1],
            "dilation": [1, 1],
            "output_padding": [0, 0],
            "groups": 1,
        }
    ],
    "scaled_dot_product_attention": [_attention, lambda: {**_attention(), "is_causal": False, "scale": 0.7}],
    # normalisation
    "softmax.int": [lambda: {"self": real(3, 4)}],
    "log_softmax.int": [lambda: {"self": real(3, 4)}],
    "_softmax": [lambda: {"self": real(3, 4)}],
    "_safe_softmax": [
        lambda: {"self": real(3, 4)},
        lambda: {"self": torch.tensor([[-torch.inf, 1.0], [-torch.inf, -torch.inf]]).double(), "kink": True},
    ],
    "_log_softmax": [lambda: {"self": real(3, 4)}],
    "layer_norm": [
        lambda: {"input": real(3, 4), "normalized_shape": [4], "weight": real(4), "bias": real(4)},
        lambda: {"input": real(3, 4), "normalized_shape": [4], "weight": None, "bias": None},
    ],
    "rms_norm": [lambda: {"input": real(3, 4), "normalized_shape": [4], "weight": real(4), "eps": 1e-5}],
    "group_norm": [lambda: {"input": real(2, 4, 3, 2), "num_groups": 2, "weight": real(4), "bias": real(4)}],
    "batch_norm": [_batch_norm(True), _batch_norm(False)],
    # indices
    "embedding": [
        lambda: {"weight": real(5, 3), "indices": indices(5, 2, 4)},
        lambda: {"weight": real(5, 3), "indices": indices(5, 2, 4), "padding_idx": 2, "kink": True},
        lambda: {"weight": real(5, 3), "indices": indices(5, 2, 4), "scale_grad_by_freq": True, "kink": True},
    ],
    "gather": [_scattered],
    "index_select": [_along_rows],
    "index.Tensor": [lambda: {"self": real(3, 4), "indices": [torch.tensor([0, 2, 0]), None]}],
    "index_put": [
        lambda: {"self": real(3, 4), "indices": [torch.tensor([0, 2])], "values": real(2, 4)},
        lambda: {"self": real(3, 4), "indices": [torch.tensor([2, 2])], "values": real(2, 4), "accumulate": True},
    ],
    "scatter.src": [lambda: _scattered(src=real(3, 2))],
    "scatter.value": [lambda: _scattered(value=2.5)],
    "scatter_add": [lambda: _scattered(src=real(3, 2))],
    "scatter_reduce.two": [
        lambda: _scattered(src=real(3, 2), reduce="sum"),
        lambda: _scattered(src=real(3, 2), reduce="sum", include_self=False),
        lambda: _scattered(src=real(3, 2), reduce="mean"),
        lambda: _scattered(src=real(3, 2), reduce="mean", include_self=False),
        lambda: _scattered(src=real(3, 2), reduce="amax"),
        lambda: _scattered(src=real(3, 2), reduce="amin", include_self=False),
    ],
    "index_add": [lambda: _along_rows(source=real(2, 4), alpha=2)],
    "index_copy": [lambda: _along_rows(source=real(2, 4))],
    "index_fill.int_Scalar": [lambda: _along_rows(value=2.5)],
    # shapes
    "cat": [lambda: {"tensors": [real(3, 4), real(3, 2)], "dim": 1}],
    "stack": [lambda: {"tensors": [real(3, 4), real(3, 4)], "dim": 1}],
    "constant_pad_nd": [lambda: {"pad": [1, 2, 0, 1], "value": 3}, lambda: {"pad": [-1, 2]}],
    "repeat": [lambda: {"repeats": [2, 1, 3]}],
    "repeat_interleave.self_int": [
        lambda: {"self": real(3, 4), "repeats": 2, "dim": 1},
        lambda: {"self": real(3, 4), "repeats": 3},
    ],
    "slice_scatter": [lambda: {"self": real(3, 4), "src": real(3, 2), "dim": 1, "start": 0, "end": 4, "step": 2}],
    "select_scatter": [lambda: {"self": real(3, 4), "src": real(3), "dim": 1, "index": 2}],
    "diagonal_scatter": [lambda: {"self": real(3, 4), "src": real(3), "offset": 1}],
    "flip": [lambda: {"dims": [0, 1]}],
    "roll": [lambda: {"shifts": [1, -1], "dims": [0, 1]}, lambda: {"shifts": [5]}],
    "sort.stable": [lambda: {"stable": True}],
    "topk": [lambda: {"k": 2}],
    "glu": [lambda: {"self": real(3, 4)}],
    "_to_copy": [lambda: {"dtype": torch.float64}],
    # losses
    "cross_entropy_loss": [
        lambda: {**_classes(2), "self": real(4, 3)},
        lambda: {**_classes(3), "self": real(4, 3, 2)},
        lambda: {**_classes(2), "self": real(4, 3), "label_smoothing": 0.1, "ignore_index": 1},
        lambda: {**_classes(4), "self": real(4, 3, 2, 2), "label_smoothing": 0.2, "reduction": 2},
        lambda: {
            **_classes(2),
            "self": real(4, 3),
            "label_smoothing": 0.1,
            "weight": between(0.5, 1, 3),
            "fixed": ["weight"],
        },
    ],
    "nll_loss_nd": [
        lambda: _classes(2),
        lambda: _classes(3),
        lambda: {**_classes(3), "reduction": 0},
        lambda: _classes(4),
        lambda: {**_classes(2), "weight": between(0.5, 1, 3), "fixed": ["weight"]},
    ],
    "mse_loss": [_loss(), lambda: {**_loss()(), "reduction": 0}],
    "l1_loss": [_loss()],
    "smooth_l1_loss": [_loss(-2, 2)],
    "huber_loss": [_loss(-2, 2)],
    "soft_margin_loss": [lambda: {**_loss()(), "fixed": ["target"]}],
    "binary_cross_entropy": [_loss()],
    "binary_cross_entropy_with_logits": [_loss()],
    "kl_div": [
        lambda: {**_loss()(), "fixed": ["target"]},
        lambda: {**_loss()(), "fixed": ["target"], "log_target": True},
    ],
    # pooling
    "max_pool2d": [_pooling],
    "avg_pool2d": [_pooling, lambda: {**_pooling(), "padding": [1, 1], "stride": [1, 1]}],
    "adaptive_avg_pool2d": [lambda: {"self": real(1, 2, 6, 6), "output_size": [2, 3]}],
    # operators that carry gradients back
    "max_pool2d_with_indices_backward": [_largest],
    "avg_pool2d_backward": [lambda: {**_pooled(), "count_include_pad": True, "divisor_override": None}],
    "_adaptive_avg_pool2d_backward": [lambda: {"grad_output": real(1, 2, 2, 3), "self": real(1, 2, 6, 6)}],
    "embedding_dense_backward": [lambda: _embedding_gradient(-1), lambda: _embedding_gradient(2)],
    "nll_loss_backward": [lambda: _class_gradient(4, 3)],
    "nll_loss2d_backward": [lambda: _class_gradient(2, 3, 2, 2)],
    "convolution_backward": [lambda: _convolution_gradient(False), lambda: _convolution_gradient(True)],
}


def operator(target: str) -> Any:
    """The operator behind a target such as ``aten.mul.Tensor``."""
    _, name, overload = target.split(".")
    return getattr(getattr(torch.ops.aten, name), overload)


def samples(target: str) -> list[Callable[[], Sample]]:
    """What makes arguments for an operator."""
    _, name, overload = target.split(".")
    return SAMPLES.get(f"{name}.{overload}") or SAMPLES.get(name) or [lambda: {}]


def arguments(target: str, given: Sample) -> dict[str, Any]:
    """One value for each parameter of the operator, by name, those that have a default and are not given left out."""
    found: dict[str, Any] = {}
    for parameter in operator(target)._schema.arguments:
        if parameter.name in given:
            found[parameter.name] = given[parameter.name]
        elif not parameter.has_default_value():
            found[parameter.name] = _usual(str(parameter.type))
    return found


def _usual(kind: str) -> Any:
    usual = {
        "Tensor": lambda: between(0.2, 0.9, 3, 4),
        "number": lambda: 0.7,
        "int": lambda: 1,
        "bool": lambda: False,
        "float": lambda: 0.7,
    }
    if kind not in usual:
        raise LookupError(f"a parameter of type {kind} needs a sample")
    return usual[kind]()
