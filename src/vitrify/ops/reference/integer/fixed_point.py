"""Fixed-point arithmetic on arrays of 32-bit integers, held in int64, rounded and saturated as LiteRT does.

A number with n integer bits stands for raw / 2**(31 - n). A multiplier stands for quantized / 2**31 * 2**shift.

Source: gemmlowp fixedpoint/fixedpoint.h; TFLite kernels/internal/common.h, common.cc, quantization_util.cc.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from vitrify.ir.graph import Array

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


class Multiplier(NamedTuple):
    """A real factor as an integer below 2**31 and a power of two; arrays hold one for each channel."""

    quantized: int | Array
    shift: int | Array


def wrapped(x: Array) -> Array:
    """Cut to 32 bits, as sums and left shifts of int32 do."""
    return x.astype(np.int32).astype(np.int64)


def quantize_multiplier(real: float) -> Multiplier:
    """Return the multiplier next to a real factor; what is below 2**-32 becomes 0."""
    if real == 0:
        return Multiplier(0, 0)
    fraction, shift = math.frexp(real)
    quantized = math.floor(fraction * (1 << 31) + 0.5)
    if quantized == 1 << 31:
        quantized, shift = quantized // 2, shift + 1
    return Multiplier(0, 0) if shift < -31 else Multiplier(quantized, shift)


def quantize_multipliers(reals: Array) -> Multiplier:
    """Return one multiplier for each real factor."""
    pairs = [quantize_multiplier(float(real)) for real in reals]
    return Multiplier(*(np.array(column, np.int64) for column in zip(*pairs, strict=True)))


def doubling_high_product(a: Array, b: int | Array) -> Array:
    """Return 2 * a * b / 2**32, rounded to nearest; halves go up."""
    product = a * np.asarray(b, np.int64)
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    return np.minimum(_towards_zero(nudged, 31), INT32_MAX)


def divide_by_power(x: Array, exponent: int | Array) -> Array:
    """Return x / 2**exponent, rounded to nearest, halves away from zero."""
    exponent = np.asarray(exponent, np.int64)
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (x < 0)
    return np.asarray((x >> exponent) + ((x & mask) > threshold))


def saturating_shift(x: Array, exponent: int) -> Array:
    """Return x * 2**exponent, kept within 32 bits; a negative exponent divides."""
    if exponent <= 0:
        return divide_by_power(x, -exponent)
    limit = (1 << (31 - exponent)) - 1
    return np.where(x > limit, INT32_MAX, np.where(x < -limit, INT32_MIN, x << exponent))


def multiply(x: Array, by: Multiplier) -> Array:
    """Multiply int32 values: first rounded at 31 bits, then again at the power of two."""
    shift = np.asarray(by.shift, np.int64)
    left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
    return divide_by_power(doubling_high_product(wrapped(x << left), by.quantized), right)


def multiply_wide(x: Array, by: Multiplier) -> Array:
    """Multiply 48-bit values by the multiplier's upper 15 bits, rounded once, halves up."""
    quantized = np.asarray(by.quantized, np.int64)
    reduced = np.where(quantized < 0x7FFF0000, (quantized + (1 << 15)) >> 16, 0x7FFF)
    shift = 15 - np.asarray(by.shift, np.int64)
    return wrapped((x * reduced + (np.int64(1) << (shift - 1))) >> shift)


def leading_zeros(x: Array) -> Array:
    """Return how many of the 32 bits stand above the highest that is set."""
    return 32 - np.frexp((x & 0xFFFFFFFF).astype(np.float64))[1].astype(np.int64)


def exp_of_negative(x: Array, integer_bits: int) -> Array:
    """Return exp(x) for x <= 0, with 0 integer bits.

    The part within a quarter comes from a series around -1/8, each higher bit multiplies by a constant.
    """
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    rest = (x & (quarter - 1)) - quarter
    result = _exp_within_a_quarter(saturating_shift(rest, integer_bits))
    bits = rest - x
    for exponent in range(-2, integer_bits):
        factor = fixed(math.exp(-(2.0**exponent)), 0)
        chosen = bits & (1 << (fraction_bits + exponent)) != 0
        result = np.where(chosen, doubling_high_product(result, factor), result)
    return np.where(x == 0, INT32_MAX, result)


def reciprocal_of_one_plus(x: Array) -> Array:
    """Return 1 / (1 + x) for x in [0, 1), both with 0 integer bits: three steps of Newton's method."""
    total = x + INT32_MAX
    half = _towards_zero(total + np.where(total >= 0, 1, -1), 1)
    guess = wrapped(fixed(48 / 17, 2) + doubling_high_product(half, fixed(-32 / 17, 2)))
    for _ in range(3):
        error = wrapped((1 << 29) - doubling_high_product(half, guess))
        guess = wrapped(guess + saturating_shift(doubling_high_product(guess, error), 2))
    return saturating_shift(guess, 1)


def inverse_square_root(x: Array) -> Multiplier:
    """Return 1 / sqrt(x) of whole numbers as multipliers: five steps of Newton's method."""
    value, right = np.maximum(x, 2), np.full(x.shape, 11, np.int64)
    while np.any(large := value >= 1 << 29):
        value, right = np.where(large, _towards_zero(value, 2), value), right + large
    pairs = (leading_zeros(value) - 1) // 2 - 1
    value, right = value << (2 * pairs), right - pairs
    point, root = value >> 1, np.full(x.shape, 1 << 28, np.int64)
    half = divide_by_power(point, 1)
    for _ in range(5):
        cube = doubling_high_product(doubling_high_product(root, root), root)
        step = doubling_high_product(root, 3 << 27) - doubling_high_product(half, saturating_shift(cube, 6))
        root = saturating_shift(wrapped(step), 3)
    root = doubling_high_product(root, fixed(math.sqrt(2) / 2, 0))
    root = np.where(right < 0, wrapped(root << np.maximum(-right, 0)), root)
    small = x <= 1
    return Multiplier(np.where(small, INT32_MAX, root), np.where(small, 0, -np.maximum(right, 0)))


def fixed(real: float, integer_bits: int) -> int:
    """Return the raw value of a constant."""
    return round(real * 2.0 ** (31 - integer_bits))


def _exp_within_a_quarter(x: Array) -> Array:
    """Return exp(x) for x in [-1/4, 0), with 0 integer bits: four terms of the series around -1/8."""
    constant = fixed(math.exp(-1 / 8), 0)
    x = x + (1 << 28)
    square = doubling_high_product(x, x)
    cube, fourth = doubling_high_product(square, x), doubling_high_product(square, square)
    tail = doubling_high_product(divide_by_power(fourth, 2) + cube, fixed(1 / 3, 0)) + square
    return wrapped(constant + doubling_high_product(x + divide_by_power(tail, 1), constant))


def _towards_zero(x: Array, exponent: int) -> Array:
    """Divide by a power of two as C++ does."""
    return np.asarray((x + ((x >> 63) & ((1 << exponent) - 1))) >> exponent)
