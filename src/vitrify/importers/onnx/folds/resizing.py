"""Resize of a constant, such as a position table that is fitted to the input's size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.cost import elements
from vitrify.importers.onnx.folds.registry import folds
from vitrify.importers.onnx.parts.interpolation import extents
from vitrify.importers.onnx.parts.resampling import outside_mask, resampled_axes
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import Array, SourceNode


def _cost(node: SourceNode, inputs: Sequence[Any]) -> int:
    """A row of weights for each element, axis by axis."""
    shape, x = extents(node, inputs[0].shape, inputs)[0], inputs[0]
    pairs = list(zip(x.shape, shape, strict=True))
    weights: int = sum(old for old, new in pairs if old != new)
    return elements(node, inputs) + math.prod(max(pair) for pair in pairs) * (1 + weights // 8)


@folds("Resize", "Upsample", cost=_cost)
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
