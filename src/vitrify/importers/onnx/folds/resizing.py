"""Resize of a constant, such as a position table that is fitted to the input's size."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.registry import folds
from vitrify.importers.onnx.interpolation import extents, nearest, places
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import Array, SourceNode


@folds("Resize", "Upsample")
def _resize(node: SourceNode, inputs: list[Any]) -> Array:
    x: Array = inputs[0]
    sizes, scales = extents(node, x.shape, inputs)
    limit(node, sizes)
    unusual = node.integer("antialias") or node.integer("exclude_outside")
    if unusual or node.string("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise node.unsupported("antialias, exclude_outside and keep_aspect_ratio_policy on constants are not converted")
    result = x.astype(np.float64) if x.dtype.kind == "f" else x
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        if size != x.shape[axis] or scale != 1:
            result = _along(node, result, axis, places(node, x.shape[axis], size, scale), scale)
    return result.astype(x.dtype)


def _along(node: SourceNode, x: Array, axis: int, at: Array, scale: float) -> Array:
    """Resample one axis: each output place is a weighted sum of the input's values around a coordinate."""
    extent, mode = x.shape[axis], node.string("mode", "nearest")
    if mode == "nearest":
        return np.take(x, nearest(node, at, extent, scale), axis)
    if mode in ("linear", "bilinear"):
        at = np.clip(at, 0, extent - 1)
    elif mode != "cubic":
        raise node.unsupported(f"mode '{mode}' on constants is not converted")
    low = np.floor(at)
    taps = (
        _cubic(at - low, node.number("cubic_coeff_a", -0.75)) if mode == "cubic" else {0: 1 - (at - low), 1: at - low}
    )
    shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    total = np.zeros(())
    for offset, weight in taps.items():
        index = np.clip(low + offset, 0, extent - 1).astype(np.int64)
        total = total + np.take(x, index, axis) * weight.reshape(shape)
    return total


def _cubic(part: Array, a: float) -> dict[int, Array]:
    """Keys' cubic convolution: the weights of the four values around a coordinate."""

    def inner(s: Array) -> Array:
        return np.asarray(((a + 2) * s - (a + 3)) * s * s + 1)

    def outer(s: Array) -> Array:
        return np.asarray(((a * s - 5 * a) * s + 8 * a) * s - 4 * a)

    return {-1: outer(part + 1), 0: inner(part), 1: inner(1 - part), 2: outer(2 - part)}
