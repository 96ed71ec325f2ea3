"""Normalizations by constant statistics, and by a norm."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import SourceNode


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
