"""SUM over several axes as one over a single axis."""

from __future__ import annotations

import math
from itertools import groupby

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.layout.rules_axes import axis_list
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place


@fix("one-axis-sums", ops.Sum, avoids="ethos-u.sum-wrong",
     says="lays axes that are summed up behind one another as one axis",
     wins="right results: Vela 5.2 reduces only one of several axes, without a word")
def sums(place: Place) -> Tensor | None:
    """A RESHAPE where the axes are neighbours, else a TRANSPOSE as well."""
    x, axes = place.x, axis_list(place.node.optional(1), len(place.x.shape))
    if axes is None or not place.is_static or sum(x.shape[axis] > 1 for axis in set(axes)) < 2:
        return None
    marked = [(axis in axes, extent) for axis, extent in enumerate(x.shape) if extent > 1]
    groups = [(summed, math.prod(extent for _, extent in some)) for summed, some in groupby(marked, key=lambda m: m[0])]
    if sum(summed for summed, _ in groups) > 1:
        order = [*sorted(axes), *(axis for axis in range(len(x.shape)) if axis not in axes)]
        x = place.transpose(x, order)
        summed = math.prod(place.x.shape[axis] for axis in axes)
        groups = [(True, summed), (False, x.size // summed)]
    first = next(i for i, (summed, _) in enumerate(groups) if summed)
    before = math.prod(extent for _, extent in groups[:first])
    after = math.prod(extent for _, extent in groups[first + 1:])
    flat = place.reshape(x, (1, before, groups[first][1], after))
    y = place.add(ops.Sum(keep_dims=True), [flat, place.constant([2], what="axes")], place.output)
    return place.reshape(y, place.output.shape)
