"""The elementwise families: one input, or two that broadcast."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ops import legality
from vitrify.ops.attributes import Activation
from vitrify.ops.base import Array, Arrays, Inputs, Operator, TensorType, broadcast, expect, given


def activate(values: Array, activation: Activation) -> Array:
    """Apply a fused activation.

    Source: TFLite kernels/internal/util, CalculateActivationRange.
    """
    one = values.dtype.type(1)
    match activation:
        case Activation.RELU:
            return np.asarray(np.maximum(values, values.dtype.type(0)))
        case Activation.RELU6:
            return np.asarray(np.clip(values, 0 * one, 6 * one))
        case Activation.RELU_N1_TO_1:
            return np.asarray(np.clip(values, -one, one))
        case Activation.TANH:
            return np.asarray(np.tanh(values))
        case Activation.SIGN_BIT:
            return np.asarray(np.signbit(values)).astype(values.dtype)
    return values


class Elementwise(Operator):
    """One input; the output has its type and shape."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the input's type."""
        (x,) = given(self, inputs, 1)
        return [x.type]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Apply ``compute`` to the input."""
        (x,) = given(self, inputs, 1)
        with np.errstate(all="ignore"):        # the runtime gives inf and nan without a word
            return [np.asarray(self.compute(x)).astype(x.dtype, copy=False)]

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        raise NotImplementedError


class BinaryElementwise(Operator):
    """Two inputs of one element type that broadcast; the output has their type."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the common type with the broadcast shape."""
        a, b = given(self, inputs, 2)
        expect(self, a.dtype == b.dtype, f"needs one element type, got {a.dtype.label} and {b.dtype.label}", inputs)
        return [TensorType(self.result(a.dtype), broadcast(self, inputs, a.shape, b.shape))]

    def result(self, dtype: DType) -> DType:
        """Return the output's element type for inputs of ``dtype``."""
        return dtype

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Apply ``compute`` to both inputs, then the fused activation where the operator has one."""
        a, b = given(self, inputs, 2)
        broadcast(self, inputs, a.shape, b.shape)
        with np.errstate(all="ignore"):        # the runtime gives inf, nan and wrapped integers without a word
            out = np.asarray(self.compute(a, b))
        wanted = self.result(DType.of(a.dtype)).numpy
        out = out.astype(wanted, copy=False)
        return [activate(out, getattr(self, "fused_activation_function", Activation.NONE))]

    def compute(self, a: Array, b: Array) -> Array:
        """Return the values for ``a`` and ``b``."""
        raise NotImplementedError

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        if node.input(0).shape != node.input(1).shape:
            yield from legality.too_many_axes(node, 8)
