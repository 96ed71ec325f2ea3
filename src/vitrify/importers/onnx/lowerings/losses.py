"""Losses that compare scores with the class that is right, as they stand at the end of some exported models.

The right class is picked by a product with ONE_HOT, whose rows are 0 for a class that is to be ignored. Source: ONNX
operator reference, NegativeLogLikelihoodLoss-13, SoftmaxCrossEntropyLoss-13.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.softmax import along_axis
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor

NOWHERE = np.int32(-1)
"""A class that ONE_HOT marks nowhere."""


@lowering("NegativeLogLikelihoodLoss")
def negative_log_likelihood(ctx: Context, node: SourceNode) -> None:
    """Minus the score of the right class."""
    ctx.bind(node, _loss(ctx, node, float_input(ctx, node, 0)))


@lowering("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(ctx: Context, node: SourceNode) -> None:
    """Minus the logarithm of the right class's softmax; also gives all of those logarithms."""
    x = float_input(ctx, node, 0)
    if len(x.shape) < 2:
        raise node.problem(f"its scores are {x.type}; the second axis holds the classes")
    logarithms = along_axis(ctx, x, 1, lambda rows: ctx.emit(ops.LogSoftmax(), [rows], aside=True))
    ctx.bind(node, _loss(ctx, node, logarithms), logarithms)


def _loss(ctx: Context, node: SourceNode, scores: Tensor) -> Tensor:
    """The loss of every place, or reduced, for scores [N, classes, ...]."""
    target = ctx.tensor(node, 1)
    if len(scores.shape) < 2 or target.shape != (scores.shape[0], *scores.shape[2:]):
        raise node.problem(f"its classes {target.type} do not fit the scores {scores.type}")
    batch, classes = scores.shape[:2]
    rows = ctx.reshape(scores, (batch, classes, scores.size // (batch * classes)))
    hot = _marked(ctx, node, ctx.reshape(target, (batch, rows.shape[2])), classes)
    picked = ctx.emit(ops.Mul(), [rows, hot], aside=True)
    reduction = node.string("reduction", "mean")
    if reduction == "none":
        found = ctx.emit(ops.Sum(keep_dims=False), [picked, np.array([1], np.int32)], aside=True)
        return ctx.emit(ops.Neg(), [ctx.reshape(found, target.shape)])
    every = np.array([0, 1, 2], np.int32)
    total = ctx.emit(ops.Neg(), [ctx.emit(ops.Sum(keep_dims=False), [picked, every], aside=True)])
    if reduction == "sum":
        return total
    if not ctx.present(node, 2) and "ignore_index" not in node.attributes:
        return ctx.emit(ops.Mul(), [total, np.array(1 / target.size, np.float32)])
    return ctx.emit(ops.Div(), [total, ctx.emit(ops.Sum(keep_dims=False), [hot, every], aside=True)])


def _marked(ctx: Context, node: SourceNode, target: Tensor, classes: int) -> Tensor:
    """[N, classes, places] with the weight of the right class at its place."""
    ignored = node.integer("ignore_index", int(NOWHERE))
    if 0 <= ignored < classes:
        is_ignored = ctx.emit(ops.Equal(), [target, np.array([ignored], target.dtype.numpy)], aside=True)
        nowhere = np.array([NOWHERE], target.dtype.numpy)
        target = ctx.emit(ops.SelectV2(), [is_ignored, nowhere, target], aside=True)
    one, zero = np.array(1, np.float32), np.array(0, np.float32)
    hot = ctx.emit(ops.OneHot(axis=1), [target, np.array(classes, np.int32), one, zero], aside=True)
    if not ctx.present(node, 2):
        return hot
    weights = ctx.reshape(ctx.tensor(node, 2), (1, classes, 1))
    return ctx.emit(ops.Mul(), [hot, weights], aside=True)
