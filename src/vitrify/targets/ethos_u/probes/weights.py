"""Probes of weights and biases."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.ir import DType, Node
from vitrify.ops import Conv2D, DepthwiseConv2D, FullyConnected, Padding
from vitrify.targets.ethos_u.cores import U85
from vitrify.targets.ethos_u.probes.sketch import Draw, Probe, Sketch, probe
from vitrify.targets.rules.rule import Variant


def _connected(inputs: int, fill: int, *, dtype: DType = DType.INT8, weights: DType = DType.INT8,
               bias: DType = DType.INT32, bias_value: int = 0, zero: int = 0, variable: str = "") -> Draw:
    def draw(sketch: Sketch) -> Node:
        w = sketch.value((4, inputs), weights, scale=0.01) if variable == "weights" else \
            sketch.constant(np.full((4, inputs), fill, weights.numpy), weights, scale=0.01, zero=zero)
        b = sketch.value((4,), bias, scale=0.0005) if variable == "bias" else sketch.bias(4, bias, bias_value)
        return sketch.add(FullyConnected(), [sketch.value((1, inputs), dtype), w, b], dtype=dtype)
    return draw


def _depthwise(taps: int, fill: int) -> Draw:
    def draw(sketch: Sketch) -> Node:
        return sketch.add(DepthwiseConv2D(padding=Padding.VALID), [
            sketch.value((1, taps, taps, 1)), sketch.weights((1, taps, taps, 1), fill), sketch.bias(1)])
    return draw


def _square(taps: int, channels: int) -> Draw:
    def draw(sketch: Sketch) -> Node:
        x = sketch.value((1, taps, taps, channels), DType.INT16)
        weights = sketch.weights((1, taps, taps, channels), 127)
        return sketch.add(Conv2D(padding=Padding.VALID), [x, weights, sketch.bias(1, DType.INT64)], dtype=DType.INT16)
    return draw


@probe
def sums(variant: Variant) -> Iterator[Probe]:
    """Absolute sums of weights at the limit and beyond it."""
    limit = variant.limits["weight_sum_8_bits"]
    count, code = limit // 127, ("ethos-u.weight-sum",)
    yield Probe("weights sum up to the limit", _connected(count, 127))
    yield Probe("weights sum up beyond the limit", _connected(count + 1, 127), (*code, "ethos-u.stops-compiler"),
                {"sum": limit + 127, "limit": limit})
    yield Probe("weights sum up beyond the limit by the zero point", _connected(count, -127, zero=1), code)
    large = variant.limits["weight_sum_16_bits"] > limit
    yield Probe("weights for 16 bits beyond the limit for 8", _square(16, 257), () if large else code)
    yield Probe("depthwise weights sum up beyond the limit", _depthwise(257, 127), code, {"sum": 257 * 257 * 127})


@probe
def forms(variant: Variant) -> Iterator[Probe]:
    """Types of weights and biases, and biases that are computed."""
    yield Probe("uint8 weights", _connected(16, 100, dtype=DType.UINT8, weights=DType.UINT8, zero=100))
    yield Probe("int16 weights", _connected(16, 1, dtype=DType.INT16, weights=DType.INT16), ("ethos-u.weights-type",),
                {"bits": 16, "limit": 8}, alone=True)
    yield Probe("int64 bias", _connected(16, 1, dtype=DType.INT16, bias=DType.INT64))
    limit = (1 << variant.limits["bias_bits"]) - 1
    yield Probe("int64 bias at the limit", _connected(16, 1, dtype=DType.INT16, bias=DType.INT64, bias_value=limit))
    yield Probe("int64 bias beyond the limit",
                _connected(16, 1, dtype=DType.INT16, bias=DType.INT64, bias_value=limit + 1), ("ethos-u.bias-range",),
                {"bias": limit + 1, "limit": limit})
    yield Probe("a computed bias", _connected(16, 1, variable="bias"), ("ethos-u.bias-variable",))
    yield Probe("computed weights", _connected(16, 1, variable="weights"))
    if variant.core != U85:
        yield Probe("computed int16 weights", _connected(16, 1, dtype=DType.INT16, variable="weights"),
                    ("ethos-u.matmul-type",))

    def scaled(sketch: Sketch) -> Node:
        w = sketch.constant(np.ones((8, 3, 3, 4), np.int8), DType.INT8, scale=0.01, scales=8)
        return sketch.add(Conv2D(), [sketch.value((1, 8, 8, 4)), w, sketch.bias(8)])

    yield Probe("a scale per channel of weights", scaled)
