"""From what was observed of a tensor to the range that its scale covers."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Tensor
from vitrify.quant.calibration.statistics import Histogram, Range, TensorStatistics
from vitrify.quant.recipe import Calibrator
from vitrify.quant.scales import LEVELS

Array = np.ndarray[Any, np.dtype[Any]]

POWER = 3
"""Squared error cuts off the rare large values that detections are made of: on YOLOv8n at 320 pixels and 28 pictures
the scores' error was 0.069 with it and 0.055 with the third power."""

SHRINKS = np.linspace(0.2, 1.0, 33)
"""The shares of each side's extent that the search for the least error tries."""


def constant_range(tensor: Tensor) -> Range:
    """The range of a constant's values; infinities count as the largest finite float."""
    assert tensor.data is not None
    if not tensor.data.size:
        return Range(0.0, 0.0)
    limit = float(np.finfo(np.float32).max)
    return Range(max(float(tensor.data.min()), -limit), min(float(tensor.data.max()), limit))


def range_of(seen: TensorStatistics, calibrator: Calibrator, percentile: float) -> Range:
    """Return the range that a calibrator takes for a tensor; it lies within what was seen."""
    if calibrator == "minmax" or seen.histogram is None:
        return seen.range
    found = seen.histogram.percentile(percentile) if calibrator == "percentile" else \
        least_error(seen.histogram, seen.range)
    return found.clip(seen.range.low, seen.range.high)


def least_error(histogram: Histogram, seen: Range) -> Range:
    """Return the range within ``seen`` whose 256 levels give the least error over the histogram.

    Errors count in their ``POWER`` p: evenly spread rounding errors of up to half a step give
    ``(step / 2) ** p / (p + 1)`` on average, values outside their distance. Both ends are searched apart.
    """
    filled = histogram.counts > 0
    values, counts = histogram.centers[filled], histogram.counts[filled].astype(np.float64)
    if not values.size:
        return seen
    full = seen.with_zero()
    lows = full.low * SHRINKS if full.low < 0 else np.zeros(1)
    highs = full.high * SHRINKS if full.high > 0 else np.zeros(1)
    below = np.array([np.sum(counts * np.maximum(low - values, 0.0) ** POWER) for low in lows])
    above = np.array([np.sum(counts * np.maximum(values - high, 0.0) ** POWER) for high in highs])
    steps = (highs[None, :] - lows[:, None]) / (LEVELS - 1)
    errors = below[:, None] + above[None, :] + counts.sum() * (steps / 2) ** POWER / (POWER + 1)
    low, high = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return Range(float(lows[low]), float(highs[high]))
