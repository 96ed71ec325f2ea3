"""Convolutions and pooling: windows, strides, dilation, padding, activations, scales."""

from __future__ import annotations

from collections.abc import Iterator

from npusim_cases.pen import Case, Draw, Pen, both, table
from vitrify import ops
from vitrify.ir import Tensor
from vitrify.ops import Activation, Padding

SAME, VALID = Padding.SAME, Padding.VALID
NONE, RELU, RELU6, RELU1 = Activation.NONE, Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1
Pair = tuple[int, int]


def conv(shape: tuple[int, int, int] = (13, 11, 10), outputs: int = 12, kernel: Pair = (3, 3), stride: Pair = (1, 1),
         dilation: Pair = (1, 1), padding: Padding = SAME, activation: Activation = NONE, axis: int | None = 0,
         scale: float | None = None, bias: bool = True, spread: int = 18, weight_scale: float = 0.01,
         size: int = 2000) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(1, *shape)
        weights = pen.weights(outputs, *kernel, shape[2], axis=axis, spread=spread, scale=weight_scale)
        op = ops.Conv2D(padding=padding, stride_h=stride[0], stride_w=stride[1], dilation_h_factor=dilation[0],
                        dilation_w_factor=dilation[1], fused_activation_function=activation)
        return pen.op(op, [x, weights, pen.bias(x, weights, outputs, size) if bias else None],
                      scale if scale is not None else 2e-3 if pen.wide else 0.4)
    return draw


def depthwise(shape: tuple[int, int, int] = (13, 11, 10), multiplier: int = 1, kernel: Pair = (3, 3),
              stride: Pair = (1, 1), dilation: Pair = (1, 1), padding: Padding = SAME, activation: Activation = NONE,
              axis: int | None = 3, scale: float | None = None) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(1, *shape)
        outputs = shape[2] * multiplier
        weights = pen.weights(1, *kernel, outputs, axis=axis)
        op = ops.DepthwiseConv2D(padding=padding, stride_h=stride[0], stride_w=stride[1], depth_multiplier=multiplier,
                                 dilation_h_factor=dilation[0], dilation_w_factor=dilation[1],
                                 fused_activation_function=activation)
        return pen.op(op, [x, weights, pen.bias(x, weights, outputs)],
                      scale if scale is not None else 1e-3 if pen.wide else 0.12)
    return draw


def transposed(shape: tuple[int, int, int] = (7, 6, 10), outputs: int = 9, kernel: Pair = (3, 3), stride: Pair = (2, 2),
               padding: Padding = SAME, axis: int | None = 0, bias: bool = True,
               activation: Activation = NONE) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(1, *shape)
        weights = pen.weights(outputs, *kernel, shape[2], axis=axis)
        extents = [size * step if padding is SAME else size * step + window - step
                   for size, step, window in zip(shape, stride, kernel, strict=False)]
        op = ops.TransposeConv(padding=padding, stride_h=stride[0], stride_w=stride[1],
                               fused_activation_function=activation)
        inputs = [pen.ints(1, *extents, outputs), weights, x]
        return pen.op(op, [*inputs, pen.bias(x, weights, outputs)] if bias else inputs,
                      1e-3 if pen.wide else 0.3, shape=(1, *extents, outputs))
    return draw


def pool(kind: type[ops.Operator], shape: tuple[int, int, int] = (13, 11, 10), kernel: Pair = (2, 2),
         stride: Pair = (2, 2), padding: Padding = SAME, activation: Activation = NONE) -> Draw:
    def draw(pen: Pen) -> Tensor:
        x = pen.x(1, *shape)
        op = kind(padding=padding, stride_h=stride[0], stride_w=stride[1], filter_height=kernel[0],
                  filter_width=kernel[1], fused_activation_function=activation)
        return pen.op(op, [x], like=x)
    return draw


def halved(pen: Pen) -> Tensor:
    """Scales that are powers of two, so that every second sum lies between two steps."""
    x = pen.x(1, 8, 8, 4, scale=2.0 ** (-10 if pen.wide else -4), zero=0)
    weights = pen.weights(4, 1, 1, 4, axis=None, scale=2.0 ** -7)
    return pen.op(ops.Conv2D(), [x, weights, pen.bias(x, weights, 4)], 2.0 ** (-13 if pen.wide else -3), 0)


