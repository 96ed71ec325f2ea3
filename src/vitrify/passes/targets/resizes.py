"""Resizes by factors that the NPU lacks: repeated and chosen pixels, exactly; interpolation as a product."""

from __future__ import annotations

import math

import numpy as np

from vitrify import ops
from vitrify.ir import Exactness, Quantization, Tensor
from vitrify.ir.graph import Array
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.gathers import pick
from vitrify.passes.targets.place import Place

_LARGEST = 127


@fix("resizes", ops.ResizeNearestNeighbor, ops.ResizeBilinear, mends=("ethos-u.resize-factor", "neutron.resize-factor"),
     says="repeats rows and columns by joining them with themselves, or chooses them by slices; a resize that keeps "
     "the size is left out",
     wins="a resize by a factor other than 2, 4 or 8, or by two factors, that would be left to the CPU")
def resizes(place: Place) -> Tensor | None:
    """Nearest neighbours of any factor; of bilinear ones, those that keep the size."""
    op, x = place.node.op, place.x
    if len(x.shape) != 4 or not place.is_static:
        return None
    if x.shape == place.output.shape:
        return place.reshape(place.reshape(x, (x.size,)), x.shape) if x.producer is None else x
    if not isinstance(op, ops.ResizeNearestNeighbor):
        return None
    for axis in (1, 2):
        x = _chosen(place, x, axis, nearest(op, x.shape[axis], place.output.shape[axis]))
    return x


def nearest(op: ops.ResizeNearestNeighbor, before: int, after: int) -> list[int]:
    """Return the row that each row of the output is."""
    rows = np.arange(before, dtype=np.float32).reshape(1, before, 1, 1)
    (found,) = op.evaluate([rows, np.array([after, 1], np.int32)])
    return [int(value) for value in found.reshape(-1)]


def _chosen(place: Place, x: Tensor, axis: int, rows: list[int]) -> Tensor:
    times, rest = divmod(len(rows), x.shape[axis])
    if rest or rows != [i // times for i in range(len(rows))]:
        return pick(place, x, axis, rows)
    return repeat(place, x, axis, times)


def repeat(place: Place, x: Tensor, axis: int, times: int) -> Tensor:
    """Each slice of an axis ``times`` times, behind each other."""
    outer, inner = math.prod(x.shape[:axis + 1]), math.prod(x.shape[axis + 1:])
    flat = place.reshape(x, (1, outer, 1, inner))
    joined = place.concat([flat] * place.count(times), 2)
    return place.reshape(joined, (*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1:]))


@fix("bilinear-products", ops.ResizeBilinear,
     mends=("ethos-u.resize-factor", "ethos-u.resize-power", "neutron.resize-factor"), exactness=Exactness.APPROXIMATE,
     says="interpolates along height, then along width, by products with constant 8-bit weights",
     wins="a resize that would be left to the CPU, two crossings of a large tensor, for up to two steps of error")
def bilinear(place: Place) -> Tensor | None:
    """The matrix of the interpolation along an axis is the weights of a 1x1 convolution on that axis as channels."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.ResizeBilinear)
    if len(x.shape) != 4 or not place.is_static or x.quantization is None or x.dtype.bits != 8 or x.shape[0] != 1 \
            or x.dtype.numpy != np.dtype(np.int8):
        return None
    _, height, width, channels = x.shape
    _, high, wide, _ = place.output.shape
    if height != high:
        rows = place.transpose(place.reshape(x, (1, 1, height, width * channels)), (0, 1, 3, 2))
        y = _product(place, rows, _matrix(op, height, high))
        x = place.reshape(place.transpose(y, (0, 1, 3, 2)), (1, high, width, channels))
    if width != wide:
        y = _product(place, place.transpose(x, (0, 1, 3, 2)), _matrix(op, width, wide))
        x = place.transpose(y, (0, 1, 3, 2))
    return x


def _matrix(op: ops.ResizeBilinear, before: int, after: int) -> Array:
    """What each row of the output takes of each row of the input."""
    unit = np.eye(before, dtype=np.float32).reshape(1, before, 1, before)
    (found,) = op.evaluate([unit, np.array([after, 1], np.int32)])
    return np.asarray(found.reshape(after, before))


def _product(place: Place, x: Tensor, matrix: Array) -> Tensor:
    scale = (np.abs(matrix).max(axis=1) / _LARGEST).astype(np.float32)
    data = np.rint(matrix / scale[:, None]).astype(np.int8)
    after, before = matrix.shape
    assert x.quantization is not None
    inputs = [x, place.constant(data.reshape(after, 1, 1, before), Quantization.per_axis(scale, 0), "weights"),
              place.constant(np.zeros(after, np.int32), Quantization.per_axis(scale * x.quantization.scale[0], 0),
                             "bias")]
    return place.add(ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID), inputs, place.output)
