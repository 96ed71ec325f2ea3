"""Convolutions, plain, depthwise and transposed; the 3-D ones are in ``convolution3d``.

Source: TFLite kernels/conv.cc, depthwise_conv.cc, transpose_conv.cc and kernels/internal/reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from vitrify.core.findings import Finding
from vitrify.ir.dtypes import DType
from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, operator
from vitrify.ops import legality, versions
from vitrify.ops.attributes import Activation, Padding
from vitrify.ops.base import (
    Array,
    Arrays,
    Inputs,
    Tensor,
    TensorType,
    constant_ints,
    expect,
    expect_rank,
    given,
)
from vitrify.ops.convolution3d import Conv3D, Conv3DTranspose
from vitrify.ops.elementwise import activate
from vitrify.ops.int8 import Int8Rule
from vitrify.ops.reference import conv
from vitrify.ops.window import Window, slide

__all__ = ["Conv2D", "Conv3D", "Conv3DTranspose", "DepthwiseConv2D", "TransposeConv"]


def check_bias(op: Operator, inputs: Inputs, index: int, channels: int) -> None:
    """Refuse a bias that does not have one value for each output channel."""
    bias = inputs[index] if index < len(inputs) else None
    if bias is not None:
        expect(op, bias.size == channels, f"has {bias.size} biases for {channels} output channels", inputs)


def add_bias(values: Array, inputs: Arrays, index: int) -> Array:
    """Add the bias along the last axis where there is one."""
    bias = inputs[index] if index < len(inputs) else None
    return values if bias is None else values + bias.reshape(-1)


@operator
class Conv2D(Operator):
    """Convolution; grouped when the weights have fewer input channels than x.

    Inputs:  x [N,H,W,C], weights [O,KH,KW,C/groups], bias [O] (may be left out)
    Outputs: y [N,H',W',O]
    """

    name = "CONV_2D"
    options = "Conv2DOptions"
    int8 = Int8Rule(weight=1, weight_axis=0, bias=2)
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    fused_activation_function: Activation = Activation.NONE
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1
    quantized_bias_type: int = 0

    def windows(self, weights: tuple[int, ...]) -> tuple[Window, Window]:
        """Return the windows over height and width for weights of this shape."""
        return (Window(weights[1], self.stride_h, self.dilation_h_factor),
                Window(weights[2], self.stride_w, self.dilation_w_factor))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of y."""
        x, w = given(self, inputs, 2, 3)
        expect_rank(self, inputs, 0, 4)
        expect_rank(self, inputs, 1, 4)
        taken = w.shape[3]
        expect(self, taken > 0 and x.shape[3] % taken == 0,
               f"has weights for {taken} input channels, x has {x.shape[3]}", inputs)
        groups = x.shape[3] // taken
        expect(self, groups > 0 and w.shape[0] % groups == 0,
               f"has {w.shape[0]} output channels, not a multiple of its {groups} groups", inputs)
        check_bias(self, inputs, 2, w.shape[0])
        height, width = slide(self, inputs, x.shape[1:3], self.windows(w.shape), self.padding)
        return [TensorType(x.dtype, (x.shape[0], height, width, w.shape[0]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Convolve, add the bias, activate."""
        x, w = given(self, inputs, 2, 3)
        out = conv.convolve(x, w, self.windows(w.shape), self.padding)
        return [activate(add_bias(out, inputs, 2), self.fused_activation_function)]

    def macs(self, node: Node) -> int:
        """One for each output element, tap and input channel of the group."""
        weights = node.input(1)
        return node.output.size * (weights.size // max(1, weights.shape[0]))

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x, weights = node.input(0), node.input(1)
        if x.dtype is DType.INT16 and weights.dtype is DType.INT8 and self.quantized_bias_type:
            return 8
        if x.shape[3] != weights.shape[3]:
            return 6
        if x.dtype is DType.INT16:
            return 4
        if versions.is_hybrid(node):
            return 5 if versions.has_axis(node, 1) else 2
        return {(DType.INT8, DType.INT8): 3, (DType.INT8, DType.INT4): 7}.get((x.dtype, weights.dtype), 1)

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from legality.needs_bias(node, 2, "refuses it")


@operator
class DepthwiseConv2D(Operator):
    """Convolution of every channel by itself.

    Inputs:  x [N,H,W,C], weights [1,KH,KW,C*multiplier], bias [C*multiplier] (may be left out)
    Outputs: y [N,H',W',C*multiplier]
    """

    name = "DEPTHWISE_CONV_2D"
    options = "DepthwiseConv2DOptions"
    int8 = Int8Rule(weight=1, weight_axis=3, bias=2)
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    depth_multiplier: int = 1
    fused_activation_function: Activation = Activation.NONE
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1

    def windows(self, weights: tuple[int, ...]) -> tuple[Window, Window]:
        """Return the windows over height and width for weights of this shape."""
        return (Window(weights[1], self.stride_h, self.dilation_h_factor),
                Window(weights[2], self.stride_w, self.dilation_w_factor))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of y."""
        x, w = given(self, inputs, 2, 3)
        expect_rank(self, inputs, 0, 4)
        expect_rank(self, inputs, 1, 4)
        channels, given_channels = x.shape[3], w.shape[3]
        expect(self, w.shape[0] == 1, f"needs weights with 1 as first extent, got {w.shape[0]}", inputs)
        expect(self, channels > 0 and given_channels % channels == 0,
               f"has weights for {given_channels} channels, not a multiple of the {channels} of x", inputs)
        check_bias(self, inputs, 2, given_channels)
        height, width = slide(self, inputs, x.shape[1:3], self.windows(w.shape), self.padding)
        return [TensorType(x.dtype, (x.shape[0], height, width, given_channels))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Add up the taps."""
        x, w = given(self, inputs, 2, 3)
        out = conv.convolve_depthwise(x, w, self.windows(w.shape), self.padding)
        return [activate(add_bias(out, inputs, 2), self.fused_activation_function)]

    def macs(self, node: Node) -> int:
        """One for each output element and tap."""
        weights = node.input(1)
        return node.output.size * weights.shape[1] * weights.shape[2]

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        x, weights = node.input(0), node.input(1)
        if x.dtype is DType.INT16:
            return 5
        if versions.is_hybrid(node):
            return 6 if versions.has_axis(node, 1) else 4
        dilated = (self.dilation_h_factor, self.dilation_w_factor) != (1, 1)
        return 3 if x.dtype is DType.INT8 and weights.dtype in (DType.INT8, DType.INT4) else 1 + dilated

    def check(self, node: Node) -> Iterator[Finding]:
        """Yield what the runtime would refuse or die of."""
        yield from legality.needs_bias(node, 2, "dies of it, except in reference kernels")


@operator
class TransposeConv(Operator):
    """The gradient of a convolution, used to enlarge.

    Inputs:  output shape int32[4] (constant), weights [O,KH,KW,C], x [N,H,W,C], bias [O] (may be left out)
    Outputs: y of that shape
    """

    name = "TRANSPOSE_CONV"
    options = "TransposeConvOptions"
    int8 = Int8Rule(weight=1, weight_axis=0, bias=3, keep=(0,))
    padding: Padding = Padding.SAME
    stride_w: int = 1
    stride_h: int = 1
    fused_activation_function: Activation = Activation.NONE
    quantized_bias_type: int = 0

    def windows(self, weights: tuple[int, ...]) -> tuple[Window, Window]:
        """Return the windows over height and width for weights of this shape."""
        return Window(weights[1], self.stride_h), Window(weights[2], self.stride_w)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of y; its windows must give the extents of x back."""
        _, w, x = given(self, inputs, 3, 4)
        expect_rank(self, inputs, 1, 4)
        expect_rank(self, inputs, 2, 4)
        shape = constant_ints(self, inputs, 0, "output shape")
        expect(self, len(shape) == 4, f"needs an output shape of 4 numbers, got {list(shape)}", inputs)
        expect(self, w.shape[3] == x.shape[3],
               f"has weights for {w.shape[3]} input channels, x has {x.shape[3]}", inputs)
        expect(self, shape[0] == x.shape[0] and shape[3] == w.shape[0],
               f"has output shape {list(shape)} for batch {x.shape[0]} and {w.shape[0]} output channels", inputs)
        back = slide(self, inputs, shape[1:3], self.windows(w.shape), self.padding)
        expect(self, back == x.shape[1:3], f"has output shape {list(shape)}, which a convolution would bring to "
               f"{list(back)}, not to the {list(x.shape[1:3])} of x", inputs)
        check_bias(self, inputs, 3, w.shape[0])
        return [TensorType(x.dtype, shape)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Scatter every input element through all taps."""
        wanted, w, x = given(self, inputs, 3, 4)
        shape = tuple(int(v) for v in wanted)
        out = conv.convolve_transposed(x, w, shape, self.windows(w.shape), self.padding)
        return [activate(add_bias(out, inputs, 3), self.fused_activation_function)]

    def macs(self, node: Node) -> int:
        """One for each input element, tap and output channel."""
        weights: Tensor = node.input(1)
        return node.input(2).size * (weights.size // max(1, weights.shape[3]))

    def version(self, node: Node) -> int:
        """Return the version that the types and attributes need."""
        if node.input(2).dtype is DType.INT16 and node.input(1).dtype is DType.INT8 and self.quantized_bias_type:
            return 5
        if self.fused_activation_function != Activation.NONE:
            return 4
        if node.optional(3) is not None:
            return 3
        return 2 if node.input(1).dtype is DType.INT8 else 1
