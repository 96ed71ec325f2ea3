"""Sums, differences, products, quotients and comparisons of two quantized tensors that broadcast.

Source: TFLite kernels/add.cc, sub.cc, mul.cc, div.cc, squared_difference.cc, comparisons.cc and
internal/reference/add.h, sub.h, mul.h, div.h, comparisons.h.
"""

from __future__ import annotations

import math

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops import binary, logic
from vitrify.ops.reference.integer.activation import activated
from vitrify.ops.reference.integer.fixed_point import (
    divide_by_power,
    doubling_high_product,
    leading_zeros,
    multiply,
    quantize_multiplier,
    reciprocal_of_one_plus,
    wrapped,
)
from vitrify.ops.reference.integer.registry import Affine, Call, integer_kernel


def _common(call: Call, left_shift: int) -> tuple[Array, Array, float]:
    """Bring both inputs to a common finer scale; returns them and twice the larger scale."""
    first, second = call.affine(0), call.affine(1)
    twice = float(2 * max(first.scale, second.scale))
    a, b = (multiply(call.shifted(i) << left_shift, quantize_multiplier(float(side.scale) / twice))
            for i, side in enumerate((first, second)))
    return a, b, twice


@integer_kernel(binary.Add, binary.Sub)
def add(call: Call) -> list[Array]:
    """Add or subtract on a scale 2**20 (16 bits: 2**15) times finer than the coarser input's."""
    op = call.node.op
    assert isinstance(op, binary.Add | binary.Sub)
    if call.dtype == np.int16 and op.pot_scale_int16 and all(map(_is_power, _affines(call))):
        return _add_powers(call, op)
    left_shift = 15 if call.dtype == np.int16 else 20
    a, b, twice = _common(call, left_shift)
    by = quantize_multiplier(twice / float(np.float32(1 << left_shift) * call.output.scale))
    values = multiply(a + b if isinstance(op, binary.Add) else a - b, by) + call.output.zero
    return [activated(call, values, op.fused_activation_function)]


def _affines(call: Call) -> tuple[Affine, Affine, Affine]:
    return call.affine(0), call.affine(1), call.output


def _is_power(side: Affine) -> bool:
    power = math.log2(float(side.scale))
    return abs(power - round(power)) < 1e-3


def _add_powers(call: Call, op: binary.Add | binary.Sub) -> list[Array]:
    """Add 16-bit steps whose scales are powers of two: one input is shifted to the other's, which is the output's."""
    powers = [round(math.log2(float(side.scale))) for side in _affines(call)]
    a, b = (divide_by_power(call.array(i).astype(np.int64), powers[2] - powers[i]) for i in range(2))
    total = np.clip(a + b if isinstance(op, binary.Add) else a - b, -(1 << 15), (1 << 15) - 1)
    return [activated(call, total, op.fused_activation_function)]


@integer_kernel(binary.Mul)
def mul(call: Call) -> list[Array]:
    """Multiply the shifted steps, rescale once."""
    op = call.node.op
    assert isinstance(op, binary.Mul)
    by = quantize_multiplier(float(call.affine(0).scale * call.affine(1).scale / call.output.scale))
    values = multiply(call.shifted(0) * call.shifted(1), by) + call.output.zero
    return [activated(call, values, op.fused_activation_function)]


@integer_kernel(binary.SquaredDifference)
def squared_difference(call: Call) -> list[Array]:
    """Subtract on a scale 2**7 times finer, square, rescale."""
    a, b, twice = _common(call, 7)
    by = quantize_multiplier(twice * twice / float(np.float32(1 << 14) * call.output.scale))
    return [call.clipped(multiply((a - b) * (a - b), by) + call.output.zero)]


@integer_kernel(binary.Div)
def divide(call: Call) -> list[Array]:
    """Multiply by the reciprocal of the divisor; zero as divisor is refused, as LiteRT does."""
    op = call.node.op
    assert isinstance(op, binary.Div)
    a, b = call.shifted(0), call.shifted(1)
    if np.any(b == 0):
        raise call.refuse("is given a divisor of zero")
    a, b = np.broadcast_arrays(np.where(b < 0, -a, a), np.abs(b))
    zeros = leading_zeros(b)
    inverse = reciprocal_of_one_plus((b << zeros) - (1 << 31))
    headroom = leading_zeros(np.where(a < 0, -2 * a - 1, 2 * a))
    quotient = doubling_high_product(wrapped(a << headroom), inverse)
    by = quantize_multiplier(float(call.affine(0).scale / (call.affine(1).scale * call.output.scale)))
    shift = int(by.shift) - (31 - zeros) - headroom
    values = divide_by_power(doubling_high_product(quotient, by.quantized), -shift) + call.output.zero
    return [activated(call, values, op.fused_activation_function)]


@integer_kernel(logic.Less, logic.LessEqual, logic.Greater, logic.GreaterEqual, logic.Equal, logic.NotEqual)
def compare(call: Call) -> list[Array]:
    """Compare both inputs on a common fixed-point scale, 2**-8 of a unit.

    Which of 16-bit steps is larger, the kernels say from the steps alone.
    """
    op = call.node.op
    assert isinstance(op, logic.Comparison)
    if call.array(0).dtype == np.int16 and not isinstance(op, logic.Equal | logic.NotEqual):
        return [np.asarray(op.compute(call.array(0), call.array(1)))]
    a, b = (multiply(call.shifted(i) << 8, quantize_multiplier(float(call.affine(i).scale))) for i in range(2))
    return [np.asarray(op.compute(a, b))]
