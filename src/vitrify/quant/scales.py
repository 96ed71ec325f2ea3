"""From a range of real values to a scale and a zero point, within what the kernels can compute with."""

from __future__ import annotations

from typing import Any

import numpy as np

from vitrify.ir.quantization import Quantization
from vitrify.quant.calibration.statistics import Range

Array = np.ndarray[Any, np.dtype[Any]]

INT8_LOW, INT8_HIGH, LEVELS = -128, 127, 256
INT16_HIGH = 32767
WEIGHT_HIGH = 127
"""Weights stay within [-127, 127]: kernels may count on negating them."""

SMALLEST_WIDTH = 1e-6
"""A tensor that moves less than this is taken as constant: its scale would leave the multipliers' range."""

BIAS_HIGH = 2.0 ** 30
"""Half of int32 is left to the products that the bias is added to."""


def activation_scale(found: Range) -> Quantization:
    """Return the int8 scale and zero point that cover a range, zero being represented exactly.

    A range without width gets that of [0, 1], or of [0, value]: every step is then far from the kernels' limits.
    """
    wide = found.with_zero()
    if not wide.width > SMALLEST_WIDTH:
        wide = Range(0.0, 1.0)
    scale = np.float32(wide.width / (LEVELS - 1))
    zero_point = round(INT8_LOW - wide.low / float(scale))
    return Quantization.per_tensor(float(scale), min(max(zero_point, INT8_LOW), INT8_HIGH))


def wide_scale(found: Range) -> Quantization:
    """Return the int16 scale that covers a range; the kernels take zero point 0 only."""
    largest = max(abs(found.low), abs(found.high))
    return Quantization.per_tensor((largest if largest > SMALLEST_WIDTH else 1.0) / INT16_HIGH, 0)


def covered(quantization: Quantization) -> Range:
    """Return the range of real values that an int8 per-tensor quantization can represent."""
    scale, zero_point = float(quantization.scale[0]), int(quantization.zero_point[0])
    return Range(scale * (INT8_LOW - zero_point), scale * (INT8_HIGH - zero_point))


def levels_left(part: Range, whole: Range) -> float:
    """How many of the 256 levels of ``whole`` a part of it uses."""
    wide = whole.with_zero()
    return LEVELS * (part.width / wide.width) if wide.width > 0 else float(LEVELS)


def weight_scales(weights: Array, axis: int | None, bias: Array | None, input_scale: float) -> Quantization:
    """Return symmetric scales for constant weights, wide enough that the int32 bias fits.

    Channels of zeros get the mean scale of the others, so that their bias keeps its precision.

    Args:
        weights: float weights.
        axis: the axis with one scale per index, None for one scale.
        bias: float bias of one value per index of ``axis``, or None.
        input_scale: scale of the input that the weights are multiplied with.
    """
    if axis is None:
        largest = np.array([np.abs(weights).max(initial=0.0)], np.float64)
    else:
        others = tuple(a for a in range(weights.ndim) if a != axis)
        largest = np.abs(weights).max(axis=others, initial=0.0).astype(np.float64)
    scales = largest / WEIGHT_HIGH
    floor = np.finfo(np.float32).tiny * 2.0 ** 20
    alive = scales > floor
    scales = np.where(alive, scales, scales[alive].mean() if alive.any() else 1.0 / WEIGHT_HIGH)
    if bias is not None and bias.size:
        needed = np.abs(bias.reshape(-1).astype(np.float64)) / (input_scale * BIAS_HIGH)
        scales = np.maximum(scales, needed.max() if scales.size == 1 else needed)
    rounded = scales.astype(np.float32)
    return Quantization.per_tensor(float(rounded[0])) if axis is None else Quantization.per_axis(rounded, axis)


def held_below(scales: Quantization, limit: float) -> Quantization:
    """Return scales of weights below a limit; larger ones become the last below it, and their weights are cut."""
    if not np.any(scales.scale >= limit):
        return scales
    held = np.minimum(scales.scale, np.nextafter(np.float32(limit), np.float32(0)))
    return Quantization(held.astype(np.float32), scales.zero_point, scales.axis)


def quantize_weights(weights: Array, scales: Quantization) -> Array:
    """Round weights to int8 within [-127, 127]."""
    quantized: Array = np.clip(scales.quantize(weights, np.int8), -WEIGHT_HIGH, WEIGHT_HIGH)
    return quantized.astype(np.int8)


def quantize_bias(bias: Array, weights: Quantization, input_scale: float,
                  dtype: type[np.signedinteger[Any]] = np.int32) -> tuple[Array, Quantization]:
    """Round a bias to integers in units of input scale times weight scale, saturating at 32 or 40 bits."""
    scales = (weights.scale.astype(np.float64) * input_scale).astype(np.float32)
    limit = 2.0 ** (31 if dtype is np.int32 else 39)
    steps = np.rint(bias.astype(np.float64) / scales.astype(np.float64))
    data = np.clip(steps, -limit, limit - 1).astype(dtype)
    quantization = Quantization.per_tensor(float(scales[0])) if scales.size == 1 else Quantization.per_axis(scales, 0)
    return data, quantization
