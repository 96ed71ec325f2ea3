"""How far ranges grew while samples came in: whether there were enough of them.

After 4, 6, 8, 12, 16, 24 and so on samples the ranges are put down; what they grew by in the last half of the samples
tells how much more is to be expected of as many again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vitrify.quant.calibration.observe import Watch
from vitrify.quant.calibration.ranges import range_of
from vitrify.quant.calibration.statistics import Statistics

Array = np.ndarray[Any, np.dtype[Any]]

FIRST = 4
"""Samples after which ranges are first put down."""

FEWEST_TO_STOP = 16
STABLE, STABLE_MEAN = 0.1, 0.01
"""With as few samples, and up to this growth of any range and of all on average in their last half, calibration ends.

The largest values of some tensor go on growing for as long as there are samples: on photos, ranges grow by 20 to 47 %
from 12 to 28 of them somewhere, and by 2 to 5 % on average.
"""


class Growth(NamedTuple):
    """The tensor whose range grew most between ``since`` samples and all, and by what share of it; the mean share."""

    tensor: str
    share: float
    mean: float
    since: int


def is_step(samples: int) -> bool:
    """True for 4, 6, 8, 12, 16, 24 and so on."""
    third = samples // 3 if samples % 3 == 0 else samples
    return samples >= FIRST and third & (third - 1) == 0


def remember(statistics: Statistics, watched: Sequence[Watch]) -> None:
    """Put down the ranges, where it is time."""
    if is_step(statistics.samples) and statistics.samples not in statistics.history:
        statistics.history[statistics.samples] = _ranges(statistics, watched)


def growth(statistics: Statistics, watched: Sequence[Watch]) -> Growth | None:
    """What the ranges grew by in the last half of the samples; None while there are too few to say."""
    before = [step for step in statistics.history if step * 2 <= statistics.samples]
    if not before or not watched:
        return None
    since = max(before)
    now, then = _ranges(statistics, watched), statistics.history[since]
    moved = np.abs(now - then).sum(axis=1)
    widths = np.maximum(np.maximum(now[:, 1], 0) - np.minimum(now[:, 0], 0), np.finfo(np.float32).tiny)
    shares = moved / widths
    worst = int(np.argmax(shares))
    return Growth(watched[worst].key, float(shares[worst]), float(shares.mean()), since)


def is_stable(statistics: Statistics, watched: Sequence[Watch]) -> bool:
    """True when more samples are not expected to say anything new."""
    if statistics.samples < FEWEST_TO_STOP or not is_step(statistics.samples):
        return False
    found = growth(statistics, watched)
    return found is not None and found.share <= STABLE and found.mean <= STABLE_MEAN


def _ranges(statistics: Statistics, watched: Sequence[Watch]) -> Array:
    found = [range_of(statistics[w.key], w.calibrator, w.percentile) for w in watched]
    return np.array([(one.low, one.high) for one in found], np.float64).reshape(-1, 2)
