"""Means, sums and products over axes.

Source: TFLite kernels/reduce.cc and internal/reference/reduce.h (QuantizedMeanOrSum, QuantizedReduceProd).
"""

from __future__ import annotations

import math

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops import reduction
from vitrify.ops.base import axes_of
from vitrify.ops.reference.integer.fixed_point import Multiplier, multiply, multiply_wide, quantize_multiplier, wrapped
from vitrify.ops.reference.integer.registry import Call, integer_kernel


def _axes(call: Call) -> tuple[int, ...]:
    x = call.array(0)
    return axes_of(call.node.op, [int(a) for a in call.array(1).reshape(-1)], x.ndim, call.arrays)


def _total(call: Call, keep_dims: bool) -> tuple[Array, int]:
    """Return the sums of the steps over the axes, and how many each has."""
    x, axes = call.array(0).astype(np.int64), _axes(call)
    return wrapped(x.sum(axis=axes, keepdims=keep_dims)), math.prod(x.shape[a] for a in axes)


@integer_kernel(reduction.Mean)
def mean(call: Call) -> list[Array]:
    """Rescale the sum; the number of elements is divided out of the multiplier."""
    op = call.node.op
    assert isinstance(op, reduction.Mean)
    total, count = _total(call, op.keep_dims)
    by = quantize_multiplier(float(call.affine(0).scale) / float(call.output.scale))
    shift = min(count.bit_length() - 1, 32, 31 + int(by.shift))
    by = Multiplier((int(by.quantized) << shift) // count, int(by.shift) - shift)
    return [call.clipped(multiply(wrapped(total - call.affine(0).zero * count), by) + call.output.zero)]


@integer_kernel(reduction.Sum)
def sum_up(call: Call) -> list[Array]:
    """Rescale the sum in float32, as the plain kernel does; the reference kernel reads signed steps as uint8.

    Only uint8 is as the reference kernel has it, in fixed point.
    """
    op = call.node.op
    assert isinstance(op, reduction.Sum)
    total, count = _total(call, op.keep_dims)
    x, y = call.affine(0), call.output
    if call.dtype == np.uint8:
        by = quantize_multiplier(float(x.scale) / float(y.scale))
        return [call.clipped(multiply(wrapped(total - x.zero * count), by) + y.zero)]
    ratio = x.scale / y.scale
    values = total.astype(np.float32) * ratio + np.float32(-x.zero) * ratio * np.float32(count)
    return [call.clipped(np.trunc(values + np.copysign(np.float32(0.5), values)) + np.float32(y.zero))]


@integer_kernel(reduction.ReduceProd)
def product(call: Call) -> list[Array]:
    """Multiply one by one, each product rescaled by the same root of the whole factor."""
    op = call.node.op
    assert isinstance(op, reduction.ReduceProd)
    x, axes = call.shifted(0), _axes(call)
    count = math.prod(x.shape[a] for a in axes)
    by = quantize_multiplier(float(call.affine(0).scale) / float(call.output.scale) ** (1.0 / count))
    kept = [a for a in range(x.ndim) if a not in axes]
    rows = x.transpose(kept + list(axes)).reshape(*(x.shape[a] for a in kept), count)
    result = rows[..., 0]
    for index in range(1, count):
        result = multiply_wide(result * rows[..., index], by)
    values = multiply_wide(result, by) + call.output.zero
    return [call.clipped(values).reshape(call.node.output.shape)]
