"""Softmax and its relatives, along any axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Operator, Tensor

LARGEST_RANK = 4
"""Of more dimensions, rows are made: NPUs, and some kernels, take no more."""


def along(ctx: Context, node: SourceNode, x: Tensor, row_wise: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply ``row_wise``, which works along the last axis, along the node's axis.

    Before operator set 13 everything from the axis on is one row. Source: ONNX operator changelog, Softmax-11 and -13.
    """
    rank = len(x.shape)
    axis = axis_of(node, node.integer("axis", 1 if node.opset < 13 else -1), rank)
    if node.opset < 13 and any(d != 1 for d in x.shape[axis + 1 :]):
        rows = int(np.prod(x.shape[:axis], dtype=np.int64))
        return ctx.reshape(row_wise(ctx.reshape(x, (rows, x.size // max(rows, 1)))), x.shape)
    return along_axis(ctx, x, axis, row_wise)


def along_axis(ctx: Context, x: Tensor, axis: int, row_wise: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply ``row_wise``, which works along the last axis, along ``axis``."""
    rank = len(x.shape)
    behind = int(np.prod(x.shape[axis + 1 :], dtype=np.int64))
    if behind == 1 or rank > LARGEST_RANK:
        before = int(np.prod(x.shape[:axis], dtype=np.int64))
        if behind == 1 and axis == rank - 1 and rank <= LARGEST_RANK:
            return row_wise(x)
        if behind == 1:
            return ctx.reshape(row_wise(ctx.reshape(x, (before, x.shape[axis]))), x.shape)
        parts = ctx.transpose(ctx.reshape(x, (before, x.shape[axis], behind)), (0, 2, 1))
        return ctx.reshape(ctx.transpose(row_wise(parts), (0, 2, 1)), x.shape)
    if axis == 1:
        return ctx.channel_first(row_wise(ctx.channel_last(x)))
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    return ctx.transpose(row_wise(ctx.transpose(x, swap)), swap)


def _rows(op: Operator) -> Callable[[Context, SourceNode], None]:
    def lower(ctx: Context, node: SourceNode) -> None:
        x = float_input(ctx, node, 0)
        if not x.shape:
            raise node.problem("its input is a single number; it works along an axis")
        ctx.bind(node, along(ctx, node, x, lambda rows: ctx.emit(op, [rows])))

    return lower


lowering("Softmax")(_rows(ops.Softmax(beta=1.0)))
lowering("LogSoftmax")(_rows(ops.LogSoftmax()))


@lowering("Hardmax")
def hardmax(ctx: Context, node: SourceNode) -> None:
    """1 at the first largest value along the axis, 0 elsewhere."""
    x = float_input(ctx, node, 0)

    def row_wise(rows: Tensor) -> Tensor:
        last = len(rows.shape) - 1
        place = ctx.emit(ops.ArgMax(output_type=DType.INT32.value), [rows, np.array(last, np.int32)], aside=True)
        depth = np.array(rows.shape[-1], np.int32)
        return ctx.emit(ops.OneHot(axis=-1), [place, depth, np.array(1, np.float32), np.array(0, np.float32)])

    ctx.bind(node, along(ctx, node, x, row_wise))
