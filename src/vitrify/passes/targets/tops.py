"""ARG_MAX along an axis that is not the last, or over more values than the NPU packs an index beside."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Quantization, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_DEPTH, _ROWS = 127, 1 << 16
_INT32 = 2
_UNIT = Quantization.per_tensor(1.0)
"""The compiler asks for a scale of whole numbers too."""


@fix("arg-max", ops.ArgMax, mends=("ethos-u.arg-max-axis",), says="brings the axis to the end first",
     wins="the choice is made on the NPU, and only indices leave it")
def arg_max(place: Place) -> Tensor | None:
    """A TRANSPOSE, or a RESHAPE where only extents of 1 are in between."""
    x, given = place.x, place.ints(1)
    if given is None or not place.is_static:
        return None
    rank = len(x.shape)
    axis = given[0] % rank
    kept = [i for i in range(rank) if i != axis]
    if all(x.shape[i] == 1 for i in range(axis + 1, rank)):
        turned = place.reshape(x, [x.shape[i] for i in (*kept, axis)])
    else:
        turned = place.transpose(x, [*kept, axis])
    return place.add(place.node.op, [turned, place.constant([rank - 1], what="axis")], place.output)


@fix("arg-max-tiles", ops.ArgMax, mends=("ethos-u.arg-max-depth",),
     says="chooses in tiles of 127 values at most, then the first tile that holds the largest value",
     wins="an index leaves the NPU instead of all scores")
def tiles(place: Place) -> Tensor | None:
    """The tile is the one whose maximum is above all before it and equal to the largest: one place of a mask."""
    x, given = place.x, place.ints(1)
    if given is None or not place.is_static or given[0] % len(x.shape) != len(x.shape) - 1 \
            or x.dtype is not DType.INT8 or place.output.dtype is not DType.INT32:
        return None
    rows, depth = x.size // x.shape[-1], x.shape[-1]
    count = place.count(-(-depth // _DEPTH))
    if count == 1 or rows > _ROWS:
        return None
    width = -(-depth // count)
    flat, again = place.reshape(x, (rows, depth)), count * width - depth
    if again:       # values that are there twice change nothing: the first of equals is chosen
        flat = place.concat([flat, place.cut(flat, 1, depth - again, again)], 1)
    each = place.reshape(flat, (1, rows, count, width))
    inside = place.add(ops.ArgMax(output_type=_INT32), [each, place.constant([3], what="axis")], _whole())
    largest = place.reshape(place.add(ops.ReduceMax(keep_dims=True), [each, place.constant([3], what="axis")]),
                            (1, rows, count, 1))
    mask = _first_of_largest(place, largest)
    starts = place.constant(np.arange(count, dtype=np.int32).reshape(1, 1, count) * width, _UNIT, "starts")
    index = place.add(ops.Mul(), [place.add(ops.Add(), [inside, starts], _whole()), mask], _whole())
    total = place.add(ops.Sum(keep_dims=True), [index, place.constant([2], what="axis")], _whole())
    shape = place.output.shape
    stated = place.reshape(total, shape)
    return place.add(ops.Transpose(), [stated, place.constant(range(len(shape)), what="permutation")], place.output)


def _first_of_largest(place: Place, largest: Tensor) -> Tensor:
    """1 where [1, rows, count, 1] first has its maximum; nowhere, if all are the lowest value, which is the first too.

    Of what came before, the value and the maximum, the first of the largest is number 1 there, else 0 or 2.
    """
    _, rows, count, _ = largest.shape
    lowest = place.constant(np.full((1, rows, count, 1), -128, np.int8), largest.quantization, "lowest")
    padded = place.concat([lowest, place.cut(largest, 2, 0, count - 1)], 2)
    window = ops.MaxPool2D(filter_height=1, filter_width=count, stride_h=1, stride_w=1, padding=ops.Padding.VALID)
    before = place.add(window, [padded])
    most = place.add(ops.ReduceMax(keep_dims=True), [largest, place.constant([2], what="axis")])
    spread = place.add(ops.Maximum(), [largest, most])
    three = place.concat([before, largest, spread], 3)
    chosen = place.add(ops.ArgMax(output_type=_INT32), [three, place.constant([3], what="axis")], _whole())
    two = place.constant(np.full((1, 1, 1), 2, np.int32), _UNIT, "two")
    return place.add(ops.Mul(), [chosen, place.add(ops.Sub(), [two, chosen], _whole())], _whole())


def _whole() -> Tensor:
    return Tensor("", DType.INT32, (), quantization=_UNIT)
