"""Means over batches, depth and long axes, reshaped until the NPU takes them."""

from __future__ import annotations

import math
from itertools import groupby

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.layout.rules_axes import axis_list
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_LONGEST = 4096


@fix("depth-means", ops.Mean, mends=("ethos-u.depth-reduction",),
     says="takes the places as one row of pixels, whose channels are averaged; a TRANSPOSE where that is not enough",
     wins="a mean that would be left to the CPU")
@fix("large-means", ops.Mean, mends=("ethos-u.mean-extent",),
     says="takes a long axis as height and width of an image",
     wins="a mean that would be left to the CPU; nothing is moved")
def rearranged(place: Place) -> Tensor | None:
    """One function for both, as one rearrangement mends them together."""
    x, axes = place.x, axis_list(place.node.optional(1), len(place.x.shape))
    if not axes or not place.is_static:
        return None
    marked = [(axis in axes, extent) for axis, extent in enumerate(x.shape) if extent > 1]
    groups = [(reduced, math.prod(extent for _, extent in some)) for reduced, some in
              groupby(marked, key=lambda one: one[0])]
    y = _mean(place, x, groups) or _turned(place, x, set(axes))
    return None if y is None else place.reshape(y, place.output.shape)


def _mean(place: Place, x: Tensor, groups: list[tuple[bool, int]]) -> Tensor | None:
    """A mean over one group of axes that lie together."""
    extents = [extent for _, extent in groups]
    match [reduced for reduced, _ in groups]:
        case [False, True] if extents[1] <= _LONGEST:
            return _over(place, place.reshape(x, (1, 1, *extents)), 3)
        case [False, True, False] if extents[1] <= _LONGEST:
            return _over(place, place.reshape(x, (1, *extents)), 2)
        case [True, False]:
            return _over_image(place, x, *extents)
        case [True]:
            return _over_image(place, x, extents[0], 1)
    return None


def _over_image(place: Place, x: Tensor, reduced: int, kept: int) -> Tensor | None:
    wide = next((n for n in range(min(_LONGEST, reduced), 0, -1) if reduced % n == 0), 1)
    if reduced // wide > _LONGEST:
        return None
    shape = (1, reduced // wide, wide, kept)
    return _over(place, place.reshape(x, shape), *((1, 2) if reduced > wide else (2,)))


def _over(place: Place, x: Tensor, *axes: int) -> Tensor:
    return place.add(ops.Mean(keep_dims=True), [x, place.constant(axes, what="axes")], place.output)


def _turned(place: Place, x: Tensor, axes: set[int]) -> Tensor | None:
    """The axes that are averaged first."""
    order = [*sorted(axes), *(axis for axis in range(len(x.shape)) if axis not in axes)]
    reduced = math.prod(x.shape[axis] for axis in axes)
    return _over_image(place, place.transpose(x, order), reduced, x.size // reduced)
