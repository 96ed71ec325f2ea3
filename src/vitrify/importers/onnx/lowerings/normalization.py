"""Normalizations, written out as arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor


@lowering("BatchNormalization")
def batch_normalization(ctx: Context, node: SourceNode) -> None:
    """With constant statistics: one factor and one term per channel."""
    x = float_input(ctx, node, 0)
    if node.integer("training_mode") or any(node.outputs[1:]):
        raise node.unsupported("it is in training mode", "export with model.eval()")
    scale, bias, mean, variance = (
        ctx.known(node, i, what).astype(np.float64)
        for i, what in enumerate(("the scale", "the bias", "the mean", "the variance"), 1)
    )
    channels = x.shape[1] if len(x.shape) > 1 else x.shape[0]
    if not scale.size == bias.size == mean.size == variance.size == channels:
        raise node.problem(
            f"{scale.size}, {bias.size}, {mean.size} and {variance.size} parameters for {channels} channels"
        )
    factor = scale / np.sqrt(variance + node.number("epsilon", 1e-5))
    shape = (1, channels, *(1,) * (len(x.shape) - 2)) if len(x.shape) > 1 else (channels,)
    scaled = ctx.emit(ops.Mul(), [x, factor.astype(np.float32).reshape(shape)], aside=True)
    ctx.bind(node, ctx.emit(ops.Add(), [scaled, (bias - mean * factor).astype(np.float32).reshape(shape)]))


def _normalized(ctx: Context, x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) over ``axes``."""
    over = np.array(axes, np.int32)
    mean = ctx.emit(ops.Mean(keep_dims=True), [x, over], aside=True)
    centred = ctx.emit(ops.Sub(), [x, mean], aside=True)
    variance = ctx.emit(
        ops.Mean(keep_dims=True), [ctx.emit(ops.Mul(), [centred, centred], aside=True), over], aside=True
    )
    factor = ctx.emit(
        ops.Rsqrt(), [ctx.emit(ops.Add(), [variance, np.array(epsilon, np.float32)], aside=True)], aside=True
    )
    return ctx.emit(ops.Mul(), [centred, factor])


def _affine(ctx: Context, x: Tensor, scale: Array | Tensor, bias: Array | Tensor | None) -> Tensor:
    y = ctx.emit(ops.Mul(), [x, scale])
    return y if bias is None else ctx.emit(ops.Add(), [y, bias])


@lowering("LayerNormalization")
def layer_normalization(ctx: Context, node: SourceNode) -> None:
    """Over everything from the axis on."""
    x = float_input(ctx, node, 0)
    if any(node.outputs[1:]):
        raise node.unsupported("its outputs of mean and deviation are not converted")
    axis = axis_of(node, node.integer("axis", -1), len(x.shape))
    y = _normalized(ctx, x, range(axis, len(x.shape)), node.number("epsilon", 1e-5))
    ctx.bind(node, _affine(ctx, y, ctx.tensor(node, 1), ctx.tensor(node, 2) if ctx.present(node, 2) else None))


@lowering("InstanceNormalization")
def instance_normalization(ctx: Context, node: SourceNode) -> None:
    """Over the spatial dimensions, per channel."""
    x = float_input(ctx, node, 0)
    shape = (1, x.shape[1], *(1,) * (len(x.shape) - 2))
    scale, bias = (ctx.known(node, i, "the scale or bias").reshape(shape) for i in (1, 2))
    y = _normalized(ctx, x, range(2, len(x.shape)), node.number("epsilon", 1e-5))
    ctx.bind(node, _affine(ctx, y, scale, bias))


@lowering("GroupNormalization")
def group_normalization(ctx: Context, node: SourceNode) -> None:
    """Over the spatial dimensions and the channels of a group; scale and bias per channel (per group before 21)."""
    x = float_input(ctx, node, 0)
    groups, channels = node.integer("num_groups"), x.shape[1]
    scale, bias = (ctx.known(node, i, "the scale or bias") for i in (1, 2))
    if groups < 1 or channels % groups or scale.size not in (groups, channels) or bias.size != scale.size:
        raise node.problem(f"{groups} groups and {scale.size} scales for {channels} channels")
    rows = ctx.reshape(x, (x.shape[0], groups, x.size // (x.shape[0] * groups)))
    y = ctx.reshape(_normalized(ctx, rows, [2], node.number("epsilon", 1e-5)), x.shape)
    shape = (1, channels, *(1,) * (len(x.shape) - 2))
    scale, bias = (np.repeat(v.reshape(-1), channels // v.size).reshape(shape) for v in (scale, bias))
    ctx.bind(node, _affine(ctx, y, scale, bias))


@lowering("LpNormalization")
def lp_normalization(ctx: Context, node: SourceNode) -> None:
    """x over its norm along an axis."""
    x = float_input(ctx, node, 0)
    axis = np.array([axis_of(node, node.integer("axis", -1), len(x.shape))], np.int32)
    if node.integer("p", 2) == 1:
        norm = ctx.emit(ops.Sum(keep_dims=True), [ctx.emit(ops.Abs(), [x], aside=True), axis], aside=True)
    else:
        squares = ctx.emit(ops.Mul(), [x, x], aside=True)
        norm = ctx.emit(ops.Sqrt(), [ctx.emit(ops.Sum(keep_dims=True), [squares, axis], aside=True)], aside=True)
    ctx.bind(node, ctx.emit(ops.Div(), [x, norm]))