CONVOLUTIONS = {
    "halves": halved,
    "1x1": conv(kernel=(1, 1)), "1x1 of one channel": conv((9, 8, 1), kernel=(1, 1)),
    "1x1 to one channel": conv(outputs=1, kernel=(1, 1)), "1x1 deep": conv((5, 4, 150), 70, (1, 1), scale=1.2),
    "1x1 stride 2": conv(kernel=(1, 1), stride=(2, 2)), "1x3": conv(kernel=(1, 3)), "3x1": conv(kernel=(3, 1)),
    "2x2": conv(kernel=(2, 2)), "3x3": conv(), "3x3 valid": conv(padding=VALID),
    "3x3 of three channels": conv((19, 17, 3), 16, stride=(2, 2)), "3x3 stride 1x2": conv(stride=(1, 2)),
    "3x3 stride 2": conv(stride=(2, 2)), "3x3 stride 2 even": conv((12, 10, 10), stride=(2, 2)),
    "3x3 stride 2 valid": conv(stride=(2, 2), padding=VALID), "3x3 stride 3": conv(stride=(3, 3)),
    "3x3 stride 3x1": conv(stride=(3, 1)), "3x3 dilated 2": conv(dilation=(2, 2)),
    "3x3 dilated 1x2": conv(dilation=(1, 2)), "3x3 dilated 3": conv(dilation=(3, 3)),
    "3x3 dilated 4 valid": conv(dilation=(4, 4), padding=VALID), "5x5": conv(kernel=(5, 5)),
    "5x5 stride 2": conv(kernel=(5, 5), stride=(2, 2)), "7x7 stride 2": conv((21, 20, 3), 8, (7, 7), (2, 2)),
    "9x9": conv((15, 14, 5), 7, (9, 9)), "11x11": conv((14, 13, 4), 5, (11, 11)),
    "1x17": conv((3, 40, 8), 9, (1, 17)), "33x1 valid": conv((40, 3, 8), 9, (33, 1), padding=VALID),
    "3x3 as large as the input": conv((3, 3, 12), 10, padding=VALID), "of 1 row": conv((1, 30, 12), 10, (1, 5)),
    "of 1 column": conv((30, 1, 12), 10, (5, 1)), "relu": conv(activation=RELU), "relu6": conv(activation=RELU6),
    "relu -1 to 1": conv(activation=RELU1, scale=None), "one scale": conv(axis=None),
    "one scale 1x1": conv(kernel=(1, 1), axis=None),
    "large bias": conv(size=1_000_000), "16 channels": conv((9, 8, 16), 16),
    "33 channels": conv((9, 8, 33), 33), "64 to 96 channels": conv((6, 6, 64), 96, scale=None),
    "130 channels": conv((6, 5, 130), 40), "many rows": conv((70, 9, 4), 6), "many columns": conv((5, 90, 4), 6),
    "tiny scale": conv(scale=1e-4), "large scale": conv(scale=9.0), "fine weights": conv(weight_scale=1e-5),
    "coarse weights": conv(weight_scale=0.5, scale=8.0), "sparse weights": conv(spread=1),
    "wide weights": conv(spread=90), "scale above one": conv((9, 8, 4), 6, (1, 1), weight_scale=2.0, scale=0.03)}
