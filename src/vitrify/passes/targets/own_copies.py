"""Copies that keep the compiler from folding what it then reads wrongly.

Vela 5.2 folds a slice or a padding into the operator that reads it, and gets two kinds wrong, without a word. Both were
found by running its command streams on the host: the values differ from the reference kernels'.
"""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Node, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

SLICES = (ops.Slice, ops.StridedSlice, ops.Split, ops.SplitV)
_LEFT, _RIGHT = 127, 255
"""The most columns of padding that the registers IFM_PAD_LEFT and IFM_PAD_RIGHT hold."""
_COLUMNS = 2


@fix("own-slices", ops.BatchMatMul, ops.Sum, ops.ReduceMax, ops.ReduceMin, avoids="ethos-u.folded-slice",
     says="copies a slice before it is multiplied by a matrix, or reduced",
     wins="right results: Vela 5.2 folds such a slice into the operator, and multiplies or reduces the whole tensor")
def own_slices(place: Place) -> Tensor | None:
    """The first operand is its own maximum: exact, and no compiler folds it."""
    return _with_copy(place) if slice_read_by(place.node) is not None else None


@fix("own-paddings", ops.Conv2D, ops.DepthwiseConv2D, avoids="ethos-u.wide-padding",
     says="copies what was padded by more columns than the registers hold, before it is convolved",
     wins="right results: Vela 5.2 folds the padding into the convolution, where 128 columns become none")
def own_paddings(place: Place) -> Tensor | None:
    """As for slices."""
    return _with_copy(place) if padding_read_by(place.node) is not None else None


def slice_read_by(node: Node) -> Node | None:
    """Return the slice that the compiler may fold into a product or reduction; a RESHAPE may stand between."""
    source = node.input(0).producer
    while source is not None and isinstance(source.op, ops.Reshape):
        source = source.input(0).producer
    return source if source is not None and isinstance(source.op, SLICES) else None


def padding_read_by(node: Node) -> Node | None:
    """Return the PAD before a convolution whose columns do not fit the registers."""
    source = node.input(0).producer
    if source is None or not isinstance(source.op, ops.Pad | ops.PadV2):
        return None
    amounts = source.input(1).data
    if amounts is None or amounts.shape != (4, 2):
        return None
    left, right = (int(amount) for amount in amounts[_COLUMNS])
    return source if left > _LEFT or right > _RIGHT else None


def _with_copy(place: Place) -> Tensor | None:
    if not place.is_static:
        return None
    copy = place.add(ops.Maximum(), [place.x, place.x], place.x)
    return place.add(place.node.op, [copy, *place.node.inputs[1:]], place.output)
