"""Normalizations that TFLite has as operators."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator
from vitrify.ops.attributes import Activation


@operator
@dataclass(frozen=True)
class L2Normalization(Operator):
    """L2_NORMALIZATION."""

    name = "L2_NORMALIZATION"
    options = "L2NormOptions"
    fused_activation_function: Activation = Activation.NONE


@operator
@dataclass(frozen=True)
class LocalResponseNormalization(Operator):
    """LOCAL_RESPONSE_NORMALIZATION."""

    name = "LOCAL_RESPONSE_NORMALIZATION"
    options = "LocalResponseNormalizationOptions"
    radius: int = 0
    bias: float = 0.0
    alpha: float = 0.0
    beta: float = 0.0
