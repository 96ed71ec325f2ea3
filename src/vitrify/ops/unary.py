"""Elementwise arithmetic of one input.

Source: TFLite kernels/elementwise.cc, neg.cc, exp.cc, floor.cc, ceil.cc, round.cc, sign.cc.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.dtypes import DType
from vitrify.ir.operator import operator
from vitrify.ops import plain, versions
from vitrify.ops.base import Array
from vitrify.ops.elementwise import Elementwise
from vitrify.ops.int8 import Int8Rule


@operator
class Abs(Elementwise):
    """The absolute value."""

    name = "ABS"
    plain = plain.types("int16 int32 float32")
    options = "AbsOptions"
    int8 = Int8Rule()
    versions = {DType.INT8: 2, DType.UINT8: 2}

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.abs(x)


@operator
class Neg(Elementwise):
    """The negated value."""

    name = "NEG"
    plain = plain.types("int8 int16 int32 int64 float32")
    options = "NegOptions"
    int8_problem = "computes with the steps themselves, without scale and zero point"

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.negative(x)


@operator
class Sqrt(Elementwise):
    """The square root."""

    name = "SQRT"
    plain = plain.types("float32")
    int8 = Int8Rule()

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.sqrt(x)


@operator
class Rsqrt(Elementwise):
    """One over the square root."""

    name = "RSQRT"
    plain = plain.types("float32")
    int8 = Int8Rule()
    versions = versions.INT8_INT16

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return 1 / np.sqrt(x)


@operator
class Square(Elementwise):
    """The square."""

    name = "SQUARE"
    plain = plain.types("float32")
    options = "SquareOptions"
    int8_problem = "refuses int8"

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return x * x


@operator
class Exp(Elementwise):
    """e to the power of the input."""

    name = "EXP"
    plain = plain.types("float32")
    options = "ExpOptions"
    int8 = Int8Rule()
    versions = {DType.INT8: 2, DType.INT16: 2}

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.exp(x)


@operator
class Log(Elementwise):
    """The natural logarithm."""

    name = "LOG"
    plain = plain.types("float32")
    int8 = Int8Rule()
    versions = {DType.INT8: 2, DType.INT16: 2}

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.log(x)


@operator
class Sin(Elementwise):
    """The sine."""

    name = "SIN"
    plain = plain.types("float32")
    int8_problem = "refuses int8"

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.sin(x)


@operator
class Cos(Elementwise):
    """The cosine."""

    name = "COS"
    plain = plain.types("float32")
    options = "CosOptions"
    int8_problem = "refuses int8"

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.cos(x)


@operator
class Floor(Elementwise):
    """The next integer below."""

    name = "FLOOR"
    plain = plain.types("float32")
    int8_problem = "refuses int8"

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.floor(x)


@operator
class Ceil(Elementwise):
    """The next integer above."""

    name = "CEIL"
    plain = plain.types("float32")
    int8_problem = "refuses int8"

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.ceil(x)


@operator
class Round(Elementwise):
    """The nearest integer, halves to the even one."""

    name = "ROUND"
    plain = plain.types("float32")
    int8_problem = "refuses int8"

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.rint(x)


@operator
class Sign(Elementwise):
    """-1, 0 or 1."""

    name = "SIGN"
    plain = plain.types("int32 float32")
    options = "SignOptions"
    int8_problem = "refuses int8"
    versions = {DType.INT32: 2}

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.sign(x)
