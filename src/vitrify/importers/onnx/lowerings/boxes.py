"""Pools over boxes."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor

MOST_BINS = 1024
"""Of all boxes of a MaxRoiPool: each is a slice and a maximum of its own."""
FARTHEST = 2**20
"""A corner of a box, in elements: beyond it float32 has no halves."""


@lowering("MaxRoiPool")
def max_roi_pool(ctx: Context, node: SourceNode) -> None:
    """The largest value in each part of constant boxes [batch, x1, y1, x2, y2], whose corners are rounded.

    Source: ONNX operator reference, MaxRoiPool.
    """
    x = float_input(ctx, node, 0, (4,))
    boxes = ctx.known(node, 1, "the list of boxes")
    pooled = node.ints("pooled_shape") or []
    if len(pooled) != 2 or min(pooled) < 1 or boxes.ndim != 2 or boxes.shape[1] != 5:
        raise node.problem(f"a pooled_shape {pooled} and boxes {list(boxes.shape)}")
    if len(boxes) * pooled[0] * pooled[1] > MOST_BINS:
        raise node.unsupported(
            f"{len(boxes)} boxes of {pooled[0]} x {pooled[1]} parts; up to {MOST_BINS} parts are converted"
        )
    rows = [_box(ctx, node, x, box, pooled) for box in boxes.astype(np.float32)]
    joined = ctx.emit(ops.Concatenation(axis=0), rows) if len(rows) > 1 else rows[0]
    ctx.bind(node, ctx.reshape(ctx.transpose(joined, (0, 2, 1)), (len(boxes), x.shape[1], *pooled)))


def _box(ctx: Context, node: SourceNode, x: Tensor, box: Array, pooled: list[int]) -> Tensor:
    """The parts of one box as [1, parts, channels]."""
    scaled = box[1:].astype(np.float64) * node.number("spatial_scale", 1.0)
    if not np.isfinite(scaled).all() or np.abs(scaled).max() > FARTHEST or box[0] not in range(x.shape[0]):
        raise node.problem(
            f"a box {box.tolist()} for {x.shape[0]} picture(s); corners are numbers up to {FARTHEST} once scaled"
        )
    batch = int(box[0])
    corners = np.floor(scaled.astype(np.float32) + np.float32(0.5)).astype(int)
    rows = _parts(corners[1], corners[3], pooled[0], x.shape[2])
    columns = _parts(corners[0], corners[2], pooled[1], x.shape[3])
    found = []
    for top, bottom in rows:
        for left, right in columns:
            if bottom <= top or right <= left:
                found.append(ctx.constant(np.zeros((1, x.shape[1]), np.float32)))
                continue
            begin = np.array([batch, 0, top, left], np.int32)
            size = np.array([1, x.shape[1], bottom - top, right - left], np.int32)
            part = ctx.emit(ops.Slice(), [x, begin, size], aside=True)
            found.append(ctx.emit(ops.ReduceMax(keep_dims=False), [part, np.array([2, 3], np.int32)], aside=True))
    stacked = ctx.emit(ops.Concatenation(axis=0), found, aside=True) if len(found) > 1 else found[0]
    return ctx.reshape(stacked, (1, len(found), x.shape[1]))


def _parts(first: int, last: int, count: int, extent: int) -> list[tuple[int, int]]:
    """The ranges of the parts of a side from ``first`` to ``last``, both within, as far as they are in the picture."""
    size = np.float32(max(last - first + 1, 1)) / np.float32(count)
    return [
        (
            int(np.clip(np.floor(np.float32(i) * size) + first, 0, extent)),
            int(np.clip(np.ceil(np.float32(i + 1) * size) + first, 0, extent)),
        )
        for i in range(count)
    ]
