"""Activation functions.

Source: TFLite kernels/activations.cc and kernels/internal/reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding, Severity
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import operator
from vitrify.ops import legality, plain, versions
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, broadcast, expect, given
from vitrify.ops.elementwise import Elementwise
from vitrify.ops.int8 import Int8Rule
from vitrify.ops.reference.special import erf

LONG_ROW = 512
"""A row of so many equal scores gives each a share of half an 8-bit step. From there on the reference kernel of SOFTMAX
shifts by more than 31 bits and ends the process. Source: TFLite kernels/internal/reference/softmax.h; LiteRT 2.3 run on
rows."""


@operator
class Relu(Elementwise):
    """max(x, 0)."""

    name = "RELU"
    plain = plain.types("float32")
    int8 = Int8Rule()
    versions = {DType.INT8: 2, DType.UINT8: 2, DType.INT16: 3}

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.asarray(np.maximum(x, x.dtype.type(0)))


@operator
class Relu6(Elementwise):
    """x held within 0 and 6."""

    name = "RELU6"
    plain = plain.types("float32")
    int8 = Int8Rule()
    versions = versions.INT8_INT16

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.asarray(np.clip(x, 0, 6))


@operator
class ReluN1To1(Elementwise):
    """x held within -1 and 1."""

    name = "RELU_N1_TO_1"
    plain = plain.types("float32")
    int8 = Int8Rule()

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.asarray(np.clip(x, -1, 1))


@operator
class Relu0To1(Elementwise):
    """x held within 0 and 1."""

    name = "RELU_0_TO_1"
    plain = plain.types("float32")
    int8 = Int8Rule()

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.asarray(np.clip(x, 0, 1))


@operator
class LeakyRelu(Elementwise):
    """x where x > 0, else alpha * x."""

    name = "LEAKY_RELU"
    plain = plain.types("float32")
    options = "LeakyReluOptions"
    int8 = Int8Rule()
    versions = {DType.INT16: 2}
    alpha: float = 0.0

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.asarray(np.where(x > 0, x, x * x.dtype.type(self.alpha)))


@operator
class Prelu(Elementwise):
    """x where x >= 0, else alpha * x; inputs x and alpha, which broadcasts to x's shape."""

    name = "PRELU"
    plain = plain.types("float32")
    int8 = Int8Rule()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of x, which alpha must not widen."""
        x, alpha = given(self, inputs, 2)
        shape = broadcast(self, inputs, x.shape, alpha.shape)
        expect(self, shape == x.shape,
               f"has alpha {list(alpha.shape)} that does not broadcast to {list(x.shape)}", inputs)
        return [x.type]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Return the values for x and alpha."""
        x, alpha = given(self, inputs, 2)
        broadcast(self, inputs, x.shape, alpha.shape)
        return [np.where(x >= 0, x, x * alpha)]

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from legality.too_many_axes(node, 8)


@operator
class Elu(Elementwise):
    """x where x >= 0, else exp(x) - 1."""

    name = "ELU"
    plain = plain.types("float32")
    int8 = Int8Rule()

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.asarray(np.where(x < 0, np.expm1(x), x))


@operator
class Logistic(Elementwise):
    """1 / (1 + exp(-x))."""

    name = "LOGISTIC"
    plain = plain.types("float32")
    int8 = Int8Rule(output=(1 / 256, -128))
    versions = versions.INT8_INT16

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``; in the tail exp alone is exact."""
        return np.asarray(np.where(x < -9, np.exp(x), 1 / (1 + np.exp(-x))))


@operator
class Tanh(Elementwise):
    """The hyperbolic tangent."""

    name = "TANH"
    plain = plain.types("float32")
    int8 = Int8Rule(output=(1 / 128, 0))
    versions = versions.INT8_INT16

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.asarray(np.tanh(x))


@operator
class HardSwish(Elementwise):
    """x * relu6(x + 3) / 6."""

    name = "HARD_SWISH"
    plain = plain.types("float32")
    options = "HardSwishOptions"
    int8 = Int8Rule()

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        return np.asarray(x * np.clip(x + 3, 0, 6) / 6)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        x = legality.scale_of(node.input(0))
        if x is not None:
            yield from legality.narrow_output(node, x / 128, "input scale / 128")


@operator
class Gelu(Elementwise):
    """x times the normal distribution's cumulative function, by erf or by its tanh approximation.

    Source: TFLite kernels/internal/reference/gelu.h.
    """

    name = "GELU"
    plain = plain.types("float32")
    options = "GeluOptions"
    int8 = Int8Rule()
    versions = {DType.INT8: 2, DType.UINT8: 2}
    approximate: bool = False

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        if self.approximate:
            return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
        return np.asarray(0.5 * x * (1 + erf(x * math.sqrt(0.5))))


@operator
class Softmax(Elementwise):
    """exp(beta * x) over its sum along the last axis."""

    name = "SOFTMAX"
    options = "SoftmaxOptions"
    int8 = Int8Rule(output=(1 / 256, -128))
    versions = versions.INT8_INT16
    beta: float = 0.0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the input's type; it must have a last axis."""
        (x,) = given(self, inputs, 1)
        expect(self, len(x.shape) >= 1, "needs at least 1 dimension, got 0", inputs)
        return [x.type]

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        power = np.exp((x - x.max(axis=-1, keepdims=True)) * x.dtype.type(self.beta))
        return np.asarray(power / power.sum(axis=-1, keepdims=True))

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from super().check(node)
        x = node.input(0)
        if x.dtype is DType.INT8 and x.quantization is not None and x.shape[-1] >= LONG_ROW:
            yield legality.finding(
                node, "ops.long_softmax", f"is int8 over rows of {x.shape[-1]}, below {LONG_ROW} they are safe",
                why="where that many scores are alike, the reference kernel ends the process, and the share of "
                    "each, less than half a step, is 0", help="compute the softmax with 16-bit activations",
                severity=Severity.WARNING)


@operator
class LogSoftmax(Elementwise):
    """The logarithm of the softmax along the last axis."""

    name = "LOG_SOFTMAX"
    options = "LogSoftmaxOptions"
    int8 = Int8Rule(output=(16 / 256, 127))
    versions = versions.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the input's type; it must have a last axis."""
        (x,) = given(self, inputs, 1)
        expect(self, len(x.shape) >= 1, "needs at least 1 dimension, got 0", inputs)
        return [x.type]

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        shifted = x - x.max(axis=-1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
