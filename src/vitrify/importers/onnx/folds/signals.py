"""Windows and mel filters. Source: ONNX operator reference, HannWindow-17 to MelWeightMatrix-17."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.importers.onnx.folds.registry import folds
from vitrify.importers.onnx.reading.tensors import DTYPES
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import Array, SourceNode

# The weights of cos(0), -cos(x), cos(2x) over one period.
_WINDOWS: dict[str, Sequence[float]] = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 1 - 25 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}
LARGEST = 2**22
"""Elements of a window or of all filters."""
_MEL = 2595.0
_CORNER_HERTZ = 700.0


def _small(node: SourceNode, shape: Sequence[int]) -> tuple[int, ...]:
    if math.prod(limit(node, shape)) > LARGEST:
        raise node.unsupported(
            f"computed at import, it makes a constant of {math.prod(shape):,} elements; at most {LARGEST:,} are made",
            "compute it once and save it in the model, or make it an input",
        )
    return tuple(shape)


def _typed(node: SourceNode, values: Array) -> Array:
    kind = node.integer("output_datatype", 1)
    if kind not in DTYPES:
        raise node.unsupported(f"the element type number {kind} is not made")
    return values.astype(DTYPES[kind])


@folds(*_WINDOWS)
def window(node: SourceNode, inputs: list[Any]) -> Array:
    """A window of the given size; periodic ones leave out the last value of a symmetric one."""
    (size,) = _small(node, [int(inputs[0].reshape(-1)[0])])
    period = size if node.integer("periodic", 1) else size - 1
    angle = 2 * np.pi * np.arange(size) / max(period, 1)
    first, second, third = _WINDOWS[node.kind]
    return _typed(node, first - second * np.cos(angle) + third * np.cos(2 * angle))


@folds("MelWeightMatrix")
def mel_weights(node: SourceNode, inputs: list[Any]) -> Array:
    """Triangles over the bins of a spectrum, evenly apart on the mel scale."""
    bands, length, rate = (int(v.reshape(-1)[0]) for v in inputs[:3])
    low, high = (_MEL * np.log10(1 + float(v.reshape(-1)[0]) / _CORNER_HERTZ) for v in inputs[3:5])
    bins, _ = _small(node, [length // 2 + 1, bands])
    mel = low + np.arange(bands + 2) * (high - low) / (bands + 2)
    hertz = _CORNER_HERTZ * (10 ** (mel / _MEL) - 1)
    edges = ((length + 1) * hertz // rate).astype(np.int64)
    if edges.size and not 0 <= edges.min() <= edges.max() < bins:
        raise node.problem(f"its edges reach bin {edges.max()} of {bins}")
    found = np.zeros((bins, bands))
    for band, (left, center, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        rise, fall = np.arange(left, center + 1), np.arange(center, right)
        found[rise, band] = (rise - left) / (center - left) if center > left else 1.0
        found[fall, band] = (right - fall) / max(right - center, 1)
    return _typed(node, found)
