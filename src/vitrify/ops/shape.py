"""Operators that change the shape, or the place of values, and keep every value; blocks are in ``blocks``.

Source: TFLite kernels/reshape.cc, squeeze.cc, expand_dims.cc, transpose.cc, reverse.cc, tile.cc, broadcast_to.cc.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import legality, plain
from vitrify.ops.base import (
    Array,
    Arrays,
    Inputs,
    Shape,
    TensorType,
    axes_of,
    axis_of,
    broadcast,
    constant_ints,
    expect,
    given,
    infer_from_arrays,
)
from vitrify.ops.blocks import BatchToSpaceND, DepthToSpace, SpaceToBatchND, SpaceToDepth
from vitrify.ops.int8 import Int8Rule

__all__ = ["BatchToSpaceND", "Bitcast", "BroadcastTo", "DepthToSpace", "ExpandDims", "Reshape", "ReverseV2",
           "SpaceToBatchND", "SpaceToDepth", "Squeeze", "Tile", "Transpose"]


class Reshaping(Operator):
    """The same values in the same order, in another shape."""

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Give the values their new shape."""
        (inferred,) = infer_from_arrays(self, inputs)
        (x,) = given(self, inputs[:1], 1)
        return [x.reshape(inferred.shape)]


@operator
class Reshape(Reshaping):
    """The shape comes from input 1 where there is one, else from ``new_shape``; one extent may be -1."""

    name = "RESHAPE"
    options = "ReshapeOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))
    new_shape: tuple[int, ...] = ()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the new shape."""
        (x,) = given(self, inputs, 1, 2)
        has_input = len(inputs) > 1 and inputs[1] is not None
        wanted = constant_ints(self, inputs, 1, "new shape") if has_input else tuple(self.new_shape)
        if not has_input and wanted == (0,):     # how old converters wrote a scalar
            wanted = ()
        free = [i for i, extent in enumerate(wanted) if extent == -1]
        known = math.prod(extent for extent in wanted if extent != -1)
        problem = f"cannot bring {x.size} elements {list(x.shape)} to {list(wanted)}"
        expect(self, len(free) <= 1 and all(extent >= -1 for extent in wanted), problem, inputs)
        if free:
            expect(self, known > 0 and x.size % known == 0, problem, inputs)
            wanted = tuple(x.size // known if extent == -1 else extent for extent in wanted)
        expect(self, math.prod(wanted) == x.size, problem, inputs)
        return [TensorType(x.dtype, wanted)]


@operator
class Squeeze(Reshaping):
    """Without the axes ``squeeze_dims``, which have extent 1; without all such axes when none is named."""

    name = "SQUEEZE"
    options = "SqueezeOptions"
    int8 = Int8Rule(same_scale=(0,))
    versions = {DType.STRING: 2}
    squeeze_dims: tuple[int, ...] = ()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with fewer axes."""
        (x,) = given(self, inputs, 1)
        dropped = axes_of(self, self.squeeze_dims, len(x.shape), inputs)
        dropped = dropped or tuple(i for i, extent in enumerate(x.shape) if extent == 1)
        expect(self, all(x.shape[axis] == 1 for axis in dropped),
               f"drops the axes {list(dropped)} of {list(x.shape)}, which are not all 1", inputs)
        return [TensorType(x.dtype, tuple(e for i, e in enumerate(x.shape) if i not in dropped))]


@operator
class ExpandDims(Reshaping):
    """With one more axis of extent 1; inputs x, axis (constant)."""

    name = "EXPAND_DIMS"
    options = "ExpandDimsOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with one more axis."""
        x, _ = given(self, inputs, 2)
        axes = constant_ints(self, inputs, 1, "axis")
        expect(self, len(axes) == 1, f"needs one axis, got {list(axes)}", inputs)
        axis = axis_of(self, axes[0], len(x.shape) + 1, inputs)
        return [TensorType(x.dtype, (*x.shape[:axis], 1, *x.shape[axis:]))]


