"""Operators that make tensors from shapes.

Source: TFLite kernels/shape.cc, rank.cc, range.cc, fill.cc, zeros_like.cc, broadcast_args.cc.
"""

from __future__ import annotations

import math

import numpy as np

from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops.base import (
    Array,
    Arrays,
    Inputs,
    TensorType,
    broadcast,
    constant,
    constant_ints,
    expect,
    given,
    infer_from_arrays,
)
from vitrify.ops.int8 import Int8Rule


@operator
class Shape(Operator):
    """The extents of x, int32 unless ``out_type`` names int64."""

    name = "SHAPE"
    options = "ShapeOptions"
    out_type: int = 0

    @property
    def result(self) -> DType:
        """The element type of the output."""
        return DType.INT64 if self.out_type == DType.INT64.value else DType.INT32

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return one element for each axis."""
        (x,) = given(self, inputs, 1)
        return [TensorType(self.result, (len(x.shape),))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Return the extents."""
        (x,) = given(self, inputs, 1)
        return [np.array(x.shape, self.result.numpy)]


@operator
class Rank(Operator):
    """The number of axes of x, an int32 scalar."""

    name = "RANK"
    options = "RankOptions"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return a scalar."""
        given(self, inputs, 1)
        return [TensorType(DType.INT32, ())]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Return the number of axes."""
        (x,) = given(self, inputs, 1)
        return [np.array(x.ndim, np.int32)]


@operator
class Range(Operator):
    """Numbers from start on, by delta, before limit; inputs start, limit, delta, all scalars and constant."""

    name = "RANGE"
    options = "RangeOptions"
    int8_problem = "refuses int8"
    versions = {DType.INT64: 2}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type; the length comes from the values."""
        start = given(self, inputs, 3)[0]
        operands = [constant(self, inputs, i, what) for i, what in enumerate(("start", "limit", "delta"))]
        expect(self, all(operand.size == 1 for operand in operands), "needs scalars", inputs)
        low, high, step = (operand.item() for operand in operands)
        expect(self, step != 0 and (high - low) * step >= 0, f"cannot go from {low} to {high} by {step}", inputs)
        return [TensorType(start.dtype, (math.ceil((high - low) / step),))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Count."""
        (inferred,) = infer_from_arrays(self, inputs)
        start, _, delta = given(self, inputs, 3)
        steps = np.arange(inferred.shape[0]).astype(start.dtype)
        return [(start.reshape(-1)[:1] + steps * delta.reshape(-1)[:1]).astype(start.dtype)]


@operator
class Fill(Operator):
    """One value everywhere; inputs shape (constant), value (scalar)."""

    name = "FILL"
    options = "FillOptions"
    int8 = Int8Rule(same_scale=(1,), keep=(0,))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of that shape."""
        _, value = given(self, inputs, 2)
        shape = constant_ints(self, inputs, 0, "shape")
        expect(self, min(shape, default=0) >= 0, f"has the shape {list(shape)}", inputs)
        return [TensorType(value.dtype, shape)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Fill."""
        (inferred,) = infer_from_arrays(self, inputs)
        _, value = given(self, inputs, 2)
        return [np.full(inferred.shape, value.reshape(())[()], value.dtype)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        since = {DType.FLOAT16: 4, DType.INT8: 3, DType.INT16: 3, DType.BOOL: 2, DType.STRING: 2}
        return since.get(node.input(1).dtype, 1)


@operator
class ZerosLike(Operator):
    """Zeros of the type and shape of x."""

    name = "ZEROS_LIKE"
    options = "ZerosLikeOptions"
    int8_problem = "refuses int8"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of x."""
        (x,) = given(self, inputs, 1)
        return [x.type]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Return zeros."""
        (x,) = given(self, inputs, 1)
        return [np.zeros_like(x)]


@operator
class BroadcastArgs(Operator):
    """The shape that two shapes broadcast to; both inputs are vectors."""

    name = "BROADCAST_ARGS"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return a vector as long as the longer one."""
        a, b = given(self, inputs, 2)
        expect(self, len(a.shape) == len(b.shape) == 1 and a.dtype == b.dtype, "needs two vectors of one type", inputs)
        return [TensorType(a.dtype, (max(a.shape[0], b.shape[0]),))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Broadcast the shapes."""
        a, b = given(self, inputs, 2)
        return [np.array(broadcast(self, inputs, a.tolist(), b.tolist()), a.dtype)]