DEPTHWISES = {
    "3x3": depthwise(), "3x3 valid": depthwise(padding=VALID), "3x3 stride 2": depthwise(stride=(2, 2)),
    "3x3 stride 3": depthwise(stride=(3, 3)), "3x3 stride 2x1": depthwise(stride=(2, 1)),
    "3x3 dilated 2": depthwise(dilation=(2, 2)), "3x3 dilated 3": depthwise(dilation=(3, 3)),
    "1x1": depthwise(kernel=(1, 1)), "2x2": depthwise(kernel=(2, 2)), "5x5": depthwise(kernel=(5, 5)),
    "5x5 stride 2": depthwise(kernel=(5, 5), stride=(2, 2)), "7x7": depthwise(kernel=(7, 7)),
    "9x9": depthwise((12, 12, 7), kernel=(9, 9)), "1x9": depthwise(kernel=(1, 9)), "9x1": depthwise(kernel=(9, 1)),
    "relu": depthwise(activation=RELU), "relu6": depthwise(activation=RELU6), "one scale": depthwise(axis=None),
    "1 channel": depthwise((13, 11, 1)), "16 channels": depthwise((13, 11, 16)), "70 channels": depthwise((9, 7, 70)),
    "multiplier 2 of one channel": depthwise((13, 11, 1), 2), "multiplier 8 of one channel": depthwise((13, 11, 1), 8),
    "multiplier 2": depthwise((9, 8, 6), 2), "multiplier 3": depthwise((9, 8, 5), 3),
    "many rows": depthwise((80, 8, 8)), "tiny scale": depthwise(scale=1e-4), "large scale": depthwise(scale=5.0)}
TRANSPOSED = {
    "3x3 stride 2": transposed(), "2x2 stride 2": transposed(kernel=(2, 2)), "4x4 stride 2": transposed(kernel=(4, 4)),
    "5x5 stride 2": transposed(kernel=(5, 5)), "3x3 stride 2 valid": transposed(padding=VALID),
    "2x2 stride 2 valid": transposed(kernel=(2, 2), padding=VALID),
    "4x4 stride 2 valid": transposed(kernel=(4, 4), padding=VALID), "3x3 stride 1": transposed(stride=(1, 1)),
    "1x1 stride 1": transposed(stride=(1, 1), kernel=(1, 1)), "1x4 stride 1x2": transposed((1, 9, 8), kernel=(1, 4),
                                                                                         stride=(1, 2)),
    "4x1 stride 2x1": transposed((9, 1, 8), kernel=(4, 1), stride=(2, 1)), "one scale": transposed(axis=None),
    "no bias": transposed(bias=False), "relu": transposed(activation=RELU), "1 channel": transposed((7, 6, 1), 1),
    "40 channels": transposed((5, 4, 40), 20), "1x1 stride 2": transposed(kernel=(1, 1))}
POOLS = {
    "2x2": {}, "2x2 valid": {"padding": VALID}, "2x2 stride 1": {"stride": (1, 1)},
    "3x3 stride 1": {"kernel": (3, 3), "stride": (1, 1)}, "3x3 stride 2": {"kernel": (3, 3)},
    "3x3 stride 2 valid": {"kernel": (3, 3), "padding": VALID}, "3x3 stride 3": {"kernel": (3, 3), "stride": (3, 3)},
    "5x5 stride 1": {"kernel": (5, 5), "stride": (1, 1)}, "1x3 stride 1": {"kernel": (1, 3), "stride": (1, 1)},
    "3x1 stride 2x1": {"kernel": (3, 1), "stride": (2, 1)}, "relu6": {"activation": RELU6},
    "relu": {"activation": RELU, "padding": VALID}, "whole": {"kernel": (13, 11), "stride": (1, 1), "padding": VALID},
    "7x7 valid": {"kernel": (7, 7), "stride": (1, 1), "padding": VALID}, "8x8 same": {"kernel": (8, 8)},
    "1x1": {"kernel": (1, 1), "stride": (1, 1)}, "1x1 stride 2": {"kernel": (1, 1)},
    "40 channels": {"shape": (9, 8, 40)}, "1 channel": {"shape": (9, 8, 1)},
    "stride 4 valid": {"kernel": (4, 4), "stride": (4, 4), "padding": VALID}}


@table
def windows() -> Iterator[Case]:
    """All of them; 16 bits where it has a path of its own."""
    for name, draw in CONVOLUTIONS.items():
        yield from both("CONV_2D", name, draw)
    for name, draw in DEPTHWISES.items():
        yield from both("DEPTHWISE_CONV_2D", name, draw)
    for name, draw in TRANSPOSED.items():
        yield from both("TRANSPOSE_CONV", name, draw)
    for kind, operator in ((ops.MaxPool2D, "MAX_POOL_2D"), (ops.AveragePool2D, "AVERAGE_POOL_2D")):
        for name, options in POOLS.items():
            yield from both(operator, name, pool(kind, **options))  # type: ignore[arg-type]
