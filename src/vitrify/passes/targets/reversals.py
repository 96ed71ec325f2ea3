"""REVERSE_V2 as slices that are joined in the other order."""

from __future__ import annotations

import math

import numpy as np

from vitrify import ops
from vitrify.ir import Quantization, Tensor
from vitrify.passes.layout.rules_axes import axis_list
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import MOST_PARTS, Place


@fix("reversals", ops.ReverseV2, mends=("ethos-u.reverse",),
     says="joins slices in the other order; long rows of channels are a product with a mirrored unit matrix",
     wins="nothing is left to the CPU")
def reversals(place: Place) -> Tensor | None:
    """One axis after the other."""
    x, axes = place.x, axis_list(place.node.optional(1), len(place.x.shape))
    if axes is None or not place.is_static:
        return None
    for axis in axes:
        x = _reversed(place, x, axis)
    return x if axes else None


def _reversed(place: Place, x: Tensor, axis: int) -> Tensor:
    shape, extent = x.shape, x.shape[axis]
    if extent == 1:
        return x
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
    if inner == 1 and extent > MOST_PARTS and x.quantization is not None and x.dtype.bits == 8:
        return place.reshape(_mirrored(place, place.reshape(x, (1, 1, outer, extent))), shape)
    flat = place.reshape(x, (1, outer, extent, inner))
    parts = [place.cut(flat, 2, i, 1) for i in reversed(range(place.count(extent)))]
    return place.reshape(place.concat(parts, 2), shape)


def _mirrored(place: Place, x: Tensor) -> Tensor:
    """A 1x1 convolution whose weights are one for the channel at the other end."""
    channels = x.shape[3]
    weights = np.eye(channels, dtype=np.int8)[::-1].reshape(channels, 1, 1, channels)
    assert x.quantization is not None
    scale = np.ones(channels, np.float32)
    inputs = [x, place.constant(np.ascontiguousarray(weights), Quantization.per_axis(scale, 0), "mirror"),
              place.constant(np.zeros(channels, np.int32), Quantization.per_axis(scale * x.quantization.scale[0], 0),
                             "bias")]
    return place.add(ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID), inputs)
