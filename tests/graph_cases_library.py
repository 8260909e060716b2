"""Calls of reductions, matrix products, networks and data movement to record."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

from graph_cases import layouts
from graph_recorder import ALL, Recorder, T, channels_last, options


def record_reductions(r: Recorder, full: bool) -> None:
    """Reductions over all and over some dimensions."""
    names = (
        "sum mean prod amax amin max min any all argmax argmin var std var_mean std_mean logsumexp median nansum "
        "count_nonzero aminmax"
    ).split()
    for name, dtype in itertools.product(names, ALL):
        r.call(f"torch.{name}", T(dtype, (2, 3)))
    dims: list[Any] = [0, 1, -1, (0,), (0, 1), (), [1], 2, None]
    for name, dim, keep in itertools.product(names, dims, (False, True)):
        if name == "aminmax":
            r.call(f"torch.{name}", T("float32", (2, 3)), dim=dim, keepdim=keep)
            continue
        r.call(f"torch.{name}", T("float32", (2, 3)), dim, keepdim=keep)
        r.call(f"torch.{name}", T("float32", (2, 3), (1, 2)), dim=dim)
        r.call(f"torch.{name}", T("float32", (2, 3, 4), (1, 8, 2)), axis=dim)
        r.call(f"torch.{name}", T("float32", ()), dim)
        r.call(f"torch.{name}", T("float32", (2, 0)), dim)
    for name in names:
        for dtype in ALL:
            if name != "aminmax":
                r.call(f"torch.{name}", T(dtype, (2, 3)), 0)
        r.call(f"torch.{name}", T("float32", (0,)))
        r.call(f"torch.{name}", T("float32", (2, 3), grad=True))
        r.call(f"torch.{name}", T("float32", (2, 3), grad=True), grad_mode=False)
        if name not in ("aminmax", "count_nonzero"):
            r.call(f"torch.{name}", channels_last("float32", (2, 3, 4, 5)), (2, 3), True)
    outs = [None, *(getattr(torch, dtype) for dtype in ALL)]
    for name, out in itertools.product(("sum", "mean", "prod", "nansum", "cumsum", "cumprod"), outs):
        args: tuple[Any, ...] = (0,) if name.startswith("cum") else ()
        r.call(f"torch.{name}", T("float32", (2, 3)), *args, dtype=out)
        r.call(f"torch.{name}", T("int32", (2, 3)), *args, dtype=out)
    for name in ("var", "std", "var_mean"):
        r.call(f"torch.{name}", T("float32", (2, 3)), unbiased=False)
        r.call(f"torch.{name}", T("float32", (2, 3)), 1, False, True)
        r.call(f"torch.{name}", T("float32", (2, 3)), dim=1, correction=0, keepdim=True)
        r.call(f"torch.{name}", T("float32", (2, 3)), False)
    for ord_, dim in itertools.product((2, 1, 0, math.inf, -1, 0.5), (None, 0, (0, 1))):
        r.call("torch._C._linalg.linalg_vector_norm", T("float32", (2, 3)), ord_, dim)
        r.call("torch._C._linalg.linalg_vector_norm", T("complex64", (2, 0)), ord_, dim, True)
    for dtype in ALL:
        r.call("torch._C._linalg.linalg_vector_norm", T("float32", (2, 3)), dtype=getattr(torch, dtype))
        for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
            r.call(f"torch.{name}", T(dtype, (2, 3), (1, 2)), 1)
    for name, x in itertools.product(("cumsum", "cummax", "logcumsumexp"), layouts("float32")):
        r.call(f"torch.{name}", x, -1)
    for name in ("any", "all"):
        r.call(f"torch.{name}", T("bool", (2, 3)), dim=(0, 1))


def record_matrices(r: Recorder, full: bool) -> None:
    """Matrix products, convolutions and attention."""
    vectors, matrices = [T("float32", (3,)), T("float32", (4,)), T("float32", ())], []
    for strides in (None, (1, 3), (8, 2), (0, 1)):
        matrices.append(T("float32", (3, 4), strides))
    matrices += [
        T("float32", (4, 3)),
        T("float32", (4, 3), (1, 4)),
        T("float32", (0, 4)),
        T("float32", (4, 0)),
        T("float32", (4, 1)),
    ]
    batches = [
        T("float32", (2, 3, 4)),
        T("float32", (2, 4, 3)),
        T("float32", (2, 4, 3), (12, 1, 4)),
        T("float32", (1, 4, 3)),
        T("float32", (4, 3, 2), (1, 4, 12)),
    ]
    batches += [
        T("float32", (5, 2, 3, 4)),
        T("float32", (5, 1, 4, 3)),
        T("float32", (2, 3, 4), (0, 4, 1)),
        T("float32", (0, 3, 4)),
        T("float32", (1, 3, 4)),
        T("float32", (2, 1, 4)),
    ]
    operands = [*vectors, *matrices, *batches]
    for a, b in itertools.product(operands, operands):
        for name in ("matmul", "mm", "bmm", "mv", "dot", "outer", "inner"):
            r.call(f"torch.{name}", a, b)
        r.call("torch._C._nn.linear", a, b)
    r.call("operator.matmul", matrices[0], matrices[4])
    for dtype in ALL:
        r.call("torch.mm", T(dtype, (3, 4)), T(dtype, (4, 2)))
        r.call("torch.matmul", T(dtype, (2, 3, 4)), T(dtype, (4, 2)))
        r.call("torch.mm", T(dtype, (3, 4)), T("float32", (4, 2)))
        r.call("torch._C._nn.linear", T(dtype, (2, 3, 4)), T(dtype, (2, 4)), T(dtype, (2,)))
        r.call("torch.addmm", T(dtype, (2,)), T(dtype, (3, 4)), T(dtype, (4, 2)))
        r.call("torch.addmm", T(dtype, (2,)), T(dtype, (3, 4)), T(dtype, (4, 2)), beta=0.5, alpha=2)
        r.call("torch.dot", T(dtype, (4,)), T(dtype, (4,)))
        r.call("torch.conv2d", T(dtype, (2, 3, 8, 8)), T(dtype, (4, 3, 3, 3)), T(dtype, (4,)))
    for bias in (
        T("float32", (2,)),
        T("float32", (3, 1)),
        T("float32", ()),
        T("float32", (3, 2), (1, 3)),
        T("float32", (4,)),
        T("float32", (2,), grad=True),
    ):
        r.call("torch.addmm", bias, matrices[0], T("float32", (4, 2)))
        r.call("torch._C._nn.linear", matrices[0], T("float32", (2, 4)), bias)
        r.call("torch.baddbmm", bias, T("float32", (5, 3, 4)), T("float32", (5, 4, 2)))
        r.call("torch.addbmm", bias, T("float32", (5, 3, 4)), T("float32", (5, 4, 2)))
        r.call("torch.addmv", bias, T("float32", (2, 4)), T("float32", (4,)))
        r.call("torch.addr", bias, T("float32", (3,)), T("float32", (2,)))


def record_convolutions(r: Recorder, full: bool) -> None:
    """Convolutions of several layouts, and attention."""
    weight = T("float32", (4, 3, 3, 3))
    for x in (
        T("float32", (2, 3, 8, 9)),
        channels_last("float32", (2, 3, 8, 9)),
        T("float32", (3, 8, 9)),
        T("float32", (2, 3, 8, 9), (1, 144, 18, 2)),
        T("float32", (1, 3, 8, 9), grad=True),
        T("float32", (2, 5, 8, 9)),
    ):
        for w in (
            weight,
            channels_last("float32", (4, 3, 3, 3)),
            T("float32", (4, 3, 1, 1)),
            T("float32", (6, 1, 3, 3)),
        ):
            groups = 3 if w.spec[1][1] == 1 else 1
            for keywords in (
                {},
                {"stride": 2},
                {"padding": 1},
                {"padding": (1, 0), "dilation": 2},
                {"padding": "same"},
                {"padding": "valid", "stride": (2, 1)},
            ):
                r.call("torch.conv2d", x, w, None, groups=groups, **keywords)
    r.call("torch.conv2d", T("float32", (2, 3, 8, 9)), weight, T("float32", (4,)), 1, 0, 1, 1)
    r.call("torch.conv2d", T("float32", (2, 3, 2, 2)), weight)
    for x, w in (
        (T("float32", (2, 3, 9)), T("float32", (4, 3, 3))),
        (T("float32", (2, 9, 3), (27, 1, 9)), T("float32", (4, 9, 3))),
        (T("float32", (2, 3, 9), (27, 1, 3)), T("float32", (4, 3, 1))),
    ):
        r.call("torch.conv1d", x, w)
        r.call("torch.conv1d", x, w, padding="same")
        r.call("torch.conv1d", x, w, T("float32", (4,)), stride=2, padding=1)
    r.call("torch.conv3d", T("float32", (2, 3, 4, 5, 6)), T("float32", (4, 3, 2, 2, 2)), stride=(1, 2, 1))
    r.call("torch.conv3d", T("float32", (2, 3, 4, 5, 6), (360, 1, 90, 18, 3)), T("float32", (4, 3, 2, 2, 2)))
    for x in (T("float32", (2, 4, 5, 6)), channels_last("float32", (2, 4, 5, 6))):
        for keywords in options({}, {"stride": 2, "output_padding": 1}, {"padding": 1, "dilation": 2}, {"groups": 2}):
            r.call(
                "torch.conv_transpose2d",
                x,
                T("float32", (4, 3, 3, 3)),
                T("float32", (6 if "groups" in keywords else 3,)),
                **keywords,
            )
    r.call("torch.conv_transpose1d", T("float32", (2, 4, 5)), T("float32", (4, 3, 3)), stride=2)
    for b, h, s in itertools.product((1, 2), (1, 3), (1, 4)):
        part = T("float32", (b, h, s, 8), (3 * s * h * 8, 8, 3 * h * 8, 1))
        for causal in (False, True):
            r.call("torch._C._nn.scaled_dot_product_attention", part, part, part, is_causal=causal)
    for dtype in ("float32", "float64", "bfloat16"):
        q = T(dtype, (2, 3, 4, 8))
        for k, keywords in itertools.product(
            (q, T(dtype, (2, 3, 5, 8)), T(dtype, (2, 3, 4, 8), (96, 8, 24, 1))),
            options(
                {},
                {"is_causal": True},
                {"scale": 0.5},
                {"attn_mask": T("bool", (4, 4))},
                {"attn_mask": T(dtype, (1, 1, 4, 5))},
            ),
        ):
            r.call("torch._C._nn.scaled_dot_product_attention", q, k, k, **keywords)
            r.call(
                "torch._C._nn.scaled_dot_product_attention", T(dtype, (2, 3, 4, 8), (96, 8, 24, 1)), k, k, **keywords
            )
            r.call("torch._C._nn.scaled_dot_product_attention", T(dtype, (2, 3, 4, 8), grad=True), k, k, **keywords)


def record_networks(r: Recorder, full: bool) -> None:
    """Normalisation, embeddings, losses and pooling."""
    for dtype in ALL:
        x = T(dtype, (2, 6))
        r.call("torch.softmax", x, -1)
        r.call("torch.log_softmax", x, 1)
        r.call("torch.softmax", x, 0, dtype=torch.float64)
        r.call("torch.layer_norm", x, (6,), T(dtype, (6,)), T(dtype, (6,)))
        r.call("torch.rms_norm", x, (6,), T(dtype, (6,)))
        r.call("torch.group_norm", x, 2, T(dtype, (6,)), T(dtype, (6,)))
        r.call(
            "torch.batch_norm",
            x,
            T(dtype, (6,)),
            T(dtype, (6,)),
            T(dtype, (6,)),
            T(dtype, (6,)),
            False,
            0.1,
            1e-5,
            True,
        )
        r.call("torch.embedding", T(dtype, (5, 3)), T("int64", (2, 2)))
        r.call("torch._C._nn.cross_entropy_loss", x, T("int64", (2,)), None, 1, -100, 0.0)
        r.call("torch._C._nn.mse_loss", x, x, 1)
    for x in layouts("float32"):
        for name in ("softmax", "log_softmax"):
            r.call(f"torch.{name}", x, -1)
            r.call(f"torch.{name}", x, 0)
        shape = x.spec[1][-1:]
        if shape:
            r.call("torch.layer_norm", x, shape)
            r.call("torch.layer_norm", x, shape, T("float32", shape, grad=True), None)
            r.call("torch.rms_norm", x, shape)
        if len(x.spec[1]) > 1:
            c = T("float32", x.spec[1][1:2])
            r.call("torch.group_norm", x, 1, c, c)
            r.call("torch.group_norm", x, 1)
            for training in (True, False):
                r.call("torch.batch_norm", x, c, c, c, c, training, 0.1, 1e-5, True)
            r.call("torch.batch_norm", x, None, None, None, None, True, 0.1, 1e-5, True)
        for name in ("max_pool2d", "avg_pool2d"):
            where = "torch" if name == "max_pool2d" else "torch._C._nn"
            r.call(f"{where}.{name}", x, 2)
            r.call(f"{where}.{name}", x, (2, 3), 1, 1)
        r.call("torch._C._nn.adaptive_avg_pool2d", x, (1, 1))
        r.call("torch._C._nn.adaptive_avg_pool2d", x, (2, 3))
        r.call("torch._C._nn.glu", x, -1)
    r.call("torch.layer_norm", T("float32", (2, 6), grad=True), (6,))
    r.call("torch.softmax", T("float32", (2, 6), grad=True), -1, grad_mode=False)
    for indices in (T("int64", ()), T("int64", (2,)), T("int32", (2, 3), (1, 2)), T("float32", (2,)), T("int64", (0,))):
        r.call("torch.embedding", T("float32", (5, 3), grad=True), indices)
        r.call("torch.embedding", T("float32", (5, 3), (1, 5)), indices, 0)
        r.call("torch.nn.functional.embedding", indices, T("float32", (5, 3)))
        r.call("torch.nn.functional.embedding", indices, T("float32", (5, 3)), padding_idx=-1)
    for reduction, smoothing in itertools.product((0, 1, 2), (0.0, 0.1)):
        for x, target in (
            (T("float32", (4, 3)), T("int64", (4,))),
            (T("float32", (4, 3, 2)), T("int64", (4, 2))),
            (T("float32", (3,)), T("int64", ())),
            (T("float32", (4, 3)), T("float32", (4, 3))),
        ):
            r.call("torch._C._nn.cross_entropy_loss", x, target, None, reduction, -100, smoothing)
            r.call("torch._C._nn.cross_entropy_loss", x, target, T("float32", (3,)), reduction, -100, smoothing)
            r.call("torch._C._nn.nll_loss_nd", x, target, None, reduction, -100)
    for name, reduction in itertools.product(
        ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"), (0, 1, 2)
    ):
        r.call(f"torch._C._nn.{name}", T("float32", (2, 3)), T("float32", (2, 3)), reduction)
        r.call(f"torch._C._nn.{name}", T("float32", (2, 3), grad=True), T("float32", (2, 3), (1, 2)), reduction)
    for word in ("none", "mean", "sum"):
        r.call("torch.nn.functional.cross_entropy", T("float32", (4, 3)), T("int64", (4,)), reduction=word)
        r.call("torch.nn.functional.mse_loss", T("float32", (4, 3)), T("float32", (4, 3)), reduction=word)
    r.call("torch.binary_cross_entropy_with_logits", T("float32", (4,)), T("float32", (4,)), None, None, 1)
    r.call("torch.kl_div", T("float32", (4,)), T("float32", (4,)), 2, log_target=True)
    for name in ("relu", "silu", "hardswish", "elu", "leaky_relu", "hardtanh", "relu6", "selu"):
        r.call(f"torch.nn.functional.{name}", T("float32", (2, 3)))
        r.call(f"torch.nn.functional.{name}", T("float32", (2, 3)), inplace=True)
    r.call("torch.nn.functional.softmax", T("float32", (2, 3)), dim=-1)
    r.call("torch.nn.functional.layer_norm", T("float32", (2, 3)), (3,))


def record_functional(r: Recorder, full: bool) -> None:
    """Python functions of torch.nn.functional and torch."""
    f = "torch.nn.functional"
    for x in (T("float32", (4, 6)), T("float32", (4, 6), (1, 4)), T("float32", (4, 6), grad=True), T("int64", (4, 6))):
        for name in ("softsign", "tanhshrink", "sigmoid", "tanh", "celu", "mish", "glu", "normalize", "selu"):
            r.call(f"{f}.{name}", x)
        for p, dim in itertools.product((2.0, 1, math.inf), (1, 0, -1, (0, 1))):
            r.call(f"{f}.normalize", x, p=p, dim=dim)
        r.call(f"{f}.threshold", x, 0.5, 2.0)
        r.call(f"{f}.softmin", x, dim=1)
        r.call(f"{f}.softmax", x, 1, dtype=torch.float64)
        r.call(f"{f}.rms_norm", x, (6,), eps=1e-6)
        r.call(f"{f}.group_norm", x, 2, eps=1e-3)
        r.call(f"{f}.pad", x, (1, 1))
        r.call(f"{f}.pad", x, (1, 1), value=2.0)
        r.call(f"{f}.pad", x, (1, 1), mode="reflect")
        for training in (True, False):
            r.call(f"{f}.batch_norm", x, T("float32", (6,)), T("float32", (6,)), training=training)
            r.call(f"{f}.batch_norm", x, None, None, T("float32", (6,)), training=training)
        for word in ("none", "mean", "sum", "batchmean"):
            for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div"):
                r.call(f"{f}.{name}", x, T("float32", (4, 6)), reduction=word)
            r.call(f"{f}.binary_cross_entropy", x, T("float32", (4, 6)), reduction=word)
            r.call(f"{f}.binary_cross_entropy_with_logits", x, T("float32", (4, 6)), reduction=word)
            r.call(f"{f}.nll_loss", x, T("int64", (4,)), reduction=word)
            r.call(f"{f}.cross_entropy", x, T("int64", (4,)), ignore_index=2, reduction=word)
        for order in ("fro", None, 1, 2.0, math.inf, "nuc"):
            r.call("torch.norm", x, order)
            r.call("torch.norm", x, order, 0)
            r.call("Tensor.norm", x, order, (0, 1), True)
            r.call("torch.norm", x, order, dtype=torch.float64)
        for name in ("hstack", "vstack"):
            r.call(f"torch.{name}", [x, x])
        for name in ("fliplr", "flipud"):
            r.call(f"torch.{name}", x)
        r.call("torch.tile", x, (2,))
        r.call("Tensor.tile", x, 2, 1, 1)
        r.call("torch.split", x, 2)
        r.call("torch.split", x, [1, 3], 0)
        r.call("torch.split", x, split_size_or_sections=3, dim=1)
    for images in (T("float32", (2, 3, 6, 6)), channels_last("float32", (2, 3, 6, 6)), T("float32", (3, 6, 6))):
        r.call(f"{f}.max_pool2d", images, 2)
        r.call(f"{f}.max_pool2d", images, (3, 2), stride=2, padding=1)
        r.call(f"{f}.max_pool2d", images, 2, return_indices=True)
        r.call(f"{f}.adaptive_avg_pool2d", images, 1)
        r.call(f"{f}.adaptive_avg_pool2d", images, (None, 2))
        r.call(f"{f}.batch_norm", images, T("float32", (3,)), T("float32", (3,)), training=True)
    for vectors in (
        [T("float32", (3,)), T("float32", (2,))],
        [T("int64", (3,))],
        [T("float32", (3,)), T("int64", (2,))],
    ):
        r.call("torch.hstack", vectors)
        r.call("torch.vstack", vectors)
        r.call("torch.meshgrid", vectors, indexing="ij")
        r.call("torch.meshgrid", *vectors, indexing="ij")
        r.call("torch.meshgrid", vectors, indexing="xy")


def record_shapes(r: Recorder, full: bool) -> None:
    """Functions that move elements by position or index."""
    tensors = layouts("float32")
    for x in tensors:
        r.call("torch.cat", [x, x])
        r.call("torch.cat", [x, x], -1)
        r.call("torch.cat", [x, T("float32", x.spec[1])], dim=0)
        r.call("torch.cat", (x, T("float32", (0,))), 0)
        r.call("torch.stack", [x, x])
        r.call("torch.stack", [x, x], -1)
        for pads in ([1, 1], [1, 0, 0, 2], [-1, 1], [0, 0], [-1, -1], [1]):
            r.call("torch._C._nn.pad", x, pads)
            r.call("torch.constant_pad_nd", x, pads, 1.5)
        for repeats in ((2,), (2, 3), (1, 2, 1), (0, 1)):
            r.call("Tensor.repeat", x, *repeats)
        for name, args in (
            ("flip", ((0,),)),
            ("flip", (-1,)),
            ("roll", (1,)),
            ("roll", (1, 0)),
            ("tril", ()),
            ("triu", (1,)),
            ("sort", ()),
            ("sort", (0, True)),
            ("argsort", ()),
            ("topk", (1,)),
            ("topk", (2, 0)),
            ("repeat_interleave", (2,)),
            ("repeat_interleave", (2, 0)),
            ("diag_embed", ()),
        ):
            r.call(f"torch.{name}", x, *args)
        r.call("torch.sort", x, stable=True, dim=-1)
        r.call("Tensor.tril_", x)
        for index in (T("int64", (2,)), T("int32", (2,)), T("int64", (1, 2)), T("int64", ())):
            r.call("torch.index_select", x, 0, index)
            r.call("torch.gather", x, -1, index)
            r.call("torch.index_fill", x, 0, index, 1.0)
        index = T("int64", tuple(min(n, 1) for n in x.spec[1]))
        for name in ("scatter", "scatter_add"):
            r.call(f"torch.{name}", x, 0, index, T("float32", x.spec[1]))
            r.call(f"Tensor.{name}_", x, 0, index, T("float32", x.spec[1]))
        r.call("torch.scatter", x, 0, index, 1.5)
        r.call("torch.scatter_reduce", x, 0, index, T("float32", x.spec[1]), "sum")
        if x.spec[1]:
            source = T("float32", (1, *x.spec[1][1:]))
            r.call("torch.index_add", x, 0, T("int64", (1,)), source)
            r.call("torch.index_copy", x, 0, T("int64", (1,)), source)
            r.call("Tensor.index_add_", x, 0, T("int64", (1,)), source)
            r.call("torch.slice_scatter", x, source, 0, 0, 1)
            r.call("torch.select_scatter", x, T("float32", x.spec[1][1:]), 0, 0)
            r.call("torch.diagonal_scatter", x, T("float32", (1,)), 1)
        r.call("torch.gather", x, 0, index)
        r.call("Tensor.index_put_", x, (T("int64", (1,)),), T("float32", ()))
        r.call("torch.index_put", x, (T("int64", (1,)),), T("float32", ()))
        if full:
            r.call("torch.broadcast_tensors", x, T("float32", ()))


def record_shape_types(r: Recorder, full: bool) -> None:
    """The same for all element types."""
    for a, b in itertools.product(ALL, ALL):
        r.call("torch.cat", [T(a, (2,)), T(b, (3,))])
        r.call("torch.stack", [T(a, (2,)), T(b, (2,))])
    for dtype in ALL:
        x = T(dtype, (3, 4))
        by_type: tuple[tuple[str, tuple[Any, ...]], ...] = (
            ("flip", (0,)),
            ("roll", (1, 0)),
            ("tril", ()),
            ("sort", ()),
            ("topk", (1,)),
            ("argsort", ()),
            ("gather", (0, T("int64", (2, 2)))),
            ("index_select", (0, T("int64", (2,)))),
            ("scatter_add", (0, T("int64", (1, 1)), x)),
        )
        for name, args in by_type:
            r.call(f"torch.{name}", x, *args)
        r.call("torch._C._nn.pad", x, [1, 1])
        r.call("torch._C._nn.pad", x, [1, 1], "constant", 1.5)
        r.call("torch.scatter_reduce", x, 0, T("int64", (1, 1)), x, "amax")
        r.call("Tensor.repeat", x, (2, 1))
        r.call("torch.index_add", x, 0, T("int64", (1,)), T(dtype, (1, 4)), alpha=2)
    r.call("torch.cat", [T("float32", (2, 3)), T("float32", (2, 3), grad=True)])
    r.call("torch.cat", [channels_last("float32", (2, 3, 4, 5)), channels_last("float32", (2, 3, 4, 5))], 1)
    r.call("torch.cat", [channels_last("float32", (2, 3, 4, 5)), T("float32", (2, 3, 4, 5))], 1)
    r.call("torch.cat", [])
    r.call("torch.stack", [channels_last("float32", (2, 3, 4, 5))])
    r.call("torch.gather", T("float32", (3, 4), grad=True), 0, T("int64", (2, 2)))
