"""The figures, against plain numpy in float64, and by parts as by whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scale import examples
from vitrify.verify.metrics import ChannelSums, Sums, cosine, finite, largest_error, max_lsb, sqnr_db

RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 5, 7)).astype(np.float32)

FIGURES = {
    "equal": (X, X, math.inf, 1.0, 0.0),
    "both_zero": (np.zeros(3, np.float32), np.zeros(3, np.float32), math.inf, 1.0, 0.0),
    "no_signal": (np.zeros(3, np.float32), np.ones(3, np.float32), -math.inf, 0.0, 1.0),
    "all_lost": (np.ones(4, np.float32), np.zeros(4, np.float32), 0.0, 0.0, 1.0),
    "negated": (np.ones(4, np.float32), -np.ones(4, np.float32), -10 * math.log10(4), -1.0, 2.0),
    "tenth": (np.ones(4, np.float64), np.full(4, 0.9), 20.0, 1.0, 0.1),
    "empty": (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), math.inf, 1.0, 0.0),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name: str) -> None:
    reference, candidate, decibel, angle, error = FIGURES[name]
    assert sqnr_db(reference, candidate) == pytest.approx(decibel, abs=1e-5)
    assert cosine(reference, candidate) == pytest.approx(angle, abs=1e-6)
    assert largest_error(reference, candidate) == pytest.approx(error, abs=1e-6)


def test_json_has_no_infinity() -> None:
    assert [finite(v) for v in (math.inf, -math.inf, None, 3.5)] == [None, None, None, 3.5]


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), noise=st.floats(1e-6, 1.0), parts=st.integers(1, 5))
def test_samples_one_by_one_give_what_numpy_gives_at_once(seed: int, noise: float, parts: int) -> None:
    rng = np.random.default_rng(seed)
    reference = rng.standard_normal((parts, 6, 9)).astype(np.float32)
    candidate = (reference + noise * rng.standard_normal(reference.shape)).astype(np.float32)
    sums, channels = Sums(), ChannelSums(1)
    for a, b in zip(reference, candidate, strict=True):
        sums.add(a[None], b[None])
        channels.add(a[None], b[None])
    a, b = reference.astype(np.float64), candidate.astype(np.float64)
    assert sums.sqnr_db == pytest.approx(10 * math.log10((a**2).sum() / ((a - b) ** 2).sum()), abs=1e-3)
    assert sums.cosine == pytest.approx((a * b).sum() / math.sqrt((a**2).sum() * (b**2).sum()), abs=1e-5)
    assert sums.largest_error == pytest.approx(np.abs(reference - candidate).max(), rel=1e-6)
    assert sums.reference_min == reference.min()
    for channel in range(6):
        p, q = a[:, channel], b[:, channel]
        expected = 10 * math.log10((p**2).sum() / ((p - q) ** 2).sum())
        assert channels.sqnr_db(np.array([channel])) == pytest.approx(expected, abs=1e-6)
    assert channels.sqnr_db(np.arange(6)) == pytest.approx(sums.sqnr_db, abs=1e-3)


STEPS = {
    "one_scale": (np.array([1.0, 2.0]), np.array([1.5, 2.0]), 0.25, 2.0),
    "by_element": (np.array([1.0, 2.0]), np.array([1.5, 3.0]), np.array([0.25, 2.0]), 2.0),
    "unknown_step": (np.array([1.0, 2.0]), np.array([9.0, 2.5]), np.array([0.0, 0.25]), 2.0),
}


@pytest.mark.parametrize("name", STEPS)
def test_max_lsb(name: str) -> None:
    reference, candidate, step, expected = STEPS[name]
    assert max_lsb(reference, candidate, step) == expected


def test_values_that_are_not_finite_are_counted_apart() -> None:
    nan, inf = math.nan, math.inf
    sums = Sums()
    sums.add(np.array([1.0, nan, inf, 2.0, -inf]), np.array([1.0, nan, inf, nan, 3.0]), np.full(5, 0.5, np.float32))
    assert (sums.count, sums.not_finite, sums.not_finite_in_both) == (1, 4, 2)
    assert not sums.equal
    both = Sums()
    both.add(np.array([1.0, nan]), np.array([1.0, nan]))
    assert both.equal


def test_squares_beyond_float32_are_no_infinity() -> None:
    assert sqnr_db(np.full(4, 1e30, np.float32), np.full(4, 1.1e30, np.float32)) == pytest.approx(20.0, abs=1e-3)
