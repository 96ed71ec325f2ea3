"""Permutations that are too large for the NPU at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import MOST_PARTS, Place

_EXTENT, _AXES = 1 << 16, 4


@fix("transposes", ops.Transpose, mends=("ethos-u.transpose", "ethos-u.rank", "ethos-u.wide-transpose"), cheaper=True,
     says="joins axes that stay together where there are more than four, and permutes slices that are small enough",
     wins="a permutation that would be left to the CPU; Vela 5.2 dies of some of 5 and 6 axes")
def transposes(place: Place) -> Tensor | None:
    """Fewest axes first, then slices of the axis that comes first."""
    x, perm = place.x, place.ints(1)
    if perm is None or not place.is_static or len(perm) != len(x.shape):
        return None
    shape, order = joined(x.shape, [axis % len(perm) for axis in perm])
    if order == list(range(len(order))):
        return place.reshape(x, place.output.shape)
    if (len(perm) <= _AXES or len(shape) == len(perm)) and _fits(shape, 0, shape[0]):
        return None
    flat = place.reshape(x, shape)
    if _fits(shape, 0, shape[0]):
        return place.reshape(place.transpose(flat, order), place.output.shape)
    found = min(((parts, axis) for axis in range(len(shape)) if (parts := _parts(shape, axis))), default=None)
    if found is None:
        return None
    parts, axis = found
    size = shape[axis] // parts
    pieces = [place.transpose(place.cut(flat, axis, i * size, size), order) for i in range(parts)]
    return place.reshape(place.concat(pieces, order.index(axis)), place.output.shape)


def _parts(shape: Sequence[int], axis: int) -> int:
    """Into how many parts an axis is to be cut at least; 0 where that does not help."""
    return next((n for n in range(1, min(shape[axis], MOST_PARTS) + 1)
                 if shape[axis] % n == 0 and _fits(shape, axis, shape[axis] // n)), 0)


def joined(shape: Sequence[int], perm: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return shape and permutation with neighbours that stay together as one axis, and without axes of one element."""
    groups: list[list[int]] = []
    for axis in perm:
        if shape[axis] == 1:
            continue
        between = range(groups[-1][-1] + 1, axis) if groups else range(0)
        if groups and axis > groups[-1][-1] and all(shape[i] == 1 for i in between):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    ranked = sorted(groups)
    return ([math.prod(shape[axis] for axis in group) for group in ranked] or [1],
            [ranked.index(group) for group in groups] or [0])


def _fits(shape: Sequence[int], axis: int, extent: int) -> bool:
    """True when all axes but two of a part are small enough together."""
    part = sorted([*shape[:axis], extent, *shape[axis + 1:]])
    return max(part) <= _EXTENT and (len(part) <= 3 or math.prod(part[2:]) <= _EXTENT)
