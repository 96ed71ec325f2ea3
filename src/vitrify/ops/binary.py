"""Elementwise operators of two inputs, with broadcasting.

Source: TFLite kernels/add.cc, sub.cc, mul.cc, div.cc, maximum_minimum.cc, pow.cc, squared_difference.cc, floor_div.cc,
floor_mod.cc, atan2.cc, add_n.cc, bitwise_xor.cc, right_shift.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import legality, plain, versions
from vitrify.ops.attributes import Activation
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, expect, given
from vitrify.ops.elementwise import BinaryElementwise
from vitrify.ops.int8 import Int8Rule


def divide(a: Array, b: Array) -> Array:
    """Divide; integers towards zero, as C++ does."""
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    quotient = np.floor_divide(a, b)
    return np.asarray(quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype))


def shift_right(a: Array, b: Array) -> Array:
    """Shift right by 0 to the width less one; other amounts are held within that."""
    return np.asarray(np.right_shift(a, np.clip(b, 0, a.dtype.itemsize * 8 - 1).astype(a.dtype)))


@operator
class Add(BinaryElementwise):
    """The sum."""

    name = "ADD"
    plain = plain.types("int16 int32 int64 float32")
    options = "AddOptions"
    int8 = Int8Rule()
    fused_activation_function: Activation = Activation.NONE
    pot_scale_int16: bool = True

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.asarray(a + b)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x = node.input(0)
        if x.dtype is DType.INT16:
            return 5 if x.quantization is None else (1 if self.pot_scale_int16 else 3)
        return {DType.INT8: 2, DType.INT64: 4}.get(x.dtype, 1)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from super().check(node)
        first, second = legality.scale_of(node.input(0)), legality.scale_of(node.input(1))
        if first is not None and second is not None:
            yield from legality.narrow_output(node, 2 * max(first, second) / 2**20, "2 * largest input scale / 2**20")


@operator
class Sub(BinaryElementwise):
    """The difference."""

    name = "SUB"
    plain = plain.types("int32 int64 float32")
    options = "SubOptions"
    int8 = Int8Rule()
    fused_activation_function: Activation = Activation.NONE
    pot_scale_int16: bool = True

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.asarray(a - b)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x = node.input(0)
        if x.dtype is DType.INT16 and not self.pot_scale_int16:
            return 5
        if x.dtype is DType.INT64:
            return 4
        if versions.broadcasts_beyond_4d(node):
            return 3
        return 2 if x.dtype is DType.INT8 else 1

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from super().check(node)
        first, second = legality.scale_of(node.input(0)), legality.scale_of(node.input(1))
        if first is not None and second is not None:
            yield from legality.narrow_output(node, 2 * max(first, second) / 2**20, "2 * largest input scale / 2**20")


@operator
class Mul(BinaryElementwise):
    """The product."""

    name = "MUL"
    plain = plain.types("int16 int32 int64 float32")
    options = "MulOptions"
    int8 = Int8Rule()
    fused_activation_function: Activation = Activation.NONE

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.asarray(a * b)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x = node.input(0)
        quantizations = [t.quantization for t in (x, node.input(1), node.output) if t.quantization is not None]
        if x.dtype is DType.UINT32 or (x.dtype is DType.INT16 and x.quantization is None):
            return 7
        special = {DType.COMPLEX64: 6, DType.INT64: 5, DType.INT16: 4}.get(x.dtype)
        if special:
            return special
        if len(quantizations) == 3:
            first, second, out = (float(q.scale[0]) for q in quantizations)
            if first * second >= out:
                return 3
        return 2 if x.dtype is DType.INT8 else 1


@operator
class Div(BinaryElementwise):
    """The quotient; integers are divided towards zero."""

    name = "DIV"
    plain = plain.types("int32 float32")
    options = "DivOptions"
    int8 = Int8Rule()
    fused_activation_function: Activation = Activation.NONE

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return divide(a, b)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        return 2 if versions.broadcasts_beyond_4d(node) else 1


@operator
class Maximum(BinaryElementwise):
    """The larger value."""

    name = "MAXIMUM"
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    options = "MaximumMinimumOptions"
    int8 = Int8Rule(same_scale=(0, 1))

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.maximum(a, b)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if node.input(0).dtype is DType.INT16:
            return 4
        if versions.broadcasts_beyond_4d(node):
            return 3
        return 2 if node.input(0).dtype is DType.INT8 else 1


@operator
class Minimum(BinaryElementwise):
    """The smaller value."""

    name = "MINIMUM"
    plain = plain.types("int8 uint8 int16 int32 int64 float32")
    options = "MaximumMinimumOptions"
    int8 = Int8Rule(same_scale=(0, 1))

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.minimum(a, b)

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if node.input(0).dtype is DType.INT16:
            return 4
        if versions.broadcasts_beyond_4d(node):
            return 3
        return 2 if node.input(0).dtype is DType.INT8 else 1


@operator
class Pow(BinaryElementwise):
    """The first input to the power of the second."""

    name = "POW"
    plain = plain.types("float32 int32")
    options = "PowOptions"
    int8_problem = "refuses int8"

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``; the runtime has no negative integer powers either."""
        expect(self, b.dtype.kind == "f" or b.size == 0 or int(b.min()) >= 0, "has a negative integer power", [a, b])
        return np.power(a, b)


