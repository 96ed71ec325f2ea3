"""Reductions over axes, and running sums.

Source: TFLite kernels/reduce.cc, arg_min_max.cc, cumsum.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, attributes, operator
from vitrify.ops import legality, plain, versions
from vitrify.ops.base import (
    Array,
    Arrays,
    Inputs,
    Shape,
    TensorType,
    axes_of,
    axis_of,
    constant_ints,
    expect,
    given,
)
from vitrify.ops.int8 import Int8Rule
from vitrify.ops.reference.rounding import mean_towards_zero


@attributes
class Reduction(Operator):
    """Inputs x and axes (constant); the axes go, or stay with extent 1 when ``keep_dims``."""

    options = "ReducerOptions"
    keep_dims: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type without the axes."""
        x, _ = given(self, inputs, 2)
        axes = axes_of(self, constant_ints(self, inputs, 1, "axes"), len(x.shape), inputs)
        kept = tuple(1 if i in axes else e for i, e in enumerate(x.shape) if self.keep_dims or i not in axes)
        return [TensorType(x.dtype, kept)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Reduce; without axes the values stay as they are."""
        x, given_axes = given(self, inputs, 2)
        axes = axes_of(self, [int(a) for a in given_axes.reshape(-1)], x.ndim, inputs)
        if not axes:
            return [x.copy()]
        return [np.asarray(self.reduce(x, axes)).astype(x.dtype, copy=False)]

    def reduce(self, x: Array, axes: Shape) -> Array:
        """Return the values over ``axes``."""
        raise NotImplementedError


@operator
class Mean(Reduction):
    """The mean; of integers, rounded towards zero."""

    name = "MEAN"
    plain = plain.types("int32 int64 float32")
    int8 = Int8Rule(keep=(1,))
    versions = versions.INT8_INT16

    def reduce(self, x: Array, axes: Shape) -> Array:
        """Return the means."""
        if x.dtype.kind == "f":
            return np.asarray(x.mean(axis=axes, keepdims=self.keep_dims, dtype=x.dtype))
        return mean_towards_zero(x, axes, self.keep_dims)


@operator
class Sum(Reduction):
    """The sum."""

    name = "SUM"
    plain = plain.types("int32 int64 float32")
    int8 = Int8Rule(keep=(1,))
    versions = versions.INT8

    def reduce(self, x: Array, axes: Shape) -> Array:
        """Return the sums."""
        return np.asarray(x.sum(axis=axes, keepdims=self.keep_dims, dtype=x.dtype))

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        if node.input(0).quantization is not None and node.input(0).dtype in (DType.INT8, DType.INT16):
            kind = node.input(0).dtype.label
            yield legality.finding(node, "ops.reference_sum", f"is an {kind} SUM, whose reference kernel gives wrong "
                                   "values (LiteRT 2.3); the optimized one is right",
                                   why="the two kernels of the runtime differ here",
                                   help="use MEAN and a MUL by the number of elements",
                                   severity=Severity.WARNING)


@operator
class ReduceProd(Reduction):
    """The product."""

    name = "REDUCE_PROD"
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    int8 = Int8Rule(keep=(1,))
    versions = {DType.INT8: 2, DType.INT16: 2}

    def reduce(self, x: Array, axes: Shape) -> Array:
        """Return the products."""
        return np.asarray(x.prod(axis=axes, keepdims=self.keep_dims, dtype=x.dtype))


@operator
class ReduceMax(Reduction):
    """The largest value."""

    name = "REDUCE_MAX"
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    int8 = Int8Rule(same_scale=(0,), keep=(1,))
    versions = versions.INT8_INT16

    def reduce(self, x: Array, axes: Shape) -> Array:
        """Return the maxima."""
        return np.asarray(x.max(axis=axes, keepdims=self.keep_dims))


@operator
class ReduceMin(Reduction):
    """The smallest value."""

    name = "REDUCE_MIN"
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    int8 = Int8Rule(same_scale=(0,), keep=(1,))
    versions = versions.INT8_INT16

    def reduce(self, x: Array, axes: Shape) -> Array:
        """Return the minima."""
        return np.asarray(x.min(axis=axes, keepdims=self.keep_dims))


@operator
class ReduceAny(Reduction):
    """True when one element is."""

    name = "REDUCE_ANY"

    def reduce(self, x: Array, axes: Shape) -> Array:
        """Return whether any is true."""
        return np.asarray(x.any(axis=axes, keepdims=self.keep_dims))


@operator
class ReduceAll(Reduction):
    """True when all elements are."""

    name = "REDUCE_ALL"

    def reduce(self, x: Array, axes: Shape) -> Array:
        """Return whether all are true."""
        return np.asarray(x.all(axis=axes, keepdims=self.keep_dims))


@attributes
class ArgReduction(Operator):
    """Inputs x and axis (constant); gives positions along it, of the first where several are equal."""

    output_type: int = 0

    @property
    def result(self) -> DType:
        """The element type of the positions: int64 when the options say so, else int32."""
        return DType.INT64 if self.output_type == DType.INT64.value else DType.INT32

    def _axis(self, axes: Shape, rank: int, inputs: Inputs | Arrays) -> int:
        expect(self, len(axes) == 1, f"needs one axis, got {list(axes)}", inputs)
        return axis_of(self, axes[0], rank, inputs)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the positions' type."""
        x, _ = given(self, inputs, 2)
        axis = self._axis(constant_ints(self, inputs, 1, "axis"), len(x.shape), inputs)
        return [TensorType(self.result, x.shape[:axis] + x.shape[axis + 1:])]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Find the positions."""
        x, axes = given(self, inputs, 2)
        axis = self._axis(tuple(int(a) for a in axes.reshape(-1)), x.ndim, inputs)
        return [np.asarray(self.find(x, axis)).astype(self.result.numpy)]

    def find(self, x: Array, axis: int) -> Array:
        """Return the positions along ``axis``."""
        raise NotImplementedError


@operator
class ArgMax(ArgReduction):
    """The position of the largest value."""

    name = "ARG_MAX"
    plain = plain.types("bool int8 uint8 int32 float32")
    options = "ArgMaxOptions"
    int8 = Int8Rule(keep=(1,))
    versions = {DType.INT8: 2, DType.BOOL: 3}

    def find(self, x: Array, axis: int) -> Array:
        """Return the positions along ``axis``."""
        return np.asarray(np.argmax(x, axis=axis))


@operator
class ArgMin(ArgReduction):
    """The position of the smallest value."""

    name = "ARG_MIN"
    plain = plain.types("bool int8 uint8 int32 float32")
    options = "ArgMinOptions"
    int8 = Int8Rule(keep=(1,))
    versions = {DType.INT8: 2, DType.BOOL: 3}

    def find(self, x: Array, axis: int) -> Array:
        """Return the positions along ``axis``."""
        return np.asarray(np.argmin(x, axis=axis))


@operator
class Cumsum(Operator):
    """Running sums along an axis (input 1); ``exclusive`` leaves each element itself out."""

    name = "CUMSUM"
    plain = plain.types("int32 int64 float32")
    options = "CumsumOptions"
    int8_problem = "refuses int8"
    exclusive: bool = False
    reverse: bool = False

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of x."""
        x, _ = given(self, inputs, 2)
        return [x.type]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Add up along the axis."""
        x, axes = given(self, inputs, 2)
        axis = axis_of(self, int(axes.reshape(-1)[0]), x.ndim, inputs)
        turned = np.flip(x, axis) if self.reverse else x
        total = np.cumsum(turned, axis=axis, dtype=x.dtype)
        if self.exclusive:
            total = np.roll(total, 1, axis=axis)
            total[tuple(0 if i == axis else slice(None) for i in range(x.ndim))] = 0
        return [np.flip(total, axis) if self.reverse else total]
