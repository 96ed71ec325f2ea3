"""Builds quantized models for the compiler: single cases, and networks of known architectures with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrify import ops, tflite
from vitrify.ir import DType, Graph, Model, Operator, Origin, Quantization, Tensor
from vitrify.ops import Activation

RELU6 = Activation.RELU6


class Network:
    """A graph under construction; every method adds one int8 operator and returns its output."""

    def __init__(self, *shape: int, dtype: DType = DType.INT8) -> None:
        self.graph = Graph()
        self.count = 0
        self.random = np.random.default_rng(0)
        self.x = self.input(*shape, dtype=dtype)

    def input(self, *shape: int, dtype: DType = DType.INT8) -> Tensor:
        tensor = self.tensor("input" if not self.graph.inputs else self.fresh("input"), shape, dtype)
        self.graph.inputs.append(tensor)
        return tensor

    def tensor(self, name: str, shape: Sequence[int], dtype: DType = DType.INT8, scale: float = 0.05,
               zero_point: int = 0) -> Tensor:
        quantization = None if dtype.is_float or dtype is DType.INT32 else Quantization.per_tensor(scale, zero_point)
        return Tensor(name, dtype, shape, quantization=quantization)

    def ints(self, *values: int) -> Tensor:
        data = np.array(values, np.int32)
        return Tensor(f"{self.fresh('ints')}", DType.INT32, data.shape, data=data)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def add(self, op: Operator, inputs: Sequence[Tensor | None], shape: Sequence[int], name: str = "",
            **kind: Any) -> Tensor:
        """Add an operator. As in a file, its node is called like its output."""
        output = self.tensor(name or self.fresh(op.kind.lower()), shape, **kind)
        self.graph.add(op, inputs, [output], name=output.name, origin=Origin.of(output.name, op.kind))
        return output

    def weights(self, *shape: int, axis: int = 0) -> list[Tensor]:
        """Weights with a bell of values as trained ones have, so that they compress as those do, and a bias."""
        data = np.clip(np.rint(self.random.laplace(0, 18, shape)), -127, 127).astype(np.int8)
        scale = np.full(shape[axis], 0.01, np.float32)
        stem = self.fresh("w")
        return [Tensor(stem, DType.INT8, shape, data=data, quantization=Quantization.per_axis(scale, axis)),
                Tensor(f"{stem}_bias", DType.INT32, scale.shape, data=np.zeros(scale.shape, np.int32),
                       quantization=Quantization.per_axis(scale * np.float32(0.05), 0))]

    def conv(self, x: Tensor, channels: int, kernel: int = 1, stride: int = 1, activation: Activation = RELU6,
             name: str = "") -> Tensor:
        _, height, width, depth = x.shape
        op = ops.Conv2D(stride_w=stride, stride_h=stride, fused_activation_function=activation)
        return self.add(op, [x, *self.weights(channels, kernel, kernel, depth)],
                        (1, -(-height // stride), -(-width // stride), channels), name)

    def depthwise(self, x: Tensor, kernel: int = 3, stride: int = 1) -> Tensor:
        _, height, width, depth = x.shape
        op = ops.DepthwiseConv2D(stride_w=stride, stride_h=stride, depth_multiplier=1, fused_activation_function=RELU6)
        return self.add(op, [x, *self.weights(1, kernel, kernel, depth, axis=3)],
                        (1, -(-height // stride), -(-width // stride), depth))

    def gather(self, x: Tensor, name: str = "") -> Tensor:
        """Turn around the third axis: an operator that the NPU does not have."""
        return self.add(ops.Gather(axis=2), [x, self.ints(*range(x.shape[2])[::-1])], x.shape, name)

    def head(self, x: Tensor, classes: int) -> Tensor:
        pooled = self.add(ops.Mean(), [x, self.ints(1, 2)], (1, x.shape[3]))
        weights, bias = self.weights(classes, x.shape[3])
        scores = self.add(ops.FullyConnected(), [pooled, weights, bias], (1, classes))
        return self.add(ops.Softmax(beta=1.0), [scores], (1, classes), scale=1 / 256, zero_point=-128)

    def model(self, *outputs: Tensor) -> Model:
        self.graph.set_outputs(outputs)
        return Model(graphs=[self.graph])

    def save(self, path: Path, *outputs: Tensor) -> Path:
        tflite.write(self.model(*outputs), path)
        return path


def neck(path: Path, size: int = 160) -> Path:
    """The end of a text detector's neck: gated maps of three sizes, brought to one and joined.

    At 160 the compiler dies when it optimizes for speed.
    """
    net = Network(1, size, size, 96)

    sixth = Tensor("sixth", DType.INT8, (), data=np.array(127, np.int8), quantization=Quantization.per_tensor(1 / 762))

    def gated(x: Tensor, kernel: int = 3) -> Tensor:
        x = net.conv(x, 24, kernel, activation=Activation.NONE)
        gate = net.add(ops.Mean(keep_dims=True), [x, net.ints(1, 2)], (1, 1, 1, 24))
        gate = net.conv(net.conv(gate, 6, activation=Activation.RELU), 24)
        gate = net.add(ops.Mul(), [gate, sixth], gate.shape)
        return net.add(ops.Add(), [x, net.add(ops.Mul(), [x, gate], x.shape)], x.shape)

    def grown(x: Tensor) -> Tensor:
        return net.add(ops.ResizeNearestNeighbor(), [x, net.ints(size, size)], (1, size, size, 24))

    middle = net.input(1, size // 4, size // 4, 24)
    sides = net.add(ops.Add(), [middle, net.input(*middle.shape)], middle.shape)
    parts = [grown(net.input(1, size // 8, size // 8, 24)), grown(sides),
             grown(gated(net.input(1, size // 2, size // 2, 96))), gated(net.x)]
    return net.save(path, net.add(ops.Concatenation(axis=3), parts, (1, size, size, 96)))


def mobilenet_v1(path: Path, size: int = 128, alpha: float = 0.25) -> Path:
    """MobileNetV1. Source: arXiv 1704.04861, table 1."""
    net = Network(1, size, size, 3)
    x = net.conv(net.x, int(32 * alpha), 3, 2)
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for channels, stride in blocks:
        x = net.conv(net.depthwise(x, 3, stride), int(channels * alpha))
    return net.save(path, net.head(x, 1001))


MOBILENET_V2 = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3),
                (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)]
EFFICIENTNET_LITE0 = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                      (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]


def inverted_residuals(path: Path, stages: Sequence[tuple[int, int, int, int, int]], size: int = 224) -> Path:
    """MobileNetV2 and EfficientNet-Lite: stages of (expansion, channels, repeats, stride, kernel).

    Source: arXiv 1801.04381, table 2; arXiv 1905.11946, table 1, without squeeze-and-excitation.
    """
    net = Network(1, size, size, 3)
    x = net.conv(net.x, 32, 3, 2)
    for expansion, channels, repeats, first_stride, kernel in stages:
        for stride in [first_stride] + [1] * (repeats - 1):
            y = net.conv(x, x.shape[3] * expansion) if expansion > 1 else x
            y = net.conv(net.depthwise(y, kernel, stride), channels, activation=Activation.NONE)
            same = stride == 1 and x.shape == y.shape
            x = net.add(ops.Add(), [x, y], y.shape, scale=0.07) if same else y
    return net.save(path, net.head(net.conv(x, 1280), 1000))


def resnet50(path: Path, size: int = 224) -> Path:
    """ResNet50. Source: arXiv 1512.03385, table 1."""
    relu = Activation.RELU
    net = Network(1, size, size, 3)
    x = net.conv(net.x, 64, 7, 2, relu)
    pool = ops.MaxPool2D(stride_w=2, stride_h=2, filter_width=3, filter_height=3)
    x = net.add(pool, [x], (1, size // 4, size // 4, 64))
    for channels, repeats, first_stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for index in range(repeats):
            stride = first_stride if index == 0 else 1
            y = net.conv(net.conv(x, channels, 1, 1, relu), channels, 3, stride, relu)
            y = net.conv(y, 4 * channels, activation=Activation.NONE)
            x = net.conv(x, 4 * channels, 1, stride, Activation.NONE) if index == 0 else x
            x = net.add(ops.Add(fused_activation_function=relu), [x, y], y.shape, scale=0.07)
    return net.save(path, net.head(x, 1000))
