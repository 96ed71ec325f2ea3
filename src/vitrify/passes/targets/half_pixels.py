"""Nearest neighbours of half pixels, where whole pixels give the same."""

from __future__ import annotations

from dataclasses import replace

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place
from vitrify.passes.targets.resizes import nearest


@fix("half-pixels", ops.ResizeNearestNeighbor, mends=("vip8000.half-pixel",),
     says="takes whole pixels instead of half ones where both choose the same: in enlarging by a whole number",
     wins="a delegate that lacks the attribute takes the node, and the graph stays in one piece")
def half_pixels(place: Place) -> Tensor | None:
    """Clear the flag when every row and column of the output is taken from the same place as before."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.ResizeNearestNeighbor)
    if not op.half_pixel_centers or len(x.shape) != 4 or not place.is_static:
        return None
    plain = replace(op, half_pixel_centers=False)
    for axis, name in ((1, "rows"), (2, "columns")):
        before, after = x.shape[axis], place.output.shape[axis]
        old, new = (nearest(one, before, after) for one in (op, plain))
        if old != new:
            apart = next(i for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
            place.decline(f"{before} {name} become {after}, {after / before:g} times as many: number {apart} is "
                          f"number {old[apart]} of the input with half pixels, {new[apart]} without")
            return None
    return place.add(plain, [x, place.node.input(1)], place.output)
