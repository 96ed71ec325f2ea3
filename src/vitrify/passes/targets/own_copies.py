"""Copies that keep the compiler from folding what it then reads wrongly.

Vela 5.2 folds a slice or a padding into the operator that reads it, or lets an operator write into the larger tensor
that it is a part of, and gets some of these wrong, without a word. They were found by running its command streams on
the host: the values differ from the reference kernels'.
"""

from __future__ import annotations

from math import prod

from vitrify import ops
from vitrify.ir import Node, Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

SLICES = (ops.Slice, ops.StridedSlice, ops.Split, ops.SplitV)
_LEFT, _RIGHT = 127, 255
"""The most columns of padding that the registers IFM_PAD_LEFT and IFM_PAD_RIGHT hold."""
_COLUMNS = 2
_AXES = 4


@fix("own-slices", ops.BatchMatMul, ops.Sum, ops.ReduceMax, ops.ReduceMin, avoids="ethos-u.folded-slice",
     says="copies a slice before it is multiplied by a matrix, or reduced",
     wins="right results: Vela 5.2 folds such a slice into the operator, and multiplies or reduces the whole tensor")
def own_slices(place: Place) -> Tensor | None:
    """The first operand is its own maximum: exact, and no compiler folds it."""
    source = slice_read_by(place.node)
    return _with_copy(place, source) if source is not None else None


@fix("own-paddings", ops.Conv2D, ops.DepthwiseConv2D, avoids="ethos-u.wide-padding",
     says="copies what was padded by more columns than the registers hold, before it is convolved",
     wins="right results: Vela 5.2 folds the padding into the convolution, where 128 columns become none")
def own_paddings(place: Place) -> Tensor | None:
    """As for slices."""
    return _with_copy(place) if padding_read_by(place.node) is not None else None


@fix("own-parts", ops.ResizeBilinear, ops.ReduceMax, avoids="ethos-u.placed-part",
     says="copies what was enlarged, or the largest of what was reduced, before it is joined with others or padded",
     wins="right results: Vela 5.2 makes such values in the place that they have in the joined tensor, with that "
     "tensor's extents")
def own_parts(place: Place) -> Tensor | None:
    """The values are their own maximum: exact, and the copy alone is written where it belongs."""
    node = place.node
    if not place.is_static or joined_part(node) is None:
        return None
    own = place.add(node.op, node.inputs, place.output)
    return place.add(ops.Maximum(), [own, own], place.output)


def joined_part(node: Node) -> Node | None:
    """Return the CONCATENATION or PAD into whose tensor the compiler lets a node write that then errs."""
    op, after, users = node.op, node.output.shape, list(dict.fromkeys(node.output.users))
    if node.output.is_output or len(users) != 1:
        return None
    if isinstance(op, ops.ResizeBilinear):
        before = node.input(0).shape
        if not op.half_pixel_centers or after[1:3] != (2 * before[1], 2 * before[2]):
            return None
    elif not isinstance(op, ops.ReduceMax):
        return None
    return users[0] if isinstance(users[0].op, ops.Concatenation | ops.Pad | ops.PadV2) else None


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


def _with_copy(place: Place, source: Node | None = None) -> Tensor | None:
    """Copy what the node reads; what a slice of more than four axes gives is copied in three.

    Vela 5.2 calls itself without end (SIGSEGV) over what reads such a slice through a RESHAPE to fewer axes; three axes
    that keep the last two do not have it. Found on Swin, whose attention splits [3, windows, heads, rows, columns].
    """
    if not place.is_static:
        return None
    x, taken = place.x, None if source is None else _read_of(place.node, source)
    if taken is None or len(taken.shape) <= _AXES:
        copy = place.add(ops.Maximum(), [x, x], x)
    else:
        flat = place.reshape(taken, (prod(taken.shape[:-2]), *taken.shape[-2:]))
        copy = place.reshape(place.add(ops.Maximum(), [flat, flat], flat), x.shape)
    return place.add(place.node.op, [copy, *place.node.inputs[1:]], place.output)


def _read_of(node: Node, source: Node) -> Tensor | None:
    """The output of ``source`` that ``node`` reads, through RESHAPEs."""
    tensor = node.input(0)
    while tensor.producer is not None and tensor.producer is not source:
        tensor = tensor.producer.input(0)
    return tensor if tensor.producer is source else None
