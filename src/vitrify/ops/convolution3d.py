"""Convolutions over volumes.

Source: TFLite kernels/conv3d.cc, conv3d_transpose.cc and kernels/internal/reference.
"""

from __future__ import annotations

from vitrify.ir.graph import Node
from vitrify.ir.operator import Operator, attributes, operator
from vitrify.ops.attributes import Activation, Padding
from vitrify.ops.base import Array, Arrays, Inputs, TensorType, constant_ints, expect, expect_rank, given
from vitrify.ops.elementwise import activate
from vitrify.ops.reference import conv
from vitrify.ops.window import Window, slide


@attributes
class Volume(Operator):
    """The attributes that both 3-D convolutions have."""

    options = "Conv3DOptions"
    padding: Padding = Padding.SAME
    stride_d: int = 1
    stride_w: int = 1
    stride_h: int = 1
    fused_activation_function: Activation = Activation.NONE
    dilation_d_factor: int = 1
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1

    def windows(self, weights: tuple[int, ...]) -> tuple[Window, ...]:
        """Return the windows over depth, height and width for weights of this shape."""
        return (Window(weights[0], self.stride_d, self.dilation_d_factor),
                Window(weights[1], self.stride_h, self.dilation_h_factor),
                Window(weights[2], self.stride_w, self.dilation_w_factor))


@operator
class Conv3D(Volume):
    """Convolution over a volume.

    Inputs:  x [N,D,H,W,C], weights [KD,KH,KW,C,O], bias [O] (may be left out)
    Outputs: y [N,D',H',W',O]
    """

    name = "CONV_3D"
    int8_problem = "refuses int8"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of y."""
        x, w = given(self, inputs, 2, 3)
        expect_rank(self, inputs, 0, 5)
        expect_rank(self, inputs, 1, 5)
        expect(self, w.shape[3] == x.shape[4],
               f"has weights for {w.shape[3]} input channels, x has {x.shape[4]}", inputs)
        sizes = slide(self, inputs, x.shape[1:4], self.windows(w.shape), self.padding)
        return [TensorType(x.dtype, (x.shape[0], *sizes, w.shape[4]))]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Convolve, add the bias, activate."""
        x, w = given(self, inputs, 2, 3)
        out = conv.convolve(x, w.transpose(4, 0, 1, 2, 3), self.windows(w.shape), self.padding)
        bias = inputs[2] if len(inputs) > 2 else None
        return [activate(out if bias is None else out + bias, self.fused_activation_function)]

    def macs(self, node: Node) -> int:
        """One for each output element, tap and input channel."""
        weights = node.input(1)
        return node.output.size * (weights.size // max(1, weights.shape[4]))


@operator
class Conv3DTranspose(Volume):
    """The gradient of a 3-D convolution.

    Inputs:  output shape int32[5] (constant), weights [KD,KH,KW,O,C], x [N,D,H,W,C], bias [O] (may be left out)
    Outputs: y of that shape
    """

    name = "CONV_3D_TRANSPOSE"
    int8_problem = "refuses int8"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Return the type of y; its windows must give the extents of x back."""
        _, w, x = given(self, inputs, 3, 4)
        expect_rank(self, inputs, 1, 5)
        expect_rank(self, inputs, 2, 5)
        shape = constant_ints(self, inputs, 0, "output shape")
        expect(self, len(shape) == 5, f"needs an output shape of 5 numbers, got {list(shape)}", inputs)
        expect(self, w.shape[4] == x.shape[4] and (shape[0], shape[4]) == (x.shape[0], w.shape[3]),
               f"has output shape {list(shape)} for the shapes of x and weights", inputs)
        back = slide(self, inputs, shape[1:4], self.windows(w.shape), self.padding)
        expect(self, back == x.shape[1:4], f"has output shape {list(shape)}, which a convolution would bring to "
               f"{list(back)}, not to the {list(x.shape[1:4])} of x", inputs)
        return [TensorType(x.dtype, shape)]

    def evaluate(self, inputs: Arrays) -> list[Array]:
        """Scatter every input element through all taps."""
        wanted, w, x = given(self, inputs, 3, 4)
        shape = tuple(int(v) for v in wanted)
        out = conv.convolve_transposed(x, w.transpose(3, 0, 1, 2, 4), shape, self.windows(w.shape), self.padding)
        bias = inputs[3] if len(inputs) > 3 else None
        return [activate(out if bias is None else out + bias, self.fused_activation_function)]

    def macs(self, node: Node) -> int:
        """One for each input element, tap and output channel."""
        weights = node.input(1)
        return node.input(2).size * (weights.size // max(1, weights.shape[4]))
