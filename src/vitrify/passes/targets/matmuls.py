"""BATCH_MATMUL in forms that the NPU takes, or is faster at."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Quantization, Tensor
from vitrify.passes.graphs import is_dense
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_COLUMNS = 1 << 16


@fix("constant-matmuls", ops.BatchMatMul, cheaper=True,
     says="multiplies by a constant matrix with a 1x1 convolution",
     wins="weights are packed for the convolution engine; a product of two computed values is made of additions and "
     "multiplications one by one")
def constant(place: Place) -> Tensor | None:
    """A constant on the right with one matrix for all."""
    op, x, y = place.node.op, place.x, place.node.input(1)
    assert isinstance(op, ops.BatchMatMul)
    scales = y.quantization
    if x.dtype is not DType.INT8 or y.dtype is not DType.INT8 or y.data is None or not is_dense(y) or op.adj_x \
            or scales is None or scales.is_per_axis or scales.zero_point.any() or y.size != y.shape[-1] * y.shape[-2] \
            or x.data is not None or not place.is_static or x.quantization is None:
        return None
    matrix = y.data.reshape(y.shape[-2:])
    weights = np.ascontiguousarray(matrix if op.adj_y else matrix.T)
    bias = place.constant(np.zeros(len(weights), np.int32),
                          Quantization.per_tensor(float(scales.scale[0]) * float(x.quantization.scale[0])), "bias")
    rows = place.reshape(x, (1, 1, x.size // x.shape[-1], x.shape[-1]))
    filters = place.constant(weights.reshape(len(weights), 1, 1, -1), scales, "weights")
    y = place.add(ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID), [rows, filters, bias], place.output)
    return place.reshape(y, place.output.shape)


@fix("matmuls", ops.BatchMatMul, mends=("ethos-u.matmul-extent",),
     says="computes at most 65536 columns of a product at a time", wins="nothing is left to the CPU")
def columns(place: Place) -> Tensor | None:
    """Slices of the right factor."""
    op, y = place.node.op, place.node.input(1)
    assert isinstance(op, ops.BatchMatMul)
    if not place.is_static or y.data is not None:
        return None
    axis = len(y.shape) - (2 if op.adj_y else 1)
    whole, last = y.shape[axis], len(place.output.shape) - 1
    if whole <= _COLUMNS:
        return None
    starts = range(0, place.count(-(-whole // _COLUMNS)) * _COLUMNS, _COLUMNS)
    parts = [place.add(op, [place.x, place.cut(y, axis, start, min(_COLUMNS, whole - start))], place.output)
             for start in starts]
    return place.concat(parts, last)


@fix("int8-matmuls", ops.BatchMatMul, mends=("ethos-u.matmul-type",), exactness=Exactness.APPROXIMATE,
     says="rounds both factors of a product to 8 bits", wins="an int16 product that would be left to the CPU")
def narrow(place: Place) -> Tensor | None:
    """QUANTIZE before and behind, on the range that the 16 bits have."""
    if place.x.dtype is not DType.INT16 or not place.is_static:
        return None
    factors = [_narrowed(place, tensor) for tensor in (place.x, place.node.input(1))]
    if factors[0] is None or factors[1] is None or place.output.quantization is None:
        return None
    like = Tensor("", DType.INT8, (), quantization=_steps(place.output.quantization))
    y = place.add(place.node.op, factors, like)
    return place.add(ops.Quantize(), [y], place.output)


def _narrowed(place: Place, x: Tensor) -> Tensor | None:
    if x.quantization is None or x.quantization.is_per_axis or x.data is not None:
        return None
    like = Tensor("", DType.INT8, (), quantization=_steps(x.quantization))
    return place.add(ops.Quantize(), [x], like)


def _steps(wide: Quantization) -> Quantization:
    return Quantization.per_tensor(float(wide.scale[0]) * 256)
