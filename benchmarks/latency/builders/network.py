"""A graph under construction: every method adds one int8 operator and returns its output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Model, Operator, Origin, Quantization, Tensor
from vitrify.ops import Activation, Padding

NONE, RELU, RELU6 = Activation.NONE, Activation.RELU, Activation.RELU6
Pair = int | tuple[int, int]


def pair(value: Pair) -> tuple[int, int]:
    """Return height and width."""
    return (value, value) if isinstance(value, int) else value


class Network:
    """Builds one graph; ``x`` is its first input."""

    def __init__(self, *shape: int, activation: Activation = RELU6) -> None:
        self.graph, self.count, self.activation = Graph(), 0, activation
        self.random = np.random.default_rng(0)
        self.x = self._tensor("input", shape)
        self.graph.inputs.append(self.x)

    def _tensor(self, name: str, shape: Sequence[int], scale: float = 0.05, zero_point: int = 0) -> Tensor:
        return Tensor(name, DType.INT8, tuple(shape), quantization=Quantization.per_tensor(scale, zero_point))

    def _fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def ints(self, *values: int) -> Tensor:
        """Return a constant of whole numbers."""
        data = np.array(values, np.int32)
        return Tensor(self._fresh("ints"), DType.INT32, data.shape, data=data)

    def add(self, op: Operator, inputs: Sequence[Tensor | None], shape: Sequence[int], **kind: Any) -> Tensor:
        """Add an operator with one output of ``shape``."""
        output = self._tensor(self._fresh(op.kind.lower()), shape, **kind)
        self.graph.add(op, inputs, [output], name=output.name, origin=Origin.of(output.name, op.kind))
        return output

    def weights(self, *shape: int, axis: int = 0) -> list[Tensor]:
        """Return weights with a bell of values as trained ones have, so that they compress as those do, and a bias."""
        data = np.clip(np.rint(self.random.laplace(0, 18, shape)), -127, 127).astype(np.int8)
        scale = np.full(shape[axis], 0.01, np.float32)
        stem = self._fresh("w")
        return [Tensor(stem, DType.INT8, shape, data=data, quantization=Quantization.per_axis(scale, axis)),
                Tensor(f"{stem}_bias", DType.INT32, scale.shape, data=np.zeros(scale.shape, np.int32),
                       quantization=Quantization.per_axis(scale * np.float32(0.05), 0))]

    def conv(self, x: Tensor, channels: int, kernel: Pair = 1, stride: Pair = 1, activation: Activation | None = None,
             valid: bool = False, dilation: int = 1) -> Tensor:
        """A convolution; its bias and its BatchNorm are in it."""
        (kh, kw), (sh, sw), depth = pair(kernel), pair(stride), x.shape[3]
        op = ops.Conv2D(padding=_padding(valid), stride_h=sh, stride_w=sw, dilation_h_factor=dilation,
                        dilation_w_factor=dilation, fused_activation_function=self._given(activation))
        return self.add(op, [x, *self.weights(channels, kh, kw, depth)],
                        (1, *_sizes(x, (kh, kw), (sh, sw), valid), channels))

    def depthwise(self, x: Tensor, kernel: Pair = 3, stride: Pair = 1, activation: Activation | None = None,
                  valid: bool = False, multiplier: int = 1) -> Tensor:
        """A convolution of each channel by itself."""
        (kh, kw), (sh, sw), channels = pair(kernel), pair(stride), x.shape[3] * multiplier
        op = ops.DepthwiseConv2D(padding=_padding(valid), stride_h=sh, stride_w=sw, depth_multiplier=multiplier,
                                 fused_activation_function=self._given(activation))
        return self.add(op, [x, *self.weights(1, kh, kw, channels, axis=3)],
                        (1, *_sizes(x, (kh, kw), (sh, sw), valid), channels))

    def dense(self, x: Tensor, outputs: int, activation: Activation = NONE) -> Tensor:
        """A matrix for a flat value."""
        weights, bias = self.weights(outputs, x.shape[-1])
        return self.add(ops.FullyConnected(fused_activation_function=activation), [x, weights, bias], (1, outputs))

    def sum(self, x: Tensor, y: Tensor, activation: Activation = NONE) -> Tensor:
        """Two values of one shape, or of one that is spread."""
        shape = x.shape if x.size >= y.size else y.shape
        return self.add(ops.Add(fused_activation_function=activation), [x, y], shape, scale=0.07)

    def product(self, x: Tensor, y: Tensor) -> Tensor:
        """Two values multiplied."""
        return self.add(ops.Mul(), [x, y], x.shape if x.size >= y.size else y.shape)

    def normalized(self, x: Tensor) -> Tensor:
        """BatchNorm that stands before a convolution, and ReLU: two operators that nothing takes in."""
        each = [Tensor(self._fresh("norm"), DType.INT8, (x.shape[3],), quantization=Quantization.per_tensor(0.01),
                       data=self.random.integers(-99, 99, x.shape[3]).astype(np.int8)) for _ in range(2)]
        scaled = self.add(ops.Mul(), [x, each[0]], x.shape)
        return self.add(ops.Add(fused_activation_function=RELU), [scaled, each[1]], x.shape, scale=0.07)

    def pool(self, x: Tensor, kernel: Pair, stride: Pair, average: bool = False, valid: bool = False) -> Tensor:
        """The largest, or the average, of each window."""
        (kh, kw), (sh, sw) = pair(kernel), pair(stride)
        kind = ops.AveragePool2D if average else ops.MaxPool2D
        op = kind(padding=_padding(valid), stride_h=sh, stride_w=sw, filter_height=kh, filter_width=kw)
        return self.add(op, [x], (1, *_sizes(x, (kh, kw), (sh, sw), valid), x.shape[3]))

    def mean(self, x: Tensor, keep: bool = False) -> Tensor:
        """The average of the whole plane."""
        return self.add(ops.Mean(keep_dims=keep), [x, self.ints(1, 2)],
                        (1, 1, 1, x.shape[3]) if keep else (1, x.shape[3]))

    def flat(self, x: Tensor) -> Tensor:
        """All values in a row."""
        return self.reshape(x, 1, x.size)

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        """The same values in another shape."""
        return self.add(ops.Reshape(), [x, self.ints(*shape)], shape)

    def transpose(self, x: Tensor, *order: int) -> Tensor:
        """The axes in another order."""
        return self.add(ops.Transpose(), [x, self.ints(*order)], [x.shape[axis] for axis in order])

    def join(self, *parts: Tensor) -> Tensor:
        """Values one behind the other along the last axis."""
        return self.add(ops.Concatenation(axis=len(parts[0].shape) - 1), parts,
                        (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts)))

    def halves(self, x: Tensor) -> list[Tensor]:
        """The first half of the channels, and the second."""
        shape = (*x.shape[:-1], x.shape[-1] // 2)
        made = [self._tensor(self._fresh("split"), shape) for _ in range(2)]
        axis = Tensor(self._fresh("axis"), DType.INT32, (), data=np.array(len(x.shape) - 1, np.int32))
        self.graph.add(ops.Split(num_splits=2), [axis, x], made, name=made[0].name,
                       origin=Origin.of(made[0].name, "SPLIT"))
        return made

    def grown(self, x: Tensor, height: int, width: int, bilinear: bool = False) -> Tensor:
        """A plane enlarged."""
        op = ops.ResizeBilinear(half_pixel_centers=True) if bilinear else ops.ResizeNearestNeighbor()
        return self.add(op, [x, self.ints(height, width)], (1, height, width, x.shape[3]))

    def sigmoid(self, x: Tensor) -> Tensor:
        """Values between 0 and 1."""
        return self.add(ops.Logistic(), [x], x.shape, scale=1 / 256, zero_point=-128)

    def softmax(self, x: Tensor) -> Tensor:
        """Shares that add up to 1."""
        return self.add(ops.Softmax(beta=1.0), [x], x.shape, scale=1 / 256, zero_point=-128)

    def leaky(self, x: Tensor, alpha: float = 0.1) -> Tensor:
        """LeakyReLU, an operator of its own."""
        return self.add(ops.LeakyRelu(alpha=alpha), [x], x.shape)

    def swish(self, x: Tensor) -> Tensor:
        """The value times its sigmoid."""
        return self.product(x, self.sigmoid(x))

    def model(self, *outputs: Tensor) -> Model:
        """Return the finished model."""
        self.graph.set_outputs(outputs)
        return Model(graphs=[self.graph])

    def _given(self, activation: Activation | None) -> Activation:
        return self.activation if activation is None else activation


def _padding(valid: bool) -> Padding:
    return Padding.VALID if valid else Padding.SAME


def _sizes(x: Tensor, kernel: tuple[int, int], stride: tuple[int, int], valid: bool) -> tuple[int, int]:
    ends = ((size - k + 1 if valid else size) / s for size, k, s in zip(x.shape[1:3], kernel, stride, strict=True))
    height, width = (math.ceil(end) for end in ends)
    return height, width
