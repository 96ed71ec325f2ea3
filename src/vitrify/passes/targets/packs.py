"""PACK and UNPACK as what they move."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import UNSUPPORTED
from vitrify.passes.targets.place import Place


@fix("packs", ops.Pack, mends=(*UNSUPPORTED, "vip8000.no-pack"),
     says="gives each input an axis of one element, and joins them along it",
     wins="the graph stays in one piece: the delegate's own table switches PACK of 8-bit values off")
def packs(place: Place) -> Tensor | None:
    """RESHAPE and CONCATENATION."""
    op, inputs = place.node.op, [t for t in place.node.inputs if t is not None]
    assert isinstance(op, ops.Pack)
    if not place.is_static or any(t.quantization != place.output.quantization for t in inputs):
        return None
    axis = op.axis % len(place.output.shape)
    shape = [*place.output.shape[:axis], 1, *place.output.shape[axis + 1:]]
    if not inputs[0].shape:
        shape = [1]
    return place.concat([place.reshape(t, shape) for t in inputs], axis)


@fix("unpacks", ops.Unpack, mends=(*UNSUPPORTED, "vip8000.no-pack"),
     says="takes each part as a slice, without its axis", wins="the graph stays in one piece")
def unpacks(place: Place) -> list[Tensor] | None:
    """SLICE and RESHAPE."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.Unpack)
    if not place.is_static:
        return None
    axis = op.axis % len(x.shape)
    parts = range(place.count(x.shape[axis]))
    return [place.reshape(place.cut(x, axis, i, 1), place.output.shape) for i in parts]
