"""REDUCE_MAX and REDUCE_MIN that keep their axes, and drop them behind.

Vela 5.2 takes the shape of the result for that of the operation: where an axis is dropped with others before it, its
command stream reduces windows that overlap. Found by running the streams on the host.
"""

from __future__ import annotations

import math

from vitrify import ops
from vitrify.ir import Node, Tensor
from vitrify.passes.layout.rules_axes import axis_list
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place


@fix("kept-axes", ops.ReduceMax, ops.ReduceMin, avoids="ethos-u.dropped-axis",
     says="keeps the axes that are reduced, and drops them by a RESHAPE",
     wins="right results: Vela 5.2 reduces overlapping windows where an axis is dropped behind others")
def kept_axes(place: Place) -> Tensor | None:
    """The same values in the same order."""
    if not drops_axis(place.node) or not place.is_static:
        return None
    kind = type(place.node.op)
    assert kind is ops.ReduceMax or kind is ops.ReduceMin
    kept = place.add(kind(keep_dims=True), list(place.node.inputs), place.output)
    return place.reshape(kept, place.output.shape)


def drops_axis(node: Node) -> bool:
    """True for an extreme over axes behind others of more than one element, which are dropped."""
    x, op = node.input(0), node.op
    if not isinstance(op, ops.ReduceMax | ops.ReduceMin) or op.keep_dims:
        return False
    axes = axis_list(node.optional(1), len(x.shape))
    return axes is not None and len(axes) > 0 and math.prod(x.shape[:min(axes)]) > 1
