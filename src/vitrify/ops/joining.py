"""Joining and cutting along axes; slices are in ``slicing``.

Source: TFLite kernels/concatenation.cc, pack.cc, unpack.cc, split.cc, split_v.cc.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import plain, versions
from vitrify.ops.attributes import Activation
from vitrify.ops.base import Array, Arrays, Inputs, Shape, TensorType, axis_of, constant_ints, expect, given
from vitrify.ops.elementwise import activate
from vitrify.ops.int8 import Int8Rule
from vitrify.ops.slicing import DynamicUpdateSlice, Slice, StridedSlice

__all__ = ["Concatenation", "DynamicUpdateSlice", "Pack", "Slice", "Split", "SplitV", "StridedSlice", "Unpack"]


@operator
class Concatenation(Operator):
    """Any number of inputs joined along an axis that they have."""

    name = "CONCATENATION"
    plain = plain.types("bool int8 uint8 int16 int32 int64 float32")
    options = "ConcatenationOptions"
    int8 = Int8Rule(same_scale=(0,), variadic=True)
    versions = {DType.INT8: 2, DType.INT16: 3, DType.UINT32: 4}
    axis: int = 0
    fused_activation_function: Activation = Activation.NONE

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the extents along the axis added."""
        parts = given(self, inputs, len(inputs))
        expect(self, len(parts) > 0, "takes at least 1 input, got 0", inputs)
        first = parts[0]
        axis = axis_of(self, self.axis, len(first.shape), inputs)
        for part in parts:
            others = part.shape[:axis] + part.shape[axis + 1:] == first.shape[:axis] + first.shape[axis + 1:]
            expect(self, part.dtype == first.dtype and len(part.shape) == len(first.shape) and others,
                   f"cannot join {part.type} to {first.type} along axis {axis}", inputs)
        joined = sum(part.shape[axis] for part in parts)
        return [TensorType(first.dtype, (*first.shape[:axis], joined, *first.shape[axis + 1:]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Join."""
        parts = given(self, inputs, len(inputs))
        return [activate(np.concatenate(parts, axis=self.axis), self.fused_activation_function)]


@operator
class Pack(Operator):
    """Inputs of one shape stacked along a new axis."""

    name = "PACK"
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    options = "PackOptions"
    int8 = Int8Rule(same_scale=(0,), variadic=True)
    versions = {DType.INT8: 2, DType.INT16: 3, DType.UINT32: 4}
    values_count: int = 0
    axis: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type with the new axis."""
        parts = given(self, inputs, len(inputs))
        expect(self, len(parts) > 0, "takes at least 1 input, got 0", inputs)
        expect(self, len({part.type for part in parts}) == 1, "needs inputs of one type and shape", inputs)
        shape = parts[0].shape
        axis = axis_of(self, self.axis, len(shape) + 1, inputs)
        return [TensorType(parts[0].dtype, (*shape[:axis], len(parts), *shape[axis:]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Stack."""
        return [np.stack(given(self, inputs, len(inputs)), axis=self.axis)]


@operator
class Unpack(Operator):
    """One output for each index of an axis, without that axis."""

    name = "UNPACK"
    plain = plain.types("bool int8 uint8 int16 int32 float32")
    options = "UnpackOptions"
    int8 = Int8Rule(same_scale=(0,))
    versions = {DType.INT8: 2, DType.UINT8: 2, DType.BOOL: 3, DType.INT16: 4}
    num: int = 0
    axis: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the same type ``num`` times."""
        (x,) = given(self, inputs, 1)
        axis = axis_of(self, self.axis, len(x.shape), inputs)
        expect(self, self.num == x.shape[axis], f"takes {self.num} parts from an axis of {x.shape[axis]}", inputs)
        return [TensorType(x.dtype, x.shape[:axis] + x.shape[axis + 1:])] * self.num

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Take apart."""
        (x,) = given(self, inputs, 1)
        return [np.take(x, i, axis=self.axis) for i in range(x.shape[self.axis])]


@operator
class Split(Operator):
    """Equal parts along an axis; inputs axis (constant), x."""

    name = "SPLIT"
    data = 1
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    options = "SplitOptions"
    int8 = Int8Rule(same_scale=(1,), keep=(0,))
    num_splits: int = 0

    def _axis(self, axes: Shape, shape: Shape, inputs: Inputs | Arrays) -> int:
        expect(self, len(axes) == 1, f"needs one axis, got {list(axes)}", inputs)
        axis = axis_of(self, axes[0], len(shape), inputs)
        expect(self, self.num_splits > 0 and shape[axis] % self.num_splits == 0,
               f"cannot cut an axis of {shape[axis]} into {self.num_splits} equal parts", inputs)
        return axis

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the part's type ``num_splits`` times."""
        _, x = given(self, inputs, 2)
        axis = self._axis(constant_ints(self, inputs, 0, "axis"), x.shape, inputs)
        part = (*x.shape[:axis], x.shape[axis] // self.num_splits, *x.shape[axis + 1:])
        return [TensorType(x.dtype, part)] * self.num_splits

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Cut."""
        axes, x = given(self, inputs, 2)
        axis = self._axis(tuple(int(a) for a in axes.reshape(-1)), x.shape, inputs)
        return list(np.split(x, self.num_splits, axis=axis))

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return {DType.INT8: 2, DType.INT32: 3, DType.INT16: 4}.get(node.input(1).dtype, 1)


@operator
class SplitV(Operator):
    """Parts of given sizes along an axis; inputs x, sizes (constant, one may be -1), axis (constant)."""

    name = "SPLIT_V"
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    options = "SplitVOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1, 2))
    versions = versions.INT8
    num_splits: int = 0

    def _parts(self, sizes: Shape, axes: Shape, shape: Shape, inputs: Inputs | Arrays) -> tuple[Shape, int]:
        expect(self, len(axes) == 1, f"needs one axis, got {list(axes)}", inputs)
        axis = axis_of(self, axes[0], len(shape), inputs)
        rest = shape[axis] - sum(size for size in sizes if size != -1)
        found = tuple(rest if size == -1 else size for size in sizes)
        expect(self, len(sizes) == self.num_splits and sizes.count(-1) <= 1 and min(found, default=0) >= 0
               and sum(found) == shape[axis],
               f"cannot cut an axis of {shape[axis]} into {self.num_splits} parts of {list(sizes)}", inputs)
        return found, axis

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the parts' types."""
        x, _, _ = given(self, inputs, 3)
        sizes, axis = self._parts(constant_ints(self, inputs, 1, "sizes"), constant_ints(self, inputs, 2, "axis"),
                                  x.shape, inputs)
        return [TensorType(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1:])) for size in sizes]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Cut."""
        x, sizes, axes = given(self, inputs, 3)
        parts, axis = self._parts(tuple(int(s) for s in sizes.reshape(-1)), tuple(int(a) for a in axes.reshape(-1)),
                                  x.shape, inputs)
        return list(np.split(x, np.cumsum(parts)[:-1].tolist(), axis=axis))
