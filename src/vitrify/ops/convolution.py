"""Convolutions, plain, depthwise, transposed and 3-D."""

from __future__ import annotations

from dataclasses import dataclass

from vitrify.ir.operator import Operator, operator
from vitrify.ops.attributes import Activation, Padding


@operator
@dataclass(frozen=True)
class Conv2D(Operator):
    """CONV_2D."""

    name = "CONV_2D"
    options = "Conv2DOptions"
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    fused_activation_function: Activation = Activation.NONE
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1
    quantized_bias_type: int = 0


@operator
@dataclass(frozen=True)
class DepthwiseConv2D(Operator):
    """DEPTHWISE_CONV_2D."""

    name = "DEPTHWISE_CONV_2D"
    options = "DepthwiseConv2DOptions"
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    depth_multiplier: int = 1
    fused_activation_function: Activation = Activation.NONE
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1


@operator
@dataclass(frozen=True)
class TransposeConv(Operator):
    """TRANSPOSE_CONV."""

    name = "TRANSPOSE_CONV"
    options = "TransposeConvOptions"
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    fused_activation_function: Activation = Activation.NONE
    quantized_bias_type: int = 0


@operator
@dataclass(frozen=True)
class Conv3D(Operator):
    """CONV_3D."""

    name = "CONV_3D"
    options = "Conv3DOptions"
    padding: Padding = Padding.SAME
    stride_d: int = 1
    stride_w: int = 1
    stride_h: int = 1
    fused_activation_function: Activation = Activation.NONE
    dilation_d_factor: int = 1
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1


@operator
@dataclass(frozen=True)
class Conv3DTranspose(Operator):
    """CONV_3D_TRANSPOSE."""

    name = "CONV_3D_TRANSPOSE"
    options = "Conv3DOptions"
    padding: Padding = Padding.SAME
    stride_d: int = 1
    stride_w: int = 1
    stride_h: int = 1
    fused_activation_function: Activation = Activation.NONE
    dilation_d_factor: int = 1
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1
