"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION along the last axis.

Source: TFLite kernels/activations.cc, l2norm.cc, internal/reference/softmax.h, integer_ops/log_softmax.h,
integer_ops/l2normalization.h, internal/common.h.
"""

from __future__ import annotations

import math

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops import activation
from vitrify.ops.normalization import L2Normalization
from vitrify.ops.reference.integer.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    Multiplier,
    divide_by_power,
    doubling_high_product,
    exp_of_negative,
    fixed,
    inverse_square_root,
    leading_zeros,
    multiply,
    quantize_multiplier,
    reciprocal_of_one_plus,
    saturating_shift,
    wrapped,
)
from vitrify.ops.reference.integer.registry import Call, integer_kernel
from vitrify.ops.reference.integer.tables import wide_lookup, wide_table

_INPUT_BITS = 5          # integer bits of the differences from the largest value
_SUM_BITS = 12           # integer bits of the sum of powers


@integer_kernel(activation.Softmax)
def softmax(call: Call) -> list[Array]:
    """Divide each power by their sum, in fixed point; 16 bits by tables."""
    op = call.node.op
    assert isinstance(op, activation.Softmax)
    if call.array(0).dtype == np.int16:
        return [_softmax_wide(call, op.beta)]
    power, total, near = _powers(call, op.beta)
    zeros = leading_zeros(total)
    scale = reciprocal_of_one_plus((total << zeros) - (1 << 31))
    exponent = _SUM_BITS - zeros + 31 - call.dtype.itemsize * 8
    low = np.iinfo(call.dtype).min
    values = divide_by_power(doubling_high_product(scale, power), exponent) + low
    return [call.clipped(np.where(near, values, low))]


def _differences(call: Call, beta: float) -> tuple[Array, Multiplier, int]:
    """Return each value less its row's largest, the factor to fixed point, and the least that is not taken as 0."""
    x = call.array(0).astype(np.int64)
    difference = x - x.max(axis=-1, keepdims=True)
    real = min(beta * float(call.affine(0).scale) * (1 << (31 - _INPUT_BITS)), (1 << 31) - 1.0)
    by = quantize_multiplier(real)
    least = -math.floor(31 * (1 << 26) / (1 << int(by.shift)))
    return difference, by, least


def _powers(call: Call, beta: float) -> tuple[Array, Array, Array]:
    """Return exp of the differences, their sums, and which were near enough to count."""
    difference, by, least = _differences(call, beta)
    near = difference >= least
    power = exp_of_negative(multiply(np.where(near, difference, 0), by), _INPUT_BITS)
    counted = np.where(near, divide_by_power(power, _SUM_BITS), 0)
    return power, wrapped(counted.sum(axis=-1, keepdims=True)), near


def _softmax_wide(call: Call, beta: float) -> Array:
    """Read exp and 1 / (1 + x) off tables; exp(-10) and less count as what the table ends with."""
    powers = wide_table(np.exp, np.float64(10 / 65535), 32767, np.float64(2 / 65535), 0)
    inverses = wide_table(lambda x: 1 / (1 + x), np.float64(1 / 65535), -32768, np.float64(2 / 65535), 0)
    by = quantize_multiplier(float(call.affine(0).scale * np.float32(beta)) / (10.0 / 65535.0))
    x = call.array(0).astype(np.int64)
    scaled = multiply(x - x.max(axis=-1, keepdims=True), by) + 32767
    power = wide_lookup(np.clip(scaled, -32768, 32767), powers)
    total = power.sum(axis=-1, keepdims=True)
    zeros = leading_zeros(total)
    shifted = ((total << (zeros - 1)) + (1 << 13)) >> 14
    inverse = wide_lookup(np.clip(shifted - ((1 << 15) + (1 << 16)), -32768, 32767), inverses)
    shift = 31 - zeros
    values = (power * inverse + (np.int64(1) << (shift - 1))) >> shift
    held: Array = np.clip(values, 0, 32767)
    return held.astype(np.int16)


@integer_kernel(activation.LogSoftmax)
def log_softmax(call: Call) -> list[Array]:
    """Subtract the logarithm of the sum of powers."""
    _, total, _ = _powers(call, 1.0)
    difference, by, least = _differences(call, 1.0)
    log = _log(total)
    back = quantize_multiplier((1 << (31 - int(by.shift))) / float(by.quantized))
    floor = np.maximum(least - 1, multiply(log + INT32_MIN, back))
    values = divide_by_power(multiply(np.maximum(difference, floor), by) - log, 31 - _INPUT_BITS - 4) + 127
    return [call.clipped(np.where(difference > floor, values, -128))]


def _log(x: Array) -> Array:
    """Return log(x) with 5 integer bits, for x >= 1 with 12: a power of two, and a quotient of polynomials."""
    bits, root = _INPUT_BITS + 1, math.sqrt(math.sqrt(2))
    sqrt_half, quarter = fixed(math.sqrt(0.5), 0), 1 << (31 - bits - 2)
    zeros = leading_zeros(x)
    scaled = saturating_shifts(x, zeros - 1)
    r_a = saturating_shift(doubling_high_product(scaled, sqrt_half), 1)
    z_a = _added(saturating_shift(_SUM_BITS - zeros, 31 - bits), quarter)
    headroom = leading_zeros(doubling_high_product(x, sqrt_half)) - 1
    r_b = saturating_shifts(x, headroom)
    z_b = _added(saturating_shift(_SUM_BITS - headroom, 31 - bits), -quarter)
    r, z = np.minimum(r_a, r_b), np.maximum(z_a, z_b)
    middle = fixed(1 / root, 0)
    half = r + middle
    p = (half + np.where(half >= 0, 1, -1)) // 2
    q = wrapped(2 * (r - middle))
    square = doubling_high_product(q, q)
    over = (doubling_high_product(q, r)
            + doubling_high_product(doubling_high_product(q, square), fixed(11 / 240 * root, 0)))
    under = (doubling_high_product(p, wrapped(fixed(2 / root - root, 0) + q
                                              + doubling_high_product(square, fixed(root / 20, 0))))
             + doubling_high_product(q, fixed(root / 4, 0)))
    quotient = doubling_high_product(divide_by_power(wrapped(over), bits), reciprocal_of_one_plus(wrapped(under)))
    return saturating_shift(wrapped(doubling_high_product(z, fixed(math.log(2), 0)) + quotient), 1)


def _added(x: Array, y: int) -> Array:
    return np.asarray(np.clip(x + y, INT32_MIN, INT32_MAX))


def saturating_shifts(x: Array, exponents: Array) -> Array:
    """Return x * 2**exponent for positive x, one exponent each, kept within 32 bits."""
    return np.where((exponents > 0) & (x > (np.int64(1) << (31 - exponents)) - 1), INT32_MAX, x << exponents)


@integer_kernel(L2Normalization)
def l2_normalization(call: Call) -> list[Array]:
    """Multiply by the inverse root of the sum of squares."""
    x = call.shifted(0)
    root = inverse_square_root((x * x).sum(axis=-1, keepdims=True))
    return [call.clipped(multiply(x, root._replace(shift=root.shift + 7)))]
