"""Triangles, diagonals and centres of matrices.

Source: ONNX operator reference, Trilu-14, EyeLike-22, CenterCropPad-18.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.parts.places import Formula
from vitrify.importers.onnx.reading.tensors import DTYPES
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.rules import fits, limit
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType


@lowering("Trilu")
def trilu(ctx: Context, node: SourceNode) -> None:
    """The upper or lower triangle of the last two axes; a product with zeros and ones where the type allows it."""
    x, upper = ctx.tensor(node, 0), bool(node.integer("upper", 1))
    if len(x.shape) < 2:
        raise node.problem(f"{x.type} is no matrix")
    rows, columns = x.shape[-2:]
    distance = np.arange(columns, dtype=np.int32)[None] - np.arange(rows, dtype=np.int32)[:, None]
    k = ctx.value(node, 1) if ctx.present(node, 1) else np.zeros((), np.int64)
    zero, formula = np.zeros((), x.dtype.numpy), Formula(ctx)
    if not isinstance(k, np.ndarray):
        line = ctx.reshape(formula.cast(k, DType.INT32), (1, 1))
        gone = formula.below(distance, line) if upper else formula.below(line, distance)
        return ctx.bind(node, ctx.emit(ops.SelectV2(), [gone, zero, x]))
    offset = int(k.reshape(-1)[0])
    kept = distance >= offset if upper else distance <= offset
    if kept.all():
        return ctx.bind(node, x)
    if x.dtype in (DType.FLOAT32, DType.INT32):
        return ctx.bind(node, ctx.emit(ops.Mul(), [x, kept.astype(x.dtype.numpy)]))
    return ctx.bind(node, ctx.emit(ops.SelectV2(), [kept, x, zero]))


@lowering("EyeLike")
def eye_like(ctx: Context, node: SourceNode) -> None:
    """A constant: only the input's shape counts."""
    x = ctx.tensor(node, 0)
    if len(x.shape) != 2:
        raise node.problem(f"{x.type} is no matrix")
    dtype = DTYPES.get(node.integer("dtype"), x.dtype.label)
    rows, columns = limit(node, x.shape)
    ctx.bind(node, np.eye(rows, columns, node.integer("k"), dtype=dtype))


@lowering("CenterCropPad")
def center_crop_pad(ctx: Context, node: SourceNode) -> None:
    """Cut or extended with zeros on both sides, the odd one at the end."""
    x = ctx.tensor(node, 0)
    wanted = ctx.known(node, 1, "the shape").ravel().tolist()
    axes = [axis_of(node, a, len(x.shape)) for a in node.ints("axes") or range(len(x.shape))]
    if len(axes) != len(wanted):
        raise node.problem(f"{len(wanted)} extents for {len(axes)} axes")
    ranges, pads = [slice(0, d) for d in x.shape], [(0, 0)] * len(x.shape)
    for axis, size in zip(axes, wanted, strict=True):
        extra = size - x.shape[axis]
        if extra < 0:
            ranges[axis] = slice(-extra // 2, -extra // 2 + size)
        else:
            pads[axis] = (extra // 2, extra - extra // 2)
    fits(node, [d if a not in axes else wanted[axes.index(a)] for a, d in enumerate(x.shape)])
    ctx.bind(node, Formula(ctx).padded(sliced(ctx, node, x, ranges), pads))
