"""Logistic and tanh in 16-bit fixed point, as the gates of an LSTM have them.

Numbers with n integer bits stand for raw / 2**(15 - n), held in int64.

Source: gemmlowp fixedpoint/fixedpoint.h; TFLite kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

import math

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops.reference.integer.fixed_point import divide_by_power, fixed

MIN, MAX = -(1 << 15), (1 << 15) - 1


def high_product(a: Array, b: int | Array) -> Array:
    """Return 2 * a * b / 2**16, rounded to nearest, halves up."""
    product = a * np.asarray(b, np.int64)
    nudged = product + np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    return np.asarray(np.minimum((nudged + ((nudged >> 63) & 0x7FFF)) >> 15, MAX))


def logistic(x: Array, integer_bits: int) -> Array:
    """Return 1 / (1 + exp(-x)) with 0 integer bits."""
    above = _reciprocal(_exp_of_negative(-np.abs(x), integer_bits), least=0)
    return np.where(x == 0, 1 << 14, np.where(x > 0, above, MAX - above))


def tanh(x: Array, integer_bits: int) -> Array:
    """Return tanh(x) with 0 integer bits."""
    above = _reciprocal(_exp_of_negative(-np.abs(x), integer_bits + 1), least=1 << 13)
    return np.where(x == 0, 0, np.where(x > 0, above, -above))


def _constant(real: float, integer_bits: int) -> int:
    """Return the raw value of a constant, rounded from its 32 bits."""
    return int(divide_by_power(np.array(fixed(real, integer_bits)), 16))


def _wrapped(x: Array) -> Array:
    return x.astype(np.int16).astype(np.int64)


def _shifted(x: Array, exponent: int) -> Array:
    """Return x * 2**exponent, kept within 16 bits."""
    limit = (1 << (15 - exponent)) - 1
    return np.where(x > limit, MAX, np.where(x < -limit, MIN, x << exponent))


def _exp_of_negative(x: Array, integer_bits: int) -> Array:
    """Return exp(x) for x <= 0 with 0 integer bits: a series within a quarter, a factor for each higher bit."""
    x = np.maximum(x, MIN)
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    rest = (x & (quarter - 1)) - quarter
    result = _exp_within_a_quarter(_shifted(rest, integer_bits) if integer_bits else rest)
    bits = _wrapped(rest - x)
    for exponent in range(-2, min(integer_bits, 5)):
        chosen = bits & (1 << (fraction_bits + exponent)) != 0
        result = np.where(chosen, high_product(result, _constant(math.exp(-(2.0**exponent)), 0)), result)
    if integer_bits > 5:
        result = np.where(x < -(1 << (20 - integer_bits)), 0, result)
    return np.where(x == 0, MAX, result)


def _exp_within_a_quarter(x: Array) -> Array:
    constant = _constant(math.exp(-1 / 8), 0)
    x = _wrapped(x + (1 << 12))
    square = high_product(x, x)
    cube, fourth = high_product(square, x), high_product(square, square)
    tail = _wrapped(high_product(_wrapped(divide_by_power(fourth, 2) + cube), _constant(1 / 3, 0)) + square)
    total = constant + high_product(_wrapped(x + divide_by_power(tail, 1)), constant)
    return np.asarray(np.clip(total, MIN, MAX))


def _reciprocal(x: Array, least: int) -> Array:
    """Return 1 / (1 + x) for x in [0, 1); with ``least`` as 1, 2 / (1 + x) - 1, which is (1 - x) / (1 + x)."""
    total = x + MAX
    half = (total + 1) >> 1
    guess = _wrapped(_constant(48 / 17, 2) + high_product(half, _constant(-32 / 17, 2)))
    for _ in range(3):
        error = _wrapped((1 << 13) - high_product(half, guess))
        guess = _wrapped(guess + _shifted(high_product(guess, error), 2))
    return _shifted(_wrapped(guess - least), 2 if least else 1)