@operator
class SquaredDifference(BinaryElementwise):
    """The square of the difference."""

    name = "SQUARED_DIFFERENCE"
    plain = plain.types("int32 float32")
    options = "SquaredDifferenceOptions"
    int8 = Int8Rule()
    versions = versions.INT8

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.asarray((a - b) * (a - b))

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from super().check(node)
        first, second = legality.scale_of(node.input(0)), legality.scale_of(node.input(1))
        if first is not None and second is not None:
            yield from legality.narrow_output(node, (2 * max(first, second)) ** 2 / 2**14,
                                              "(2 * largest input scale)**2 / 2**14")


@operator
class FloorDiv(BinaryElementwise):
    """The quotient, rounded down."""

    name = "FLOOR_DIV"
    plain = plain.types("int8 int16 int32 float32")
    options = "FloorDivOptions"
    int8_problem = "computes with the steps themselves, without scale and zero point"
    versions = {DType.FLOAT32: 2, DType.INT8: 3, DType.INT16: 3}

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.floor_divide(a, b)


@operator
class FloorMod(BinaryElementwise):
    """The rest of the quotient that is rounded down; it has the divisor's sign."""

    name = "FLOOR_MOD"
    plain = plain.types("int8 int16 int32 int64 float32")
    options = "FloorModOptions"
    int8_problem = "computes with the steps themselves, without scale and zero point"
    versions = {DType.INT8: 2, DType.INT16: 2}

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.mod(a, b)


@operator
class Atan2(BinaryElementwise):
    """The angle of the point (second input, first input)."""

    name = "ATAN2"
    plain = plain.types("float32")
    options = "ATan2Options"
    int8_problem = "refuses int8"

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.arctan2(a, b)


@operator
class BitwiseXor(BinaryElementwise):
    """Bits that are set in exactly one of both."""

    name = "BITWISE_XOR"
    plain = plain.types("int8 uint8 int16 uint16 int32")
    options = "BitwiseXorOptions"

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return np.bitwise_xor(a, b)


@operator
class RightShift(BinaryElementwise):
    """The first input shifted right by the second; keeps the sign."""

    name = "RIGHT_SHIFT"
    plain = plain.types("int8 uint8 int16 uint16 int32")
    options = "RightShiftOptions"

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        return shift_right(a, b)


@operator
class AddN(Operator):
    """The sum of any number of inputs of one type and shape."""

    name = "ADD_N"
    plain = plain.types("int32 float32")
    options = "AddNOptions"
    int8_problem = "refuses int8"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type that all inputs have."""
        found = given(self, inputs, len(inputs))
        expect(self, len(found) > 0, "takes at least 1 input, got 0", inputs)
        expect(self, len({t.type for t in found}) == 1, "needs inputs of one type and shape", inputs)
        return [found[0].type]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Add all inputs in order."""
        found = given(self, inputs, len(inputs))
        total = found[0]
        for value in found[1:]:
            total = total + value
        return [total]
