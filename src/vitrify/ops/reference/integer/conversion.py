"""Real values to steps, steps to other steps, and back.

Source: TFLite kernels/quantize.cc, dequantize.cc, internal/reference/quantize.h, requantize.h, dequantize.h.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.graph import Array
from vitrify.ops.conversion import Dequantize, Quantize
from vitrify.ops.reference.integer.fixed_point import multiply, quantize_multiplier, wrapped
from vitrify.ops.reference.integer.registry import Call, integer_kernel


@integer_kernel(Quantize)
def quantize(call: Call) -> list[Array]:
    """Round real values to steps, or rescale steps."""
    x = call.array(0)
    if x.dtype.kind == "f":
        found = call.node.output.quantization
        assert found is not None
        with np.errstate(all="ignore"):
            return [found.quantize(x, call.dtype)]
    by = quantize_multiplier(float(call.affine(0).scale) / float(call.output.scale))
    return [call.clipped(wrapped(multiply(call.shifted(0), by) + call.output.zero))]


@integer_kernel(Dequantize)
def dequantize(call: Call) -> list[Array]:
    """Multiply the shifted steps by the scale."""
    if call.array(0).dtype.kind == "f":
        return list(call.node.op.evaluate(call.arrays))
    return [call.scales(0).dequantize(call.array(0))]
