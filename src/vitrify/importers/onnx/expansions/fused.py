"""ONNX Runtime's fused operators (domain com.microsoft), taken apart again into ONNX's own.

Source: ONNX Runtime, docs/ContribOperators.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from vitrify.importers.onnx.expansions.quantized import channel_first, channel_last, plain
from vitrify.importers.onnx.expansions.registry import Writer, expansion
from vitrify.importers.onnx.source import SourceNode

_PLAIN = ("Relu", "Sigmoid", "Tanh", "HardSigmoid", "LeakyRelu", "Clip", "HardSwish", "Elu", "Softplus", "Selu")


def activated(w: Writer, node: SourceNode, x: str) -> str:
    """``x`` after the activation that a fused node names; its numbers stand in one list or in attributes."""
    kind = node.string("activation")
    if not kind:
        return x
    if kind not in _PLAIN:
        raise node.unsupported(f"the activation '{kind}'; {', '.join(_PLAIN)} are converted")
    numbers = node.floats("activation_params") or []
    alpha = numbers[0] if numbers else node.attributes.get("activation_alpha")
    beta = numbers[1] if len(numbers) > 1 else node.attributes.get("activation_beta")
    if kind == "Clip":
        low = -np.inf if alpha is None else alpha
        high = np.inf if beta is None else beta
        return w.add("Clip", x, w.constant(np.array(low, np.float32)), w.constant(np.array(high, np.float32)))
    return w.add(kind, x, alpha=alpha, beta=beta, gamma=node.attributes.get("activation_gamma"))


_ACTIVATION = ("activation", "activation_params", "activation_alpha", "activation_beta", "activation_gamma",
               "activation_axis")


@expansion("com.microsoft::FusedConv", "com.microsoft::NhwcFusedConv", "com.microsoft::NhwcConv")
def fused_conv(w: Writer, node: SourceNode) -> str:
    """Convolution, a tensor added to it, an activation; the Nhwc forms take and give channels last."""
    last = node.kind.startswith("Nhwc")
    x = channel_first(w, node, w.needed(0)) if last else w.needed(0)
    kernel = w.needed(1)
    bias = [w.name(2)] if w.has(2) else []
    y = w.add("Conv", x, kernel, *bias, **plain(node, *_ACTIVATION))
    if w.has(3):
        y = w.add("Add", y, channel_first(w, node, w.name(3)) if last else w.name(3))
    y = activated(w, node, y)
    return channel_last(w, node, y) if last else y


@expansion("com.microsoft::NhwcMaxPool")
def nhwc_max_pool(w: Writer, node: SourceNode) -> str:
    """Max pooling of channels-last values."""
    return channel_last(w, node, w.add("MaxPool", channel_first(w, node, w.needed(0)), **plain(node)))


@expansion("com.microsoft::FusedGemm")
def fused_gemm(w: Writer, node: SourceNode) -> str:
    """Gemm with an activation."""
    given = [n for n in node.inputs if n]
    return activated(w, node, w.add("Gemm", *given, **plain(node, *_ACTIVATION)))


def fused_matmul(w: Writer, node: SourceNode) -> str:
    """alpha * A' @ B', where ' swaps the last two axes, or the first with those before the last ones."""
    if node.integer("transBatchA") or node.integer("transBatchB"):
        raise node.unsupported("transposed batch axes (transBatchA, transBatchB)")
    a, b = _swapped(w, node, 0, "transA"), _swapped(w, node, 1, "transB")
    y = w.add("MatMul", a, b)
    alpha = node.number("alpha", 1.0)
    return y if alpha == 1.0 else w.add("Mul", y, w.constant(alpha))


def _swapped(w: Writer, node: SourceNode, index: int, attribute: str) -> str:
    """An input with its last two axes swapped where the attribute says so, by a formula that needs no rank."""
    if not node.integer(attribute):
        return w.needed(index)
    known = w.array(index)
    if known is not None:
        return w.constant(np.ascontiguousarray(np.swapaxes(known, -1, -2))) if known.ndim > 1 else w.needed(index)
    return w.add("Einsum", w.needed(index), equation="...ij->...ji")


expansion("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul")(fused_matmul)


@expansion("com.microsoft::FusedMatMulActivation")
def fused_matmul_activation(w: Writer, node: SourceNode) -> str:
    """FusedMatMul with an activation."""
    return activated(w, node, fused_matmul(w, node))


@expansion("com.microsoft::Gelu")
def gelu(w: Writer, node: SourceNode) -> str:
    """The exact Gelu."""
    return _gelu(w, w.needed(0), "none")


def _gelu(w: Writer, x: str, approximate: str) -> str:
    return w.add("Gelu", x, approximate=approximate, opset=20)


@expansion("com.microsoft::BiasGelu", "com.microsoft::FastGelu")
def bias_gelu(w: Writer, node: SourceNode) -> str:
    """Gelu of a sum, exact or by tanh."""
    x = w.add("Add", w.needed(0), w.name(1)) if w.has(1) else w.needed(0)
    return _gelu(w, x, "none" if node.kind == "BiasGelu" else "tanh")


@expansion("com.microsoft::QuickGelu")
def quick_gelu(w: Writer, node: SourceNode) -> str:
    """x * sigmoid(alpha * x)."""
    alpha = node.number("alpha", 1.702)
    inner = w.needed(0) if alpha == 1.0 else w.add("Mul", w.needed(0), w.constant(alpha))
    return w.add("Mul", w.needed(0), w.add("Sigmoid", inner))


