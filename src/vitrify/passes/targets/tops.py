"""ARG_MAX along an axis that is not the last."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place


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
