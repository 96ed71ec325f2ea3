"""Dilated convolutions: the compiler writes a dilation beyond 2 out as a kernel that is mostly zeros.

Cycles by Vela 5.2 for an i.MX93, 3x3 on [56, 56, 32]: dilation 1 takes 0.13 million, 2 takes 0.17, 4 takes 0.32, 3 and
6 take 0.62, 12 takes 2.1, 16 takes 3.7 and 24 takes 7.9.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.graphs import is_dense
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_EASY = 2
"""The dilation that the NPU has; of an even one, half is written out."""
_ZEROS = 8
"""How many times the taps the kernel has when it is written out, for the moves to pay."""


@fix("dilated-taps", ops.Conv2D, cheaper=True,
     says="leaves out the taps of a dilated kernel that lie outside of the image at every place",
     wins="a dilation as large as the image leaves one tap of nine")
def taps(place: Place) -> Tensor | None:
    """As many are left out above as below, so that SAME stays SAME."""
    op, x, weights = place.node.op, place.x, place.node.input(1)
    assert isinstance(op, ops.Conv2D)
    if not _is_plain(place) or op.padding is not ops.Padding.SAME or weights.data is None or not is_dense(weights):
        return None
    steps = op.dilation_h_factor, op.dilation_w_factor
    cuts = [_outside(x.shape[i + 1], weights.shape[i + 1], steps[i]) for i in (0, 1)]
    if not any(cuts):
        return None
    data = weights.data[:, cuts[0]:weights.shape[1] - cuts[0], cuts[1]:weights.shape[2] - cuts[1]]
    kept = place.constant(np.ascontiguousarray(data), weights.quantization, "weights", weights.dtype)
    high, wide = (step if extent > 1 else 1 for step, extent in zip(steps, data.shape[1:3], strict=True))
    return place.add(replace(op, dilation_h_factor=high, dilation_w_factor=wide), [x, kept, *place.node.inputs[2:]],
                     place.output)


def _outside(extent: int, count: int, step: int) -> int:
    """How many taps of ``count`` see only padding, on each side."""
    return next((i for i in range(count // 2) if count % 2 == 0 or (count // 2 - i) * step < extent), count // 2)


@fix("dilated-phases", ops.Conv2D, cheaper=True,
     says="brings the pixels that a dilated kernel sees side by side, and the results back in order",
     wins="a plain kernel on an image that is a little larger, instead of a large kernel of zeros")
def phases(place: Place) -> Tensor | None:
    """The rows of one remainder follow each other, with those of the next behind; what crosses over is cut off."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.Conv2D)
    steps = op.dilation_h_factor, op.dilation_w_factor
    taps = place.node.input(1).shape[1:3]
    whole = prod((count - 1) * (step if step % _EASY else step // _EASY) + 1
                 for count, step in zip(taps, steps, strict=True))
    if not _is_plain(place) or max(steps) <= _EASY or whole < _ZEROS * prod(taps):
        return None
    found = [_phase(*sizes, op.padding is ops.Padding.SAME) for sizes in zip(x.shape[1:3], taps, steps, strict=True)]
    (above, rows), (left, columns) = found
    high, wide = rows * steps[0], columns * steps[1]
    x = place.pad(x, [(0, 0), (above, high - above - x.shape[1]), (left, wide - left - x.shape[2]), (0, 0)])
    depth, filters = x.shape[3], place.output.shape[3]
    x = _turned(place, x, (rows, steps[0], wide * depth))
    x = place.reshape(_turned(place, x, (high * columns, steps[1], depth)), (1, steps[1] * high, columns, depth))
    plain = replace(op, dilation_h_factor=1, dilation_w_factor=1, padding=ops.Padding.SAME)
    y = place.reshape(place.add(plain, [x, *place.node.inputs[1:]], place.output),
                      (steps[1] * steps[0], rows, columns * filters))
    rows, columns = rows - taps[0] + 1, columns - taps[1] + 1
    y = place.cut(y, 1, (taps[0] - 1) // 2, rows)
    y = place.cut(place.reshape(y, (y.shape[0] * rows, -1 + columns + taps[1], filters)), 1, (taps[1] - 1) // 2,
                  columns)
    y = _turned(place, y, (steps[1], steps[0] * rows * columns, filters))
    y = _turned(place, y, (steps[0], rows, columns * steps[1] * filters))
    y = place.reshape(y, (1, rows * steps[0], columns * steps[1], filters))
    return place.slice(y, (0, 0, 0, 0), place.output.shape)


def _turned(place: Place, x: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """The second of three axes first: of all orders the cheapest to write."""
    x = place.reshape(x, shape)
    return place.transpose(x, (1, 0, 2)) if min(shape[:2]) > 1 else x


def _phase(extent: int, count: int, step: int, same: bool) -> tuple[int, int]:
    """What is padded before, and the rows of each remainder."""
    padding = (count - 1) * step if same else 0
    return padding // 2, -(-(extent + padding) // step)


def _is_plain(place: Place) -> bool:
    op, x = place.node.op, place.x
    assert isinstance(op, ops.Conv2D)
    return place.is_static and len(x.shape) == 4 and x.shape[0] == 1 and x.data is None and op.stride_h == 1 \
        and op.stride_w == 1 and x.quantization is not None and x.quantization.zero_point.size == 1
