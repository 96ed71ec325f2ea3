"""SQRT as a product with RSQRT, which the NPU has as a table."""

from __future__ import annotations

import math

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Quantization, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import UNSUPPORTED
from vitrify.passes.targets.place import Place

_LARGEST = (1 << 15) - 1


@fix("square-roots", ops.Sqrt, mends=UNSUPPORTED, exactness=Exactness.APPROXIMATE,
     says="multiplies by the inverse root, in 16 bits",
     wins="the NPU has tables of RSQRT, and none of SQRT")
def square_root(place: Place) -> Tensor | None:
    """x * rsqrt(x); the inverse root of the smallest step above zero sets the scale."""
    x, scales = place.x, place.x.quantization
    if x.dtype is not DType.INT8 or scales is None or scales.is_per_axis or x.data is not None or not x.shape:
        return None
    step = float(scales.scale[0])
    wide = place.add(ops.Quantize(), [x], _wide(step * 256 / _LARGEST))
    inverse = place.add(ops.Rsqrt(), [wide], _wide(1 / math.sqrt(step) / _LARGEST))
    root = place.add(ops.Mul(), [wide, inverse], _wide(math.sqrt(step * 256) / _LARGEST))
    return place.add(ops.Quantize(), [root], place.output)


def _wide(scale: float) -> Tensor:
    return Tensor("", DType.INT16, (), quantization=Quantization.per_tensor(scale))


@fix("unit-lengths", ops.L2Normalization, mends=UNSUPPORTED, exactness=Exactness.APPROXIMATE,
     says="multiplies by the inverse root of the sum of the squares, in 16 bits",
     wins="an embedding that is finished on the NPU")
def unit_length(place: Place) -> Tensor | None:
    """x * rsqrt(sum(x * x)); the sum is a convolution with ones, for which the compiler needs less memory than a MEAN.

    The scale of the inverse root leaves a mean of half a step of room.
    """
    x, scales, op = place.x, place.x.quantization, place.node.op
    assert isinstance(op, ops.L2Normalization)
    if x.dtype is not DType.INT8 or scales is None or scales.is_per_axis or len(x.shape) < 2 or not place.is_static \
            or op.fused_activation_function is not ops.Activation.NONE:
        return None
    step, count = float(scales.scale[0]), x.shape[-1]
    reach = step * max(127 - int(scales.zero_point[0]), 128 + int(scales.zero_point[0]))
    rows = place.reshape(x, (1, 1, x.size // count, count))
    wide = place.add(ops.Quantize(), [rows], _wide(step * 256 / _LARGEST))
    square = place.add(ops.Mul(), [wide, wide], _wide(reach * reach / _LARGEST))
    total = _sum(place, square, count)
    inverse = place.add(ops.Rsqrt(), [total], _wide(1 / (step * math.sqrt(count)) / _LARGEST))
    unit = place.add(ops.Mul(), [wide, inverse], _wide(1 / _LARGEST))
    return place.reshape(place.add(ops.Quantize(), [unit], place.output), x.shape)


def _sum(place: Place, x: Tensor, count: int) -> Tensor:
    """Of all channels, as steps of as many times the size."""
    assert x.quantization is not None
    scale = float(x.quantization.scale[0])
    ones = place.constant(np.ones((1, 1, 1, count), np.int8), Quantization.per_axis(np.ones(1, np.float32), 0), "ones")
    bias = place.constant(np.zeros(1, np.int64), Quantization.per_axis(np.full(1, scale, np.float32), 0), "bias")
    return place.add(ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID), [x, ones, bias],
                     _wide(scale * count))
