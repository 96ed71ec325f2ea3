"""Comparison, logic and selection.

Source: TFLite kernels/comparisons.cc, logical.cc, select.cc, where.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.errors import UnsupportedError
from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import legality, plain, versions
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, broadcast, expect, given
from vitrify.ops.elementwise import BinaryElementwise, Elementwise
from vitrify.ops.int8 import Int8Rule


class Comparison(BinaryElementwise):
    """Two inputs of one type that broadcast; the output is bool."""

    def result(self, dtype: DType) -> DType:
        """Return bool."""
        return DType.BOOL

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from super().check(node)
        for tensor in node.inputs:
            if tensor is not None and legality.scale_of(tensor) == 1:
                yield legality.finding(node, "ops.multiplier",
                                       f"has scale 1 on '{tensor.name}', which the runtime aborts on",
                                       why="the input multiplier is then exactly 1, for which the kernel has no form",
                                       help=f"give '{tensor.name}' a scale a little below or above 1")


@operator
class Less(Comparison):
    """True where the first input is smaller."""

    name = "LESS"
    plain = plain.types("int16 int32 int64 float32")
    options = "LessOptions"
    int8 = Int8Rule()
    versions = versions.INT8_INT16

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.less(a, b)


@operator
class LessEqual(Comparison):
    """True where the first input is not larger."""

    name = "LESS_EQUAL"
    plain = plain.types("int16 int32 int64 float32")
    options = "LessEqualOptions"
    int8 = Int8Rule()
    versions = versions.INT8

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.less_equal(a, b)


@operator
class Greater(Comparison):
    """True where the first input is larger."""

    name = "GREATER"
    plain = plain.types("int16 int32 int64 float32")
    options = "GreaterOptions"
    int8 = Int8Rule()
    versions = versions.INT8

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.greater(a, b)


@operator
class GreaterEqual(Comparison):
    """True where the first input is not smaller."""

    name = "GREATER_EQUAL"
    plain = plain.types("int16 int32 int64 float32")
    options = "GreaterEqualOptions"
    int8 = Int8Rule()
    versions = versions.INT8_INT16

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.greater_equal(a, b)


@operator
class Equal(Comparison):
    """True where both inputs are equal."""

    name = "EQUAL"
    plain = plain.types("bool int16 int32 int64 float32")
    options = "EqualOptions"
    int8 = Int8Rule()
    versions = {DType.INT8: 2, DType.STRING: 3, DType.INT16: 4}

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.equal(a, b)


@operator
class NotEqual(Comparison):
    """True where the inputs differ."""

    name = "NOT_EQUAL"
    plain = plain.types("bool int32 int64 float32")
    options = "NotEqualOptions"
    int8 = Int8Rule()
    versions = {DType.INT8: 2, DType.STRING: 3}

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.not_equal(a, b)


@operator
class LogicalAnd(Comparison):
    """True where both inputs are true."""

    name = "LOGICAL_AND"
    options = "LogicalAndOptions"

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.logical_and(a, b)


@operator
class LogicalOr(Comparison):
    """True where one of the inputs is true."""

    name = "LOGICAL_OR"
    options = "LogicalOrOptions"

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.logical_or(a, b)


@operator
class LogicalNot(Elementwise):
    """True where the input is false."""

    name = "LOGICAL_NOT"
    options = "LogicalNotOptions"

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.logical_not(x)


class Selection(Operator):
    """Inputs condition (bool), x and y: x where the condition is true, else y."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of x and y."""
        condition, x, y = given(self, inputs, 3)
        expect(self, condition.dtype is DType.BOOL, f"needs a bool condition, got {condition.dtype.label}", inputs)
        expect(self, x.dtype == y.dtype, f"needs one element type, got {x.dtype.label} and {y.dtype.label}", inputs)
        return [TensorType(x.dtype, self.common(inputs, condition.shape, x.shape, y.shape))]

    def common(self, inputs: Inputs | Arrays, condition: tuple[int, ...], x: tuple[int, ...],
               y: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's shape."""
        return broadcast(self, inputs, condition, x, y)

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Choose elementwise."""
        condition, x, y = given(self, inputs, 3)
        self.common(inputs, condition.shape, x.shape, y.shape)
        return [np.where(condition, x, y)]

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from legality.too_many_axes(node, 8)


@operator
class Select(Selection):
    """Selection without broadcasting, but for a condition that is a scalar or has one value for each row."""

    name = "SELECT"
    options = "SelectOptions"
    int8 = Int8Rule(same_scale=(1, 2), keep=(0,))

    def common(self, inputs: Inputs | Arrays, condition: tuple[int, ...], x: tuple[int, ...],
               y: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of x and y, which must be the same."""
        fits = condition in ((), (1,), x) or (len(condition) == 1 and x[:1] == condition)
        expect(self, x == y and fits, "needs x and y of one shape, and a condition of that shape, of its first extent "
               "or with one value", inputs)
        return x

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Choose elementwise, or row by row."""
        condition, x, y = given(self, inputs, 3)
        self.common(inputs, condition.shape, x.shape, y.shape)
        if condition.ndim == 1 and condition.shape != x.shape:
            condition = condition.reshape(-1, *[1] * (x.ndim - 1))
        return [np.where(condition, x, y)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 3 if any(len(t.shape) == 5 for t in node.inputs if t is not None) else 1


@operator
class SelectV2(Selection):
    """Selection with broadcasting of all three inputs."""

    name = "SELECT_V2"
    options = "SelectV2Options"
    int8 = Int8Rule(same_scale=(1, 2), keep=(0,))


@operator
class Where(Operator):
    """The positions int64[n, rank] of all true elements."""

    name = "WHERE"
    options = "WhereOptions"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type for a constant condition; n is known at run time otherwise."""
        (condition,) = given(self, inputs, 1)
        if condition.data is None:
            raise UnsupportedError.of("ops.dynamic", f"WHERE gives a row for each true element of "
                                      f"'{condition.name}'; its output has no static shape",
                                      where=f"tensor '{condition.name}'")
        return [TensorType(DType.INT64, (int(np.count_nonzero(condition.data)), len(condition.shape)))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """List the positions in order."""
        (condition,) = given(self, inputs, 1)
        return [np.argwhere(condition).astype(np.int64)]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 1 if node.input(0).dtype is DType.BOOL else 2
