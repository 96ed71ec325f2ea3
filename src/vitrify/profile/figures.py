"""Times of single runs as the figures that are shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vitrify.results.profiling import TimeRow


def time_row(seconds: Sequence[float] | np.ndarray) -> TimeRow:
    """Sum up the times of single runs."""
    ms = np.asarray(seconds, np.float64) * 1e3
    if not ms.size:
        return TimeRow()
    p10, p50, p90, p99 = (float(value) for value in np.percentile(ms, (10, 50, 90, 99)))
    return TimeRow(runs=int(ms.size), quiet_ms=float(ms[quiet(ms)].mean()), median_ms=p50, mean_ms=float(ms.mean()),
                   min_ms=float(ms.min()), p10_ms=p10, p90_ms=p90, p99_ms=p99, max_ms=float(ms.max()),
                   deviation_ms=float(ms.std()))


def quiet(totals: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the numbers of the quietest quarter of runs, three at least: what else a machine does only adds time."""
    values = np.asarray(totals)
    return np.sort(np.argsort(values, kind="stable")[:max(values.size // 4, min(values.size, 3))])


def quiet_ms(seconds: Sequence[float]) -> float:
    """Return the mean of the quietest quarter of runs."""
    values = np.asarray(seconds)
    return float(values[quiet(values)].mean()) * 1e3 if values.size else 0.0
