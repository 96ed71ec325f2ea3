"""What calibration data is worth: whether there was enough of it, what stands out of it, and what looks wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.core.words import counted
from vitrify.quant.calibration.growth import growth
from vitrify.quant.calibration.observe import Watch
from vitrify.quant.calibration.statistics import ENDS, Statistics, TensorStatistics

MOVING, MOVING_MEAN = 0.5, 0.06
"""Growth in the last half of the samples that is told of: that of one range, or of all on average."""

STRETCH = 1.5
"""Samples are outliers where a range is this many times as wide with them as without them."""

FEW_OUTLIERS = 50
"""One sample in so many may be an outlier, at least one, at most ``ENDS``; what more of them do is no exception."""

LEAST_SIZE = 32
"""The extremes of a tensor with fewer values differ from sample to sample by nature."""

SHOWN = 3


def judge(statistics: Statistics, watched: Sequence[Watch], name: Callable[[int], str]) -> list[Finding]:
    """Say what is worth knowing of the samples; ``name`` is what messages call them."""
    found = [*_constant(statistics, watched), *_outliers(statistics, watched, name)]
    moved = growth(statistics, watched)
    if moved is not None and (moved.share > MOVING or moved.mean > MOVING_MEAN):
        found.append(Finding(
            code="calibration.few", severity=Severity.INFO, where=f"tensor '{moved.tensor}'",
            headline=f"its range grew by {moved.share:.0%} from {moved.since} to "
                     f"{counted(statistics.samples, 'sample')}; all ranges by {moved.mean:.1%} on average",
            why="ranges that still grow have not met the largest values of real use",
            help="calibrate on more samples"))
    return found


def _constant(statistics: Statistics, watched: Sequence[Watch]) -> list[Finding]:
    """Inputs that never change, and samples that are all the same."""
    inputs = [w for w in watched if w.tensor.producer is None]
    if statistics.samples > 1 and statistics.all_equal:
        return [Finding(code="calibration.equal", severity=Severity.WARNING,
                        headline=f"all {statistics.samples} samples are the same",
                        why="the ranges are those of one sample, whatever their number",
                        help="give samples that differ, as in real use")]
    constant = [w for w in inputs if w.tensor.size > 1 and statistics[w.key].low == statistics[w.key].high]
    return [Finding(code="calibration.constant", severity=Severity.WARNING, where=f"input '{w.tensor.name}'",
                    headline=f"every value of input '{w.tensor.name}' is {statistics[w.key].low:g} in "
                             f"{counted(statistics.samples, 'sample')}",
                    why="a range cannot be learned from one value: any other will be cut off",
                    help="give samples as in real use") for w in constant]


def _outliers(statistics: Statistics, watched: Sequence[Watch], name: Callable[[int], str]) -> list[Finding]:
    """The samples without which ranges would be much narrower, one finding for all."""
    allowed = min(ENDS - 1, max(1, statistics.samples // FEW_OUTLIERS))
    if statistics.samples < 2 * ENDS:
        return []
    cases = [(ratio, w, samples) for w in watched if w.calibrator == "minmax" and w.tensor.size >= LEAST_SIZE
             for ratio, samples in [_stretch(statistics[w.key], allowed)] if ratio >= STRETCH]
    if not cases:
        return []
    guilty = sorted({sample for _, _, samples in cases for sample in samples})
    by_sample = sorted(guilty, key=lambda sample: -sum(sample in samples for _, _, samples in cases))[:SHOWN]
    ratio, worst, samples = max(cases, key=lambda case: case[0])
    seen = statistics[worst.key].range
    without = ", ".join(Path(name(sample)).name for sample in samples)
    named = "; ".join(f"{name(sample)} in {counted(sum(sample in s for _, _, s in cases), 'tensor')}"
                      for sample in by_sample)
    more = f" and {len(guilty) - SHOWN} more" if len(guilty) > SHOWN else ""
    return [Finding(
        code="calibration.outlier", severity=Severity.INFO, where=f"{named}{more}",
        headline=f"the ranges of {counted(len(cases), 'tensor')} are stretched by {counted(len(guilty), 'sample')} of "
                 f"{statistics.samples}, that of '{worst.key}' {ratio:.1f} times",
        why=f"'{worst.key}' has {seen.low:.4g}..{seen.high:.4g}; without {without}, {256 / ratio:.0f} of its 256 "
            "levels would be in use",
        help="leave such samples out when they are not like real use, or cut the tails: --calibrator percentile")]


def _stretch(seen: TensorStatistics, allowed: int) -> tuple[float, tuple[int, ...]]:
    """How many times wider the range is with a few samples than without, and which they are."""
    best: tuple[float, tuple[int, ...]] = 1.0, ()
    whole = seen.range.with_zero()
    for left_out in range(1, allowed + 1):
        for high in (True, False):
            ends = seen.highest if high else seen.lowest
            if len(ends) <= left_out:
                continue
            samples = {sample for _, sample in ends[:left_out]}
            top, bottom = _without(seen.highest, samples), _without(seen.lowest, samples)
            width = max(top, 0.0) - min(bottom, 0.0)
            ratio = whole.width / width if width > 0 else 1.0
            if ratio > best[0] * 1.1:
                best = ratio, tuple(sorted(samples))
    return best


def _without(ends: Sequence[tuple[float, int]], samples: set[int]) -> float:
    return next((value for value, sample in ends if sample not in samples), np.nan_to_num(ends[-1][0]))
