"""How far two arrays of real numbers are apart. Sums that grow sample by sample; no array is kept.

``sqnr_db`` is 10 log10(sum ref^2 / sum (ref - out)^2): infinite for equal values; JSON has no infinity, so rows say
None and ``equal``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Sums:
    """What is kept of all pairs seen so far. Values that are not finite are counted and left out of the sums.

    ``reference_max`` is the largest magnitude, ``reference_min`` the smallest value.
    """

    count: int = 0
    reference_squares: float = 0.0
    candidate_squares: float = 0.0
    products: float = 0.0
    error_squares: float = 0.0
    largest_error: float = 0.0
    reference_max: float = 0.0
    reference_min: float = math.inf
    max_lsb: float | None = None
    not_finite: int = 0
    not_finite_in_both: int = 0
    candidate_not_finite: int = 0

    def add(self, reference: Array, candidate: Array, step: Array | float | None = None) -> None:
        """Take in one pair of equal shape; ``step`` is the size of one integer step, per element or for all."""
        ref = np.ascontiguousarray(reference, np.float32).reshape(-1)
        out = np.ascontiguousarray(candidate, np.float32).reshape(-1)
        if not ref.size:
            return
        with np.errstate(invalid="ignore", over="ignore"):      # infinities are dealt with below
            error = ref - out
        squares = float(np.vdot(error, error))
        if not math.isfinite(squares):
            ref, out, error, step = self._finite(ref, out, step)
            squares = float(np.vdot(error, error)) if ref.size else 0.0
        if not ref.size:
            return
        self.count += ref.size
        self.error_squares += squares
        self.reference_squares += float(np.vdot(ref, ref))
        self.candidate_squares += float(np.vdot(out, out))
        self.products += float(np.vdot(ref, out))
        self.largest_error = max(self.largest_error, _largest(error))
        low, high = float(ref.min()), float(ref.max())
        self.reference_max = max(self.reference_max, high, -low)
        self.reference_min = min(self.reference_min, low)
        self._add_steps(error, step)

    def _finite(self, ref: Array, out: Array, step: Array | float | None) -> tuple[Array, Array, Array,
                                                                                   Array | float | None]:
        good_ref, good_out = np.isfinite(ref), np.isfinite(out)
        good = good_ref & good_out
        same = ~good_ref & ~good_out & ((ref == out) | (np.isnan(ref) & np.isnan(out)))
        self.not_finite += int(np.count_nonzero(~good))
        self.not_finite_in_both += int(np.count_nonzero(same))
        self.candidate_not_finite += int(np.count_nonzero(~good_out & good_ref))
        kept = step.reshape(-1)[good] if isinstance(step, np.ndarray) and step.size == ref.size else step
        ref, out = ref[good].astype(np.float64), out[good].astype(np.float64)      # squares may pass float32
        return ref, out, ref - out, kept

    def _add_steps(self, error: Array, step: Array | float | None) -> None:
        if step is None:
            return
        steps = np.asarray(step, np.float32).reshape(-1)
        known = steps > 0
        if not known.any():
            return
        lsb = np.abs(error) / np.where(known, steps, np.float32(np.inf))
        self.max_lsb = max(self.max_lsb or 0.0, float(lsb.max()))

    @property
    def equal(self) -> bool:
        """True when every value was the same, bit for bit or both not a number."""
        return self.error_squares == 0.0 and self.not_finite == self.not_finite_in_both

    @property
    def sqnr_db(self) -> float:
        """Signal to error; infinite when equal, minus infinite when there is no signal but an error."""
        return _decibel(self.reference_squares, self.error_squares)

    @property
    def cosine(self) -> float:
        """Cosine of the angle between both; 1 when both are zero, 0 when one is."""
        return _cosine(self.products, self.reference_squares, self.candidate_squares)

    @property
    def relative_error(self) -> float:
        """The largest error as a share of the reference's largest value."""
        if self.largest_error == 0.0:
            return 0.0
        return self.largest_error / self.reference_max if self.reference_max else math.inf


@dataclass
class ChannelSums:
    """The same sums for each index of one axis, float64[channels] each, and the ranges of both sides."""

    axis: int
    sums: dict[str, Array] = field(default_factory=dict)
    ranges: dict[str, Array] = field(default_factory=dict)

    def add(self, reference: Array, candidate: Array) -> None:
        """Take in one pair of equal shape."""
        ref, out = self._rows(reference), self._rows(candidate)
        bad = ~(np.isfinite(ref) & np.isfinite(out))
        if bad.any():
            ref, out = np.where(bad, 0.0, ref), np.where(bad, 0.0, out)
        error = ref - out
        fresh = {"reference": (ref * ref).sum(1), "candidate": (out * out).sum(1), "products": (ref * out).sum(1),
                 "error": (error * error).sum(1), "count": np.full(len(ref), ref.shape[1], np.float64)}
        self.sums = {k: self.sums[k] + v for k, v in fresh.items()} if self.sums else fresh
        lows = {"reference_low": ref.min(1), "candidate_low": out.min(1)}
        highs = {"reference_high": ref.max(1), "candidate_high": out.max(1), "largest_error": np.abs(error).max(1)}
        if self.ranges:
            lows = {k: np.minimum(self.ranges[k], v) for k, v in lows.items()}
            highs = {k: np.maximum(self.ranges[k], v) for k, v in highs.items()}
        self.ranges = lows | highs

    def _rows(self, array: Array) -> Array:
        moved = np.moveaxis(np.asarray(array, np.float64), self.axis, 0)
        return moved.reshape(len(moved), -1)

    def sqnr_db(self, channels: Array) -> float:
        """Signal to error over the given channels together."""
        return _decibel(float(self.sums["reference"][channels].sum()), float(self.sums["error"][channels].sum()))

    def cosine(self, channels: Array) -> float:
        """Cosine over the given channels together."""
        products, reference, candidate = (float(self.sums[k][channels].sum())
                                          for k in ("products", "reference", "candidate"))
        return _cosine(products, reference, candidate)


def sqnr_db(reference: Array, candidate: Array) -> float:
    """Signal to error of one pair of arrays; infinite when equal."""
    return _of(reference, candidate).sqnr_db


def cosine(reference: Array, candidate: Array) -> float:
    """Cosine of the angle between two arrays."""
    return _of(reference, candidate).cosine


def largest_error(reference: Array, candidate: Array) -> float:
    """The largest absolute difference."""
    return _of(reference, candidate).largest_error


def max_lsb(reference: Array, candidate: Array, step: Array | float) -> float:
    """The largest difference counted in integer steps of size ``step``."""
    sums = Sums()
    sums.add(reference, candidate, step)
    return sums.max_lsb or 0.0


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold: None for infinities."""
    return value if value is not None and math.isfinite(value) else None


def _of(reference: Array, candidate: Array) -> Sums:
    sums = Sums()
    sums.add(reference, candidate)
    return sums


def _largest(values: Array) -> float:
    return max(float(values.max()), -float(values.min()))


def _decibel(signal: float, error: float) -> float:
    if error == 0.0:
        return math.inf
    return 10.0 * math.log10(signal / error) if signal > 0.0 else -math.inf


def _cosine(products: float, reference: float, candidate: float) -> float:
    if reference == 0.0 or candidate == 0.0:
        return 1.0 if reference == candidate else 0.0
    return max(-1.0, min(1.0, products / math.sqrt(reference * candidate)))