@operator
class Transpose(Operator):
    """Axes in another order; inputs x, perm (constant): axis i of the output is axis perm[i] of x."""

    name = "TRANSPOSE"
    options = "TransposeOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the axes reordered."""
        x, _ = given(self, inputs, 2)
        perm = self._order(constant_ints(self, inputs, 1, "order of axes"), len(x.shape), inputs)
        return [TensorType(x.dtype, tuple(x.shape[axis] for axis in perm))]

    def _order(self, perm: Shape, rank: int, inputs: Inputs | Arrays) -> Shape:
        order = tuple(axis + rank if axis < 0 else axis for axis in perm)
        expect(self, sorted(order) == list(range(rank)), f"has the order {list(perm)} for {rank} axes", inputs)
        return order

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Reorder the axes; the result is contiguous."""
        x, perm = given(self, inputs, 2)
        order = self._order(tuple(int(v) for v in perm), x.ndim, inputs)
        return [np.ascontiguousarray(x.transpose(order)).reshape([x.shape[axis] for axis in order])]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x = node.input(0)
        if x.dtype is DType.INT4:
            return 7
        if len(x.shape) > 5:
            return 6
        if x.dtype is DType.INT16:
            return 5
        if len(x.shape) > 4:
            return 4
        return {DType.BOOL: 3, DType.INT8: 2}.get(x.dtype, 1)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from legality.too_many_axes(node, 8)


@operator
class ReverseV2(Operator):
    """Backwards along axes; inputs x, axes (constant)."""

    name = "REVERSE_V2"
    plain = plain.types("bool int8 uint8 int16 int32 int64 float32")
    options = "ReverseV2Options"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))
    versions = {DType.BOOL: 2, DType.INT8: 3}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of x."""
        x, axes = given(self, inputs, 2)
        if axes.data is not None:
            axes_of(self, constant_ints(self, inputs, 1, "axes"), len(x.shape), inputs)
        return [x.type]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Turn the axes round."""
        x, axes = given(self, inputs, 2)
        return [np.flip(x, axes_of(self, [int(a) for a in axes.reshape(-1)], x.ndim, inputs))]

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from legality.too_many_axes(node, 8)


@operator
class Tile(Operator):
    """Repeated along each axis; inputs x, multiples (constant)."""

    name = "TILE"
    options = "TileOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))
    versions = {DType.STRING: 2}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the extents multiplied."""
        x, _ = given(self, inputs, 2)
        times = constant_ints(self, inputs, 1, "multiples")
        expect(self, len(times) == len(x.shape) and min(times, default=0) >= 0,
               f"has the multiples {list(times)} for {len(x.shape)} axes", inputs)
        return [TensorType(x.dtype, tuple(e * t for e, t in zip(x.shape, times, strict=True)))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Repeat."""
        x, times = given(self, inputs, 2)
        infer_from_arrays(self, inputs)
        return [np.tile(x, tuple(int(t) for t in times))]


@operator
class BroadcastTo(Operator):
    """Broadcast to a shape; inputs x, shape (constant)."""

    name = "BROADCAST_TO"
    options = "BroadcastToOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with that shape."""
        x, _ = given(self, inputs, 2)
        wanted = constant_ints(self, inputs, 1, "shape")
        expect(self, broadcast(self, inputs, x.shape, wanted) == wanted,
               f"cannot broadcast {list(x.shape)} to {list(wanted)}", inputs)
        return [TensorType(x.dtype, wanted)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Broadcast; the result owns its memory."""
        (inferred,) = infer_from_arrays(self, inputs)
        (x,) = given(self, inputs[:1], 1)
        return [np.broadcast_to(x, inferred.shape).copy()]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 3 if node.input(0).dtype in (DType.INT8, DType.INT16) else 2


@operator
class Bitcast(Operator):
    """The same bits read as another element type, which the output tensor alone names."""

    name = "BITCAST"
    options = "BitcastOptions"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the input's type; the output tensor may name another of the same width."""
        (x,) = given(self, inputs, 1)
        return [x.type]
