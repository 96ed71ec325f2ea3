"""Operators on quantized tensors (QLinearConv and the like), written out as DequantizeLinear, float, QuantizeLinear.

That is what they mean; the passes join each group again into one integer operator. Source: ONNX operator reference;
ONNX Runtime's ContribOperators.md for the domain com.microsoft.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vitrify.importers.onnx.expansions.registry import Writer, expansion
from vitrify.importers.onnx.source import Array, SourceNode


def real(w: Writer, first: int, axis: int | None = None) -> str:
    """The real values of the quantized input at ``first``, whose scale and zero point follow it."""
    names = [w.needed(first), w.needed(first + 1), *([w.name(first + 2)] if w.has(first + 2) else [])]
    scale = w.array(first + 1)
    several = axis is not None and scale is not None and scale.size > 1
    return w.add("DequantizeLinear", *names, axis=axis if several else None)


def steps(w: Writer, value: str, scale: int) -> str:
    """``value`` as steps of the scale at input ``scale``, the zero point behind it."""
    return w.add("QuantizeLinear", value, w.needed(scale), *([w.name(scale + 1)] if w.has(scale + 1) else []))


def _scale(w: Writer, index: int) -> Array:
    return w.known(index, "the scale").astype(np.float32).reshape(-1)


def _bias(w: Writer, index: int, scale: Array) -> str:
    """The real values of an int32 bias in units of ``scale``."""
    several = scale.size > 1
    return w.add("DequantizeLinear", w.needed(index), w.constant(scale if several else scale.reshape(())),
                 axis=0 if several else None)


def plain(node: SourceNode, *left_out: str) -> dict[str, Any]:
    """The attributes of a node but for some."""
    return {k: v for k, v in node.attributes.items() if k not in left_out}


@expansion("QLinearConv", "com.microsoft::QLinearConv")
def qlinear_conv(w: Writer, node: SourceNode) -> str:
    """Convolution: x, scale, zero point; the kernel's; the result's; an int32 bias."""
    channels_last = bool(node.integer("channels_last"))
    x, kernel = real(w, 0), real(w, 3, 0)
    if channels_last:
        x = channel_first(w, node, x)
    bias = [_bias(w, 8, _scale(w, 1) * _scale(w, 4))] if w.has(8) else []
    y = w.add("Conv", x, kernel, *bias, **plain(node, "channels_last"))
    return steps(w, channel_last(w, node, y) if channels_last else y, 6)


def _rank(w: Writer, node: SourceNode) -> int:
    kernel = w.array(3 if node.kind == "QLinearConv" else 1)
    shape = node.ints("kernel_shape")
    if shape is not None:
        return len(shape) + 2
    return kernel.ndim if kernel is not None else 4


def channel_first(w: Writer, node: SourceNode, x: str) -> str:
    """N...C as NC..."""
    rank = _rank(w, node)
    return w.add("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)])


def channel_last(w: Writer, node: SourceNode, x: str) -> str:
    """NC... as N...C."""
    rank = _rank(w, node)
    return w.add("Transpose", x, perm=[0, *range(2, rank), 1])


@expansion("QLinearMatMul")
def qlinear_matmul(w: Writer, node: SourceNode) -> str:
    """Matrix product; a may have a scale per row, b one per column."""
    return steps(w, w.add("MatMul", real(w, 0, -2), real(w, 3, -1)), 6)


@expansion("com.microsoft::QGemm")
def qgemm(w: Writer, node: SourceNode) -> str:
    """alpha * A' @ B' with an int32 C in the units of the product; real values where no output scale is given."""
    alpha, across = node.number("alpha", 1.0), bool(node.integer("transB"))
    inputs = [real(w, 0), real(w, 3, 0 if across else 1)]
    if w.has(6):
        c = _bias(w, 6, _scale(w, 1) * _scale(w, 4))
        inputs.append(w.add("Mul", c, w.constant(alpha)) if alpha != 1.0 else c)
    y = w.add("Gemm", *inputs, **plain(node))
    return steps(w, y, 7) if w.has(7) else y


def _binary(kind: str) -> Callable[[Writer, SourceNode], str]:
    return lambda w, node: steps(w, w.add(kind, real(w, 0), real(w, 3)), 6)


def _unary(kind: str) -> Callable[[Writer, SourceNode], str]:
    return lambda w, node: steps(w, w.add(kind, real(w, 0), **plain(node, "opset")), 3)


# Sums and products, then what computes each value by itself.
for _kind in ("Add", "Mul"):
    expansion(f"com.microsoft::QLinear{_kind}")(_binary(_kind))
for _kind in ("Sigmoid", "LeakyRelu", "ReduceMean"):
    expansion(f"com.microsoft::QLinear{_kind}")(_unary(_kind))


@expansion("com.microsoft::QLinearSoftmax")
def qlinear_softmax(w: Writer, node: SourceNode) -> str:
    """Softmax; ``opset`` says in which operator set's sense: before 13 all axes from ``axis`` on count as one."""
    opset = node.integer("opset", 13)
    return steps(w, w.add("Softmax", real(w, 0), axis=node.integer("axis", -1), opset=opset), 3)


