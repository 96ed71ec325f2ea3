"""LOG_SOFTMAX, which the NPU lacks, in the EXP and LOG that it has as tables."""

from __future__ import annotations

import math

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Quantization, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import UNSUPPORTED
from vitrify.passes.targets.place import Place

_LARGEST = (1 << 15) - 1
_LOWEST = 17.0
"""Below what LOG_SOFTMAX can say in 8 bits, whose steps TFLite fixes at a sixteenth; no power of two, for which LiteRT
has a SUB of its own that cannot narrow a range."""
_FEW, _MOST = 32, 1024
"""Values of a row. A table of 16 bits has 256 entries above zero, and a sum of more than a few may lie between two."""


@fix("log-softmaxes", ops.LogSoftmax, mends=UNSUPPORTED, exactness=Exactness.ROUNDING,
     says="subtracts the largest value and the logarithm of the sum of the powers, in 16 bits",
     wins="scores that are finished on the NPU")
def log_softmax(place: Place) -> Tensor | None:
    """x - max(x) - log(sum(exp(x - max(x)))); the sum is a convolution with ones, and at least 1."""
    x, scales = place.x, place.x.quantization
    if x.dtype is not DType.INT8 or scales is None or scales.is_per_axis or not x.shape or not place.is_static \
            or not 1 < x.shape[-1] <= _MOST or place.output.dtype is not DType.INT8:
        return None
    step, count = float(scales.scale[0]), x.shape[-1]
    rows = place.reshape(x, (1, 1, x.size // count, count))
    most = place.add(ops.ReduceMax(keep_dims=True), [rows, place.constant([3], what="axis")])
    reach = _wide(step * 256 / _LARGEST)
    wide, largest = (place.add(ops.Quantize(), [t], reach) for t in (rows, most))
    below = place.add(ops.Sub(), [wide, largest], _wide(min(step * 256, _LOWEST) / _LARGEST))
    powers = place.add(ops.Exp(), [below], _wide(1 / _LARGEST))
    total = _sum(place, powers, count)
    whole = place.add(ops.Sub(), [below, _logarithm(place, total, count)],
                      _wide((min(step * 256, _LOWEST) + math.log(count)) / _LARGEST))
    return place.reshape(place.add(ops.Quantize(), [whole], place.output), x.shape)


def _sum(place: Place, x: Tensor, count: int) -> Tensor:
    ones = place.constant(np.ones((1, 1, 1, count), np.int8), Quantization.per_axis(np.ones(1, np.float32), 0), "ones")
    bias = place.constant(np.zeros(1, np.int64), Quantization.per_axis(np.full(1, 1 / _LARGEST, np.float32), 0), "bias")
    return place.add(ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID), [x, ones, bias],
                     _wide(count / _LARGEST))


def _logarithm(place: Place, total: Tensor, count: int) -> Tensor:
    """Sums near 1 are looked up in finer steps of their own: log(s) = log(max(s, edge)) + log(min(s, edge) / edge)."""
    scale = _wide(math.log(count) / _LARGEST)
    if count <= _FEW:
        return place.add(ops.Log(), [total], scale)
    edge = place.constant(np.full((1, 1, 1, 1), _LARGEST // _FEW, np.int16), total.quantization, "edge")
    times = place.constant(np.full((1, 1, 1, 1), 1 << 14, np.int16), Quantization.per_tensor(_FEW / (1 << 14)), "times")
    large = place.add(ops.Log(), [place.add(ops.Maximum(), [total, edge])], scale)
    finer = place.add(ops.Mul(), [place.add(ops.Minimum(), [total, edge]), times], total)
    least = _wide(math.log(count) / _LARGEST)
    return place.add(ops.Sub(), [large, _short(place, finer, count, least)], least)


def _short(place: Place, finer: Tensor, count: int, scale: Tensor) -> Tensor:
    """How far below log(count) the finer logarithm is: what the bound left of it."""
    top = place.constant(np.full((1, 1, 1, 1), _LARGEST, np.int16), scale.quantization, "top")
    return place.add(ops.Sub(), [top, place.add(ops.Log(), [finer], scale)], scale)


def _wide(scale: float) -> Tensor:
    return Tensor("", DType.INT16, (), quantization=Quantization.per_tensor(scale))
