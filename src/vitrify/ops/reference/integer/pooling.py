"""Pooling of quantized images, whose scale the output shares.

Source: TFLite kernels/pooling.cc and internal/reference/integer_ops/pooling.h.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops import pooling
from vitrify.ops.reference.conv import taps
from vitrify.ops.reference.integer.activation import activated
from vitrify.ops.reference.integer.registry import Call, integer_kernel


@integer_kernel(pooling.AveragePool2D)
def average(call: Call) -> list[Array]:
    """Divide the sum of what lies in the image, rounded to nearest, halves away from zero."""
    op = call.node.op
    assert isinstance(op, pooling.AveragePool2D)
    x = call.array(0).astype(np.int64)
    ones = np.ones((1, *x.shape[1:3], 1), np.int64)
    total = np.asarray(sum(view for _, view in taps(x, op.windows, op.padding)))
    count = np.asarray(sum(view for _, view in taps(ones, op.windows, op.padding)))
    return [activated(call, np.sign(total) * ((np.abs(total) + count // 2) // count), op.fused_activation_function)]


@integer_kernel(pooling.MaxPool2D)
def maximum(call: Call) -> list[Array]:
    """Take the largest step."""
    op = call.node.op
    assert isinstance(op, pooling.MaxPool2D)
    return [activated(call, op.pool(call.array(0)), op.fused_activation_function)]
