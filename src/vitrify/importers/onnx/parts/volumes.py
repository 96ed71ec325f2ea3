"""Three spatial dimensions as two: the taps along the depth become channels, or pictures of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.ir import Tensor


def depth_taps(ctx: Context, x: Tensor, starts: Sequence[int], count: int, stride: int = 1) -> list[Tensor]:
    """Of NDHWC: for each start, the ``count`` slices from there on along the depth, as pictures [N * count, H, W, C].

    Slices outside of ``x`` are zero.
    """
    n, depth, h, w, c = x.shape
    rows = ctx.reshape(x, (n, depth, h * w * c))
    before = max(-min(starts), 0)
    after = max(max(starts) + (count - 1) * stride + 1 - depth, 0)
    if before or after:
        rows = ctx.emit(ops.Pad(), [rows, np.array([[0, 0], [before, after], [0, 0]], np.int32)], aside=True)
    pictures = []
    for start in starts:
        first = start + before
        tap = _run(ctx, rows, first, count, stride)
        pictures.append(ctx.reshape(tap, (n * count, h, w, c)))
    return pictures


def _run(ctx: Context, rows: Tensor, first: int, count: int, stride: int) -> Tensor:
    n, depth, width = rows.shape
    if first == 0 and count == depth and stride == 1:
        return rows
    if stride == 1:
        begin, size = np.array([0, first, 0], np.int32), np.array([n, count, width], np.int32)
        return ctx.emit(ops.Slice(), [rows, begin, size], aside=True)
    last = first + (count - 1) * stride + 1
    table = [np.array(v, np.int32) for v in ([0, first, 0], [n, last, width], [1, stride, 1])]
    return ctx.emit(ops.StridedSlice(), [rows, *table], aside=True)


def joined(ctx: Context, pictures: Sequence[Tensor]) -> Tensor:
    """Pictures side by side in their channels."""
    return pictures[0] if len(pictures) == 1 else ctx.emit(ops.Concatenation(axis=3), list(pictures), aside=True)


def from_pictures(ctx: Context, x: Tensor, batch: int) -> Tensor:
    """Pictures [N * D, H, W, C] as NCDHW."""
    total, h, w, c = x.shape
    return ctx.channel_first(ctx.reshape(x, (batch, total // batch, h, w, c)))
