"""Slices, taken and put back.

Source: TFLite kernels/slice.cc, strided_slice.cc, internal/strided_slice_logic.h, dynamic_update_slice.cc.
"""

from __future__ import annotations

from types import EllipsisType

import numpy as np

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops.base import Array, Arrays, Inputs, Shape, TensorType, constant_ints, expect, given, refuse
from vitrify.ops.int8 import Int8Rule

Index = tuple[int | slice | EllipsisType | None, ...]


@operator
class Slice(Operator):
    """A box; inputs x, begin (constant), size (constant, -1 for all that is left)."""

    name = "SLICE"
    options = "SliceOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1, 2))

    def _box(self, begin: Shape, size: Shape, shape: Shape, inputs: Inputs | Arrays) -> tuple[slice, ...]:
        expect(self, len(begin) == len(size) == len(shape),
               f"has begin {list(begin)} and size {list(size)} for {len(shape)} axes", inputs)
        ends = tuple(extent if s == -1 else b + s for b, s, extent in zip(begin, size, shape, strict=True))
        expect(self, all(0 <= b <= e <= extent for b, e, extent in zip(begin, ends, shape, strict=True)),
               f"takes {list(size)} from {list(begin)} on, outside of {list(shape)}", inputs)
        return tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the box's type."""
        x, _, _ = given(self, inputs, 3)
        begin, size = constant_ints(self, inputs, 1, "begin"), constant_ints(self, inputs, 2, "size")
        box = self._box(begin, size, x.shape, inputs)
        return [TensorType(x.dtype, tuple(axis.stop - axis.start for axis in box))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Take the box."""
        x, begin, size = given(self, inputs, 3)
        return [x[self._box(tuple(int(v) for v in begin), tuple(int(v) for v in size), x.shape, inputs)].copy()]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x = node.input(0)
        if x.dtype is DType.UINT32:
            return 6
        if len(x.shape) > 4:
            return 5
        return {DType.INT8: 2, DType.STRING: 3, DType.INT16: 4}.get(x.dtype, 1)


@operator
class StridedSlice(Operator):
    """A slice with steps; inputs x, begin, end, strides (all constant).

    Bit i of a mask is about entry i: ``begin_mask`` and ``end_mask`` ignore the bound, ``ellipsis_mask`` stands for all
    axes not named, ``new_axis_mask`` puts in an axis of 1, ``shrink_axis_mask`` takes one index and drops the axis.
    With ``offset`` the ends count from the begins.
    """

    name = "STRIDED_SLICE"
    options = "StridedSliceOptions"
    int8 = Int8Rule(same_scale=(0,), keep=(1, 2, 3))
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0
    offset: bool = False

    def index(self, begin: Shape, end: Shape, strides: Shape) -> Index:
        """Return the numpy index that does the same."""
        entries: list[int | slice | EllipsisType | None] = []
        for i, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
            bit = 1 << i
            if self.ellipsis_mask & bit:
                entries.append(Ellipsis)
            elif self.new_axis_mask & bit:
                entries.append(None)
            elif self.shrink_axis_mask & bit:
                entries.append(0 if self.begin_mask & bit else first)
            else:
                last = first + last if self.offset else last
                low, high = None if self.begin_mask & bit else first, None if self.end_mask & bit else last
                entries.append(slice(low, high, step))
        return tuple(entries)

    def _take(self, x: Array, operands: list[Shape], inputs: Inputs | Arrays) -> Array:
        begin, end, strides = operands
        expect(self, len(begin) == len(end) == len(strides) and 0 not in strides,
               f"has begin {list(begin)}, end {list(end)} and strides {list(strides)}", inputs)
        try:
            return np.asarray(x[self.index(begin, end, strides)])
        except IndexError as error:
            raise refuse(self, f"takes from {list(begin)} to {list(end)} of {list(x.shape)}: {error}", inputs) from None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the slice's type."""
        x = given(self, inputs, 4)[0]
        operands = [constant_ints(self, inputs, i + 1, what) for i, what in enumerate(("begin", "end", "strides"))]
        try:
            stand_in = np.broadcast_to(np.int8(0), x.shape)      # has the shape, needs no memory
        except ValueError as error:
            raise refuse(self, f"cannot cut {x.type}: {error}", inputs) from None
        return [TensorType(x.dtype, self._take(stand_in, operands, inputs).shape)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Take the slice."""
        x, *operands = given(self, inputs, 4)
        return [self._take(x, [tuple(int(v) for v in o) for o in operands], inputs).copy()]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x = node.input(0)
        if self.offset:
            return 8
        if x.dtype is DType.UINT32:
            return 7
        if x.dtype is DType.STRING:
            return 5
        return 4 if len(x.shape) > 4 else {DType.INT8: 2, DType.BOOL: 3}.get(x.dtype, 1)


@operator
class DynamicUpdateSlice(Operator):
    """x with a box replaced; inputs x, update, start indices, which are held within x."""

    name = "DYNAMIC_UPDATE_SLICE"
    options = "DynamicUpdateSliceOptions"
    int8 = Int8Rule(same_scale=(0, 1), keep=(2,))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of x."""
        x, update, start = given(self, inputs, 3)
        expect(self, len(update.shape) == len(x.shape) and update.dtype == x.dtype
               and all(u <= e for u, e in zip(update.shape, x.shape, strict=True)) and start.size == len(x.shape),
               f"cannot put {update.type} into {x.type}", inputs)
        return [x.type]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Copy x and put the update in."""
        x, update, start = given(self, inputs, 3)
        out = x.copy()
        first = [min(max(int(s), 0), e - u) for s, e, u in zip(start.reshape(-1), x.shape, update.shape, strict=True)]
        out[tuple(slice(f, f + u) for f, u in zip(first, update.shape, strict=True))] = update
        return [out]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        special = {DType.INT16: 4, DType.FLOAT16: 3}.get(node.input(0).dtype)
        return special or (2 if node.input(2).dtype is DType.INT64 else 1)
