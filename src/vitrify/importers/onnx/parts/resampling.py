"""Interpolation along one axis as a matrix: each output place is a weighted sum of the input's values.

Source: ONNX operator reference, Resize-19.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitrify.importers.onnx.parts.interpolation import coordinates, extents, nearest, places, resized_axes
from vitrify.importers.onnx.source import Array, SourceNode

MAX_WEIGHTS = 2**24
"""Of one axis: input places times output places."""
_REACH = {"linear": 1, "cubic": 2}


@dataclass(frozen=True)
class Axis:
    """How one axis is resampled: by ``index`` (nearest) or by ``weights`` [size, extent].

    ``inside`` is False for the places that take the extrapolation value.
    """

    axis: int
    size: int
    index: Array | None
    weights: Array | None
    inside: Array


def mode_of(node: SourceNode) -> str:
    """nearest, linear or cubic.

    Raises:
        ModelError: another mode.
    """
    mode = {"bilinear": "linear"}.get(node.string("mode", "nearest"), node.string("mode", "nearest"))
    if mode not in ("nearest", "linear", "cubic"):
        raise node.problem(f"mode '{mode}' is not one of nearest, linear, cubic")
    return mode


def region_of(node: SourceNode, rank: int, roi: Array | None) -> list[tuple[float, float]]:
    """The part of each axis that is resized: all of it, or what tf_crop_and_resize takes.

    Raises:
        ModelError: the region of interest does not fit the axes.
    """
    regions = [(0.0, 1.0)] * rank
    if coordinates(node) != "tf_crop_and_resize":
        return regions
    axes = resized_axes(node, rank)
    if roi is None or roi.size != 2 * len(axes):
        raise node.problem(f"tf_crop_and_resize needs a region of {2 * len(axes)} numbers")
    flat = roi.ravel().tolist()
    for i, axis in enumerate(axes):
        regions[axis] = (float(flat[i]), float(flat[i + len(axes)]))
    return regions


def resampled_axes(node: SourceNode, shape: Sequence[int], inputs: Sequence[Array | None]) -> list[Axis]:
    """The axes that change; ``inputs`` are the node's, constant ones from position 1 on."""
    sizes, scales = extents(node, shape, inputs)
    roi = inputs[1] if len(inputs) > 2 else None
    regions = region_of(node, len(shape), roi)
    found: list[Axis] = []
    mode = mode_of(node)
    if sizes == list(shape) and all(r == (0.0, 1.0) for r in regions):
        return []  # ONNX Runtime copies the input then, whatever the scales are
    for i, (extent, size, scale) in enumerate(zip(shape, sizes, scales, strict=True)):
        same = scale == 1 or node.integer("antialias")  # ONNX Runtime leaves an axis of equal size alone with antialias
        if size == extent and same and regions[i] == (0.0, 1.0):
            continue
        at = places(node, extent, size, scale, regions[i])
        inside = (at >= 0) & (at <= extent - 1) if regions[i] != (0.0, 1.0) else np.ones(size, bool)
        if mode == "nearest":
            found.append(Axis(i, size, nearest(node, at, extent, scale), None, inside))
            continue
        if extent * size > MAX_WEIGHTS:
            raise node.unsupported(f"resizing {extent} to {size} places takes more than {MAX_WEIGHTS:,} weights")
        weights = _weights(node, mode, at, extent, scale)
        weights[~inside] = 0
        found.append(Axis(i, size, None, weights, inside))
    return found


def _weights(node: SourceNode, mode: str, at: Array, extent: int, scale: float) -> Array:
    """How much each input place counts for each coordinate: a kernel around it, wider where antialias shrinks."""
    antialias = bool(node.integer("antialias"))
    narrow = min(scale, 1.0) if antialias else 1.0
    reach = int(np.ceil(_REACH[mode] / narrow)) + 1
    at = at.astype(np.float64)
    taps = np.floor(at)[:, None] + np.arange(-reach, reach + 1)[None]
    distance = np.abs(taps - at[:, None]) * narrow
    weights = _cubic(distance, node.number("cubic_coeff_a", -0.75)) if mode == "cubic" else np.clip(1 - distance, 0, 1)
    if antialias:
        weights /= weights.sum(1, keepdims=True)
    if node.integer("exclude_outside"):
        weights = np.where((taps >= 0) & (taps < extent), weights, 0)
        weights /= weights.sum(1, keepdims=True)
    result = np.zeros((len(at), extent))
    rows = np.broadcast_to(np.arange(len(at))[:, None], taps.shape)
    np.add.at(result, (rows, np.clip(taps, 0, extent - 1).astype(np.int64)), weights)
    return result


def _cubic(distance: Array, a: float) -> Array:
    """Keys' cubic convolution kernel."""
    inner = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    outer = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, inner, np.where(distance < 2, outer, 0.0))


def outside_mask(axes: Sequence[Axis], rank: int) -> Array | None:
    """True for the places that take the extrapolation value, with extents of 1 elsewhere; None when there are none."""
    mask: Array | None = None
    for axis in axes:
        if not axis.inside.all():
            own = ~axis.inside.reshape([-1 if i == axis.axis else 1 for i in range(rank)])
            mask = own if mask is None else mask | own
    return mask
