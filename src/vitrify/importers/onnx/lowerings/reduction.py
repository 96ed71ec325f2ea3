"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.registry import axes_of, lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Operator, Tensor

_REDUCERS: dict[str, Callable[..., Operator]] = {
    "ReduceMean": ops.Mean,
    "ReduceSum": ops.Sum,
    "ReduceMax": ops.ReduceMax,
    "ReduceMin": ops.ReduceMin,
    "ReduceProd": ops.ReduceProd,
}


def _axes(ctx: Context, node: SourceNode, x: Tensor) -> Array | None:
    """The axes as TFLite takes them; None when the node does nothing."""
    axes = axes_of(ctx, node, len(x.shape))
    if not axes and node.integer("noop_with_empty_axes"):
        return None
    return np.array(sorted(axes) if axes else range(len(x.shape)), np.int32)


def _reduce(ctx: Context, node: SourceNode, x: Tensor, op: Callable[..., Operator]) -> Tensor:
    axes = _axes(ctx, node, x)
    if axes is None:
        return x
    if all(x.shape[axis] == 1 for axis in axes):
        kept = [d for i, d in enumerate(x.shape) if node.integer("keepdims", 1) or i not in axes]
        return ctx.reshape(x, kept)  # one element is its own sum, mean, product and extreme
    return ctx.emit(op(keep_dims=bool(node.integer("keepdims", 1))), [x, axes])


def _plain(op: Callable[..., Operator]) -> Callable[[Context, SourceNode], None]:
    def lower(ctx: Context, node: SourceNode) -> None:
        ctx.bind(node, _reduce(ctx, node, ctx.tensor(node, 0), op))

    return lower


for _kind, _op in _REDUCERS.items():
    lowering(_kind)(_plain(_op))


@lowering("ReduceL1")
def reduce_l1(ctx: Context, node: SourceNode) -> None:
    """The sum of absolute values."""
    ctx.bind(node, _reduce(ctx, node, ctx.emit(ops.Abs(), [ctx.tensor(node, 0)], aside=True), ops.Sum))


@lowering("ReduceL2")
def reduce_l2(ctx: Context, node: SourceNode) -> None:
    """The square root of the sum of squares."""
    x = ctx.tensor(node, 0)
    ctx.bind(node, ctx.emit(ops.Sqrt(), [_reduce(ctx, node, ctx.emit(ops.Mul(), [x, x], aside=True), ops.Sum)]))


@lowering("ReduceSumSquare")
def reduce_sum_square(ctx: Context, node: SourceNode) -> None:
    """The sum of squares."""
    x = ctx.tensor(node, 0)
    ctx.bind(node, _reduce(ctx, node, ctx.emit(ops.Mul(), [x, x], aside=True), ops.Sum))


@lowering("ReduceLogSum")
def reduce_log_sum(ctx: Context, node: SourceNode) -> None:
    """The logarithm of the sum."""
    ctx.bind(node, ctx.emit(ops.Log(), [_reduce(ctx, node, ctx.tensor(node, 0), ops.Sum)]))


@lowering("ReduceLogSumExp")
def reduce_log_sum_exp(ctx: Context, node: SourceNode) -> None:
    """log(sum(exp(x))), with the largest x taken out first so that nothing overflows."""
    x = ctx.tensor(node, 0)
    axes = _axes(ctx, node, x)
    if axes is None:
        return ctx.bind(node, x)
    top = ctx.emit(ops.ReduceMax(keep_dims=True), [x, axes], aside=True)
    total = ctx.emit(
        ops.Sum(keep_dims=True),
        [ctx.emit(ops.Exp(), [ctx.emit(ops.Sub(), [x, top], aside=True)], aside=True), axes],
        aside=True,
    )
    y = ctx.emit(ops.Add(), [ctx.emit(ops.Log(), [total], aside=True), top])
    kept = [d for i, d in enumerate(y.shape) if node.integer("keepdims", 1) or i not in axes.tolist()]
    return ctx.bind(node, ctx.reshape(y, kept))
