"""What the quantizer writes computes the same, to the bit, in numpy and in LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, noise, statistics_of

import vitrify.ops as ops
from vitrify.ir import Model, Tensor
from vitrify.ops import Activation
from vitrify.quant import Recipe, quantize
from vitrify.runtimes import open as open_runtime


def cnn(net: Net) -> Model:
    """Convolutions with a fused ReLU6, a depthwise one, a residual ADD, pools, a classifier."""
    x = net.conv(net.x, 8, stride_h=2, stride_w=2, fused_activation_function=Activation.RELU6)
    y = net.add(ops.DepthwiseConv2D(), x, net.weights(1, 3, 3, 8, gain=3), net.constant(np.linspace(-1, 1, 8)))
    y = net.add(ops.Add(), net.add(ops.HardSwish(), y), x)
    y = net.add(ops.MaxPool2D(stride_h=2, stride_w=2, filter_height=2, filter_width=2), y)
    y = net.add(ops.Mean(), net.add(ops.LeakyRelu(alpha=0.1), y), net.constant([1, 2]))
    y = net.add(ops.FullyConnected(), y, net.weights(5, 8), net.constant(np.ones(5)))
    return net.model(net.add(ops.Softmax(beta=1.0), y))


def attention(net: Net) -> Model:
    """A normalized row of features, two products of activations around a softmax, a gate."""
    x = net.add(ops.Reshape(new_shape=(1, 16, 48)), net.x, net.constant([1, 16, 48]))
    mean = net.add(ops.Mean(keep_dims=True), x, net.constant([2]))
    centred = net.add(ops.Sub(), x, mean)
    variance = net.add(ops.Mean(keep_dims=True), net.add(ops.Mul(), centred, centred), net.constant([2]))
    root = net.add(ops.Rsqrt(), net.add(ops.Add(), variance, net.constant(np.float32(0.1))))
    x = net.add(ops.Mul(), centred, root)
    q, k, v = (net.add(ops.FullyConnected(keep_num_dims=True), x, net.weights(12, 48)) for _ in range(3))
    scores = net.add(ops.Softmax(beta=1.0), net.add(ops.BatchMatMul(adj_y=True), q, k))
    y = net.add(ops.BatchMatMul(), scores, v)
    return net.model(net.add(ops.Mul(), y, net.add(ops.Logistic(), y)))


def upsampler(net: Net) -> Model:
    """A transposed convolution, a resize and a concatenation."""
    x = net.conv(net.x, 4)
    up = net.add(ops.TransposeConv(stride_h=2, stride_w=2), net.constant([1, 32, 32, 4]), net.weights(4, 2, 2, 4), x,
                 net.constant(np.zeros(4)))
    other = net.add(ops.ResizeBilinear(half_pixel_centers=True), x, net.constant([32, 32]))
    return net.model(net.add(ops.Tanh(), net.add(ops.Concatenation(axis=3), up, other)))


MAKERS: dict[str, Callable[[Net], Model]] = {"cnn": cnn, "attention": attention, "upsampler": upsampler}


@pytest.mark.parametrize("activations", ["int8", "int16"])
@pytest.mark.parametrize("name", MAKERS)
def test_every_tensor_equals_litert(name: str, activations: str, tmp_path: Path) -> None:
    model = MAKERS[name](Net(1, 16, 16, 3))
    statistics = statistics_of(model, tmp_path)
    made = quantize(model, statistics, Recipe(activations=activations)).model
    computed: list[Tensor] = [t for node in made.main for t in node.outputs]
    with open_runtime(made, kernels="numpy") as ours, open_runtime(made, kernels="reference") as theirs:
        for given in noise(model, seed=7):
            wanted, found = theirs.trace(given), ours.trace(given)
            assert len(found) == len({t.name for t in computed})
            for tensor, value in found.items():
                np.testing.assert_array_equal(value.raw, wanted[tensor].raw, err_msg=tensor)
