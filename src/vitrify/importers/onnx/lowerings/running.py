"""Running sums and products along an axis.

Source: ONNX operator reference, CumSum-14, CumProd-26; TFLite kernels/cumsum.cc.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.parts.places import Formula, computable, emit_as, weighed
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor

MOST_IN_MATRIX = 256
"""Extent up to which a running sum costs less as a product than where no integer kernel has it."""
_SUMMED = (DType.FLOAT32, DType.INT32, DType.INT64)


def _axis(ctx: Context, node: SourceNode, rank: int) -> int:
    return axis_of(node, int(ctx.known(node, 1, "the axis").reshape(-1)[0]), rank)


@lowering("CumSum")
def cumsum(ctx: Context, node: SourceNode) -> None:
    """Running sums along an axis: a product with a triangle of ones, as CUMSUM has no integer kernels."""
    x = ctx.tensor(node, 0)
    axis, exclusive, backward = _axis(ctx, node, len(x.shape)), node.integer("exclusive"), node.integer("reverse")
    extent = x.shape[axis] if x.shape else 0
    if x.dtype is DType.FLOAT32 and 0 < extent <= MOST_IN_MATRIX:
        triangle = np.tri(extent, k=-1 if exclusive else 0, dtype=np.float32)
        return ctx.bind(node, weighed(ctx, x, axis, triangle[::-1, ::-1].copy() if backward else triangle))
    op = ops.Cumsum(exclusive=bool(exclusive), reverse=bool(backward))
    return ctx.bind(node, emit_as(ctx, op, [computable(ctx, x, _SUMMED), np.array(axis, np.int32)], x.dtype))


@lowering("CumProd")
def cumprod(ctx: Context, node: SourceNode) -> None:
    """Running products, in as many rounds as doubling the reach takes to cover the axis."""
    x = ctx.tensor(node, 0)
    axis, backward = _axis(ctx, node, len(x.shape)), bool(node.integer("reverse"))
    y, reach = computable(ctx, x, (DType.FLOAT32, DType.INT32)), 1
    if node.integer("exclusive"):
        y = _shifted(ctx, y, axis, 1, backward)
    while reach < y.shape[axis]:
        y = ctx.emit(ops.Mul(), [y, _shifted(ctx, y, axis, reach, backward)])
        reach *= 2
    ctx.bind(node, Formula(ctx).cast(y, x.dtype))


def _shifted(ctx: Context, x: Tensor, axis: int, by: int, backward: bool) -> Tensor:
    """``x`` moved along an axis, ones in the places that become free."""
    formula, extent = Formula(ctx), x.shape[axis]
    kept = formula.part(x, axis, by, extent) if backward else formula.part(x, axis, 0, extent - by)
    pads = [(0, 0)] * len(x.shape)
    pads[axis] = (0, by) if backward else (by, 0)
    return formula.padded(kept, pads, 1)
