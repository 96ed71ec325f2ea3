"""Resize of a constant, such as a position table that is fitted to the input's size."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.registry import folds
from vitrify.importers.onnx.parts.interpolation import extents
from vitrify.importers.onnx.parts.resampling import outside_mask, resampled_axes
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import Array, SourceNode


@folds("Resize", "Upsample")
def _resize(node: SourceNode, inputs: list[Any]) -> Array:
    x: Array = inputs[0]
    limit(node, extents(node, x.shape, inputs)[0])
    axes = resampled_axes(node, x.shape, inputs)
    result = x.astype(np.float64) if x.dtype.kind == "f" else x
    for axis in axes:
        if axis.index is not None:
            result = np.take(result, axis.index, axis.axis)
        elif axis.weights is not None:
            result = np.moveaxis(np.tensordot(axis.weights, result, (1, axis.axis)), 0, axis.axis)
    outside = outside_mask(axes, x.ndim)
    if outside is not None:
        result = np.where(outside, node.number("extrapolation_value"), result)
    return result.astype(x.dtype)
