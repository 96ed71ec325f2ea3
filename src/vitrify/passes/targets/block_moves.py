"""DEPTH_TO_SPACE and SPACE_TO_DEPTH as slices that are joined along another axis."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.codes import UNSUPPORTED
from vitrify.passes.targets.place import Place


@fix("depth-to-space", ops.DepthToSpace, mends=UNSUPPORTED,
     says="takes the channels of each row of a block, and joins these rows",
     wins="an operator that the NPU lacks becomes one slice per row of a block")
def depth_to_space(place: Place) -> Tensor | None:
    """Channels into rows: [N,H,W,b*b*C] is H rows of b parts of [W, b*C], which stand one below the other."""
    op = place.node.op
    assert isinstance(op, ops.DepthToSpace)
    if len(place.x.shape) != 4 or not place.is_static:
        return None
    return rows_from_channels(place, place.x, op.block_size, op.block_size)


def rows_from_channels(place: Place, x: Tensor, high: int, wide: int) -> Tensor:
    """Spread the channels [high, wide, C] of each pixel over an area of ``high`` rows and ``wide`` columns."""
    count, height, width, channels = x.shape
    rows = count * height
    part = channels // high
    parts = [place.reshape(place.cut(x, 3, i * part, part), (1, rows, 1, width * part))
             for i in range(place.count(high))]
    joined = place.concat(parts, 2)
    return place.reshape(joined, (x.shape[0], x.shape[1] * high, width * wide, part // wide))


@fix("space-to-depth", ops.SpaceToDepth, mends=UNSUPPORTED,
     says="takes every n-th row of blocks, whose pixels side by side are channels, and joins these channels",
     wins="an operator that the NPU lacks becomes one slice per row of a block")
def space_to_depth(place: Place) -> Tensor | None:
    """Rows into channels: the other way round."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.SpaceToDepth)
    if len(x.shape) != 4 or not place.is_static:
        return None
    size = op.block_size
    count, height, width, channels = x.shape
    rows = place.reshape(x, (1, count * height // size, size, width * channels))
    shape = (count, height // size, width // size, size * channels)
    parts = [place.reshape(place.cut(rows, 2, i, 1), shape) for i in range(place.count(size))]
    return place.concat(parts, 3)
