"""Every operator with an int8 form: quantized from calibration, run in LiteRT's reference kernels, near the float."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from quant_graphs import Net, noise, run, sqnr, statistics_of

import vitrify.ops as ops
from vitrify.ir import DType, Model, Tensor
from vitrify.quant import quantize

Make = Callable[[Net], Tensor]

CASES: dict[str, tuple[tuple[int, ...], Make]] = {
    "conv": ((1, 8, 8, 3), lambda n: n.conv(n.x, 8)),
    "conv_relu6": ((1, 8, 8, 3), lambda n: n.conv(n.x, 8, gain=4, fused_activation_function=ops.Activation.RELU6)),
    "conv_stride": ((1, 9, 9, 3), lambda n: n.conv(n.x, 8, stride_h=2, stride_w=2, padding=ops.Padding.VALID)),
    "conv_channels_far_apart": ((1, 8, 8, 3), lambda n: n.add(
        ops.Conv2D(), n.x, n.constant(np.geomspace(1e-4, 10, 8).reshape(8, 1, 1, 1) * np.ones((8, 3, 3, 3))),
        n.constant(np.zeros(8)))),
    "depthwise": ((1, 8, 8, 6), lambda n: n.add(ops.DepthwiseConv2D(), n.x, n.weights(1, 3, 3, 6, gain=3),
                                                n.constant(np.linspace(-1, 1, 6)))),
    "depthwise_multiplier": ((1, 8, 8, 3), lambda n: n.add(ops.DepthwiseConv2D(depth_multiplier=2), n.x,
                                                           n.weights(1, 3, 3, 6, gain=3), n.constant(np.ones(6)))),
    "transposed_conv": ((1, 4, 4, 3), lambda n: n.add(
        ops.TransposeConv(stride_h=2, stride_w=2), n.constant([1, 8, 8, 5]), n.weights(5, 2, 2, 3), n.x,
        n.constant(np.linspace(-1, 1, 5)))),
    "dense": ((1, 20), lambda n: n.add(ops.FullyConnected(), n.x, n.weights(7, 20), n.constant(np.ones(7)))),
    "dense_without_bias": ((1, 20), lambda n: n.add(ops.FullyConnected(), n.x, n.weights(7, 20))),
    "add": ((1, 4, 4, 3), lambda n: n.add(ops.Add(), n.x, n.conv(n.x, 3))),
    "add_constant": ((1, 4, 4, 3), lambda n: n.add(ops.Add(), n.x, n.constant(np.array([1.0, -2.0, 3.0])))),
    "sub": ((1, 4, 4, 3), lambda n: n.add(ops.Sub(), n.x, n.conv(n.x, 3))),
    "mul": ((1, 4, 4, 3), lambda n: n.add(ops.Mul(), n.x, n.conv(n.x, 3))),
    "mul_scalar": ((1, 4, 4, 3), lambda n: n.add(ops.Mul(), n.x, n.constant(np.float32(0.37)))),
    "maximum": ((1, 4, 4, 3), lambda n: n.add(ops.Maximum(), n.x, n.constant(np.float32(0.1)))),
    "minimum": ((1, 4, 4, 3), lambda n: n.add(ops.Minimum(), n.x, n.conv(n.x, 3))),
    "concat": ((1, 4, 4, 3), lambda n: n.add(ops.Concatenation(axis=3), n.x, n.conv(n.x, 5))),
    "concat_constant": ((1, 4, 4, 3), lambda n: n.add(ops.Concatenation(axis=3), n.x,
                                                      n.constant(np.ones((1, 4, 4, 2))))),
    "max_pool": ((1, 8, 8, 3), lambda n: n.add(ops.MaxPool2D(stride_h=2, stride_w=2, filter_height=2, filter_width=2),
                                               n.x)),
    "average_pool": ((1, 8, 8, 3), lambda n: n.add(
        ops.AveragePool2D(stride_h=2, stride_w=2, filter_height=2, filter_width=2), n.conv(n.x, 4))),
    "mean": ((1, 8, 8, 3), lambda n: n.add(ops.Mean(keep_dims=True), n.conv(n.x, 4), n.constant([1, 2]))),
    "softmax": ((1, 10), lambda n: n.add(ops.Softmax(beta=1.0), n.add(ops.Mul(), n.x, n.constant(np.float32(5))))),
    "logistic": ((1, 4, 4, 3), lambda n: n.add(ops.Logistic(), n.conv(n.x, 4, gain=5))),
    "tanh": ((1, 4, 4, 3), lambda n: n.add(ops.Tanh(), n.conv(n.x, 4, gain=2))),
    "silu": ((1, 4, 4, 3), lambda n: n.add(ops.Mul(), y := n.conv(n.x, 4, gain=5), n.add(ops.Logistic(), y))),
    "hard_swish": ((1, 4, 4, 3), lambda n: n.add(ops.HardSwish(), n.conv(n.x, 4, gain=5))),
    "relu": ((1, 4, 4, 3), lambda n: n.add(ops.Relu(), n.conv(n.x, 4))),
    "relu6": ((1, 4, 4, 3), lambda n: n.add(ops.Relu6(), n.conv(n.x, 4, gain=9))),
    "leaky_relu": ((1, 4, 4, 3), lambda n: n.add(ops.LeakyRelu(alpha=0.1), n.conv(n.x, 4))),
    "prelu": ((1, 4, 4, 3), lambda n: n.add(ops.Prelu(), n.x, n.constant(np.array([[[0.1, -0.2, 0.5]]])))),
    "pad": ((1, 4, 4, 3), lambda n: n.add(ops.Pad(), n.x, n.constant([[0, 0], [1, 1], [1, 1], [0, 0]]))),
    "resize_nearest": ((1, 4, 4, 3), lambda n: n.add(ops.ResizeNearestNeighbor(), n.x, n.constant([8, 8]))),
    "resize_bilinear": ((1, 4, 4, 3), lambda n: n.add(ops.ResizeBilinear(), n.x, n.constant([8, 8]))),
    "transpose": ((1, 4, 5, 3), lambda n: n.add(ops.Transpose(), n.x, n.constant([0, 3, 1, 2]))),
    "reshape": ((1, 4, 4, 3), lambda n: n.add(ops.Reshape(new_shape=(1, 48)), n.x, n.constant([1, 48]))),
    "strided_slice": ((1, 4, 4, 3), lambda n: n.add(ops.StridedSlice(), n.x, n.constant([0, 1, 0, 0]),
                                                    n.constant([1, 4, 4, 3]), n.constant([1, 2, 1, 1]))),
    "slice": ((1, 4, 4, 3), lambda n: n.add(ops.Slice(), n.x, n.constant([0, 1, 0, 0]), n.constant([1, 2, 4, 3]))),
    "split_and_add": ((1, 4, 4, 4), lambda n: n.add(ops.Add(), *n.graph.add(
        ops.Split(num_splits=2), [n.constant(3), n.x], name="split").outputs)),
}
RANDOM_GAIN_DB = 30.0      # one int8 operator on noise: 35 to 50 dB from rounding alone


def model_of(case: str) -> Model:
    shape, make = CASES[case]
    net = Net(*shape)
    return net.model(make(net))


@pytest.mark.parametrize("kernels", ["reference", "fast"])
@pytest.mark.parametrize("case", CASES)
def test_int8_is_near_float(case: str, kernels: str, tmp_path: Path) -> None:
    model = model_of(case)
    result = quantize(model, statistics_of(model, tmp_path))
    assert all(not t.dtype.is_float for t in result.model.main.tensors())
    sample = noise(model)[0]
    for name, wanted in run(model, sample, "fast").items():
        found = run(result.model, sample, kernels)[name]
        assert found.shape == wanted.shape
        assert sqnr(wanted, found) > RANDOM_GAIN_DB


@pytest.mark.parametrize("case", ["conv", "dense", "concat_constant", "split_and_add"])
def test_the_float_model_is_not_changed(case: str, tmp_path: Path) -> None:
    model = model_of(case)
    statistics = statistics_of(model, tmp_path)
    before = [(t.name, t.type, None if t.data is None else t.data.tobytes()) for t in model.main.tensors()]
    quantize(model, statistics)
    assert before == [(t.name, t.type, None if t.data is None else t.data.tobytes()) for t in model.main.tensors()]


def test_integers_are_kept(tmp_path: Path) -> None:
    net = Net(1, 4, 4, 3)
    model = net.model(net.add(ops.ArgMax(output_type=DType.INT32.value), net.conv(net.x, 5), net.constant(3)))
    result = quantize(model, statistics_of(model, tmp_path))
    assert result.model.main.outputs[0].dtype is DType.INT32
    sample = noise(model)[0]
    (wanted,), (found,) = run(model, sample).values(), run(result.model, sample).values()
    assert np.mean(wanted == found) > 0.9       # ties within one step may fall the other way
