"""Bilinear resizing with 10 bits of place.

Source: TFLite kernels/internal/reference/resize_bilinear.h.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops.reference.integer.registry import Call, integer_kernel
from vitrify.ops.resize import ResizeBilinear

_ONE = 1 << 10


@integer_kernel(ResizeBilinear)
def resize_bilinear(call: Call) -> list[Array]:
    """Weigh four pixels; the sum is rounded to nearest, halves away from zero."""
    op = call.node.op
    assert isinstance(op, ResizeBilinear)
    if call.dtype == np.uint8:
        return list(op.evaluate(call.arrays))
    x, size = call.array(0).astype(np.int64), [int(v) for v in call.array(1)]
    (top, bottom, down), (left, right, across) = (_neighbours(op, x.shape[1 + i], size[i]) for i in range(2))
    down, across = down[:, None, None], across[:, None]
    upper, lower = x[:, top], x[:, bottom]
    total = (upper[:, :, left] * (_ONE - down) * (_ONE - across) + lower[:, :, left] * down * (_ONE - across)
             + upper[:, :, right] * (_ONE - down) * across + lower[:, :, right] * down * across)
    rounded = np.sign(total) * ((np.abs(total) + (1 << 19)) >> 20)
    return [rounded.astype(call.dtype)]


def _neighbours(op: ResizeBilinear, before: int, after: int) -> tuple[Array, Array, Array]:
    """Return for each output pixel the two input pixels and how far it lies beyond the first, in 1/1024."""
    if op.align_corners and after > 1:
        scale = (_ONE * (before - 1) + (after - 1) // 2) // (after - 1)
    else:
        scale = (_ONE * before + after // 2) // after
    place = np.arange(after, dtype=np.int64) * scale
    if op.half_pixel_centers:
        place = place + scale // 2 - _ONE // 2
    low = np.maximum(_over(place), 0)
    return low, np.minimum(_over(place + _ONE - 1), before - 1), place - _ONE * low


def _over(x: Array) -> Array:
    """Divide by 1024 towards zero."""
    return np.asarray(np.sign(x) * (np.abs(x) // _ONE))
