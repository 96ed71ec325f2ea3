"""Normalization written as the arithmetic that every target has.

(x - mean) / sqrt(variance + epsilon) becomes MEAN, SUB, MUL, MEAN, ADD, RSQRT, MUL. Why this form:

- The variance is the mean of the squared *difference*. The mean of squares less the squared mean would save a node and
  loses all digits where the mean is large against the deviation.
- The square is MUL: SQUARED_DIFFERENCE would take the place of SUB and MUL, but the difference is needed anyway, and it
  has no 16-bit kernel. SQUARE has a float kernel only.
- The quotient is a product with RSQRT: DIV and SQRT have no kernel on NPUs, RSQRT is a table there.
- The reduced axes are kept, so that the statistics broadcast without a RESHAPE.

Source: TFLite kernels/squared_difference.cc, elementwise.cc, reduce.cc; Vela SUPPORTED_OPS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.ir import Tensor


@dataclass(frozen=True)
class Normalized:
    """What a normalization gives: the values, and the statistics with the reduced axes kept."""

    y: Tensor
    inverse: Tensor
    mean: Tensor | None = None


def normalized(ctx: Context, x: Tensor, axes: Sequence[int], epsilon: float) -> Normalized:
    """(x - mean) / sqrt(variance + epsilon) over ``axes``."""
    mean = ctx.emit(ops.Mean(keep_dims=True), [x, np.array(axes, np.int32)], aside=True)
    scaled = scaled_by_rms(ctx, ctx.emit(ops.Sub(), [x, mean], aside=True), axes, epsilon)
    return Normalized(scaled.y, scaled.inverse, mean)


def scaled_by_rms(ctx: Context, x: Tensor, axes: Sequence[int], epsilon: float) -> Normalized:
    """X / sqrt(mean(x * x) + epsilon) over ``axes``."""
    square = ctx.emit(ops.Mul(), [x, x], aside=True)
    variance = ctx.emit(ops.Mean(keep_dims=True), [square, np.array(axes, np.int32)], aside=True)
    if epsilon:
        variance = ctx.emit(ops.Add(), [variance, np.array(epsilon, np.float32)], aside=True)
    inverse = ctx.emit(ops.Rsqrt(), [variance], aside=True)
    return Normalized(ctx.emit(ops.Mul(), [x, inverse]), inverse)


def affine(ctx: Context, x: Tensor, scale: Value | None, bias: Value | None) -> Tensor:
    """X * scale + bias, broadcast; a missing part, or a constant that changes nothing, is left out."""
    if scale is not None and not _all(scale, 1.0):
        x = ctx.emit(ops.Mul(), [x, scale])
    if bias is not None and not _all(bias, 0.0):
        x = ctx.emit(ops.Add(), [x, bias])
    return x


def _all(value: Value, number: float) -> bool:
    return isinstance(value, np.ndarray) and bool((value == number).all())


def repeated(ctx: Context, value: Value, count: int) -> Value:
    """Each element ``count`` times in a row: one value for each group as one for each of its channels."""
    if isinstance(value, np.ndarray):
        return np.repeat(value.reshape(-1), count)
    column = ctx.reshape(value, (value.size, 1))
    wide = ctx.emit(ops.Tile(), [column, np.array([1, count], np.int32)], aside=True)
    return ctx.reshape(wide, (value.size * count,))


def layer_norm(
    ctx: Context, x: Tensor, axis: int, scale: Value | None, bias: Value | None, epsilon: float
) -> Normalized:
    """Normalize over everything from ``axis`` on, then scale and shift."""
    found = normalized(ctx, x, range(axis, len(x.shape)), epsilon)
    return Normalized(affine(ctx, found.y, scale, bias), found.inverse, found.mean)


def rms_norm(ctx: Context, x: Tensor, axis: int, scale: Value | None, epsilon: float) -> Normalized:
    """Divide by the root of the mean square over everything from ``axis`` on, then scale."""
    found = scaled_by_rms(ctx, x, range(axis, len(x.shape)), epsilon)
    return Normalized(affine(ctx, found.y, scale, None), found.inverse)


def group_norm(
    ctx: Context, x: Tensor, groups: int, scale: Value | None, bias: Value | None, epsilon: float
) -> Tensor:
    """Normalize NC... over the rest and the channels of a group; scale and bias hold one value per channel.

    It is done on the channel-last tensor, as [N, places, groups, channels of a group] with the statistics over the
    second and the last axis: between convolutions no transpose is needed, which grouping channel-first would.
    """
    last = ctx.channel_last(x)
    n, channels = x.shape[:2]
    rows = ctx.reshape(last, (n, x.size // (n * channels), groups, channels // groups))
    y = ctx.reshape(normalized(ctx, rows, (1, 3), epsilon).y, last.shape)
    return ctx.channel_first(affine(ctx, y, scale, bias))


def instance_norm(ctx: Context, x: Tensor, scale: Value | None, bias: Value | None, epsilon: float) -> Tensor:
    """Normalize NC... over everything behind the channels; scale and bias hold one value per channel."""
    rank = len(x.shape)
    last = ctx.channel_last(x)
    y = normalized(ctx, last, range(1, rank - 1), epsilon).y
    return ctx.channel_first(affine(ctx, y, scale, bias))
