"""What measurements correct: a factor for each side of a chip, and for each kind of operator that was measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from vitrify.core.words import counted
from vitrify.pipeline.measuring.store import Measurement, Part, place, read, stamp
from vitrify.targets.base import Target, load

LEAST, MOST = 0.02, 50.0
"""No factor goes beyond these: what is further off was not the same model."""


def load_target(name: str, path: Path | None = None) -> Target:
    """Return a target as the workspace's measurements correct it; as its facts have it where there are none."""
    target = load(name)
    return corrected(target, usable(target, read(path).measurements), (path or place()).name)


def usable(target: Target, measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of a target that were estimated by the facts it has now."""
    mark = stamp(target)
    return [one for one in measurements if one.target == target.name and one.stamp == mark]


def corrected(target: Target, measurements: Sequence[Measurement], file: str = "") -> Target:
    """Return the target with the factors that its measurements give."""
    factors = factors_of(measurements)
    if not factors:
        return target
    told = f"corrected by {counted(len(measurements), 'measurement')}{f' in {file}' if file else ''}"
    return msgspec.structs.replace(target, corrections=factors, corrected_by=told)


def factors_of(measurements: Sequence[Measurement]) -> dict[str, float]:
    """Return measured over estimated, by side, and by side and kind."""
    parts: dict[str, list[Part]] = {}
    for one in measurements:
        for part in (part for part in one.parts if part.ms is not None):
            parts.setdefault(part.side, []).append(part)
            if part.kind:
                parts.setdefault(f"{part.side} {part.kind}", []).append(part)
    sums = {key: (sum(part.ms or 0.0 for part in some), sum(part.estimated_ms for part in some))
            for key, some in parts.items()}
    return {key: min(max(ms / told, LEAST), MOST) for key, (ms, told) in sums.items() if ms > 0 and told > 0}


def after(measurement: Measurement, factors: dict[str, float]) -> float:
    """Return the estimate of a measured run as ``factors`` correct it."""
    return sum(part.estimated_ms * factor(factors, part) for part in measurement.parts)


def factor(factors: dict[str, float], part: Part) -> float:
    """Return the factor of a part: its kind's, or else its side's."""
    return factors.get(f"{part.side} {part.kind}", factors.get(part.side, 1.0))


def error(measurements: Sequence[Measurement], factors: dict[str, float]) -> float | None:
    """Return the median error of the estimates of ``measurements``, relative to what was measured."""
    apart = [abs(after(one, factors) / one.ms - 1) for one in measurements]
    return statistics.median(apart) if apart else None


def error_of_others(measurements: Sequence[Measurement]) -> float | None:
    """Return the median error when each is corrected by the others alone; None with fewer than two."""
    if len(measurements) < 2:
        return None
    apart = [abs(after(one, factors_of([other for other in measurements if other is not one])) / one.ms - 1)
             for one in measurements]
    return statistics.median(apart)
