"""Picking and placing by index.

Source: TFLite kernels/gather.cc, gather_nd.cc, scatter_nd.cc, one_hot.cc, topk_v2.cc, embedding_lookup.cc,
reverse_sequence.cc, non_max_suppression.cc.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import plain, versions
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, axis_of, constant_ints, expect, given, refuse
from vitrify.ops.int8 import Int8Rule


@operator
class Gather(Operator):
    """Slices of x along an axis; inputs x, indices, whose first ``batch_dims`` axes go along with x's."""

    name = "GATHER"
    plain = plain.types("bool int8 uint8 int16 int32 int64 float32")
    options = "GatherOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))
    axis: int = 0
    batch_dims: int = 0

    def _axes(self, x: tuple[int, ...], indices: tuple[int, ...], inputs: Inputs | Arrays) -> tuple[int, int]:
        axis = axis_of(self, self.axis, len(x), inputs)
        batch = self.batch_dims + len(indices) if self.batch_dims < 0 else self.batch_dims
        expect(self, 0 <= batch <= axis and batch <= len(indices) and x[:batch] == indices[:batch],
               f"has {self.batch_dims} batch axes for axis {axis} of {list(x)} and indices {list(indices)}", inputs)
        return axis, batch

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the indices' axes in the place of the axis."""
        x, indices = given(self, inputs, 2)
        axis, batch = self._axes(x.shape, indices.shape, inputs)
        return [TensorType(x.dtype, (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1:]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Pick the slices."""
        x, indices = given(self, inputs, 2)
        axis, batch = self._axes(x.shape, indices.shape, inputs)
        expect(self, indices.size == 0 or (indices.min() >= 0 and indices.max() < x.shape[axis]),
               f"takes an index outside of {x.shape[axis]} elements", inputs)
        if batch == 0:
            return [np.take(x, indices, axis=axis)]
        shape = (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1:])
        rows = x.reshape(-1, *x.shape[batch:])
        picked = [np.take(row, chosen, axis=axis - batch)
                  for row, chosen in zip(rows, indices.reshape(-1, *indices.shape[batch:]), strict=True)]
        return [np.array(picked, x.dtype).reshape(shape)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x, indices = node.input(0).dtype, node.input(1).dtype
        if x is DType.INT4:
            return 7
        if indices is DType.INT16:
            return 6
        return 5 if self.batch_dims else {DType.INT8: 2, DType.BOOL: 3, DType.INT16: 4}.get(x, 1)


@operator
class GatherND(Operator):
    """Elements or slices of x; the last axis of the indices (input 1) runs over x's first axes."""

    name = "GATHER_ND"
    plain = plain.types("bool int8 uint8 int16 int32 int64 float32")
    options = "GatherNdOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of what is picked."""
        x, indices = given(self, inputs, 2)
        expect(self, len(indices.shape) >= 1 and indices.shape[-1] <= len(x.shape),
               f"has indices {list(indices.shape)} for {len(x.shape)} axes", inputs)
        return [TensorType(x.dtype, (*indices.shape[:-1], *x.shape[indices.shape[-1]:]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Pick."""
        x, indices = given(self, inputs, 2)
        depth = indices.shape[-1]
        expect(self, indices.size == 0 or bool((indices >= 0).all() and (indices < x.shape[:depth]).all()),
               f"takes an index outside of {list(x.shape)}", inputs)
        return [x[tuple(np.moveaxis(indices, -1, 0))]]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if node.input(0).dtype is DType.BOOL:
            return 5
        if node.input(1).dtype is DType.INT16:
            return 4
        return {DType.STRING: 2, DType.INT16: 3}.get(node.input(0).dtype, 1)


@operator
class ScatterND(Operator):
    """Zeros with updates added at indices; inputs indices, updates, shape (constant)."""

    name = "SCATTER_ND"
    plain = plain.types("bool int8 uint8 int32 int64 float32")
    options = "ScatterNdOptions"
    int8_problem = "computes with the steps themselves, without scale and zero point"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of that shape."""
        indices, updates, _ = given(self, inputs, 3)
        shape = constant_ints(self, inputs, 2, "shape")
        expect(self, min(shape, default=0) >= 0, f"has the shape {list(shape)}", inputs)
        expect(self, len(indices.shape) >= 1, "needs indices of at least 1 dimension", inputs)
        expect(self, updates.shape == (*indices.shape[:-1], *shape[indices.shape[-1]:]),
               f"has updates {list(updates.shape)} for indices {list(indices.shape)} into {list(shape)}", inputs)
        return [TensorType(updates.dtype, shape)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Add the updates up."""
        indices, updates, shape = given(self, inputs, 3)
        out = np.zeros(tuple(int(v) for v in shape), updates.dtype)
        try:
            np.add.at(out, tuple(np.moveaxis(indices, -1, 0)), updates)
        except IndexError as error:
            raise refuse(self, f"puts an update outside of {list(out.shape)}: {error}", inputs) from None
        return [out]


@operator
class OneHot(Operator):
    """A new axis of ``depth`` with one value on; inputs indices, depth (constant), on value, off value."""

    name = "ONE_HOT"
    options = "OneHotOptions"
    int8 = Int8Rule(same_scale=(2, 3), keep=(0, 1))
    axis: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the new axis."""
        indices, _, on, _ = given(self, inputs, 4)
        depth = constant_ints(self, inputs, 1, "depth")
        expect(self, len(depth) == 1 and depth[0] >= 0, f"needs one depth, got {list(depth)}", inputs)
        axis = axis_of(self, self.axis, len(indices.shape) + 1, inputs)
        return [TensorType(on.dtype, (*indices.shape[:axis], depth[0], *indices.shape[axis:]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Compare each index with the positions of the new axis."""
        indices, depth, on, off = given(self, inputs, 4)
        axis = axis_of(self, self.axis, indices.ndim + 1, inputs)
        places = np.arange(int(depth.reshape(-1)[0])).reshape(-1, *[1] * (indices.ndim - axis))
        return [np.where(np.expand_dims(indices, axis) == places, on.reshape(()), off.reshape(()))]


@operator
class TopKV2(Operator):
    """The k largest values along the last axis and their positions; inputs x, k (constant)."""

    name = "TOPK_V2"
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    options = "TopKV2Options"
    int8 = Int8Rule(same_scale=(0,), keep=(1,))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the types of values and positions."""
        x, count = given(self, inputs, 2)
        k = constant_ints(self, inputs, 1, "k")
        expect(self, len(k) == 1 and len(x.shape) >= 1 and 0 <= k[0] <= x.shape[-1],
               f"takes {list(k)} largest of {list(x.shape)}", inputs)
        positions = DType.INT16 if count.dtype is DType.INT16 else DType.INT32
        return [TensorType(x.dtype, (*x.shape[:-1], k[0])), TensorType(positions, (*x.shape[:-1], k[0]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Sort, the first of equal values first."""
        x, count = given(self, inputs, 2)
        order = np.argsort(-x.astype(np.float64 if x.dtype.kind == "f" else np.int64), axis=-1, kind="stable")
        order = order[..., :int(count.reshape(-1)[0])]
        return [np.take_along_axis(x, order, axis=-1), order.astype(np.int16 if count.dtype == np.int16 else np.int32)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if DType.INT16 in (node.input(0).dtype, node.input(1).dtype, node.outputs[1].dtype):
            return 3
        return versions.INT8.get(node.input(0).dtype, 1)


@operator
class EmbeddingLookup(Operator):
    """Rows of a table; inputs ids [n], table."""

    name = "EMBEDDING_LOOKUP"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the rows' type; quantized tables are read as float."""
        ids, table = given(self, inputs, 2)
        expect(self, len(ids.shape) == 1 and len(table.shape) >= 2,
               f"needs ids of 1 and a table of 2 or more dimensions, got {ids.type} and {table.type}", inputs)
        quantized = table.dtype in (DType.INT8, DType.UINT8, DType.INT4)
        return [TensorType(DType.FLOAT32 if quantized else table.dtype, (*ids.shape, *table.shape[1:]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Pick the rows of a float table."""
        ids, table = given(self, inputs, 2)
        if table.dtype.kind != "f":
            return super().evaluate(inputs)
        expect(self, ids.size == 0 or (ids.min() >= 0 and ids.max() < len(table)),
               "takes an id outside of the table", inputs)
        return [table[ids]]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 4 if node.input(1).dtype is DType.INT4 or versions.has_axis(node, 1) else 1


@operator
class ReverseSequence(Operator):
    """The first elements of each batch backwards; inputs x, lengths, one for each batch."""

    name = "REVERSE_SEQUENCE"
    plain = plain.types("uint8 int16 int32 int64 float32")
    options = "ReverseSequenceOptions"
    int8_problem = "refuses int8"
    seq_dim: int = 0
    batch_dim: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of x."""
        x, lengths = given(self, inputs, 2)
        batch = axis_of(self, self.batch_dim, len(x.shape), inputs)
        axis_of(self, self.seq_dim, len(x.shape), inputs)
        expect(self, lengths.shape == (x.shape[batch],),
               f"has {lengths.type} lengths for {x.shape[batch]} batches", inputs)
        return [x.type]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Turn each batch's beginning round."""
        x, lengths = given(self, inputs, 2)
        moved = np.moveaxis(x, (self.batch_dim, self.seq_dim), (0, 1))
        out = moved.copy()
        for row, source, length in zip(out, moved, lengths, strict=True):
            row[:int(length)] = source[:int(length)][::-1]
        return [np.ascontiguousarray(np.moveaxis(out, (0, 1), (self.batch_dim, self.seq_dim)))]


class NonMaxSuppression(Operator):
    """Inputs boxes [n,4], scores [n], most outputs (constant), IoU threshold, score threshold."""

    def most(self, inputs: Inputs, count: int) -> int:
        """Return how many boxes are kept at most, after checking the inputs."""
        boxes, scores = given(self, inputs, count)[:2]
        expect(self, len(boxes.shape) == 2 and boxes.shape[1] == 4 and scores.shape == boxes.shape[:1],
               f"needs boxes [n,4] and scores [n], got {boxes.type} and {scores.type}", inputs)
        most = constant_ints(self, inputs, 2, "largest number of outputs")
        expect(self, len(most) == 1 and most[0] >= 0, f"gives at most {list(most)} outputs", inputs)
        return most[0]


@operator
class NonMaxSuppressionV4(NonMaxSuppression):
    """Gives positions [most] and how many of them hold."""

    name = "NON_MAX_SUPPRESSION_V4"
    options = "NonMaxSuppressionV4Options"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return both types."""
        return [TensorType(DType.INT32, (self.most(inputs, 5),)), TensorType(DType.INT32, ())]


@operator
class NonMaxSuppressionV5(NonMaxSuppression):
    """Gives positions [most], scores [most] and how many of them hold; input 5 is the sigma of the soft form."""

    name = "NON_MAX_SUPPRESSION_V5"
    options = "NonMaxSuppressionV5Options"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return all three types."""
        most = self.most(inputs, 6)
        return [TensorType(DType.INT32, (most,)), TensorType(DType.FLOAT32, (most,)), TensorType(DType.INT32, ())]
