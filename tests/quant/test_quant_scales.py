"""Scales: what they cover, how far rounding goes, and how the kernels' limits are kept."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrify.quant.calibration.ranges import least_error
from vitrify.quant.calibration.statistics import Histogram, Range
from vitrify.quant.scales import (
    BIAS_HIGH,
    activation_scale,
    covered,
    levels_left,
    quantize_bias,
    quantize_weights,
    weight_scales,
)

REALS = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@given(REALS, REALS)
def test_a_range_is_covered_and_zero_is_exact(one: float, two: float) -> None:
    found = Range(min(one, two), max(one, two))
    quantization = activation_scale(found)
    limits, step = covered(quantization), float(quantization.scale[0])
    assert quantization.dequantize(quantization.quantize(np.zeros(1, np.float32), np.int8))[0] == 0
    if found.with_zero().width > 1e-6:
        assert limits.low - step * 0.51 <= min(found.low, 0) <= max(found.high, 0) <= limits.high + step * 0.51


@given(st.integers(-128, 127), REALS, REALS)
def test_levels_round_trip(level: int, one: float, two: float) -> None:
    quantization = activation_scale(Range(min(one, two), max(one, two)))
    q = np.array([level], np.int8)
    assert quantization.quantize(quantization.dequantize(q), np.int8) == q


@pytest.mark.parametrize("dead", [Range(0.0, 0.0), Range(0.0, 1e-12), Range(-1e-9, 0.0)], ids=str)
def test_a_dead_range_gets_an_ordinary_scale(dead: Range) -> None:
    assert activation_scale(dead).scale[0] == pytest.approx(1 / 255)


@given(st.lists(st.floats(0, 1e4, width=32), min_size=1, max_size=6),
       st.lists(st.floats(-1e6, 1e6, width=32), min_size=6, max_size=6), st.floats(1e-4, 10))
def test_biases_fit_in_int32(sizes: list[float], biases: list[float], input_scale: float) -> None:
    weights = np.array(sizes, np.float32).reshape(-1, 1, 1, 1) * np.ones((1, 1, 1, 4), np.float32)
    bias = np.array(biases[:len(sizes)], np.float32)
    scales = weight_scales(weights, 0, bias, input_scale)
    assert np.all(np.isfinite(scales.scale))
    assert np.all(scales.scale > 0)
    data, quantization = quantize_bias(bias, scales, input_scale)
    assert np.abs(data.astype(np.int64)).max() <= BIAS_HIGH * 1.001
    assert np.allclose(quantization.dequantize(data), bias, atol=float(quantization.scale.max()), rtol=1e-6)
    assert np.abs(quantize_weights(weights, scales).astype(int)).max(initial=0) <= 127


def test_a_channel_of_zeros_takes_the_mean_of_the_others() -> None:
    weights = np.stack([np.zeros(4), np.full(4, 127.0), np.full(4, 381.0)]).astype(np.float32)
    assert weight_scales(weights, 0, None, 1.0).scale.tolist() == [2.0, 1.0, 3.0]


@pytest.mark.parametrize(("axis", "count"), [(None, 1), (0, 3), (1, 4)])
def test_one_scale_for_each_index_of_the_axis(axis: int | None, count: int) -> None:
    assert weight_scales(np.ones((3, 4), np.float32), axis, None, 1.0).scale.size == count


@pytest.mark.parametrize(("top", "levels"), [(640, 0.4), (30, 8.5), (16, 16), (1, 256)])
def test_levels_left(top: float, levels: float) -> None:
    assert levels_left(Range(0, 1), Range(0, top)) == pytest.approx(levels, abs=0.1)


def histogram_of(*batches: Any) -> Histogram:
    made = Histogram()
    for batch in batches:
        values = np.asarray(batch, np.float32)
        made.add(values, float(np.abs(values).max()))
    return made


@given(st.lists(st.lists(REALS, min_size=1, max_size=20), min_size=1, max_size=5), st.randoms())
def test_histograms_do_not_depend_on_order(batches: list[list[float]], random: Any) -> None:
    one = histogram_of(*batches)
    random.shuffle(batches)
    two = histogram_of(*batches)
    merged = Histogram()
    for batch in batches:
        merged.merge(histogram_of(batch))
    assert one.top == two.top == merged.top
    assert one.counts.tolist() == two.counts.tolist() == merged.counts.tolist()


def test_percentile_leaves_out_both_tails() -> None:
    made = histogram_of(np.linspace(-100, 100, 100_001))
    found = made.percentile(90)
    assert (found.low, found.high) == pytest.approx((-90, 90), abs=0.2)


def test_least_error_cuts_outliers_and_keeps_even_spreads() -> None:
    random = np.random.default_rng(0)
    even = random.uniform(-1, 1, 100_000)
    spiky = histogram_of(random.standard_normal(100_000))
    spiky.counts *= 10_000                       # a billion values, and one far out
    spiky.merge(histogram_of([100.0]))
    assert least_error(histogram_of(even), Range(-1, 1)).width == pytest.approx(2, rel=0.03)
    assert least_error(spiky, Range(-4.6, 100)).high <= 60