@expansion("com.microsoft::BiasSplitGelu")
def bias_split_gelu(w: Writer, node: SourceNode) -> str:
    """The first half of x + bias times the Gelu of the second."""
    x = w.add("Add", w.needed(0), w.needed(1))
    half = w.add("Split", x, outputs=2, axis=-1, num_outputs=2, opset=18)
    return w.add("Mul", half, _gelu(w, f"{half}:1", "none"))


@expansion("com.microsoft::BiasAdd")
def bias_add(w: Writer, node: SourceNode) -> str:
    """x + bias + skip."""
    return w.add("Add", w.add("Add", w.needed(0), w.needed(1)), w.needed(2))


@expansion("com.microsoft::BiasSoftmax")
def bias_softmax(w: Writer, node: SourceNode) -> str:
    """Softmax of a sum, over all axes from ``axis`` on."""
    x = w.add("Add", w.needed(0), w.needed(1))
    return w.add("Softmax", x, axis=node.integer("axis", 1), opset=11)


def _normalized(w: Writer, x: str, scale: str, bias: str, epsilon: float, axis: int = -1) -> str:
    inputs = [x, scale, *([bias] if bias else [])]
    return w.add("LayerNormalization", *inputs, axis=axis, epsilon=epsilon)


def root_mean_square(w: Writer, x: str, scale: str, epsilon: float, axis: int = -1) -> str:
    """x / sqrt(mean(x * x) + epsilon) * scale over the last axis."""
    return w.add("RMSNormalization", x, scale, axis=axis, epsilon=epsilon, opset=23)


@expansion("com.microsoft::LayerNormalization")
def layer_normalization(w: Writer, node: SourceNode) -> str:
    """ONNX's own under another domain."""
    _only_first(w, node)
    return _normalized(w, w.needed(0), w.needed(1), w.name(2), node.number("epsilon", 1e-5), node.integer("axis", -1))


@expansion("SimplifiedLayerNormalization", "com.microsoft::SimplifiedLayerNormalization")
def simplified_layer_normalization(w: Writer, node: SourceNode) -> str:
    """Normalization by the root of the mean square."""
    _only_first(w, node)
    return root_mean_square(w, w.needed(0), w.needed(1), node.number("epsilon", 1e-5), node.integer("axis", -1))


def _only_first(w: Writer, node: SourceNode) -> None:
    if any(node.outputs[1:]):
        raise node.unsupported("its second output (mean or deviation) is used; only the normalized values are given")


@expansion("com.microsoft::SkipLayerNormalization")
def skip_layer_normalization(w: Writer, node: SourceNode) -> list[str]:
    """Layer normalization of input + skip + bias; the fourth output is that sum."""
    total = w.add("Add", w.needed(0), w.needed(1))
    total = w.add("Add", total, w.name(4)) if w.has(4) else total
    y = _normalized(w, total, w.needed(2), w.name(3), node.number("epsilon", 1e-12))
    return _with_sum(w, node, y, total)


@expansion("com.microsoft::SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(w: Writer, node: SourceNode) -> list[str]:
    """Root-mean-square normalization of input + skip + bias; the fourth output is that sum."""
    total = w.add("Add", w.needed(0), w.needed(1))
    total = w.add("Add", total, w.name(3)) if w.has(3) else total
    return _with_sum(w, node, root_mean_square(w, total, w.needed(2), node.number("epsilon", 1e-12)), total)


def _with_sum(w: Writer, node: SourceNode, y: str, total: str) -> list[str]:
    if any(node.outputs[1:3]):
        raise node.unsupported("its outputs for mean and deviation are used; they belong to training")
    return [y, "", "", total] if len(node.outputs) > 3 and node.outputs[3] else [y]


@expansion("com.microsoft::GroupNorm", "com.microsoft::SkipGroupNorm")
def group_norm(w: Writer, node: SourceNode) -> list[str]:
    """Group normalization, channels last unless the attribute says otherwise, with SiLU where ``activation`` is 1."""
    last = bool(node.integer("channels_last", 1))
    x, total = w.needed(0), ""
    if node.kind == "SkipGroupNorm":
        x = w.add("Add", x, w.needed(3))
        x = total = w.add("Add", x, w.name(4)) if w.has(4) else x
    y = w.add("Transpose", x, perm=[0, 3, 1, 2]) if last else x
    y = w.add("GroupNormalization", y, w.needed(1), w.needed(2), num_groups=node.integer("groups"),
              epsilon=node.number("epsilon", 1e-5), opset=21)
    y = w.add("Mul", y, w.add("Sigmoid", y)) if node.integer("activation") else y
    y = w.add("Transpose", y, perm=[0, 2, 3, 1]) if last else y
    return [y, total] if total else [y]


def _legacy(kind: str, opset: int) -> Callable[[Writer, SourceNode], str]:
    return lambda w, node: w.add(kind, *node.inputs, opset=opset, **plain(node))


for _kind, _opset in (("GatherND", 12), ("Pad", 13), ("Range", 11), ("Trilu", 14), ("GridSample", 16)):
    expansion(f"com.microsoft::{_kind}")(_legacy(_kind, _opset))


@expansion("com.microsoft::ExpandDims")
def expand_dims(w: Writer, node: SourceNode) -> str:
    """Unsqueeze with one axis."""
    return w.add("Unsqueeze", w.needed(0), w.constant(w.known(1, "the axis").astype(np.int64).reshape(1)))


def scale_of(node: SourceNode, head: int) -> float:
    """The factor on the products of queries and keys: given, or 1 / sqrt(width of a head)."""
    return node.number("scale", 0.0) or 1 / math.sqrt(head)
