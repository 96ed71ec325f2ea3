"""Matrix products and convolutions: exact sums of integers, then one rescaling for each output channel.

The sums are made in float64, which holds every one of them exactly and is many times faster than integers in numpy.

Source: TFLite kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc, fully_connected.cc, batch_matmul.cc,
kernel_util.cc (PopulateConvolutionQuantizationParams, GetQuantizedConvolutionMultipler) and
internal/reference/integer_ops.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Array
from vitrify.ops import convolution, matmul
from vitrify.ops.attributes import Activation
from vitrify.ops.reference import conv
from vitrify.ops.reference.integer.activation import activated
from vitrify.ops.reference.integer.fixed_point import (
    Multiplier,
    multiply,
    multiply_wide,
    quantize_multiplier,
    quantize_multipliers,
    wrapped,
)
from vitrify.ops.reference.integer.registry import Call, integer_kernel


@integer_kernel(convolution.Conv2D)
def conv2d(call: Call) -> list[Array]:
    """Convolve; the padding is the zero point."""
    op = call.node.op
    assert isinstance(op, convolution.Conv2D)
    x, w = _real(call, 0), _real(call, 1)
    sums = conv.convolve(x, w, op.windows(w.shape), op.padding)
    return [_finished(call, sums, 1, 2, op.fused_activation_function, call.affine(0).scale)]


@integer_kernel(convolution.DepthwiseConv2D)
def depthwise_conv2d(call: Call) -> list[Array]:
    """Convolve each channel by itself."""
    op = call.node.op
    assert isinstance(op, convolution.DepthwiseConv2D)
    x, w = _real(call, 0), _real(call, 1)
    sums = conv.convolve_depthwise(x, w, op.windows(w.shape), op.padding)
    return [_finished(call, sums, 1, 2, op.fused_activation_function, call.affine(0).scale)]


@integer_kernel(convolution.TransposeConv)
def transpose_conv(call: Call) -> list[Array]:
    """Scatter every input element through all taps."""
    op = call.node.op
    assert isinstance(op, convolution.TransposeConv)
    shape = tuple(int(v) for v in call.array(0))
    x, w = _real(call, 2), _real(call, 1)
    sums = conv.convolve_transposed(x, w, shape, op.windows(w.shape), op.padding)
    return [_finished(call, sums, 1, 3, op.fused_activation_function, call.affine(2).scale)]


@integer_kernel(matmul.FullyConnected)
def fully_connected(call: Call) -> list[Array]:
    """Multiply rows by the weights; the sums are rescaled by a factor in float64, where others have fixed point."""
    op = call.node.op
    assert isinstance(op, matmul.FullyConnected)
    x, w = _real(call, 0), _real(call, 1)
    total = _biased(call, x.reshape(-1, w.shape[1]) @ w.T, 2)
    scales = call.scales(1).scale.astype(np.float64)
    values = total * (float(call.affine(0).scale) * scales / float(call.output.scale))
    steps = np.trunc(values + np.copysign(0.5, values)).astype(np.int64)
    return [activated(call, steps + call.output.zero, op.fused_activation_function).reshape(call.node.output.shape)]


@integer_kernel(matmul.BatchMatMul)
def batch_matmul(call: Call) -> list[Array]:
    """Multiply matrices, one scale for all."""
    op = call.node.op
    assert isinstance(op, matmul.BatchMatMul)
    x, y = _real(call, 0), _real(call, 1)
    product = (x.swapaxes(-1, -2) if op.adj_x else x) @ (y.swapaxes(-1, -2) if op.adj_y else y)
    by = _joint(call, call.affine(0).scale, 1)
    sums = product.astype(np.int64)
    values = multiply_wide(sums, by) if call.dtype == np.int16 else multiply(wrapped(sums), by)
    return [call.clipped(values + call.output.zero)]


def _real(call: Call, index: int) -> Array:
    """Return the steps less their zero points, in the type of the sums."""
    q = call.scales(index)
    zeros = q.zero_point if len(q.zero_point) else np.zeros(1, np.int64)
    values = _unpacked(call, index)
    if len(zeros) > 1 and q.axis is not None:
        zeros = zeros.reshape([-1 if i == q.axis else 1 for i in range(values.ndim)])
    return values.astype(np.float64) - zeros


def _unpacked(call: Call, index: int) -> Array:
    """Return an input's steps; weights of 4 bits lie two in a byte, the lower half first."""
    tensor, values = call.node.input(index), call.array(index)
    if tensor.dtype is not DType.INT4:
        return values
    halves = np.stack([values.view(np.int8) << 4 >> 4, values.view(np.int8) >> 4], axis=-1)
    return halves.reshape(-1)[:tensor.size].reshape(tensor.shape)


def _finished(call: Call, sums: Array, weights: int, bias: int, activation: Activation, scale: np.float32) -> Array:
    """Add the bias and bring the sums to the output's scale; 64-bit sums keep 15 bits of the multiplier."""
    added, total = call.optional(bias), _biased(call, sums, bias)
    scales = call.scales(weights).scale.astype(np.float64)
    by = quantize_multipliers(float(scale) * scales / float(call.output.scale))
    wide = call.dtype == np.int16 and (added is None or added.dtype == np.int64)
    values = multiply_wide(total, by) if wide else multiply(wrapped(total), by)
    return activated(call, values + call.output.zero, activation)


def _biased(call: Call, sums: Array, bias: int) -> Array:
    """Return the sums as integers, with the bias where there is one."""
    added = call.optional(bias)
    total = sums.astype(np.int64)
    return total if added is None else total + added.reshape(-1).astype(np.int64)


def _joint(call: Call, scale: np.float32, other: int) -> Multiplier:
    """Return the factor of two scales, whose product is rounded to float32."""
    return quantize_multiplier(float(scale * call.affine(other).scale) / float(call.output.scale))
