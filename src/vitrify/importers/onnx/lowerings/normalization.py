"""Normalizations by the statistics of a channel, and by a norm; Dropout, which only training knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import shaped, step
from vitrify.importers.onnx.parts.normalizing import affine, normalized
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor

_PARAMETERS = ("scale", "bias", "mean", "variance")
_TINY = float(np.finfo(np.float32).tiny)


@lowering("BatchNormalization")
def batch_normalization(ctx: Context, node: SourceNode) -> None:
    """With given statistics: one factor and one term per channel; with those of the batch in training mode."""
    x = float_input(ctx, node, 0)
    if not x.shape:
        raise node.problem("its input is a single number; it takes channels")
    channels = x.shape[1] if len(x.shape) > 1 else x.shape[0]
    shape = (1, channels, *(1,) * (len(x.shape) - 2)) if len(x.shape) > 1 else (channels,)
    given = [ctx.value(node, i) for i in range(1, 5)]
    sizes = {name: v.size for name, v in zip(_PARAMETERS, given, strict=True)}
    if set(sizes.values()) != {channels}:
        raise node.problem(f"parameters of {sizes} values for {channels} channels")
    if node.integer("training_mode"):
        return _training(ctx, node, x, given, shape)
    if any(node.outputs[1:]):
        raise node.unsupported("it gives the statistics of a training step", "export with model.eval()")
    if not all(isinstance(v, np.ndarray) for v in given):
        return ctx.bind(node, _by_tensors(ctx, x, [shaped(ctx, v, shape) for v in given], node.number("epsilon", 1e-5)))
    scale, bias, mean, variance = (np.asarray(v).astype(np.float64).reshape(shape) for v in given)
    factor = scale / np.sqrt(variance + node.number("epsilon", 1e-5))
    scaled = ctx.emit(ops.Mul(), [x, factor.astype(np.float32)], aside=True)
    return ctx.bind(node, ctx.emit(ops.Add(), [scaled, (bias - mean * factor).astype(np.float32)]))


def _by_tensors(ctx: Context, x: Tensor, parameters: Sequence[Value], epsilon: float) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, with what is known only at run time."""
    scale, bias, mean, variance = (ctx.constant(v) if isinstance(v, np.ndarray) else v for v in parameters)
    inverse = step(ctx, ops.Rsqrt, step(ctx, ops.Add, variance, epsilon))
    centred = step(ctx, ops.Sub, x, mean)
    return ctx.emit(ops.Add(), [step(ctx, ops.Mul, centred, step(ctx, ops.Mul, inverse, scale)), bias])


def _training(ctx: Context, node: SourceNode, x: Tensor, given: Sequence[Value], shape: Sequence[int]) -> None:
    """Normalize by the batch's own mean and variance; the running ones move towards these.

    Source: ONNX operator reference, BatchNormalization-15.
    """
    if node.opset < 14 or len(x.shape) < 2:
        raise node.unsupported("it is in training mode", "export with model.eval()")
    axes = [0, *range(2, len(x.shape))]
    found = normalized(ctx, x, axes, node.number("epsilon", 1e-5))
    scale, bias = (shaped(ctx, v, shape) for v in given[:2])
    results: list[Value] = [affine(ctx, found.y, scale, bias)]
    assert found.mean is not None
    if any(node.outputs[1:]):
        centred = step(ctx, ops.Sub, x, found.mean)
        square = step(ctx, ops.Mul, centred, centred)
        variance = ctx.emit(ops.Mean(keep_dims=True), [square, np.array(axes, np.int32)], aside=True)
        results += [
            _moved(ctx, old, new, node.number("momentum", 0.9))
            for old, new in zip(given[2:], (found.mean, variance), strict=True)
        ]
    ctx.bind(node, *results)


def _moved(ctx: Context, old: Value, new: Tensor, momentum: float) -> Tensor:
    fresh = step(ctx, ops.Mul, ctx.reshape(new, old.shape), 1 - momentum)
    kept: Tensor | Array = (
        (old * np.float32(momentum)).astype(np.float32)
        if isinstance(old, np.ndarray)
        else step(ctx, ops.Mul, old, momentum)
    )
    return ctx.emit(ops.Add(), [fresh, kept])


@lowering("LpNormalization")
def lp_normalization(ctx: Context, node: SourceNode) -> None:
    """x over its norm along an axis; 0 where all of x is.

    L2_NORMALIZATION counts a norm below 1e-6 as 1e-6, which matters only for such tiny x.
    """
    x = float_input(ctx, node, 0)
    rank = len(x.shape)
    axis = axis_of(node, node.integer("axis", -1), rank)
    if node.integer("p", 2) == 1:
        over = np.array([axis], np.int32)
        norm = ctx.emit(ops.Sum(keep_dims=True), [step(ctx, ops.Abs, x), over], aside=True)
        return ctx.bind(node, ctx.emit(ops.Div(), [x, step(ctx, ops.Maximum, norm, _TINY)]))
    if axis == rank - 1:
        return ctx.bind(node, ctx.emit(ops.L2Normalization(), [x]))
    if axis == 1:
        return ctx.bind(node, ctx.channel_first(ctx.emit(ops.L2Normalization(), [ctx.channel_last(x)])))
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    y = ctx.emit(ops.L2Normalization(), [ctx.transpose(x, swap)])
    return ctx.bind(node, ctx.transpose(y, swap))


@lowering("Dropout")
def dropout(ctx: Context, node: SourceNode) -> None:
    """The input itself, and a mask that keeps everything: what is left once training is over.

    In training mode only with a ratio of 0, as no two runtimes drop the same elements.
    """
    x = ctx.value(node, 0)
    training = ctx.present(node, 2) and _one(node, ctx.known(node, 2, "training_mode"), "training_mode") != 0
    if training:
        ratio = _one(node, ctx.known(node, 1, "the ratio"), "the ratio") if ctx.present(node, 1) else 0.5
        if ratio != 0:
            raise node.unsupported(
                f"it is in training mode and drops {ratio:g} of its elements at random", "export with model.eval()"
            )
    mask = [np.ones(limit(node, x.shape), bool)] if any(node.outputs[1:]) else []
    ctx.bind(node, x, *mask)


def _one(node: SourceNode, value: Array, what: str) -> float:
    if value.size != 1:
        raise node.problem(f"{what} has the shape {list(value.shape)}; it is a single number")
    return float(value.reshape(()))
