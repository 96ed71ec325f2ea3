"""Pooling over windows of images.

Source: TFLite kernels/pooling.cc and kernels/internal/reference/pooling.h.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.operator import Operator, attributes, operator
from vitrify.ops import plain, versions
from vitrify.ops.attributes import Activation, Padding
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, expect_rank, given
from vitrify.ops.elementwise import activate
from vitrify.ops.int8 import Int8Rule
from vitrify.ops.reference.conv import taps
from vitrify.ops.window import Window, slide


@attributes
class Pool2D(Operator):
    """One value of each window and channel; x [N,H,W,C], y [N,H',W',C]. Padding never counts."""

    options = "Pool2DOptions"
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    filter_width: int = 1
    filter_height: int = 1
    fused_activation_function: Activation = Activation.NONE

    @property
    def windows(self) -> tuple[Window, Window]:
        """The windows over height and width."""
        return Window(self.filter_height, self.stride_h), Window(self.filter_width, self.stride_w)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of y."""
        (x,) = given(self, inputs, 1)
        expect_rank(self, inputs, 0, 4)
        height, width = slide(self, inputs, x.shape[1:3], self.windows, self.padding)
        return [TensorType(x.dtype, (x.shape[0], height, width, x.shape[3]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Pool, then apply the fused activation."""
        (x,) = given(self, inputs, 1)
        expect_rank(self, inputs, 0, 4)
        return [activate(self.pool(x).astype(x.dtype, copy=False), self.fused_activation_function)]

    def pool(self, x: Array) -> Array:
        """Return one value of each window."""
        raise NotImplementedError

    def mean(self, x: Array) -> Array:
        """Return the mean over each window, without what lies in the padding."""
        ones = np.ones((1, *x.shape[1:3], 1), x.dtype)
        total = sum(view for _, view in taps(x, self.windows, self.padding))
        count = sum(view for _, view in taps(ones, self.windows, self.padding))
        return np.asarray(total / count)


@operator
class AveragePool2D(Pool2D):
    """The mean of each window."""

    name = "AVERAGE_POOL_2D"
    plain = plain.types("float32")
    int8 = Int8Rule(same_scale=(0,))
    versions = versions.INT8_INT16

    def pool(self, x: Array) -> Array:
        """Return the means; integers are rounded, halves away from zero."""
        if x.dtype.kind == "f":
            return self.mean(x)
        mean = self.mean(x.astype(np.int64))
        return np.asarray(np.trunc(mean + np.copysign(0.5, mean)))


@operator
class MaxPool2D(Pool2D):
    """The largest value of each window."""

    name = "MAX_POOL_2D"
    plain = plain.types("int8 uint8 int16 float32")
    int8 = Int8Rule(same_scale=(0,))
    versions = versions.INT8_INT16

    def pool(self, x: Array) -> Array:
        """Return the maxima."""
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        best: Array | None = None
        for _, view in taps(x, self.windows, self.padding, lowest):
            best = view if best is None else np.maximum(best, view)
        assert best is not None      # windows have at least one tap
        return best


@operator
class L2Pool2D(Pool2D):
    """The root of the mean square of each window."""

    name = "L2_POOL_2D"
    int8_problem = "refuses int8"

    def pool(self, x: Array) -> Array:
        """Return the roots."""
        return np.asarray(np.sqrt(self.mean(x * x)))
