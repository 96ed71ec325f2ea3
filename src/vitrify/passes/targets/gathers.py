"""GATHER with known indices, and STRIDED_SLICE with steps that the NPU lacks, as slices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import UNSUPPORTED
from vitrify.passes.targets.place import Place


@fix("gathers", ops.Gather, mends=("ethos-u.gather-axis", *UNSUPPORTED),
     says="takes known indices as slices, one for each run of indices that follow one another",
     wins="an operator that the NPU lacks becomes addressing")
def gather(place: Place) -> Tensor | None:
    """Constant indices along one axis."""
    op, chosen = place.node.op, place.ints(1)
    assert isinstance(op, ops.Gather)
    if chosen is None or op.batch_dims or not place.is_static or place.x.data is not None:
        return None
    axis = op.axis % len(place.x.shape)
    return place.reshape(pick(place, place.x, axis, chosen), place.output.shape)


@fix("slices", ops.StridedSlice, mends=("ethos-u.slice-stride",),
     says="takes the axis that has steps as width of an image; what goes backwards is joined in that order",
     wins="a slice that would be left to the CPU")
def slices(place: Place) -> Tensor | None:
    """One axis after the other."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.StridedSlice)
    begin, end, strides = (place.ints(i) for i in (1, 2, 3))
    if begin is None or end is None or strides is None or not place.is_static or op.ellipsis_mask or op.new_axis_mask \
            or op.offset:
        return None
    for axis, extent in enumerate(place.x.shape[:len(begin)]):
        whole = slice(None if op.begin_mask & 1 << axis else begin[axis],
                      None if op.end_mask & 1 << axis else end[axis], strides[axis])
        if op.shrink_axis_mask & 1 << axis:
            whole = slice(begin[axis] % extent, begin[axis] % extent + 1)
        x = pick(place, x, axis, range(extent)[whole])
    return place.reshape(x, place.output.shape)


def pick(place: Place, x: Tensor, axis: int, chosen: Sequence[int]) -> Tensor:
    """Return the slices of one axis with those numbers, in that order."""
    if list(chosen) == list(range(x.shape[axis])):
        return x
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1:])
    shape = (*x.shape[:axis], len(chosen), *x.shape[axis + 1:])
    gaps = {after - before for before, after in pairwise(chosen)}
    if len(gaps) == 1 and min(gaps) > 1:
        flat = place.reshape(x, (1, outer, x.shape[axis], inner))
        step = gaps.pop()
        return place.reshape(place.steps(flat, (0, 0, chosen[0], 0), (1, outer, chosen[-1] + 1, inner),
                                         (1, 1, step, 1)), shape)
    runs = np.split(np.asarray(chosen), 1 + np.flatnonzero(np.diff(chosen) != 1))
    place.count(len(runs))
    if len(runs) == 1:
        return place.cut(x, axis, int(runs[0][0]), len(runs[0]))
    flat = place.reshape(x, (1, outer, x.shape[axis], inner))
    cuts: dict[tuple[int, int], Tensor] = {}
    parts = []
    for run in runs:
        key = int(run[0]), len(run)
        if key not in cuts:
            cuts[key] = place.cut(flat, 2, *key)
        parts.append(cuts[key])
    return place.reshape(place.concat(parts, 2), shape)
