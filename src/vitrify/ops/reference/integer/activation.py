"""Fused activations of integer kernels, and the activation functions that are linear in pieces.

Source: TFLite kernels/kernel_util.cc (CalculateActivationRangeQuantized), activations.cc, elementwise.cc (ABS),
internal/reference/leaky_relu.h, prelu.h, hard_swish.h.
"""

from __future__ import annotations

import math

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ir.operator import Operator
from vitrify.ops import activation as ops
from vitrify.ops.attributes import Activation
from vitrify.ops.reference.integer.fixed_point import divide_by_power, multiply, quantize_multiplier
from vitrify.ops.reference.integer.registry import Affine, Call, integer_kernel
from vitrify.ops.unary import Abs

_LIMITS = {Activation.RELU: (0.0, math.inf), Activation.RELU6: (0.0, 6.0), Activation.RELU_N1_TO_1: (-1.0, 1.0)}
_RELUS: dict[type[Operator], tuple[float, float]] = {
    ops.Relu: (0.0, math.inf), ops.Relu6: (0.0, 6.0), ops.ReluN1To1: (-1.0, 1.0), ops.Relu0To1: (0.0, 1.0)}


def activated(call: Call, values: Array, activation: Activation) -> Array:
    """Return values held within what the fused activation leaves of the output's type."""
    if activation == Activation.NONE:
        return call.clipped(values)
    if activation not in _LIMITS:
        raise call.refuse(f"has no integer form of the fused activation {activation.name}")
    return call.clipped(values, *_steps(call, *_LIMITS[activation]))


def _steps(call: Call, low: float, high: float) -> tuple[int, int]:
    """Return a range of real numbers in steps of the output."""
    info, output = np.iinfo(call.dtype), call.output
    least, most = (info.max if math.isinf(limit) else output.zero + _rounded(np.float32(limit) / output.scale)
                   for limit in (low, high))
    return max(info.min, least), min(info.max, most)


def _rounded(value: np.float32) -> int:
    return math.floor(abs(float(value)) + 0.5) * (1 if value >= 0 else -1)


def ratio(x: Affine, y: Affine) -> float:
    """Return the quotient of two scales, rounded to float32 as the kernels have it."""
    return float(x.scale / y.scale)


@integer_kernel(*_RELUS)
def relu(call: Call) -> list[Array]:
    """Rescale, then hold within the range."""
    by = quantize_multiplier(ratio(call.affine(0), call.output))
    values = multiply(call.shifted(0), by) + call.output.zero
    return [call.clipped(values, *_steps(call, *_RELUS[type(call.node.op)]))]


@integer_kernel(Abs)
def absolute(call: Call) -> list[Array]:
    """Take the absolute value of the shifted steps, then rescale where the scales differ."""
    x, y = call.affine(0), call.output
    values = np.abs(call.shifted(0))
    if x.scale != y.scale:
        values = multiply(values, quantize_multiplier(ratio(x, y)))
    return [call.clipped(values + y.zero)]


@integer_kernel(ops.LeakyRelu)
def leaky_relu(call: Call) -> list[Array]:
    """Rescale by one factor above zero and by another below."""
    op = call.node.op
    assert isinstance(op, ops.LeakyRelu)
    x, y = call.shifted(0), call.output
    above = quantize_multiplier(ratio(call.affine(0), y))
    below = quantize_multiplier(float(call.affine(0).scale * np.float32(op.alpha) / y.scale))
    return [call.clipped(np.where(x >= 0, multiply(x, above), multiply(x, below)) + y.zero)]


@integer_kernel(ops.Prelu)
def prelu(call: Call) -> list[Array]:
    """Rescale x above zero, x times alpha below."""
    x, alpha, y = call.shifted(0), call.shifted(1), call.output
    above = quantize_multiplier(ratio(call.affine(0), y))
    below = quantize_multiplier(float(call.affine(0).scale * call.affine(1).scale / y.scale))
    return [call.clipped(np.where(x >= 0, multiply(x, above), multiply(x * alpha, below)) + y.zero)]


@integer_kernel(ops.HardSwish)
def hard_swish(call: Call) -> list[Array]:
    """Compute in 16 bits: x on the output's scale, times x moved from -3..3 to 0..1."""
    fine = np.float32(1 / 128) * call.affine(0).scale
    output, reluish = (quantize_multiplier(float(fine / scale))
                       for scale in (call.output.scale, np.float32(3) / np.float32(32768)))
    x = call.shifted(0) << 7
    scaled = _high_product(x, _upper(int(output.quantized)))
    shift = int(reluish.shift)
    gate = _saturated(x << (shift - 1)) if shift > 0 else x
    gate = _high_product(gate, _upper(int(reluish.quantized)))
    gate = _saturated(gate << 1) if shift > 0 else divide_by_power(gate, -shift)
    product = (gate + (1 << 15) >> 1) * scaled
    product = (product + ((product >> 63) & 0x7FFF)) >> 15      # towards zero, against the bias of the products above
    return [call.clipped(divide_by_power(product, -int(output.shift)) + call.output.zero)]


def _upper(multiplier: int) -> int:
    """Return a multiplier's upper 16 bits, rounded."""
    return 0x7FFF if multiplier >= (1 << 31) - 1 - (1 << 15) else (multiplier + (1 << 15)) >> 16


def _high_product(a: Array, b: int) -> Array:
    """Return 2 * a * b / 2**16, rounded to nearest; half a step goes up."""
    product = a * b
    nudged = product + np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    return np.asarray(np.minimum((nudged + ((nudged >> 63) & 0x7FFF)) >> 15, 0x7FFF))


def _saturated(x: Array) -> Array:
    return np.asarray(np.clip(x, -(1 << 15), (1 << 15) - 1))