@expansion("com.microsoft::QLinearConcat")
def qlinear_concat(w: Writer, node: SourceNode) -> str:
    """Concatenation of parts with scales of their own; the result's scale comes first."""
    parts = [real(w, i) for i in range(2, len(node.inputs), 3)]
    return steps(w, w.add("Concat", *parts, axis=node.integer("axis")), 0)


@expansion("com.microsoft::QLinearWhere")
def qlinear_where(w: Writer, node: SourceNode) -> str:
    """Choice between two parts with scales of their own."""
    return steps(w, w.add("Where", w.needed(0), real(w, 1), real(w, 4)), 7)


@expansion("com.microsoft::QLinearGlobalAveragePool", "com.microsoft::QLinearAveragePool")
def qlinear_pool(w: Writer, node: SourceNode) -> str:
    """Average pooling."""
    last = bool(node.integer("channels_last"))
    x = channel_first(w, node, real(w, 0)) if last else real(w, 0)
    y = w.add(node.kind.removeprefix("QLinear"), x, **plain(node, "channels_last"))
    return steps(w, channel_last(w, node, y) if last else y, 3)


@expansion("com.microsoft::QuantizeLinear", "com.microsoft::DequantizeLinear")
def of_onnx(w: Writer, node: SourceNode) -> str:
    """ONNX's own, with 16-bit and 4-bit types before ONNX had them."""
    return w.add(node.kind, *node.inputs, **plain(node))


@expansion("com.microsoft::MatMulIntegerToFloat")
def matmul_integer_to_float(w: Writer, node: SourceNode) -> str:
    """Matrix product of integers given out as real values: A, B, their scales, their zero points, a bias."""
    a = w.add("DequantizeLinear", w.needed(0), w.needed(2), *([w.name(4)] if w.has(4) else []))
    b = _weights(w, 1, 3, 5)
    y = w.add("MatMul", a, b)
    return w.add("Add", y, w.name(6)) if w.has(6) else y


@expansion("com.microsoft::DynamicQuantizeMatMul")
def dynamic_quantize_matmul(w: Writer, node: SourceNode) -> str:
    """Matrix product whose input gets a scale at run time; here it stays float, the weights are what they stand for."""
    y = w.add("MatMul", w.needed(0), _weights(w, 1, 2, 3))
    return w.add("Add", y, w.name(4)) if w.has(4) else y


def _weights(w: Writer, data: int, scale: int, zero: int) -> str:
    scales = w.array(scale)
    several = scales is not None and scales.size > 1
    return w.add("DequantizeLinear", w.needed(data), w.needed(scale), *([w.name(zero)] if w.has(zero) else []),
                 axis=-1 if several else None)
