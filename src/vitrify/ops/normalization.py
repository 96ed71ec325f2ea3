"""Normalizations that TFLite has as operators.

Source: TFLite kernels/l2norm.cc, local_response_norm.cc and kernels/internal/reference.
"""

from __future__ import annotations

import numpy as np

from vitrify.ir.operator import operator
from vitrify.ops import versions
from vitrify.ops.attributes import Activation
from vitrify.ops.base import Array
from vitrify.ops.elementwise import Elementwise, activate
from vitrify.ops.int8 import Int8Rule


@operator
class L2Normalization(Elementwise):
    """x over its Euclidean norm along the last axis, which counts as 1e-6 at least."""

    name = "L2_NORMALIZATION"
    options = "L2NormOptions"
    int8 = Int8Rule(output=(1 / 128, 0))
    versions = versions.INT8
    fused_activation_function: Activation = Activation.NONE

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        norm = np.sqrt((x * x).sum(axis=-1, keepdims=True))
        return activate(x / np.maximum(norm, np.float32(1e-6)), self.fused_activation_function)


@operator
class LocalResponseNormalization(Elementwise):
    """x over a power of the squares summed over neighbouring channels."""

    name = "LOCAL_RESPONSE_NORMALIZATION"
    options = "LocalResponseNormalizationOptions"
    int8_problem = "refuses int8"
    radius: int = 0
    bias: float = 0.0
    alpha: float = 0.0
    beta: float = 0.0

    def compute(self, x: Array) -> Array:
        """Return the values for ``x``."""
        # The runtime's window ends before channel c + radius.
        total = np.cumsum(np.pad(x * x, [*[(0, 0)] * (x.ndim - 1), (1, 0)]), axis=-1)
        channels = np.arange(x.shape[-1])
        ends = np.minimum(channels + self.radius, x.shape[-1])
        windows = total[..., ends] - total[..., np.maximum(channels - self.radius, 0)]
        return np.asarray(x * (self.bias + self.alpha * windows) ** -self.beta)
