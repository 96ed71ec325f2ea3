"""Pooling over windows of height and width."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator
from vitrify.ops.attributes import Activation, Padding


@operator
@dataclass(frozen=True)
class AveragePool2D(Operator):
    """AVERAGE_POOL_2D."""

    name = "AVERAGE_POOL_2D"
    options = "Pool2DOptions"
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    filter_width: int = 1
    filter_height: int = 1
    fused_activation_function: Activation = Activation.NONE


@operator
@dataclass(frozen=True)
class MaxPool2D(Operator):
    """MAX_POOL_2D."""

    name = "MAX_POOL_2D"
    options = "Pool2DOptions"
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    filter_width: int = 1
    filter_height: int = 1
    fused_activation_function: Activation = Activation.NONE


@operator
@dataclass(frozen=True)
class L2Pool2D(Operator):
    """L2_POOL_2D."""

    name = "L2_POOL_2D"
    options = "Pool2DOptions"
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    filter_width: int = 1
    filter_height: int = 1
    fused_activation_function: Activation = Activation.NONE
