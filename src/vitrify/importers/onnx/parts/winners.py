"""Where the largest value of each window lies: the second output of MaxPool."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import Window
from vitrify.importers.onnx.parts.formulas import number
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType, Tensor

MOST_TAPS = 256
"""Each tap is a slice of its own."""


def winners(ctx: Context, node: SourceNode, x: Tensor, window: Window) -> Tensor:
    """For each window over NC..., the place of its first largest value in all of ``x``, as one number.

    Source: ONNX operator reference, MaxPool: ``storage_order`` 1 counts the first spatial axis fastest.
    """
    if prod(window.kernel) > MOST_TAPS:
        raise node.unsupported(
            f"the places of the largest of {prod(window.kernel)} elements; windows of up to {MOST_TAPS} are converted"
        )
    if min(*window.before, *window.after) < 0:
        raise node.unsupported("places (second output) under windows of auto_pad that leave elements out at the ends")
    rank = len(x.shape) - 2
    n, c = x.shape[:2]
    size = (1, *x.shape[2:]) if rank == 1 else x.shape[2:]
    counts = window.outputs(size)
    padded = _padded(ctx, ctx.reshape(x, (n * c, *size)), window)
    taps = list(product(*(range(k) for k in window.kernel)))
    pieces = [_tap(ctx, padded, tap, window, counts) for tap in taps]
    stacked = ctx.emit(ops.Concatenation(axis=2), pieces, aside=True) if len(pieces) > 1 else pieces[0]
    best = ctx.emit(ops.ArgMax(output_type=DType.INT32.value), [stacked, number(2, DType.INT32)], aside=True)
    pitch = _pitches(size, column_major=bool(node.integer("storage_order")))
    dilations = np.array(window.dilations)
    offsets = np.array([int((np.array(tap) * dilations * pitch).sum()) for tap in taps], np.int32)
    within = ctx.emit(ops.Gather(axis=0), [offsets, best], aside=True)
    corners = sum(
        ((np.arange(count) * window.strides[i] - window.before[i]) * pitch[i]).reshape(
            [-1 if j == i else 1 for j in range(len(size))]
        )
        for i, count in enumerate(counts)
    )
    first = np.asarray(corners, np.int32).reshape(1, -1)
    planes = (np.arange(n * c, dtype=np.int64)[:, None] * prod(size)).astype(np.int32)
    placed = ctx.emit(ops.Add(), [within, first], aside=True)
    return ctx.reshape(ctx.emit(ops.Add(), [placed, planes]), (n, c, *counts[-rank:]))


def _pitches(size: tuple[int, ...], column_major: bool) -> Array:
    """The distance in elements between neighbours along each axis."""
    if column_major:
        return np.array([prod(size[:i]) for i in range(len(size))], np.int64)
    return np.array([prod(size[i + 1 :]) for i in range(len(size))], np.int64)


def _padded(ctx: Context, x: Tensor, window: Window) -> Tensor:
    if not window.is_padded:
        return x
    kind = x.dtype.numpy
    lowest = np.finfo(np.float32).min if x.dtype.is_float else np.iinfo(kind).min
    table = np.array([(0, 0), *zip(window.before, window.after, strict=True)], np.int32)
    return ctx.emit(ops.PadV2(), [x, table, np.array(lowest, kind)], aside=True)


def _tap(ctx: Context, x: Tensor, tap: tuple[int, ...], window: Window, counts: tuple[int, ...]) -> Tensor:
    """What one position of the window sees everywhere: [planes, places, 1]."""
    begin = [t * d for t, d in zip(tap, window.dilations, strict=True)]
    end = [b + (count - 1) * s + 1 for b, count, s in zip(begin, counts, window.strides, strict=True)]
    tables = [np.array(v, np.int32) for v in ([0, *begin], [x.shape[0], *end], [1, *window.strides])]
    seen = ctx.emit(ops.StridedSlice(), [x, *tables], aside=True)
    return ctx.reshape(seen, (x.shape[0], prod(counts), 1))
