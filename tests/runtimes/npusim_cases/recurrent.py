"""The LSTM over a sequence, in the form that the compiler takes, and chains that cascade."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npusim_cases.pen import INT8, INT16, Case, Draw, Pen, table
from vitrify import ops
from vitrify.ir import DType, Quantization, Tensor
from vitrify.ops import Activation

_INPUTS = 24


def lstm(steps: int = 4, depth: int = 8, units: int = 16, batch: int = 1, time_major: bool = False,
         clip: float = 0.0, input_clip: int = 1) -> Draw:
    def state(pen: Pen, dtype: DType, scale: float, variable: bool) -> Tensor:
        made = Tensor(pen._name("state"), dtype, (batch, units), quantization=Quantization.per_tensor(scale))
        made.is_variable = variable
        return made

    def draw(pen: Pen) -> Tensor:
        inputs: list[Tensor | None] = [None] * _INPUTS
        shape = (steps, batch, depth) if time_major else (batch, steps, depth)
        inputs[0] = pen.x(*shape, scale=1 / 128, zero=0)
        for place in range(1, 9):
            inputs[place] = pen.weights(units, depth if place < 5 else units, axis=None, spread=40, scale=0.008)
        for place in range(12, 16):
            data = pen.random.integers(-3000, 3000, units).astype(np.int32)
            inputs[place] = Tensor(pen._name("bias"), DType.INT32, (units,), data=data,
                                   quantization=Quantization.per_tensor(0.008 / 128))
        inputs[18], inputs[19] = state(pen, INT8, 1 / 128, True), state(pen, INT16, 2.0 ** -11, True)
        op = ops.UnidirectionalSequenceLSTM(fused_activation_function=Activation.TANH, time_major=time_major,
                                            cell_clip=clip)
        found = pen.op(op, inputs, 1 / 128, 0, shape=(*shape[:2], units))
        node = found.producer
        assert node is not None
        node.extras["intermediates"] = [*(state(pen, INT16, 2.0 ** -12, False) for _ in range(4)),
                                        state(pen, INT8, 1 / 128, False)]
        return found
    return draw


def chain(shape: tuple[int, int, int] = (40, 40, 8), layers: int = 4, stride: int = 1) -> Draw:
    """Layers that the compiler may run row by row, with rolling buffers between."""
    def draw(pen: Pen) -> Tensor:
        x = pen.x(1, *shape)
        for layer in range(layers):
            depth = x.shape[3]
            if layer % 2:
                weights = pen.weights(1, 3, 3, depth, axis=3)
                op: ops.Operator = ops.DepthwiseConv2D(depth_multiplier=1, stride_h=stride, stride_w=stride)
                outputs = depth
            else:
                outputs = 12 + 4 * layer
                weights = pen.weights(outputs, 3, 3, depth)
                op = ops.Conv2D()
            x = pen.op(op, [x, weights, pen.bias(x, weights, outputs)], 0.1 if not pen.wide else 5e-4)
        return x
    return draw


def residual(pen: Pen) -> Tensor:
    """Two branches of other scales that are added, then a table, a pool and a dense layer."""
    x = pen.x(1, 24, 24, 8)
    weights = pen.weights(8, 3, 3, 8)
    y = pen.op(ops.Conv2D(), [x, weights, pen.bias(x, weights, 8)], 0.2)
    y = pen.op(ops.Add(), [x, y], 0.17)
    y = pen.op(ops.Mul(), [y, pen.op(ops.Logistic(), [y], 1 / 256, -128)], 0.1, -100)
    y = pen.op(ops.MaxPool2D(stride_h=2, stride_w=2, filter_height=2, filter_width=2), [y], like=y)
    y = pen.op(ops.Mean(), [y, pen.ints(1, 2)], 0.03)
    weights = pen.weights(5, 8, axis=None)
    return pen.op(ops.FullyConnected(), [y, weights, pen.bias(y, weights, 5)], 0.05)


@table
def recurrent() -> Iterator[Case]:
    """LSTM."""
    kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    for name, draw in {"plain": lstm(), "one step": lstm(1), "time major": lstm(time_major=True),
                       "20 units": lstm(3, 5, 20), "clipped": lstm(clip=0.5)}.items():
        yield Case(kind, name, draw)


@table
def chains() -> Iterator[Case]:
    """Several layers."""
    for name, draw in {"rows": chain(), "large": chain((64, 48, 12), 5), "strides": chain((48, 48, 4), 4, 2)}.items():
        yield Case("chain", name, draw)
        yield Case("chain", name, draw, INT16)
    yield Case("chain", "residual", residual)
