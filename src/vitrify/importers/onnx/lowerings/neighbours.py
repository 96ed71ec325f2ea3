"""Normalization over neighbouring channels."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor
from vitrify.ops import Padding

MOST_CHANNELS = 4096
"""The sum over neighbours is a product with a matrix of channels times channels."""


@lowering("LRN")
def lrn(ctx: Context, node: SourceNode) -> None:
    """x * (bias + alpha / size * sum of squares of the ``size`` channels around) ** -beta.

    The bracket is a 1 x 1 convolution of the squares, a form that NPUs take. TFLite's own operator sums one channel
    less on the upper side, which no odd ``size`` agrees with.
    """
    x = float_input(ctx, node, 0)
    size = node.integer("size")
    if len(x.shape) < 3 or size < 1:
        raise node.problem(f"a size of {size} for the input {x.type}; it takes 1 and more, and 3 dimensions and more")
    channels = x.shape[1]
    if channels > MOST_CHANNELS:
        raise node.unsupported(f"{channels} channels; up to {MOST_CHANNELS} are converted")
    band = _band(channels, size) * np.float32(node.number("alpha", 1e-4) / size)
    last = ctx.channel_last(x)
    squares = ctx.reshape(step(ctx, ops.Mul, last, last), (x.shape[0], 1, x.size // (x.shape[0] * channels), channels))
    bias = np.full(channels, node.number("bias", 1.0), np.float32)
    sums = ctx.emit(
        ops.Conv2D(padding=Padding.VALID, stride_h=1, stride_w=1), [squares, band[:, None, None], bias], aside=True
    )
    positive = node.number("bias", 1.0) > 0 and node.number("alpha", 1e-4) >= 0
    factor = _to_minus(ctx, sums, node.number("beta", 0.75), positive)
    y = ctx.emit(ops.Mul(), [last, ctx.reshape(factor, last.shape)])
    ctx.bind(node, ctx.channel_first(y))


def _band(channels: int, size: int) -> Array:
    """1 where the column is within floor((size - 1) / 2) below and ceil((size - 1) / 2) above the row."""
    distance = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    return ((distance >= -((size - 1) // 2)) & (distance <= size // 2)).astype(np.float32)


def _to_minus(ctx: Context, x: Tensor, beta: float, positive: bool) -> Tensor:
    """x ** -beta. RSQRT, LOG and EXP are tables on NPUs, which have no POW, SQRT or DIV."""
    if not positive:
        return step(ctx, ops.Pow, x, -beta)
    if beta in (0.5, 1.0):
        root = step(ctx, ops.Rsqrt, x)
        return root if beta == 0.5 else step(ctx, ops.Mul, root, root)
    return step(ctx, ops.Exp, step(ctx, ops.Mul, step(ctx, ops.Log, x), -beta))
