"""From what was observed of a tensor to the range that its scale covers."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir import Tensor
from vitrify.quant.recipe import Override, Recipe
from vitrify.quant.scales import LEVELS
from vitrify.quant.statistics import Histogram, Range, TensorStatistics

Array = np.ndarray[Any, np.dtype[Any]]

SHRINKS = np.linspace(0.2, 1.0, 33)
"""The shares of each side's extent that the search for the least squared error tries."""


def constant_range(tensor: Tensor) -> Range:
    """The range of a constant's values; infinities count as the largest finite float."""
    assert tensor.data is not None
    if not tensor.data.size:
        return Range(0.0, 0.0)
    limit = float(np.finfo(np.float32).max)
    return Range(max(float(tensor.data.min()), -limit), min(float(tensor.data.max()), limit))


def range_of(seen: TensorStatistics, recipe: Recipe, override: Override) -> Range:
    """Return the range that the recipe's calibrator takes for a tensor.

    Zero and one histogram bin at most lie outside of what was seen; the result never does.
    """
    calibrator = override.calibrator or recipe.calibrator
    if calibrator == "minmax" or seen.histogram is None:
        return seen.range
    if calibrator == "percentile":
        found = seen.histogram.percentile(override.percentile or recipe.percentile)
    else:
        found = least_error(seen.histogram, seen.range)
    return found.clip(seen.range.low, seen.range.high)


def least_error(histogram: Histogram, seen: Range) -> Range:
    """Return the range within ``seen`` whose 256 levels give the least mean squared error over the histogram.

    Values inside lose step**2 / 12 on average, those outside their distance squared. Both ends are searched apart.
    """
    filled = histogram.counts > 0
    values, counts = histogram.centers[filled], histogram.counts[filled].astype(np.float64)
    if not values.size:
        return seen
    full = seen.with_zero()
    lows = full.low * SHRINKS if full.low < 0 else np.zeros(1)
    highs = full.high * SHRINKS if full.high > 0 else np.zeros(1)
    below = np.array([np.sum(counts * np.square(np.minimum(values - low, 0.0))) for low in lows])
    above = np.array([np.sum(counts * np.square(np.maximum(values - high, 0.0))) for high in highs])
    steps = (highs[None, :] - lows[:, None]) / (LEVELS - 1)
    errors = below[:, None] + above[None, :] + counts.sum() * np.square(steps) / 12
    low, high = np.unravel_index(int(np.argmin(errors)), errors.shape)
    return Range(float(lows[low]), float(highs[high]))
